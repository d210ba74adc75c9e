/* Playback: how thick the retina is, from above, with the ETDRS grid where a fovea is in view. */
#include "viewer/draw/canvas.h"

#include <math.h>
#include <stdio.h>

#define PI 3.14159265358979323846
#define N_ARC 96u /* corners of a circle */
#define RGB_GRID 0x101010u

/* The grid's middle in the window, and its scales: px a millimetre. */
struct grid {
    double x, y, per_x, per_y;
    bool nasal_is_right;
};

static struct grid grid_of(const struct oct_view_playback *p, struct oct_view_rect r)
{
    const struct oct_view_enface *e = &p->thickness.map[OCT_MAP_RETINA];
    return (struct grid){
        .x = r.x + (p->thickness.fovea_column + 0.5) * r.w / e->n_columns,
        .y = r.y + (p->thickness.fovea_row + 0.5) * r.h / e->n_rows,
        .per_x = 1000 * r.w / (p->file.lateral_um * p->file.n_lines),
        .per_y = 1000 * r.h / (p->file.slow_um * p->file.n_bscans),
        .nasal_is_right = strcmp(p->file.eye, "OS") != 0,
    };
}

static void draw_lines(struct oct_draw *draw, const struct grid *g)
{
    const double *radii = oct_etdrs_radii_mm;
    for (unsigned k = 0; k < OCT_ETDRS_N_CIRCLES; k++)
        for (unsigned i = 0; i < N_ARC; i++) {
            const double a = 2 * PI * i / N_ARC, b = 2 * PI * (i + 1) / N_ARC;
            const double x = radii[k] * g->per_x, y = radii[k] * g->per_y;
            oct_draw_line(draw, g->x + x * cos(a), g->y + y * sin(a), g->x + x * cos(b),
                          g->y + y * sin(b), RGB_GRID, 220);
        }
    for (unsigned k = 0; k < 4; k++) {
        const double a = PI / 4 + k * PI / 2, x = cos(a) * g->per_x, y = sin(a) * g->per_y;
        oct_draw_line(draw, g->x + radii[0] * x, g->y + radii[0] * y, g->x + radii[2] * x,
                      g->y + radii[2] * y, RGB_GRID, 220);
    }
}

/* The mean of each sector in its middle, in brackets where less than half of it is known; what
 * would reach beyond the map or over its neighbour is left out. */
static void write_means(struct oct_draw *draw, const struct grid *g, const struct oct_etdrs *etdrs,
                        struct oct_view_rect r)
{
    const double *radii = oct_etdrs_radii_mm;
    const double middles[OCT_ETDRS_N_CIRCLES] = {0, (radii[0] + radii[1]) / 2,
                                                 (radii[1] + radii[2]) / 2};
    /* Superior, nasal, inferior, temporal: towards nasal, and up. */
    static const int ways[4][2] = {{0, 1}, {1, 0}, {0, -1}, {-1, 0}};
    const int h = oct_draw_line_height(draw, OCT_TEXT_NORMAL);
    if (2 * radii[0] * fmin(g->per_x, g->per_y) < 1.2 * h)
        return;
    for (unsigned i = 0; i < OCT_ETDRS_N_SECTORS; i++) {
        const unsigned ring = i == OCT_ETDRS_CENTRE ? 0 : i < OCT_ETDRS_OUTER_SUPERIOR ? 1 : 2;
        const unsigned way = i == OCT_ETDRS_CENTRE ? 0 : (i - 1) % 4;
        const double side = g->nasal_is_right ? ways[way][0] : -ways[way][0];
        char text[24];
        if (!isfinite(etdrs->mean_um[i]))
            continue;
        snprintf(text, sizeof(text), etdrs->covered[i] >= 0.5 ? "%.0f" : "(%.0f)",
                 etdrs->mean_um[i]);
        const int w = oct_draw_text_width(draw, OCT_TEXT_NORMAL, text);
        const int x = (int)(g->x + side * middles[ring] * g->per_x) - w / 2;
        const int y = (int)(g->y - ways[way][1] * middles[ring] * g->per_y) - h / 2;
        if (x >= r.x && y >= r.y && x + w <= r.x + r.w && y + h <= r.y + r.h)
            oct_draw_label(draw, x, y, text, RGB_PLAIN);
    }
}

/* The map's colours, upward at its right edge, with the values of both ends. */
static void draw_scale(struct oct_draw *draw, const struct oct_view_enface *e,
                       const struct oct_view_contrast *c, struct oct_view_rect r)
{
    const int margin = draw->layout.margin, h = oct_draw_line_height(draw, OCT_TEXT_NORMAL);
    const int w = draw->layout.text_px / 2, length = r.h / 3;
    uint32_t colours[256];
    char text[32];
    if (length < 3 * h || r.w < 8 * h)
        return;
    oct_view_contrast_colours(c, colours);
    const int x = r.x + r.w - margin - w, y = r.y + r.h - margin - length;
    for (int i = 0; i < length; i++)
        oct_draw_box(draw, x, y + i, w, 1, colours[255 - 255 * i / (length - 1)] & 0xffffffu);
    for (int end = 0; end < 2; end++) {
        snprintf(text, sizeof(text), end ? "%.0f" : "%.0f %s", end ? e->lo : e->hi, e->unit);
        oct_draw_label(draw, x - margin - oct_draw_text_width(draw, OCT_TEXT_NORMAL, text),
                       end ? y + length - h : y, text, RGB_PLAIN);
    }
}

enum oct_err oct_draw_thickness(struct oct_draw *draw, const struct oct_view_model *model,
                                struct oct_error *err)
{
    const struct oct_view_rect area = draw->layout.angiogram;
    const struct oct_view_playback *p = &model->playback;
    const enum oct_view_map map = oct_view_playback_map(model);
    const struct oct_view_enface *e = oct_view_playback_shown_map(model);
    const bool is_change = e != &p->thickness.map[map];
    struct oct_view_contrast colours = model->contrast;
    struct oct_view_phrase phrase;
    draw->layout.thickness_at = (struct oct_view_rect){area.x, area.y, 0, 0};
    if (area.w == 0 || !oct_view_playback_has_map(model) || e->n_rows == 0)
        return OCT_OK;
    oct_draw_fill(draw, area, RGB_AREA, 255);
    oct_view_thickness_text(model, &phrase);
    colours.palette = is_change ? OCT_PALETTE_CHANGE : OCT_PALETTE_UNIFORM;
    colours.gamma = 1;
    const enum oct_err code = oct_draw_above_update(draw, &draw->angiogram, e, &colours, err);
    if (code)
        return code;
    const struct oct_view_rect r = oct_draw_above_fit(draw, model, area, e, 1);
    SDL_RenderCopy(draw->renderer, draw->angiogram.sheet.texture, NULL,
                   &(SDL_Rect){r.x, r.y, r.w, r.h});
    draw->layout.thickness_at = r;
    oct_draw_above_cross(draw, model, r);
    oct_draw_clip(draw, &r);
    if (p->thickness.has_fovea && !is_change) {
        const struct grid grid = grid_of(p, r);
        draw_lines(draw, &grid);
        write_means(draw, &grid, &p->thickness.etdrs[map], r);
    }
    oct_draw_clip(draw, NULL);
    draw_scale(draw, e, &colours, r);
    oct_draw_fibres(draw, model, r);
    oct_draw_leave_out_clauses(draw, OCT_TEXT_NORMAL, phrase.text, r.w - 2 * draw->layout.margin);
    oct_draw_text_fit(draw, OCT_TEXT_NORMAL, phrase.text, sizeof(phrase.text),
                      r.w - 2 * draw->layout.margin, OCT_DRAW_CUT_END);
    oct_draw_label(draw, r.x + draw->layout.margin, r.y, phrase.text, oct_draw_tone(phrase.tone));
    return OCT_OK;
}
