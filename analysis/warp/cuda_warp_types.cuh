/* What the kernels of the registration of two volumes share: the box of a level, places in it,
 * derivatives, samples between voxels, and sums in a fixed order. */
#ifndef OCT_ANALYSIS_WARP_CUDA_WARP_TYPES_CUH
#define OCT_ANALYSIS_WARP_CUDA_WARP_TYPES_CUH

#include "kernels/device/cuda_launch.cuh"

#include <cmath>
#include <cstddef>
#include <cstdint>

#define OCT_WARP_THREADS 256u
#define OCT_WARP_LANES 32u /* neighbours along the depth that a warp reads at once */
#define OCT_WARP_ROWS (OCT_WARP_THREADS / OCT_WARP_LANES)

/* A level's volumes: side[] is V, M, D; units[i] is the length of a voxel along axis i in units of
 * the finest spacing. */
struct oct_warp_box {
    uint32_t side[3];
    uint32_t step[3]; /* from a voxel to the next along each axis */
    size_t n; /* voxels, at most 2^31: places in one volume have 32 bits, which saves half of
                         the instructions that find them */
    float units[3], per[3]; /* per: 1 / units */
};

/* In the box, or the nearest voxel of it. */
static __device__ inline uint32_t oct_warp_inside(int32_t i, uint32_t side)
{
    const int32_t last = (int32_t)side - 1;
    return (uint32_t)(i < 0 ? 0 : i < last ? i : last);
}

struct oct_warp_place {
    uint32_t x[3], at; /* at: in a volume */
};

static __host__ __device__ inline uint32_t oct_warp_groups(uint64_t n, uint32_t each)
{
    return (uint32_t)((n + each - 1) / each);
}

static __device__ inline uint32_t oct_warp_at(const struct oct_warp_box &box, uint32_t b,
                                              uint32_t j, uint32_t d)
{
    return b * box.step[0] + j * box.step[1] + d;
}

static __device__ inline struct oct_warp_place oct_warp_place_of(const struct oct_warp_box &box,
                                                                 size_t i)
{
    const uint32_t at = (uint32_t)i, line = at / box.side[2], b = line / box.side[1];
    return {{b, line - b * box.side[1], at - line * box.side[2]}, at};
}

/* ---- derivatives: central differences, one-sided in the border layer ---- */

struct oct_warp_slope {
    uint32_t low, high; /* the difference of the values there, */
    float by;           /* times this */
};

static __device__ inline struct oct_warp_slope
oct_warp_slope_of(const struct oct_warp_box &box, const struct oct_warp_place &p, int axis)
{
    const bool first = p.x[axis] == 0, last = p.x[axis] + 1 == box.side[axis];
    return {first ? p.at : p.at - box.step[axis], last ? p.at : p.at + box.step[axis],
            first || last ? 1.0f : 0.5f};
}

static __device__ inline float oct_warp_along(const float *volume, const struct oct_warp_slope &s)
{
    return s.by * (volume[s.high] - volume[s.low]);
}

/* du[i][k] = du_i / dx_k, voxels by voxels. */
struct oct_warp_matrix {
    float of[3][3];
};

/* det(I - Du) */
static __device__ inline float oct_warp_volume_of(const struct oct_warp_matrix &du)
{
    const float a = 1 - du.of[0][0], b = -du.of[0][1], c = -du.of[0][2];
    const float d = -du.of[1][0], e = 1 - du.of[1][1], f = -du.of[1][2];
    const float g = -du.of[2][0], h = -du.of[2][1], i = 1 - du.of[2][2];
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g);
}

/* ---- between voxels ---- */

/* Where x - u lies along one axis: `part` of the way from voxel i to the next; i + 1 exists. The
 * whole voxels of u are split off first, so that large volumes lose no digits. */
static __device__ inline uint32_t oct_warp_between(uint32_t x, float u, uint32_t side, float *part)
{
    const float most = 268435456.0f;
    const float whole = floorf(fminf(fmaxf(-u, -most), most));
    const int32_t i = (int32_t)x + (int32_t)whole, last = (int32_t)side - 1;
    *part = i < 0 ? 0.0f : i >= last ? 1.0f : -u - whole;
    return i < 0 ? 0u : min((uint32_t)i, side - 2);
}

struct oct_warp_cell {
    uint32_t at; /* its first corner */
    float part[3];
};

static __device__ inline struct oct_warp_cell
oct_warp_cell_of(const struct oct_warp_box &box, const uint32_t x[3], float u0, float u1, float u2)
{
    struct oct_warp_cell cell;
    const uint32_t b = oct_warp_between(x[0], u0, box.side[0], &cell.part[0]);
    const uint32_t j = oct_warp_between(x[1], u1, box.side[1], &cell.part[1]);
    const uint32_t d = oct_warp_between(x[2], u2, box.side[2], &cell.part[2]);
    cell.at = oct_warp_at(box, b, j, d);
    return cell;
}

static __device__ inline float oct_warp_mix(float a, float b, float part)
{
    return fmaf(part, b - a, a);
}

/* Trilinear. */
static __device__ inline float oct_warp_sample(const float *volume, const struct oct_warp_box &box,
                                               const struct oct_warp_cell &cell)
{
    float along_d[4];
    for (int i = 0; i < 4; i++) {
        const float *corner =
            volume + (cell.at + (i / 2 ? box.step[0] : 0) + (i % 2 ? box.step[1] : 0));
        along_d[i] = oct_warp_mix(corner[0], corner[1], cell.part[2]);
    }
    return oct_warp_mix(oct_warp_mix(along_d[0], along_d[1], cell.part[1]),
                        oct_warp_mix(along_d[2], along_d[3], cell.part[1]), cell.part[0]);
}

/* ---- sums ---- */

/* Of one block; of all, in the blocks' order. */
struct oct_warp_sums {
    double ssd, change; /* sum (T(h) - R)^2, sum (J - 1) log J */
    float least;        /* J */
    float longest;      /* of all alone: |v| of the last step, before it was cut */
    uint32_t n_bad;     /* values that are not finite */
    uint32_t padding;
};

static __device__ inline void oct_warp_sums_add(struct oct_warp_sums *to,
                                                const struct oct_warp_sums &more)
{
    to->ssd += more.ssd;
    to->change += more.change;
    to->least = to->least <= more.least ? to->least : more.least;
    to->n_bad += more.n_bad;
}

static __device__ inline struct oct_warp_sums oct_warp_sums_none()
{
    return {0, 0, INFINITY, 0, 0, 0};
}

/* The sums of a block's threads, in thread 0. All OCT_WARP_THREADS call it, once. */
static __device__ inline struct oct_warp_sums oct_warp_sums_of_block(struct oct_warp_sums own)
{
    __shared__ struct oct_warp_sums sums[OCT_WARP_THREADS];
    const uint32_t t = threadIdx.x;
    sums[t] = own;
    __syncthreads();
    for (uint32_t i = t + OCT_WARP_LANES; t < OCT_WARP_LANES && i < OCT_WARP_THREADS;
         i += OCT_WARP_LANES)
        oct_warp_sums_add(&sums[t], sums[i]);
    __syncthreads();
    for (uint32_t i = 1; t == 0 && i < OCT_WARP_LANES; i++)
        oct_warp_sums_add(&sums[0], sums[i]);
    return sums[t];
}

#endif
