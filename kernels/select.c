#include "pipeline/engine.h"

#include <stdio.h>
#include <string.h>

static enum oct_err create_cpu(const struct oct_plan *plan,
                               const struct oct_engine_options *options,
                               const struct oct_engine_ops **ops, struct oct_engine **engine,
                               struct oct_error *err)
{
    *ops = &oct_engine_cpu;
    return oct_engine_cpu.create(engine, plan, options, err);
}

enum oct_err oct_engine_select(const char *backend, const struct oct_plan *plan,
                               const struct oct_engine_options *options,
                               const struct oct_engine_ops **ops, struct oct_engine **engine,
                               char *why, size_t why_bytes, struct oct_error *err)
{
    bool automatic = strcmp(backend, "auto") == 0;
    const char *reason = "asked for";

    *engine = NULL;
    if (!automatic && strcmp(backend, "cpu") != 0)
        return oct_fail(err, OCT_E_CONFIG,
                        "pipeline.backend is %s: this build has no such engine; use auto or cpu",
                        backend);
    if (automatic)
        reason = "auto: this build has no GPU engine";
    enum oct_err e = create_cpu(plan, options, ops, engine, err);
    if (e == OCT_OK)
        snprintf(why, why_bytes, "engine cpu (%s), %s", oct_engine_cpu.describe(*engine), reason);
    return e;
}
