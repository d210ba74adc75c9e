/* The B-scan and its colour bar. */
#include "viewer/draw/areas.h"
#include "viewer/model/words.h"

#include <math.h>
#include <stdio.h>

#define LARGE_PX 3.0 /* of the screen */

static bool same_colours(const struct oct_view_contrast *a, const struct oct_view_contrast *b)
{
    return a->lo == b->lo && a->hi == b->hi && a->gamma == b->gamma && a->palette == b->palette;
}

static bool is_drawn(const struct oct_draw_sheet *sheet, const struct oct_view_model *model,
                     bool dimmed, struct oct_view_rectf place)
{
    return sheet->serial == model->serial && sheet->dimmed == dimmed &&
           same_colours(&sheet->contrast, &model->contrast) && sheet->place.x == place.x &&
           sheet->place.y == place.y && sheet->place.w == place.w && sheet->place.h == place.h;
}

/* Fills the sheet: with all of the picture, or (place.w > 0) with the part of it that is seen. */
static enum oct_err update(struct oct_draw *draw, const struct oct_view_model *model,
                           struct oct_view_rectf place, struct oct_error *err)
{
    struct oct_draw_sheet *sheet = &draw->bscan;
    const struct oct_picture_header *h = &model->shown.header;
    struct oct_view_upright upright = oct_view_upright_of(h);
    struct oct_view_rect r = draw->picture_rect;
    struct oct_view_veil veil;
    bool all = place.w == 0, dimmed = oct_view_show_veil(model, &veil) && veil.covers;
    void *pixels;
    int pitch_bytes;
    enum oct_err code = oct_draw_sheet_size(draw, sheet, all ? upright.n_columns : (unsigned)r.w,
                                            all ? upright.n_rows : (unsigned)r.h, err);

    if (code || is_drawn(sheet, model, dimmed, place))
        return code;
    if (SDL_LockTexture(sheet->texture, NULL, &pixels, &pitch_bytes) < 0)
        return oct_fail(err, OCT_E_IO, "drawing: %s", SDL_GetError());
    size_t pitch_px = (size_t)pitch_bytes / sizeof(uint32_t);
    double lines_px = h->n_lines / place.w, depth_px = h->depth / place.h;
    struct oct_view_part part = {
        r.w, r.h, (r.x - place.x) * lines_px, lines_px, (r.y - place.y) * depth_px, depth_px};
    if (all)
        oct_view_convert(&model->shown, &model->contrast, pixels, pitch_px);
    else
        oct_view_convert_part(&model->shown, &model->contrast, &part, pixels, pitch_px);
    if (dimmed)
        oct_draw_darken(pixels, sheet->n_columns, sheet->n_rows, pitch_px);
    SDL_UnlockTexture(sheet->texture);
    sheet->dimmed = dimmed;
    sheet->serial = model->serial;
    sheet->contrast = model->contrast;
    sheet->place = place;
    return OCT_OK;
}

/* Returns the first of n pixels that reaches beyond `edge`, where all of them together begin at
 * `start` and are `length` long. */
static int pixel_at(double edge, double start, double length, unsigned n)
{
    double at = floor((edge - start) / length * n);
    return at < 0 ? 0 : at > n ? (int)n : (int)at;
}

static struct oct_view_rect seen_of(struct oct_view_rectf place, struct oct_view_rect area)
{
    int x0 = (int)fmax(round(place.x), area.x), y0 = (int)fmax(round(place.y), area.y);
    int x1 = (int)fmin(round(place.x + place.w), area.x + area.w);
    int y1 = (int)fmin(round(place.y + place.h), area.y + area.h);

    return (struct oct_view_rect){x0, y0, x1 > x0 ? x1 - x0 : 1, y1 > y0 ? y1 - y0 : 1};
}

/* Only the pixels in view are scaled: whole ones, a little beyond the panel's edges. */
static void copy_seen(struct oct_draw *draw)
{
    const struct oct_draw_sheet *sheet = &draw->bscan;
    struct oct_view_rectf place = draw->place;
    struct oct_view_rect r = draw->picture_rect;
    int x0 = pixel_at(r.x, place.x, place.w, sheet->n_columns);
    int y0 = pixel_at(r.y, place.y, place.h, sheet->n_rows);
    int x1 = pixel_at(r.x + r.w, place.x, place.w, sheet->n_columns) + 1;
    int y1 = pixel_at(r.y + r.h, place.y, place.h, sheet->n_rows) + 1;

    x1 = x1 > (int)sheet->n_columns ? (int)sheet->n_columns : x1;
    y1 = y1 > (int)sheet->n_rows ? (int)sheet->n_rows : y1;
    double px = place.w / sheet->n_columns, py = place.h / sheet->n_rows;
    int left = (int)lround(place.x + x0 * px), top = (int)lround(place.y + y0 * py);
    SDL_Rect from = {x0, y0, x1 - x0, y1 - y0};
    SDL_Rect to = {left, top, (int)lround(place.x + x1 * px) - left,
                   (int)lround(place.y + y1 * py) - top};
    SDL_SetTextureScaleMode(sheet->texture,
                            px > 6 && py > 6 ? SDL_ScaleModeNearest : SDL_ScaleModeLinear);
    oct_draw_clip(draw, &r);
    SDL_RenderCopy(draw->renderer, sheet->texture, &from, &to);
    oct_draw_clip(draw, NULL);
}

enum oct_err oct_draw_bscan(struct oct_draw *draw, const struct oct_view_model *model,
                            struct oct_error *err)
{
    struct oct_view_rect area = draw->layout.bscan;
    enum oct_err code;

    draw->picture_rect = area;
    draw->place = (struct oct_view_rectf){area.x, area.y, area.w, area.h};
    if (!model->has_picture) {
        oct_draw_fill(draw, area, RGB_AREA, 255);
        return OCT_OK;
    }
    draw->place = oct_view_model_place(model, area);
    draw->picture_rect = seen_of(draw->place, area);
    /* SDL cuts a scaled copy at whole pixels of the picture. Where those are large on the screen
     * they are drawn here, each where it is: what is measured must lie where it is seen. */
    bool large = model->lens.zoom > 1 && (draw->place.w > LARGE_PX * model->shown.header.n_lines ||
                                          draw->place.h > LARGE_PX * model->shown.header.depth);
    struct oct_view_rectf part = large ? draw->place : (struct oct_view_rectf){0, 0, 0, 0};
    if ((code = update(draw, model, part, err)))
        return code;
    struct oct_view_rect r = draw->picture_rect;
    oct_draw_around(draw, area, r, RGB_AREA);
    if (large)
        SDL_RenderCopy(draw->renderer, draw->bscan.texture, NULL, &(SDL_Rect){r.x, r.y, r.w, r.h});
    else
        copy_seen(draw);
    return OCT_OK;
}

void oct_draw_stretch(struct oct_draw *draw, const struct oct_view_model *model)
{
    char text[64];

    oct_view_model_stretch_text(model, draw->place, text, sizeof(text));
    if (text[0])
        oct_draw_corner(draw, text, RGB_PLAIN);
}

/* ---- the colour bar ---- */

void oct_draw_colour_bar(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_contrast *c = &model->contrast;
    struct oct_view_rect bar = draw->layout.colours;
    uint32_t colours[256];
    char text[32];
    int line = oct_draw_line_height(draw, OCT_TEXT_NORMAL), text_px = draw->layout.text_px;

    if (bar.w == 0 || !model->has_picture)
        return;
    int top = bar.y + line, bottom = bar.y + bar.h - line, x = bar.x + text_px / 2;
    if (bottom <= top)
        return;
    oct_view_contrast_colours(c, colours);
    for (int y = top; y < bottom; y++)
        oct_draw_fill(draw, (struct oct_view_rect){x, y, text_px, 1},
                      colours[255 * (bottom - 1 - y) / (bottom - top)] & 0xffffffu, 255);
    oct_draw_frame_of(draw, (struct oct_view_rect){x - 1, top - 1, text_px + 2, bottom - top + 2},
                      RGB_DIM);
    /* Five values, the limits among them. */
    for (int i = 0; i <= 4; i++) {
        double value = c->lo + (c->hi - c->lo) * i / 4;
        int y = bottom - (bottom - top) * i / 4;
        if (c->log)
            snprintf(text, sizeof(text), "%.1f", value);
        else if (model->playback.active && model->playback.file.what[0])
            snprintf(text, sizeof(text), "%.4g", value);
        else
            snprintf(text, sizeof(text), "%.2g", value);
        oct_draw_fill(draw, (struct oct_view_rect){x + text_px, y, text_px / 3, 1}, RGB_DIM, 255);
        oct_draw_text(draw, OCT_TEXT_NORMAL, x + text_px * 3 / 2, y - line / 2, text, RGB_PLAIN);
    }
    if ((bottom - top) / 4 < 3 * line) /* the unit would stand in the second value */
        return;
    oct_draw_text(draw, OCT_TEXT_NORMAL, x + text_px * 3 / 2, bar.y + line * 7 / 4,
                  model->playback.active && model->playback.file.what[0] ? model->playback.file.unit
                  : c->log                                               ? "dB"
                                                                         : "cts\u00b2",
                  RGB_DIM);
}
