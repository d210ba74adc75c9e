/* Rings on a picture, a pixel a pixel. */
#include "plot/canvas.h"

#include <math.h>

#define RING_PX 1.25
#define SMALL_PX 6.0 /* smaller rings have thinner lines and smaller letters */
#define SMALL_RING_PX 0.9
#define SMALL_LETTERS 8.0
#define TAIL_PX 1.0
#define TAIL_ALPHA 0.8
#define LETTERS 10.0
#define HALO_PX 2.5
#define NOTHING 0x101838u /* of pixels that are not valid */
#define TURN 6.283185307179586

static bool is_small(const struct oct_plot_ring *ring)
{
    return fmin(ring->radius_x, ring->radius_y) < SMALL_PX;
}

static void draw_tail(struct oct_canvas *canvas, const struct oct_plot_ring *ring)
{
    for (unsigned i = 0; i < ring->n_tail; i++)
        cairo_line_to(canvas->cairo, ring->tail[2 * i] + 0.5, ring->tail[2 * i + 1] + 0.5);
    cairo_set_line_width(canvas->cairo, TAIL_PX);
    oct_canvas_colour(canvas, ring->rgb, TAIL_ALPHA);
    cairo_stroke(canvas->cairo);
}

static void draw_ring(struct oct_canvas *canvas, const struct oct_plot_ring *ring)
{
    cairo_t *c = canvas->cairo;
    cairo_save(c);
    cairo_translate(c, ring->x + 0.5, ring->y + 0.5);
    cairo_scale(c, ring->radius_x, ring->radius_y);
    cairo_new_sub_path(c);
    cairo_arc(c, 0, 0, 1, 0, TURN);
    cairo_restore(c);
    oct_canvas_dash(canvas, ring->dashed, 3, 3);
    cairo_set_line_width(c, is_small(ring) ? SMALL_RING_PX : RING_PX);
    oct_canvas_colour(canvas, ring->rgb, 1);
    cairo_stroke(c);
    oct_canvas_dash(canvas, false, 0, 0);
}

/* To the upper right of the ring, and within the picture. */
static void draw_text(struct oct_canvas *canvas, const struct oct_plot_ring *ring, double width,
                      double height)
{
    cairo_t *c = canvas->cairo;
    const double letters = is_small(ring) ? SMALL_LETTERS : LETTERS;
    const double advance = oct_canvas_text_width(canvas, letters, 0, ring->text);
    const double dx = 0.75 * ring->radius_x + 3, dy = 0.75 * ring->radius_y;
    double x = ring->x + dx, y = ring->y - dy;
    if (x + advance > width - 1)
        x = ring->x - dx - advance;
    if (y - letters < 0)
        y = ring->y + dy + 0.8 * letters;
    cairo_move_to(c, fmax(1, x), fmin(y, height - 2));
    cairo_text_path(c, ring->text);
    oct_canvas_colour(canvas, 0, 0.75);
    cairo_set_line_width(c, HALO_PX);
    cairo_stroke_preserve(c);
    oct_canvas_colour(canvas, ring->rgb, 1);
    cairo_fill(c);
}

static struct oct_canvas draw_overlay(const struct oct_plot_overlay *o)
{
    struct oct_canvas canvas = oct_canvas();
    const struct oct_view view = {.width = o->width, .height = o->height};
    const struct oct_canvas_values values = {.values = o->pixels,
                                             .n_y = o->height,
                                             .n_x = o->width,
                                             .lo = o->lo,
                                             .hi = o->hi,
                                             .valid = o->valid,
                                             .nothing = NOTHING};
    oct_canvas_values(&canvas, &view, &values);
    for (size_t i = 0; i < o->n_rings; i++)
        draw_tail(&canvas, &o->rings[i]);
    for (size_t i = 0; i < o->n_rings; i++)
        draw_ring(&canvas, &o->rings[i]);
    for (size_t i = 0; i < o->n_rings; i++)
        if (o->rings[i].text[0])
            draw_text(&canvas, &o->rings[i], o->width, o->height);
    return canvas;
}

enum oct_err oct_plot_write_overlay(const char *path, bool force,
                                    const struct oct_plot_overlay *overlay, struct oct_error *err)
{
    struct oct_canvas canvas = draw_overlay(overlay);
    return oct_canvas_write(&canvas, overlay->width, overlay->height, path, force, err);
}

enum oct_err oct_plot_draw_overlay(uint8_t *rgb, const struct oct_plot_overlay *overlay,
                                   struct oct_error *err)
{
    struct oct_canvas canvas = draw_overlay(overlay);
    return oct_canvas_read(&canvas, overlay->width, overlay->height, rgb, err);
}
