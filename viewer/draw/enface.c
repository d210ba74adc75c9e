/* The en face picture, row by row as the scan goes on. */
#include "viewer/draw/canvas.h"

#include <math.h>

/* Takes octd's black and white, which change a little with every image of a growing volume. True:
 * they changed, and all rows are to be drawn. */
static bool take_limits(struct oct_draw *draw, const struct oct_view_enface *e)
{
    double step = (e->hi - e->lo) / 100;

    /* A change that nobody sees is not worth drawing all rows for. */
    if (draw->enface.serial != 0 && fabs(e->lo - draw->enface_lo) < step &&
        fabs(e->hi - draw->enface_hi) < step)
        return false;
    draw->enface_lo = e->lo;
    draw->enface_hi = e->hi;
    return true;
}

static void colour_row(const struct oct_draw *draw, const float *value, uint32_t n,
                       const uint32_t colours[256], uint32_t *argb)
{
    float lo = (float)draw->enface_lo, gain = (float)(255 / (draw->enface_hi - draw->enface_lo));

    for (uint32_t c = 0; c < n; c++) {
        float level = (value[c] - lo) * gain;
        /* A row that never came is NaN; it gets the background's colour. */
        argb[c] = isnan(value[c]) ? 0xff000000u | RGB_AREA
                                  : colours[level > 0 ? level < 255 ? (unsigned)level : 255u : 0u];
    }
}

static enum oct_err update(struct oct_draw *draw, const struct oct_view_model *model,
                           struct oct_error *err)
{
    const struct oct_view_enface *e = oct_view_model_enface(model);
    struct oct_draw_sheet *sheet = &draw->enface;
    const struct oct_view_contrast *c = &model->contrast;
    uint32_t colours[256], argb[OCT_VIEW_ENFACE_MOST];
    enum oct_err code = oct_draw_sheet_size(draw, sheet, e->n_columns, e->n_rows, err);

    if (code)
        return code;
    bool all = sheet->serial == 0 || draw->enface_of != e || sheet->contrast.gamma != c->gamma ||
               sheet->contrast.palette != c->palette;
    all = take_limits(draw, e) || all;
    if (!all && sheet->serial == e->serial)
        return OCT_OK;
    oct_view_contrast_colours(c, colours);
    for (uint32_t row = 0; row < e->n_rows; row++) {
        if (!all && e->row_serial[row] <= sheet->serial)
            continue;
        colour_row(draw, oct_view_enface_row(e, row), e->n_columns, colours, argb);
        SDL_UpdateTexture(sheet->texture, &(SDL_Rect){0, (int)row, (int)e->n_columns, 1}, argb,
                          (int)(e->n_columns * sizeof(*argb)));
    }
    sheet->serial = e->serial;
    draw->enface_of = e;
    sheet->contrast = *c;
    return OCT_OK;
}

/* Draws a line across where the scan is, and an arrow at each side. */
static void draw_position(struct oct_draw *draw, const struct oct_view_model *model,
                          struct oct_view_rect r)
{
    double y = r.y + (model->enface.newest_row + 0.5) * r.h / model->enface.n_rows;
    int size = draw->layout.text_px / 3;

    oct_draw_line(draw, r.x, y, r.x + r.w - 1, y, RGB_GOOD, 160);
    oct_draw_fill(draw, (struct oct_view_rect){r.x - size, (int)y - size / 2, size, size}, RGB_GOOD,
                  255);
    oct_draw_fill(draw, (struct oct_view_rect){r.x + r.w, (int)y - size / 2, size, size}, RGB_GOOD,
                  255);
}

static void draw_bar(struct oct_draw *draw, const struct oct_view_model *model,
                     struct oct_view_rect r)
{
    double field_um =
        oct_view_model_scale(model).lateral_um * oct_view_model_enface(model)->n_lines;
    double um = oct_view_scale_bar_um(field_um / 4);
    int margin = draw->layout.margin, line = oct_draw_line_height(draw, OCT_TEXT_NORMAL);
    int x = r.x + 2 * margin, y = r.y + r.h - 2 * margin;
    char text[32];

    if (!(um > 0) || r.w < 8 * line)
        return;
    oct_view_length_text(um, text, sizeof(text));
    oct_draw_line(draw, x, y, x + um / field_um * r.w, y, RGB_PLAIN, 255);
    oct_draw_label(draw, x + margin, y - line - margin / 2, text, RGB_PLAIN);
}

enum oct_err oct_draw_enface(struct oct_draw *draw, const struct oct_view_model *model,
                             struct oct_error *err)
{
    struct oct_view_rect area = draw->layout.enface;
    const struct oct_view_enface *e = oct_view_model_enface(model);
    struct oct_view_phrase phrase;
    enum oct_err code;

    draw->enface_rect = (struct oct_view_rect){area.x, area.y, 0, 0};
    if (area.w == 0)
        return OCT_OK;
    oct_draw_fill(draw, area, RGB_AREA, 255);
    oct_view_enface_text(model, &phrase);
    if (e->n_rows == 0) {
        oct_draw_text(draw, OCT_TEXT_NORMAL, area.x + draw->layout.margin, area.y, phrase.text,
                      oct_draw_tone(phrase.tone));
        return OCT_OK;
    }
    if ((code = update(draw, model, err)))
        return code;
    int size = draw->layout.text_px / 3;
    struct oct_view_rect inner = {area.x + size, area.y, area.w - 2 * size, area.h};
    double proportion = oct_view_model_enface_proportion(model);
    /* What is round in the eye is round here, however the B-scan lies. */
    struct oct_view_rect r =
        isfinite(proportion) || model->settings.fit == OCT_FIT_FILL
            ? oct_view_layout_fit(inner, proportion, !isfinite(proportion))
            : oct_view_layout_fit(inner, (double)e->n_lines / e->n_bscans, false);
    SDL_RenderCopy(draw->renderer, draw->enface.texture, NULL, &(SDL_Rect){r.x, r.y, r.w, r.h});
    oct_draw_veil_panel(draw, model, r);
    draw->enface_rect = r;
    if (model->playback.active)
        oct_draw_crosshair(draw, model, r);
    else
        draw_position(draw, model, r);
    draw_bar(draw, model, r);
    oct_draw_label(draw, r.x + draw->layout.margin, r.y, phrase.text, oct_draw_tone(phrase.tone));
    for (size_t i = 0, line = 1; i < oct_view_n_overlays; i++)
        if (oct_view_overlays[i]->draw_enface)
            line += oct_view_overlays[i]->draw_enface(draw, model, r, (int)line);
    return OCT_OK;
}
