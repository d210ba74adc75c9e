/* In place of correlate_cuda.cu in a build without CUDA. */
#include "analysis/correlate/correlate.h"

static enum oct_err refuse(struct oct_error *err)
{
    return oct_fail(err, OCT_E_BACKEND, "this build has no CUDA");
}

static enum oct_err absent_create(struct oct_correlator **correlator,
                                  const struct oct_correlator_setup *setup, struct oct_error *err)
{
    (void)setup;
    *correlator = NULL;
    return refuse(err);
}

static enum oct_err absent_set_reference(struct oct_correlator *correlator,
                                         const struct oct_picture *g, struct oct_error *err)
{
    (void)correlator, (void)g;
    return refuse(err);
}

static enum oct_err absent_run(struct oct_correlator *correlator, const struct oct_picture *f,
                               unsigned n, float *c2d, unsigned *which, struct oct_error *err)
{
    (void)correlator, (void)f, (void)n, (void)c2d, (void)which;
    return refuse(err);
}

static void absent_destroy(struct oct_correlator *correlator)
{
    (void)correlator;
}

const struct oct_correlator_ops oct_correlator_cuda = {
    .name = "cuda",
    .create = absent_create,
    .set_reference = absent_set_reference,
    .run = absent_run,
    .destroy = absent_destroy,
};
