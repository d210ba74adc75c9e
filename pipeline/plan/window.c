#include "pipeline/plan/window.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
#define SIGMA_SHARE (1.0 / 64) /* of the line: what the source is smoothed by */
#define SIGMAS 5               /* how far the Gaussian is summed: 6e-7 is left out */
#define NOISE_FLOOR 0.05       /* of the source's maximum */
#define ROUNDING 1e-9          /* of t: a step that a camera's end lies on is inside */

bool oct_shaping_flattens(const struct oct_shaping *shaping)
{
    return shaping->flatten || shaping->window == OCT_WINDOW_FLAT;
}

bool oct_shaping_is_none(const struct oct_shaping *shaping)
{
    return shaping->window == OCT_WINDOW_NONE && !shaping->flatten;
}

double oct_window_at(enum oct_window window, double width, double t)
{
    if (!(fabs(t) <= 1 + ROUNDING))
        return 0;
    switch (window) {
    case OCT_WINDOW_HANN:
        return 0.5 + 0.5 * cos(PI * t);
    case OCT_WINDOW_HAMMING:
        return 0.54 + 0.46 * cos(PI * t);
    case OCT_WINDOW_BLACKMAN:
        return fmax(0.42 + 0.5 * cos(PI * t) + 0.08 * cos(2 * PI * t), 0);
    case OCT_WINDOW_GAUSS:
        return exp2(-(t / width) * (t / width));
    case OCT_WINDOW_NONE:
    case OCT_WINDOW_FLAT:
        break;
    }
    return 1;
}

double oct_place_slope(const double *q, uint32_t n, uint32_t i)
{
    uint32_t low = i > 0 ? i - 1 : 0, high = i + 1 < n ? i + 1 : n - 1;
    return fabs(q[high] - q[low]) / (high - low);
}

enum oct_err oct_source_smooth(const double *background, uint32_t n, double *smooth)
{
    double sigma = n * SIGMA_SHARE;
    uint32_t reach = (uint32_t)ceil(SIGMAS * sigma);
    double *weight = malloc((reach + 1) * sizeof(double));
    if (!weight)
        return OCT_E_NO_MEMORY;
    for (uint32_t r = 0; r <= reach; r++)
        weight[r] = exp(-0.5 * (r / sigma) * (r / sigma));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t low = i > reach ? i - reach : 0, high = n - i > reach ? i + reach : n - 1;
        double sum = 0, of = 0;
        for (uint32_t k = low; k <= high; k++) {
            double w = weight[k < i ? i - k : k - i];
            sum += w * background[k];
            of += w;
        }
        smooth[i] = sum > 0 ? sum / of : 0;
    }
    free(weight);
    return OCT_OK;
}

static double place_t(const struct oct_shape *s, double q)
{
    double first = s->q[0], last = s->q[s->n_samples - 1];
    return 2 * (q - first) / (last - first) - 1;
}

/* F at the samples, and A. source: [N] */
static enum oct_err fill_shape(struct oct_shape *s, const double *source, struct oct_error *err)
{
    double most = 0, before = 0, after = 0;
    for (uint32_t i = 0; i < s->n_samples; i++)
        most = fmax(most, source[i]);
    if (!(most > 0))
        return oct_fail_key(err, OCT_E_CONFIG, "calibration.background",
                            "calibration.background has no light: no source to be shaped");
    for (uint32_t i = 0; i < s->n_samples; i++) {
        double floor = NOISE_FLOOR * most, of = source[i];
        double light = of * oct_place_slope(s->q, s->n_samples, i);
        s->flat[i] = oct_shaping_flattens(&s->shaping) ? of * most / (of * of + floor * floor) : 1;
        before += light;
        after += light * s->flat[i] *
                 oct_window_at(s->shaping.window, s->shaping.width, place_t(s, s->q[i]));
    }
    s->scale = before / after;
    if (!isfinite(s->scale))
        return oct_fail_key(err, OCT_E_CONFIG, "pipeline.window",
                            "pipeline.window: nothing is left of the spectrum");
    return OCT_OK;
}

enum oct_err oct_shape_init(struct oct_shape *s, const struct oct_shaping *shaping, const double *q,
                            uint32_t n, const double *background, struct oct_error *err)
{
    *s = (struct oct_shape){.shaping = *shaping, .n_samples = n, .scale = 1};
    if (!(s->shaping.width > 0))
        s->shaping.width = OCT_STANDARD_WINDOW_WIDTH;
    if (oct_shaping_is_none(shaping))
        return OCT_OK;
    if (!background && oct_shaping_flattens(shaping))
        return oct_fail_key(err, OCT_E_CONFIG,
                            "calibration.background pipeline.window pipeline.flatten",
                            "calibration.background is missing: pipeline.window=flat and "
                            "pipeline.flatten divide by it (octctl background records one)");
    if (!(q[n - 1] - q[0] >= 1))
        return oct_fail_key(err, OCT_E_CONFIG, "pipeline.window pipeline.flatten",
                            "pipeline.window: the camera's samples take less than one of the P2 "
                            "steps in k: the wavelengths or the k map are too uneven, use none");
    double *memory = malloc(3 * (size_t)n * sizeof(double));
    if (!memory)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the window");
    double *source = memory + 2 * (size_t)n;
    s->q = memory;
    s->flat = memory + n;
    memcpy(s->q, q, n * sizeof(double));
    for (uint32_t i = 0; i < n; i++)
        source[i] = 1;
    if (background && oct_source_smooth(background, n, source))
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the window");
    return fill_shape(s, source, err);
}

void oct_shape_finish(struct oct_shape *s)
{
    free(s->q);
    *s = (struct oct_shape){.scale = 1};
}

/* F at q, linear between the samples around it. */
static double flat_at(const struct oct_shape *s, double q)
{
    uint32_t low = 0, high = s->n_samples - 1;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (s->q[middle] <= q)
            low = middle;
        else
            high = middle;
    }
    double step = s->q[high] - s->q[low];
    double part = step > 0 ? fmin(fmax((q - s->q[low]) / step, 0), 1) : 0;
    return s->flat[low] + (s->flat[high] - s->flat[low]) * part;
}

double oct_shape_at(const struct oct_shape *s, double q)
{
    if (!s->q)
        return 1;
    double t = place_t(s, q);
    return s->scale * oct_window_at(s->shaping.window, s->shaping.width, t) * flat_at(s, q);
}
