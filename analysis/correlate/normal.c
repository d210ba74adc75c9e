#include "analysis/correlate/normal.h"

#include "pipeline/base/wide.h"

#include <math.h>
#include <string.h>

/* Side by side: vectors no larger than AVX2 has them, and two of each, as one would wait for each
 * addition. */
#define LANES 4u
#define STEP (2 * LANES)
typedef float floats __attribute__((vector_size(16), aligned(4)));
typedef double doubles __attribute__((vector_size(32)));
typedef uint8_t bytes __attribute__((vector_size(4), aligned(1)));
typedef int32_t integers __attribute__((vector_size(16)));
typedef int64_t longs __attribute__((vector_size(32)));

/* About a pivot. */
struct sums {
    uint64_t n;
    double sum, squares;
};

static void add_lanes(struct sums *sums, const doubles sum[2], const doubles squares[2])
{
    for (unsigned i = 0; i < STEP; i++) {
        sums->sum += sum[i / LANES][i % LANES];
        sums->squares += squares[i / LANES][i % LANES];
    }
}

/* n: whole steps. */
OCT_WIDE static void take_plain(struct sums *sums, const float *restrict from, float *restrict to,
                                size_t n, double pivot)
{
    doubles sum[2] = {{0}}, squares[2] = {{0}};
    for (size_t i = 0; i < n; i += STEP)
#pragma GCC unroll 2
        for (unsigned k = 0; k < 2; k++) {
            const floats v = *(const floats *)(from + i + k * LANES);
            const doubles d = __builtin_convertvector(v, doubles) - pivot;
            sum[k] += d;
            squares[k] += d * d;
            *(floats *)(to + i + k * LANES) = v;
        }
    sums->n += n;
    add_lanes(sums, sum, squares);
}

/* What is masked may be NaN: it is cut out of the sums, not multiplied by 0. */
OCT_WIDE static void take_masked(struct sums *sums, const float *restrict from,
                                 const uint8_t *restrict valid, float *restrict to, size_t n,
                                 double pivot)
{
    const floats none = {NAN, NAN, NAN, NAN};
    doubles sum[2] = {{0}}, squares[2] = {{0}};
    integers count[2] = {{0}};
    for (size_t i = 0; i < n; i += STEP)
#pragma GCC unroll 2
        for (unsigned k = 0; k < 2; k++) {
            const floats v = *(const floats *)(from + i + k * LANES);
            const bytes is = *(const bytes *)(valid + i + k * LANES);
            const integers keep =
                __builtin_convertvector(is, integers) != 0; /* all bits, or none */
            const longs wide = __builtin_convertvector(keep, longs);
            const doubles all = __builtin_convertvector(v, doubles) - pivot;
            const doubles d = (doubles)((longs)all & wide);
            sum[k] += d;
            squares[k] += d * d;
            count[k] -= keep;
            *(floats *)(to + i + k * LANES) =
                (floats)(((integers)v & keep) | ((integers)none & ~keep));
        }
    for (unsigned i = 0; i < STEP; i++)
        sums->n += (uint64_t)count[i / LANES][i % LANES];
    add_lanes(sums, sum, squares);
}

static void take_rest(struct sums *sums, const float *from, const uint8_t *valid, float *to,
                      size_t n, double pivot)
{
    for (size_t i = 0; i < n; i++) {
        const bool is_valid = !valid || valid[i];
        const double d = is_valid ? (double)from[i] - pivot : 0;
        sums->n += is_valid;
        sums->sum += d;
        sums->squares += d * d;
        to[i] = is_valid ? from[i] : NAN;
    }
}

void oct_normal_take(struct oct_normal *normal, const struct oct_picture *picture, bool keep_mean,
                     float *to)
{
    const size_t n_pixels = (size_t)picture->height * picture->width;
    const size_t steps = n_pixels - n_pixels % STEP;
    const double pivot = oct_picture_pivot(picture);
    const float *from = picture->pixels;
    const uint8_t *valid = picture->valid;
    struct sums sums = {0};
    if (valid)
        take_masked(&sums, from, valid, to, steps, pivot);
    else
        take_plain(&sums, from, to, steps, pivot);
    take_rest(&sums, from + steps, valid ? valid + steps : NULL, to + steps, n_pixels - steps,
              pivot);
    *normal = (struct oct_normal){.n_valid = sums.n, .scale = 1, .finite = isfinite(sums.squares)};
    if (sums.n == 0 || !normal->finite)
        return;
    const double n = (double)sums.n, mean = sums.sum / n; /* less the pivot */
    double square = sums.squares / n - mean * mean;       /* the variance */
    normal->usable = sums.squares > 0 && square > 0 && 10 * sums.n >= n_pixels;
    normal->offset = keep_mean ? 0 : pivot + mean;
    if (keep_mean)
        square += (pivot + mean) * (pivot + mean);
    if (square > 0)
        normal->scale = 1 / sqrt(square);
}
