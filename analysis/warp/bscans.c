#include "analysis/warp/bscans.h"

#include "analysis/warp/sample.h"
#include "kernels/device/workers.h"
#include "numeric/order.h"
#include "pipeline/base/wide.h"

#include <math.h>
#include <stdlib.h>

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

/* ---- what is no counterpart ---- */

/* At the first or last B-scan of the moving volume, or beyond. */
static bool is_at_end(const struct oct_warp_bscan *bscans, uint32_t n, uint32_t b)
{
    const double place = b + bscans[b].shift[0];
    return place <= 0 || place >= n - 1.0;
}

/* sorted: [V], scratch. */
static void judge_scores(struct oct_warp_bscan *bscans, const uint32_t dims[3], float unlike,
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
    for (uint32_t b = 0, left = n; b < n; b++) { /* left: the last one that has; n: none has */
        uint32_t right = b;
        while (right < n && isnan(bscans[right].score))
            right++;
        if (right == n && left == n)
            return;
        const uint32_t from = left < n ? left : right, to = right < n ? right : left;
        const double t = to > from && b < right ? (double)(b - from) / (double)(to - from) : 0;
        for (unsigned i = 0; i < 3 && right > b; i++)
            bscans[b].shift[i] = (1 - t) * bscans[from].shift[i] + t * bscans[to].shift[i];
        left = right == b ? b : left;
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
    const uint64_t fit = bscan * (2 * (uint64_t)dims[0] + 2 * n_threads);
    uint32_t reach[3];

    reach_of(setup, reach);
    const uint64_t scores = oct_warp_scores_bytes(dims, reach, n_threads);
    const uint64_t most = scores > fit ? scores : fit;
    return most > OCT_WARP_PLACE_BYTES ? most : OCT_WARP_PLACE_BYTES;
}

static enum oct_err check_contrast(const float *values, size_t n, const char *name,
                                   struct oct_error *err)
{
    for (size_t i = 1; i < n; i++)
        if (values[i] != values[0])
            return OCT_OK;
    return oct_fail(err, OCT_E_ARG, "the %s volume is constant", name);
}

enum oct_err oct_warp_bscans(const struct oct_warp_bscans_setup *setup, const float *fixed,
                             const float *moving, struct oct_warp_bscan *bscans,
                             struct oct_error *err)
{
    const uint32_t *dims = setup->dims;
    const double price = setup->jump_price > 0 ? setup->jump_price : 0.01;
    const size_t n = (size_t)dims[0] * dims[1] * dims[2];
    struct oct_warp_scores scores = {0};
    struct oct_warp_shift place, *path = malloc(dims[0] * sizeof(*path));
    double *sorted = malloc(dims[0] * sizeof(*sorted));
    uint32_t reach[3];

    reach_of(setup, reach);
    enum oct_err e = check_contrast(fixed, n, "fixed", err);
    e = e ? e : check_contrast(moving, n, "moving", err);
    if (!e && (!path || !sorted))
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for B-scans");
    e = e ? e : oct_warp_bscans_place(dims, fixed, moving, &place, err);
    e = e ? e
          : oct_warp_scores_make(&scores, dims, reach, &place, fixed, moving, setup->workers, err);
    e = e ? e : oct_warp_bscans_path(&scores, price, path, err);
    free(scores.score);
    e = e ? e : oct_warp_bscans_fit(dims, fixed, moving, path, setup->workers, bscans, err);
    if (!e) {
        judge_scores(bscans, dims, scores.unlike, sorted);
        fill_gaps(bscans, dims[0]);
        e = oct_warp_overlap_check(overlap_of(bscans, dims), err);
    }
    free(path);
    free(sorted);
    return e;
}

/* ---- what follows from the shifts ---- */

void oct_warp_bscans_displacement(const struct oct_warp_bscan *bscans, const uint32_t dims[3],
                                  float *displacement)
{
    const size_t n_bscan = (size_t)dims[1] * dims[2];

    for (unsigned i = 0; i < 3; i++)
        for (uint32_t b = 0; b < dims[0]; b++)
            for (size_t k = 0; k < n_bscan; k++)
                *displacement++ = (float)-bscans[b].shift[i];
}

/* Shifts are the same all over a B-scan: what is left of the determinant is d h / d b along b. */
void oct_warp_bscans_jacobian(const struct oct_warp_bscan *bscans, const uint32_t dims[3],
                              float *jacobian)
{
    const size_t n_bscan = (size_t)dims[1] * dims[2];

    for (uint32_t b = 0; b < dims[0]; b++) {
        const uint32_t low = b > 0 ? b - 1 : 0, high = b + 1 < dims[0] ? b + 1 : b;
        const double rise = bscans[high].shift[0] - bscans[low].shift[0];
        const float j = (float)(1 + (high > low ? rise / (high - low) : 0));
        for (size_t k = 0; k < n_bscan; k++)
            jacobian[b * n_bscan + k] = j;
    }
}

struct moving {
    const struct oct_warp_bscan *bscans;
    const uint32_t *dims;
    const float *moving;
    float *to; /* the aligned volume, or the displacement */
};

/* The weighted sum of four lines, moved along the depth. */
OCT_WIDE static void align_line(const float *const line[4], const float weight[4], uint32_t depth,
                                double shift, float *to)
{
    const int32_t whole = (int32_t)floor(shift), last = (int32_t)depth - 1;
    const float part = (float)(shift - floor(shift));
    for (int32_t d = 0; d <= last; d++) {
        const int32_t k = d + whole, low = k < 0 ? 0 : k < last ? k : last;
        const int32_t high = k < -1 ? 0 : k + 1 < last ? k + 1 : last;
        const float a = weight[0] * line[0][low] + weight[1] * line[1][low] +
                        weight[2] * line[2][low] + weight[3] * line[3][low];
        const float b = weight[0] * line[0][high] + weight[1] * line[1][high] +
                        weight[2] * line[2][high] + weight[3] * line[3][high];
        to[d] = a + part * (b - a);
    }
}

static void align_bscan(void *context, unsigned b, unsigned worker)
{
    const struct moving *m = context;
    const double *shift = m->bscans[b].shift;
    const uint32_t depth = m->dims[2];

    (void)worker;
    for (uint32_t j = 0; j < m->dims[1]; j++) {
        const struct oct_warp_cell c =
            oct_warp_cell_of(m->dims, (double[3]){b + shift[0], j + shift[1], 0});
        const float z = (float)c.part[0], y = (float)c.part[1];
        const float *first = m->moving + c.at;
        align_line(
            (const float *const[4]){first, first + c.row, first + c.plane, first + c.plane + c.row},
            (const float[4]){(1 - z) * (1 - y), (1 - z) * y, z * (1 - y), z * y}, depth, shift[2],
            m->to + ((size_t)b * m->dims[1] + j) * depth);
    }
}

void oct_warp_bscans_align(const struct oct_warp_bscan *bscans, const uint32_t dims[3],
                           const float *moving, struct oct_workers *workers, float *aligned)
{
    struct moving m = {bscans, dims, moving, aligned};
    oct_workers_run(workers, dims[0], align_bscan, &m);
}

/* y = x - u and h = y + shift, so that u becomes u - shift of the B-scan nearest to y. */
static void compose_bscan(void *context, unsigned b, unsigned worker)
{
    const struct moving *m = context;
    const size_t n_bscan = (size_t)m->dims[1] * m->dims[2], n = m->dims[0] * n_bscan;

    (void)worker;
    for (size_t k = b * n_bscan; k < (b + 1) * n_bscan; k++) {
        const double y = fmax(0, fmin(m->dims[0] - 1.0, round((double)b - (double)m->to[k])));
        const double *shift = m->bscans[(uint32_t)y].shift;
        for (unsigned i = 0; i < 3; i++)
            m->to[i * n + k] = (float)((double)m->to[i * n + k] - shift[i]);
    }
}

void oct_warp_bscans_compose(const struct oct_warp_bscan *bscans, const uint32_t dims[3],
                             struct oct_workers *workers, float *displacement)
{
    struct moving m = {bscans, dims, NULL, displacement};
    oct_workers_run(workers, dims[0], compose_bscan, &m);
}
