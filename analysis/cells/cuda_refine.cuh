/* Cells to fractions of a pixel: refine.c on the device, a block a cell. */
#ifndef OCT_ANALYSIS_CELLS_CUDA_REFINE_CUH
#define OCT_ANALYSIS_CELLS_CUDA_REFINE_CUH

#include "analysis/cells/cuda_types.cuh"

#include "numeric/parabola.h"

#define OCT_CELLS_POINTS 27u /* of a round */
#define OCT_CELLS_PARTS 16u  /* of the samples of a point: lanes of a warp */
#define OCT_CELLS_REFINE_THREADS 448u

/* A part of the samples of point n of a round; refine.h says what their sum is of. */
static __device__ inline float oct_cells_edge_part(const struct oct_cells_refiner &refiner,
                                                   const struct oct_cells_slopes *slopes,
                                                   const struct oct_cells_place &place, double h,
                                                   unsigned point, unsigned part)
{
    const int n = (int)point, x = (int)floor(place.x), y = (int)floor(place.y);
    const float u = (float)(place.x - x + h * (n % 3 - 1));
    const float v = (float)(place.y - y + h * (n / 3 % 3 - 1));
    const float r = (float)(place.radius + h * (n / 9 - 1));
    const unsigned each = OCT_CELLS_EDGE_SAMPLES / OCT_CELLS_PARTS;
    float sum = 0;
#pragma unroll
    for (unsigned k = 0; k < each; k++) {
        const unsigned i = part * each + k;
        const float c = refiner.unit[2 * i], s = refiner.unit[2 * i + 1];
        const struct oct_cells_slope g = oct_cells_slope_at(slopes, x, y, u + r * c, v + r * s);
        sum += g.x * c + g.y * s;
    }
    return sum;
}

/* oct_cells_refine_edge by all THREADS of a block, whole warps. place: in shared
 * memory, set before a barrier; what comes of it is behind one. */
template <unsigned THREADS>
static __device__ inline void oct_cells_refine_edge_by_block(const struct oct_cells_shape &s,
                                                             const struct oct_cells_planes &planes,
                                                             struct oct_cells_place *place)
{
    __shared__ float values[OCT_CELLS_POINTS];
    const struct oct_cells_refiner &refiner = s.refiner;
    const struct oct_cells_slopes slopes = {planes.gx, planes.gy, s.width, (int32_t)s.height,
                                            (int32_t)s.width};
    const unsigned i = threadIdx.x;
    if (i == 0)
        place->radius = oct_cells_within(place->radius, refiner.least, refiner.most);
    __syncthreads();
    for (int round = 0; round < OCT_CELLS_EDGE_ROUNDS; round++) {
        const double h = oct_cells_edge_side(round, refiner.radius);
        for (unsigned k = i; k / 32 * 32 < OCT_CELLS_POINTS * OCT_CELLS_PARTS; k += THREADS) {
            const unsigned point = min(k / OCT_CELLS_PARTS, OCT_CELLS_POINTS - 1);
            float sum =
                oct_cells_edge_part(refiner, &slopes, *place, h, point, k % OCT_CELLS_PARTS);
            for (int lanes = OCT_CELLS_PARTS / 2; lanes > 0; lanes /= 2)
                sum += __shfl_xor_sync(OCT_CELLS_ALL_LANES, sum, lanes);
            if (k == point * OCT_CELLS_PARTS)
                values[point] = fabsf(sum / OCT_CELLS_EDGE_SAMPLES);
        }
        __syncthreads();
        if (i == 0) {
            double step[3];
            oct_cells_edge_step(values, step);
            place->x += h * step[0];
            place->y += h * step[1];
            place->radius =
                oct_cells_within(place->radius + h * step[2], refiner.least, refiner.most);
        }
        __syncthreads();
    }
    if (i == 0)
        place->radius = oct_cells_edge_radius(place->radius, refiner.smooth);
    __syncthreads();
}

static __device__ inline double oct_cells_vertex_at(const float *at, size_t step)
{
    const double before = (double)*(at - step), middle = (double)*at, after = (double)at[step];
    if (before == 0 || after == 0)
        return 0;
    return oct_parabola_top(before * before, middle * middle, after * after);
}

/* The pixel of peak i, in raster order: n_row [n_rows] are those of each row, whose pixels stand in
 * the row's part of peaks [n_rows][width]. *n: how many there are. False: not so many. By all
 * threads of a block. */
static __device__ inline bool oct_cells_find_peak(const uint32_t *n_row, uint32_t n_rows,
                                                  const uint32_t *peaks, uint32_t width, uint32_t i,
                                                  uint32_t *pixel, uint32_t *n)
{
    enum { WARPS = OCT_CELLS_REFINE_THREADS / 32 };
    __shared__ uint32_t sums[WARPS], found;
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t before = 0; /* peaks of the rows before these */
    for (uint32_t first = 0; first < n_rows; first += OCT_CELLS_REFINE_THREADS) {
        const uint32_t row = first + threadIdx.x, own = row < n_rows ? n_row[row] : 0;
        uint32_t end = own;
        for (int d = 1; d < 32; d *= 2) {
            const uint32_t other = __shfl_sync(OCT_CELLS_ALL_LANES, end, (int)lane - d);
            end += (int)lane >= d ? other : 0;
        }
        if (lane == 31)
            sums[warp] = end;
        __syncthreads();
        end += before;
        for (unsigned k = 0; k < WARPS; k++) {
            end += k < warp ? sums[k] : 0;
            before += sums[k];
        }
        if (i >= end - own && i < end)
            found = peaks[(size_t)row * width + (i - (end - own))];
        __syncthreads();
    }
    *pixel = i < before ? found : 0;
    *n = before;
    return i < before;
}

/* Peaks first, first + 1, ... to found[0], found[1], ...; a block each. What B-splines refine stays
 * at the pixel. */
static __global__ void __launch_bounds__(OCT_CELLS_REFINE_THREADS)
    oct_cells_refine_kernel(const struct oct_cells_shape *shape, struct oct_cells_planes planes,
                            const uint32_t *n_row, const uint32_t *peaks, uint32_t first,
                            struct oct_cells_facts *facts, struct oct_cells_d_found *found)
{
    __shared__ struct oct_cells_place place;
    const struct oct_cells_shape &s = *shape;
    uint32_t pixel, n;
    const bool is_one = oct_cells_find_peak(n_row, s.height - 2 * s.border, peaks, s.width,
                                            first + blockIdx.x, &pixel, &n);
    if (blockIdx.x == 0 && threadIdx.x == 0)
        facts->n_peaks = n;
    if (!is_one)
        return;
    const uint32_t x = pixel % s.width, y = pixel / s.width;
    if (threadIdx.x == 0) {
        place = {(double)x, (double)y, s.circle_radius[planes.best[pixel]]};
        if (s.refine == OCT_CELLS_REFINE_PEAK) {
            place.x += oct_cells_vertex_at(planes.score + pixel, 1);
            place.y += oct_cells_vertex_at(planes.score + pixel, s.width);
        }
    }
    __syncthreads();
    if (s.refine == OCT_CELLS_REFINE_EDGE)
        oct_cells_refine_edge_by_block<OCT_CELLS_REFINE_THREADS>(s, planes, &place);
    if (threadIdx.x == 0)
        found[blockIdx.x] = {place, planes.score[pixel], pixel};
}

#endif
