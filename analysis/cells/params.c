#include "analysis/cells/engine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST_FRAMES 1e6

static const char *const polarity_names[] = {"bright", "dark", "both", NULL};
static const char *const refine_names[] = {"none", "peak", "edge", "spline", NULL};

/* FIRST:LAST:STEP, into first, last and step. */
static bool parse_circles(const struct oct_param *param, const char *text, void *value, char *why,
                          size_t why_bytes)
{
    struct oct_cells_params p = {.radius = 1};
    double radius[OCT_CELLS_MOST_CIRCLES];
    int end = 0;
    (void)param;
    if (sscanf(text, "%lf:%lf:%lf%n", &p.first, &p.last, &p.step, &end) < 3 || text[end] ||
        strspn(text, "0123456789.:") != strlen(text))
        return false;
    if (oct_cells_circles(&p, radius) == 0) {
        snprintf(why, why_bytes,
                 "'%.40s' is an empty list, or of more than %u circles: FIRST:LAST:STEP ascend "
                 "from above 0",
                 text, OCT_CELLS_MOST_CIRCLES);
        return false;
    }
    memcpy(value, (const double[]){p.first, p.last, p.step}, 3 * sizeof(double));
    return true;
}

static void format_circles(const void *value, char *text, size_t text_bytes)
{
    const double *circles = value;
    snprintf(text, text_bytes, "%g:%g:%g", circles[0], circles[1], circles[2]);
}

static const struct oct_param_form circles_form = {parse_circles, format_circles};

#define P struct oct_cells_params
static const struct oct_param search_rows[] = {
    {OCT_PARAM("radius_px", P, radius), OCT_PARAM_LIVE, .is_option = true, .option = "radius",
     .least = OCT_CELLS_LEAST_RADIUS, .most = OCT_CELLS_MOST_RADIUS, .standard = "10",
     .unit = "pixels", .meaning = "Radius R of the cells, in pixels of the finer axis."},
    {OCT_PARAM_OF_FORM("radii", P, first, &circles_form), .is_option = true, .is_no_key = true,
     .standard = "0.8:2:0.2", .takes = "FIRST:LAST:STEP", .unit = "radii",
     .meaning = "Circles that are tried."},
    {OCT_PARAM("threshold", P, threshold), OCT_PARAM_LIVE, .is_option = true, .least = 0.01,
     .most = 1000, .standard = "1.8",
     .meaning = "Score of a cell: mean of the gradient on its edge over the spread."},
    {OCT_PARAM_CHOICE("polarity", P, polarity, polarity_names), OCT_PARAM_LIVE, .is_option = true,
     .first = OCT_CELLS_BRIGHT, .standard = "bright",
     .meaning = "Cells brighter than what is about them, darker, or both."},
    {OCT_PARAM("smooth", P, smooth), OCT_PARAM_LIVE, .is_option = true, .least = 0, .most = 4,
     .standard = "0.2", .unit = "radii",
     .meaning = "Sigma of the Gaussian that pictures are smoothed with; 0: none."},
    {OCT_PARAM("floor", P, floor), OCT_PARAM_LIVE, .is_option = true, .least = 0, .most = 1000,
     .standard = "1",
     .meaning = "Noise that a score must stand above, in that of the gradient; 0: none."},
    {OCT_PARAM("spacing", P, spacing), .is_option = true, .is_no_key = true, .least = 0, .most = 16,
     .standard = "1.2", .unit = "radii", .meaning = "Two cells are so far apart."},
    {OCT_PARAM_CHOICE("refine", P, refine, refine_names), .is_option = true, .is_no_key = true,
     .first = OCT_CELLS_REFINE_NONE, .standard = "edge",
     .meaning = "Where in the pixel a cell lies: the peak, the edge, a B-spline snake."},
    {OCT_PARAM("detect_every", P, detect_every), OCT_PARAM_LIVE, .is_option = true, .least = 1,
     .most = MOST_FRAMES, .standard = "1", .unit = "pictures",
     .meaning = "How often cells are sought; between, those known are followed by snakes."},
    {OCT_PARAM("memory", P, memory), OCT_PARAM_LIVE, .is_option = true, .least = 0,
     .most = MOST_FRAMES, .standard = "3", .unit = "pictures",
     .meaning = "A track that was not seen in so many in a row ends."},
    {OCT_PARAM("min_frames", P, min_frames), OCT_PARAM_LIVE, .is_option = true, .least = 1,
     .most = MOST_FRAMES, .standard = "3", .unit = "pictures",
     .meaning = "A track is reported once it was seen in so many."},
    {OCT_PARAM_OF_FORM("flow_deg", P, flow_deg, &oct_param_number_or_none), OCT_PARAM_LIVE,
     .is_option = true, .option = "flow", .least = -360, .most = 360, .standard = "",
     .takes = "-360 to 360 degrees, or none",
     .meaning = "Where cells go, 0: along x, 90: along y; none: as each went before."},
};
#undef P
const struct oct_params oct_cells_search_params = OCT_PARAMS(search_rows);

void oct_cells_params_octd(struct oct_cells_params *params, double radius)
{
    *params = (struct oct_cells_params){.merges = true, .predicts = true, .stop = 0.01};
    oct_params_set_defaults(&oct_cells_search_params, params);
    params->radius = radius > 0 ? radius : params->radius;
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

enum oct_err oct_cells_params_check(const struct oct_cells_params *params, uint32_t height,
                                    uint32_t width, struct oct_error *err)
{
    const struct oct_cells_params *p = params;
    double radius[OCT_CELLS_MOST_CIRCLES] = {0};
    if (oct_params_check(&oct_cells_search_params, p, "cells", err))
        return err->code = OCT_E_ARG;
    if (!(p->stop >= 0 && p->max_step >= 0 && isfinite(p->max_step)))
        return oct_fail(err, OCT_E_ARG,
                        "cells: a stop of %g px, a step of %g px: must be 0 or more", p->stop,
                        p->max_step);
    if (oct_cells_circles(p, radius) == 0)
        return oct_fail(err, OCT_E_ARG,
                        "cells: circles %g to %g R in steps of %g R: must ascend from above 0, 1 "
                        "to %u of them",
                        p->first, p->last, p->step, OCT_CELLS_MOST_CIRCLES);
    if (radius[0] < 1)
        return oct_fail(err, OCT_E_ARG,
                        "cells: the smallest circle has a radius of %g px: must have 1 px at least",
                        radius[0]);
    const uint32_t least = 2 * oct_cells_border(p) + 1;
    if (height < least || width < least)
        return oct_fail(err, OCT_E_ARG,
                        "cells: a picture of %u x %u px is too small for a radius of %g px: needs "
                        "%u x %u px",
                        width, height, p->radius, least, least);
    if (height > OCT_PICTURE_MOST_SIDE || width > OCT_PICTURE_MOST_SIDE)
        return oct_fail(err, OCT_E_ARG, "cells: a picture of %u x %u px: %u a side at most", width,
                        height, OCT_PICTURE_MOST_SIDE);
    return OCT_OK;
}
