#include "plot/canvas.h"

#include "formats/whole_file.h"
#include "pipeline/base/utf8.h"

#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FONT "DejaVu Sans"
#define HALO_PX 3.0
#define RIM_PX 2.2
#define BAR_PX 18.0          /* of colours */
#define MOST_TEXT_BYTES 1024 /* of a line that is shortened */
#define TURN 6.283185307179586
#define TINT_GREEN 0.95 /* of a tinted grey, beside its red */
#define TINT_BLUE 0.8

/* ---- the page ---- */

struct oct_canvas oct_canvas(void)
{
    struct oct_canvas c = {.surface =
                               cairo_recording_surface_create(CAIRO_CONTENT_COLOR_ALPHA, NULL)};
    c.cairo = cairo_create(c.surface);
    cairo_set_line_join(c.cairo, CAIRO_LINE_JOIN_ROUND);
    return c;
}

static void finish_canvas(struct oct_canvas *canvas)
{
    cairo_destroy(canvas->cairo);
    cairo_surface_destroy(canvas->surface);
}

/* What was drawn, onto a surface. */
static cairo_status_t replay(const struct oct_canvas *canvas, cairo_surface_t *to)
{
    const cairo_status_t drawn = cairo_status(canvas->cairo);
    cairo_t *c = cairo_create(to);
    cairo_set_source_rgb(c, 1, 1, 1);
    cairo_paint(c);
    cairo_set_source_surface(c, canvas->surface, 0, 0);
    cairo_paint(c);
    const cairo_status_t status = cairo_status(c);
    cairo_destroy(c);
    return drawn ? drawn : status;
}

/* A path may be the name of a file that is published with others (formats/whole_file.h). */
static bool ends_in(const char *path, const char *ending)
{
    const size_t n = strlen(ending);
    const char *end = strstr(path, ".all.");
    end = end ? end : path + strlen(path);
    return (size_t)(end - path) > n && strncmp(end - n, ending, n) == 0;
}

static cairo_status_t write_surface(const struct oct_canvas *canvas, double width, double height,
                                    const char *path, const char *work)
{
    const bool is_svg = ends_in(path, ".svg"), is_pdf = ends_in(path, ".pdf");
    cairo_surface_t *to =
        is_svg   ? cairo_svg_surface_create(work, width, height)
        : is_pdf ? cairo_pdf_surface_create(work, width, height)
                 : cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)width, (int)height);
    cairo_status_t status = replay(canvas, to);
    if (!status && !is_svg && !is_pdf)
        status = cairo_surface_write_to_png(to, work);
    cairo_surface_finish(to);
    status = status ? status : cairo_surface_status(to);
    cairo_surface_destroy(to);
    return status;
}

static enum oct_err failed(const char *path, cairo_status_t status, struct oct_error *err)
{
    return oct_fail(err, status == CAIRO_STATUS_NO_MEMORY ? OCT_E_NO_MEMORY : OCT_E_IO,
                    "%s: cannot be written: %s", path, cairo_status_to_string(status));
}

enum oct_err oct_canvas_write(struct oct_canvas *canvas, double width, double height,
                              const char *path, bool force, struct oct_error *err)
{
    struct oct_whole_file file;
    enum oct_err e = oct_whole_file_init(&file, path, force, err);
    if (!e) {
        const cairo_status_t status =
            write_surface(canvas, ceil(width), ceil(height), path, file.work);
        e = status ? failed(path, status, err) : oct_whole_file_publish(&file, err);
        if (status)
            oct_whole_file_discard(&file);
    }
    finish_canvas(canvas);
    return e;
}

enum oct_err oct_canvas_read(struct oct_canvas *canvas, uint32_t width, uint32_t height,
                             uint8_t *rgb, struct oct_error *err)
{
    cairo_surface_t *to = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)width, (int)height);
    const cairo_status_t status = replay(canvas, to);
    cairo_surface_flush(to);
    const unsigned char *bytes = cairo_image_surface_get_data(to);
    const size_t stride = (size_t)cairo_image_surface_get_stride(to);
    for (size_t i = 0; i < (size_t)height * width && !status; i++) {
        uint32_t pixel;
        memcpy(&pixel, bytes + i / width * stride + 4 * (i % width), sizeof(pixel));
        for (unsigned k = 0; k < 3; k++)
            rgb[3 * i + k] = (uint8_t)(pixel >> (16 - 8 * k));
    }
    cairo_surface_destroy(to);
    finish_canvas(canvas);
    return status ? failed("picture", status, err) : OCT_OK;
}

/* ---- lines and letters ---- */

void oct_canvas_colour(struct oct_canvas *canvas, unsigned rgb, double alpha)
{
    cairo_set_source_rgba(canvas->cairo, (rgb >> 16 & 255) / 255.0, (rgb >> 8 & 255) / 255.0,
                          (rgb & 255) / 255.0, alpha);
}

void oct_canvas_line(struct oct_canvas *canvas, double x0, double y0, double x1, double y1)
{
    cairo_move_to(canvas->cairo, x0, y0);
    cairo_line_to(canvas->cairo, x1, y1);
    cairo_stroke(canvas->cairo);
}

void oct_canvas_fill(struct oct_canvas *canvas, double x, double y, double width, double height)
{
    cairo_rectangle(canvas->cairo, x, y, width, height);
    cairo_fill(canvas->cairo);
}

void oct_canvas_dot(struct oct_canvas *canvas, double x, double y, double radius)
{
    cairo_new_sub_path(canvas->cairo);
    cairo_arc(canvas->cairo, x, y, radius, 0, TURN);
    cairo_fill(canvas->cairo);
}

void oct_canvas_dash(struct oct_canvas *canvas, bool dashed, double on, double off)
{
    const double dashes[2] = {on, off};
    cairo_set_dash(canvas->cairo, dashes, dashed ? 2 : 0, 0);
}

double oct_canvas_text_width(struct oct_canvas *canvas, double size, unsigned style,
                             const char *text)
{
    cairo_text_extents_t extents;
    cairo_select_font_face(canvas->cairo, FONT, CAIRO_FONT_SLANT_NORMAL,
                           style & OCT_TEXT_BOLD ? CAIRO_FONT_WEIGHT_BOLD
                                                 : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(canvas->cairo, size);
    cairo_text_extents(canvas->cairo, text ? text : "", &extents);
    return extents.x_advance;
}

void oct_canvas_text(struct oct_canvas *canvas, double x, double y, double size, unsigned style,
                     const char *text)
{
    cairo_t *c = canvas->cairo;
    cairo_font_extents_t font;
    if (!text)
        return;
    const double width = oct_canvas_text_width(canvas, size, style, text);
    cairo_font_extents(c, &font);
    cairo_save(c);
    cairo_translate(c, x, y);
    if (style & OCT_TEXT_UPWARD)
        cairo_rotate(c, -TURN / 4);
    const double left = style & OCT_TEXT_MIDDLE ? -width / 2 : style & OCT_TEXT_RIGHT ? -width : 0;
    const double middle = (font.ascent - font.descent) / 2;
    cairo_move_to(c, left, middle);
    if (style & OCT_TEXT_HALOED) {
        cairo_text_path(c, text);
        cairo_save(c);
        cairo_set_source_rgba(c, 1, 1, 1, 0.85);
        cairo_set_line_width(c, HALO_PX);
        cairo_stroke_preserve(c);
        cairo_restore(c);
        cairo_new_path(c);
        cairo_move_to(c, left, middle);
    }
    cairo_show_text(c, text); /* of PDF it is text then, which can be searched */
    cairo_new_path(c);
    cairo_restore(c);
}

double oct_canvas_text_within(struct oct_canvas *canvas, double x, double y, double width,
                              double size, unsigned style, const char *text)
{
    static const char dots[] = "\342\200\246";
    char line[MOST_TEXT_BYTES] = "";
    snprintf(line, sizeof(line) - sizeof(dots), "%s", text ? text : "");
    oct_utf8_make_line(line);
    size_t n = strlen(line);
    while (n > 0 && oct_canvas_text_width(canvas, size, style, line) > width) {
        while (n > 0 && ((unsigned char)line[--n] & 0xc0) == 0x80) /* a whole character */
            ;
        memcpy(line + n, dots, sizeof(dots));
    }
    oct_canvas_text(canvas, x, y, size, style, line);
    return oct_canvas_text_width(canvas, size, style, line);
}

/* ---- colours ---- */

unsigned oct_canvas_series_colour(unsigned i)
{
    static const unsigned colours[] = {0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7,
                                       0xe69f00, 0x56b4e9, 0x555555};
    return colours[i % (sizeof(colours) / sizeof(colours[0]))];
}

unsigned oct_canvas_shade(enum oct_colours colours, double fraction)
{
    static const struct knot {
        double at, rgb[3];
    } all_knots[][9] = {[OCT_COLOURS_GREY] = {{0, {0, 0, 0}}, {1, {255, 255, 255}}},
                        [OCT_COLOURS_MAP] = {{0, {68, 1, 84}},
                                             {0.125, {71, 44, 122}},
                                             {0.25, {59, 81, 139}},
                                             {0.375, {44, 113, 142}},
                                             {0.5, {33, 144, 141}},
                                             {0.625, {39, 173, 129}},
                                             {0.75, {92, 200, 99}},
                                             {0.875, {170, 220, 50}},
                                             {1, {253, 231, 37}}},
                        [OCT_COLOURS_DIVERGING] = {{0, {5, 48, 97}},
                                                   {0.2, {67, 147, 195}},
                                                   {0.5, {247, 247, 247}},
                                                   {0.8, {214, 96, 77}},
                                                   {1, {103, 0, 31}}}};
    const struct knot *k = all_knots[colours];
    unsigned rgb = 0;
    fraction = fmin(1, fmax(0, fraction));
    while (k[1].at < fraction)
        k++;
    const double part = (fraction - k[0].at) / (k[1].at - k[0].at);
    for (int i = 0; i < 3; i++)
        rgb = rgb << 8 | (unsigned)lround(k[0].rgb[i] + part * (k[1].rgb[i] - k[0].rgb[i]));
    return rgb;
}

/* ---- values in a box ---- */

static unsigned colour_of(const struct oct_canvas_values *v, size_t at)
{
    const double value = (double)v->values[at];
    if (!isfinite(value) || (v->valid && !v->valid[at]))
        return v->nothing;
    const double fraction = (value - v->lo) / (v->hi - v->lo);
    if (!v->tinted || !v->tinted[at])
        return oct_canvas_shade(v->colours, fraction);
    const double red = 255 * fmin(1, fmax(0, fraction));
    return (unsigned)lround(red) << 16 | (unsigned)lround(TINT_GREEN * red) << 8 |
           (unsigned)lround(TINT_BLUE * red);
}

void oct_view_clip(struct oct_canvas *canvas, const struct oct_view *view)
{
    cairo_save(canvas->cairo);
    cairo_rectangle(canvas->cairo, view->x, view->y, view->width, view->height);
    cairo_clip(canvas->cairo);
}

void oct_canvas_values(struct oct_canvas *canvas, const struct oct_view *view,
                       const struct oct_canvas_values *v)
{
    cairo_t *c = canvas->cairo;
    const double scale_x = view->width / v->n_x, scale_y = view->height / v->n_y;
    const bool is_enlarged = scale_x >= 1 && scale_y >= 1;
    cairo_surface_t *image =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)v->n_x, (int)v->n_y);
    unsigned char *bytes = cairo_image_surface_get_data(image); /* NULL: no memory */
    const size_t stride = (size_t)cairo_image_surface_get_stride(image);
    for (size_t i = 0; bytes && i < (size_t)v->n_y * v->n_x; i++) {
        const uint32_t rgb = colour_of(v, i);
        memcpy(bytes + i / v->n_x * stride + 4 * (i % v->n_x), &rgb, sizeof(rgb));
    }
    cairo_surface_mark_dirty(image);
    oct_view_clip(canvas, view);
    cairo_translate(c, view->x, view->y);
    cairo_scale(c, scale_x, scale_y);
    cairo_set_source_surface(c, image, 0, 0);
    cairo_pattern_set_filter(cairo_get_source(c),
                             is_enlarged && !v->smooth ? CAIRO_FILTER_NEAREST : CAIRO_FILTER_GOOD);
    cairo_pattern_set_extend(cairo_get_source(c), CAIRO_EXTEND_PAD);
    cairo_paint(c);
    cairo_restore(c);
    cairo_surface_destroy(image);
}

static void trace_path(cairo_t *c, const struct oct_view *view, const struct oct_plot_path *path)
{
    bool is_down = false;
    for (size_t i = 0; i < path->n; i++) {
        const double x = view->x + view->per_x * (path->x[i] - view->left);
        const double y = view->y + view->per_y * (path->y[i] - view->top);
        const bool is_known = isfinite(x) && isfinite(y);
        if (is_known && !is_down)
            cairo_move_to(c, x - 0.5, y); /* a single point shows as a dot */
        if (is_known)
            cairo_line_to(c, x, y);
        is_down = is_known;
    }
}

void oct_canvas_paths(struct oct_canvas *canvas, const struct oct_view *view,
                      const struct oct_plot_path *paths, size_t n, double px, bool rimmed)
{
    oct_view_clip(canvas, view);
    for (int pass = rimmed ? 0 : 1; pass < 2; pass++)
        for (size_t i = 0; i < n; i++) {
            trace_path(canvas->cairo, view, &paths[i]);
            oct_canvas_colour(canvas, pass ? paths[i].rgb : 0xffffff, pass ? 1 : 0.7);
            cairo_set_line_width(canvas->cairo, pass ? px : px + RIM_PX);
            cairo_stroke(canvas->cairo);
        }
    cairo_restore(canvas->cairo);
}

double oct_round_step(double about)
{
    const double power = pow(10, floor(log10(about))), digit = about / power;
    return power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
}

void oct_canvas_scale_bar(struct oct_canvas *canvas, double right, double y, double width,
                          double um_px, bool on_page)
{
    const double um = oct_round_step(width * um_px / 5), left = right - um / um_px;
    char text[48];
    snprintf(text, sizeof(text), "%g %s", um >= 1000 ? um / 1000 : um,
             um >= 1000 ? "mm" : "\302\265m");
    oct_canvas_colour(canvas, 0xffffff, 0.85);
    if (!on_page)
        oct_canvas_fill(canvas, left - 2, y - 4.5, right - left + 4, 9);
    oct_canvas_colour(canvas, OCT_INK, 1);
    oct_canvas_fill(canvas, left, y - 2.5, right - left, 5);
    if (on_page)
        oct_canvas_text(canvas, left - 10, y, OCT_LETTERS, OCT_TEXT_BOLD | OCT_TEXT_RIGHT, text);
    else
        oct_canvas_text(canvas, (left + right) / 2, y - 16.5, OCT_LETTERS,
                        OCT_TEXT_BOLD | OCT_TEXT_MIDDLE | OCT_TEXT_HALOED, text);
}

void oct_canvas_colour_bar(struct oct_canvas *canvas, double x, double y, double height, double lo,
                           double hi, enum oct_colours colours, const char *label)
{
    const struct oct_axis axis = {lo, hi, y + height, y, 6};
    cairo_set_antialias(canvas->cairo, CAIRO_ANTIALIAS_NONE);
    for (double row = 0; row < height; row++) {
        oct_canvas_colour(canvas, oct_canvas_shade(colours, 1 - row / height), 1);
        oct_canvas_fill(canvas, x, y + row, BAR_PX, 1);
    }
    cairo_set_antialias(canvas->cairo, CAIRO_ANTIALIAS_DEFAULT);
    oct_axis_draw(canvas, &axis, false, x + BAR_PX, 5, NAN);
    oct_canvas_text(canvas, x + BAR_PX + 84, y + height / 2, OCT_LETTERS,
                    OCT_TEXT_MIDDLE | OCT_TEXT_UPWARD, label);
}
