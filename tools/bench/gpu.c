/* A GPU beside its bus, by the configuration. */
#include "config/apply.h"
#include "tools/bench/cuda.h"
#include "tools/bench/engine.h"

#include <cjson/cJSON.h>

static void add_cuda_row(cJSON *rows, const struct oct_bench_cuda_row *row)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "kernels", row->kernels);
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
    cJSON_AddItemToArray(rows, object);
}

static enum oct_err measure_cuda(const struct oct_config *config, uint32_t depth,
                                 const char *kernels, enum oct_range range, double seconds,
                                 struct oct_bench_cuda_row *row, struct oct_error *err)
{
    struct oct_engine_options options;
    struct oct_bench_scene scene;
    char wisdom_dir[OCT_CONFIG_STRING_BYTES];
    struct oct_config c = *config;

    c.output.sample = OCT_SAMPLE_U8;
    enum oct_err e = oct_bench_scene_init(&scene, &c, depth, err);
    if (e)
        return e;
    oct_config_engine_options(&c, &options, wisdom_dir, sizeof(wisdom_dir));
    options.cuda = kernels;
    e = oct_bench_cuda(&scene, &options, range, seconds, row, err);
    oct_bench_scene_finish(&scene);
    return e;
}

/* Half and all of the thesis's depth by the fused kernels, and their readable twin. */
enum oct_err oct_bench_gpu_table(const struct oct_config *config, double seconds, bool json,
                                 cJSON *report, struct oct_error *err)
{
    static const struct {
        const char *kernels;
        uint32_t depth;
        enum oct_range range;
    } gpu_shapes[] = {{"auto", 1024, OCT_RANGE_MANUAL},
                      {"auto", 2048, OCT_RANGE_MANUAL},
                      {"auto", 1024, OCT_RANGE_PERCENTILE},
                      {"plain", 1024, OCT_RANGE_MANUAL}};
    cJSON *rows = cJSON_AddArrayToObject(report, "cuda");
    enum oct_err e = OCT_OK;

    for (size_t i = 0; i < sizeof(gpu_shapes) / sizeof(gpu_shapes[0]) && !e; i++) {
        struct oct_bench_cuda_row row;
        e = measure_cuda(config, gpu_shapes[i].depth, gpu_shapes[i].kernels, gpu_shapes[i].range,
                         seconds, &row, err);
        if (e)
            break;
        if (i == 0 && !json)
            oct_bench_cuda_print_head();
        if (!json)
            oct_bench_cuda_print(&row);
        add_cuda_row(rows, &row);
    }
    return e;
}
