#include "analysis/cells/params.h"

#include "analysis/correlate/picture.h"

#include <math.h>

const char *const oct_cells_polarity_names[OCT_CELLS_N_POLARITIES] = {
    [OCT_CELLS_BRIGHT] = "bright",
    [OCT_CELLS_DARK] = "dark",
    [OCT_CELLS_BOTH] = "both",
};

const char *const oct_cells_refine_names[OCT_CELLS_N_REFINES] = {
    [OCT_CELLS_REFINE_NONE] = "none",
    [OCT_CELLS_REFINE_PEAK] = "peak",
    [OCT_CELLS_REFINE_EDGE] = "edge",
    [OCT_CELLS_REFINE_SPLINE] = "spline",
};

void oct_cells_params_octd(struct oct_cells_params *params, double radius)
{
    *params = (struct oct_cells_params){
        .radius = radius,
        .first = 0.8,
        .last = 2,
        .step = 0.2,
        .polarity = OCT_CELLS_BRIGHT,
        .threshold = 1.8,
        .smooth = 0.2,
        .floor = 1,
        .spacing = 1.2,
        .merges = true,
        .refine = OCT_CELLS_REFINE_EDGE,
        .detect_every = 1,
        .memory = 3,
        .min_frames = 3,
        .predicts = true,
        .stop = 0.01,
    };
}

void oct_cells_params_boyer(struct oct_cells_params *params, double radius)
{
    oct_cells_params_octd(params, radius);
    params->truncated = true;
    params->polarity = OCT_CELLS_BOTH;
    params->smooth = 0;
    params->floor = 0;
    params->merges = false;
    params->refine = OCT_CELLS_REFINE_SPLINE;
    params->detect_every = 10;
    params->memory = 0;
    params->min_frames = 1;
    params->predicts = false;
    params->stop = 0.1;
}

unsigned oct_cells_circles(const struct oct_cells_params *params,
                           double radius[OCT_CELLS_MOST_CIRCLES])
{
    const double first = params->first, last = params->last, step = params->step;
    if (!(first > 0 && last >= first && step > 0 && isfinite(last) && isfinite(step)))
        return 0;
    /* Steps in decimals miss `last` by roundings: 0.8 + 6 * 0.2 counts as 2. */
    const double n = floor((last - first) / step + 1e-6) + 1;
    if (n > OCT_CELLS_MOST_CIRCLES)
        return 0;
    for (unsigned k = 0; k < (unsigned)n; k++) {
        const double px = params->radius * (first + k * step);
        /* Of what is meant as 12 and is computed as 12 + 2e-15 the offsets would be others. */
        radius[k] = round(px * 1e9) / 1e9;
    }
    return (unsigned)n;
}

uint32_t oct_cells_border(const struct oct_cells_params *params)
{
    double radius[OCT_CELLS_MOST_CIRCLES];
    const unsigned n = oct_cells_circles(params, radius);
    const double border = n ? ceil(radius[n - 1]) + 2 : 2;
    return border < 2 * OCT_PICTURE_MOST_SIDE ? (uint32_t)border : 2 * OCT_PICTURE_MOST_SIDE;
}

/* A number that must lie within least .. most. */
static enum oct_err check_range(const char *what, double value, double least, double most,
                                const char *unit, struct oct_error *err)
{
    if (value >= least && value <= most)
        return OCT_OK;
    return oct_fail(err, OCT_E_ARG, "cells: %s %g%s: must be %g to %g%s", what, value, unit, least,
                    most, unit);
}

static enum oct_err check_circles(const struct oct_cells_params *p, struct oct_error *err)
{
    double radius[OCT_CELLS_MOST_CIRCLES] = {0};
    if (oct_cells_circles(p, radius) == 0)
        return oct_fail(err, OCT_E_ARG,
                        "cells: circles %g to %g R in steps of %g R: must ascend from above 0, 1 "
                        "to %u of them",
                        p->first, p->last, p->step, OCT_CELLS_MOST_CIRCLES);
    if (radius[0] < 1)
        return oct_fail(err, OCT_E_ARG,
                        "cells: the smallest circle has a radius of %g px: must have 1 px at least",
                        radius[0]);
    return OCT_OK;
}

static enum oct_err check_detection(const struct oct_cells_params *p, struct oct_error *err)
{
    const char *const R = " R";
    enum oct_err e = check_range("the radius", p->radius, OCT_CELLS_LEAST_RADIUS,
                                 OCT_CELLS_MOST_RADIUS, " px", err);
    if (!e)
        e = check_circles(p, err);
    if (!e && !(p->threshold > 0 && isfinite(p->threshold)))
        e = oct_fail(err, OCT_E_ARG, "cells: the threshold %g: must be above 0", p->threshold);
    if (!e)
        e = check_range("smoothing by", p->smooth, 0, 4, R, err);
    if (!e)
        e = check_range("the floor", p->floor, 0, 1e6, "", err);
    if (!e)
        e = check_range("the spacing", p->spacing, 0, 16, R, err);
    if (!e && ((unsigned)p->polarity >= OCT_CELLS_N_POLARITIES ||
               (unsigned)p->refine >= OCT_CELLS_N_REFINES))
        e = oct_fail(err, OCT_E_ARG, "cells: polarity %u or refinement %u is none",
                     (unsigned)p->polarity, (unsigned)p->refine);
    return e;
}

static enum oct_err check_following(const struct oct_cells_params *p, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    if (p->detect_every == 0)
        e = oct_fail(err, OCT_E_ARG, "cells: detection every 0 frames: must be 1 at least");
    if (!e)
        e = check_range("the largest step", p->max_step, 0, 1e6, " px", err);
    if (!e && p->has_flow)
        e = check_range("the flow", p->flow_deg, -360, 360, " degrees", err);
    if (!e)
        e = check_range("the stop of a snake", p->stop, 0, 1e6, " px", err);
    return e;
}

enum oct_err oct_cells_params_check(const struct oct_cells_params *params, uint32_t height,
                                    uint32_t width, struct oct_error *err)
{
    enum oct_err e = check_detection(params, err);
    if (!e)
        e = check_following(params, err);
    if (e)
        return e;
    const uint32_t least = 2 * oct_cells_border(params) + 1;
    if (height < least || width < least)
        return oct_fail(err, OCT_E_ARG,
                        "cells: a picture of %u x %u px is too small for a radius of %g px: needs "
                        "%u x %u px",
                        width, height, params->radius, least, least);
    if (height > OCT_PICTURE_MOST_SIDE || width > OCT_PICTURE_MOST_SIDE)
        return oct_fail(err, OCT_E_ARG, "cells: a picture of %u x %u px: %u a side at most", width,
                        height, OCT_PICTURE_MOST_SIDE);
    return OCT_OK;
}
