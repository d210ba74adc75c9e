/* A GPU beside its bus, by the configuration. */
#include "config/apply.h"
#include "tools/bench/cuda.h"
#include "tools/bench/engine.h"

#include <cjson/cJSON.h>

static void add_cuda_row(cJSON *rows, const struct oct_bench_cuda_row *row,
                         const struct oct_bench_cuda_row *linear)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "kernels", row->kernels);
    cJSON_AddStringToObject(object, "interpolation", row->interpolation);
    cJSON_AddStringToObject(object, "range", row->range);
    cJSON_AddNumberToObject(object, "samples", row->samples);
    cJSON_AddNumberToObject(object, "lines", row->lines);
    cJSON_AddNumberToObject(object, "depth", row->depth);
    cJSON_AddNumberToObject(object, "batch", row->batch);
    cJSON_AddNumberToObject(object, "streams", row->streams);
    cJSON_AddNumberToObject(object, "alines_per_s", row->lines_per_s);
    cJSON_AddNumberToObject(object, "bare_copy_alines_per_s", row->copy_lines_per_s);
    cJSON_AddNumberToObject(object, "device_copy_bytes_per_s", row->device_bytes_per_s);
    cJSON_AddNumberToObject(object, "kernels_alone_alines_per_s", row->kernel_lines_per_s);
    cJSON_AddNumberToObject(object, "batch_upload_us", row->stage_us[0]);
    cJSON_AddNumberToObject(object, "batch_kernels_us", row->stage_us[1]);
    cJSON_AddNumberToObject(object, "batch_download_us", row->stage_us[2]);
    cJSON_AddNumberToObject(object, "bscan_latency_us", row->latency_us);
    cJSON_AddNumberToObject(object, "grey_levels_off", row->error);
    if (linear) {
        cJSON_AddNumberToObject(object, "times_linear", row->lines_per_s / linear->lines_per_s);
        cJSON_AddNumberToObject(object, "kernels_alone_times_linear",
                                row->kernel_lines_per_s / linear->kernel_lines_per_s);
    }
    cJSON_AddItemToArray(rows, object);
}

struct gpu_shape {
    const char *kernels;
    uint32_t depth;
    enum oct_range range;
    enum oct_interpolation interpolation;
};

static enum oct_err measure_cuda(const struct oct_config *config, const struct gpu_shape *shape,
                                 double seconds, struct oct_bench_cuda_row *row,
                                 struct oct_error *err)
{
    struct oct_engine_options options;
    struct oct_bench_scene scene;
    char wisdom_dir[OCT_CONFIG_STRING_BYTES];
    struct oct_config c = *config;
    c.output.sample = OCT_SAMPLE_U8;
    c.pipeline.interpolation = shape->interpolation;
    enum oct_err e = oct_bench_scene_init(&scene, &c, shape->depth, err);
    if (e)
        return e;
    oct_config_engine_options(&c, &options, wisdom_dir, sizeof(wisdom_dir));
    options.cuda = shape->kernels;
    e = oct_bench_cuda(&scene, &options, shape->range, seconds, row, err);
    oct_bench_scene_finish(&scene);
    return e;
}

/* Half and all of the thesis's depth by the fused kernels, and their readable twin; nufft beside
 * linear by each. */
enum oct_err oct_bench_gpu_table(const struct oct_config *config, double seconds, bool json,
                                 cJSON *report, struct oct_error *err)
{
    static const struct gpu_shape shapes[] = {
        {"auto", 1024, OCT_RANGE_MANUAL, OCT_INTERPOLATION_LINEAR},
        {"auto", 2048, OCT_RANGE_MANUAL, OCT_INTERPOLATION_LINEAR},
        {"auto", 1024, OCT_RANGE_PERCENTILE, OCT_INTERPOLATION_LINEAR},
        {"auto", 1024, OCT_RANGE_MANUAL, OCT_INTERPOLATION_NUFFT},
        {"plain", 1024, OCT_RANGE_MANUAL, OCT_INTERPOLATION_LINEAR},
        {"plain", 1024, OCT_RANGE_MANUAL, OCT_INTERPOLATION_NUFFT}};
    enum { N_SHAPES = sizeof(shapes) / sizeof(shapes[0]) };
    struct oct_bench_cuda_row rows[N_SHAPES];
    cJSON *list = cJSON_AddArrayToObject(report, "cuda");
    enum oct_err e = OCT_OK;
    for (size_t i = 0; i < N_SHAPES && !e; i++) {
        e = measure_cuda(config, &shapes[i], seconds, &rows[i], err);
        if (e)
            break;
        if (i == 0 && !json)
            oct_bench_cuda_print_head();
        if (!json)
            oct_bench_cuda_print(&rows[i]);
        add_cuda_row(list, &rows[i], oct_bench_cuda_linear(rows, i, &rows[i]));
    }
    if (!e && !json)
        oct_bench_cuda_print_ratios(rows, N_SHAPES);
    return e;
}
