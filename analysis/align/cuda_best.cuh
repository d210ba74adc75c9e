/* The largest score of a search, and those around it. */
#ifndef OCT_ANALYSIS_ALIGN_CUDA_BEST_CUH
#define OCT_ANALYSIS_ALIGN_CUDA_BEST_CUH

#include "analysis/align/cuda_search.cuh"
#include "kernels/device/cuda_stream.cuh"

#include <math.h>
extern "C" {
#include "analysis/align/matcher.h"
}

#define OCT_BEST_THREADS 256u

struct oct_candidate {
    float score;
    uint32_t place;
};

/* The larger one; of equals the first. A place of UINT32_MAX: none. */
static __device__ bool oct_best_is_better(struct oct_candidate a, struct oct_candidate b)
{
    if (a.place == UINT32_MAX || b.place == UINT32_MAX)
        return a.place != UINT32_MAX;
    return a.score > b.score || (a.score == b.score && a.place < b.place);
}

static __device__ bool oct_best_is_sought(const struct oct_search &w, uint32_t y, uint32_t x)
{
    return y >= w.skip_y && y < w.rows - w.skip_y && x >= w.skip_x && x < w.columns - w.skip_x;
}

static __device__ struct oct_match oct_best_match_at(const struct oct_search &w,
                                                     const float *scores, struct oct_candidate best)
{
    const float none = __int_as_float(0x7fc00000);
    const bool found = best.place != UINT32_MAX;
    const int y = found ? (int)(best.place / w.columns) : 0;
    const int x = found ? (int)(best.place % w.columns) : 0;
    struct oct_match match = {
        found ? w.dy + y : 0, found ? w.dx + x : 0, found ? best.score : none, none, {}};
    for (int k = 0; k < 9; k++) {
        const int v = y + k / 3 - 1, u = x + k % 3 - 1;
        const bool inside =
            found && v >= 0 && u >= 0 && oct_best_is_sought(w, (uint32_t)v, (uint32_t)u);
        match.around[k / 3][k % 3] = inside ? scores[(size_t)v * w.columns + (size_t)u] : none;
    }
    return match;
}

/* The largest score of each search; a block a search. */
static __global__ void oct_best_kernel(const struct oct_search *searches, const float *all_scores,
                                       struct oct_match *matches)
{
    OCT_SHARED(struct oct_candidate, part);
    const struct oct_search w = searches[blockIdx.x];
    const float *scores = all_scores + w.first;
    const uint32_t n = w.rows * w.columns, t = threadIdx.x;
    struct oct_candidate best = {0, UINT32_MAX};
    for (uint32_t k = t; k < n; k += OCT_BEST_THREADS) {
        const struct oct_candidate c = {scores[k], k};
        if (c.score == c.score && oct_best_is_sought(w, k / w.columns, k % w.columns) &&
            oct_best_is_better(c, best))
            best = c;
    }
    part[t] = best;
    for (uint32_t half = OCT_BEST_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t < half && oct_best_is_better(part[t + half], part[t]))
            part[t] = part[t + half];
    }
    if (t == 0)
        matches[blockIdx.x] = oct_best_match_at(w, scores, part[0]);
}

/* Samples of the scores of whole pictures, weighted: oct_match_significance. A block a search. */
static __global__ void oct_best_sample_kernel(const struct oct_search *searches,
                                              const float *all_scores, uint32_t height,
                                              uint32_t width, float *samples)
{
    const struct oct_search w = searches[blockIdx.x];
    const size_t n = (size_t)w.rows * w.columns;
    for (uint32_t k = threadIdx.x; k < OCT_MATCH_SAMPLES; k += OCT_BEST_THREADS) {
        const size_t at = (size_t)((uint64_t)k * n / OCT_MATCH_SAMPLES);
        const int dy = w.dy + (int)(at / w.columns), dx = w.dx + (int)(at % w.columns);
        const float y = 1 - (float)(dy < 0 ? -dy : dy) / (float)height;
        const float x = 1 - (float)(dx < 0 ? -dx : dx) / (float)width;
        const float score = all_scores[w.first + at];
        samples[(size_t)blockIdx.x * OCT_MATCH_SAMPLES + k] = atanhf(score > 0.999f    ? 0.999f
                                                                     : score < -0.999f ? -0.999f
                                                                                       : score) *
                                                              sqrtf(y * x);
    }
}

/* Queues the matches of n searches. */
static inline void oct_best_queue(struct oct_cuda_stream *stream,
                                  const struct oct_search *d_searches, const float *d_scores,
                                  unsigned n, struct oct_match *d_matches)
{
    OCT_LAUNCH((oct_best_kernel), dim3(n), dim3(OCT_BEST_THREADS),
               OCT_BEST_THREADS * sizeof(struct oct_candidate), stream->stream, d_searches,
               d_scores, d_matches);
}

#endif
