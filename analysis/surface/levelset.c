#include "analysis/surface/levelset.h"

#include "analysis/surface/levelset_band.h"
#include "numeric/order.h"
#include "pipeline/base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- parameters ---- */

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

enum oct_err oct_levelset_setup_check(const struct oct_levelset_setup *setup, struct oct_error *err)
{
    const uint32_t *dims = setup->dims;
    const enum oct_err e = oct_levelset_params_check(&setup->params, err);
    if (e != OCT_OK)
        return e;
    for (unsigned i = 0; i < 3; i++)
        if (dims[i] < setup->params.patch || dims[i] >= 16384)
            return oct_fail(err, OCT_E_ARG,
                            "level set: a box of %u x %u x %u voxels; give sides of %u to 16383",
                            dims[0], dims[1], dims[2], setup->params.patch);
    if ((uint64_t)dims[0] * dims[1] * dims[2] >= OCT_LEVELSET_MOST_VOXELS)
        return oct_fail(err, OCT_E_ARG,
                        "level set: a box of %u x %u x %u voxels; fewer than %llu go", dims[0],
                        dims[1], dims[2], (unsigned long long)OCT_LEVELSET_MOST_VOXELS);
    return OCT_OK;
}

/* ---- the CPU's engine ---- */

struct oct_levelset_engine {
    struct oct_levelset_setup setup;
    const struct oct_levelset_band_ops *ops;
    struct oct_levelset_band *band;
};

double oct_levelset_median(float *values, uint64_t n)
{
    if (n == 0)
        return 0;
    const double low = (double)oct_floats_select(values, n, (n - 1) / 2);
    return (low + (double)oct_floats_select(values, n, n / 2)) / 2;
}

static void destroy(struct oct_levelset_engine *engine)
{
    if (!engine)
        return;
    engine->ops->destroy(engine->band);
    free(engine);
}

static enum oct_err create(struct oct_levelset_engine **engine,
                           const struct oct_levelset_setup *setup, struct oct_error *err)
{
    *engine = NULL;
    enum oct_err e = oct_levelset_setup_check(setup, err);
    if (e != OCT_OK)
        return e;
    struct oct_levelset_engine *l = calloc(1, sizeof(*l));
    if (!l)
        return oct_fail(err, OCT_E_NO_MEMORY, "level set: out of memory");
    l->setup = *setup;
    l->ops = setup->params.weights == OCT_LEVELSET_LOCAL ? &oct_levelset_local : &oct_levelset_full;
    e = l->ops->create(&l->band, setup, err);
    if (e != OCT_OK)
        destroy(l);
    else
        *engine = l;
    return e;
}

static bool is_finite(const float *phi, uint64_t n)
{
    float product = 0; /* what is not finite times 0 is not 0 */
    for (uint64_t i = 0; i < n; i++)
        product += phi[i] * 0;
    return product == 0;
}

static void run(struct oct_levelset_engine *l, struct oct_levelset_report *report)
{
    const struct oct_levelset_params *p = &l->setup.params;
    report->c2 = p->c2;
    if (!(p->c2 > 0)) {
        report->base = l->ops->base(l->band);
        report->c2 = p->beta * report->base;
    }
    if (!(report->c2 > 0))
        return;
    for (unsigned i = 0; i < p->steps; i++) {
        report->largest_sum = l->ops->sums(l->band, report->c2, report);
        if (!(report->largest_sum > 0))
            return;
        l->ops->move(l->band, p->common_step ? 1 / report->largest_sum : 0);
    }
}

static enum oct_err denoise(struct oct_levelset_engine *l, const float *phi, float *result,
                            struct oct_levelset_report *report, struct oct_error *err)
{
    const uint64_t begin = oct_clock_ns();
    const uint32_t *dims = l->setup.dims;
    const uint64_t n = (uint64_t)dims[0] * dims[1] * dims[2];
    struct oct_levelset_report found = {0};
    if (!is_finite(phi, n))
        return oct_fail(err, OCT_E_ARG, "level set: a distance is not a finite number");
    const enum oct_err e = l->ops->load(l->band, phi, &found, err);
    if (e != OCT_OK)
        return e;
    run(l, &found);
    if (result != phi)
        memcpy(result, phi, n * sizeof(*phi));
    l->ops->result(l->band, result);
    found.seconds = (double)(oct_clock_ns() - begin) * 1e-9;
    if (report)
        *report = found;
    return OCT_OK;
}

const struct oct_levelset_ops oct_levelset_cpu = {
    .name = "cpu",
    .create = create,
    .denoise = denoise,
    .destroy = destroy,
};
