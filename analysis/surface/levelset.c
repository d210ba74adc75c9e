#include "analysis/surface/levelset.h"

#include <math.h>

void oct_levelset_params_default(struct oct_levelset_params *params,
                                 enum oct_levelset_profile profile)
{
    const bool local = profile == OCT_LEVELSET_PROFILE_LOCAL;
    *params = (struct oct_levelset_params){
        .weights = local ? OCT_LEVELSET_LOCAL : OCT_LEVELSET_FULL,
        .delta = 2.5,
        .patch = 5,
        .reach = 4,
        .most = 96,
        .c1 = local ? 20 : INFINITY,
        .beta = 0.5,
        .rank = 24,
        .steps = 2,
        .common_step = profile == OCT_LEVELSET_PROFILE_PAPER,
    };
}

static enum oct_err check_weights(const struct oct_levelset_params *p, struct oct_error *err)
{
    if (p->weights != OCT_LEVELSET_LOCAL && p->weights != OCT_LEVELSET_FULL)
        return oct_fail(err, OCT_E_ARG, "level set: weights are local or full");
    if (p->weights == OCT_LEVELSET_LOCAL && (p->reach < 1 || p->reach > 8))
        return oct_fail(err, OCT_E_ARG, "level set: a reach of %u voxels; give 1 to 8", p->reach);
    if (p->weights == OCT_LEVELSET_FULL && (p->most < 24 || p->most > 512))
        return oct_fail(err, OCT_E_ARG, "level set: %u patches; give 24 to 512", p->most);
    if (p->rank < 1 || p->rank > 96)
        return oct_fail(err, OCT_E_ARG, "level set: rank %u; give 1 to 96", p->rank);
    if (!(p->c1 > 0))
        return oct_fail(err, OCT_E_ARG, "level set: c1 is %g; give more than 0", p->c1);
    if (!(p->beta > 0) || !isfinite(p->beta))
        return oct_fail(err, OCT_E_ARG, "level set: beta is %g; give more than 0", p->beta);
    if (!(p->c2 >= 0) || !isfinite(p->c2))
        return oct_fail(err, OCT_E_ARG,
                        "level set: c2 is %g; give more than 0, or 0 for beta "
                        "times what the data say",
                        p->c2);
    return OCT_OK;
}

enum oct_err oct_levelset_params_check(const struct oct_levelset_params *params,
                                       struct oct_error *err)
{
    const struct oct_levelset_params *p = params;
    if (!(p->delta >= 0.5 && p->delta <= 16))
        return oct_fail(err, OCT_E_ARG, "level set: delta is %g voxels; give 0.5 to 16", p->delta);
    if (p->patch != 3 && p->patch != 5 && p->patch != 7)
        return oct_fail(err, OCT_E_ARG, "level set: patches of %u voxels; give 3, 5 or 7",
                        p->patch);
    if (p->steps < 1 || p->steps > 100)
        return oct_fail(err, OCT_E_ARG, "level set: %u steps; give 1 to 100", p->steps);
    return check_weights(p, err);
}
