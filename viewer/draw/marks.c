/* What lies over the B-scan: calipers, marked point, profile's A-line, slab, scale bars. */
#include "viewer/draw/canvas.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct spot {
    double x, y;
};

static struct spot spot_of(const struct oct_draw *draw, const struct oct_view_model *model,
                           struct oct_view_point p)
{
    const struct oct_picture_header *h = &model->shown.header;
    return (struct spot){draw->place.x + p.line / h->n_lines * draw->place.w,
                         draw->place.y + p.depth / h->depth * draw->place.h};
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
    oct_draw_clip(draw, &draw->picture_rect);
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

    oct_draw_line(draw, a.x, a.y, b.x, b.y, RGB_MEASURE, 255);
    if (length > 0) {
        double nx = -(b.y - a.y) / length * tick, ny = (b.x - a.x) / length * tick;
        oct_draw_line(draw, a.x - nx, a.y - ny, a.x + nx, a.y + ny, RGB_MEASURE, 255);
        oct_draw_line(draw, b.x - nx, b.y - ny, b.x + nx, b.y + ny, RGB_MEASURE, 255);
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
    oct_draw_clip(draw, &draw->picture_rect);
}

static void draw_calipers(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_caliper_set *set = &model->calipers.shown;
    unsigned n = oct_view_calipers_count(&model->calipers);

    for (unsigned i = 0; i < OCT_VIEW_MOST_CALIPERS; i++)
        if (set->caliper[i].is_set)
            draw_caliper(draw, model, &set->caliper[i], n > 1 ? i + 1 : 0);
    if (n > 1)
        draw_table(draw, model);
}

static void draw_mark(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct spot s = spot_of(draw, model, model->mark);
    double value = oct_view_model_mark_value(model);
    double d = draw->layout.text_px / 2.0, axial_um = oct_view_model_scale(model).axial_um;
    char text[96], depth[40];

    oct_draw_line(draw, s.x - d, s.y, s.x + d, s.y, RGB_MARK, 255);
    oct_draw_line(draw, s.x, s.y - d, s.x, s.y + d, RGB_MARK, 255);
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
    for (int i = 0; i < thick; i++)
        oct_draw_frame_of(draw,
                          (struct oct_view_rect){(int)floor(s.x) - d + i, (int)floor(s.y) - d + i,
                                                 2 * (d - i) + 1, 2 * (d - i) + 1},
                          RGB_PLAIN);
}

void oct_draw_marks(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_picture_header *h = &model->shown.header;

    if (!model->has_picture)
        return;
    oct_draw_clip(draw, &draw->picture_rect);
    if (draw->layout.profile.w > 0) {
        double x = draw->place.x + (model->cursor_line + 0.5) / h->n_lines * draw->place.w;
        oct_draw_line(draw, x, draw->place.y, x, draw->place.y + draw->place.h, RGB_GOOD, 120);
    }
    if (model->has_mark)
        draw_mark(draw, model);
    draw_calipers(draw, model);
    if (model->measuring)
        draw_held(draw, model);
    oct_draw_clip(draw, NULL);
}

/* ---- scale bars ---- */

/* Draws a dark line under a bright one, to be seen on any picture. */
static void draw_bar(struct oct_draw *draw, double x0, double y0, double x1, double y1)
{
    int n = draw->layout.text_px / 10 + 1;

    oct_draw_line(draw, x0 + n, y0 + n, x1 + n, y1 + n, RGB_GROUND, 255);
    oct_draw_line(draw, x0, y0, x1, y1, RGB_PLAIN, 255);
}

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
    struct oct_view_rect r = draw->picture_rect;
    int margin = draw->layout.margin, line = oct_draw_line_height(draw, OCT_TEXT_NORMAL);
    int x = r.x + 2 * margin, y = r.y + r.h - 2 * margin;
    char text[32];

    if (!model->has_picture || r.w < 8 * line || r.h < 8 * line)
        return;
    double across =
        bar_px(h->n_lines * scale.lateral_um, draw->place.w, r.w / 4, text, sizeof(text));
    if (across > 0) {
        draw_bar(draw, x, y, x + across, y);
        oct_draw_label(draw, x + (int)across + 2 * margin, y - line * 3 / 4, text, RGB_PLAIN);
    }
    double deep = bar_px(h->depth * scale.axial_um, draw->place.h, r.h / 4, text, sizeof(text));
    if (deep > 0) {
        draw_bar(draw, x, y - deep, x, y);
        oct_draw_label(draw, x + margin, y - (int)deep, text, RGB_PLAIN);
    }
}
