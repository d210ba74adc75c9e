#include "tools/plot/axes.h"
#include "tools/plot/plot.h"

#include <math.h>
#include <string.h>

#define WIDTH 1000
#define HEIGHT 760
#define NOTHING 0xd8d8d8 /* of NaN */
#define PATH_PX 1.2

static unsigned grey_of(const struct oct_plot_field *plot, float value)
{
    if (!isfinite(value))
        return NOTHING;
    const double part = ((double)value - plot->lo) / (plot->hi - plot->lo);
    const unsigned grey = (unsigned)lround(255 * fmin(1, fmax(0, part)));
    return grey << 16 | grey << 8 | grey;
}

static cairo_surface_t *image_of(const struct oct_plot_field *plot)
{
    cairo_surface_t *image =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)plot->n_x, (int)plot->n_y);
    unsigned char *bytes = cairo_image_surface_get_data(image);
    const int stride = cairo_image_surface_get_stride(image);
    for (uint32_t y = 0; bytes && y < plot->n_y; y++)
        for (uint32_t x = 0; x < plot->n_x; x++) {
            const uint32_t rgb = grey_of(plot, plot->values[(size_t)y * plot->n_x + x]);
            memcpy(bytes + (size_t)y * (size_t)stride + 4 * (size_t)x, &rgb, sizeof(rgb));
        }
    cairo_surface_mark_dirty(image);
    return image;
}

static enum oct_err draw_values(struct oct_axes *a, const struct oct_plot_field *plot,
                                struct oct_error *err)
{
    cairo_t *c = a->canvas.cairo;
    const double scale_x = (a->right - a->left) / plot->n_x;
    const double scale_y = (a->bottom - a->top) / plot->n_y;
    cairo_surface_t *image = image_of(plot);
    if (cairo_surface_status(image) != CAIRO_STATUS_SUCCESS) {
        cairo_surface_destroy(image);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a plot of %u x %u", plot->n_x,
                        plot->n_y);
    }
    cairo_save(c);
    cairo_rectangle(c, a->left, a->top, a->right - a->left, a->bottom - a->top);
    cairo_clip(c);
    cairo_translate(c, a->left, a->top);
    cairo_scale(c, scale_x, scale_y);
    cairo_set_source_surface(c, image, 0, 0);
    cairo_pattern_set_filter(cairo_get_source(c), scale_x >= 1 && scale_y >= 1
                                                      ? CAIRO_FILTER_NEAREST
                                                      : CAIRO_FILTER_GOOD);
    cairo_paint(c);
    cairo_restore(c);
    cairo_surface_destroy(image);
    return OCT_OK;
}

static void draw_path(struct oct_axes *a, const struct oct_plot_path *path)
{
    cairo_t *c = a->canvas.cairo;
    for (size_t i = 0; i < path->n; i++)
        cairo_line_to(c, oct_axis_place(&a->x, path->x[i]), oct_axis_place(&a->y, path->y[i]));
    oct_canvas_colour(&a->canvas, path->rgb);
    cairo_stroke(c);
}

static void draw_paths(struct oct_axes *a, const struct oct_plot_field *plot)
{
    cairo_t *c = a->canvas.cairo;
    cairo_save(c);
    cairo_rectangle(c, a->left, a->top, a->right - a->left, a->bottom - a->top);
    cairo_clip(c);
    cairo_set_line_width(c, PATH_PX);
    cairo_set_line_join(c, CAIRO_LINE_JOIN_ROUND);
    for (size_t i = 0; i < plot->n_paths; i++)
        draw_path(a, &plot->paths[i]);
    cairo_restore(c);
}

enum oct_err oct_plot_write_field(const char *path, bool force, const struct oct_plot_field *plot,
                                  struct oct_error *err)
{
    struct oct_axes a = {.title = plot->title, .x_label = plot->x_label, .y_label = plot->y_label};
    a.x = (struct oct_axis){.least = plot->x_least, .most = plot->x_most};
    a.y = (struct oct_axis){.least = plot->y_least, .most = plot->y_most};
    enum oct_err e = oct_canvas_init(&a.canvas, WIDTH, HEIGHT, err);
    if (e)
        return e;
    oct_axes_set(&a, WIDTH, HEIGHT, true);
    e = draw_values(&a, plot, err);
    if (!e) {
        draw_paths(&a, plot);
        oct_axes_draw(&a, false);
        e = oct_canvas_write(&a.canvas, path, force, err);
    }
    oct_canvas_finish(&a.canvas);
    return e;
}
