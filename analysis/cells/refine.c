#include "analysis/cells/refine.h"

#include "numeric/parabola.h"
#include "pipeline/base/wide.h"

#include <string.h>

#define SAMPLES OCT_CELLS_EDGE_SAMPLES
#define UNROLL _Pragma("GCC unroll 3")

typedef float vec __attribute__((vector_size(16))); /* any processor has it in some way */
typedef double halves __attribute__((vector_size(16)));

/* Where the samples of a circle lie along one axis, with its centre moved by -h, 0 and h: between
 * the pixel `at` and the next one, `share` of the way. */
struct along {
    int32_t at[3][SAMPLES];
    float share[3][SAMPLES];
};

void oct_cells_refiner_init(struct oct_cells_refiner *refiner,
                            const struct oct_cells_params *params,
                            const struct oct_cells_circles *circles)
{
    static const double pi = 3.14159265358979323846;
    *refiner = (struct oct_cells_refiner){
        .radius = params->radius,
        .smooth = params->smooth * params->radius,
        .least = 0.75 * circles->circle[0].radius,
        .most = 1.25 * circles->circle[circles->n - 1].radius,
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
        for (int i = 0; i < SAMPLES; i++) {
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
    for (int i = 0; i < SAMPLES; i++) {
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
        f[n] = ((sum[n][0] + sum[n][1]) + (sum[n][2] + sum[n][3])) / SAMPLES;
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

static double vertex(const float *at, size_t step)
{
    const double before = (double)*(at - step), middle = (double)*at, after = (double)at[step];
    if (before == 0 || after == 0)
        return 0;
    return oct_parabola_top(before * before, middle * middle, after * after);
}

void oct_cells_refine_peak(const float *score, size_t width, uint32_t x, uint32_t y,
                           struct oct_cells_place *place)
{
    const float *at = score + y * width + x;
    place->x = x + vertex(at, 1);
    place->y = y + vertex(at, width);
}
