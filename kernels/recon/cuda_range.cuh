/* What both variants share: the DC line before the chain; limits and pixels after it. */
#ifndef OCT_KERNELS_CUDA_RANGE_CUH
#define OCT_KERNELS_CUDA_RANGE_CUH

#include "kernels/recon/cuda_types.cuh"

/* ---- step 1: the mean of the lines that came ---- */

#define OCT_MEAN_COLUMNS 32
#define OCT_MEAN_ROWS 16

/* grid (ceil(N / 32), n), block (32, 16). Sums are exact (65535 * 65536 < 2^32), and the mean goes
 * out as whole counts and a remainder, so that sample - whole - rest keeps all digits. */
static __global__ void oct_mean_kernel(struct oct_cuda_tables t, struct oct_cuda_batch batch)
{
    __shared__ uint32_t sums[OCT_MEAN_ROWS][OCT_MEAN_COLUMNS];
    const unsigned i = blockIdx.x * OCT_MEAN_COLUMNS + threadIdx.x, bscan = blockIdx.y;
    const struct oct_cuda_job &job = batch.job[bscan];
    const uint8_t *valid = t.valid + (size_t)bscan * t.n_lines;
    uint32_t sum = 0;

    if (i < t.n_samples) {
        const uint16_t *column = t.spectra + (size_t)bscan * t.n_lines * t.n_samples + i;
        if (job.flags & OCT_JOB_MISSING) {
            for (unsigned j = threadIdx.y; j < t.n_lines; j += OCT_MEAN_ROWS)
                if (valid[j])
                    sum += column[(size_t)j * t.n_samples];
        } else {
            /* eight loads in flight at a time: the kernel's time is theirs */
            for (unsigned j = threadIdx.y; j < t.n_lines; j += 8 * OCT_MEAN_ROWS) {
                uint16_t sample[8];
#pragma unroll
                for (unsigned r = 0; r < 8; r++)
                    sample[r] =
                        column[(size_t)min(j + r * OCT_MEAN_ROWS, t.n_lines - 1u) * t.n_samples];
#pragma unroll
                for (unsigned r = 0; r < 8; r++)
                    sum += j + r * OCT_MEAN_ROWS < t.n_lines ? sample[r] : 0u;
            }
        }
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && i < t.n_samples) {
        for (unsigned row = 1; row < OCT_MEAN_ROWS; row++)
            sum += sums[row][threadIdx.x];
        uint32_t n = job.n_valid ? job.n_valid : 1;
        t.dc[(size_t)bscan * t.n_samples + i] =
            make_float2((float)(sum / n), (float)(sum % n) / (float)n);
    }
}

/* ---- order-preserving keys of floats, as kernels/recon/percentile.c has them ---- */

static __device__ __forceinline__ uint32_t oct_key_of(float value)
{
    uint32_t bits = (uint32_t)__float_as_int(value);
    return bits ^ ((bits >> 31) ? 0xffffffffu : 0x80000000u);
}

static __device__ __forceinline__ float oct_value_of(uint32_t key)
{
    return __int_as_float((int)(key ^ ((key >> 31) ? 0x80000000u : 0xffffffffu)));
}

/* ---- limits: auto ---- */

#define OCT_RANGE_THREADS 256
#define OCT_VALUES_AT_ONCE 8 /* loads of a thread that are in flight: a kernel's time is theirs */
#define OCT_VALUES_PER_BLOCK (OCT_RANGE_THREADS * 2 * OCT_VALUES_AT_ONCE)

/* A thread's values of a B-scan from `begin` on, of a block of THREADS; those behind its end are 0.
 * Returns how many there are. */
template <unsigned THREADS = OCT_RANGE_THREADS>
static __device__ __forceinline__ unsigned
oct_load_values(const float *values, size_t begin, size_t n, float (&value)[OCT_VALUES_AT_ONCE])
{
    const size_t at = begin + threadIdx.x;
    unsigned n_there = 0;
#pragma unroll
    for (unsigned i = 0; i < OCT_VALUES_AT_ONCE; i++) {
        const bool is_there = at + i * THREADS < n;
        value[i] = is_there ? values[at + i * THREADS] : 0.0f;
        n_there += is_there;
    }
    return n_there;
}

/* Per job, in device memory and copied to the host at the end. */
struct oct_cuda_limits {
    uint32_t low_key, high_key; /* auto: keys of minimum and maximum */
    uint32_t bin[4], below[4];  /* percentile: upper bins of the ranks lo, lo + 1, hi, hi + 1 */
    float at[4];                /* percentile: values at those ranks */
    double lo, hi;              /* percentile: in force */
};

/* As struct oct_smoothed_range (percentile.h). */
struct oct_cuda_smoothed {
    double lo, hi;
    uint64_t volume;
    uint32_t acquisition;
    bool started;
};

/* grid n, 1 thread: nothing seen yet. */
static __global__ void oct_limits_clear_kernel(struct oct_cuda_limits *limits)
{
    limits[blockIdx.x].low_key = 0xffffffffu;
    limits[blockIdx.x].high_key = 0;
}

/* grid (ceil(M*D / 4096), n). Values of missing lines take no part, unless there are no others. */
static __global__ void oct_min_max_kernel(struct oct_cuda_tables t, struct oct_cuda_batch batch,
                                          struct oct_cuda_limits *limits)
{
    __shared__ uint32_t lows[OCT_RANGE_THREADS], highs[OCT_RANGE_THREADS];
    oct_await_before();
    const unsigned bscan = blockIdx.y, thread = threadIdx.x;
    const size_t n = (size_t)t.n_lines * t.depth, begin = (size_t)blockIdx.x * OCT_VALUES_PER_BLOCK;
    const float *values = t.values + bscan * n;
    const struct oct_cuda_job &job = batch.job[bscan];
    const uint8_t *valid = t.valid + (size_t)bscan * t.n_lines;
    const bool some_missing = (job.flags & OCT_JOB_MISSING) && job.n_valid;
    uint32_t low = 0xffffffffu, high = 0;

    if (!(job.flags & OCT_JOB_AUTO))
        return; /* the whole block */
    for (size_t at = begin; at < begin + OCT_VALUES_PER_BLOCK;
         at += OCT_VALUES_AT_ONCE * OCT_RANGE_THREADS) {
        float value[OCT_VALUES_AT_ONCE];
        const unsigned n_there = oct_load_values(values, at, n, value);
#pragma unroll
        for (unsigned i = 0; i < OCT_VALUES_AT_ONCE; i++)
            if (i < n_there &&
                (!some_missing || valid[(at + i * OCT_RANGE_THREADS + thread) / t.depth])) {
                const uint32_t key = oct_key_of(value[i]);
                low = min(low, key);
                high = max(high, key);
            }
    }
    lows[thread] = low;
    highs[thread] = high;
    for (unsigned half = OCT_RANGE_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half) {
            lows[thread] = min(lows[thread], lows[thread + half]);
            highs[thread] = max(highs[thread], highs[thread + half]);
        }
    }
    if (thread == 0) {
        atomicMin(&limits[bscan].low_key, lows[0]);
        atomicMax(&limits[bscan].high_key, highs[0]);
    }
}

/* ---- limits: percentile, by the definition in kernels/recon/percentile.h ---- */

#define OCT_BINS (1u << 14)
#define OCT_UPPER_SHIFT 18 /* 32 - 14 */
#define OCT_LOWER_SHIFT 4  /* 18 - 14 */
#define OCT_COUNT_THREADS 1024
#define OCT_COUNT_VALUES (OCT_COUNT_THREADS * OCT_VALUES_AT_ONCE) /* of a block at once */
#define OCT_COUNT_ROUNDS 4u                                       /* at most: */
static_assert(OCT_COUNT_ROUNDS * OCT_COUNT_VALUES < 65536, "a block's counters have 16 bits");

/* Counts in shared memory first: the values of a B-scan in dB meet in a few dozen bins. Two 16-bit
 * counters a word, 32 KiB. */
static __device__ __forceinline__ void oct_count(uint32_t *counters, uint32_t bin)
{
    atomicAdd(&counters[bin / 2], bin % 2 ? 0x10000u : 1u);
}

static __device__ __forceinline__ void oct_counters_clear(uint32_t *counters, unsigned thread)
{
    for (unsigned w = thread; w < OCT_BINS / 2; w += OCT_COUNT_THREADS)
        counters[w] = 0;
    __syncthreads();
}

static __device__ __forceinline__ void oct_counters_add(const uint32_t *counters, uint32_t *counts,
                                                        unsigned thread)
{
    __syncthreads();
    for (unsigned w = thread; w < OCT_BINS / 2; w += OCT_COUNT_THREADS) {
        uint32_t pair = counters[w];
        if (pair & 0xffffu)
            atomicAdd(&counts[2 * w], pair & 0xffffu);
        if (pair >> 16)
            atomicAdd(&counts[2 * w + 1], pair >> 16);
    }
}

/* grid (ceil(M*D / (n_rounds * 8192)), n), 1024 threads. counts [n][5][bins]: the first of each
 * five gets the upper bins. */
static __global__ void __launch_bounds__(OCT_COUNT_THREADS)
    oct_histogram_kernel(struct oct_cuda_tables t, struct oct_cuda_batch batch, unsigned n_rounds,
                         uint32_t *counts)
{
    OCT_SHARED(uint32_t, counters);
    oct_await_before();
    const unsigned bscan = blockIdx.y, thread = threadIdx.x;
    const size_t n = (size_t)t.n_lines * t.depth, of_block = (size_t)n_rounds * OCT_COUNT_VALUES;
    const size_t begin = blockIdx.x * of_block;
    const float *values = t.values + bscan * n;

    if (!(batch.job[bscan].flags & OCT_JOB_PERCENTILE))
        return;
    oct_counters_clear(counters, thread);
    for (size_t at = begin; at < begin + of_block; at += OCT_COUNT_VALUES) {
        float value[OCT_VALUES_AT_ONCE];
        const unsigned n_there = oct_load_values<OCT_COUNT_THREADS>(values, at, n, value);
#pragma unroll
        for (unsigned i = 0; i < OCT_VALUES_AT_ONCE; i++)
            if (i < n_there)
                oct_count(counters, oct_key_of(value[i]) >> OCT_UPPER_SHIFT);
    }
    oct_counters_add(counters, counts + (size_t)bscan * 5 * OCT_BINS, thread);
}

/* Counts the values that are in, by the whole warp: those that are alike, as all of a dark B-scan
 * are, at once. */
static __device__ __forceinline__ void oct_count_alike(uint32_t *counts, bool is_in, uint32_t bin)
{
    for (uint32_t left = __ballot_sync(0xffffffffu, is_in); left;) {
        const int first = __popc((left & -left) - 1);
        const uint32_t its = __shfl_sync(0xffffffffu, bin, first);
        const uint32_t alike = __ballot_sync(0xffffffffu, is_in && bin == its);
        if ((int)(threadIdx.x % 32) == first)
            atomicAdd(&counts[bin], (uint32_t)__popc(alike));
        left &= ~alike;
    }
}

/* grid (ceil(M*D / 4096), n): values of the upper bins limits.bin, 14 bits deeper. They are few, so
 * that they are counted where the counts are. */
static __global__ void oct_refine_kernel(struct oct_cuda_tables t, struct oct_cuda_batch batch,
                                         const struct oct_cuda_limits *limits, uint32_t *counts)
{
    oct_await_before();
    const unsigned bscan = blockIdx.y;
    const size_t n = (size_t)t.n_lines * t.depth, begin = (size_t)blockIdx.x * OCT_VALUES_PER_BLOCK;
    const float *values = t.values + bscan * n;
    uint32_t upper[4];

    if (!(batch.job[bscan].flags & OCT_JOB_PERCENTILE))
        return;
#pragma unroll
    for (unsigned which = 0; which < 4; which++)
        upper[which] = limits[bscan].bin[which];
    for (size_t at = begin; at < begin + OCT_VALUES_PER_BLOCK;
         at += OCT_VALUES_AT_ONCE * OCT_RANGE_THREADS) {
        float value[OCT_VALUES_AT_ONCE];
        const unsigned n_there = oct_load_values(values, at, n, value);
#pragma unroll
        for (unsigned i = 0; i < OCT_VALUES_AT_ONCE; i++) {
            const uint32_t key = oct_key_of(value[i]);
#pragma unroll
            for (unsigned which = 0; which < 4; which++)
                if (which % 2 == 0 || upper[which] != upper[which - 1]) /* the bin below has them */
                    oct_count_alike(counts + ((size_t)bscan * 5 + 1 + which) * OCT_BINS,
                                    i < n_there && key >> OCT_UPPER_SHIFT == upper[which],
                                    (key >> OCT_LOWER_SHIFT) & (OCT_BINS - 1));
        }
    }
}

#define OCT_FIND_THREADS 1024
#define OCT_FIND_EACH (OCT_BINS / OCT_FIND_THREADS)

/* The bin of counts that holds `rank`, which is below their sum, and how many lie below it; by the
 * whole block. */
static __device__ void oct_find_bin(const uint32_t *counts, uint32_t rank, uint32_t *found)
{
    __shared__ uint32_t sums[OCT_FIND_THREADS / 32];
    const unsigned thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const uint4 *fours = (const uint4 *)(counts + thread * OCT_FIND_EACH);
    uint32_t own[OCT_FIND_EACH], sum = 0, before = 0;
#pragma unroll
    for (unsigned b = 0; b < OCT_FIND_EACH; b += 4) {
        const uint4 four = fours[b / 4];
        own[b] = four.x;
        own[b + 1] = four.y;
        own[b + 2] = four.z;
        own[b + 3] = four.w;
        sum += four.x + four.y + four.z + four.w;
    }
    uint32_t to_here = sum;
#pragma unroll
    for (unsigned apart = 1; apart < 32; apart *= 2) {
        const uint32_t there = __shfl_sync(0xffffffffu, to_here, (int)((lane - apart) % 32));
        to_here += lane < apart ? 0 : there;
    }
    if (lane == 31)
        sums[warp] = to_here;
    __syncthreads();
#pragma unroll
    for (unsigned w = 0; w < OCT_FIND_THREADS / 32; w++)
        before += w < warp ? sums[w] : 0;
    uint32_t seen = before + to_here - sum, bin = thread * OCT_FIND_EACH;
    if (rank >= seen && rank < before + to_here) {
        bool is_below = true;
#pragma unroll
        for (unsigned b = 0; b < OCT_FIND_EACH; b++) {
            is_below = is_below && seen + own[b] <= rank;
            seen += is_below ? own[b] : 0;
            bin += is_below;
        }
        found[0] = bin;
        found[1] = seen;
    }
    __syncthreads();
}

/* Rank number `which` of a job: lo, lo + 1, hi, hi + 1; none beyond the last value. */
static __device__ __forceinline__ uint32_t oct_rank(const struct oct_cuda_job &job, unsigned which,
                                                    size_t n)
{
    const size_t rank = (size_t)job.rank[which / 2] + which % 2;
    return (uint32_t)(rank < n ? rank : n - 1);
}

/* grid (4, n), 1024 threads, as the next. */
static __global__ void oct_find_upper_kernel(struct oct_cuda_tables t, struct oct_cuda_batch batch,
                                             const uint32_t *counts, struct oct_cuda_limits *limits)
{
    __shared__ uint32_t found[2];
    oct_await_before();
    const unsigned bscan = blockIdx.y, which = blockIdx.x, thread = threadIdx.x;
    if (!(batch.job[bscan].flags & OCT_JOB_PERCENTILE))
        return;
    uint32_t rank = oct_rank(batch.job[bscan], which, (size_t)t.n_lines * t.depth);
    oct_find_bin(counts + (size_t)bscan * 5 * OCT_BINS, rank, found);
    if (thread == 0) {
        limits[bscan].bin[which] = found[0];
        limits[bscan].below[which] = found[1];
    }
}

static __global__ void oct_find_lower_kernel(struct oct_cuda_tables t, struct oct_cuda_batch batch,
                                             const uint32_t *counts, struct oct_cuda_limits *limits)
{
    __shared__ uint32_t found[2];
    oct_await_before();
    const unsigned bscan = blockIdx.y, which = blockIdx.x, thread = threadIdx.x;
    if (!(batch.job[bscan].flags & OCT_JOB_PERCENTILE))
        return;
    const struct oct_cuda_limits &own = limits[bscan];
    unsigned from = which % 2 == 1 && own.bin[which] == own.bin[which - 1] ? which - 1 : which;
    uint32_t rank = oct_rank(batch.job[bscan], which, (size_t)t.n_lines * t.depth);
    oct_find_bin(counts + ((size_t)bscan * 5 + 1 + from) * OCT_BINS, rank - own.below[which],
                 found);
    if (thread == 0)
        limits[bscan].at[which] =
            oct_value_of(own.bin[which] << OCT_UPPER_SHIFT | found[0] << OCT_LOWER_SHIFT |
                         1u << (OCT_LOWER_SHIFT - 1));
}

/* ---- percentile: what is in force ---- */

/* Between the values at both neighbouring ranks. Sums and products are rounded one by one, as the
 * host's are: limits do not depend on where they are made. */
static __device__ __forceinline__ double oct_between(double a, double b, double share)
{
    return __dadd_rn(a, __dmul_rn(__dsub_rn(b, a), share));
}

/* One block of OCT_CUDA_MAX_BATCH threads: the own limits of each job, then
 * oct_smoothed_range_update (percentile.c) from job to job. `before` is of the batch before; NULL:
 * there is none. shown: what the host reads, in its memory: a copy of so little costs more than the
 * kernel. */
static __global__ void oct_smooth_kernel(struct oct_cuda_batch batch,
                                         struct oct_cuda_limits *limits,
                                         const struct oct_cuda_smoothed *before,
                                         struct oct_cuda_smoothed *after,
                                         struct oct_cuda_limits *shown)
{
    __shared__ double of[OCT_CUDA_MAX_BATCH][2];
    const unsigned k = threadIdx.x;
    if (k < batch.n)
        for (unsigned i = 0; i < 2; i++) {
            const double rank = batch.job[k].rank[i];
            of[k][i] = oct_between((double)limits[k].at[2 * i], (double)limits[k].at[2 * i + 1],
                                   __dsub_rn(rank, (double)(uint32_t)rank));
        }
    __syncthreads();
    if (k == 0) {
        struct oct_cuda_smoothed range = {};
        if (before)
            range = *before;
        for (unsigned b = 0; b < batch.n; b++) {
            const struct oct_cuda_job &job = batch.job[b];
            const bool nothing = of[b][1] < (job.flags & OCT_JOB_LOG ? -119.999 : 1e-12);
            if (!(job.flags & OCT_JOB_PERCENTILE))
                continue;
            if (range.started && range.acquisition == job.acquisition &&
                range.volume == job.volume) {
                const double share = nothing ? 1 : job.before;
                of[b][0] = oct_between(of[b][0], range.lo, share);
                of[b][1] = oct_between(of[b][1], range.hi, share);
            }
            if (!nothing) {
                range.lo = of[b][0];
                range.hi = of[b][1];
                range.acquisition = job.acquisition;
                range.volume = job.volume;
                range.started = true;
            }
        }
        *after = range;
    }
    __syncthreads();
    if (k < batch.n) {
        limits[k].lo = shown[k].lo = of[k][0];
        limits[k].hi = shown[k].hi = of[k][1];
    }
}

/* ---- step 9 for values whose limits came late ---- */

/* grid (ceil(M*D / 4096), n). With auto the limits are on the device, with percentiles where
 * `smoothed`. Four pixels go out as a word,
 * where each B-scan begins at one. */
static __global__ void oct_map_kernel(struct oct_cuda_tables t, struct oct_cuda_batch batch,
                                      const struct oct_cuda_limits *limits, bool smoothed,
                                      struct oct_cuda_limits *shown)
{
    oct_await_before();
    const unsigned bscan = blockIdx.y;
    const size_t n = (size_t)t.n_lines * t.depth, begin = (size_t)blockIdx.x * OCT_VALUES_PER_BLOCK;
    const struct oct_cuda_job &job = batch.job[bscan];
    const float *values = t.values + bscan * n;
    uint8_t *pixels = t.pixels + bscan * n;
    float lo = job.lo, scale = job.scale;

    if (job.flags & OCT_JOB_DIRECT)
        return; /* has its pixels */
    if (job.flags & OCT_JOB_AUTO) {
        lo = oct_value_of(limits[bscan].low_key);
        float hi = oct_value_of(limits[bscan].high_key);
        scale = hi > lo ? (float)(255 / ((double)hi - (double)lo)) : 0;
        if (blockIdx.x == 0 && threadIdx.x == 0) {
            shown[bscan].low_key = limits[bscan].low_key;
            shown[bscan].high_key = limits[bscan].high_key;
        }
    } else if (smoothed && (job.flags & OCT_JOB_PERCENTILE)) {
        const double black = limits[bscan].lo, white = limits[bscan].hi;
        lo = (float)black;
        scale = white > black ? (float)(255 / (white - black)) : 0;
    }
    const size_t end = min(n, begin + OCT_VALUES_PER_BLOCK);
    if (n % 4) {
        for (size_t at = begin + threadIdx.x; at < end; at += OCT_RANGE_THREADS)
            pixels[at] = oct_to_u8(values[at], lo, scale);
        return;
    }
#pragma unroll 4
    for (size_t at = begin + 4 * threadIdx.x; at < end; at += 4 * OCT_RANGE_THREADS) {
        const float4 v = *(const float4 *)(values + at);
        *(uint32_t *)(pixels + at) =
            (uint32_t)oct_to_u8(v.x, lo, scale) | (uint32_t)oct_to_u8(v.y, lo, scale) << 8 |
            (uint32_t)oct_to_u8(v.z, lo, scale) << 16 | (uint32_t)oct_to_u8(v.w, lo, scale) << 24;
    }
}

#endif
