#include "tools/analyse/one_bscan.h"

#include "config/apply.h"
#include "kernels/engines.h"

#define COLLECT_US 1000000u

enum oct_err oct_one_bscan(const struct oct_plan *plan, const struct oct_config *config,
                           uint16_t *spectra, uint8_t *line_valid, float *values,
                           struct oct_error *err)
{
    const struct oct_engine_ops *ops;
    struct oct_engine *engine;
    struct oct_engine_options options;
    struct oct_raw_frame in = {.spectra = spectra, .line_valid = line_valid};
    struct oct_image_frame out = {.pixels = values}, *done = NULL;
    const struct oct_engine_job job = {
        .in = &in, .out = &out, .display = {.range = OCT_RANGE_MANUAL, .hi = 1}};
    char why[256], wisdom_dir[OCT_CONFIG_STRING_BYTES];

    oct_config_engine_options(config, &options, wisdom_dir, sizeof(wisdom_dir));
    enum oct_err e = oct_engine_select("cpu", plan, &options, &ops, &engine, why, sizeof(why), err);
    if (e)
        return e;
    e = ops->submit(engine, &job, 1);
    while (!e && (e = ops->collect(engine, COLLECT_US, &done)) == OCT_E_AGAIN)
        e = OCT_OK;
    ops->destroy(engine);
    e = e ? e : out.status;
    return e ? oct_fail(err, e, "the engine lost the B-scan") : OCT_OK;
}
