/* The exact median of |gx| and |gy| by radix selection (median.c has the method): a histogram and
 * the search in it, three times; then the least value above. Counts are integers: their order does
 * not matter. */
#ifndef OCT_ANALYSIS_CELLS_CUDA_MEDIAN_CUH
#define OCT_ANALYSIS_CELLS_CUDA_MEDIAN_CUH

#include "analysis/cells/cuda_types.cuh"

#define OCT_CELLS_BINS 2048u
#define OCT_CELLS_MEDIAN_BLOCKS 132u
#define OCT_CELLS_MEDIAN_PASSES 3
#define OCT_CELLS_MEDIAN_TO_SIGMA 1.4826

/* Bits first .. first + n - 1 of the 31 that order floats without sign. */
struct oct_cells_digit {
    unsigned first, n;
};

static __host__ __device__ inline struct oct_cells_digit oct_cells_digit_of(int pass)
{
    struct oct_cells_digit digit = {0, 9};
    if (pass < 2)
        digit = {pass == 0 ? 20u : 9u, 11};
    return digit;
}

static __device__ inline void oct_cells_count(uint32_t *counts, uint32_t bits, uint32_t found,
                                              struct oct_cells_digit digit)
{
    const unsigned until = digit.first + digit.n;
    if (bits >> until == found >> until)
        atomicAdd(&counts[(bits >> digit.first) & ((1u << digit.n) - 1)], 1u);
}

/* Adds to bins [OCT_CELLS_BINS] the values whose bits so far are those found. */
static __global__ void oct_cells_count_kernel(const float *gx, const float *gy,
                                              const uint8_t *valid, uint32_t n, int pass,
                                              const struct oct_cells_facts *facts, uint32_t *bins)
{
    __shared__ uint32_t counts[OCT_CELLS_BINS];
    const uint32_t step = OCT_CELLS_MEDIAN_BLOCKS * OCT_CELLS_THREADS, found = facts->found;
    const struct oct_cells_digit digit = oct_cells_digit_of(pass);
    for (uint32_t i = threadIdx.x; i < OCT_CELLS_BINS; i += OCT_CELLS_THREADS)
        counts[i] = 0;
    __syncthreads();
    for (uint32_t i = blockIdx.x * OCT_CELLS_THREADS + threadIdx.x; i < n; i += step) {
        if (valid && !valid[i])
            continue;
        oct_cells_count(counts, oct_cells_bits(gx[i]), found, digit);
        oct_cells_count(counts, oct_cells_bits(gy[i]), found, digit);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < OCT_CELLS_BINS; i += OCT_CELLS_THREADS)
        if (counts[i])
            atomicAdd(&bins[i], counts[i]);
}

/* The bin of the rank sought; empties the bins. One block. */
static __global__ void oct_cells_narrow_kernel(int pass, struct oct_cells_facts *facts,
                                               uint32_t *bins)
{
    enum { EACH = OCT_CELLS_BINS / OCT_CELLS_THREADS };
    __shared__ uint32_t sums[2][OCT_CELLS_THREADS]; /* up to a thread's bins, included */
    const unsigned i = threadIdx.x;
    uint32_t *own = bins + i * EACH, n = 0;
    unsigned from = 0;
    for (unsigned k = 0; k < EACH; k++)
        n += own[k];
    sums[0][i] = n;
    for (unsigned d = 1; d < OCT_CELLS_THREADS; d *= 2, from ^= 1) {
        __syncthreads();
        sums[from ^ 1][i] = sums[from][i] + (i >= d ? sums[from][i - d] : 0);
    }
    const uint32_t first_rank = facts->rank;
    __syncthreads();
    const uint32_t total = sums[from][OCT_CELLS_THREADS - 1], end = sums[from][i];
    uint32_t rank = pass == 0 ? total / 2 - 1 : first_rank; /* the lower one of the two middle */
    if (total > 0 && rank >= end - n && rank < end) {
        rank -= end - n;
        unsigned k = 0;
        while (rank >= own[k])
            rank -= own[k++];
        facts->rank = rank;
        facts->n_equal = own[k];
        facts->found |= (i * EACH + k) << oct_cells_digit_of(pass).first;
    }
    for (unsigned k = 0; k < EACH; k++)
        own[k] = 0;
}

/* The least value above the one found, where that is the other middle one. */
static __global__ void oct_cells_least_kernel(const float *gx, const float *gy,
                                              const uint8_t *valid, uint32_t n,
                                              struct oct_cells_facts *facts)
{
    __shared__ uint32_t least;
    const uint32_t step = OCT_CELLS_MEDIAN_BLOCKS * OCT_CELLS_THREADS, found = facts->found;
    if (facts->rank + 1 < facts->n_equal)
        return;
    if (threadIdx.x == 0)
        least = UINT32_MAX;
    __syncthreads();
    uint32_t own = UINT32_MAX;
    for (uint32_t i = blockIdx.x * OCT_CELLS_THREADS + threadIdx.x; i < n; i += step) {
        if (valid && !valid[i])
            continue;
        const uint32_t x = oct_cells_bits(gx[i]), y = oct_cells_bits(gy[i]);
        own = x > found ? min(own, x) : own;
        own = y > found ? min(own, y) : own;
    }
    atomicMin(&least, own);
    __syncthreads();
    if (threadIdx.x == 0)
        atomicMin(&facts->least, least);
}

/* v0; one thread. */
static __global__ void oct_cells_floor_kernel(double floor, struct oct_cells_facts *facts)
{
    const double middle = (double)oct_cells_value(facts->found);
    double median = middle;
    if (facts->n_equal == 0)
        median = 0;
    else if (facts->rank + 1 >= facts->n_equal)
        median = (middle + (double)oct_cells_value(facts->least)) / 2;
    const double sigma = OCT_CELLS_MEDIAN_TO_SIGMA * median;
    facts->v0 = (float)(floor * sigma * floor * sigma);
}

#endif
