#include "numeric/order.h"
#include "plot/canvas.h"
#include "plot/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_WIDTH 1200.0 /* of the picture on the page */
#define MOST_HEIGHT 900.0
#define LEAST_SIDE 400.0 /* small pictures are enlarged */
#define MARGIN 24
#define LETTERS 15.0
#define INK 0x222222
#define MAP_ALPHA 0.55
#define N_SAMPLES 65536u /* for the limits of the display */

struct page {
    struct oct_canvas canvas;
    const struct oct_plot_picture *plot;
    double lo, hi;         /* of the pixels */
    double map_lo, map_hi; /* of the map */
    double scale, scale_y; /* px of the page a pixel */
    double x, y, width, height;
    bool has_bar; /* of colours */
};

/* ---- limits ---- */

static enum oct_err find_limits(struct page *p, struct oct_error *err)
{
    const size_t n = (size_t)p->plot->height * p->plot->width, step = n / N_SAMPLES + 1;
    size_t n_kept = 0;
    p->lo = p->plot->lo;
    p->hi = p->plot->hi;
    if (p->lo != 0 || p->hi != 0)
        return OCT_OK;
    float *kept = malloc((n / step + 1) * sizeof(*kept));
    if (!kept)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a plot");
    for (size_t i = 0; i < n; i += step)
        if (isfinite(p->plot->pixels[i]))
            kept[n_kept++] = p->plot->pixels[i];
    oct_floats_sort(kept, n_kept);
    if (n_kept > 0) {
        p->lo = kept[n_kept / 200];
        p->hi = kept[n_kept - 1 - n_kept / 200];
    }
    if (!(p->hi > p->lo))
        p->hi = p->lo + 1;
    free(kept);
    return OCT_OK;
}

static void find_map_limits(struct page *p)
{
    const struct oct_plot_map *m = p->plot->map;
    p->map_lo = INFINITY;
    p->map_hi = -INFINITY;
    for (size_t i = 0; m && i < (size_t)m->n_y * m->n_x; i++)
        if (isfinite(m->values[i])) {
            p->map_lo = fmin(p->map_lo, m->values[i]);
            p->map_hi = fmax(p->map_hi, m->values[i]);
        }
    if (!(p->map_lo <= p->map_hi))
        p->map_lo = 0, p->map_hi = 1;
    if (!(p->map_hi > p->map_lo)) {
        const double middle = p->map_lo, half = middle != 0 ? 0.05 * fabs(middle) : 0.5;
        p->map_lo = middle - half;
        p->map_hi = middle + half;
    }
}

/* ---- the picture ---- */

static bool has_compass(const struct oct_plot_picture *plot)
{
    return plot->compass[0] || plot->compass[1] || plot->compass[2] || plot->compass[3];
}

/* As large as the page allows; squares are enlarged by whole numbers alone, so that they stay
 * squares. */
static void set_size(struct page *p)
{
    const double high = p->plot->um_dx > 0 && p->plot->um_dy > 0 ? p->plot->um_dy / p->plot->um_dx
                                                                 : 1; /* of a pixel, in widths */
    const double w = p->plot->width, h = p->plot->height * high;
    const double most = fmin(MOST_WIDTH / w, MOST_HEIGHT / h);
    const double least = p->plot->least_px > 0 ? p->plot->least_px : LEAST_SIDE;
    const bool is_square = fabs(high - 1) < 1e-6;
    double wanted = least / fmin(w, h);
    wanted = is_square ? ceil(wanted) : wanted;
    p->scale = fmin(1, most);
    if (most > 1 && wanted > 1)
        p->scale = fmin(is_square ? floor(most) : most, wanted);
    p->scale_y = p->scale * high;
    p->width = fmax(1, floor(w * p->scale));
    p->height = fmax(1, floor(h * p->scale));
    p->x = MARGIN;
    p->y = has_compass(p->plot) ? 68 : p->plot->title ? 56 : MARGIN;
    p->has_bar = p->plot->map || p->plot->in_colour;
}

static enum oct_err draw_pixels(struct page *p, struct oct_error *err)
{
    const struct oct_canvas_values values = {.values = p->plot->pixels,
                                             .n_y = p->plot->height,
                                             .n_x = p->plot->width,
                                             .lo = p->lo,
                                             .hi = p->hi,
                                             .in_colour = p->plot->in_colour,
                                             .x = p->x,
                                             .y = p->y,
                                             .width = p->width,
                                             .height = p->height};
    return oct_canvas_draw_values(&p->canvas, &values, err);
}

static void draw_map(struct page *p)
{
    const struct oct_plot_map *m = p->plot->map;
    cairo_t *c = p->canvas.cairo;
    cairo_save(c);
    cairo_rectangle(c, p->x, p->y, p->width, p->height);
    cairo_clip(c);
    cairo_set_antialias(c, CAIRO_ANTIALIAS_NONE);
    for (uint32_t j = 0; j < m->n_y; j++)
        for (uint32_t i = 0; i < m->n_x; i++) {
            const double value = m->values[(size_t)j * m->n_x + i];
            if (!isfinite(value))
                continue;
            const unsigned rgb =
                oct_canvas_map_colour((value - p->map_lo) / (p->map_hi - p->map_lo));
            cairo_set_source_rgba(c, (rgb >> 16 & 255) / 255.0, (rgb >> 8 & 255) / 255.0,
                                  (rgb & 255) / 255.0, MAP_ALPHA);
            cairo_rectangle(c, p->x + p->scale * (m->x + i * m->step_x),
                            p->y + p->scale_y * (m->y + j * m->step_y), p->scale * m->step_x,
                            p->scale_y * m->step_y);
            cairo_fill(c);
        }
    cairo_restore(c);
}

/* ---- beside it ---- */

static void draw_colour_bar(struct page *p)
{
    const bool of_map = p->plot->map != NULL;
    oct_canvas_colour_bar(&p->canvas, p->x + p->width + 22, p->y, p->height,
                          of_map ? p->map_lo : p->lo, of_map ? p->map_hi : p->hi, false,
                          of_map ? p->plot->map->label : p->plot->value_label);
}

/* Paths have a pale rim, so that they show on all colours. */
static void draw_paths(struct page *p)
{
    static const double width_px[2] = {3.5, 1.3};
    cairo_t *c = p->canvas.cairo;
    cairo_save(c);
    cairo_rectangle(c, p->x, p->y, p->width, p->height);
    cairo_clip(c);
    cairo_set_line_join(c, CAIRO_LINE_JOIN_ROUND);
    for (unsigned k = 0; k < 2; k++)
        for (size_t i = 0; i < p->plot->n_paths; i++) {
            const struct oct_plot_path *path = &p->plot->paths[i];
            for (size_t at = 0; at < path->n; at++)
                cairo_line_to(c, p->x + p->scale * (path->x[at] + 0.5),
                              p->y + p->scale_y * (path->y[at] + 0.5));
            oct_canvas_colour(&p->canvas, path->rgb);
            if (k == 0)
                cairo_set_source_rgba(c, 1, 1, 1, 0.7);
            cairo_set_line_width(c, width_px[k]);
            cairo_stroke(c);
        }
    cairo_restore(c);
}

/* Where up, right, down and left are, at the right end of the title's row. */
static void draw_compass(struct page *p)
{
    static const int dx[4] = {0, 1, 0, -1}, dy[4] = {-1, 0, 1, 0};
    const double x = p->x + p->width - 30, y = p->y - 31;
    struct oct_canvas *c = &p->canvas;
    oct_canvas_colour(c, INK);
    cairo_set_line_width(c->cairo, 1);
    for (unsigned i = 0; i < 4; i++) {
        if (!p->plot->compass[i])
            continue;
        cairo_move_to(c->cairo, x, y);
        cairo_line_to(c->cairo, x + 10 * dx[i], y + 10 * dy[i]);
        cairo_stroke(c->cairo);
        oct_canvas_text(c, x + 20 * dx[i], y + 19 * dy[i], LETTERS, true, OCT_CANVAS_MIDDLE, false,
                        p->plot->compass[i]);
    }
}

static void draw_texts(struct page *p)
{
    struct oct_canvas *c = &p->canvas;
    const struct oct_plot_picture *plot = p->plot;
    oct_canvas_colour(c, INK);
    for (unsigned i = 0; i < plot->n_texts; i++) {
        const struct oct_plot_text *t = &plot->texts[i];
        const double half = oct_canvas_text_width(c, LETTERS, true, t->text) / 2 + 4;
        const double x = fmax(half, fmin(p->width - half, p->scale * t->x)); /* within it */
        oct_canvas_text(c, p->x + x, p->y + p->scale_y * t->y, LETTERS, true, OCT_CANVAS_MIDDLE,
                        true, t->text);
    }
    if (plot->title)
        oct_canvas_text(c, p->x, 30, 17, true, OCT_CANVAS_LEFT, false, plot->title);
    if (plot->footer)
        oct_canvas_text(c, p->x, p->y + p->height + 26, LETTERS, false, OCT_CANVAS_LEFT, false,
                        plot->footer);
}

static enum oct_err draw(struct page *p, struct oct_error *err)
{
    enum oct_err e = draw_pixels(p, err);
    if (e)
        return e;
    if (p->plot->map)
        draw_map(p);
    if (p->has_bar)
        draw_colour_bar(p);
    draw_paths(p);
    if (p->plot->um_dx > 0)
        oct_canvas_scale_bar(&p->canvas, p->x, p->y, p->width, p->height,
                             p->plot->um_dx / p->scale);
    draw_texts(p);
    if (has_compass(p->plot))
        draw_compass(p);
    return OCT_OK;
}

/* Wide enough for title and footer too. */
static int page_width(const struct page *p)
{
    struct oct_canvas probe;
    double width = p->width + (p->has_bar ? 150 : 0);
    if (oct_canvas_init(&probe, 1, 1, NULL) != OCT_OK)
        return (int)width + 2 * MARGIN;
    if (p->plot->title)
        width = fmax(width, oct_canvas_text_width(&probe, 17, true, p->plot->title) +
                                (has_compass(p->plot) ? 80 : 0));
    if (p->plot->footer)
        width = fmax(width, oct_canvas_text_width(&probe, LETTERS, false, p->plot->footer));
    oct_canvas_finish(&probe);
    return (int)ceil(width) + 2 * MARGIN;
}

enum oct_err oct_plot_write_picture(const char *path, bool force,
                                    const struct oct_plot_picture *plot, struct oct_error *err)
{
    struct page p = {.plot = plot};
    enum oct_err e = find_limits(&p, err);
    if (e)
        return e;
    find_map_limits(&p);
    set_size(&p);
    const int height = (int)(p.y + p.height) + (plot->footer ? 48 : MARGIN);
    e = oct_canvas_init(&p.canvas, page_width(&p), height, err);
    if (e)
        return e;
    e = draw(&p, err);
    if (e == OCT_OK)
        e = oct_canvas_write(&p.canvas, path, force, err);
    oct_canvas_finish(&p.canvas);
    return e;
}
