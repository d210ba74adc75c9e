/* All borders, one after the other: the pair's, the ellipsoid zone above the RPE, then those
 * between it and the ILM. Each is first sought with wide windows about where it is thought to be,
 * then with narrow ones about what that gave. */
#include "analysis/layers/find/trace_parts.h"

#include <string.h>

#define ZONE_LEAST_UM 26.0 /* from the ellipsoid zone to the RPE's lower border */
#define ZONE_MOST_UM 66.0
#define ZONE_SIDE_UM 8.0
#define ZONE_DARK_UM 25.0
#define ZONE_LINE_UM 30.0
#define ZONE_USUAL_UM 50.0
#define ZONE_SPREAD_UM 14.0
#define MERGED_UM 5.0F /* from the ILM: a border lies on it */

/* Wide, in the logarithm of the light, then narrow in the light itself: there it changes
 * fastest. Of the ILM, whose reflex outshines the fibres below it, and of the RPE, whose light
 * falls into that of the choroid, in its root; of what lies below bright tissue, within which the
 * light falls more steeply from speck to speck than at its end, in its fourth root. */
static const struct oct_trace_search searches[OCT_N_LAYERS][2] = {
    [OCT_LAYER_ILM] = {{18, 4, 10, 0.8F, 0.3F, 0}, {7, 1.2F, 8, 0.7F, 0.3F, 0.5F}},
    [OCT_LAYER_RNFL_GCL] = {{16, 5, 40, 2, 0.6F, 0}, {5, 3, 40, 2, 0.6F, 0.25F}},
    [OCT_LAYER_IPL_INL] = {{10, 5, 40, 2, 0.6F, 0}, {5, 3, 40, 2, 0.6F, 0.25F}},
    [OCT_LAYER_INL_OPL] = {{10, 5, 40, 2, 0.6F, 0}, {5, 3, 40, 2, 0.6F, 1}},
    [OCT_LAYER_OPL_ONL] = {{10, 5, 40, 2, 0.6F, 0}, {5, 3, 40, 2, 0.6F, 0.25F}},
    [OCT_LAYER_IS_OS] = {{14, 4, 40, 2, 0.6F, 0}, {7, 1.2F, 40, 2, 0.6F, 1}},
    [OCT_LAYER_RPE] = {{20, 5, 24, 1.5F, 0.6F, 0}, {8, 2, 80, 3, 0.6F, 0.5F}},
};

double oct_trace_alike(enum oct_layer layer, double line_um)
{
    const struct oct_trace_search *last = &searches[layer][1];
    const double um = line_um > 0 ? line_um : OCT_TRACE_LINE_UM;

    return fmin(fmax((double)last->line_um / um, (double)last->least_lines),
                (double)OCT_TRACE_MOST_SIGMA);
}

static void find_edge(struct oct_trace *trace, enum oct_layer layer,
                      const struct oct_trace_bounds *bounds)
{
    const struct oct_trace_params *p = &trace->setup.params;
    float *path = trace->path[layer];

    oct_trace_edge(trace, layer, &searches[layer][0], bounds);
    oct_trace_smooth(path, trace->line2, trace->setup.n_lines,
                     fmax(1, (double)searches[layer][0].line_um / p->line_um));
    memcpy(path, trace->line2, trace->setup.n_lines * sizeof(*path));
    oct_trace_edge(trace, layer, &searches[layer][1], bounds);
}

/* Where the ellipsoid zone begins above the RPE, px: of what the A-lines have in the mean above it
 * (sums), the greatest step near where it usually is. */
static int zone_above(const float *sums, int n, double um)
{
    const int side = (int)fmax(1, ZONE_SIDE_UM / um + 0.5);
    const int dark = (int)fmax(1, ZONE_DARK_UM / um + 0.5);
    const int least = (int)lround(ZONE_LEAST_UM / um), most = (int)lround(ZONE_MOST_UM / um);
    float best = 0;
    int at = (least + most) / 2;

    for (int i = least; i <= most && i + dark <= n; i++) {
        const double z = (i * um - ZONE_USUAL_UM) / ZONE_SPREAD_UM;
        const float step =
            (float)exp(-0.5 * z * z) * ((sums[i] - sums[i > side ? i - side : 0]) / (float)side -
                                        (sums[i + dark] - sums[i]) / (float)dark);
        if (step > best) {
            best = step;
            at = i;
        }
    }
    return at;
}

static void start_zone(struct oct_trace *trace)
{
    const double um = trace->setup.params.depth_um;
    const float *rpe = trace->path[OCT_LAYER_RPE];
    const uint32_t n = trace->n_profile;
    float *sums = trace->profile;

    memset(sums, 0, (n + 1) * sizeof(*sums));
    for (uint32_t j = 0; j < trace->setup.n_lines; j++)
        for (uint32_t i = 0; oct_trace_has_line(trace, j) && i < n; i++)
            sums[i + 1] += oct_trace_light_at(trace, j, (int)floorf(rpe[j]) - (int)i);
    for (uint32_t i = 0; i < n; i++)
        sums[i + 1] += sums[i];
    const int above = zone_above(sums, (int)n, um);
    for (uint32_t j = 0; j < trace->setup.n_lines; j++)
        trace->line[j] = rpe[j] - (float)above;
    oct_trace_smooth(trace->line, trace->path[OCT_LAYER_IS_OS], trace->setup.n_lines,
                     fmax(1, ZONE_LINE_UM / trace->setup.params.line_um));
}

void oct_trace_refine_init(struct oct_trace *trace)
{
    const double um = (ZONE_MOST_UM + ZONE_DARK_UM) / trace->setup.params.depth_um;

    trace->n_profile = oct_trace_rounded(um, 2, 2 * trace->setup.depth);
    trace->profile = oct_trace_array(trace, (size_t)trace->n_profile + 1, sizeof(float));
}

/* No border above the one before it, none below the ellipsoid zone; those near the ILM lie on
 * it. */
static void put_in_order(struct oct_trace *trace)
{
    const float merged = MERGED_UM / (float)trace->setup.params.depth_um;

    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        float least = trace->path[OCT_LAYER_ILM][j];
        const float ilm = least;
        trace->path[OCT_LAYER_IS_OS][j] = fmaxf(trace->path[OCT_LAYER_IS_OS][j], ilm);
        for (int layer = OCT_LAYER_RNFL_GCL; layer < OCT_N_LAYERS; layer++) {
            float *at = &trace->path[layer][j];
            if (layer < OCT_LAYER_IS_OS) {
                *at = fminf(*at, trace->path[OCT_LAYER_IS_OS][j]);
                if (*at < ilm + merged)
                    *at = ilm;
            }
            least = *at = fmaxf(*at, least);
        }
    }
}

void oct_trace_refine(struct oct_trace *trace, const struct oct_trace_bounds *bounds)
{
    find_edge(trace, OCT_LAYER_ILM, bounds);
    find_edge(trace, OCT_LAYER_RPE, bounds);
    start_zone(trace);
    find_edge(trace, OCT_LAYER_IS_OS, bounds);
    oct_trace_inner(trace, bounds);
    for (int layer = OCT_LAYER_RNFL_GCL; layer <= OCT_LAYER_OPL_ONL; layer++)
        find_edge(trace, layer, bounds);
    put_in_order(trace);
}
