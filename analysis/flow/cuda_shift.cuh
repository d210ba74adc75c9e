/* Registration of complex B-scans on a device: what oct_flow_shift_find does (bscan.h), a block a
 * pair. Part of cuda.cu. */
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
#define OCT_SHIFT_AT_ONCE 7 /* depths of the first look that a block takes */
#define OCT_SHIFT_WARPS (OCT_SHIFT_THREADS / 32)

/* Shared. */
struct oct_shift_search {
    double map[OCT_SHIFT_N_X][OCT_SHIFT_N_Z]; /* mean of |sum|^2; < 0: not known */
    double part[OCT_SHIFT_WARPS][OCT_SHIFT_N_Z];
    int x, z; /* where it is largest */
    double mean;
    uint32_t counts[OCT_SHIFT_WARPS];
};

/* Adds a[d] conj b[d - z - i], i = 0 .. N - 1. */
template <int N>
static __device__ __forceinline__ void oct_shift_add(const float2 *a, const float2 *b, int d, int z,
                                                     float2 sum[N])
{
    const float2 of_a = __ldg(a + d);
#pragma unroll
    for (int i = 0; i < N; i++) {
        const float2 product = oct_flow_cross(of_a, __ldg(b + d - z - i));
        sum[i].x += product.x;
        sum[i].y += product.y;
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
    [[maybe_unused]] constexpr int AT_ONCE = N > 3 ? 1 : 4; /* loads hide one another's latency */
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
                                      const float2 *a, const float2 *b, uint32_t step, int x, int z,
                                      int n)
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
        if (from < 0 || from >= m)
            continue;
        oct_shift_line<N>(a + (size_t)j * f.depth, b + (size_t)from * f.depth, (int)f.depth, at,
                          power);
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

static __device__ __forceinline__ uint32_t oct_shift_first_step(const struct oct_flow_cuda &f)
{
    return f.n_lines / OCT_SHIFT_LOOK_LINES > 0 ? f.n_lines / OCT_SHIFT_LOOK_LINES : 1;
}

/* look: what oct_flow_look_kernel has seen without a shift of lines. */
static __device__ bool oct_shift_look_first(const struct oct_flow_cuda &f,
                                            struct oct_shift_search *s, const float2 *a,
                                            const float2 *b, const double *look)
{
    const uint32_t step = oct_shift_first_step(f);
    const uint32_t t = threadIdx.x;
    oct_shift_forget(s);
    if (t < OCT_SHIFT_N_Z)
        s->map[OCT_SHIFT_MOST_X][t] = look[t];
    __syncthreads();
    for (int i = 0; i < (int)OCT_SHIFT_N_X; i++) { /* 0, then the others */
        const int x = i == 0                  ? 0
                      : i <= OCT_SHIFT_MOST_X ? i - OCT_SHIFT_MOST_X - 1
                                              : i - OCT_SHIFT_MOST_X;
        if (i > 0)
            oct_shift_look<OCT_SHIFT_AT_ONCE>(f, s, a, b, step, x, -OCT_SHIFT_MOST_Z,
                                              OCT_SHIFT_N_Z);
        if (i > 0 && i + 1 < (int)OCT_SHIFT_N_X)
            continue;
        oct_shift_find_largest(s);
        const bool is_clear = oct_shift_at(s, s->x, s->z) > OCT_SHIFT_CLEAR * s->mean;
        __syncthreads();
        if (is_clear)
            return true;
    }
    return false;
}

static __device__ void oct_shift_climb(const struct oct_flow_cuda &f, struct oct_shift_search *s,
                                       const float2 *a, const float2 *b)
{
    const uint32_t step = f.n_lines <= OCT_SHIFT_ALL_LINES ? 1 : OCT_SHIFT_STEP;
    const int from_x = s->x, from_z = s->z;
    oct_shift_forget(s);
    int best_x = from_x, best_z = from_z;
    for (unsigned i = 0; i < OCT_SHIFT_MOST_STEPS; i++) {
        oct_shift_look<3>(f, s, a, b, step, best_x, best_z - 1, 3);
        for (int x = best_x - 1; x <= best_x + 1; x += 2)
            if (oct_shift_at(s, x, best_z) < 0)
                oct_shift_look<1>(f, s, a, b, step, x, best_z, 1);
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
                                         const float2 *a, const float2 *b)
{
    bool differs = false;
    for (uint32_t j = 0; j < f.n_lines && !differs; j++) {
        uint32_t own = 0;
        for (uint32_t d = threadIdx.x; d < f.depth; d += OCT_SHIFT_THREADS) {
            const float2 x = a[(size_t)j * f.depth + d], y = b[(size_t)j * f.depth + d];
            if (__float_as_int(x.x) != __float_as_int(y.x) ||
                __float_as_int(x.y) != __float_as_int(y.y))
                own = 1;
        }
        differs = oct_flow_block_sum(own, s->counts) > 0;
    }
    return !differs;
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

static __device__ __forceinline__ const float2 *oct_shift_bscan(const struct oct_flow_cuda &f,
                                                                uint32_t r, uint32_t k)
{
    return f.b + oct_flow_bscan_of(f, r, k) * f.n_lines * f.depth;
}

/* The first look at repeat blockIdx.y + 1 of place blockIdx.z, at some depths. */
static __global__ void __launch_bounds__(OCT_SHIFT_THREADS, 2)
    oct_flow_look_kernel(const struct oct_flow_cuda f)
{
    __shared__ struct oct_shift_search search;
    const uint32_t r = blockIdx.y + 1, k = blockIdx.z, before = oct_shift_before(f, r, k);
    const uint32_t first = blockIdx.x * OCT_SHIFT_AT_ONCE, t = threadIdx.x;
    if (before == r)
        return;
    oct_shift_look<OCT_SHIFT_AT_ONCE>(f, &search, oct_shift_bscan(f, before, k),
                                      oct_shift_bscan(f, r, k), oct_shift_first_step(f), 0,
                                      (int)first - OCT_SHIFT_MOST_Z, OCT_SHIFT_AT_ONCE);
    if (t < OCT_SHIFT_AT_ONCE)
        f.looks[((size_t)k * f.n_repeats + r) * OCT_SHIFT_N_Z + first + t] =
            search.map[OCT_SHIFT_MOST_X][first + t];
}

/* Step of repeat blockIdx.x + 1 of place blockIdx.y against the last one before it that came. */
static __global__ void __launch_bounds__(OCT_SHIFT_THREADS, 2)
    oct_flow_shift_kernel(const struct oct_flow_cuda f)
{
    __shared__ struct oct_shift_search search;
    struct oct_shift_search *s = &search;
    const uint32_t r = blockIdx.x + 1, k = blockIdx.y, t = threadIdx.x;
    struct oct_flow_cuda_place *p = &f.place[k];
    const uint32_t before = oct_shift_before(f, r, k);
    const bool is_pair = before < r;
    if (t == 0) {
        p->pair[r] = is_pair ? OCT_FLOW_IS_PAIR : 0;
        p->step[r][0] = p->step[r][1] = 0;
        if (r == 1)
            p->pair[0] = 0;
    }
    if (!is_pair)
        return;
    const size_t of[2] = {oct_flow_bscan_of(f, before, k), oct_flow_bscan_of(f, r, k)};
    const float2 *a = oct_shift_bscan(f, before, k), *b = oct_shift_bscan(f, r, k);
    const double *look = f.looks + ((size_t)k * f.n_repeats + r) * OCT_SHIFT_N_Z;
    uint32_t has_lines[2] = {0, 0};
    for (unsigned i = 0; i < 2; i++) {
        for (uint32_t j = t; j < f.n_lines; j += OCT_SHIFT_THREADS)
            has_lines[i] += f.power[of[i] * f.n_lines + j] > 0;
        has_lines[i] = oct_flow_block_sum(has_lines[i], s->counts);
    }
    const bool is_same = oct_shift_is_same(f, s, a, b);
    if (t == 0)
        p->pair[r] |= (is_same ? OCT_FLOW_IS_SAME : 0) | (has_lines[1] ? OCT_FLOW_IS_LIT : 0);
    if (!has_lines[0] || !has_lines[1] || !oct_shift_look_first(f, s, a, b, look))
        return;
    oct_shift_climb(f, s, a, b);
    if (t > 0)
        return;
    const int x = s->x, z = s->z;
    const double most = oct_shift_at(s, x, z);
    p->step[r][0] = x + oct_shift_top(oct_shift_at(s, x - 1, z), most, oct_shift_at(s, x + 1, z));
    p->step[r][1] = z + oct_shift_top(oct_shift_at(s, x, z - 1), most, oct_shift_at(s, x, z + 1));
}

#endif
