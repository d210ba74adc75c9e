#include "kernels/recon/line_spread.h"

#include "kernels/recon/line.h"
#include "pipeline/base/aligned.h"

#include <stdlib.h>
#include <string.h>

static float *alloc_floats(size_t n)
{
    return oct_aligned_calloc(64, n, sizeof(float));
}

enum oct_err oct_line_spread_init(struct oct_line_spread *chain, const struct oct_plan *plan,
                                  const struct oct_stages *stages, const char *wisdom_dir,
                                  struct oct_error *err)
{
    const struct oct_geometry *g = &plan->geometry;
    uint32_t n_grid = plan->spread.n_grid, sixteenth = n_grid / 16;
    *chain = (struct oct_line_spread){
        .plan = plan,
        .stages = stages,
        .lanes = oct_lanes_cover_grid(n_grid) ? stages->lanes : NULL,
        .n_out = g->crop_last <= sixteenth       ? 1
                 : g->crop_last <= 4 * sixteenth ? 4
                                                 : 8,
    };
    enum oct_err e = oct_spread_blocks_init(&chain->blocks, &plan->spread, g->n_samples);
    if (!e && chain->lanes)
        e = oct_lane_fft_init(&chain->lane_fft, n_grid);
    if (e)
        oct_fail(err, e, "out of memory for the tables of nufft");
    else if (!chain->lanes)
        e = oct_fft_init(&chain->fft, OCT_FFT_ONE, n_grid, wisdom_dir, err);
    if (e)
        oct_line_spread_finish(chain);
    return e;
}

void oct_line_spread_finish(struct oct_line_spread *chain)
{
    oct_spread_blocks_finish(&chain->blocks);
    oct_lane_fft_finish(&chain->lane_fft);
    oct_fft_finish(&chain->fft);
    *chain = (struct oct_line_spread){0};
}

static bool alloc_for_lanes(struct oct_line_spread_scratch *s, const struct oct_line_spread *chain)
{
    uint32_t n_grid = chain->plan->spread.n_grid;
    for (int i = 0; i < 2; i++) {
        s->power[i] = alloc_floats(chain->n_out * (size_t)n_grid / 16);
        s->plane[i] = alloc_floats(n_grid);
    }
    s->work = alloc_floats(2 * oct_lane_work_floats(n_grid));
    return s->power[0] && s->power[1] && s->plane[0] && s->plane[1] && s->work;
}

static bool alloc_for_fftw(struct oct_line_spread_scratch *s, const struct oct_line_spread *chain)
{
    size_t n_grid = chain->plan->spread.n_grid;
    for (int i = 0; i < 2; i++)
        s->grid[i] = alloc_floats(2 * n_grid);
    s->bins = alloc_floats(2 * n_grid);
    s->power[0] = alloc_floats(chain->plan->geometry.depth);
    return s->grid[0] && s->grid[1] && s->bins && s->power[0];
}

enum oct_err oct_line_spread_scratch_init(struct oct_line_spread_scratch *s,
                                          const struct oct_line_spread *chain)
{
    size_t n = chain->blocks.n_ahead + (size_t)chain->plan->geometry.n_samples + OCT_SPREAD_SLACK;
    *s = (struct oct_line_spread_scratch){.memory = {alloc_floats(n), alloc_floats(n)}};
    if (s->memory[0] && s->memory[1] &&
        (chain->lanes ? alloc_for_lanes(s, chain) : alloc_for_fftw(s, chain)))
        return OCT_OK;
    oct_line_spread_scratch_finish(s);
    return OCT_E_NO_MEMORY;
}

void oct_line_spread_scratch_finish(struct oct_line_spread_scratch *s)
{
    for (int i = 0; i < 2; i++) {
        free(s->memory[i]);
        free(s->power[i]);
        free(s->plane[i]);
        free(s->grid[i]);
    }
    free(s->work);
    free(s->bins);
    *s = (struct oct_line_spread_scratch){0};
}

/* Step 1: the line with its end before its beginning. */
static const float *load(const struct oct_line_spread *chain, float *memory,
                         const struct oct_line_pair *pair, int i)
{
    uint32_t n = chain->plan->geometry.n_samples, n_wrap = chain->blocks.n_wrap;
    float *at = memory + chain->blocks.n_ahead;
    chain->stages->subtract(at, pair->line[i], pair->whole, pair->rest, n);
    memcpy(at - n_wrap, at + n - n_wrap, n_wrap * sizeof(*at));
    return at;
}

static void transform_by_lanes(const struct oct_line_spread *chain,
                               struct oct_line_spread_scratch *s, const float *const line[2],
                               const struct oct_line_pair *pair)
{
    const struct oct_geometry *g = &chain->plan->geometry;
    const struct oct_spread *spread = &chain->plan->spread;
    float *const power[2] = {s->power[0], pair->line[1] ? s->power[1] : NULL};
    float *const plane[2] = {pair->z[0] ? s->plane[0] : NULL, pair->z[1] ? s->plane[1] : NULL};

    chain->lanes->spread_to_depth(power, plane, line, &chain->blocks, spread->gain,
                                  &chain->lane_fft, chain->n_out, s->work);
    for (int i = 0; i < 2 && pair->line[i]; i++) {
        const float *kept = power[i] + g->crop_first;
        if (pair->log)
            chain->stages->decibels(pair->value[i], kept, g->depth);
        else
            memcpy(pair->value[i], kept, g->depth * sizeof(*kept));
        if (pair->z[i])
            chain->stages->compose(pair->z[i], plane[i] + g->crop_first,
                                   plane[i] + spread->n_grid / 2 + g->crop_first,
                                   spread->factor + 2 * (size_t)g->crop_first, g->depth);
    }
}

static void transform_by_fftw(const struct oct_line_spread *chain,
                              struct oct_line_spread_scratch *s, const float *const line[2],
                              const struct oct_line_pair *pair)
{
    const struct oct_geometry *g = &chain->plan->geometry;
    const float *gain = chain->plan->spread.gain + g->crop_first;
    const float *factor = chain->plan->spread.factor + 2 * (size_t)g->crop_first;
    const float *kept = s->bins + 2 * (size_t)g->crop_first;

    chain->stages->spread_pair(s->grid[0], s->grid[1], line[0], line[1], &chain->blocks);
    for (int i = 0; i < 2 && pair->line[i]; i++) {
        float *power = pair->log ? s->power[0] : pair->value[i];
        fftwf_execute_dft(chain->fft.forward_pair, (fftwf_complex *)s->grid[i],
                          (fftwf_complex *)s->bins);
        chain->stages->intensity_gained(power, kept, gain, g->depth);
        if (pair->log)
            chain->stages->decibels(pair->value[i], power, g->depth);
        if (!pair->z[i])
            continue;
        memcpy(pair->z[i], kept, 2 * (size_t)g->depth * sizeof(*kept));
        chain->stages->multiply(pair->z[i], factor, g->depth);
    }
}

void oct_line_spread_reconstruct(const struct oct_line_spread *chain,
                                 struct oct_line_spread_scratch *s,
                                 const struct oct_line_pair *pair)
{
    const float *first = load(chain, s->memory[0], pair, 0);
    const float *const line[2] = {first,
                                  pair->line[1] ? load(chain, s->memory[1], pair, 1) : first};
    if (chain->lanes)
        transform_by_lanes(chain, s, line, pair);
    else
        transform_by_fftw(chain, s, line, pair);
}
