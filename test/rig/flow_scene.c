#include "test/rig/flow_scene.h"

#include "synth/random.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SQRT_HALF 0.70710678118654752
enum { MARGIN = 64, N_KERNEL = 5 };
/* Of what a depth shares with its neighbours, turned by half a turn a depth as a band about the
 * middle of the P2 steps is. */
static const double kernel[N_KERNEL] = {0.1867, -0.5061, 0.6580, -0.5061, 0.1867};

static void white(uint64_t seed, uint64_t at, double value[2])
{
    value[0] = oct_normal(oct_mix64(seed * 2654435761u + 2 * at)) * SQRT_HALF;
    value[1] = oct_normal(oct_mix64(seed * 2654435761u + 2 * at + 1)) * SQRT_HALF;
}

/* Mean power 1 at any place (line, depth), which may lie outside the picture. */
static void speckle(uint64_t seed, int64_t line, int64_t depth, double value[2])
{
    value[0] = value[1] = 0;
    for (int i = 0; i < N_KERNEL; i++) {
        double one[2];
        white(seed, (uint64_t)((line + MARGIN) * 100003 + depth + MARGIN + i), one);
        value[0] += kernel[i] * one[0];
        value[1] += kernel[i] * one[1];
    }
}

static bool is_in_box(const struct oct_flow_scene *s, int64_t line, int64_t depth)
{
    return line >= s->box[0] && line < s->box[0] + s->box[1] && depth >= s->box[2] &&
           depth < s->box[2] + s->box[3];
}

static void make_voxel(const struct oct_flow_scene *s, unsigned r, uint32_t j, uint32_t d,
                       float *to)
{
    const int64_t line = (int64_t)j + (int)r * s->lines_shift;
    const int64_t depth = (int64_t)d + (int)r * s->depth_shift;
    const bool is_new = is_in_box(s, line, depth);
    const bool is_below = line >= s->box[0] && line < s->box[0] + s->box[1] &&
                          depth >= s->box[2] + s->box[3] && s->box[1] > 0;
    double tissue[2] = {0, 0}, noise[2];
    if (depth >= s->top)
        speckle(s->seed + (is_new ? 1 + r : 0), line, depth, tissue);
    speckle(s->seed + 1000 + r, j, d, noise);
    double phase = s->turns ? 6.28 * oct_uniform(oct_mix64(s->seed * 77 + r * 1000 + j)) : 0;
    if (is_below && s->tail > 0)
        phase += s->tail * oct_normal(oct_mix64(s->seed * 79 + r * 1000 + (uint64_t)line));
    const double size = sqrt(s->snr), n = sqrt(s->noise);
    to[0] = (float)(size * (tissue[0] * cos(phase) - tissue[1] * sin(phase)) + n * noise[0]);
    to[1] = (float)(size * (tissue[0] * sin(phase) + tissue[1] * cos(phase)) + n * noise[1]);
}

float *oct_flow_scene_make(const struct oct_flow_scene *s)
{
    float *values = malloc(2 * (size_t)s->n_repeats * s->n_lines * s->depth * sizeof(*values));
    float *to = values;
    assert_non_null(values);
    for (unsigned r = 0; r < s->n_repeats; r++)
        for (uint32_t j = 0; j < s->n_lines; j++)
            for (uint32_t d = 0; d < s->depth; d++, to += 2)
                make_voxel(s, r, j, d, to);
    return values;
}
