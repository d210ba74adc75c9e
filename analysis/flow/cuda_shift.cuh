/* Registration of complex B-scans on a device: what oct_flow_shift_find does (bscan.h), of all
 * pairs of a batch. Part of cuda.cu.
 *
 *     look  -> |sum|^2 of a few lines, all depths       a block a line
 *     near  -> |sum|^2 of more lines, about the largest a warp a line; and n0, Q: a block a place
 *     shift -> step                                     a block a pair, which looks on if need
 *                                                       be */
#ifndef OCT_ANALYSIS_FLOW_CUDA_SHIFT_CUH
#define OCT_ANALYSIS_FLOW_CUDA_SHIFT_CUH

#include "analysis/flow/cuda_place.cuh"
#include "numeric/parabola.h"

#define OCT_SHIFT_MOST_X OCT_FLOW_MOST_LINE_SHIFT
#define OCT_SHIFT_MOST_Z OCT_FLOW_MOST_DEPTH_SHIFT
#define OCT_SHIFT_N_X (2 * OCT_SHIFT_MOST_X + 1)
#define OCT_SHIFT_N_Z (2 * OCT_SHIFT_MOST_Z + 1)
#define OCT_SHIFT_LOOK_LINES 16u /* as shift.c has them */
#define OCT_SHIFT_ALL_LINES 128u
#define OCT_SHIFT_STEP 8u
#define OCT_SHIFT_CLEAR 4.0
#define OCT_SHIFT_MOST_STEPS 12u
#define OCT_SHIFT_THREADS 512u
#define OCT_SHIFT_WARPS (OCT_SHIFT_THREADS / 32)
#define OCT_SHIFT_AT_ONCE 7 /* shifts of depth that a thread takes: N_Z is a multiple */
#define OCT_SHIFT_OWN 8     /* depths of it */
#define OCT_SHIFT_CHUNK 1024
#define OCT_SHIFT_LOOK_THREADS 128u
#define OCT_SHIFT_LOOK_WARPS (OCT_SHIFT_LOOK_THREADS / 32)
#define OCT_SHIFT_NEAR 5 /* the largest, and its neighbours */
#define OCT_SHIFT_NEAR_THREADS OCT_FLOW_THREADS
#define OCT_SHIFT_NEAR_WARPS (OCT_SHIFT_NEAR_THREADS / 32)

/* Shared. */
struct oct_shift_search {
    double map[OCT_SHIFT_N_X][OCT_SHIFT_N_Z]; /* mean of |sum|^2; < 0: not known */
    double part[OCT_SHIFT_WARPS][OCT_SHIFT_N_Z];
    int x, z; /* where it is largest */
    double mean;
    uint32_t counts[OCT_SHIFT_WARPS];
};

/* Two B-scans, and the power of their lines. */
struct oct_shift_pair {
    const float2 *a, *b;
    const float *power_a, *power_b;
};

/* Adds a[d] conj b[d - z - i], i = 0 .. N - 1. */
template <int N>
static __device__ __forceinline__ void oct_shift_add(const float2 *a, const float2 *b, int d, int z,
                                                     float2 sum[N])
{
    const float2 of_a = __ldg(a + d);
#pragma unroll
    for (int i = 0; i < N; i++) {
        oct_flow_add_cross(&sum[i], of_a, __ldg(b + d - z - i));
    }
}

/* The same of depths first .. end - 1 where b has only some. */
template <int N>
static __device__ __forceinline__ void oct_shift_add_edge(const float2 *a, const float2 *b,
                                                          int depth, int first, int end, int z,
                                                          float2 sum[N])
{
    for (int d = first + (int)(threadIdx.x % 32); d < end; d += 32)
#pragma unroll
        for (int i = 0; i < N; i++)
            if (d - z - i >= 0 && d - z - i < depth)
                oct_shift_add<1>(a, b, d, z + i, sum + i);
}

/* |sum over d of a[d] conj b[d - z - i]|^2, i = 0 .. N - 1, by a warp. */
template <int N>
static __device__ __forceinline__ void oct_shift_line(const float2 *a, const float2 *b, int depth,
                                                      int z, float *power)
{
    [[maybe_unused]] constexpr int AT_ONCE = N > 3 ? 1 : 8; /* loads hide one another's latency */
    float2 sum[N] = {};
    const int least = z + N - 1 > 0 ? z + N - 1 : 0, most = z < 0 ? depth + z : depth;
    const int n_inside = most > least ? (most - least) / 32 : 0;
    const int own = least + (int)(threadIdx.x % 32), end = least + 32 * n_inside;
    oct_shift_add_edge<N>(a, b, depth, 0, least < depth ? least : depth, z, sum);
#pragma unroll AT_ONCE
    for (int i = 0; i < n_inside; i++)
        oct_shift_add<N>(a, b, own + 32 * i, z, sum);
    oct_shift_add_edge<N>(a, b, depth, end, depth, z, sum);
    for (int i = 0; i < N; i++) {
        const float re = oct_flow_warp_sum(sum[i].x), im = oct_flow_warp_sum(sum[i].y);
        power[i] = re * re + im * im;
    }
}

/* The map at depths z .. z + n - 1 of x lines, N of them at a time. */
template <int N>
static __device__ void oct_shift_look(const struct oct_flow_cuda &f, struct oct_shift_search *s,
                                      const struct oct_shift_pair &pair, uint32_t step, int x,
                                      int z, int n)
{
    const int most_z = OCT_SHIFT_MOST_Z, most_x = OCT_SHIFT_MOST_X, m = (int)f.n_lines;
    const int first = z < -most_z ? -most_z : z, end = z + n > most_z + 1 ? most_z + 1 : z + n;
    const uint32_t t = threadIdx.x, warp = t / 32, n_looked = (f.n_lines + step - 1) / step;
    if (x < -most_x || x > most_x || end <= first)
        return;
    if (t < OCT_SHIFT_N_Z)
        for (unsigned w = 0; w < OCT_SHIFT_WARPS; w++)
            s->part[w][t] = 0;
    __syncthreads();
    const uint32_t n_groups = (uint32_t)(end - first + N - 1) / N;
    for (uint32_t i = warp; i < n_looked * n_groups; i += OCT_SHIFT_WARPS) {
        const int j = (int)(i / n_groups * step), from = j - x;
        const int at = first + (int)(i % n_groups) * N;
        float power[N];
        if (from < 0 || from >= m || !(pair.power_a[j] > 0) || !(pair.power_b[from] > 0))
            continue;
        oct_shift_line<N>(pair.a + (size_t)j * f.depth, pair.b + (size_t)from * f.depth,
                          (int)f.depth, at, power);
        for (int k = 0; k < N && at + k < end && t % 32 == 0; k++)
            s->part[warp][at + k - first] += power[k];
    }
    __syncthreads();
    if ((int)t < end - first) {
        double sum = 0;
        uint32_t n_both = 0;
        for (unsigned w = 0; w < OCT_SHIFT_WARPS; w++)
            sum += s->part[w][t];
        for (uint32_t i = 0; i < n_looked; i++) {
            const int from = (int)(i * step) - x;
            n_both += from >= 0 && from < m;
        }
        s->map[x + most_x][first + (int)t + most_z] = n_both ? sum / n_both : 0;
    }
    __syncthreads();
}

static __device__ __forceinline__ double oct_shift_at(const struct oct_shift_search *s, int x,
                                                      int z)
{
    return x < -OCT_SHIFT_MOST_X || x > OCT_SHIFT_MOST_X || z < -OCT_SHIFT_MOST_Z ||
                   z > OCT_SHIFT_MOST_Z
               ? -1
               : s->map[x + OCT_SHIFT_MOST_X][z + OCT_SHIFT_MOST_Z];
}

static __device__ void oct_shift_forget(struct oct_shift_search *s)
{
    for (uint32_t i = threadIdx.x; i < OCT_SHIFT_N_X * OCT_SHIFT_N_Z; i += OCT_SHIFT_THREADS)
        s->map[i / OCT_SHIFT_N_Z][i % OCT_SHIFT_N_Z] = -1;
    __syncthreads();
}

/* Where the map is largest, and its mean, to all threads: no shift, if that is as large. */
static __device__ void oct_shift_find_largest(struct oct_shift_search *s)
{
    const uint32_t lane = threadIdx.x;
    if (lane < 32) {
        double sum = 0, most = -1;
        uint32_t n = 0, best = 0;
        for (uint32_t i = lane; i < OCT_SHIFT_N_X * OCT_SHIFT_N_Z; i += 32) {
            const double value = s->map[i / OCT_SHIFT_N_Z][i % OCT_SHIFT_N_Z];
            sum += value < 0 ? 0 : value;
            n += value >= 0;
            best = value > most ? i : best;
            most = value > most ? value : most;
        }
        for (int mask = 16; mask > 0; mask /= 2) {
            const double other = __shfl_xor_sync(0xffffffffu, most, mask);
            const uint32_t of_other = __shfl_xor_sync(0xffffffffu, best, mask);
            const bool wins = other > most || (other == most && of_other < best);
            most = wins ? other : most;
            best = wins ? of_other : best;
        }
        sum = oct_flow_warp_sum(sum);
        n = oct_flow_warp_sum(n);
        if (lane == 0) {
            const bool is_still = s->map[OCT_SHIFT_MOST_X][OCT_SHIFT_MOST_Z] >= most;
            s->x = is_still ? 0 : (int)(best / OCT_SHIFT_N_Z) - OCT_SHIFT_MOST_X;
            s->z = is_still ? 0 : (int)(best % OCT_SHIFT_N_Z) - OCT_SHIFT_MOST_Z;
            s->mean = n ? sum / n : 0;
        }
    }
    __syncthreads();
}

/* ---- the first look: a few lines, all depths ---- */

static __host__ __device__ __forceinline__ uint32_t oct_shift_first_step(uint32_t n_lines)
{
    return n_lines / OCT_SHIFT_LOOK_LINES > 0 ? n_lines / OCT_SHIFT_LOOK_LINES : 1;
}

static __host__ __device__ __forceinline__ uint32_t oct_shift_near_step(uint32_t n_lines)
{
    return n_lines <= OCT_SHIFT_ALL_LINES ? 1 : OCT_SHIFT_STEP;
}

/* Lines that are looked at, of one in `step`. */
static __host__ __device__ __forceinline__ uint32_t oct_shift_n_looked(uint32_t n_lines,
                                                                       uint32_t step)
{
    return (n_lines + step - 1) / step;
}

/* The last repeat before r that came; r: there is none, or r itself did not come. */
static __device__ __forceinline__ uint32_t oct_shift_before(const struct oct_flow_cuda &f,
                                                            uint32_t r, uint32_t k)
{
    for (uint32_t before = r; before-- > 0 && oct_flow_has(f.came[k], r);)
        if (oct_flow_has(f.came[k], before))
            return before;
    return r;
}

static __device__ __forceinline__ struct oct_shift_pair
oct_shift_pair_of(const struct oct_flow_cuda &f, uint32_t before, uint32_t r, uint32_t k)
{
    const size_t a = oct_flow_bscan_of(f, before, k), b = oct_flow_bscan_of(f, r, k);
    return {f.b[a], f.b[b], f.power + a * f.n_lines, f.power + b * f.n_lines};
}

static __device__ __forceinline__ float *oct_shift_looks(const struct oct_flow_cuda &f, uint32_t r,
                                                         uint32_t k)
{
    return f.looks + ((size_t)k * f.n_repeats + r) * f.n_looks * OCT_SHIFT_N_Z;
}

static __device__ __forceinline__ float *oct_shift_nears(const struct oct_flow_cuda &f, uint32_t r,
                                                         uint32_t k)
{
    return f.nears + ((size_t)k * f.n_repeats + r) * f.n_nears * OCT_SHIFT_NEAR;
}

/* Shared: depths of two lines; b from OCT_SHIFT_MOST_Z before those of a to as many behind. */
struct oct_shift_chunk {
    alignas(16) float a[2][OCT_SHIFT_CHUNK];
    float b[2][OCT_SHIFT_CHUNK + 2 * OCT_SHIFT_MOST_Z];
    float2 part[OCT_SHIFT_LOOK_WARPS][OCT_SHIFT_N_Z];
};

/* From depth `first` on. */
static __device__ __forceinline__ void oct_shift_load_chunk(struct oct_shift_chunk *c,
                                                            const float2 *a, const float2 *b,
                                                            int depth, int first)
{
    const int n = OCT_SHIFT_CHUNK + 2 * OCT_SHIFT_MOST_Z;
#pragma unroll 9
    for (int i = (int)threadIdx.x; i < n; i += (int)OCT_SHIFT_LOOK_THREADS) {
        const int d = first + i, e = d - OCT_SHIFT_MOST_Z;
        const float2 none = make_float2(0, 0);
        const float2 of_a = i < OCT_SHIFT_CHUNK && d < depth ? __ldg(a + d) : none;
        const float2 of_b = e >= 0 && e < depth ? __ldg(b + e) : none;
        if (i < OCT_SHIFT_CHUNK) {
            c->a[0][i] = of_a.x;
            c->a[1][i] = of_a.y;
        }
        c->b[0][i] = of_b.x;
        c->b[1][i] = of_b.y;
    }
}

/* Adds a[d] conj b[d - z - i] for the OCT_SHIFT_OWN depths from chunk's d on. Lanes take four runs
 * of depths by seven runs of shifts, so that no two of a warp read the same bank. */
static __device__ __forceinline__ void oct_shift_add_chunk(const struct oct_shift_chunk &c, int d,
                                                           int z, float2 sum[OCT_SHIFT_AT_ONCE])
{
    float a[2][OCT_SHIFT_OWN];
    for (int part = 0; part < 2; part++)
        for (int q = 0; q < OCT_SHIFT_OWN; q += 4) {
            const float4 v = *reinterpret_cast<const float4 *>(&c.a[part][d + q]);
            a[part][q] = v.x;
            a[part][q + 1] = v.y;
            a[part][q + 2] = v.z;
            a[part][q + 3] = v.w;
        }
    const int from = d + OCT_SHIFT_MOST_Z - z - (OCT_SHIFT_AT_ONCE - 1);
#pragma unroll
    for (int e = 0; e < OCT_SHIFT_OWN + OCT_SHIFT_AT_ONCE - 1; e++) {
        const float re = c.b[0][from + e], im = c.b[1][from + e];
#pragma unroll
        for (int i = 0; i < OCT_SHIFT_AT_ONCE; i++) {
            const int q = e + i - (OCT_SHIFT_AT_ONCE - 1);
            if (q < 0 || q >= OCT_SHIFT_OWN)
                continue;
            oct_flow_add_cross(&sum[i], make_float2(a[0][q], a[1][q]), make_float2(re, im));
        }
    }
}

/* Line blockIdx.x of those looked at, of repeat blockIdx.y + 1 of place blockIdx.z. */
static __global__ void __launch_bounds__(OCT_SHIFT_LOOK_THREADS)
    oct_flow_look_kernel(const struct oct_flow_cuda f)
{
    __shared__ struct oct_shift_chunk chunk;
    oct_await_before();
    const uint32_t r = blockIdx.y + 1, k = blockIdx.z, before = oct_shift_before(f, r, k);
    const uint32_t t = threadIdx.x, warp = t / 32, lane = t % 32;
    const uint32_t j = blockIdx.x * oct_shift_first_step(f.n_lines);
    if (before == r)
        return;
    const struct oct_shift_pair pair = oct_shift_pair_of(f, before, r, k);
    const bool has_both = pair.power_a[j] > 0 && pair.power_b[j] > 0;
    const int n_runs = OCT_SHIFT_N_Z / OCT_SHIFT_AT_ONCE;
    const int run = (int)lane / 4 < n_runs ? (int)lane / 4 : n_runs - 1;
    const int z = OCT_SHIFT_AT_ONCE * run - OCT_SHIFT_MOST_Z;
    float2 sum[OCT_SHIFT_AT_ONCE] = {};
    for (int first = 0; first < (int)f.depth && has_both; first += OCT_SHIFT_CHUNK) {
        oct_shift_load_chunk(&chunk, pair.a + (size_t)j * f.depth, pair.b + (size_t)j * f.depth,
                             (int)f.depth, first);
        __syncthreads();
        for (int d = (int)(warp * 4 + lane % 4) * OCT_SHIFT_OWN;
             d < OCT_SHIFT_CHUNK && first + d < (int)f.depth;
             d += (int)OCT_SHIFT_LOOK_WARPS * 4 * OCT_SHIFT_OWN)
            oct_shift_add_chunk(chunk, d, z, sum);
        __syncthreads();
    }
    for (int i = 0; i < OCT_SHIFT_AT_ONCE; i++) {
        for (int mask = 1; mask < 4; mask *= 2) {
            sum[i].x += __shfl_xor_sync(0xffffffffu, sum[i].x, mask);
            sum[i].y += __shfl_xor_sync(0xffffffffu, sum[i].y, mask);
        }
        if (lane % 4 == 0 && (int)lane / 4 < n_runs)
            chunk.part[warp][OCT_SHIFT_AT_ONCE * run + i] = sum[i];
    }
    __syncthreads();
    if (t >= OCT_SHIFT_N_Z)
        return;
    float2 all = make_float2(0, 0);
    for (unsigned w = 0; w < OCT_SHIFT_LOOK_WARPS; w++) {
        all.x += chunk.part[w][t].x;
        all.y += chunk.part[w][t].y;
    }
    oct_shift_looks(f, r, k)[blockIdx.x * OCT_SHIFT_N_Z + t] = all.x * all.x + all.y * all.y;
}

/* The mean of the first look over its lines at depth z, of all. */
static __device__ __forceinline__ float oct_shift_mean_look(const struct oct_flow_cuda &f,
                                                            uint32_t r, uint32_t k, uint32_t z)
{
    const float *look = oct_shift_looks(f, r, k) + z;
    float sum = 0;
#pragma unroll 8
    for (uint32_t line = 0; line < f.n_looks; line++)
        sum += look[line * OCT_SHIFT_N_Z];
    return sum / f.n_looks;
}

/* Where the first look without a shift of lines is largest, by a warp, as oct_shift_find_largest
 * has it; whether that is clear. */
static __device__ bool oct_shift_take_look(const struct oct_flow_cuda &f, uint32_t r, uint32_t k,
                                           int *z)
{
    const int lane = (int)(threadIdx.x % 32);
    float sum = 0, most = -1;
    int best = 0;
    for (int i = lane; i < OCT_SHIFT_N_Z; i += 32) {
        const float value = oct_shift_mean_look(f, r, k, (uint32_t)i);
        sum += value;
        best = value > most ? i : best;
        most = value > most ? value : most;
    }
    /* No shift: a lane that has nothing else. */
    const float still = __shfl_sync(0xffffffffu, most, OCT_SHIFT_MOST_Z);
    for (int mask = 16; mask > 0; mask /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, most, mask);
        const int of_other = __shfl_xor_sync(0xffffffffu, best, mask);
        const bool wins = other > most || (other >= most && of_other < best);
        most = wins ? other : most;
        best = wins ? of_other : best;
    }
    sum = oct_flow_warp_sum(sum);
    *z = (still >= most ? OCT_SHIFT_MOST_Z : best) - OCT_SHIFT_MOST_Z;
    return most > OCT_SHIFT_CLEAR * sum / OCT_SHIFT_N_Z;
}

/* ---- what lies about the largest ---- */

/* Adds a[d] conj b[d - z]: of b[1] with shifts z - 1 .. z + 1, of its neighbours with z. IS_INSIDE:
 * b has all of these depths. */
template <bool IS_INSIDE>
static __device__ __forceinline__ void oct_shift_add_near(const float2 *a, const float2 *const b[3],
                                                          int depth, int d, int z,
                                                          float2 sum[OCT_SHIFT_NEAR])
{
    const float2 of_a = IS_INSIDE || d < depth ? __ldg(a + d) : make_float2(0, 0);
#pragma unroll
    for (int i = 0; i < OCT_SHIFT_NEAR; i++) {
        const float2 *line = i < 3 ? b[1] : i == 3 ? b[2] : b[0];
        const int e = d - z + (i < 3 ? 1 - i : 0);
        if (!IS_INSIDE && (e < 0 || e >= depth))
            continue;
        oct_flow_add_cross(&sum[i], of_a, __ldg(line + e));
    }
}

/* |sum over d of that|^2, by a warp; 0 where b has no such line. */
static __device__ void oct_shift_look_near(const struct oct_flow_cuda &f,
                                           const struct oct_shift_pair &pair, int j, int z,
                                           float power[OCT_SHIFT_NEAR])
{
    const int depth = (int)f.depth, lane = (int)(threadIdx.x % 32);
    const float2 *a = pair.a + (size_t)j * f.depth, *b[3];
    const bool has_a = pair.power_a[j] > 0;
    bool has[3];
    float2 sum[OCT_SHIFT_NEAR] = {};
    for (int i = 0; i < 3; i++) { /* one that there is not reads the middle one: no branches */
        const int from = j + i - 1;
        has[i] = has_a && from >= 0 && from < (int)f.n_lines && pair.power_b[from] > 0;
        b[i] = pair.b + (ptrdiff_t)(has[i] ? from : j) * depth;
    }
    const int first = (max(z + 1, 0) + 31) / 32 * 32; /* from here on, up to `inside`, b has all */
    const int inside = max(min(depth + z - 1, depth), 0) / 32 * 32;
    for (int d = 0; d < min(first, depth); d += 32)
        oct_shift_add_near<false>(a, b, depth, d + lane, z, sum);
#pragma unroll 4
    for (int d = first; d < inside; d += 32)
        oct_shift_add_near<true>(a, b, depth, d + lane, z, sum);
    for (int d = max(inside, first); d < depth; d += 32)
        oct_shift_add_near<false>(a, b, depth, d + lane, z, sum);
    for (int i = 0; i < OCT_SHIFT_NEAR; i++) {
        const float re = oct_flow_warp_sum(sum[i].x), im = oct_flow_warp_sum(sum[i].y);
        power[i] = has[i < 3 ? 1 : i == 3 ? 2 : 0] ? re * re + im * im : 0;
    }
}

/* What oct_shift_look_near takes, beside z and no shift of lines. */
static __device__ __forceinline__ void oct_shift_near_of(int i, int *x, int *z)
{
    *z += i < 3 ? i - 1 : 0;
    *x = i < 3 ? 0 : 2 * i - 7;
}

/* A warp's line of those looked at, of repeat blockIdx.y of place blockIdx.z. Beside that, in place
 * of the first repeat, the noise, which keeps one block busy and nobody waits for. */
static __global__ void __launch_bounds__(OCT_SHIFT_NEAR_THREADS, 6)
    oct_flow_near_kernel(const struct oct_flow_cuda f)
{
    oct_await_before();
    const uint32_t r = blockIdx.y, k = blockIdx.z, before = oct_shift_before(f, r, k);
    const uint32_t line = blockIdx.x * OCT_SHIFT_NEAR_WARPS + threadIdx.x / 32;
    __shared__ int largest_z;
    __shared__ bool is_clear;
    float power[OCT_SHIFT_NEAR];
    int z;
    if (r == 0 && blockIdx.x == 0)
        oct_flow_plan_noise(f, k);
    if (before == r)
        return;
    if (threadIdx.x < 32 && oct_shift_take_look(f, r, k, &z)) {
        largest_z = z;
        is_clear = true;
    } else if (threadIdx.x < 32) {
        is_clear = false;
    }
    __syncthreads();
    if (!is_clear || line >= f.n_nears)
        return;
    oct_shift_look_near(f, oct_shift_pair_of(f, before, r, k),
                        (int)(line * oct_shift_near_step(f.n_lines)), largest_z, power);
    for (int i = 0; i < OCT_SHIFT_NEAR && threadIdx.x % 32 == 0; i++)
        oct_shift_nears(f, r, k)[line * OCT_SHIFT_NEAR + i] = power[i];
}

/* The map about the largest without a shift of lines, which is at depth largest_z. */
static __device__ void oct_shift_take_near(const struct oct_flow_cuda &f,
                                           struct oct_shift_search *s, uint32_t r, uint32_t k,
                                           int largest_z)
{
    const uint32_t step = oct_shift_near_step(f.n_lines);
    const float *near = oct_shift_nears(f, r, k);
    oct_shift_forget(s);
    if (threadIdx.x < OCT_SHIFT_NEAR) {
        double sum = 0;
        uint32_t n_both = 0;
        int x, z = largest_z;
        oct_shift_near_of((int)threadIdx.x, &x, &z);
#pragma unroll 8
        for (uint32_t line = 0; line < f.n_nears; line++) {
            const int from = (int)(line * step) - x;
            sum += near[line * OCT_SHIFT_NEAR + threadIdx.x];
            n_both += from >= 0 && from < (int)f.n_lines;
        }
        if (z >= -OCT_SHIFT_MOST_Z && z <= OCT_SHIFT_MOST_Z)
            s->map[x + OCT_SHIFT_MOST_X][z + OCT_SHIFT_MOST_Z] = n_both ? sum / n_both : 0;
    }
    if (threadIdx.x == 0) {
        s->x = 0;
        s->z = largest_z;
    }
    __syncthreads();
}

/* ---- the shift ---- */

/* With other shifts of lines, where without one nothing is clear. */
static __device__ bool oct_shift_look_aside(const struct oct_flow_cuda &f,
                                            struct oct_shift_search *s,
                                            const struct oct_shift_pair &pair, uint32_t r,
                                            uint32_t k)
{
    const uint32_t step = oct_shift_first_step(f.n_lines), t = threadIdx.x;
    oct_shift_forget(s);
    if (t < OCT_SHIFT_N_Z)
        s->map[OCT_SHIFT_MOST_X][t] = (double)oct_shift_mean_look(f, r, k, t);
    __syncthreads();
    for (int x = -OCT_SHIFT_MOST_X; x <= OCT_SHIFT_MOST_X; x++)
        if (x != 0)
            oct_shift_look<OCT_SHIFT_AT_ONCE>(f, s, pair, step, x, -OCT_SHIFT_MOST_Z,
                                              OCT_SHIFT_N_Z);
    oct_shift_find_largest(s);
    return oct_shift_at(s, s->x, s->z) > OCT_SHIFT_CLEAR * s->mean;
}

/* is_begun: the map has what lies about the place already, and nothing else. */
static __device__ void oct_shift_climb(const struct oct_flow_cuda &f, struct oct_shift_search *s,
                                       const struct oct_shift_pair &pair, bool is_begun)
{
    const uint32_t step = oct_shift_near_step(f.n_lines);
    int best_x = s->x, best_z = s->z;
    __syncthreads();
    if (!is_begun)
        oct_shift_forget(s);
    for (unsigned i = 0; i < OCT_SHIFT_MOST_STEPS; i++) {
        if (i > 0 || !is_begun) {
            oct_shift_look<3>(f, s, pair, step, best_x, best_z - 1, 3);
            for (int x = best_x - 1; x <= best_x + 1; x += 2)
                if (oct_shift_at(s, x, best_z) < 0)
                    oct_shift_look<1>(f, s, pair, step, x, best_z, 1);
        }
        oct_shift_find_largest(s);
        const bool is_top = s->x == best_x && s->z == best_z;
        best_x = s->x;
        best_z = s->z;
        __syncthreads();
        if (is_top)
            break;
    }
}

static __device__ double oct_shift_top(double before, double middle, double after)
{
    return before < 0 || after < 0 ? 0 : oct_parabola_top(before, middle, after);
}

/* Up to the first line that is not the same. */
static __device__ bool oct_shift_is_same(const struct oct_flow_cuda &f, struct oct_shift_search *s,
                                         const struct oct_shift_pair &pair)
{
    uint32_t own = 0;
    for (uint32_t j = threadIdx.x; j < f.n_lines; j += OCT_SHIFT_THREADS)
        own += __float_as_int(pair.power_a[j]) != __float_as_int(pair.power_b[j]);
    bool differs = oct_flow_block_sum(own, s->counts) > 0;
    for (uint32_t j = 0; j < f.n_lines && !differs; j++) {
        own = 0;
        for (uint32_t d = threadIdx.x; d < f.depth && pair.power_a[j] > 0; d += OCT_SHIFT_THREADS) {
            const float2 x = pair.a[(size_t)j * f.depth + d], y = pair.b[(size_t)j * f.depth + d];
            if (__float_as_int(x.x) != __float_as_int(y.x) ||
                __float_as_int(x.y) != __float_as_int(y.y))
                own = 1;
        }
        differs = oct_flow_block_sum(own, s->counts) > 0;
    }
    return !differs;
}

/* Step of a repeat against the last one before it that came. */
static __device__ void oct_shift_find_step(const struct oct_flow_cuda &f,
                                           struct oct_shift_search *s, uint32_t before, uint32_t r,
                                           uint32_t k)
{
    struct oct_flow_cuda_place *p = &f.place[k];
    const struct oct_shift_pair pair = oct_shift_pair_of(f, before, r, k);
    const uint32_t t = threadIdx.x;
    uint32_t has_lines[2] = {0, 0};
    for (uint32_t j = t; j < f.n_lines; j += OCT_SHIFT_THREADS) {
        has_lines[0] += pair.power_a[j] > 0;
        has_lines[1] += pair.power_b[j] > 0;
    }
    for (unsigned i = 0; i < 2; i++)
        has_lines[i] = oct_flow_block_sum(has_lines[i], s->counts);
    const bool is_same = oct_shift_is_same(f, s, pair);
    if (t == 0)
        p->pair[r] |= (is_same ? OCT_FLOW_IS_SAME : 0) | (has_lines[1] ? OCT_FLOW_IS_LIT : 0);
    if (!has_lines[0] || !has_lines[1])
        return;
    int largest_z;
    const bool is_clear = oct_shift_take_look(f, r, k, &largest_z); /* each warp alike */
    if (is_clear)
        oct_shift_take_near(f, s, r, k, largest_z);
    else if (!oct_shift_look_aside(f, s, pair, r, k))
        return;
    oct_shift_climb(f, s, pair, is_clear);
    if (t > 0)
        return;
    const int x = s->x, z = s->z;
    const double most = oct_shift_at(s, x, z);
    p->step[r][0] = x + oct_shift_top(oct_shift_at(s, x - 1, z), most, oct_shift_at(s, x + 1, z));
    p->step[r][1] = z + oct_shift_top(oct_shift_at(s, x, z - 1), most, oct_shift_at(s, x, z + 1));
}

/* Of place blockIdx.y the pair of repeat blockIdx.x + 1 and the one before it that came. The last
 * block of a place to end adds up the steps. */
static __global__ void __launch_bounds__(OCT_SHIFT_THREADS, 2)
    oct_flow_shift_kernel(const struct oct_flow_cuda f)
{
    __shared__ struct oct_shift_search search;
    oct_await_before();
    const uint32_t r = blockIdx.x + 1, k = blockIdx.y, before = oct_shift_before(f, r, k);
    struct oct_flow_cuda_place *p = &f.place[k];
    if (threadIdx.x == 0) {
        p->pair[r] = before < r ? OCT_FLOW_IS_PAIR : 0;
        p->step[r][0] = p->step[r][1] = 0;
    }
    if (before < r)
        oct_shift_find_step(f, &search, before, r, k);
    if (threadIdx.x > 0)
        return;
    __threadfence();
    if (atomicAdd(&p->n_planned, 1u) + 2 < f.n_repeats)
        return;
    p->n_planned = 0;
    oct_flow_add_steps(f, k);
}

#endif
