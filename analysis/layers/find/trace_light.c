/* The light of a picture on one scale, whatever the picture's own is: the logarithm of the light
 * and a floor that lies FLOOR_DB below its brightest pixels. The floor gives pictures that are
 * averaged, whose vitreous is black, the contrast of noisy ones: without it the logarithm is
 * steepest in the skirts of the axial resolution, micrometres away from where the light itself
 * changes fastest. Where the picture's unit is not known, the span of its pixels is taken as
 * SPAN_DB. */
#include "analysis/layers/find/trace_parts.h"
#include "pipeline/base/wide.h"

#include <stdlib.h>
#include <string.h>

#define FLOOR_DB 19.0
#define SPAN_DB 24.0
#define DIM_SHARE 0.3     /* of the pixels are darker than the span's lower end, */
#define BRIGHT_SHARE 0.02 /* and brighter than its upper one, where the scale has its zero */
#define LEAST_DB -60.0    /* of the table */
#define MOST_DB 40.0
#define STEPS_A_DB 16
#define N_STEPS ((int)((MOST_DB - LEAST_DB) * STEPS_A_DB))
#define N_SAMPLES 16384u

void oct_trace_light_init(struct oct_trace *trace)
{
    const size_t n = (size_t)trace->setup.n_lines * trace->setup.depth;

    trace->light = oct_trace_array(trace, n, sizeof(float));
    trace->samples = oct_trace_array(trace, N_SAMPLES, sizeof(float));
    trace->steps = oct_trace_array(trace, trace->setup.depth, sizeof(uint16_t));
    trace->table = oct_trace_array(trace, N_STEPS + 1, sizeof(float));
    for (int i = 0; trace->table && i <= N_STEPS; i++)
        trace->table[i] = (float)log(pow(10, 0.1 * (LEAST_DB + (double)i / STEPS_A_DB)) +
                                     pow(10, -0.1 * FLOOR_DB));
}

static size_t take_samples(struct oct_trace *trace, const float *pixels)
{
    const size_t all = (size_t)trace->setup.n_lines * trace->setup.depth;
    const size_t stride = all / N_SAMPLES + 1;
    size_t n = 0;

    /* A stride that is no divisor of the depth, so that all depths count. */
    size_t line = 0, end = trace->setup.depth;
    for (size_t i = 0; i < all; i += stride + line % 2) {
        for (; i >= end; end += trace->setup.depth)
            line++;
        if (n < N_SAMPLES && oct_trace_has_line(trace, (uint32_t)line) &&
            fabsf(pixels[i]) <= OCT_TRACE_MOST_BRIGHT)
            trace->samples[n++] = pixels[i];
    }
    return n;
}

/* The places of pixels in the table, as vector code, then what stands there. */
OCT_WIDE static void look_up(const struct oct_trace *trace, const float *restrict pixels,
                             float bright, float scale)
{
    const uint32_t depth = trace->setup.depth;
    const float zero = 0.5F - (float)(LEAST_DB * STEPS_A_DB), *restrict table = trace->table;
    uint16_t *restrict steps = trace->steps;
    float *restrict light = trace->light;

    for (uint32_t j = 0; j < trace->setup.n_lines; j++, pixels += depth, light += depth) {
        for (uint32_t i = 0; i < depth; i++) {
            const float x = fabsf(pixels[i]) <= OCT_TRACE_MOST_BRIGHT
                                ? (pixels[i] - bright) * scale + zero
                                : 0; /* what is no number is the darkest */
            steps[i] = (uint16_t)(x > 0 ? (x < (float)N_STEPS ? (int)x : N_STEPS) : 0);
        }
        for (uint32_t i = 0; i < depth; i++)
            light[i] = table[steps[i]];
    }
}

bool oct_trace_light(struct oct_trace *trace, const float *pixels)
{
    const struct oct_trace_params *p = &trace->setup.params;
    const size_t n = take_samples(trace, pixels);

    if (n == 0)
        return false;
    const double last = (double)(n - 1);
    float dim, bright;
    oct_trace_select_both(trace->samples, n, (size_t)(DIM_SHARE * last), &dim,
                          (size_t)((1 - BRIGHT_SHARE) * last), &bright);
    if (!(bright - dim > 1e-6F * (fabsf(bright) + fabsf(dim))))
        return false;
    const double unit_db = p->unit_db > 0 ? p->unit_db : SPAN_DB / (double)(bright - dim);
    look_up(trace, pixels, bright, (float)(STEPS_A_DB * unit_db));
    return true;
}

void oct_trace_copy_light(const struct oct_trace *trace, uint32_t line, int first, int n, float *to)
{
    const int room = (int)trace->setup.depth;
    const float *light = trace->light + (size_t)line * trace->setup.depth;

    if (first >= 0 && first + n <= room)
        memcpy(to, light + first, (size_t)n * sizeof(*to));
    else
        for (int i = 0; i < n; i++)
            to[i] = oct_trace_light_at(trace, line, first + i);
}
