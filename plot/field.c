#include "plot/axes.h"
#include "plot/plot.h"

#define WIDTH 1000
#define HEIGHT 760
#define PATH_PX 1.2

static enum oct_err draw_values(struct oct_axes *a, const struct oct_plot_field *plot,
                                struct oct_error *err)
{
    const struct oct_canvas_values values = {.values = plot->values,
                                             .n_y = plot->n_y,
                                             .n_x = plot->n_x,
                                             .lo = plot->lo,
                                             .hi = plot->hi,
                                             .x = a->left,
                                             .y = a->top,
                                             .width = a->right - a->left,
                                             .height = a->bottom - a->top};
    return oct_canvas_draw_values(&a->canvas, &values, err);
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
