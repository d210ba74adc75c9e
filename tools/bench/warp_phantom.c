#include "tools/bench/warp_phantom.h"

#include "kernels/device/workers.h"

#include <math.h>
#include <stdlib.h>

#define PI 3.14159265358979323846
#define PERIOD 64u /* of the coefficients, a power of two */
#define N_COEFFICIENTS (PERIOD * PERIOD * PERIOD)
#define CONTRAST 0.8
#define NOISE 0.02
#define MEAN_128 2.14 /* voxels at a side of 128; less in smaller volumes */
#define BORDER 8u
#define MOST_ERROR 8 /* of the histogram, voxels */
#define N_BINS 4096u

static const double knots[] = {4, 12}; /* voxels from one coefficient to the next */
#define N_SCALES (sizeof(knots) / sizeof(knots[0]))

static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static double uniform(uint64_t number)
{
    return ((double)(mix(number) >> 11) + 0.5) * 0x1p-53;
}

static double normal(uint64_t number)
{
    return sqrt(-2 * log(uniform(2 * number))) * cos(2 * PI * uniform(2 * number + 1));
}

/* ---- the texture ---- */

/* The four cubic B-splines that are not 0 at t of 0 to 1 between two knots. */
static void weights_of(double t, double w[4])
{
    w[0] = (1 - t) * (1 - t) * (1 - t) / 6;
    w[1] = (3 * t * t * t - 6 * t * t + 4) / 6;
    w[2] = (-3 * t * t * t + 3 * t * t + 3 * t + 1) / 6;
    w[3] = t * t * t / 6;
}

static double spline(const float *coefficients, double step, const double at[3])
{
    double w[3][4], sum = 0;
    int64_t first[3];
    for (int axis = 0; axis < 3; axis++) {
        const double place = at[axis] / step, whole = floor(place);
        first[axis] = (int64_t)whole - 1;
        weights_of(place - whole, w[axis]);
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            const uint64_t row =
                ((uint64_t)(first[0] + i) % PERIOD * PERIOD + (uint64_t)(first[1] + j) % PERIOD) *
                PERIOD;
            double line = 0;
            for (int k = 0; k < 4; k++)
                line += w[2][k] * (double)coefficients[row + (uint64_t)(first[2] + k) % PERIOD];
            sum += w[0][i] * w[1][j] * line;
        }
    return sum;
}

static double texture(const float *coefficients, const double at[3])
{
    double sum = 0;
    for (unsigned i = 0; i < N_SCALES; i++)
        sum += spline(coefficients + (size_t)i * N_COEFFICIENTS, knots[i], at);
    return fmin(fmax(0.5 + CONTRAST * sum, 0), 1);
}

/* ---- the displacement ---- */

static bool make_waves(struct oct_bench_warp_phantom *p)
{
    for (unsigned c = 0; c < 3; c++)
        for (unsigned t = 0; t < OCT_BENCH_WARP_TERMS; t++)
            for (unsigned axis = 0; axis < 3; axis++) {
                const uint64_t number = (c * OCT_BENCH_WARP_TERMS + t) * 3 + axis;
                const double turns = 0.5 + uniform(1000 + 2 * number);
                const double phase = uniform(1001 + 2 * number);
                double *wave = p->wave[c][t][axis] = malloc(p->side * sizeof(*wave));
                for (uint32_t i = 0; wave && i < p->side; i++)
                    wave[i] = sin(2 * PI * (turns * i / p->side + phase));
                if (!wave)
                    return false;
            }
    return true;
}

static void displacement(const struct oct_bench_warp_phantom *p, const uint32_t at[3], double u[3])
{
    for (unsigned c = 0; c < 3; c++) {
        u[c] = 0;
        for (unsigned t = 0; t < OCT_BENCH_WARP_TERMS; t++)
            u[c] += p->wave[c][t][0][at[0]] * p->wave[c][t][1][at[1]] * p->wave[c][t][2][at[2]];
        u[c] *= p->amplitude;
    }
}

static double mean_length(const struct oct_bench_warp_phantom *p)
{
    double sum = 0, n = 0, u[3];
    for (uint32_t v = 0; v < p->side; v += 4)
        for (uint32_t m = 0; m < p->side; m += 4)
            for (uint32_t d = 0; d < p->side; d += 4, n++) {
                displacement(p, (uint32_t[3]){v, m, d}, u);
                sum += sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
            }
    return sum / n;
}

/* ---- the pair ---- */

struct making {
    struct oct_bench_warp_phantom *phantom;
    const float *coefficients;
};

static void make_plane(void *context, unsigned v, unsigned worker)
{
    const struct making *making = context;
    const struct oct_bench_warp_phantom *p = making->phantom;
    const uint64_t n = (uint64_t)p->side * p->side * p->side;
    (void)worker;
    for (uint32_t m = 0; m < p->side; m++)
        for (uint32_t d = 0; d < p->side; d++) {
            const size_t at = ((size_t)v * p->side + m) * p->side + d;
            double u[3];
            displacement(p, (uint32_t[3]){v, m, d}, u);
            const double here[3] = {v, m, d}, there[3] = {v - u[0], m - u[1], d - u[2]};
            p->moving[at] = (float)(texture(making->coefficients, here) + NOISE * normal(at));
            p->fixed[at] = (float)(texture(making->coefficients, there) + NOISE * normal(n + at));
        }
}

enum oct_err oct_bench_warp_phantom_make(struct oct_bench_warp_phantom *phantom, uint32_t side,
                                         struct oct_workers *workers, struct oct_error *err)
{
    const size_t n = (size_t)side * side * side;
    float *coefficients = malloc(N_SCALES * N_COEFFICIENTS * sizeof(*coefficients));
    *phantom = (struct oct_bench_warp_phantom){
        .side = side, .fixed = malloc(n * sizeof(float)), .moving = malloc(n * sizeof(float))};
    if (!coefficients || !phantom->fixed || !phantom->moving || !make_waves(phantom)) {
        free(coefficients);
        oct_bench_warp_phantom_finish(phantom);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for volumes of %u^3 voxels", side);
    }
    for (size_t i = 0; i < N_SCALES * N_COEFFICIENTS; i++)
        coefficients[i] = (float)(2 * uniform(UINT64_C(1) << 40 | i) - 1);
    phantom->amplitude = 1;
    phantom->mean = MEAN_128 * (side < 128 ? side / 128.0 : 1);
    phantom->amplitude = phantom->mean / mean_length(phantom);
    oct_workers_run(workers, side, make_plane, &(struct making){phantom, coefficients});
    free(coefficients);
    return OCT_OK;
}

void oct_bench_warp_phantom_finish(struct oct_bench_warp_phantom *phantom)
{
    free(phantom->fixed);
    free(phantom->moving);
    for (unsigned c = 0; c < 3; c++)
        for (unsigned t = 0; t < OCT_BENCH_WARP_TERMS; t++)
            for (unsigned axis = 0; axis < 3; axis++)
                free(phantom->wave[c][t][axis]);
    *phantom = (struct oct_bench_warp_phantom){0};
}

/* ---- what was found ---- */

void oct_bench_warp_phantom_error(const struct oct_bench_warp_phantom *phantom, const float *found,
                                  double *mean, double *p95)
{
    const uint32_t side = phantom->side, end = side - BORDER;
    const size_t n_all = (size_t)side * side * side;
    uint64_t bins[N_BINS] = {0}, n = 0, below = 0;
    double sum = 0, u[3];
    for (uint32_t v = BORDER; v < end; v++)
        for (uint32_t m = BORDER; m < end; m++)
            for (uint32_t d = BORDER; d < end; d++) {
                const size_t at = ((size_t)v * side + m) * side + d;
                double square = 0;
                displacement(phantom, (uint32_t[3]){v, m, d}, u);
                for (unsigned c = 0; c < 3; c++)
                    square += ((double)found[c * n_all + at] - u[c]) *
                              ((double)found[c * n_all + at] - u[c]);
                const double off = sqrt(square);
                bins[(unsigned)fmin(off * N_BINS / MOST_ERROR, N_BINS - 1)]++;
                sum += off;
                n++;
            }
    unsigned bin = 0;
    while ((below += bins[bin]) < (n * 95 + 99) / 100)
        bin++;
    *mean = sum / (double)n;
    *p95 = (bin + 1.0) * MOST_ERROR / N_BINS;
}
