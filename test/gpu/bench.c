/* The GPU benchmark alone (scripts/gpu-check): thesis geometry, what `octctl bench --backend cuda`
 * shows, in a program that needs none of octd's libraries.
 *
 *     bench [SECONDS [STREAMS [BATCH]]]      0 or left out: the engine's own choice
 *
 * Exit status: 0, 1 failed, 3 no GPU. */
#include "tools/bench/cuda.h"

#include "kernels/device/cuda_device.h"

#include <stdio.h>
#include <stdlib.h>

struct shape {
    uint32_t depth;
    const char *kernels;
    enum oct_range range;
};

static enum oct_err run(const struct shape *shape, struct oct_engine_options options,
                        double seconds, struct oct_error *err)
{
    struct oct_bench_scene scene = {.plan = NULL};
    struct oct_bench_cuda_row row;
    struct oct_geometry geometry;
    struct oct_calibration cal = {.n_wavelengths = 0};
    options.cuda = shape->kernels;

    enum oct_err e =
        oct_geometry_init(&geometry, 832, 240, 240, 0, shape->depth, OCT_SAMPLE_U8, err);
    if (!e && (e = oct_bench_calibration(&cal, geometry.n_samples)))
        oct_fail(err, e, "out of memory");
    if (!e)
        e = oct_plan_create(&scene.plan, &geometry, &cal, &oct_chain_thesis, err);
    oct_calibration_finish(&cal);
    if (!e)
        e = oct_bench_scene_fill(&scene, err);
    if (!e)
        e = oct_bench_cuda(&scene, &options, shape->range, seconds, &row, err);
    if (!e)
        oct_bench_cuda_print(&row);
    oct_bench_scene_finish(&scene);
    return e;
}

int main(int argc, char **argv)
{
    static const struct shape shapes[] = {
        {1024, "fused", OCT_RANGE_MANUAL},     {2048, "fused", OCT_RANGE_MANUAL},
        {1024, "fused", OCT_RANGE_PERCENTILE}, {1024, "fused", OCT_RANGE_AUTO},
        {1024, "plain", OCT_RANGE_MANUAL},     {2048, "plain", OCT_RANGE_MANUAL},
    };
    const double seconds = argc > 1 ? atof(argv[1]) : 4;
    const struct oct_engine_options options = {.n_streams = argc > 2 ? (unsigned)atoi(argv[2]) : 0,
                                               .max_batch = argc > 3 ? (unsigned)atoi(argv[3]) : 0};
    struct oct_error err = {.text = ""};
    char why[256];
    int status = 0;

    if (oct_cuda_count(why, sizeof(why)) == 0) {
        printf("no GPU answers: %s\n", why);
        return 3;
    }
    oct_bench_cuda_print_head();
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        if (run(&shapes[i], options, seconds, &err)) {
            printf("%s kernels, depth %u: %s\n", shapes[i].kernels, shapes[i].depth, err.text);
            status = 1;
        }
    return status;
}
