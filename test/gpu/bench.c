/* The GPU benchmark alone (scripts/gpu-check): thesis geometry and longer lines, what
 * `octctl bench --backend cuda` shows, in a program that needs none of octd's libraries.
 *
 *     bench [SECONDS [STREAMS [BATCH]]]      0 or left out: the engine's own choice
 *
 * Exit status: 0, 1 failed, 3 no GPU. */
#include "tools/bench/cuda.h"

#include "kernels/device/cuda_device.h"

#include <stdio.h>
#include <stdlib.h>

#define LINEAR OCT_INTERPOLATION_LINEAR
#define NUFFT OCT_INTERPOLATION_NUFFT

struct shape {
    uint32_t samples, depth;
    const char *kernels;
    enum oct_interpolation interpolation;
    enum oct_range range;
    enum oct_lines_format in; /* 0: u16 */
};

static enum oct_err run(const struct shape *shape, struct oct_engine_options options,
                        double seconds, struct oct_bench_cuda_row *row, struct oct_error *err)
{
    struct oct_bench_scene scene = {.plan = NULL};
    struct oct_geometry geometry;
    struct oct_calibration cal = {.n_wavelengths = 0};
    struct oct_chain chain = oct_chain_thesis;
    options.cuda = shape->kernels;
    chain.interpolation = shape->interpolation;

    enum oct_err e =
        oct_geometry_init(&geometry, shape->samples, 240, 240, 0, shape->depth, OCT_SAMPLE_U8, err);
    if (!e && (e = oct_bench_calibration(&cal, geometry.n_samples)))
        oct_fail(err, e, "out of memory");
    if (!e)
        e = oct_plan_create(&scene.plan, &geometry, &cal, &chain, err);
    oct_calibration_finish(&cal);
    if (!e)
        e = oct_bench_scene_fill(&scene, err);
    if (!e && shape->in)
        e = oct_bench_scene_pack(&scene, shape->in, err);
    if (!e)
        e = oct_bench_cuda(&scene, &options, shape->range, seconds, row, err);
    if (!e)
        oct_bench_cuda_print(row);
    oct_bench_scene_finish(&scene);
    return e;
}

int main(int argc, char **argv)
{
    static const struct shape shapes[] = {
        {832, 1024, "fused", LINEAR, OCT_RANGE_MANUAL},
        {832, 1024, "fused", NUFFT, OCT_RANGE_MANUAL},
        {832, 2048, "fused", LINEAR, OCT_RANGE_MANUAL},
        {832, 1024, "fused", LINEAR, OCT_RANGE_PERCENTILE},
        {832, 1024, "fused", NUFFT, OCT_RANGE_PERCENTILE},
        {832, 1024, "fused", LINEAR, OCT_RANGE_AUTO},
        {832, 1024, "plain", LINEAR, OCT_RANGE_MANUAL},
        {832, 1024, "plain", NUFFT, OCT_RANGE_MANUAL},
        {832, 2048, "plain", LINEAR, OCT_RANGE_MANUAL},
        {1024, 512, "fused", NUFFT, OCT_RANGE_MANUAL},
        {1024, 512, "fused", NUFFT, OCT_RANGE_MANUAL, OCT_LINES_12P},
        {1024, 512, "fused", NUFFT, OCT_RANGE_MANUAL, OCT_LINES_U8},
        {1024, 512, "fused", NUFFT, OCT_RANGE_PERCENTILE, OCT_LINES_12P},
        {2048, 1024, "fused", LINEAR, OCT_RANGE_MANUAL},
        {2048, 1024, "fused", NUFFT, OCT_RANGE_MANUAL},
        {4096, 2048, "fused", LINEAR, OCT_RANGE_MANUAL},
        {4096, 2048, "fused", NUFFT, OCT_RANGE_MANUAL},
    };
    enum { N_SHAPES = sizeof(shapes) / sizeof(shapes[0]) };
    const double seconds = argc > 1 ? atof(argv[1]) : 4;
    const struct oct_engine_options options = {.n_streams = argc > 2 ? (unsigned)atoi(argv[2]) : 0,
                                               .max_batch = argc > 3 ? (unsigned)atoi(argv[3]) : 0};
    struct oct_bench_cuda_row rows[N_SHAPES];
    struct oct_error err = {.text = ""};
    char why[256];
    size_t n = 0;

    if (oct_cuda_count(why, sizeof(why)) == 0) {
        printf("no GPU answers: %s\n", why);
        return 3;
    }
    oct_bench_cuda_print_head();
    for (size_t i = 0; i < N_SHAPES; i++)
        if (run(&shapes[i], options, seconds, &rows[n], &err))
            printf("%s kernels, %u samples, depth %u: %s\n", shapes[i].kernels, shapes[i].samples,
                   shapes[i].depth, err.text);
        else
            n++;
    oct_bench_cuda_print_ratios(rows, n);
    return n < N_SHAPES;
}
