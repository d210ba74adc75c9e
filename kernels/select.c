#include "kernels/device/cuda_device.h"
#include "kernels/engines.h"

#include <stdio.h>
#include <string.h>

static enum oct_err select_cpu(const struct oct_plan *plan,
                               const struct oct_engine_options *options, const char *reason,
                               const struct oct_engine_ops **ops, struct oct_engine **engine,
                               char *why, size_t why_bytes, struct oct_error *err)
{
    *ops = &oct_engine_cpu;
    enum oct_err e = oct_engine_cpu.create(engine, plan, options, err);
    if (e == OCT_OK)
        snprintf(why, why_bytes, "engine cpu (%s), %s", oct_engine_cpu.describe(*engine), reason);
    return e;
}

static enum oct_err select_cuda(const struct oct_engine_ops *wanted, const struct oct_plan *plan,
                                const struct oct_engine_options *options, const char *reason,
                                const struct oct_engine_ops **ops, struct oct_engine **engine,
                                char *why, size_t why_bytes, struct oct_error *err)
{
    *ops = wanted;
    enum oct_err e = wanted->create(engine, plan, options, err);
    if (e == OCT_OK)
        snprintf(why, why_bytes, "engine cuda (%s), %s", wanted->describe(*engine), reason);
    return e;
}

/* A GPU if one answers; a wrong option stays an error, whatever there is. */
static enum oct_err select_any(const struct oct_plan *plan,
                               const struct oct_engine_options *options,
                               const struct oct_engine_ops **ops, struct oct_engine **engine,
                               char *why, size_t why_bytes, struct oct_error *err)
{
    struct oct_error no_gpu = {.text = ""};
    char reason[OCT_ERROR_TEXT_BYTES + 32];

    enum oct_err e = OCT_E_BACKEND;
    if (oct_cuda_built_with())
        e = select_cuda(&oct_engine_failover, plan, options, "auto: a GPU answers", ops, engine,
                        why, why_bytes, &no_gpu);
    else
        oct_cuda_count(no_gpu.text, sizeof(no_gpu.text)); /* tells why */
    if (e == OCT_OK)
        return e;
    if (e == OCT_E_CONFIG) {
        if (err)
            *err = no_gpu;
        return e;
    }
    snprintf(reason, sizeof(reason), "auto: %s", no_gpu.text);
    return select_cpu(plan, options, reason, ops, engine, why, why_bytes, err);
}

enum oct_err oct_engine_select(const char *backend, const struct oct_plan *plan,
                               const struct oct_engine_options *options,
                               const struct oct_engine_ops **ops, struct oct_engine **engine,
                               char *why, size_t why_bytes, struct oct_error *err)
{
    *engine = NULL;
    if (strcmp(backend, "auto") == 0)
        return select_any(plan, options, ops, engine, why, why_bytes, err);
    if (strcmp(backend, "cpu") == 0)
        return select_cpu(plan, options, "asked for", ops, engine, why, why_bytes, err);
    if (strcmp(backend, "cuda") != 0)
        return oct_fail(err, OCT_E_CONFIG, "pipeline.backend is %s: use auto, cpu or cuda",
                        backend);
    if (!oct_cuda_built_with())
        return oct_fail(err, OCT_E_CONFIG,
                        "pipeline.backend is cuda: this build has no such engine; use auto or cpu");
    return select_cuda(&oct_engine_cuda, plan, options, "asked for", ops, engine, why, why_bytes,
                       err);
}
