/* In place of cuda.cu in a build without CUDA: no engine comes of it. */
#include "analysis/cells/engine.h"

static enum oct_err create(struct oct_cells_engine **engine,
                           const struct oct_cells_engine_setup *setup, struct oct_error *err)
{
    (void)setup;
    *engine = NULL;
    return oct_fail(err, OCT_E_BACKEND, "this build has no CUDA");
}

const struct oct_cells_engine_ops oct_cells_cuda_engine = {.name = "cuda", .create = create};
