/* The path of B-scans by dynamic programming. A state is a shift in all three directions; the price
 * of a jump is the sum of three, so that the best predecessors of all states follow from two sweeps
 * along each direction. */
#include "analysis/warp/bscans.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PART_OF_PIXELS 0.25 /* of the price of a B-scan of jump */

struct prices {
    float step[3]; /* of one B-scan, binned A-line or depth pixel */
    float dearest;
};

/* Every value becomes the largest of those along the line of n values, `stride` apart, less the
 * price of the way. */
static void sweep(float *line, size_t n, size_t stride, float price)
{
    for (size_t i = 1; i < n; i++)
        line[i * stride] = fmaxf(line[i * stride], line[(i - 1) * stride] - price);
    for (size_t i = n - 1; i > 0; i--)
        line[(i - 1) * stride] = fmaxf(line[(i - 1) * stride], line[i * stride] - price);
}

/* values: of the B-scan before; become what a B-scan at each state may begin with. */
static void spread(const struct oct_warp_scores *s, const struct prices *prices, float *values)
{
    const size_t n = s->n[0] * s->n[1] * s->n[2];
    float best = -INFINITY;
    for (size_t i = 0; i < n; i++)
        best = fmaxf(best, values[i]);
    for (unsigned axis = 0; axis < 3; axis++) {
        const size_t stride = axis == 2 ? 1 : axis == 1 ? s->n[2] : s->n[1] * s->n[2];
        for (size_t i = 0; i < n; i++)
            if (i / stride % s->n[axis] == 0)
                sweep(values + i, s->n[axis], stride, prices->step[axis]);
    }
    for (size_t i = 0; i < n; i++)
        values[i] = fmaxf(values[i], best - prices->dearest);
}

/* A state's shift in steps, from that of state 0. */
static struct oct_warp_shift steps_of(const struct oct_warp_scores *s, size_t state)
{
    struct oct_warp_shift steps;
    for (unsigned i = 3; i-- > 0; state /= s->n[i])
        steps.at[i] = (int32_t)(state % s->n[i]);
    return steps;
}

/* The best state of a B-scan, values as left by the way forward, before `next` of the one behind;
 * SIZE_MAX: it is the last. */
static size_t step_back(const struct oct_warp_scores *s, const struct prices *prices,
                        const float *values, size_t next)
{
    const size_t n = s->n[0] * s->n[1] * s->n[2];
    const struct oct_warp_shift to = steps_of(s, next == SIZE_MAX ? 0 : next);
    float best = -INFINITY;
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        float price = 0;
        if (!(values[i] > best)) /* prices are not below 0 */
            continue;
        const struct oct_warp_shift from = steps_of(s, i);
        for (unsigned k = 0; k < 3 && next != SIZE_MAX; k++)
            price += prices->step[k] * fabsf((float)to.at[k] - (float)from.at[k]);
        const float value = values[i] - fminf(price, prices->dearest);
        if (value > best) {
            best = value;
            at = i;
        }
    }
    return at;
}

enum oct_err oct_warp_bscans_path(struct oct_warp_scores *s, double price,
                                  struct oct_warp_shift *path, struct oct_error *err)
{
    const size_t n = s->n[0] * s->n[1] * s->n[2];
    const float pixel = (float)(PART_OF_PIXELS * price * s->bin);
    const struct prices prices = {.step = {(float)price, pixel, pixel},
                                  .dearest = (float)(OCT_WARP_DEAREST_JUMP * price)};
    float *values = calloc(n, sizeof(float));
    if (!values)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the path of B-scans");
    for (uint32_t b = 0; b < s->n_bscans; b++) {
        float *score = s->score + b * n;
        for (size_t i = 0; i < n; i++)
            values[i] += isnan(score[i]) ? s->unlike : score[i];
        memcpy(score, values, n * sizeof(float));
        spread(s, &prices, values);
    }
    free(values);
    size_t state = SIZE_MAX;
    for (uint32_t b = s->n_bscans; b > 0; b--) {
        state = step_back(s, &prices, s->score + (b - 1) * n, state);
        const struct oct_warp_shift steps = steps_of(s, state);
        for (unsigned k = 0; k < 3; k++)
            path[b - 1].at[k] = (s->centre.at[k] + steps.at[k] - (int32_t)s->reach[k]) *
                                (k == 0 ? 1 : (int32_t)s->bin);
    }
    return OCT_OK;
}
