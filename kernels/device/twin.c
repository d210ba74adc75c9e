#include "kernels/device/twin.h"

#include "pipeline/base/log.h"

#include <stdlib.h>
#include <string.h>

void oct_twin_destroy(struct oct_twin *twin)
{
    if (!twin)
        return;
    if (twin->engine)
        twin->kind->destroy(twin->engine, twin->on_gpu);
    free(twin->setup);
    free(twin);
}

static enum oct_err create_on_gpu(struct oct_twin **made, const struct oct_twin_kind *kind,
                                  const void *setup, struct oct_error *err)
{
    struct oct_twin *twin = calloc(1, kind->bytes);
    enum oct_err e = OCT_E_NO_MEMORY;
    if (twin && (twin->setup = malloc(kind->setup_bytes))) {
        memcpy(twin->setup, setup, kind->setup_bytes);
        twin->kind = kind;
        twin->on_gpu = true;
        e = kind->create(&twin->engine, true, setup, err);
    } else {
        oct_fail(err, e, "%s: out of memory for an engine", kind->name);
    }
    if (e) {
        oct_twin_destroy(twin);
        twin = NULL;
    }
    *made = twin;
    return e;
}

enum oct_err oct_twin_create(struct oct_twin **twin, const struct oct_twin_kind *kind,
                             bool has_cuda, const char *backend, const void *setup,
                             struct oct_error *reason, struct oct_error *err)
{
    *twin = NULL;
    oct_fail(reason, OCT_OK, "asked for");
    if (!backend || strcmp(backend, "cpu") == 0)
        return OCT_OK;
    const bool is_auto = strcmp(backend, "cuda") != 0;
    const enum oct_err e = has_cuda ? create_on_gpu(twin, kind, setup, reason)
                                    : oct_fail(reason, OCT_E_BACKEND, "this build has no CUDA");
    if (!e)
        (*twin)->is_auto = is_auto;
    else if (!is_auto || (e != OCT_E_BACKEND && e != OCT_E_NO_MEMORY))
        return oct_fail(err, e, "%s", reason->text);
    else if (e == OCT_E_NO_MEMORY)
        oct_log(OCT_LOG_WARNING, "%s: %s; the CPU computes", kind->name, reason->text);
    return OCT_OK;
}

const char *oct_twin_running(const struct oct_twin *twin)
{
    return twin->on_gpu ? "cuda" : "cpu";
}

/* The device is gone, or too small. OCT_OK: the CPU's engine has all that the GPU's had. */
static enum oct_err change_engines(struct oct_twin *twin, const struct oct_error *why,
                                   struct oct_error *err)
{
    twin->kind->destroy(twin->engine, true);
    twin->engine = NULL;
    twin->on_gpu = false;
    enum oct_err e = twin->kind->create(&twin->engine, false, twin->setup, err);
    if (!e && twin->kind->replay)
        e = twin->kind->replay(twin, err);
    if (!e)
        oct_log(OCT_LOG_WARNING, "%s: %s; the CPU goes on", twin->kind->name, why->text);
    return e;
}

bool oct_twin_tries(struct oct_twin_call *call)
{
    struct oct_twin *twin = call->twin;
    if (!call->tried) {
        call->tried = true;
        if (!twin->engine)
            call->e = oct_fail(call->err, OCT_E_BACKEND,
                               "%s: the GPU has failed and the CPU's engine did not start",
                               twin->kind->name);
        return twin->engine != NULL;
    }
    const bool gone = call->e == OCT_E_BACKEND || (call->e == OCT_E_NO_MEMORY && twin->is_auto);
    if (call->e && twin->on_gpu && gone) {
        call->e = change_engines(twin, &call->why, call->err);
        return call->e == OCT_OK;
    }
    if (call->e)
        oct_fail(call->err, call->e, "%s", call->why.text);
    return false;
}
