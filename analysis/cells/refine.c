#include "analysis/cells/find.h"
#include "pipeline/base/wide.h"

#include <string.h>

#define UNROLL _Pragma("GCC unroll 3")

typedef float vec __attribute__((vector_size(16))); /* any processor has it in some way */
typedef double halves __attribute__((vector_size(16)));

static const double pi = 3.14159265358979323846;

/* Where the samples of a circle lie along one axis, with its centre moved by -h, 0 and h: between
 * the pixel `at` and the next one, `share` of the way. */
struct along {
    int32_t at[3][OCT_CELLS_EDGE_SAMPLES];
    float share[3][OCT_CELLS_EDGE_SAMPLES];
};

void oct_cells_refiner_init(struct oct_cells_refiner *refiner,
                            const struct oct_cells_params *params)
{
    double radius[OCT_CELLS_MOST_CIRCLES];
    const unsigned n = oct_cells_circles(params, radius);
    *refiner = (struct oct_cells_refiner){
        .radius = params->radius,
        .smooth = params->smooth * params->radius,
        .least = 0.75 * radius[0],
        .most = 1.25 * radius[n - 1],
    };
    for (unsigned i = 0; i < OCT_CELLS_EDGE_SAMPLES; i++) {
        const double t = 2 * pi * i / OCT_CELLS_EDGE_SAMPLES;
        refiner->unit[2 * i] = (float)cos(t);
        refiner->unit[2 * i + 1] = (float)sin(t);
    }
}

/* unit: every other value. last: the largest `at`; beyond it, and before 0, the border is
 * repeated. */
static inline void find_samples(struct along *along, const float *unit, int32_t first,
                                const float *offset, float r, int32_t last)
{
    for (int j = 0; j < 3; j++)
        for (int i = 0; i < OCT_CELLS_EDGE_SAMPLES; i++) {
            const float t = offset[j] + r * unit[2 * i];
            const int32_t toward_0 = (int32_t)t, whole = toward_0 - ((float)toward_0 > t);
            const float share = t - (float)whole;
            const int32_t at = first + whole;
            along->share[j][i] = at < 0 ? 0.0f : at > last ? 1.0f : share;
            along->at[j][i] = at < 0 ? 0 : at > last ? last : at;
        }
}

/* gx of a pixel and of the next one, gy of both. */
static inline vec load(const float *gx, const float *gy)
{
    double two_x, two_y; /* loads of 8 bytes into halves of a register */
    memcpy(&two_x, gx, sizeof(two_x));
    memcpy(&two_y, gy, sizeof(two_y));
    return (vec)(halves){two_x, two_y};
}

/* m of the 9 circles of one radius: f[j * 3 + i] of x moved by i - 1, y by j - 1. */
static inline void sum_circles(const struct oct_cells_slopes *slopes, const float *unit,
                               const struct along *x, const struct along *y, float *f)
{
    vec sum[9] = {{0}};
    for (int i = 0; i < OCT_CELLS_EDGE_SAMPLES; i++) {
        const float c = unit[2 * i], s = unit[2 * i + 1];
        const vec left = {c, 0, s, 0}, rise = {-c, c, -s, s};
        vec weight[3];
        UNROLL
        for (int k = 0; k < 3; k++)
            weight[k] = left + x->share[k][i] * rise;
        UNROLL
        for (int j = 0; j < 3; j++) {
            const float *gx = slopes->gx + (size_t)y->at[j][i] * slopes->row;
            const float *gy = slopes->gy + (size_t)y->at[j][i] * slopes->row;
            const float *gx1 = gx + slopes->row, *gy1 = gy + slopes->row;
            UNROLL
            for (int k = 0; k < 3; k++) {
                const int32_t at = x->at[k][i];
                const vec above = load(gx + at, gy + at), below = load(gx1 + at, gy1 + at);
                sum[j * 3 + k] += weight[k] * (above + y->share[j][i] * (below - above));
            }
        }
    }
    for (int n = 0; n < 9; n++)
        f[n] = ((sum[n][0] + sum[n][1]) + (sum[n][2] + sum[n][3])) / OCT_CELLS_EDGE_SAMPLES;
}

OCT_WIDE void oct_cells_edge_means(const struct oct_cells_slopes *slopes, const float *unit,
                                   const struct oct_cells_place *place, double h, float f[27])
{
    const double x = floor(place->x), y = floor(place->y);
    struct along along_x, along_y;
    float u[3], v[3];
    for (int k = 0; k < 3; k++) {
        u[k] = (float)(place->x - x + h * (k - 1));
        v[k] = (float)(place->y - y + h * (k - 1));
    }
    for (int n = 0; n < 3; n++) {
        const float r = (float)(place->radius + h * (n - 1));
        find_samples(&along_x, unit, (int32_t)x, u, r, slopes->width - 2);
        find_samples(&along_y, unit + 1, (int32_t)y, v, r, slopes->height - 2);
        sum_circles(slopes, unit, &along_x, &along_y, f + (size_t)n * 9);
    }
}

void oct_cells_refine_edge(const struct oct_cells_refiner *refiner,
                           const struct oct_cells_slopes *slopes, struct oct_cells_place *place)
{
    place->radius = oct_cells_within(place->radius, refiner->least, refiner->most);
    for (int round = 0; round < OCT_CELLS_EDGE_ROUNDS; round++) {
        const double h = oct_cells_edge_side(round, refiner->radius);
        double step[3];
        float f[27];
        oct_cells_edge_means(slopes, refiner->unit, place, h, f);
        for (int n = 0; n < 27; n++)
            f[n] = fabsf(f[n]);
        oct_cells_edge_step(f, step);
        place->x += h * step[0];
        place->y += h * step[1];
        place->radius =
            oct_cells_within(place->radius + h * step[2], refiner->least, refiner->most);
    }
    place->radius = oct_cells_edge_radius(place->radius, refiner->smooth);
}

/* ---- B-splines ---- */

#define N OCT_CELLS_CONTROL_POINTS
#define SAMPLES OCT_CELLS_SPLINE_SAMPLES
#define A_SEGMENT (SAMPLES / N)
#define STEPS 20
#define STEP 0.02
#define DELTA 0.3 /* [R] */

/* Weights of the four control points of a segment at sample k, and of the derivative. */
struct weights {
    double a[4], b[4];
};

static struct weights weights_at(int k)
{
    const double s = (double)(k % A_SEGMENT) / A_SEGMENT, q = 1 - s;
    return (struct weights){.a = {q * q * q / 6, (3 * s * s * s - 6 * s * s + 4) / 6,
                                  (-3 * s * s * s + 3 * s * s + 3 * s + 1) / 6, s * s * s / 6},
                            .b = {-3 * q * q / 6, (9 * s * s - 12 * s) / 6,
                                  (-9 * s * s + 6 * s + 3) / 6, 3 * s * s / 6}};
}

/* Control point n of the four of sample k. */
static int control(int k, int n)
{
    return (k / A_SEGMENT + n + N - 1) % N;
}

void oct_cells_spline_circle(struct oct_cells_spline *spline, double radius)
{
    /* Control points z q^m, q = exp(2 pi i / 9), turn into samples z l_j q^m: least squares of one
     * complex number z. */
    double re = 0, im = 0, squares = 0;
    for (int j = 0; j < A_SEGMENT; j++) {
        double l_re = 0, l_im = 0;
        const double t = 2 * pi * j / SAMPLES;
        const struct weights w = weights_at(j);
        for (int n = 0; n < 4; n++) {
            l_re += w.a[n] * cos(2 * pi * (n - 1) / N);
            l_im += w.a[n] * sin(2 * pi * (n - 1) / N);
        }
        re += l_re * cos(t) + l_im * sin(t);
        im += l_re * sin(t) - l_im * cos(t);
        squares += l_re * l_re + l_im * l_im;
    }
    for (int m = 0; m < N; m++) {
        const double c = cos(2 * pi * m / N), s = sin(2 * pi * m / N);
        spline->x[m] = radius * (re * c - im * s) / squares;
        spline->y[m] = radius * (re * s + im * c) / squares;
    }
}

void oct_cells_spline_samples(const struct oct_cells_spline *spline,
                              struct oct_cells_spline_sample samples[SAMPLES])
{
    for (int k = 0; k < SAMPLES; k++) {
        struct oct_cells_spline_sample *p = &samples[k];
        const struct weights w = weights_at(k);
        *p = (struct oct_cells_spline_sample){0, 0, 0, 0};
        for (int n = 0; n < 4; n++) {
            const int c = control(k, n);
            p->x += w.a[n] * spline->x[c];
            p->y += w.a[n] * spline->y[c];
            p->dx += w.b[n] * spline->x[c];
            p->dy += w.b[n] * spline->y[c];
        }
    }
}

/* Adds what sample k contributes: outer, inner: the gradients delta outside and inside. */
static void add_sample(struct oct_cells_spline *gradient, const struct oct_cells_spline_sample *p,
                       struct oct_cells_slope outer, struct oct_cells_slope inner, double delta,
                       double scale, int k)
{
    const struct weights w = weights_at(k);
    const double length = sqrt(p->dx * p->dx + p->dy * p->dy), cube = length * length * length;
    const double ox = (double)outer.x / scale, oy = (double)outer.y / scale;
    const double ix = (double)inner.x / scale, iy = (double)inner.y / scale;
    for (int n = 0; n < 4; n++) {
        /* d(delta n)/dC: of a control point's x (first) and y. */
        const double a = w.a[n], b = w.b[n], skew = delta * p->dx * p->dy * b / cube;
        const double of_x = delta * (b / length - p->dx * p->dx * b / cube);
        const double of_y = delta * (b / length - p->dy * p->dy * b / cube);
        const int c = control(k, n);
        gradient->x[c] += ox * (a - skew) - oy * of_x - ix * (a + skew) - iy * of_x;
        gradient->y[c] += ox * of_y + oy * (a + skew) + ix * of_y - iy * (a - skew);
    }
}

void oct_cells_spline_gradient(const struct oct_cells_spline *spline,
                               const struct oct_cells_slopes *slopes, int32_t x, int32_t y,
                               double delta, double scale, struct oct_cells_spline *gradient)
{
    struct oct_cells_spline_sample samples[SAMPLES];
    *gradient = (struct oct_cells_spline){{0}, {0}};
    oct_cells_spline_samples(spline, samples);
    for (int k = 0; k < SAMPLES; k++) {
        const struct oct_cells_spline_sample *p = &samples[k];
        const double length = sqrt(p->dx * p->dx + p->dy * p->dy);
        if (!(length > 0))
            continue;
        const double nx = delta * p->dy / length, ny = -delta * p->dx / length;
        add_sample(gradient, p,
                   oct_cells_slope_at(slopes, x, y, (float)(p->x + nx), (float)(p->y + ny)),
                   oct_cells_slope_at(slopes, x, y, (float)(p->x - nx), (float)(p->y - ny)), delta,
                   scale, k);
    }
}

static bool is_within(const struct oct_cells_spline *spline, double reach)
{
    bool within = true;
    for (int m = 0; m < N; m++)
        within = within && hypot(spline->x[m], spline->y[m]) <= reach;
    return within; /* NaN is not */
}

void oct_cells_refine_spline(const struct oct_cells_slopes *slopes, double radius, double scale,
                             bool is_dark, int32_t x, int32_t y, struct oct_cells_place *place)
{
    struct oct_cells_spline spline, gradient;
    struct oct_cells_spline_sample samples[SAMPLES];
    double sum_x = 0, sum_y = 0, sum_r = 0;
    *place = (struct oct_cells_place){x, y, radius};
    oct_cells_spline_circle(&spline, radius);
    for (int step = 0; step < STEPS; step++) {
        oct_cells_spline_gradient(&spline, slopes, x, y, DELTA * radius, scale, &gradient);
        for (int m = 0; m < N; m++) {
            spline.x[m] += (is_dark ? STEP : -STEP) * gradient.x[m];
            spline.y[m] += (is_dark ? STEP : -STEP) * gradient.y[m];
        }
        if (!is_within(&spline, 2 * radius))
            return;
    }
    oct_cells_spline_samples(&spline, samples);
    for (int k = 0; k < SAMPLES; k++) {
        sum_x += samples[k].x / SAMPLES;
        sum_y += samples[k].y / SAMPLES;
    }
    for (int k = 0; k < SAMPLES; k++)
        sum_r += hypot(samples[k].x - sum_x, samples[k].y - sum_y) / SAMPLES;
    *place = (struct oct_cells_place){x + sum_x, y + sum_y, sum_r};
}
