/* The translation of two volumes: ZNCC over all shifts at once, by transforms of small copies. */
#include "analysis/warp/bscans_parts.h"
#include "kernels/device/fftw_planner.h"
#include "kernels/device/workers.h"
#include "pipeline/base/aligned.h"

#include <fftw3.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SIDE 64u

/* Shifts beyond this part of a side leave too little to be sure of. */
#define MOST_SHIFT 0.75

struct binned {
    uint32_t bin[3], n[3]; /* voxels of a bin; bins a side */
    int padded[3];
    size_t n_padded, n_spectrum;
    /* [padded[0]][padded[1]][padded[2] + 2]: values less their mean, then their spectrum; fixed,
     * moving. */
    float *grid[2];
    /* [n[0] + 1][n[1] + 1][n[2] + 1] sums of the values and of their squares before a corner. */
    double *sum[2], *square[2];
};

static void finish(struct binned *b)
{
    for (unsigned v = 0; v < 2; v++) {
        free(b->grid[v]);
        free(b->sum[v]);
        free(b->square[v]);
    }
}

static bool init(struct binned *b, const uint32_t dims[3])
{
    memset(b, 0, sizeof(*b));
    for (unsigned i = 0; i < 3; i++) {
        b->bin[i] = (dims[i] + MOST_SIDE - 1) / MOST_SIDE;
        b->n[i] = dims[i] / b->bin[i];
        b->padded[i] = 1;
        while ((uint32_t)b->padded[i] < 2 * b->n[i])
            b->padded[i] *= 2;
    }
    size_t rows = (size_t)b->padded[0] * (size_t)b->padded[1];
    size_t corners = (size_t)(b->n[0] + 1) * (b->n[1] + 1) * (b->n[2] + 1);
    b->n_padded = rows * (size_t)(b->padded[2] + 2);
    b->n_spectrum = rows * (size_t)(b->padded[2] / 2 + 1);
    for (unsigned v = 0; v < 2; v++) {
        b->grid[v] = oct_aligned_calloc(64, b->n_padded, sizeof(float));
        b->sum[v] = calloc(corners, sizeof(double));
        b->square[v] = calloc(corners, sizeof(double));
    }
    return b->grid[0] && b->grid[1] && b->sum[0] && b->sum[1] && b->square[0] && b->square[1];
}

/* ---- small copies ---- */

struct binning {
    struct binned *b;
    const float *volume[2];
    const uint32_t *dims;
};

static double bin_mean(const struct binned *b, const float *volume, const uint32_t dims[3],
                       uint32_t i, uint32_t j, uint32_t k)
{
    double sum = 0;

    for (uint32_t z = i * b->bin[0]; z < (i + 1) * b->bin[0]; z++)
        for (uint32_t y = j * b->bin[1]; y < (j + 1) * b->bin[1]; y++) {
            const float *row = volume + ((size_t)z * dims[1] + y) * dims[2] + k * b->bin[2];
            for (uint32_t x = 0; x < b->bin[2]; x++)
                sum += (double)row[x];
        }
    return sum / ((double)b->bin[0] * b->bin[1] * b->bin[2]);
}

static float *row_of(const struct binned *b, unsigned v, uint32_t i, uint32_t j)
{
    return b->grid[v] + ((size_t)i * (size_t)b->padded[1] + j) * (size_t)(b->padded[2] + 2);
}

static void bin_slice(void *context, unsigned piece, unsigned worker)
{
    const struct binning *binning = context;
    struct binned *b = binning->b;
    const unsigned v = piece / b->n[0], i = piece % b->n[0];

    (void)worker;
    for (uint32_t j = 0; j < b->n[1]; j++) {
        float *row = row_of(b, v, i, j);
        for (uint32_t k = 0; k < b->n[2]; k++)
            row[k] = (float)bin_mean(b, binning->volume[v], binning->dims, i, j, k);
    }
}

static size_t corner(const struct binned *b, uint32_t i, uint32_t j, uint32_t k)
{
    return ((size_t)i * (b->n[1] + 1) + j) * (b->n[2] + 1) + k;
}

/* Mean 0, variance 1. */
static void standardise(struct binned *b, unsigned v)
{
    const double n = (double)b->n[0] * b->n[1] * b->n[2];
    double sum = 0, squares = 0;

    for (uint32_t i = 0; i < b->n[0]; i++)
        for (uint32_t j = 0; j < b->n[1]; j++)
            for (uint32_t k = 0; k < b->n[2]; k++)
                sum += (double)row_of(b, v, i, j)[k];
    for (uint32_t i = 0; i < b->n[0]; i++)
        for (uint32_t j = 0; j < b->n[1]; j++)
            for (uint32_t k = 0; k < b->n[2]; k++) {
                const double x = (double)row_of(b, v, i, j)[k] - sum / n;
                squares += x * x;
            }
    const double scale = squares > 0 ? sqrt(n / squares) : 0;
    for (uint32_t i = 0; i < b->n[0]; i++)
        for (uint32_t j = 0; j < b->n[1]; j++)
            for (uint32_t k = 0; k < b->n[2]; k++)
                row_of(b, v, i, j)[k] = (float)(((double)row_of(b, v, i, j)[k] - sum / n) * scale);
}

static void integrate(struct binned *b, unsigned v)
{
    for (uint32_t i = 0; i < b->n[0]; i++)
        for (uint32_t j = 0; j < b->n[1]; j++) {
            const float *row = row_of(b, v, i, j);
            double line = 0, squares = 0;
            for (uint32_t k = 0; k < b->n[2]; k++) {
                line += (double)row[k];
                squares += (double)row[k] * (double)row[k];
                const size_t at = corner(b, i + 1, j + 1, k + 1), up = corner(b, i, j + 1, k + 1),
                             left = corner(b, i + 1, j, k + 1), both = corner(b, i, j, k + 1);
                b->sum[v][at] = line + b->sum[v][up] + b->sum[v][left] - b->sum[v][both];
                b->square[v][at] =
                    squares + b->square[v][up] + b->square[v][left] - b->square[v][both];
            }
        }
}

/* ---- the best shift ---- */

/* Grids become spectra, and the first of them the products P(d) = sum over p of f(p) g(p + d), not
 * scaled, at d modulo the padded sides. */
static bool correlate(struct binned *b)
{
    fftwf_complex *spectrum[2] = {(fftwf_complex *)b->grid[0], (fftwf_complex *)b->grid[1]};

    oct_fftw_planner_lock();
    fftwf_plan forward = fftwf_plan_dft_r2c_3d(b->padded[0], b->padded[1], b->padded[2], b->grid[0],
                                               spectrum[0], FFTW_ESTIMATE);
    fftwf_plan inverse = fftwf_plan_dft_c2r_3d(b->padded[0], b->padded[1], b->padded[2],
                                               spectrum[0], b->grid[0], FFTW_ESTIMATE);
    oct_fftw_planner_unlock();
    if (forward && inverse) {
        fftwf_execute_dft_r2c(forward, b->grid[0], spectrum[0]);
        fftwf_execute_dft_r2c(forward, b->grid[1], spectrum[1]);
        for (size_t i = 0; i < b->n_spectrum; i++) {
            const float *f = spectrum[0][i], *g = spectrum[1][i];
            const float re = f[0] * g[0] + f[1] * g[1], im = f[0] * g[1] - f[1] * g[0];
            spectrum[0][i][0] = re;
            spectrum[0][i][1] = im;
        }
        fftwf_execute_dft_c2r(inverse, spectrum[0], b->grid[0]);
    }
    oct_fftw_planner_lock();
    fftwf_destroy_plan(forward);
    fftwf_destroy_plan(inverse);
    oct_fftw_planner_unlock();
    return forward && inverse;
}

/* Sum over the box first .. end - 1 of an integral volume. */
static double box(const struct binned *b, const double *sums, const uint32_t first[3],
                  const uint32_t end[3])
{
    double total = 0;

    for (unsigned c = 0; c < 8; c++) {
        size_t at = corner(b, c & 4 ? end[0] : first[0], c & 2 ? end[1] : first[1],
                           c & 1 ? end[2] : first[2]);
        total += (__builtin_popcount(c) & 1 ? 1 : -1) * sums[at];
    }
    return total;
}

/* ZNCC times the root of the part that overlaps; -1: one of them is constant there. */
static double value_at(const struct binned *b, const int32_t d[3])
{
    uint32_t first[2][3], end[2][3];
    double n = 1, all = 1, s[2], v[2];
    size_t at = 0;

    for (unsigned i = 0; i < 3; i++) {
        const uint32_t side = b->n[i], by = (uint32_t)abs(d[i]), length = side - by;
        first[0][i] = d[i] < 0 ? by : 0;
        first[1][i] = d[i] < 0 ? 0 : by;
        for (unsigned g = 0; g < 2; g++)
            end[g][i] = first[g][i] + length;
        n *= length;
        all *= side;
        const size_t padded = (size_t)b->padded[i];
        at = at * (i == 2 ? padded + 2 : padded) + (d[i] < 0 ? padded - by : by);
    }
    for (unsigned g = 0; g < 2; g++) {
        s[g] = box(b, b->sum[g], first[g], end[g]);
        v[g] = box(b, b->square[g], first[g], end[g]) - s[g] * s[g] / n;
        if (!(v[g] > 1e-6 * n))
            return -1;
    }
    const double scale = (double)b->padded[0] * b->padded[1] * b->padded[2];
    return ((double)b->grid[0][at] / scale - s[0] * s[1] / n) / sqrt(v[0] * v[1]) * sqrt(n / all);
}

static void find(const struct binned *b, struct oct_warp_shift *place)
{
    int32_t most[3], d[3];
    double best = -2;

    for (unsigned i = 0; i < 3; i++)
        most[i] = (int32_t)(MOST_SHIFT * b->n[i]);
    for (d[0] = -most[0]; d[0] <= most[0]; d[0]++)
        for (d[1] = -most[1]; d[1] <= most[1]; d[1]++)
            for (d[2] = -most[2]; d[2] <= most[2]; d[2]++) {
                const double value = value_at(b, d);
                if (value > best) {
                    best = value;
                    for (unsigned i = 0; i < 3; i++)
                        place->at[i] = d[i] * (int32_t)b->bin[i];
                }
            }
}

enum oct_err oct_warp_bscans_place(const uint32_t dims[3], const float *fixed, const float *moving,
                                   struct oct_workers *workers, struct oct_warp_shift *place,
                                   struct oct_error *err)
{
    struct binned b;
    struct binning binning = {.b = &b, .volume = {fixed, moving}, .dims = dims};
    bool ok = init(&b, dims);

    *place = (struct oct_warp_shift){0};
    if (ok) {
        oct_workers_run(workers, 2 * b.n[0], bin_slice, &binning);
        for (unsigned v = 0; v < 2; v++) {
            standardise(&b, v);
            integrate(&b, v);
        }
        ok = correlate(&b);
    }
    if (ok)
        find(&b, place);
    finish(&b);
    return ok ? OCT_OK
              : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the translation of two volumes");
}
