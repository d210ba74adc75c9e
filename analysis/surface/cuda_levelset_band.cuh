/* The band: which voxels are in Sigma, in raster order, and the segments that cover them. A segment
 * is SPAN voxels of an A-line, begun at the first voxel in Sigma that no segment before it covers.
 * A warp counts, prefix sums over A-lines place, a warp writes. */
#ifndef OCT_ANALYSIS_SURFACE_CUDA_LEVELSET_BAND_CUH
#define OCT_ANALYSIS_SURFACE_CUDA_LEVELSET_BAND_CUH

#include "analysis/surface/cuda_levelset_types.cuh"

#define OCT_LEVELSET_SPAN 6u
#define OCT_LEVELSET_EACH 8u /* entries a thread scans */
#define OCT_LEVELSET_SCANNED (OCT_LEVELSET_THREADS * OCT_LEVELSET_EACH)

struct oct_levelset_run {
    uint32_t at;    /* its first voxel, in the box */
    uint32_t first; /* the number of that in the band */
    uint32_t mask;  /* bit k: voxel k is in Sigma */
};

/* The first of the voxels `bits` from `first` on that is not covered up to `until`, as a bit's
 * number; -1: all are. */
static __device__ inline int oct_levelset_uncovered(uint32_t bits, uint32_t first, uint32_t until)
{
    const uint32_t covered = until > first ? until - first : 0;
    return covered >= 32 ? -1 : __ffs((int)(bits & OCT_LEVELSET_ALL << covered)) - 1;
}

/* columns: low half voxels, high half segments, of each A-line. */
static __global__ void oct_levelset_count_kernel(struct oct_levelset_shape s, const float *phi,
                                                 uint64_t *columns,
                                                 struct oct_levelset_facts *facts)
{
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t c = blockIdx.x * OCT_LEVELSET_WARPS + threadIdx.x / 32;
    uint32_t n_voxels = 0, n_segments = 0, n_bad = 0, until = 0;
    if (c >= s.n_columns)
        return;
    const float *column = phi + (size_t)c * s.n_d;
    for (uint32_t first = 0; first < s.n_d; first += 32) {
        const float x = first + lane < s.n_d ? fabsf(column[first + lane]) : FLT_MAX;
        const uint32_t bits = __ballot_sync(OCT_LEVELSET_ALL, x <= s.delta);
        n_bad += !(x <= FLT_MAX);
        n_voxels += (uint32_t)__popc(bits);
        for (int i; (i = oct_levelset_uncovered(bits, first, until)) >= 0; n_segments++)
            until = first + (uint32_t)i + OCT_LEVELSET_SPAN;
    }
    if (n_bad > 0)
        atomicAdd(&facts->n_bad, n_bad);
    if (lane == 0)
        columns[c] = (uint64_t)n_segments << 32 | n_voxels;
}

/* ---- prefix sums ---- */

/* The sum of all threads' before this one's, and of all. */
static __device__ inline uint64_t oct_levelset_before(uint64_t own, uint64_t *total)
{
    __shared__ uint64_t sums[2][OCT_LEVELSET_THREADS]; /* up to a thread, included */
    const unsigned i = threadIdx.x;
    unsigned from = 0;
    __syncthreads(); /* of a call before this */
    sums[0][i] = own;
    for (unsigned d = 1; d < OCT_LEVELSET_THREADS; d *= 2, from ^= 1) {
        __syncthreads();
        sums[from ^ 1][i] = sums[from][i] + (i >= d ? sums[from][i - d] : 0);
    }
    __syncthreads();
    *total = sums[from][OCT_LEVELSET_THREADS - 1];
    return sums[from][i] - own;
}

/* The sum of entries `at` and on that a thread scans. */
static __device__ inline uint64_t oct_levelset_own(const uint64_t *entries, uint32_t n, uint64_t at)
{
    uint64_t sum = 0;
    for (uint64_t i = at; i < at + OCT_LEVELSET_EACH && i < n; i++)
        sum += entries[i];
    return sum;
}

/* Replaces a thread's entries by `before` and what comes before them. */
static __device__ inline void oct_levelset_place(uint64_t *entries, uint32_t n, uint64_t at,
                                                 uint64_t before)
{
    for (uint64_t i = at; i < at + OCT_LEVELSET_EACH && i < n; i++) {
        const uint64_t own = entries[i];
        entries[i] = before;
        before += own;
    }
}

static __global__ void oct_levelset_totals_kernel(const uint64_t *columns, uint32_t n,
                                                  uint64_t *totals)
{
    const uint64_t at =
        (uint64_t)blockIdx.x * OCT_LEVELSET_SCANNED + threadIdx.x * OCT_LEVELSET_EACH;
    uint64_t total;
    oct_levelset_before(oct_levelset_own(columns, n, at), &total);
    if (threadIdx.x == 0)
        totals[blockIdx.x] = total;
}

/* One block: totals become what comes before each. */
static __global__ void oct_levelset_spine_kernel(uint64_t *totals, uint32_t n,
                                                 struct oct_levelset_facts *facts)
{
    uint64_t carry = 0;
    for (uint64_t first = 0; first < n; first += OCT_LEVELSET_SCANNED) {
        const uint64_t at = first + threadIdx.x * OCT_LEVELSET_EACH;
        uint64_t total;
        const uint64_t before = oct_levelset_before(oct_levelset_own(totals, n, at), &total);
        oct_levelset_place(totals, n, at, carry + before);
        carry += total;
    }
    if (threadIdx.x == 0) {
        facts->n_band = (uint32_t)carry;
        facts->n_segments = (uint32_t)(carry >> 32);
    }
}

static __global__ void oct_levelset_places_kernel(uint64_t *columns, uint32_t n,
                                                  const uint64_t *totals)
{
    const uint64_t at =
        (uint64_t)blockIdx.x * OCT_LEVELSET_SCANNED + threadIdx.x * OCT_LEVELSET_EACH;
    uint64_t total;
    const uint64_t before = oct_levelset_before(oct_levelset_own(columns, n, at), &total);
    oct_levelset_place(columns, n, at, totals[blockIdx.x] + before);
}

/* ---- lists ---- */

/* index: of each voxel of the band. segments: NULL: they are not wanted. */
static __global__ void oct_levelset_list_kernel(struct oct_levelset_shape s, const float *phi,
                                                const uint64_t *columns, uint32_t *index,
                                                struct oct_levelset_run *segments)
{
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t c = blockIdx.x * OCT_LEVELSET_WARPS + threadIdx.x / 32;
    uint32_t until = 0;
    if (c >= s.n_columns)
        return;
    const float *column = phi + (size_t)c * s.n_d;
    const uint32_t at = c * s.n_d;
    uint32_t voxel = (uint32_t)columns[c], segment = (uint32_t)(columns[c] >> 32);
    for (uint32_t first = 0; first < s.n_d; first += 32) {
        const uint32_t d = first + lane;
        const bool is_in = d < s.n_d && fabsf(column[d]) <= s.delta;
        const uint32_t bits = __ballot_sync(OCT_LEVELSET_ALL, is_in);
        if (is_in)
            index[voxel + (uint32_t)__popc(bits & ((1u << lane) - 1))] = at + d;
        for (int i; segments && (i = oct_levelset_uncovered(bits, first, until)) >= 0; segment++) {
            const uint32_t from = first + (uint32_t)i, k = from + lane;
            until = from + OCT_LEVELSET_SPAN;
            const bool covers = k < until && k < s.n_d && fabsf(column[k]) <= s.delta;
            const uint32_t mask = __ballot_sync(OCT_LEVELSET_ALL, covers);
            const uint32_t before = (uint32_t)__popc(bits & ((1u << i) - 1));
            if (lane == 0)
                segments[segment] = {at + from, voxel + before, mask};
        }
        voxel += (uint32_t)__popc(bits);
    }
}

#endif
