/* The Eulerian force, and its division and smoothing along the depth in one pass. */
#ifndef OCT_ANALYSIS_WARP_CUDA_WARP_FORCE_CUH
#define OCT_ANALYSIS_WARP_CUDA_WARP_FORCE_CUH

#include "analysis/warp/cuda_warp_gauss.cuh"
extern "C" {
#include "analysis/warp/levels.h"
}

#define OCT_WARP_FORCE_LINES 4u /* of a block, each for a warp */
#define OCT_WARP_FORCE_THREADS (OCT_WARP_FORCE_LINES * OCT_WARP_LANES)
#define OCT_WARP_FORCE_SPAN (OCT_WARP_FORCE_THREADS / OCT_WARP_FORCE_LINES * OCT_WARP_OWN)

/* What the force is of; fixed: NaN where it is not compared. */
struct oct_warp_fields {
    const float *warped, *change, *fixed; /* T(h), J + log J, R */
    float lambda, kappa;
};

/* f, and what it is divided by, in units of the finest spacing. */
static __device__ inline float oct_warp_force_at(const struct oct_warp_box &box,
                                                 const struct oct_warp_fields &of,
                                                 const struct oct_warp_place &p, float force[3])
{
    const float r = of.fixed[p.at];
    const float off = r == r ? of.warped[p.at] - r : 0.0f;
    float steep = 0;
    for (int i = 0; i < 3; i++) {
        const struct oct_warp_slope slope = oct_warp_slope_of(box, p, i);
        const float by = box.per[i];
        const float of_warped = by * oct_warp_along(of.warped, slope);
        const float of_change = by * oct_warp_along(of.change, slope);
        force[i] = off * of_warped - of.lambda * of_change;
        steep = fmaf(of_warped, of_warped, steep);
    }
    return steep + of.kappa * off * off + 2 * of.lambda + 1e-4f;
}

/* Undivided, for each voxel, per voxel. */
static __global__ void __launch_bounds__(OCT_WARP_THREADS)
    oct_warp_force_kernel(struct oct_warp_box box, struct oct_warp_fields of, float *force)
{
    const size_t i = (size_t)blockIdx.x * OCT_WARP_THREADS + threadIdx.x;
    if (i >= box.n)
        return;
    float here[3];
    oct_warp_force_at(box, of, oct_warp_place_of(box, i), here);
    for (int k = 0; k < 3; k++)
        force[k * box.n + i] = here[k] * box.units[k];
}

/* ---- divided and smoothed along the depth ---- */

/* A block's part of the depth; 8 divides it. */
struct oct_warp_span {
    uint32_t own, n_spans, pitch; /* pitch: of a line in shared memory */
};

static inline struct oct_warp_span oct_warp_span_of(uint32_t side, uint32_t radius)
{
    struct oct_warp_span span;
    const uint32_t n = oct_warp_groups(side, OCT_WARP_FORCE_SPAN);
    span.own = oct_warp_groups(oct_warp_groups(side, n), OCT_WARP_OWN) * OCT_WARP_OWN;
    span.n_spans = oct_warp_groups(side, span.own);
    span.pitch = OCT_WARP_SPREAD(span.own + 2 * radius) + 1;
    return span;
}

static inline size_t oct_warp_span_bytes(const struct oct_warp_span &span)
{
    return (OCT_WARP_TAPS + (size_t)3 * OCT_WARP_FORCE_LINES * span.pitch) * sizeof(float);
}

static inline uint64_t oct_warp_span_blocks(const struct oct_warp_box &box,
                                            const struct oct_warp_span &span)
{
    return (uint64_t)oct_warp_groups(box.side[1], OCT_WARP_FORCE_LINES) * box.side[0] *
           span.n_spans;
}

/* Of a block: B-scan, first A-line, first depth. */
static __device__ inline struct oct_warp_place oct_warp_span_place(const struct oct_warp_box &box,
                                                                   const struct oct_warp_span &span)
{
    const uint32_t n_j = oct_warp_groups(box.side[1], OCT_WARP_FORCE_LINES);
    const uint32_t rest = blockIdx.x / span.n_spans;
    return {{rest / n_j, rest % n_j * OCT_WARP_FORCE_LINES, blockIdx.x % span.n_spans * span.own},
            0};
}

/* A line, its neighbours in the other two axes, and by what their differences are multiplied. */
struct oct_warp_line {
    uint32_t at, low[2], high[2]; /* first voxels */
    float by[2];
};

static __device__ inline struct oct_warp_line oct_warp_line_of(const struct oct_warp_box &box,
                                                               const uint32_t x[2])
{
    struct oct_warp_line line;
    line.at = oct_warp_at(box, x[0], x[1], 0);
    for (int i = 0; i < 2; i++) {
        const bool first = x[i] == 0, last = x[i] + 1 == box.side[i];
        line.low[i] = line.at - (first ? 0 : box.step[i]);
        line.high[i] = line.at + (last ? 0 : box.step[i]);
        line.by[i] = (first || last ? 1.0f : 0.5f) * box.per[i];
    }
    return line;
}

/* The quotient at depth d of a line: as oct_warp_force_at has it, with what is the same in the
 * whole line computed before. */
static __device__ inline void oct_warp_quotient(const struct oct_warp_box &box,
                                                const struct oct_warp_fields &of,
                                                const struct oct_warp_line &line, uint32_t d,
                                                float quotient[3])
{
    const uint32_t low = d > 0 ? d - 1 : 0, high = min(d + 1, box.side[2] - 1);
    const float r = of.fixed[line.at + d], by = (high - low == 2 ? 0.5f : 1.0f) * box.per[2];
    const float off = r == r ? of.warped[line.at + d] - r : 0.0f;
    const uint32_t lows[3] = {line.low[0] + d, line.low[1] + d, line.at + low};
    const uint32_t highs[3] = {line.high[0] + d, line.high[1] + d, line.at + high};
    float force[3], under = fmaf(of.kappa * off, off, 2 * of.lambda + 1e-4f);
#pragma unroll
    for (int i = 0; i < 3; i++) {
        const float each = i < 2 ? line.by[i] : by;
        const float of_warped = each * (of.warped[highs[i]] - of.warped[lows[i]]);
        const float of_change = each * (of.change[highs[i]] - of.change[lows[i]]);
        force[i] = off * of_warped - of.lambda * of_change;
        under = fmaf(of_warped, of_warped, under);
    }
    const float over = __fdividef(OCT_WARP_GAIN, under);
#pragma unroll
    for (int i = 0; i < 3; i++)
        quotient[i] = over * force[i];
}

/* The quotients of a block's lines and of `radius` depths more at both ends; a warp for a line. */
static __device__ inline void oct_warp_load_spans(const struct oct_warp_box &box,
                                                  const struct oct_warp_fields &of,
                                                  const struct oct_warp_span &span,
                                                  const struct oct_warp_place &first,
                                                  uint32_t radius, float *lines)
{
    const uint32_t n = span.own + 2 * radius, own = threadIdx.x / OCT_WARP_LANES;
    const int32_t begin = (int32_t)first.x[2] - (int32_t)radius;
    const uint32_t x[2] = {first.x[0], min(first.x[1] + own, box.side[1] - 1)};
    const struct oct_warp_line line = oct_warp_line_of(box, x);
    const uint32_t lane = threadIdx.x % OCT_WARP_LANES, apart = OCT_WARP_FORCE_LINES * span.pitch;
    float *to = lines + own * span.pitch + OCT_WARP_SPREAD(lane);
    for (uint32_t i = lane; i < n; i += OCT_WARP_LANES, to += OCT_WARP_SPREAD(OCT_WARP_LANES)) {
        float quotient[3];
        oct_warp_quotient(box, of, line, oct_warp_inside(begin + (int32_t)i, box.side[2]),
                          quotient);
#pragma unroll
        for (uint32_t k = 0; k < 3; k++)
            to[k * apart] = quotient[k];
    }
}

/* The sums take the place of the first `own` values of their lines. */
static __device__ inline void oct_warp_smooth_spans(const struct oct_warp_span &span,
                                                    const float *taps, uint32_t radius,
                                                    float *lines)
{
    const uint32_t n_groups = span.own / OCT_WARP_OWN, line = threadIdx.x / n_groups;
    const uint32_t first = threadIdx.x % n_groups * OCT_WARP_OWN;
    const bool has_own = line < OCT_WARP_FORCE_LINES;
    for (uint32_t k = 0; k < 3; k++) {
        float *values = lines + (k * OCT_WARP_FORCE_LINES + line) * span.pitch;
        float sums[OCT_WARP_OWN];
        if (has_own)
            oct_warp_smooth(
                taps, radius,
                [values, first](uint32_t t, uint32_t i) {
                    return values[OCT_WARP_SPREAD(first + t) + i];
                },
                sums);
        __syncthreads();
        if (!has_own)
            continue;
#pragma unroll
        for (uint32_t i = 0; i < OCT_WARP_OWN; i++)
            values[OCT_WARP_SPREAD(first) + i] = sums[i];
    }
    __syncthreads();
}

static __global__ void __launch_bounds__(OCT_WARP_FORCE_THREADS)
    oct_warp_drive_kernel(struct oct_warp_box box, struct oct_warp_fields of,
                          struct oct_warp_span span, struct oct_warp_taps g, float *v,
                          const struct oct_warp_course *course)
{
    OCT_SHARED(float, shared);
    if (oct_warp_is_over(course))
        return;
    float *taps = shared, *lines = shared + OCT_WARP_TAPS;
    const struct oct_warp_place first = oct_warp_span_place(box, span);
    oct_warp_load_taps(g, OCT_WARP_FORCE_THREADS, taps);
    oct_warp_load_spans(box, of, span, first, g.radius, lines);
    __syncthreads();
    oct_warp_smooth_spans(span, taps, g.radius, lines);
    const uint32_t line = threadIdx.x / OCT_WARP_LANES, j = first.x[1] + line;
    if (j >= box.side[1])
        return;
    const uint32_t n = min(span.own, box.side[2] - first.x[2]), lane = threadIdx.x % OCT_WARP_LANES;
    for (uint32_t k = 0; k < 3; k++) {
        const float *from =
            lines + (k * OCT_WARP_FORCE_LINES + line) * span.pitch + OCT_WARP_SPREAD(lane);
        float *to = v + k * box.n + oct_warp_at(box, first.x[0], j, first.x[2]);
        for (uint32_t d = lane; d < n; d += OCT_WARP_LANES, from += OCT_WARP_SPREAD(OCT_WARP_LANES))
            to[d] = *from;
    }
}

#endif
