#include "analysis/warp/bscans_parts.h"
#include "kernels/device/workers.h"
#include "numeric/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A B-scan has a counterpart where its score is this part of the way from that of B-scans that do
 * not belong to the median of all, and is above what noise alone gives: six standard deviations,
 * where one of NOISE_AREA pixels is independent once they are smoothed (bscans_fit.c). What lies
 * beyond the ends of the moving volume is most like its first or last B-scan: there a score below
 * that of nine tenths of the others has none either. */
#define PART_OF_USUAL 0.25
#define NOISE_AREA 12.6
#define LEAST_SCORE 0.1
#define MOST_OF_NOISE 0.5

#define LEAST_OVERLAP 0.1

enum oct_err oct_warp_overlap_check(double part, struct oct_error *err)
{
    if (part >= LEAST_OVERLAP)
        return OCT_OK;
    return oct_fail(err, OCT_E_ARG,
                    "%.0f %% of the fixed volume lies in the moving one after alignment; at least "
                    "%.0f %% are needed",
                    100 * part, 100 * LEAST_OVERLAP);
}

static bool is_constant(const float *values, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (values[i] != values[0])
            return false;
    return true;
}

/* ---- what is no counterpart ---- */

/* At the first or last B-scan of the moving volume, or beyond. */
static bool is_at_end(const struct oct_warp_bscan *bscans, uint32_t n, uint32_t b)
{
    const double place = b + bscans[b].shift[0];
    return place <= 0 || place >= n - 1.0;
}

/* sorted: [V], scratch. */
static void judge(struct oct_warp_bscan *bscans, const uint32_t dims[3], float unlike,
                  double *sorted)
{
    const uint32_t n = dims[0];
    const double noise = fmin(6 * sqrt(NOISE_AREA / ((double)dims[1] * dims[2])), MOST_OF_NOISE);
    uint32_t n_inside = 0;

    for (uint32_t b = 0; b < n; b++)
        if (!isnan(bscans[b].score) && !is_at_end(bscans, n, b))
            sorted[n_inside++] = bscans[b].score;
    oct_doubles_sort(sorted, n_inside);
    const double usual = n_inside ? sorted[n_inside / 2] : (double)unlike;
    const double low = fmin((double)unlike, usual);
    const double least = fmax(fmax(LEAST_SCORE, noise), low + PART_OF_USUAL * (usual - low));
    const double least_at_end = n_inside ? fmax(least, sorted[n_inside / 10]) : least;
    for (uint32_t b = 0; b < n; b++)
        if (bscans[b].score < (is_at_end(bscans, n, b) ? least_at_end : least))
            bscans[b].score = NAN;
}

/* Shifts of B-scans without a counterpart: between those of the next ones that have one. */
static void fill_gaps(struct oct_warp_bscan *bscans, uint32_t n)
{
    uint32_t before = UINT32_MAX;

    for (uint32_t b = 0; b <= n; b++) {
        if (b < n && isnan(bscans[b].score))
            continue;
        for (uint32_t gap = before == UINT32_MAX ? 0 : before + 1; gap < b; gap++) {
            const uint32_t left = before == UINT32_MAX ? b : before, right = b == n ? left : b;
            if (left == n)
                return; /* none has one */
            const double t = right == left ? 0 : (double)(gap - left) / (double)(right - left);
            for (unsigned i = 0; i < 3; i++)
                bscans[gap].shift[i] = (1 - t) * bscans[left].shift[i] + t * bscans[right].shift[i];
        }
        before = b;
    }
}

/* The part of the fixed volume that has a place in the moving one. */
static double overlap_of(const struct oct_warp_bscan *bscans, const uint32_t dims[3])
{
    double sum = 0;

    for (uint32_t b = 0; b < dims[0]; b++) {
        double part = isnan(bscans[b].score) ? 0 : 1;
        for (unsigned i = 1; i < 3; i++)
            part *= fmax(0, 1 - fabs(bscans[b].shift[i]) / dims[i]);
        sum += part;
    }
    return sum / dims[0];
}

/* ---- all ---- */

static void reach_of(const struct oct_warp_bscans_setup *setup, uint32_t reach[3])
{
    reach[0] = setup->reach_bscans ? setup->reach_bscans : 24;
    reach[1] = setup->reach_lines ? setup->reach_lines : 32;
    reach[2] = setup->reach_depth ? setup->reach_depth : 16;
}

uint64_t oct_warp_bscans_bytes(const struct oct_warp_bscans_setup *setup)
{
    const uint32_t *dims = setup->dims;
    const unsigned n_threads = setup->workers ? oct_workers_n_threads(setup->workers) + 1 : 1;
    const uint64_t bscan = (uint64_t)dims[1] * dims[2] * sizeof(float);
    const uint64_t fit = bscan * (2 * (uint64_t)dims[0] + n_threads);
    uint32_t reach[3];

    reach_of(setup, reach);
    const uint64_t scores = oct_warp_scores_bytes(dims, reach, n_threads);
    const uint64_t most = scores > fit ? scores : fit;
    return most > OCT_WARP_PLACE_BYTES ? most : OCT_WARP_PLACE_BYTES;
}

enum oct_err oct_warp_bscans(const struct oct_warp_bscans_setup *setup, const float *fixed,
                             const float *moving, struct oct_warp_bscan *bscans,
                             struct oct_error *err)
{
    const uint32_t *dims = setup->dims;
    uint32_t reach[3];
    const double price = setup->jump_price > 0 ? setup->jump_price : 0.01;
    const size_t n = (size_t)dims[0] * dims[1] * dims[2];
    struct oct_warp_scores scores = {0};
    struct oct_warp_shift place, *path = NULL;
    double *sorted = NULL;

    if (is_constant(fixed, n) || is_constant(moving, n))
        return oct_fail(err, OCT_E_ARG, "the %s volume is constant",
                        is_constant(fixed, n) ? "fixed" : "moving");
    reach_of(setup, reach);
    path = malloc(dims[0] * sizeof(*path));
    sorted = malloc(dims[0] * sizeof(*sorted));
    if (!path || !sorted) {
        free(path);
        free(sorted);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for B-scans");
    }
    enum oct_err e = oct_warp_bscans_place(dims, fixed, moving, setup->workers, &place, err);
    if (!e)
        e = oct_warp_scores_make(&scores, dims, reach, &place, fixed, moving, setup->workers, err);
    if (!e)
        e = oct_warp_bscans_path(&scores, price, path, err);
    free(scores.score);
    if (!e)
        e = oct_warp_bscans_fit(dims, fixed, moving, path, setup->workers, bscans, err);
    if (!e) {
        judge(bscans, dims, scores.unlike, sorted);
        fill_gaps(bscans, dims[0]);
        e = oct_warp_overlap_check(overlap_of(bscans, dims), err);
    }
    free(path);
    free(sorted);
    return e;
}
