#include "plot/canvas.h"
#include "plot/plot.h"

#include <math.h>
#include <string.h>

#define RING_PX 1.25
#define SMALL_PX 6.0 /* smaller rings have thinner lines and smaller letters */
#define SMALL_RING_PX 0.9
#define SMALL_LETTERS 8.0
#define TAIL_PX 1.0
#define TAIL_ALPHA 0.8
#define LETTERS 10.0
#define FONT "DejaVu Sans"
#define HALO_PX 2.5
#define NOTHING 0x101838 /* of pixels that are not valid */
#define TURN 6.283185307179586

static void draw_pixels(struct oct_canvas *canvas, const struct oct_plot_overlay *o)
{
    unsigned char *bytes = cairo_image_surface_get_data(canvas->surface);
    const int stride = cairo_image_surface_get_stride(canvas->surface);
    const double scale = 255 / (o->hi - o->lo);
    cairo_surface_flush(canvas->surface);
    for (uint32_t y = 0; y < o->height; y++)
        for (uint32_t x = 0; x < o->width; x++) {
            const size_t at = (size_t)y * o->width + x;
            uint32_t rgb = NOTHING;
            if (!o->valid || o->valid[at]) {
                const double value = ((double)o->pixels[at] - o->lo) * scale;
                rgb = (uint32_t)lround(fmin(255, fmax(0, value))) * 0x010101u;
            }
            memcpy(bytes + (size_t)y * (size_t)stride + 4 * (size_t)x, &rgb, sizeof(rgb));
        }
    cairo_surface_mark_dirty(canvas->surface);
}

static void set_colour(cairo_t *c, unsigned rgb, double alpha)
{
    cairo_set_source_rgba(c, (rgb >> 16 & 255) / 255.0, (rgb >> 8 & 255) / 255.0,
                          (rgb & 255) / 255.0, alpha);
}

static bool is_small(const struct oct_plot_ring *ring)
{
    return fmin(ring->radius_x, ring->radius_y) < SMALL_PX;
}

static void draw_tail(cairo_t *c, const struct oct_plot_ring *ring)
{
    for (unsigned i = 0; i < ring->n_tail; i++)
        cairo_line_to(c, ring->tail[2 * i] + 0.5, ring->tail[2 * i + 1] + 0.5);
    cairo_set_line_width(c, TAIL_PX);
    set_colour(c, ring->rgb, TAIL_ALPHA);
    cairo_stroke(c);
}

static void draw_ring(cairo_t *c, const struct oct_plot_ring *ring)
{
    static const double dashes[] = {3, 3};
    cairo_save(c);
    cairo_translate(c, ring->x + 0.5, ring->y + 0.5);
    cairo_scale(c, ring->radius_x, ring->radius_y);
    cairo_new_sub_path(c);
    cairo_arc(c, 0, 0, 1, 0, TURN);
    cairo_restore(c);
    cairo_set_dash(c, dashes, ring->dashed ? 2 : 0, 0);
    cairo_set_line_width(c, is_small(ring) ? SMALL_RING_PX : RING_PX);
    set_colour(c, ring->rgb, 1);
    cairo_stroke(c);
    cairo_set_dash(c, NULL, 0, 0);
}

/* To the upper right of the ring, and within the picture. */
static void draw_text(cairo_t *c, const struct oct_plot_ring *ring, double width, double height)
{
    cairo_text_extents_t extents;
    const double letters = is_small(ring) ? SMALL_LETTERS : LETTERS;
    cairo_set_font_size(c, letters);
    cairo_text_extents(c, ring->text, &extents);
    const double dx = 0.75 * ring->radius_x + 3, dy = 0.75 * ring->radius_y;
    double x = ring->x + dx, y = ring->y - dy;
    if (x + extents.x_advance > width - 1)
        x = ring->x - dx - extents.x_advance;
    if (y - letters < 0)
        y = ring->y + dy + 0.8 * letters;
    cairo_move_to(c, fmax(1, x), fmin(y, height - 2));
    cairo_text_path(c, ring->text);
    cairo_set_source_rgba(c, 0, 0, 0, 0.75);
    cairo_set_line_width(c, HALO_PX);
    cairo_stroke_preserve(c);
    set_colour(c, ring->rgb, 1);
    cairo_fill(c);
}

static enum oct_err draw(struct oct_canvas *canvas, const struct oct_plot_overlay *o,
                         struct oct_error *err)
{
    const enum oct_err e = oct_canvas_init(canvas, (int)o->width, (int)o->height, err);
    if (e)
        return e;
    cairo_t *c = canvas->cairo;
    draw_pixels(canvas, o);
    cairo_set_line_join(c, CAIRO_LINE_JOIN_ROUND);
    cairo_select_font_face(c, FONT, CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    for (size_t i = 0; i < o->n_rings; i++)
        draw_tail(c, &o->rings[i]);
    for (size_t i = 0; i < o->n_rings; i++)
        draw_ring(c, &o->rings[i]);
    for (size_t i = 0; i < o->n_rings; i++)
        if (o->rings[i].text[0])
            draw_text(c, &o->rings[i], o->width, o->height);
    return OCT_OK;
}

enum oct_err oct_plot_write_overlay(const char *path, bool force,
                                    const struct oct_plot_overlay *overlay, struct oct_error *err)
{
    struct oct_canvas canvas = {0};
    enum oct_err e = draw(&canvas, overlay, err);
    if (!e)
        e = oct_canvas_write(&canvas, path, force, err);
    oct_canvas_finish(&canvas);
    return e;
}

enum oct_err oct_plot_draw_overlay(uint8_t *rgb, const struct oct_plot_overlay *overlay,
                                   struct oct_error *err)
{
    struct oct_canvas canvas = {0};
    const enum oct_err e = draw(&canvas, overlay, err);
    if (e)
        return e;
    cairo_surface_flush(canvas.surface);
    const unsigned char *bytes = cairo_image_surface_get_data(canvas.surface);
    const int stride = cairo_image_surface_get_stride(canvas.surface);
    for (uint32_t y = 0; y < overlay->height; y++)
        for (uint32_t x = 0; x < overlay->width; x++) {
            uint32_t pixel;
            uint8_t *to = rgb + 3 * ((size_t)y * overlay->width + x);
            memcpy(&pixel, bytes + (size_t)y * (size_t)stride + 4 * (size_t)x, sizeof(pixel));
            to[0] = (uint8_t)(pixel >> 16);
            to[1] = (uint8_t)(pixel >> 8);
            to[2] = (uint8_t)pixel;
        }
    oct_canvas_finish(&canvas);
    return OCT_OK;
}
