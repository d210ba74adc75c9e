#include "tools/plot/canvas.h"

#include "formats/whole_file.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

#define FONT "DejaVu Sans"
#define HALO_PX 3.0

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
