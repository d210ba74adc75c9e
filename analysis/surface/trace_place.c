/* From the steepest place of a layer to the layer itself. In decibels the ILM's flank is steepest
 * where the resolution's skirt begins, and the RPE's before its band ends: both several
 * micrometres above the layer. How far, the mean of the A-lines says, laid upon one another by
 * their paths: the ILM is where the rise ends, the centre of its thin reflex; the RPE's outer
 * border is where the fall ends, and where the choriocapillaris shows as a rise behind it, halfway
 * up that. */
#include "analysis/surface/trace_parts.h"

#include <math.h>

/* Of the steepest slope: there a flank ends. The RPE's goes over into the choroid's own decay. */
#define ILM_ENDS 0.05F
#define RPE_ENDS 0.3F
#define CLEAR_RISE 0.1F /* of the fall: a rise that counts in full */

/* The mean over A-lines with a position of the brightness at position + (k - 2) / 2 px. */
static uint32_t mean_profile(struct oct_trace *trace, const float *position, float *profile)
{
    uint32_t n = trace->n_profile, n_lines = 0;
    int last = (int)trace->setup.depth - 1;

    for (uint32_t k = 0; k < n; k++)
        profile[k] = 0;
    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        const float *line = trace->pixels + (size_t)j * trace->setup.depth;
        if (isnan(position[j]))
            continue;
        n_lines++;
        for (uint32_t k = 0; k < n; k++) {
            float at = position[j] + 0.5F * ((float)k - 2), floored = floorf(at);
            int d = (int)floored, a = d < 0 ? 0 : d > last ? last : d;
            int b = d + 1 < 0 ? 0 : d + 1 > last ? last : d + 1;
            profile[k] += line[a] - trace->dark + (at - floored) * (line[b] - line[a]);
        }
    }
    return n_lines;
}

/* Where the flank ends, in samples from the profile's first: its slope falls to a small part of the
 * steepest one, or, where another flank follows before it does, to its least. 2, which is the
 * position itself: there is no flank. */
static float flank_end(const float *profile, uint32_t n, float sign, float ends)
{
    float steepest = 0, before = 0, least = INFINITY;
    uint32_t from = 0, flattest = 0;

    for (uint32_t k = 0; k < 5 && k + 1 < n; k++) {
        float slope = sign * (profile[k + 1] - profile[k]);
        if (slope > steepest) {
            steepest = slope;
            from = k;
        }
    }
    if (!(steepest > 0))
        return 2;
    for (uint32_t k = from; k + 1 < n; k++) {
        float slope = sign * (profile[k + 1] - profile[k]) - ends * steepest;
        if (k > from && slope <= 0)
            return (float)k + 0.5F - (before > slope ? -slope / (before - slope) : 0);
        before = slope;
        if (slope < least) {
            least = slope;
            flattest = k;
        }
    }
    return (float)flattest + 0.5F;
}

/* How much further the middle of the rise behind the foot of a fall is; 0: there is no rise. */
static float to_middle_of_rise(const float *profile, uint32_t n, float foot)
{
    uint32_t first = (uint32_t)floorf(foot);

    while (first + 1 < n && profile[first + 1] < profile[first])
        first++;
    uint32_t top = first;
    float least = profile[first], fall = profile[0] - least;
    for (uint32_t k = first; k < n && profile[k] >= profile[top] - 0.02F * fall; k++)
        top = profile[k] > profile[top] ? k : top;
    float rise = profile[top] - least;
    if (!(rise > 0 && fall > 0))
        return 0;
    uint32_t k = top;
    while (k > first && profile[k] > least + 0.5F * rise)
        k--;
    float step = profile[k + 1] - profile[k];
    float middle = (float)k + (step > 0 ? (least + 0.5F * rise - profile[k]) / step : 0);
    return (middle > foot ? middle - foot : 0) * fminf(rise / (CLEAR_RISE * fall), 1);
}

void oct_trace_place(struct oct_trace *trace, int layer, float *position)
{
    float *profile = trace->profile, most = 0.5F * ((float)trace->n_profile - 3);

    if (!mean_profile(trace, position, profile))
        return;
    float end = layer == OCT_LAYER_ILM ? flank_end(profile, trace->n_profile, 1, ILM_ENDS)
                                       : flank_end(profile, trace->n_profile, -1, RPE_ENDS);
    if (layer == OCT_LAYER_RPE)
        end += to_middle_of_rise(profile, trace->n_profile, end);
    float offset = fminf(0.5F * (end - 2), most);
    for (uint32_t j = 0; j < trace->setup.n_lines; j++)
        position[j] += offset;
}
