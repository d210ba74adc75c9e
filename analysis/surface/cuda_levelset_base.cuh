/* base: the exact median of the ranks' D, by radix selection of the lower one in the middle: a
 * histogram of eight bits and the search in it, four times. Counts are integers: their order does
 * not matter. Of an even number the other one is the same, or the next larger one. Then c2. */
#ifndef OCT_ANALYSIS_SURFACE_CUDA_LEVELSET_BASE_CUH
#define OCT_ANALYSIS_SURFACE_CUDA_LEVELSET_BASE_CUH

#include "analysis/surface/cuda_levelset_types.cuh"

#define OCT_LEVELSET_BINS 256u /* as threads */
#define OCT_LEVELSET_PASSES 4
#define OCT_LEVELSET_LATER 0xffffffffu /* of what oct_levelset_next_kernel finds */

/* Adds to bins the values whose bits so far are those found. ranks: OCT_LEVELSET_NONE is left
 * out. */
static __global__ void oct_levelset_bins_kernel(const float *ranks, uint32_t n, int pass,
                                                const struct oct_levelset_facts *facts,
                                                uint32_t *bins)
{
    __shared__ uint32_t counts[OCT_LEVELSET_BINS];
    const unsigned shift = 24 - 8 * (unsigned)pass;
    const uint32_t found = facts->found;
    counts[threadIdx.x] = 0;
    __syncthreads();
    for (uint64_t i = blockIdx.x * OCT_LEVELSET_THREADS + threadIdx.x; i < n;
         i += OCT_LEVELSET_BLOCKS * OCT_LEVELSET_THREADS) {
        const uint32_t bits = oct_levelset_bits(ranks[i]);
        if (bits <= OCT_LEVELSET_INF &&
            (uint64_t)bits >> (shift + 8) == (uint64_t)found >> (shift + 8))
            atomicAdd(&counts[bits >> shift & 0xff], 1u);
    }
    __syncthreads();
    if (counts[threadIdx.x])
        atomicAdd(&bins[threadIdx.x], counts[threadIdx.x]);
}

/* The bin of the rank sought; empties the bins. One block. */
static __global__ void oct_levelset_narrow_kernel(int pass, struct oct_levelset_facts *facts,
                                                  uint32_t *bins)
{
    __shared__ uint32_t sums[OCT_LEVELSET_BINS];
    sums[threadIdx.x] = bins[threadIdx.x];
    bins[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    uint32_t total = 0, bin = 0;
    for (unsigned i = 0; i < OCT_LEVELSET_BINS; i++)
        total += sums[i];
    if (pass == 0)
        facts->n_ranked = total;
    uint32_t rank = pass == 0 ? (total > 0 ? (total - 1) / 2 : 0) : facts->rank;
    while (bin < OCT_LEVELSET_BINS - 1 && rank >= sums[bin])
        rank -= sums[bin++];
    facts->rank = rank;
    if (total > 0)
        facts->found |= bin << (24 - 8 * pass);
    if (pass < OCT_LEVELSET_PASSES - 1)
        return;
    const bool has_other = facts->n_ranked > 0 && facts->n_ranked % 2 == 0;
    facts->next = has_other && rank + 1 >= sums[bin] ? OCT_LEVELSET_LATER : facts->found;
}

/* The next larger one, where narrow left it open. */
static __global__ void oct_levelset_next_kernel(const float *ranks, uint32_t n,
                                                struct oct_levelset_facts *facts)
{
    __shared__ uint32_t least;
    const uint32_t found = facts->found;
    if (threadIdx.x == 0)
        least = OCT_LEVELSET_LATER;
    __syncthreads();
    for (uint64_t i = blockIdx.x * OCT_LEVELSET_THREADS + threadIdx.x; i < n;
         i += OCT_LEVELSET_BLOCKS * OCT_LEVELSET_THREADS) {
        const uint32_t bits = oct_levelset_bits(ranks[i]);
        if (bits <= OCT_LEVELSET_INF && bits > found)
            atomicMin(&least, bits);
    }
    __syncthreads();
    if (threadIdx.x == 0)
        atomicMin(&facts->next, least);
}

/* base and c2; one thread. given: c2, or 0. */
static __global__ void oct_levelset_settle_kernel(double beta, double given,
                                                  struct oct_levelset_facts *facts)
{
    const double low = (double)oct_levelset_value(facts->found);
    const double base =
        facts->n_ranked > 0 ? (low + (double)oct_levelset_value(facts->next)) / 2 : 0;
    const double c2 = given > 0 ? given : beta * base;
    facts->base = (float)base;
    facts->c2 = c2 > (double)FLT_MAX             ? FLT_MAX
                : c2 > 0 && c2 < (double)FLT_MIN ? FLT_MIN
                                                 : (float)c2;
}

#endif
