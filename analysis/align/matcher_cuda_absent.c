/* In place of matcher_cuda.cu in a build without CUDA. */
#include "analysis/align/matcher.h"

/* Nothing else is ever called. */
static enum oct_err create(struct oct_matcher **matcher, const struct oct_matcher_setup *setup,
                           struct oct_error *err)
{
    (void)setup;
    *matcher = NULL;
    return oct_fail(err, OCT_E_BACKEND, "this build has no CUDA");
}

const struct oct_matcher_ops oct_matcher_cuda = {.name = "cuda", .create = create};
