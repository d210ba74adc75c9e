#include "viewer/draw/canvas.h"
#include "viewer/model/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the picture ---- */

#define LARGE_PX 3.0 /* of the screen */

/* Fills the sheet: with all of the picture, or (place.w > 0) with the part of it that is seen. */
static enum oct_err update(struct oct_draw *draw, const struct oct_view_model *model,
                           struct oct_view_rectf place, struct oct_error *err)
{
    struct oct_draw_sheet *sheet = &draw->bscan;
    const struct oct_picture_header *h = &model->shown.header;
    struct oct_view_upright upright = oct_view_upright_of(h);
    struct oct_view_rect r = draw->layout.picture;
    struct oct_view_veil veil;
    const uint64_t flow = oct_view_model_has_flow(model) ? model->flow.serial : 0;
    bool all = place.w == 0, dimmed = oct_view_show_veil(model, &veil) && veil.covers;
    uint32_t *pixels;
    size_t pitch_px;
    enum oct_err code = oct_draw_sheet_size(draw, sheet, all ? upright.n_columns : (unsigned)r.w,
                                            all ? upright.n_rows : (unsigned)r.h, err);
    if (code ||
        (oct_draw_sheet_has(sheet, model->serial, &model->contrast) && sheet->dimmed == dimmed &&
         sheet->flow == flow && sheet->place.x == place.x && sheet->place.y == place.y &&
         sheet->place.w == place.w && sheet->place.h == place.h))
        return code;
    if ((code =
             oct_draw_sheet_lock(sheet, model->serial, &model->contrast, &pixels, &pitch_px, err)))
        return code;
    double lines_px = h->n_lines / place.w, depth_px = h->depth / place.h;
    struct oct_view_part part = {
        r.w, r.h, (r.x - place.x) * lines_px, lines_px, (r.y - place.y) * depth_px, depth_px};
    if (all)
        part = (struct oct_view_part){(int)upright.n_columns,
                                      (int)upright.n_rows,
                                      0,
                                      (double)h->n_lines / upright.n_columns,
                                      0,
                                      (double)h->depth / upright.n_rows};
    if (all)
        oct_view_convert(&model->shown, &model->contrast, pixels, pitch_px);
    else
        oct_view_convert_part(&model->shown, &model->contrast, &part, pixels, pitch_px);
    if (flow)
        oct_view_flow_tint(model, &part, pixels, pitch_px);
    if (dimmed)
        oct_draw_darken(pixels, sheet->n_columns, sheet->n_rows, pitch_px);
    SDL_UnlockTexture(sheet->texture);
    sheet->dimmed = dimmed;
    sheet->flow = flow;
    sheet->place = place;
    return OCT_OK;
}

/* Returns the first of n pixels that reaches beyond `edge`, where all of them together begin at
 * `start` and are `length` long. */
static int pixel_at(double edge, double start, double length, unsigned n)
{
    return (int)fmin(fmax(floor((edge - start) / length * n), 0), n);
}

/* Only the pixels in view are scaled: whole ones, a little beyond the panel's edges. */
static void copy_seen(struct oct_draw *draw)
{
    const struct oct_draw_sheet *sheet = &draw->bscan;
    struct oct_view_rectf place = draw->layout.place;
    struct oct_view_rect r = draw->layout.picture;
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
    draw->layout.picture = area;
    draw->layout.place = (struct oct_view_rectf){area.x, area.y, area.w, area.h};
    if (!model->has_picture) {
        oct_draw_fill(draw, area, RGB_AREA, 255);
        return OCT_OK;
    }
    draw->layout.place = oct_view_model_place(model, area);
    const struct oct_view_rectf p = draw->layout.place;
    const int x0 = (int)fmax(round(p.x), area.x), y0 = (int)fmax(round(p.y), area.y);
    const int x1 = (int)fmin(round(p.x + p.w), area.x + area.w);
    const int y1 = (int)fmin(round(p.y + p.h), area.y + area.h);
    draw->layout.picture =
        (struct oct_view_rect){x0, y0, x1 > x0 ? x1 - x0 : 1, y1 > y0 ? y1 - y0 : 1};
    /* SDL cuts a scaled copy at whole pixels of the picture. Where those are large on the screen
     * they are drawn here, each where it is: what is measured must lie where it is seen. */
    bool large =
        model->lens.zoom > 1 && (draw->layout.place.w > LARGE_PX * model->shown.header.n_lines ||
                                 draw->layout.place.h > LARGE_PX * model->shown.header.depth);
    struct oct_view_rectf part = large ? draw->layout.place : (struct oct_view_rectf){0, 0, 0, 0};
    if ((code = update(draw, model, part, err)))
        return code;
    struct oct_view_rect r = draw->layout.picture;
    oct_draw_around(draw, area, r, RGB_AREA, 255);
    if (large)
        SDL_RenderCopy(draw->renderer, draw->bscan.texture, NULL, &(SDL_Rect){r.x, r.y, r.w, r.h});
    else
        copy_seen(draw);
    return OCT_OK;
}

void oct_draw_stretch(struct oct_draw *draw, const struct oct_view_model *model)
{
    char text[64];
    oct_view_model_stretch_text(model, draw->layout.place, text, sizeof(text));
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
        oct_draw_box(draw, x, y, text_px, 1,
                     colours[255 * (bottom - 1 - y) / (bottom - top)] & 0xffffffu);
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
        oct_draw_box(draw, x + text_px, y, text_px / 3, 1, RGB_DIM);
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

/* ---- what lies over a picture that is not live ---- */

#define SHADE 150      /* of 255, over a picture that is old */
#define STRIPES 112    /* of 255, the light of the hatching over it */
#define N_STRIPES 40   /* at most: they are what a large window takes long for */
#define PLATE 216      /* of 255, behind words */
#define PART_COVER 5   /* letters are a fifth of the panel's height where they cover it, */
#define PART_FRAME 9   /* and a ninth where they stand in its corner */
#define SHARE_COVER 80 /* % of the panel's width at most, */
#define SHARE_FRAME 40

static uint32_t colour_of(const struct oct_view_veil *veil)
{
    return veil->plays ? RGB_PLAYBACK : oct_draw_tone(veil->tone);
}

/* Sets the height of the huge letters so that the words have room, once a change of the panel:
 * other letters are forgotten with them. Returns their width; 0: there is no room. */
static int fit_words(struct oct_draw *draw, struct oct_view_rect r, const char *words, int px,
                     int most_px)
{
    const int large = draw->layout.large_px;
    const int w_large = oct_draw_text_width(draw, OCT_TEXT_LARGE, words);
    if (w_large == 0)
        return 0;
    if ((double)px * w_large > (double)most_px * large)
        px = (int)((double)most_px * large / w_large);
    oct_text_set_huge(draw->text, px > large ? px : large);
    int w = oct_draw_text_width(draw, OCT_TEXT_HUGE, words);
    return w <= r.w ? w : 0;
}

/* Words and what stands below them, on a plate that keeps them readable on any picture; centred, or
 * in the lower right corner, where neither scale bars nor other words are. */
static void draw_words(struct oct_draw *draw, const struct oct_view_veil *veil)
{
    const struct oct_view_rect r = draw->layout.bscan;
    const int margin = draw->layout.margin, edge = draw->veil_px;
    const int part = veil->covers ? PART_COVER : PART_FRAME;
    int w = fit_words(draw, r, veil->words, r.h / part,
                      r.w * (veil->covers ? SHARE_COVER : SHARE_FRAME) / 100);
    int w_more = oct_draw_text_width(draw, OCT_TEXT_LARGE, veil->more);
    int h = oct_draw_line_height(draw, OCT_TEXT_HUGE);
    int h_more = w_more > 0 ? oct_draw_line_height(draw, OCT_TEXT_LARGE) : 0;
    if (w == 0 || h + h_more > r.h)
        return;
    w_more = w_more <= r.w - 2 * edge ? w_more : 0;
    int width = (w > w_more ? w : w_more) + 2 * margin, height = h + h_more;
    int x = r.x + (r.w - width) / 2, y = r.y + (r.h - height) / 2;
    if (!veil->covers) {
        x = r.x + r.w - width - edge;
        y = r.y + r.h - height - edge;
    }
    oct_draw_fill(draw, (struct oct_view_rect){x, y, width, height}, RGB_GROUND, PLATE);
    oct_draw_text(draw, OCT_TEXT_HUGE, x + (width - w) / 2, y, veil->words, colour_of(veil));
    if (w_more > 0)
        oct_draw_text(draw, OCT_TEXT_LARGE, x + (width - w_more) / 2, y + h, veil->more, RGB_PLAIN);
}

/* Opaque: blending so many pixels takes a large window longer than drawing the picture. */
static void hatch(struct oct_draw *draw, struct oct_view_rect r, const struct oct_view_veil *veil)
{
    const int text = draw->layout.text_px, sparse = (r.w + r.h) / N_STRIPES;
    const int apart = sparse > 3 * text ? sparse : 3 * text;
    uint32_t rgb = 0;
    for (int shift = 0; shift < 24; shift += 8) {
        uint32_t ink = colour_of(veil) >> shift & 255, ground = RGB_GROUND >> shift & 255;
        rgb |= (ink * STRIPES + ground * (255 - STRIPES)) / 255 << shift;
    }
    oct_draw_hatch(draw, r, text / 3 + 1, apart, rgb, 255);
}

void oct_draw_veil(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_rect r = draw->layout.bscan;
    const int edge = draw->layout.text_px * 2 / 3, inner = r.h - 2 * edge;
    const struct oct_view_rect sides[4] = {
        {r.x, r.y, r.w, edge},
        {r.x, r.y + r.h - edge, r.w, edge},
        {r.x, r.y + edge, edge, inner},
        {r.x + r.w - edge, r.y + edge, edge, inner},
    };
    struct oct_view_veil veil;
    draw->veil_px = 0;
    if (!oct_view_show_veil(model, &veil))
        return;
    if (veil.covers) { /* its pixels are dimmed already */
        hatch(draw, draw->layout.bscan, &veil);
    } else if (draw->layout.bscan.h > 8 * draw->layout.text_px) {
        draw->veil_px = edge;
        for (size_t i = 0; i < 4; i++) {
            oct_draw_fill(draw, sides[i], RGB_GROUND, PLATE);
            oct_draw_hatch(draw, sides[i], edge, 2 * edge, colour_of(&veil), 255);
        }
        draw_words(draw, &veil);
    }
}

void oct_draw_veil_panel(struct oct_draw *draw, const struct oct_view_model *model,
                         struct oct_view_rect r)
{
    struct oct_view_veil veil;
    if (!oct_view_show_veil(model, &veil) || !veil.covers)
        return;
    oct_draw_fill(draw, r, RGB_GROUND, SHADE);
    hatch(draw, r, &veil);
}

void oct_draw_veil_words(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct oct_view_veil veil;
    if (oct_view_show_veil(model, &veil) && veil.covers)
        draw_words(draw, &veil);
}

/* ---- calipers, marked point, A-line of the profile, scale bars ---- */

struct spot {
    double x, y;
};

static struct spot spot_of(const struct oct_draw *draw, const struct oct_view_model *model,
                           struct oct_view_point p)
{
    const struct oct_picture_header *h = &model->shown.header;
    return (struct spot){draw->layout.place.x + p.line / h->n_lines * draw->layout.place.w,
                         draw->layout.place.y + p.depth / h->depth * draw->layout.place.h};
}

/* Draws a label to the right of a place, within the panel, which may be wider than the picture. */
static void label_beside(struct oct_draw *draw, struct spot at, const char *text, uint32_t rgb)
{
    struct oct_view_rect r = draw->layout.bscan;
    int margin = draw->layout.margin, w = oct_draw_text_width(draw, OCT_TEXT_NORMAL, text);
    int x = (int)at.x + draw->layout.text_px, y = (int)at.y;
    int last_y = r.y + r.h - oct_draw_line_height(draw, OCT_TEXT_NORMAL);
    x = x + w + margin > r.x + r.w ? r.x + r.w - w - margin : x;
    x = x < r.x + margin ? r.x + margin : x;
    y = y > last_y ? last_y : y < r.y ? r.y : y;
    oct_draw_clip(draw, &r);
    oct_draw_label(draw, x, y, text, rgb);
    oct_draw_clip(draw, &draw->layout.picture);
}

/* "123.4 um (across 100.0, deep 72.3); ILM to RPE 285.1 um" */
static void caliper_text(const struct oct_view_model *model, const struct oct_view_caliper *caliper,
                         char *text, size_t n_bytes)
{
    struct oct_view_point a = caliper->end[0], b = caliper->end[1];
    oct_view_distance_text(a, b, oct_view_model_scale(model), text, n_bytes);
    oct_view_model_thickness_text(model, a.line, b.line, text + strlen(text),
                                  n_bytes - strlen(text));
}

/* number: what stands beside it; 0: its length. */
static void draw_caliper(struct oct_draw *draw, const struct oct_view_model *model,
                         const struct oct_view_caliper *caliper, unsigned number)
{
    struct spot a = spot_of(draw, model, caliper->end[0]);
    struct spot b = spot_of(draw, model, caliper->end[1]);
    double length = hypot(b.x - a.x, b.y - a.y), tick = draw->layout.text_px / 2.0;
    char text[128];
    oct_draw_mark_line(draw, a.x, a.y, b.x, b.y, RGB_MEASURE);
    if (length > 0) {
        double nx = -(b.y - a.y) / length * tick, ny = (b.x - a.x) / length * tick;
        oct_draw_mark_line(draw, a.x - nx, a.y - ny, a.x + nx, a.y + ny, RGB_MEASURE);
        oct_draw_mark_line(draw, b.x - nx, b.y - ny, b.x + nx, b.y + ny, RGB_MEASURE);
    }
    if (number > 0)
        snprintf(text, sizeof(text), "%u", number);
    else
        caliper_text(model, caliper, text, sizeof(text));
    label_beside(draw, b, text, RGB_MEASURE);
}

/* Draws the lengths of several calipers in the upper right corner of the panel, below the lines in
 * its left corner, which may be long; the held one in the colour of words. */
static void draw_table(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_caliper_set *set = &model->calipers.shown;
    struct oct_view_rect r = draw->layout.bscan;
    int line = oct_draw_line_height(draw, OCT_TEXT_NORMAL), margin = draw->layout.margin;
    int y = r.y + 2 * margin + draw->n_corner_lines * line;
    char text[160];
    oct_draw_clip(draw, &r);
    for (unsigned i = 0; i < OCT_VIEW_MOST_CALIPERS; i++) {
        if (!set->caliper[i].is_set)
            continue;
        int begin = snprintf(text, sizeof(text), "%u  ", i + 1);
        caliper_text(model, &set->caliper[i], text + begin, sizeof(text) - (size_t)begin);
        int w = oct_draw_text_fit(draw, OCT_TEXT_NORMAL, text, sizeof(text), r.w - 4 * margin,
                                  OCT_DRAW_CUT_END);
        oct_draw_label(draw, r.x + r.w - 2 * margin - w, y, text,
                       model->measuring && i == set->held ? RGB_PLAIN : RGB_MEASURE);
        y += line;
    }
    oct_draw_clip(draw, &draw->layout.picture);
}

static void draw_mark(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct spot s = spot_of(draw, model, model->mark);
    double value = oct_view_model_mark_value(model);
    double d = draw->layout.text_px / 2.0, axial_um = oct_view_model_scale(model).axial_um;
    char text[96], depth[40];
    oct_draw_mark_line(draw, s.x - d, s.y, s.x + d, s.y, RGB_MARK);
    oct_draw_mark_line(draw, s.x, s.y - d, s.x, s.y + d, RGB_MARK);
    if (isfinite(axial_um))
        snprintf(depth, sizeof(depth), "depth %.0f \u00b5m", model->mark.depth * axial_um);
    else
        snprintf(depth, sizeof(depth), "depth %.0f px", model->mark.depth);
    if (model->contrast.log)
        snprintf(text, sizeof(text), "%.1f dB  %s", value, depth);
    else
        snprintf(text, sizeof(text), "%.4g %s  %s", value, oct_view_model_unit(model), depth);
    s.y -= oct_draw_line_height(draw, OCT_TEXT_NORMAL); /* the calipers' label stands below */
    label_beside(draw, s, text, RGB_MARK);
}

/* Draws a frame around the point that the arrows move. */
static void draw_held(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_point *held = oct_view_model_held_point(model);
    if (!held)
        return;
    struct spot s = spot_of(draw, model, *held);
    int d = draw->layout.text_px * 3 / 4, thick = draw->layout.text_px / 10 + 1;
    for (int i = -1; i <= thick; i++) /* a dark one on both sides */
        oct_draw_frame_of(draw,
                          (struct oct_view_rect){(int)floor(s.x) - d + i, (int)floor(s.y) - d + i,
                                                 2 * (d - i) + 1, 2 * (d - i) + 1},
                          i < 0 || i == thick ? RGB_GROUND : RGB_PLAIN);
}

void oct_draw_marks(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_picture_header *h = &model->shown.header;
    const unsigned n = oct_view_calipers_count(&model->calipers);
    if (!model->has_picture)
        return;
    oct_draw_clip(draw, &draw->layout.picture);
    if (draw->layout.profile.w > 0) {
        double x =
            draw->layout.place.x + (model->cursor_line + 0.5) / h->n_lines * draw->layout.place.w;
        oct_draw_line(draw, x, draw->layout.place.y, x, draw->layout.place.y + draw->layout.place.h,
                      RGB_GOOD, 120);
    }
    if (model->has_mark)
        draw_mark(draw, model);
    for (unsigned i = 0; i < OCT_VIEW_MOST_CALIPERS; i++)
        if (model->calipers.shown.caliper[i].is_set)
            draw_caliper(draw, model, &model->calipers.shown.caliper[i], n > 1 ? i + 1 : 0);
    if (n > 1)
        draw_table(draw, model);
    if (model->measuring)
        draw_held(draw, model);
    oct_draw_clip(draw, NULL);
}

/* ---- scale bars ---- */

static double bar_px(double um_all, double px_all, int room_px, char *text, size_t n_bytes)
{
    double um = oct_view_scale_bar_um(um_all / px_all * room_px);
    if (!(um > 0) || !isfinite(um))
        return 0;
    oct_view_length_text(um, text, n_bytes);
    return um / um_all * px_all;
}

void oct_draw_scale_bars(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_picture_header *h = &model->shown.header;
    const struct oct_view_scale scale = oct_view_model_scale(model);
    struct oct_view_rect r = draw->layout.picture;
    int margin = draw->layout.margin, line = oct_draw_line_height(draw, OCT_TEXT_NORMAL);
    int x = r.x + 2 * margin, y = r.y + r.h - 2 * margin;
    char text[32];
    if (!model->has_picture || r.w < 8 * line || r.h < 8 * line)
        return;
    double across =
        bar_px(h->n_lines * scale.lateral_um, draw->layout.place.w, r.w / 4, text, sizeof(text));
    if (across > 0) {
        oct_draw_mark_line(draw, x, y, x + across, y, RGB_PLAIN);
        oct_draw_label(draw, x + (int)across + 2 * margin, y - line * 3 / 4, text, RGB_PLAIN);
    }
    double deep =
        bar_px(h->depth * scale.axial_um, draw->layout.place.h, r.h / 4, text, sizeof(text));
    if (deep > 0) {
        oct_draw_mark_line(draw, x, y - deep, x, y, RGB_PLAIN);
        oct_draw_label(draw, x + margin, y - (int)deep, text, RGB_PLAIN);
    }
}
