/* What the kernels of level sets share: the box, what is found out on the device, sums of warps. */
#ifndef OCT_ANALYSIS_SURFACE_CUDA_LEVELSET_TYPES_CUH
#define OCT_ANALYSIS_SURFACE_CUDA_LEVELSET_TYPES_CUH

#include "kernels/device/cuda_launch.cuh"

#include <cfloat>
#include <cmath>
#include <cstdint>

#define OCT_LEVELSET_THREADS 256u
#define OCT_LEVELSET_WARPS (OCT_LEVELSET_THREADS / 32)
#define OCT_LEVELSET_ALL 0xffffffffu /* lanes of a warp */
#define OCT_LEVELSET_INF 0x7f800000u /* bits of infinity */
#define OCT_LEVELSET_NONE (-1.0f)    /* in place of a D: there is none */
#define OCT_LEVELSET_BLOCKS 132u     /* of kernels whose threads go through the whole band */
#define OCT_LEVELSET_PATCH_MOST 7

struct oct_levelset_shape {
    uint32_t n_b, n_j, n_d;
    uint32_t n_columns;     /* n_b * n_j */
    uint32_t patch, radius; /* n = 2 radius + 1 */
    float delta;            /* the largest float that is not above delta */
};

/* Found out on the device; zeroed before. */
struct oct_levelset_facts {
    unsigned long long n_patches;
    uint32_t n_band, n_segments;
    uint32_t n_bad; /* voxels that are not finite */
    /* Of the search for the median. */
    uint32_t found, rank, n_ranked; /* found: bits of the lower one in the middle, */
    uint32_t next;                  /* and of the other */
    float base, c2;
    uint32_t largest; /* bits of the largest sum of weights */
};

enum oct_levelset_mode { OCT_LEVELSET_SUMS, OCT_LEVELSET_OWN_STEP, OCT_LEVELSET_COMMON_STEP };

static __host__ __device__ inline uint32_t oct_levelset_groups(uint64_t n, uint32_t each)
{
    return (uint32_t)((n + each - 1) / each);
}

static __device__ inline uint32_t oct_levelset_bits(float x)
{
    return (uint32_t)__float_as_int(x);
}

static __device__ inline float oct_levelset_value(uint32_t bits)
{
    return __int_as_float((int)bits);
}

static __device__ inline uint32_t oct_levelset_clamp(int32_t i, uint32_t n)
{
    return i < 0 ? 0u : (uint32_t)i < n ? (uint32_t)i : n - 1;
}

/* In the box, or the nearest voxel of it. */
static __device__ inline size_t oct_levelset_at(const struct oct_levelset_shape &s, int32_t b,
                                                int32_t j, int32_t d)
{
    return ((size_t)oct_levelset_clamp(b, s.n_b) * s.n_j + oct_levelset_clamp(j, s.n_j)) * s.n_d +
           oct_levelset_clamp(d, s.n_d);
}

template <class T> static __device__ inline T oct_levelset_warp_sum(T x)
{
    for (int lanes = 16; lanes > 0; lanes /= 2)
        x += __shfl_xor_sync(OCT_LEVELSET_ALL, x, lanes);
    return x;
}

template <class T> static __device__ inline T oct_levelset_warp_max(T x)
{
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        const T other = __shfl_xor_sync(OCT_LEVELSET_ALL, x, lanes);
        x = x < other ? other : x;
    }
    return x;
}

/* A limit up to `high` that exactly `rank` values do not exceed; where equal values allow none, the
 * least that more do not. count(limit): how many do not, of all lanes. */
template <class COUNT>
static __device__ inline uint32_t oct_levelset_limit(uint32_t high, uint32_t rank, COUNT count)
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

/* ---- weights and steps ---- */

/* w; near: |x - y|^2 / c1. */
static __device__ inline float oct_levelset_weight(float near, float distance, float c2)
{
    return expf(-(near + distance / c2));
}

/* phi_x after a step; sum: sum_y w; pull: sum_y w (phi_y - phi_x). */
static __device__ inline float oct_levelset_step(enum oct_levelset_mode mode, float phi, float sum,
                                                 float pull, uint32_t largest)
{
    if (mode == OCT_LEVELSET_COMMON_STEP)
        return largest > 0 ? phi + pull / oct_levelset_value(largest) : phi;
    return phi + pull / (1 + sum);
}

/* The largest sum of a block's warps, to facts. All threads. */
static __device__ inline void oct_levelset_note_sum(float sum, struct oct_levelset_facts *facts)
{
    __shared__ float sums[OCT_LEVELSET_WARPS];
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    float most = 0;
    for (unsigned i = 0; i < OCT_LEVELSET_WARPS; i++)
        most = sums[i] > most ? sums[i] : most;
    atomicMax(&facts->largest, oct_levelset_bits(most));
}

/* The end of a step, a warp a voxel: sum and pull are a lane's parts. next: where phi_x goes; NULL:
 * the warp has no voxel, and its parts are 0. All threads. */
static __device__ inline void oct_levelset_end_step(enum oct_levelset_mode mode, float phi,
                                                    float sum, float pull, float *next,
                                                    struct oct_levelset_facts *facts)
{
    sum = oct_levelset_warp_sum(sum);
    pull = oct_levelset_warp_sum(pull);
    if (next && threadIdx.x % 32 == 0 && mode != OCT_LEVELSET_SUMS)
        *next = oct_levelset_step(mode, phi, sum, pull, facts->largest);
    if (mode != OCT_LEVELSET_COMMON_STEP)
        oct_levelset_note_sum(sum, facts);
}

#endif
