/* Cells to fractions of a pixel: refine.c on the device, a block a cell. */
#ifndef OCT_ANALYSIS_CELLS_CUDA_REFINE_CUH
#define OCT_ANALYSIS_CELLS_CUDA_REFINE_CUH

#include "analysis/cells/cuda_types.cuh"

#define OCT_CELLS_POINTS 27u /* of a round */
#define OCT_CELLS_PARTS 8u   /* of the samples of a point */
#define OCT_CELLS_REFINE_THREADS 224u

/* A part of the samples of point n of a round; oct_cells_edge_mean has the sum. */
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
    for (unsigned i = part * each; i < (part + 1) * each; i++) {
        const float c = refiner.unit[2 * i], s = refiner.unit[2 * i + 1];
        const struct oct_cells_slope g = oct_cells_slope_at(slopes, x, y, u + r * c, v + r * s);
        sum += g.x * c + g.y * s;
    }
    return sum;
}

/* oct_cells_refine_edge by all threads of a block, OCT_CELLS_REFINE_THREADS at least. place: in
 * shared memory, set before a barrier; what comes of it is behind one. */
static __device__ inline void oct_cells_refine_edge_by_block(const struct oct_cells_shape &s,
                                                             const struct oct_cells_planes &planes,
                                                             struct oct_cells_place *place)
{
    __shared__ float parts[OCT_CELLS_POINTS * OCT_CELLS_PARTS], values[OCT_CELLS_POINTS];
    const struct oct_cells_refiner &refiner = s.refiner;
    const struct oct_cells_slopes slopes = {planes.gx, planes.gy, s.width, (int32_t)s.height,
                                            (int32_t)s.width};
    const unsigned i = threadIdx.x;
    if (i == 0)
        place->radius = oct_cells_within(place->radius, refiner.least, refiner.most);
    __syncthreads();
    for (int round = 0; round < OCT_CELLS_EDGE_ROUNDS; round++) {
        const double h = oct_cells_edge_side(round, refiner.radius);
        if (i < OCT_CELLS_POINTS * OCT_CELLS_PARTS)
            parts[i] = oct_cells_edge_part(refiner, &slopes, *place, h, i / OCT_CELLS_PARTS,
                                           i % OCT_CELLS_PARTS);
        __syncthreads();
        if (i < OCT_CELLS_POINTS) {
            float sum = 0;
            for (unsigned k = 0; k < OCT_CELLS_PARTS; k++)
                sum += parts[i * OCT_CELLS_PARTS + k];
            values[i] = fabsf(sum / OCT_CELLS_EDGE_SAMPLES);
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
    return oct_cells_vertex(before * before, middle * middle, after * after);
}

/* Peaks first, first + 1, ... to found[0], found[1], ...; a block each. What B-splines refine stays
 * at the pixel. */
static __global__ void __launch_bounds__(OCT_CELLS_REFINE_THREADS)
    oct_cells_refine_kernel(const struct oct_cells_shape *shape, struct oct_cells_planes planes,
                            const struct oct_cells_facts *facts, const uint32_t *peaks,
                            uint32_t first, struct oct_cells_found *found)
{
    __shared__ struct oct_cells_place place;
    const struct oct_cells_shape &s = *shape;
    const uint32_t i = first + blockIdx.x;
    if (i >= facts->n_peaks)
        return;
    const uint32_t pixel = peaks[i], x = pixel % s.width, y = pixel / s.width;
    if (threadIdx.x == 0) {
        place = {(double)x, (double)y, s.circle_radius[planes.best[pixel]]};
        if (s.refine == OCT_CELLS_REFINE_PEAK) {
            place.x += oct_cells_vertex_at(planes.score + pixel, 1);
            place.y += oct_cells_vertex_at(planes.score + pixel, s.width);
        }
    }
    __syncthreads();
    if (s.refine == OCT_CELLS_REFINE_EDGE)
        oct_cells_refine_edge_by_block(s, planes, &place);
    if (threadIdx.x == 0)
        found[blockIdx.x] = {place, planes.score[pixel], pixel};
}

#endif
