#include "analysis/correlate/exact.h"

#include "analysis/correlate/side.h"
#include "kernels/device/fftw_planner.h"
#include "pipeline/base/aligned.h"

#include <complex.h> /* before fftw3.h: its complex is the language's */
#include <fftw3.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PIXEL 65535.0
#define BYTE 256.0

/* Integers over a rectangle, in one part or in two: low bytes -128 .. 127, and high ones. */
struct field {
    uint32_t height, width;
    float *values; /* [height][width] less the level */
    int64_t level; /* their rounded mean */
    double squares;
    struct oct_boxes boxes;
    double *strip;               /* [width + 1] */
    double complex *spectrum[2]; /* [n_bins] */
};

struct oct_exact {
    struct oct_correlator_setup setup;
    uint32_t py, px;
    size_t width, n_shifts; /* of a window */
    size_t n_bins;          /* py (px / 2 + 1) */
    struct field f, g;
    double *plane;                /* [py][px] */
    double complex *product;      /* [n_bins] */
    fftw_plan forward, inverse;   /* plane to product, product to plane */
    int64_t *n, *f_sums, *g_sums; /* [n_shifts] */
};

/* ---- life ---- */

static void finish_field(struct field *field)
{
    free(field->values);
    oct_boxes_finish(&field->boxes);
    free(field->strip);
    free(field->spectrum[0]); /* owns both */
}

static bool init_field(struct oct_exact *x, struct field *field, uint32_t height, uint32_t width,
                       uint32_t g_height)
{
    field->height = height;
    field->width = width;
    field->values = oct_aligned_alloc(64, (size_t)height * width, sizeof(float));
    field->strip = oct_aligned_alloc(64, (size_t)width + 1, sizeof(double));
    field->spectrum[0] = oct_aligned_alloc(64, 2 * x->n_bins, sizeof(double complex));
    if (!oct_boxes_init(&field->boxes, height, width, g_height, x->setup.max_dy) ||
        !field->values || !field->strip || !field->spectrum[0])
        return false;
    field->spectrum[1] = field->spectrum[0] + x->n_bins;
    return true;
}

static bool allocate(struct oct_exact *x)
{
    const struct oct_correlator_setup *s = &x->setup;
    x->py = oct_fft2_size((s->height > s->g_height ? s->height : s->g_height) + s->max_dy);
    x->px = oct_fft2_size((s->width > s->g_width ? s->width : s->g_width) + s->max_dx);
    x->n_bins = (size_t)x->py * (x->px / 2 + 1);
    x->width = 2 * (size_t)s->max_dx + 1;
    x->n_shifts = (2 * (size_t)s->max_dy + 1) * x->width;
    x->plane = oct_aligned_calloc(64, (size_t)x->py * x->px, sizeof(double));
    x->product = oct_aligned_alloc(64, x->n_bins, sizeof(double complex));
    x->n = malloc(3 * x->n_shifts * sizeof(*x->n));
    if (!init_field(x, &x->f, s->height, s->width, s->g_height) ||
        !init_field(x, &x->g, s->g_height, s->g_width, s->height) || !x->plane || !x->product ||
        !x->n)
        return false;
    x->f_sums = x->n + x->n_shifts;
    x->g_sums = x->f_sums + x->n_shifts;
    oct_fftw_planner_lock();
    x->forward = fftw_plan_dft_r2c_2d((int)x->py, (int)x->px, x->plane, x->product, FFTW_ESTIMATE);
    x->inverse = fftw_plan_dft_c2r_2d((int)x->py, (int)x->px, x->product, x->plane, FFTW_ESTIMATE);
    oct_fftw_planner_unlock();
    return x->forward && x->inverse;
}

enum oct_err oct_exact_create(struct oct_exact **exact, const struct oct_correlator_setup *setup,
                              struct oct_error *err)
{
    *exact = NULL;
    if (setup->norm == OCT_CORRELATION_ZNCC)
        return oct_fail(err, OCT_E_ARG, "exact sums serve the norms overlap and eq1, not zncc");
    enum oct_err e = oct_correlator_check(setup, err);
    if (e)
        return e;
    struct oct_exact *x = calloc(1, sizeof(*x));
    if (x)
        x->setup = *setup;
    if (!x || !allocate(x)) {
        oct_exact_destroy(x);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for exact sums over %u x %u pixels",
                        setup->height, setup->width);
    }
    *exact = x;
    return OCT_OK;
}

void oct_exact_destroy(struct oct_exact *x)
{
    if (!x)
        return;
    oct_fftw_planner_lock();
    fftw_destroy_plan(x->forward); /* NULL is fine */
    fftw_destroy_plan(x->inverse);
    oct_fftw_planner_unlock();
    finish_field(&x->f);
    finish_field(&x->g);
    free(x->plane);
    free(x->product);
    free(x->n); /* owns f_sums and g_sums */
    free(x);
}

/* ---- sums of products ---- */

static enum oct_err check_picture(const struct field *field, const struct oct_picture *p,
                                  struct oct_picture_statistics *look, struct oct_error *err)
{
    if (p->height != field->height || p->width != field->width)
        return oct_fail(err, OCT_E_FORMAT, "the picture has %u x %u pixels, not %u x %u", p->height,
                        p->width, field->height, field->width);
    for (size_t i = 0; i < (size_t)p->height * p->width; i++) {
        const double v = (double)p->pixels[i];
        if (oct_picture_is_valid(p, i) && !(v >= 0 && v <= MOST_PIXEL && v == floor(v)))
            return oct_fail(err, OCT_E_FORMAT,
                            "exact sums need integers from 0 to 65535: pixel %u of row %u is %g",
                            (unsigned)(i % p->width), (unsigned)(i / p->width), v);
    }
    return oct_side_check(p, look, err);
}

/* The pixels, 0 where they are masked; or the mask itself. */
static void set_field(struct field *field, const struct oct_picture *p, bool mask)
{
    const size_t n = (size_t)field->height * field->width;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        field->values[i] = !oct_picture_is_valid(p, i) ? 0 : mask ? 1 : p->pixels[i];
        sum += (double)field->values[i];
    }
    field->level = llround(sum / (double)n);
    field->squares = 0;
    for (size_t i = 0; i < n; i++) {
        field->values[i] -= (float)field->level;
        field->squares += (double)field->values[i] * (double)field->values[i];
    }
    for (uint32_t y = 0; y < field->height; y++)
        oct_boxes_add_row(&field->boxes, y, field->values + (size_t)y * field->width);
}

/* The whole values (part 0 of 1), or their low (part 0) or high bytes (part 1). */
static void transform_part(struct oct_exact *x, struct field *field, unsigned part,
                           unsigned n_parts)
{
    memset(x->plane, 0, (size_t)x->py * x->px * sizeof(double));
    for (uint32_t y = 0; y < field->height; y++)
        for (uint32_t i = 0; i < field->width; i++) {
            const double value = (double)field->values[(size_t)y * field->width + i];
            const double high = n_parts == 2 ? floor((value + BYTE / 2) / BYTE) : 0;
            x->plane[(size_t)y * x->px + i] = part == 1 ? high : value - BYTE * high;
        }
    fftw_execute_dft_r2c(x->forward, x->plane, field->spectrum[part]);
}

/* How far from an integer a sum may be. Of two parts it is below 0.4 for the largest pictures: both
 * have an RMS of 128 at most, as pixels are at most 32768 RMS from their mean. */
static double error_bound(const struct oct_exact *x)
{
    return 6 * 0x1p-52 * log2((double)x->py * x->px) * sqrt(x->f.squares) * sqrt(x->g.squares);
}

/* Adds the products of the fields less their levels. */
static void add_products(struct oct_exact *x, int64_t *sums)
{
    const unsigned n_parts = error_bound(x) < 0.25 ? 1 : 2;
    const double scale = 1 / ((double)x->py * x->px);
    int64_t factor = 1;
    for (unsigned part = 0; part < n_parts; part++) {
        transform_part(x, &x->f, part, n_parts);
        transform_part(x, &x->g, part, n_parts);
    }
    for (unsigned power = 0; power + 1 < 2 * n_parts; power++, factor *= (int64_t)BYTE) {
        memset(x->product, 0, x->n_bins * sizeof(*x->product));
        for (unsigned a = power / n_parts; a < n_parts && a <= power; a++)
            for (size_t i = 0; i < x->n_bins; i++)
                x->product[i] += conj(x->f.spectrum[a][i]) * x->g.spectrum[power - a][i];
        fftw_execute(x->inverse);
        for (size_t i = 0; i < x->n_shifts; i++) {
            const size_t y = (i / x->width + x->py - x->setup.max_dy) % x->py;
            const size_t at = (i % x->width + x->px - x->setup.max_dx) % x->px;
            sums[i] += factor * llround(x->plane[y * x->px + at] * scale);
        }
    }
}

static void add_levels(const struct oct_exact *x, int64_t *sums)
{
    const struct field *f = &x->f, *g = &x->g;
    for (size_t i = 0; i < x->n_shifts; i++) {
        const int64_t dy = (int64_t)(i / x->width) - x->setup.max_dy;
        const int64_t dx = (int64_t)(i % x->width) - x->setup.max_dx;
        const struct oct_box_overlap rows = oct_box_overlap_at(f->height, g->height, dy);
        const struct oct_box_overlap f_at = oct_box_overlap_at(f->width, g->width, dx);
        const struct oct_box_overlap g_at = oct_box_overlap_at(g->width, f->width, -dx);
        if (i % x->width == 0) {
            oct_boxes_strip(&f->boxes, rows, f->strip);
            oct_boxes_strip(&g->boxes, oct_box_overlap_at(g->height, f->height, -dy), g->strip);
        }
        const int64_t n = (int64_t)(rows.end - rows.first) * (f_at.end - f_at.first);
        sums[i] += g->level * (int64_t)(f->strip[f_at.end] - f->strip[f_at.first]) +
                   f->level * (int64_t)(g->strip[g_at.end] - g->strip[g_at.first]) +
                   f->level * g->level * n;
    }
}

/* sum of a(p) b(p + d), with a of f and b of g: pixels or masks. */
static void multiply(struct oct_exact *x, const struct oct_picture *f, bool f_mask,
                     const struct oct_picture *g, bool g_mask, int64_t *sums)
{
    set_field(&x->f, f, f_mask);
    set_field(&x->g, g, g_mask);
    memset(sums, 0, x->n_shifts * sizeof(*sums));
    if (x->f.squares > 0 && x->g.squares > 0)
        add_products(x, sums);
    add_levels(x, sums);
}

/* ---- C ---- */

/* Of eq1 and overlap: sum (f - a)(g - b) = P - a S_g - b S_f + a b N, with a and b the means, or 0.
 * Sums and means are exact to 2^-53 of P. */
enum oct_err oct_exact_correlation(struct oct_exact *x, const struct oct_picture *f,
                                   const struct oct_picture *g, int64_t *sums, float *c2d,
                                   struct oct_error *err)
{
    struct oct_picture_statistics f_is, g_is;
    const bool overlap = x->setup.norm == OCT_CORRELATION_OVERLAP, keep = x->setup.keep_mean;
    enum oct_err e = check_picture(&x->f, f, &f_is, err);
    e = e ? e : check_picture(&x->g, g, &g_is, err);
    if (e)
        return e;
    multiply(x, f, false, g, false, sums);
    multiply(x, f, true, g, true, x->n);
    multiply(x, f, false, g, true, x->f_sums);
    multiply(x, f, true, g, false, x->g_sums);
    const double f_mean = keep ? 0 : f_is.mean, g_mean = keep ? 0 : g_is.mean;
    const double f_square = f_is.variance + (keep ? f_is.mean * f_is.mean : 0);
    const double g_square = g_is.variance + (keep ? g_is.mean * g_is.mean : 0);
    double divisor = sqrt(f_square) * sqrt(g_square);
    if (!overlap)
        divisor *= sqrt((double)f_is.n_valid) * sqrt((double)g_is.n_valid);
    for (size_t i = 0; i < x->n_shifts; i++) {
        const double n = (double)x->n[i];
        const double p = (double)sums[i] - f_mean * (double)x->g_sums[i] -
                         g_mean * (double)x->f_sums[i] + f_mean * g_mean * n;
        c2d[i] = overlap && n < 1 ? NAN : (float)(p / (divisor * (overlap ? n : 1)));
    }
    return OCT_OK;
}
