#include "analysis/surface/distance.h"

#include "kernels/device/workers.h"

#include <math.h>
#include <stdlib.h>

const struct oct_distance_columns *oct_distance_columns_select(const char *name)
{
    static const struct oct_distance_columns *const sets[OCT_N_SIMD + 1] = {
        OCT_SIMD_ALL(oct_distance_columns)};
    return sets[oct_simd_choose(name)];
}

struct job {
    const struct oct_distance_columns *columns;
    struct oct_distance_map map;
    float *phi;
};

static void run_piece(void *context, unsigned piece, unsigned worker)
{
    const struct job *job = context;
    (void)worker;
    job->columns->run(&job->map, piece, job->phi + (size_t)piece * job->map.n_j * job->map.n_d);
}

static uint32_t clamp(int64_t i, uint32_t n)
{
    return i < 0 ? 0 : i >= n ? n - 1 : (uint32_t)i;
}

enum oct_err oct_distance_of_heights(const float *heights, const uint32_t dims[3], double reach,
                                     struct oct_workers *workers, float *phi, struct oct_error *err)
{
    for (size_t i = 0; i < (size_t)dims[0] * dims[1]; i++)
        if (!isfinite(heights[i]))
            return oct_fail(err, OCT_E_ARG, "distances: a height is not a finite number");
    if (!(reach > 0 && reach <= OCT_DISTANCE_MOST_REACH))
        return oct_fail(err, OCT_E_ARG, "distances: a reach of %g voxels; give up to %g", reach,
                        OCT_DISTANCE_MOST_REACH);
    const int64_t far = (int64_t)ceil(reach) + 1;
    const size_t row = dims[1] + 2 * (size_t)far, n = (dims[0] + 2 * (size_t)far) * row;
    float *padded = malloc(n * sizeof(*padded)), *to = padded;
    if (!padded)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %zu heights", n);
    for (int64_t b = -far; b < dims[0] + far; b++)
        for (int64_t j = -far; j < dims[1] + far; j++)
            *to++ = heights[(size_t)clamp(b, dims[0]) * dims[1] + clamp(j, dims[1])];
    struct job job = {
        .columns = oct_distance_columns_select("auto"),
        .map = {.heights = padded + (size_t)far * row + far,
                .row = (ptrdiff_t)row,
                .far = (ptrdiff_t)far - 1,
                .reach = (float)reach,
                .n_j = dims[1],
                .n_d = dims[2]},
        .phi = phi,
    };
    oct_workers_run(workers, dims[0], run_piece, &job);
    free(padded);
    return OCT_OK;
}
