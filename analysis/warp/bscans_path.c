/* The path of B-scans by dynamic programming. A state is a shift in all three directions; the price
 * of a jump is the sum of three, so that the best predecessors of all states follow from two sweeps
 * along each direction. */
#include "analysis/warp/bscans_parts.h"

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
    const size_t n_1 = s->n[1], n_2 = s->n[2], n = s->n[0] * n_1 * n_2;
    float best = -INFINITY;

    for (size_t i = 0; i < n; i++)
        best = fmaxf(best, values[i]);
    for (size_t i = 0; i < s->n[0] * n_1; i++)
        sweep(values + i * n_2, n_2, 1, prices->step[2]);
    for (size_t i = 0; i < s->n[0]; i++)
        for (size_t k = 0; k < n_2; k++)
            sweep(values + i * n_1 * n_2 + k, n_1, n_2, prices->step[1]);
    for (size_t k = 0; k < n_1 * n_2; k++)
        sweep(values + k, s->n[0], n_1 * n_2, prices->step[0]);
    for (size_t i = 0; i < n; i++)
        values[i] = fmaxf(values[i], best - prices->dearest);
}

/* The three parts of a state. */
static void split(const struct oct_warp_scores *s, size_t state, size_t part[3])
{
    for (unsigned i = 3; i-- > 0;) {
        const size_t n = s->n[i] > 1 ? s->n[i] : 1;
        part[i] = state % n;
        state /= n;
    }
}

static float price_between(const struct oct_warp_scores *s, const struct prices *prices, size_t a,
                           size_t b)
{
    size_t from[3], to[3];
    float price = 0;

    split(s, a, from);
    split(s, b, to);

    for (unsigned i = 0; i < 3; i++)
        price += prices->step[i] * fabsf((float)to[i] - (float)from[i]);
    return fminf(price, prices->dearest);
}

/* The best state of a B-scan, values as left by the way forward, before `next` of the one behind;
 * SIZE_MAX: it is the last. */
static size_t step_back(const struct oct_warp_scores *s, const struct prices *prices,
                        const float *values, size_t next)
{
    const size_t n = s->n[0] * s->n[1] * s->n[2];
    float best = -INFINITY;
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        if (!(values[i] > best)) /* prices are not below 0 */
            continue;
        const float value =
            next == SIZE_MAX ? values[i] : values[i] - price_between(s, prices, i, next);
        if (value > best) {
            best = value;
            at = i;
        }
    }
    return at;
}

static struct oct_warp_shift shift_of(const struct oct_warp_scores *s, size_t state)
{
    size_t i[3];
    struct oct_warp_shift shift;

    split(s, state, i);

    for (unsigned k = 0; k < 3; k++)
        shift.at[k] = s->centre.at[k] + (int32_t)i[k] - (int32_t)s->reach[k];
    shift.at[1] *= (int32_t)s->bin;
    shift.at[2] *= (int32_t)s->bin;
    return shift;
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
        path[b - 1] = shift_of(s, state);
    }
    return OCT_OK;
}
