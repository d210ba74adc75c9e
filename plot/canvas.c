#include "plot/canvas.h"

#include "formats/whole_file.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define FONT "DejaVu Sans"
#define HALO_PX 3.0
#define NOTHING 0xd8d8d8      /* of NaN */
#define NOTHING_BLUE 0xa9c8ec /* that no grey is taken for */
#define INK 0x222222
#define BAR_LETTERS 15.0

enum oct_err oct_canvas_init(struct oct_canvas *canvas, int width, int height,
                             struct oct_error *err)
{
    canvas->surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
    canvas->cairo = cairo_create(canvas->surface);
    if (cairo_status(canvas->cairo) != CAIRO_STATUS_SUCCESS) {
        oct_canvas_finish(canvas);
        return oct_fail(err, OCT_E_NO_MEMORY, "no canvas of %d x %d pixels", width, height);
    }
    oct_canvas_colour(canvas, 0xffffff);
    cairo_paint(canvas->cairo);
    return OCT_OK;
}

void oct_canvas_finish(struct oct_canvas *canvas)
{
    if (canvas->cairo)
        cairo_destroy(canvas->cairo);
    if (canvas->surface)
        cairo_surface_destroy(canvas->surface);
    *canvas = (struct oct_canvas){0};
}

enum oct_err oct_canvas_write(const struct oct_canvas *canvas, const char *path, bool force,
                              struct oct_error *err)
{
    struct oct_whole_file file;
    enum oct_err e = oct_whole_file_init(&file, path, force, err);
    if (e)
        return e;
    cairo_status_t status = cairo_status(canvas->cairo);
    if (status == CAIRO_STATUS_SUCCESS)
        status = cairo_surface_write_to_png(canvas->surface, file.work);
    if (status == CAIRO_STATUS_SUCCESS)
        return oct_whole_file_publish(&file, err);
    e = oct_fail(err, OCT_E_IO, "%s: cannot be written: %s", path, cairo_status_to_string(status));
    oct_whole_file_discard(&file);
    return e;
}

void oct_canvas_colour(struct oct_canvas *canvas, unsigned rgb)
{
    cairo_set_source_rgb(canvas->cairo, (rgb >> 16 & 255) / 255.0, (rgb >> 8 & 255) / 255.0,
                         (rgb & 255) / 255.0);
}

/* ---- letters ---- */

static void choose_font(struct oct_canvas *canvas, double size, bool bold)
{
    cairo_select_font_face(canvas->cairo, FONT, CAIRO_FONT_SLANT_NORMAL,
                           bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(canvas->cairo, size);
}

double oct_canvas_text_width(struct oct_canvas *canvas, double size, bool bold, const char *text)
{
    cairo_text_extents_t extents;
    choose_font(canvas, size, bold);
    cairo_text_extents(canvas->cairo, text, &extents);
    return extents.x_advance;
}

void oct_canvas_text(struct oct_canvas *canvas, double x, double y, double size, bool bold,
                     enum oct_canvas_align align, bool haloed, const char *text)
{
    cairo_t *c = canvas->cairo;
    cairo_font_extents_t font;
    const double width = oct_canvas_text_width(canvas, size, bold, text);
    cairo_font_extents(c, &font);
    if (align != OCT_CANVAS_LEFT)
        x -= align == OCT_CANVAS_MIDDLE ? width / 2 : width;
    cairo_move_to(c, x, y + (font.ascent - font.descent) / 2);
    if (haloed) {
        cairo_text_path(c, text);
        cairo_save(c);
        cairo_set_source_rgba(c, 1, 1, 1, 0.85);
        cairo_set_line_width(c, HALO_PX);
        cairo_set_line_join(c, CAIRO_LINE_JOIN_ROUND);
        cairo_stroke_preserve(c);
        cairo_restore(c);
        cairo_fill(c);
    } else {
        cairo_show_text(c, text);
    }
    cairo_new_path(c);
}

/* ---- colours ---- */

unsigned oct_canvas_series_colour(unsigned i)
{
    static const unsigned colours[] = {0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7,
                                       0xe69f00, 0x56b4e9, 0x555555};
    return colours[i % (sizeof(colours) / sizeof(colours[0]))];
}

unsigned oct_canvas_map_colour(double fraction)
{
    static const uint8_t knots[][3] = {{68, 1, 84},    {71, 44, 122},  {59, 81, 139},
                                       {44, 113, 142}, {33, 144, 141}, {39, 173, 129},
                                       {92, 200, 99},  {170, 220, 50}, {253, 231, 37}};
    const unsigned n = sizeof(knots) / sizeof(knots[0]) - 1;
    unsigned rgb = 0;
    fraction = fraction > 0 ? fraction < 1 ? fraction : 1 : 0;
    const unsigned k = fraction < 1 ? (unsigned)(fraction * n) : n - 1;
    const double part = fraction * n - k;
    for (int i = 0; i < 3; i++)
        rgb = rgb << 8 | (unsigned)lround(knots[k][i] + part * (knots[k + 1][i] - knots[k][i]));
    return rgb;
}

unsigned oct_canvas_diverging_colour(double fraction)
{
    static const int ends[2][3] = {{5, 48, 97}, {103, 0, 31}};
    const double far = fabs(2 * fmin(1, fmax(0, fraction)) - 1); /* from white */
    const int *end = ends[fraction > 0.5];
    const double pale = far < 0.6 ? far / 0.6 : 1, dark = far > 0.6 ? (far - 0.6) / 0.4 : 0;
    static const int middle[2][3] = {{67, 147, 195}, {214, 96, 77}};
    unsigned rgb = 0;
    for (int i = 0; i < 3; i++) {
        const double half = middle[fraction > 0.5][i];
        const double value = far < 0.6 ? 247 + pale * (half - 247) : half + dark * (end[i] - half);
        rgb = rgb << 8 | (unsigned)lround(value);
    }
    return rgb;
}

/* ---- values ---- */

#define TINT_GREEN 0.95 /* of a tinted grey, beside its red */
#define TINT_BLUE 0.8

static unsigned grey_of(double fraction, bool tinted)
{
    const double red = 255 * fmin(1, fmax(0, fraction));
    const unsigned green = (unsigned)lround(tinted ? TINT_GREEN * red : red);
    const unsigned blue = (unsigned)lround(tinted ? TINT_BLUE * red : red);
    return (unsigned)lround(red) << 16 | green << 8 | blue;
}

static unsigned colour_of(const struct oct_canvas_values *v, size_t at)
{
    const float value = v->values[at];
    if (!isfinite(value))
        return v->blue_nothing ? NOTHING_BLUE : NOTHING;
    const double fraction = ((double)value - v->lo) / (v->hi - v->lo);
    if (v->diverging)
        return oct_canvas_diverging_colour(fraction);
    if (v->in_colour)
        return oct_canvas_map_colour(fraction);
    return grey_of(fraction, v->tinted && v->tinted[at]);
}

static void fill_image(cairo_surface_t *image, const struct oct_canvas_values *v)
{
    unsigned char *bytes = cairo_image_surface_get_data(image);
    const size_t stride = (size_t)cairo_image_surface_get_stride(image);
    for (uint32_t y = 0; y < v->n_y; y++)
        for (uint32_t x = 0; x < v->n_x; x++) {
            const uint32_t rgb = colour_of(v, (size_t)y * v->n_x + x);
            memcpy(bytes + y * stride + 4 * (size_t)x, &rgb, sizeof(rgb));
        }
    cairo_surface_mark_dirty(image);
}

enum oct_err oct_canvas_draw_values(struct oct_canvas *canvas,
                                    const struct oct_canvas_values *values, struct oct_error *err)
{
    const struct oct_canvas_values *v = values;
    cairo_t *c = canvas->cairo;
    const double scale_x = v->width / v->n_x, scale_y = v->height / v->n_y;
    const bool is_enlarged = scale_x >= 1 && scale_y >= 1;
    cairo_surface_t *image =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)v->n_x, (int)v->n_y);
    if (cairo_surface_status(image) != CAIRO_STATUS_SUCCESS) {
        cairo_surface_destroy(image);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a plot of %u x %u", v->n_x,
                        v->n_y);
    }
    fill_image(image, v);
    cairo_save(c);
    cairo_rectangle(c, v->x, v->y, v->width, v->height);
    cairo_clip(c);
    cairo_translate(c, v->x, v->y);
    cairo_scale(c, scale_x, scale_y);
    cairo_set_source_surface(c, image, 0, 0);
    cairo_pattern_set_filter(cairo_get_source(c),
                             is_enlarged && !v->smooth ? CAIRO_FILTER_NEAREST : CAIRO_FILTER_GOOD);
    cairo_pattern_set_extend(cairo_get_source(c), CAIRO_EXTEND_PAD);
    cairo_paint(c);
    cairo_restore(c);
    cairo_surface_destroy(image);
    return OCT_OK;
}

void oct_canvas_length_text(double um, char text[48])
{
    snprintf(text, 48, "%g %s", um >= 1000 ? um / 1000 : um, um >= 1000 ? "mm" : "\302\265m");
}

void oct_canvas_scale_bar(struct oct_canvas *canvas, double x, double y, double width,
                          double height, double um_px)
{
    double first, um;
    char text[48];
    oct_canvas_ticks(0, width * um_px, 5, &first, &um);
    const double length = um / um_px;
    const double left = x + width - length - 16, top = y + height - 20;
    cairo_set_source_rgba(canvas->cairo, 1, 1, 1, 0.85);
    cairo_rectangle(canvas->cairo, left - 2, top - 2, length + 4, 9);
    cairo_fill(canvas->cairo);
    oct_canvas_colour(canvas, INK);
    cairo_rectangle(canvas->cairo, left, top, length, 5);
    cairo_fill(canvas->cairo);
    oct_canvas_length_text(um, text);
    oct_canvas_text(canvas, left + length / 2, top - 14, BAR_LETTERS, true, OCT_CANVAS_MIDDLE, true,
                    text);
}

void oct_canvas_colour_bar(struct oct_canvas *canvas, double x, double y, double height, double lo,
                           double hi, bool diverging, const char *label)
{
    const double bar = 18;
    cairo_t *c = canvas->cairo;
    double first, step;
    char text[32];
    cairo_set_antialias(c, CAIRO_ANTIALIAS_NONE);
    for (double row = 0; row < height; row++) {
        const double fraction = 1 - row / height;
        oct_canvas_colour(canvas, diverging ? oct_canvas_diverging_colour(fraction)
                                            : oct_canvas_map_colour(fraction));
        cairo_rectangle(c, x, y + row, bar, 1);
        cairo_fill(c);
    }
    cairo_set_antialias(c, CAIRO_ANTIALIAS_DEFAULT);
    oct_canvas_colour(canvas, INK);
    oct_canvas_ticks(lo, hi, 6, &first, &step);
    cairo_set_line_width(c, 1);
    for (double v = first; v <= hi + 1e-9 * step; v += step) {
        const double at = y + height * (hi - v) / (hi - lo);
        cairo_move_to(c, x + bar, at);
        cairo_line_to(c, x + bar + 5, at);
        cairo_stroke(c);
        oct_canvas_tick_text(v, step, text);
        oct_canvas_text(canvas, x + bar + 9, at, BAR_LETTERS, false, OCT_CANVAS_LEFT, false, text);
    }
    if (!label)
        return;
    cairo_save(c);
    cairo_translate(c, x + bar + 84, y + height / 2);
    cairo_rotate(c, -1.5707963267948966);
    oct_canvas_text(canvas, 0, 0, BAR_LETTERS, false, OCT_CANVAS_MIDDLE, false, label);
    cairo_restore(c);
}

/* ---- ticks ---- */

void oct_canvas_ticks(double least, double most, unsigned n, double *first, double *step)
{
    const double raw = (most - least) / n, power = pow(10, floor(log10(raw)));
    const double digit = raw / power;
    *step = power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
    *first = ceil(least / *step - 1e-9) * *step;
}

void oct_canvas_tick_text(double value, double step, char text[32])
{
    const int digits = step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;
    if (fabs(value) < step * 1e-6)
        value = 0;
    if (fabs(value) >= 1e6 || digits > 5)
        snprintf(text, 32, "%.4g", value);
    else
        snprintf(text, 32, "%.*f", digits, value);
}
