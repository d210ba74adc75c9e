/* What the kernels of level sets share: the box, what is found out on the device, sums of warps;
 * the band, and the median of its voxels' ranks.
 *
 * The band: which voxels are in Sigma, in raster order, and the segments that cover them. A segment
 * is SPAN voxels of an A-line, begun at the first voxel in Sigma that no segment before it covers.
 * A warp counts, prefix sums over A-lines place, a warp writes. */
#ifndef OCT_ANALYSIS_LAYERS_DENOISE_CUDA_LEVELSET_BAND_CUH
#define OCT_ANALYSIS_LAYERS_DENOISE_CUDA_LEVELSET_BAND_CUH

#include "kernels/device/cuda_launch.cuh"

#include <cfloat>
#include <cmath>
#include <cstdint>

#define THREADS 256u
#define WARPS (THREADS / 32)
#define SCANNERS 1024u        /* threads of the block that adds up A-lines */
#define BLOCKS 132u           /* of kernels whose threads go through the whole band */
#define ALL_LANES 0xffffffffu /* of a warp */
#define INFINITE 0x7f800000u  /* bits of infinity */
#define NONE (-1.0f)          /* in place of a D: there is none */
#define SPAN 6u               /* voxels of a segment */
#define BINS 256u             /* as threads */
#define PASSES 4

/* Found out on the device; zeroed before. */
struct facts {
    unsigned long long n_patches;
    uint32_t n_band, n_segments;
    uint32_t n_bad;                 /* voxels that are not finite */
    uint32_t found, rank, n_ranked; /* of a search for a rank: bits so far */
    uint32_t middle[2];             /* bits of both in the middle of the ranks */
    float base, c2;
    uint32_t largest; /* bits of the largest sum of weights */
};

enum mode { SUMS, OWN_STEP, COMMON_STEP };

struct segment {
    uint32_t at;    /* its first voxel, in the box */
    uint32_t first; /* the number of that in the band */
    uint32_t mask;  /* bit k: voxel k is in Sigma */
};

/* Entries of a row, see cuda_levelset_local.cuh: where y lies from x, and |x - y|^2 / c1. */
struct offset {
    int32_t step;
    float near;
};

/* All that kernels know; memory of the device. */
struct level {
    uint32_t n_b, n_j, n_d;
    uint32_t n_columns;     /* n_b * n_j */
    uint32_t patch, radius; /* n = 2 radius + 1 */
    float delta;            /* the largest float that is not above delta */
    float *phi, *now;       /* of the box, as it came and after the last step */
    uint64_t *columns;      /* [n_columns] */
    uint32_t *bins;
    struct facts *facts;

    /* Of the band. */
    uint32_t n_band, n_segments;
    uint32_t *index;     /* [n_band] in the box */
    float *ranks, *next; /* [n_band] the rank-th smallest D; phi after a step */

    /* LOCAL. Of a tile: A-lines [side][side], a row of them every row_pitch floats, an A-line every
     * pitch. */
    uint32_t reach, width;      /* 2 reach + 1 */
    uint32_t n_groups, n_units; /* of depths; A-lines times groups */
    uint32_t n_row;             /* entries of a row */
    uint32_t side, depth, pitch, row_pitch;
    struct offset *offsets;   /* [n_row] */
    struct segment *segments; /* [n_segments] */
    float *rows;              /* [voxels of the segments `first` to n_kept more][n_row] */
    uint32_t first, n_kept;   /* n_kept 0: there are none */

    /* FULL. */
    uint32_t n_tiles;      /* of patches */
    uint32_t n_values;     /* of a patch, as a multiple of VALUES: the rest is 0 */
    uint32_t patch_values; /* n^3 */
    uint32_t kept, n_keys; /* keys of a list in the end, and room for them */
    float *patches;        /* [n_tiles][n_values][TILE] */
    float *by_number;      /* [n_band] sums of patches */
    float *sums;           /* the same, rising */
    uint32_t *order;       /* [n_band] numbers of the voxels */
    uint64_t *keys;        /* [n_band][n_keys] */
    uint32_t *n_found;     /* [n_band] */
    uint64_t *limits;      /* [n_band]: the largest key kept, UINT64_MAX before there are enough */
};

static __host__ __device__ inline uint32_t groups(uint64_t n, uint32_t each)
{
    return (uint32_t)((n + each - 1) / each);
}

static __device__ inline uint32_t bits_of(float x)
{
    return (uint32_t)__float_as_int(x);
}

static __device__ inline float value_of(uint32_t bits)
{
    return __int_as_float((int)bits);
}

static __device__ inline uint32_t clamp(int32_t i, uint32_t n)
{
    return i < 0 ? 0u : (uint32_t)i < n ? (uint32_t)i : n - 1;
}

/* In the box, or the nearest voxel of it. */
static __device__ inline size_t voxel_at(const struct level &l, int32_t b, int32_t j, int32_t d)
{
    return ((size_t)clamp(b, l.n_b) * l.n_j + clamp(j, l.n_j)) * l.n_d + clamp(d, l.n_d);
}

struct place {
    int32_t b, j, d;
};

static __device__ inline struct place place_of(const struct level &l, uint32_t at)
{
    const uint32_t line = at / l.n_d;
    return {(int32_t)(line / l.n_j), (int32_t)(line % l.n_j), (int32_t)(at % l.n_d)};
}

template <class T> static __device__ inline T warp_sum(T x)
{
    for (int lanes = 16; lanes > 0; lanes /= 2)
        x += __shfl_xor_sync(ALL_LANES, x, lanes);
    return x;
}

template <class T> static __device__ inline T warp_max(T x)
{
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        const T other = __shfl_xor_sync(ALL_LANES, x, lanes);
        x = x < other ? other : x;
    }
    return x;
}

/* A limit up to `high` that exactly `rank` values do not exceed; where equal values allow none, the
 * least that more do not. count(limit): how many do not, of all lanes. */
template <class COUNT>
static __device__ inline uint32_t limit_of(uint32_t high, uint32_t rank, COUNT count)
{
    uint32_t low = 0;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2, n = count(middle);
        if (n == rank)
            return middle;
        if (n > rank)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* ---- the band ---- */

/* The first of the voxels `bits` from `first` on that is not covered up to `until`, as a bit's
 * number; -1: all are. */
static __device__ inline int uncovered(uint32_t bits, uint32_t first, uint32_t until)
{
    const uint32_t covered = until > first ? until - first : 0;
    return covered >= 32 ? -1 : __ffs((int)(bits & ALL_LANES << covered)) - 1;
}

/* columns: low half voxels, high half segments, of each A-line. */
static __global__ void count_kernel(struct level l)
{
    const uint32_t lane = threadIdx.x % 32, c = blockIdx.x * WARPS + threadIdx.x / 32;
    uint32_t n_voxels = 0, n_segments = 0, n_bad = 0, until = 0;
    if (c >= l.n_columns)
        return;
    const float *column = l.phi + (size_t)c * l.n_d;
    for (uint32_t first = 0; first < l.n_d; first += 32) {
        const float x = first + lane < l.n_d ? fabsf(column[first + lane]) : FLT_MAX;
        const uint32_t bits = __ballot_sync(ALL_LANES, x <= l.delta);
        n_bad += !(x <= FLT_MAX);
        n_voxels += (uint32_t)__popc(bits);
        for (int i; (i = uncovered(bits, first, until)) >= 0; n_segments++)
            until = first + (uint32_t)i + SPAN;
    }
    if (n_bad > 0)
        atomicAdd(&l.facts->n_bad, n_bad);
    if (lane == 0)
        l.columns[c] = (uint64_t)n_segments << 32 | n_voxels;
}

/* One block: columns become what comes before each; a thread adds up neighbouring ones. */
static __global__ void places_kernel(struct level l)
{
    __shared__ uint64_t sums[2][SCANNERS]; /* up to a thread, included */
    const unsigned i = threadIdx.x;
    const uint64_t each = groups(l.n_columns, SCANNERS), first = i * each;
    const uint64_t end = first + each < l.n_columns ? first + each : l.n_columns;
    uint64_t own = 0;
    unsigned from = 0;
    for (uint64_t k = first; k < end; k++)
        own += l.columns[k];
    sums[0][i] = own;
    for (unsigned d = 1; d < SCANNERS; d *= 2, from ^= 1) {
        __syncthreads();
        sums[from ^ 1][i] = sums[from][i] + (i >= d ? sums[from][i - d] : 0);
    }
    __syncthreads();
    uint64_t before = sums[from][i] - own;
    for (uint64_t k = first; k < end; k++) {
        const uint64_t here = l.columns[k];
        l.columns[k] = before;
        before += here;
    }
    if (i < SCANNERS - 1)
        return;
    l.facts->n_band = (uint32_t)before;
    l.facts->n_segments = (uint32_t)(before >> 32);
}

/* Of each voxel of the band the index, and segments for LOCAL. */
static __global__ void list_kernel(struct level l, bool is_local)
{
    const uint32_t lane = threadIdx.x % 32, c = blockIdx.x * WARPS + threadIdx.x / 32;
    uint32_t until = 0;
    if (c >= l.n_columns)
        return;
    const float *column = l.phi + (size_t)c * l.n_d;
    const uint32_t at = c * l.n_d;
    uint32_t voxel = (uint32_t)l.columns[c], number = (uint32_t)(l.columns[c] >> 32);
    for (uint32_t first = 0; first < l.n_d; first += 32) {
        const uint32_t d = first + lane;
        const bool is_in = d < l.n_d && fabsf(column[d]) <= l.delta;
        const uint32_t bits = __ballot_sync(ALL_LANES, is_in);
        if (is_in)
            l.index[voxel + (uint32_t)__popc(bits & ((1u << lane) - 1))] = at + d;
        for (int i; is_local && (i = uncovered(bits, first, until)) >= 0; number++) {
            const uint32_t from = first + (uint32_t)i, k = from + lane;
            until = from + SPAN;
            const bool covers = k < until && k < l.n_d && fabsf(column[k]) <= l.delta;
            const uint32_t mask = __ballot_sync(ALL_LANES, covers);
            const uint32_t before = (uint32_t)__popc(bits & ((1u << i) - 1));
            if (lane == 0)
                l.segments[number] = {at + from, voxel + before, mask};
        }
        voxel += (uint32_t)__popc(bits);
    }
}

/* ---- base ---- */

/* The exact median of the ranks' D, by radix selection of either one in the middle: a histogram of
 * eight bits and the search in it, four times. Counts are integers: their order does not matter. */

/* Adds to bins the values whose bits so far are those found. ranks: NONE is left out. */
static __global__ void bins_kernel(struct level l, int pass)
{
    __shared__ uint32_t counts[BINS];
    const unsigned shift = 24 - 8 * (unsigned)pass;
    const uint32_t found = pass > 0 ? l.facts->found : 0;
    counts[threadIdx.x] = 0;
    __syncthreads();
    for (uint64_t i = blockIdx.x * THREADS + threadIdx.x; i < l.n_band; i += BLOCKS * THREADS) {
        const uint32_t bits = bits_of(l.ranks[i]);
        if (bits <= INFINITE && (uint64_t)bits >> (shift + 8) == (uint64_t)found >> (shift + 8))
            atomicAdd(&counts[bits >> shift & 0xff], 1u);
    }
    __syncthreads();
    if (counts[threadIdx.x])
        atomicAdd(&l.bins[threadIdx.x], counts[threadIdx.x]);
}

/* The bin of the rank sought, the lower or the upper middle one; empties the bins. One block. */
static __global__ void narrow_kernel(struct level l, int pass, uint32_t upper)
{
    __shared__ uint32_t sums[BINS];
    sums[threadIdx.x] = l.bins[threadIdx.x];
    l.bins[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    uint32_t total = 0, bin = 0;
    for (unsigned i = 0; i < BINS; i++)
        total += sums[i];
    if (total == 0)
        return;
    if (pass == 0) {
        l.facts->n_ranked = total;
        l.facts->found = 0;
        l.facts->rank = (total - 1 + upper) / 2;
    }
    uint32_t rank = l.facts->rank;
    while (bin < BINS - 1 && rank >= sums[bin])
        rank -= sums[bin++];
    l.facts->rank = rank;
    l.facts->found |= bin << (24 - 8 * pass);
    l.facts->middle[upper] = l.facts->found;
}

/* base and c2; one thread. given: c2, or 0. */
static __global__ void settle_kernel(struct level l, double beta, double given)
{
    const double low = (double)value_of(l.facts->middle[0]);
    const double base =
        l.facts->n_ranked > 0 ? (low + (double)value_of(l.facts->middle[1])) / 2 : 0;
    const double c2 = given > 0 ? given : beta * base;
    l.facts->base = (float)base;
    l.facts->c2 = c2 > (double)FLT_MAX             ? FLT_MAX
                  : c2 > 0 && c2 < (double)FLT_MIN ? FLT_MIN
                                                   : (float)c2;
}

/* ---- weights and steps ---- */

/* w; near: |x - y|^2 / c1. */
static __device__ inline float weight_of(float near, float distance, float c2)
{
    return expf(-(near + distance / c2));
}

/* The end of a step, a warp a voxel: sum, sum_y w, and pull, sum_y w (phi_y - phi_x), are a lane's
 * parts. next: where phi_x goes; NULL: the warp has no voxel, and its parts are 0. All threads: the
 * largest sum goes to facts. */
static __device__ inline void end_step(enum mode mode, float phi, float sum, float pull,
                                       float *next, struct facts *facts)
{
    __shared__ float sums[WARPS];
    sum = warp_sum(sum);
    pull = warp_sum(pull);
    if (threadIdx.x % 32 == 0) {
        const uint32_t largest = mode == COMMON_STEP ? facts->largest : 0;
        sums[threadIdx.x / 32] = sum;
        if (next && mode == OWN_STEP)
            *next = phi + pull / (1 + sum);
        else if (next && mode == COMMON_STEP)
            *next = largest > 0 ? phi + pull / value_of(largest) : phi;
    }
    __syncthreads();
    if (threadIdx.x > 0 || mode == COMMON_STEP)
        return;
    float most = 0;
    for (unsigned i = 0; i < WARPS; i++)
        most = sums[i] > most ? sums[i] : most;
    atomicMax(&facts->largest, bits_of(most));
}

#endif
