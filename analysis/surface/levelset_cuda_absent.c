/* In place of levelset_cuda.cu in a build without CUDA: no engine comes of it. */
#include "analysis/surface/levelset.h"

#include <stddef.h>

static enum oct_err create(struct oct_levelset_engine **engine,
                           const struct oct_levelset_setup *setup, struct oct_error *err)
{
    (void)setup;
    *engine = NULL;
    return oct_fail(err, OCT_E_BACKEND, "this build has no CUDA");
}

const struct oct_levelset_ops oct_levelset_cuda = {.name = "cuda", .create = create};
