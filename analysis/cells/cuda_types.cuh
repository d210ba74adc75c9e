/* What the kernels of cells share: sizes and tables of an engine, and what is found out about a
 * picture on the device. */
#ifndef OCT_ANALYSIS_CELLS_CUDA_TYPES_CUH
#define OCT_ANALYSIS_CELLS_CUDA_TYPES_CUH

#include "kernels/device/cuda_launch.cuh"
extern "C" {
#include "analysis/cells/engine.h"
#include "analysis/cells/gicov.h"
#include "analysis/cells/mgvf.h"
#include "analysis/cells/refine.h"
#include "analysis/cells/snake.h"
}

#define OCT_CELLS_THREADS 256u
#define OCT_CELLS_NO_CIRCLE 255u
#define OCT_CELLS_SINGLE 8u /* groups of a portion */
#define OCT_CELLS_JOINT 4u
#define OCT_CELLS_ALL_LANES 0xffffffffu

struct oct_cells_offset {
    int32_t dx, dy;
};

/* A circle's part of the table of groups (gicov.h): scouts, single groups, joint groups. A group is
 * a float4, {a, b, offset, w}, a joint one two of them, the second {c}; the offset is an integer in
 * the bits of a float. There are whole portions of single and of joint groups: what is left of the
 * single ones is among the joint ones, which are filled up with groups that add nothing. */
struct oct_cells_circle_groups {
    uint32_t first; /* in the table */
    uint32_t n_single, n_joint;
    float excess;
};

/* What kernels know of the engine. */
struct oct_cells_shape {
    uint32_t height, width, border;
    unsigned n_circles, n_disk;
    enum oct_cells_polarity polarity;
    enum oct_cells_refine refine;
    double threshold, floor, radius, stop;
    struct oct_snake_angles angles;
    struct oct_cells_refiner refiner;
    double circle_radius[OCT_CELLS_MOST_CIRCLES];
};

/* Found by kernels of one picture for those after them. */
struct oct_cells_facts {
    double level, scale; /* prepare.h */
    float v0;
    bool is_flat;
    uint32_t found, rank, n_equal, least; /* the median: median.c has the method */
    uint32_t n_peaks, highest;            /* the bits of the largest |S| sought */
};

struct oct_cells_d_found {
    struct oct_cells_place place;
    float score;
    uint32_t pixel; /* y width + x */
};

/* The picture last taken, on the device; rows `width` apart. */
struct oct_cells_planes {
    float *raw, *along, *pixels; /* as it came; smoothed in x; I' */
    float *gx, *gy;
    float *score;
    uint8_t *best;
    uint8_t *valid, *near; /* of a picture that has masked pixels */
};

static __device__ inline uint32_t oct_cells_bits(float x)
{
    return (uint32_t)__float_as_int(x) & 0x7fffffffu;
}

static __device__ inline float oct_cells_value(uint32_t bits)
{
    return __int_as_float((int)bits);
}

template <class T> static __device__ inline T oct_cells_warp_sum(T x)
{
    for (int lanes = 16; lanes > 0; lanes /= 2)
        x += __shfl_xor_sync(OCT_CELLS_ALL_LANES, x, lanes);
    return x;
}

static inline unsigned oct_cells_blocks(size_t n, unsigned threads)
{
    return (unsigned)((n + threads - 1) / threads);
}

#endif
