/* In place of solver_cuda.cu in a build without CUDA: no engine comes of it. */
#include "analysis/warp/solver.h"

#include <stddef.h>

static uint64_t bytes(const struct oct_warp_setup *setup)
{
    (void)setup;
    return 0;
}

static enum oct_err create(struct oct_warp_engine **engine, const struct oct_warp_setup *setup,
                           struct oct_error *err)
{
    (void)setup;
    *engine = NULL;
    return oct_fail(err, OCT_E_BACKEND, "this build has no CUDA");
}

const struct oct_warp_ops oct_warp_cuda = {.name = "cuda", .bytes = bytes, .create = create};
