#include "test/rig/torn_tissue.h"

#include <math.h>
#include <stddef.h>

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Uniform within -1 to 1. */
static float lattice(uint64_t seed, int64_t i, int64_t j, int64_t k)
{
    const uint64_t at = (uint64_t)(i * 73856093 + j) * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)k;
    return (float)(mix(seed + mix(at)) >> 40) * 0x1p-23F - 1;
}

/* A cubic B-spline over a lattice of random numbers: twice continuously differentiable. */
static void spline(double x, int64_t *first, float weight[4])
{
    const double t = x - floor(x);

    *first = (int64_t)floor(x) - 1;
    weight[0] = (float)((1 - t) * (1 - t) * (1 - t) / 6);
    weight[1] = (float)((3 * t * t * t - 6 * t * t + 4) / 6);
    weight[2] = (float)((-3 * t * t * t + 3 * t * t + 3 * t + 1) / 6);
    weight[3] = (float)(t * t * t / 6);
}

static float speckle(uint64_t seed, double y, double x, double z)
{
    int64_t i0, j0, k0;
    float wi[4], wj[4], wk[4], sum = 0;

    spline(y, &i0, wi);
    spline(x, &j0, wj);
    spline(z, &k0, wk);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            for (int k = 0; k < 4; k++)
                sum += wi[i] * wj[j] * wk[k] * lattice(seed, i0 + i, j0 + j, k0 + k);
    return sum;
}

/* Bands that bend, with speckle of 1.7 voxels and structure of 9. */
static double tissue_at(uint64_t seed, double y, double x, double z)
{
    const double bend = 4 * sin(0.045 * x + 0.3) + 3 * cos(0.05 * y);
    const double band = 0.5 + 0.25 * sin((z + bend) / 4);

    return band * (1 + 0.5 * (double)speckle(seed + 1, y / 9, x / 9, z / 9)) +
           0.6 * (double)speckle(seed, y / 1.7, x / 1.7, z / 1.7);
}

double oct_torn_tissue_bend(const struct oct_torn_tissue *tissue, double y, double x)
{
    const double pi = 3.14159265358979323846;

    return tissue->bend * sin(2 * pi * x / tissue->dims[1]) * cos(pi * y / tissue->dims[0]);
}

void oct_torn_tissue_draw(const struct oct_torn_tissue *tissue, double (*motion)[3], float *volume)
{
    const uint32_t *n = tissue->dims;
    uint64_t at = 0;

    for (uint32_t b = 0; b < n[0]; b++)
        for (uint32_t j = 0; j < n[1]; j++)
            for (uint32_t d = 0; d < n[2]; d++) {
                const double y = b + motion[b][0], x = j + motion[b][1],
                             z = d - motion[b][2] - oct_torn_tissue_bend(tissue, y, x);
                double noise = 0;
                for (unsigned i = 0; i < 4;
                     i++) /* four uniform ones: nearly normal, variance 4/3 */
                    noise += (double)lattice(tissue->noise_seed, 7, i, (int64_t)at);
                volume[at++] =
                    (float)(tissue_at(tissue->seed, y, x, z) + tissue->noise * noise * sqrt(0.75));
            }
}

/* A B-scan is wide enough to show what lies a little beside it. */
#define BEYOND 0.3

bool oct_torn_tissue_shift(uint32_t n_bscans, double (*fixed)[3], double (*moving)[3], uint32_t b,
                           double guess, double shift[3])
{
    const double y = b + fixed[b][0];
    double nearest = INFINITY;

    for (uint32_t m = 0; m + 1 < n_bscans; m++) {
        const double first = m + moving[m][0], second = m + 1 + moving[m + 1][0];
        const double t = (y - first) / (second - first);
        if (!(t >= -BEYOND && t <= 1 + BEYOND) || fabs(m + t - b - guess) >= nearest)
            continue;
        nearest = fabs(m + t - b - guess);
        shift[0] = m + t - b;
        for (unsigned i = 1; i < 3; i++) {
            const double motion = (1 - t) * moving[m][i] + t * moving[m + 1][i];
            shift[i] = i == 1 ? fixed[b][1] - motion : motion - fixed[b][2];
        }
    }
    return isfinite(nearest);
}
