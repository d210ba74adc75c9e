/* What the kernels of the registration of two volumes share (the box of a level, places in it,
 * derivatives, samples between voxels, sums in a fixed order), the course of a level on the device,
 * and the energy of a displacement. */
#ifndef OCT_ANALYSIS_WARP_CUDA_WARP_ENERGY_CUH
#define OCT_ANALYSIS_WARP_CUDA_WARP_ENERGY_CUH

#include "kernels/device/cuda_launch.cuh"
extern "C" {
#include "analysis/warp/levels.h"
}

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace oct_warp
{
#define OCT_WARP_THREADS 256u
#define OCT_WARP_LANES 32u /* neighbours along the depth that a warp reads at once */
#define OCT_WARP_ROWS (OCT_WARP_THREADS / OCT_WARP_LANES)

/* A level's volumes: side[] is V, M, D; units[i] is the length of a voxel along axis i in units of
 * the finest spacing. */
struct box {
    uint32_t side[3];
    uint32_t step[3]; /* from a voxel to the next along each axis */
    size_t n; /* voxels, at most 2^31: places in one volume have 32 bits, which saves half of
                         the instructions that find them */
    float units[3], per[3]; /* per: 1 / units */
};

/* In the box, or the nearest voxel of it. */
static __device__ inline uint32_t inside(int32_t i, uint32_t side)
{
    const int32_t last = (int32_t)side - 1;
    return (uint32_t)(i < 0 ? 0 : i < last ? i : last);
}

struct place {
    uint32_t x[3], at; /* at: in a volume */
};

static __host__ __device__ inline uint32_t groups(uint64_t n, uint32_t each)
{
    return (uint32_t)((n + each - 1) / each);
}

static __device__ inline uint32_t index_of(const struct box &box, uint32_t b, uint32_t j,
                                           uint32_t d)
{
    return b * box.step[0] + j * box.step[1] + d;
}

static __device__ inline struct place place_of(const struct box &box, size_t i)
{
    const uint32_t at = (uint32_t)i, line = at / box.side[2], b = line / box.side[1];
    return {{b, line - b * box.side[1], at - line * box.side[2]}, at};
}

/* ---- derivatives: central differences, one-sided in the border layer ---- */

struct slope {
    uint32_t low, high; /* the difference of the values there, */
    float by;           /* times this */
};

static __device__ inline struct slope slope_of(const struct box &box, const struct place &p,
                                               int axis)
{
    const bool first = p.x[axis] == 0, last = p.x[axis] + 1 == box.side[axis];
    return {first ? p.at : p.at - box.step[axis], last ? p.at : p.at + box.step[axis],
            first || last ? 1.0f : 0.5f};
}

static __device__ inline float along(const float *volume, const struct slope &s)
{
    return s.by * (volume[s.high] - volume[s.low]);
}

/* du[i][k] = du_i / dx_k, voxels by voxels. */
struct matrix {
    float of[3][3];
};

/* det(I - Du) */
static __device__ inline float volume_of(const struct matrix &du)
{
    const float a = 1 - du.of[0][0], b = -du.of[0][1], c = -du.of[0][2];
    const float d = -du.of[1][0], e = 1 - du.of[1][1], f = -du.of[1][2];
    const float g = -du.of[2][0], h = -du.of[2][1], i = 1 - du.of[2][2];
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g);
}

/* ---- between voxels ---- */

/* Where x - u lies along one axis: `part` of the way from voxel i to the next; i + 1 exists. The
 * whole voxels of u are split off first, so that large volumes lose no digits. */
static __device__ inline uint32_t between(uint32_t x, float u, uint32_t side, float *part)
{
    const float most = 268435456.0f;
    const float whole = floorf(fminf(fmaxf(-u, -most), most));
    const int32_t i = (int32_t)x + (int32_t)whole, last = (int32_t)side - 1;
    *part = i < 0 ? 0.0f : i >= last ? 1.0f : -u - whole;
    return i < 0 ? 0u : min((uint32_t)i, side - 2);
}

struct cell {
    uint32_t at; /* its first corner */
    float part[3];
};

static __device__ inline struct cell cell_of(const struct box &box, const uint32_t x[3], float u0,
                                             float u1, float u2)
{
    struct cell cell;
    const uint32_t b = between(x[0], u0, box.side[0], &cell.part[0]);
    const uint32_t j = between(x[1], u1, box.side[1], &cell.part[1]);
    const uint32_t d = between(x[2], u2, box.side[2], &cell.part[2]);
    cell.at = index_of(box, b, j, d);
    return cell;
}

static __device__ inline float mix(float a, float b, float part)
{
    return fmaf(part, b - a, a);
}

/* Trilinear. */
static __device__ inline float sample(const float *volume, const struct box &box,
                                      const struct cell &cell)
{
    float along_d[4];
    for (int i = 0; i < 4; i++) {
        const float *corner =
            volume + (cell.at + (i / 2 ? box.step[0] : 0) + (i % 2 ? box.step[1] : 0));
        along_d[i] = mix(corner[0], corner[1], cell.part[2]);
    }
    return mix(mix(along_d[0], along_d[1], cell.part[1]), mix(along_d[2], along_d[3], cell.part[1]),
               cell.part[0]);
}

/* ---- sums ---- */

/* Of one block; of all, in the blocks' order. */
struct sums {
    double ssd, change; /* sum (T(h) - R)^2, and of E what is of J */
    float least;        /* J */
    uint32_t n_bad;     /* values that are not finite */
};

static __device__ inline void sums_add(struct sums *to, const struct sums &more)
{
    to->ssd += more.ssd;
    to->change += more.change;
    to->least = to->least <= more.least ? to->least : more.least;
    to->n_bad += more.n_bad;
}

static __device__ inline struct sums sums_none()
{
    return {0, 0, INFINITY, 0};
}

/* What a block's threads have, added up in a fixed order, in thread 0. All OCT_WARP_THREADS call
 * it, once. */
template <class T, class ADD> static __device__ inline T reduce_block(T own, ADD add)
{
    __shared__ T all[OCT_WARP_THREADS];
    const uint32_t t = threadIdx.x;
    all[t] = own;
    __syncthreads();
    for (uint32_t i = t + OCT_WARP_LANES; t < OCT_WARP_LANES && i < OCT_WARP_THREADS;
         i += OCT_WARP_LANES)
        add(&all[t], all[i]);
    __syncthreads();
    for (uint32_t i = 1; t == 0 && i < OCT_WARP_LANES; i++)
        add(&all[0], all[i]);
    return all[t];
}

static __device__ inline struct sums sums_of_block(const struct sums &own)
{
    return reduce_block(own, [](struct sums *to, const struct sums &more) { sums_add(to, more); });
}

/* ---- the course of a level ----
 *
 * The course of a level on the device: so that several steps are queued at once, the device itself
 * finds out whether the next one is wanted, as levels.c does on the host with the same numbers.
 * Where a trial is not taken, or E has fallen too little, what is queued behind does nothing; the
 * host goes through the results afterwards and decides the same. */

#define OCT_WARP_BATCH 16u /* steps queued at once, at most */

struct course {
    double energy, fallen[OCT_WARP_FALL_STEPS]; /* E: now, and of the newest steps */
    float least;                                /* min J */
    uint32_t number;                            /* of steps taken */
    uint32_t is_over;
    uint32_t padding;
};

/* Of one energy. */
struct result {
    struct sums sums;
    double energy;
    uint32_t is_there; /* 0: the course was over before */
    uint32_t padding;
};

/* Whether kernels of a course do anything; NULL: there is none, and they do. */
static __device__ inline bool has_ended(const struct course *course)
{
    return course && course->is_over;
}

static __global__ void course_kernel(struct course from, struct course *course)
{
    if (threadIdx.x == 0)
        *course = from;
}

/* A trial of this energy is taken, or the course is over. */
static __device__ inline void decide_trial(struct course *c, double energy, float least)
{
    const bool folds = (double)least < OCT_WARP_LEAST_JACOBIAN && least < c->least;
    if (!(energy <= c->energy) || folds) {
        c->is_over = 1;
        return;
    }
    double *then = c->fallen + ++c->number % OCT_WARP_FALL_STEPS;
    c->is_over =
        c->number >= OCT_WARP_FALL_STEPS && !(*then - energy >= OCT_WARP_LEAST_FALL * fabs(*then));
    *then = c->energy = energy;
    c->least = least;
}

/* parts [n]: of blocks. One block. */
static __global__ void total_kernel(const struct sums *parts, uint32_t n, struct course *course,
                                    struct result *result)
{
    struct sums own = sums_none();
    const bool is_over = has_ended(course);
    const uint32_t end = is_over ? 0 : n;
#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < end; i += OCT_WARP_THREADS)
        sums_add(&own, parts[i]);
    own = sums_of_block(own);
    if (threadIdx.x > 0)
        return;
    *result = {own, own.ssd / 2 + own.change, !is_over, 0};
    if (course && !is_over)
        decide_trial(course, result->energy, own.least);
}

/* ---- the energy of a displacement ----
 *
 * The energy of a displacement, in one pass: T(h), J, its pressure, and the sums of both terms. A
 * block's threads go along the B-scans, so that u is read once but for its neighbours in the same
 * B-scan, which lie in the first cache. */

#define OCT_WARP_MARCH 16u /* B-scans of a block */

/* Blocks of the energy; each leaves its sums. */
static inline uint64_t energy_blocks(const struct box &box)
{
    return (uint64_t)groups(box.side[2], OCT_WARP_LANES) * groups(box.side[1], OCT_WARP_ROWS) *
           groups(box.side[0], OCT_WARP_MARCH);
}

/* Of this thread: A-line and depth; the B-scans from b to end. */
struct march {
    uint32_t j, d, b, end;
    bool is_in; /* the box */
};

static __device__ inline struct march march_of(const struct box &box)
{
    const uint32_t n_d = groups(box.side[2], OCT_WARP_LANES);
    const uint32_t n_j = groups(box.side[1], OCT_WARP_ROWS);
    const uint32_t plane = blockIdx.x / n_d;
    struct march m;
    m.d = blockIdx.x % n_d * OCT_WARP_LANES + threadIdx.x % OCT_WARP_LANES;
    m.j = plane % n_j * OCT_WARP_ROWS + threadIdx.x / OCT_WARP_LANES;
    m.b = plane / n_j * OCT_WARP_MARCH;
    m.end = min(m.b + OCT_WARP_MARCH, box.side[0]);
    m.is_in = m.d < box.side[2] && m.j < box.side[1];
    return m;
}

/* u at a voxel and at its neighbours along the B-scans. */
struct three {
    float before[3], here[3], after[3];
};

/* Du; the neighbours along the A-lines and the depth are read. */
static __device__ inline struct matrix matrix_of(const float *u, const struct box &box,
                                                 const struct place &p, const struct three &three)
{
    const struct slope along_j = slope_of(box, p, 1);
    const struct slope along_d = slope_of(box, p, 2);
    const float by = p.x[0] == 0 || p.x[0] + 1 == box.side[0] ? 1.0f : 0.5f;
    struct matrix du;
    for (int i = 0; i < 3; i++) {
        du.of[i][0] = by * (three.after[i] - three.before[i]);
        du.of[i][1] = along(u + i * box.n, along_j);
        du.of[i][2] = along(u + i * box.n, along_d);
    }
    return du;
}

/* To the next B-scan; p is there already. */
static __device__ inline void three_go_on(struct three *three, const float *u,
                                          const struct box &box, const struct place &p)
{
    for (int i = 0; i < 3; i++) {
        three->before[i] = three->here[i];
        three->here[i] = three->after[i];
        if (p.x[0] + 1 < box.side[0])
            three->after[i] = u[i * box.n + p.at + box.step[0]];
    }
}

/* As if the last call of three_go_on had been for the B-scan before p. */
static __device__ inline struct three three_before(const float *u, const struct box &box,
                                                   const struct place &p)
{
    struct three three = {};
    for (int i = 0; i < 3; i++) {
        three.after[i] = u[i * box.n + p.at];
        three.here[i] = p.x[0] > 0 ? u[i * box.n + p.at - box.step[0]] : three.after[i];
    }
    return three;
}

/* What is added of a voxel; values beyond folds are those of J = 1e-6, and the step is refused. */
static __device__ inline float log_volume(float j)
{
    return logf(fmaxf(j, 1e-6f));
}

/* fixed: NaN where it is not compared. warped: T(h); pressure: lambda (J + log J) and, where J is
 * below J1, B log(J / J1); volume: J, NULL: not wanted; sums: [blocks]. */
static __global__ void __launch_bounds__(OCT_WARP_THREADS)
    energy_kernel(struct box box, const float *u, const float *moving, const float *fixed,
                  float lambda, float *warped, float *pressure, float *volume, struct sums *sums,
                  const struct course *course)
{
    if (has_ended(course))
        return;
    const struct march m = march_of(box);
    struct sums own = sums_none();
    if (m.is_in) {
        struct place p = {{m.b, m.j, m.d}, index_of(box, m.b, m.j, m.d)};
        struct three three = three_before(u, box, p);
        for (; p.x[0] < m.end; p.x[0]++, p.at += box.step[0]) {
            three_go_on(&three, u, box, p);
            const float j = volume_of(matrix_of(u, box, p, three));
            const struct cell cell = cell_of(box, p.x, three.here[0], three.here[1], three.here[2]);
            const float there = sample(moving, box, cell), r = fixed[p.at];
            const float log_j = log_volume(j), off = r == r ? there - r : 0.0f;
            const float low = fminf(log_j - OCT_WARP_BARRIER_LOG_J, 0.0f);
            const float less = fminf(j / OCT_WARP_BARRIER_J, 1.0f) - 1;
            warped[p.at] = there;
            pressure[p.at] = fmaf(OCT_WARP_BARRIER, low, lambda * (j + log_j));
            if (volume)
                volume[p.at] = j;
            own.ssd += (double)(off * off);
            own.change += (double)(lambda * (j - 1) * log_j + OCT_WARP_BARRIER * (less - low));
            own.least = fminf(own.least, j);
        }
    }
    own = sums_of_block(own);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = own;
}

} // namespace oct_warp

#endif
