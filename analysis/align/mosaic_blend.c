#include "analysis/align/mosaic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* The weight of a place (y, x) of a picture: 1 in the middle, falling towards the border. */
static double weight_at(const struct oct_picture *p, double y, double x, double feather)
{
    double from_side = smaller(smaller(y, p->height - 1 - y), smaller(x, p->width - 1 - x)) + 1;

    return smaller(from_side / (feather + 1), 1);
}

/* The value of a picture between its pixels; NaN beyond it or beside a masked one. */
static double value_at(const struct oct_picture *p, double y, double x)
{
    double y0 = floor(y), x0 = floor(x), v = y - y0, u = x - x0, sum = 0;

    for (int i = 0; i < 4; i++) {
        double w = (i / 2 ? v : 1 - v) * (i % 2 ? u : 1 - u), row = y0 + i / 2, column = x0 + i % 2;
        if (w == 0)
            continue;
        if (row < 0 || column < 0 || row >= p->height || column >= p->width)
            return (double)NAN;
        size_t at = (size_t)row * p->width + (size_t)column;
        if (!oct_picture_is_valid(p, at))
            return (double)NAN;
        sum += w * (double)p->pixels[at];
    }
    return sum;
}

/* Adds a picture whose pixel (0, 0) lies at (top, left) of the canvas. */
static void add(struct oct_picture *canvas, float *weight, const struct oct_picture *p, double top,
                double left, double feather)
{
    int64_t y0 = (int64_t)ceil(top), x0 = (int64_t)ceil(left);
    int64_t y1 = (int64_t)floor(top + p->height - 1), x1 = (int64_t)floor(left + p->width - 1);

    for (int64_t y = y0; y <= y1; y++)
        for (int64_t x = x0; x <= x1; x++) {
            double v = (double)y - top, u = (double)x - left, value = value_at(p, v, u);
            size_t at = (size_t)y * canvas->width + (size_t)x;
            if (isnan(value))
                continue;
            double w = weight_at(p, v, u, feather);
            canvas->pixels[at] += (float)(w * value);
            weight[at] += (float)w;
        }
}

struct box {
    double y0, y1, x0, x1;
};

static struct box box_of(const struct oct_mosaic *m, const struct oct_picture *pictures)
{
    struct box b = {INFINITY, -INFINITY, INFINITY, -INFINITY};

    for (unsigned i = 0; i < m->n; i++) {
        const struct oct_mosaic_place *p = &m->places[i];
        if (p->component != 0)
            continue;
        b.y0 = fmin(b.y0, p->y);
        b.x0 = fmin(b.x0, p->x);
        b.y1 = fmax(b.y1, p->y + pictures[i].height);
        b.x1 = fmax(b.x1, p->x + pictures[i].width);
    }
    return b;
}

enum oct_err oct_mosaic_blend(const struct oct_mosaic *m, const struct oct_picture *pictures,
                              struct oct_picture *canvas, float **weight, double *origin_y,
                              double *origin_x, struct oct_error *err)
{
    struct box box = box_of(m, pictures);
    double height = ceil(box.y1) - floor(box.y0), width = ceil(box.x1) - floor(box.x0);

    *weight = NULL;
    *canvas = (struct oct_picture){0};
    if (!(height >= 1) || !(width >= 1) || height > OCT_PICTURE_MOST_SIDE ||
        width > OCT_PICTURE_MOST_SIDE)
        return oct_fail(err, OCT_E_ARG, "a mosaic of %.0f x %.0f pixels: a side may have %u",
                        height, width, OCT_PICTURE_MOST_SIDE);
    enum oct_err e = oct_picture_init(canvas, (uint32_t)height, (uint32_t)width, true, err);
    if (e)
        return e;
    size_t n = (size_t)canvas->height * canvas->width;
    *weight = calloc(n, sizeof(float));
    if (!*weight) {
        oct_picture_finish(canvas);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a mosaic of %.0f x %.0f pixels",
                        height, width);
    }
    memset(canvas->pixels, 0, n * sizeof(float));
    *origin_y = -floor(box.y0);
    *origin_x = -floor(box.x0);
    for (unsigned i = 0; i < m->n; i++)
        if (m->places[i].component == 0)
            add(canvas, *weight, &pictures[i], m->places[i].y + *origin_y,
                m->places[i].x + *origin_x, m->setup.feather_px);
    for (size_t i = 0; i < n; i++) {
        canvas->valid[i] = (*weight)[i] > 0;
        canvas->pixels[i] = canvas->valid[i] ? canvas->pixels[i] / (*weight)[i] : NAN;
    }
    return OCT_OK;
}
