#include "analysis/warp/descent.h"

#include <math.h>

/* What the steps of a level know. */
struct course {
    const struct oct_warp_descent_ops *ops;
    void *context;
    struct oct_warp_energy now;
    double fallen[OCT_WARP_FALL_STEPS]; /* E of the newest steps, by number % 5 */
    struct oct_warp_level *level;
};

static bool is_good(const struct oct_warp_energy *trial, const struct oct_warp_energy *now)
{
    const bool folds = trial->least < OCT_WARP_LEAST_JACOBIAN && trial->least < now->least;
    return trial->energy <= now->energy && !folds; /* NaN is not */
}

/* *taken: false after all halvings. */
static enum oct_err take_step(struct course *c, bool *taken, struct oct_error *err)
{
    double scale = 1;
    *taken = false;
    for (unsigned n = 0;; n++, scale /= 2) {
        struct oct_warp_energy trial;
        enum oct_err e = c->ops->step(c->context, scale, err);
        if (e == OCT_OK)
            e = c->ops->evaluate(c->context, true, &trial, err);
        if (e != OCT_OK)
            return e;
        if (is_good(&trial, &c->now)) {
            c->now = trial;
            c->ops->accept(c->context);
            *taken = true;
            return OCT_OK;
        }
        if (n == OCT_WARP_MOST_HALVINGS)
            return OCT_OK;
        c->level->halvings++;
        e = c->ops->evaluate(c->context, false, &trial, err);
        if (e != OCT_OK)
            return e;
    }
}

/* E before the first step is at number 0. */
static bool has_fallen(struct course *c, unsigned number)
{
    double *then = c->fallen + number % OCT_WARP_FALL_STEPS;
    const bool enough =
        number < OCT_WARP_FALL_STEPS || *then - c->now.energy >= OCT_WARP_LEAST_FALL * fabs(*then);
    *then = c->now.energy;
    return enough;
}

/* E of the displacement that the steps begin with. */
static enum oct_err begin(struct course *c, struct oct_error *err)
{
    const struct oct_warp_descent_ops *ops = c->ops;
    enum oct_err e = ops->evaluate(c->context, false, &c->now, err);
    for (unsigned i = 0; i < OCT_WARP_MOST_SOFTENINGS; i++) {
        if (e != OCT_OK || !ops->soften || c->now.least >= OCT_WARP_LEAST_JACOBIAN)
            break;
        e = ops->soften(c->context, err);
        if (e == OCT_OK)
            e = ops->evaluate(c->context, false, &c->now, err);
    }
    return e;
}

enum oct_err oct_warp_descend(const struct oct_warp_descent_ops *ops, void *context,
                              const struct oct_warp_params *params, unsigned index,
                              const struct oct_warp_progress *progress,
                              struct oct_warp_level *level, struct oct_error *err)
{
    struct course c = {.ops = ops, .context = context, .level = level};
    *level = (struct oct_warp_level){.factor = params->factor[index]};
    enum oct_err e = begin(&c, err);
    level->energy_first = c.now.energy;
    level->ssd_first = c.now.ssd;
    bool goes_on = e == OCT_OK && has_fallen(&c, 0);
    while (goes_on && level->iterations < params->iterations[index]) {
        e = take_step(&c, &goes_on, err);
        if (e != OCT_OK || !goes_on)
            break;
        level->iterations++;
        goes_on = has_fallen(&c, level->iterations);
        if (ops->regrid)
            e = ops->regrid(context, &c.now, &level->regrids, err);
        if (e != OCT_OK)
            break;
        if (progress && progress->call &&
            progress->call(progress->context, index, level->factor, level->iterations,
                           params->iterations[index], c.now.energy)) {
            e = oct_fail(err, OCT_E_CLOSED, "warp: stopped in level %u", level->factor);
            break;
        }
    }
    level->energy = c.now.energy;
    level->ssd = c.now.ssd;
    level->least_jacobian = c.now.least;
    return e;
}
