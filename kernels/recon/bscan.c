#include "kernels/recon/bscan.h"

#include "pipeline/base/aligned.h"
#include "pipeline/flow/line_sums.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The lines that were made last lie nearest and are mapped first; within so many, addresses rise,
 * as prefetchers follow. */
#define MAP_LINES 32u

#define NULL_DB (-120.0f) /* 10 * log10(1e-12): a missing line */

/* ---- memory ---- */

static void *alloc_aligned(size_t n, size_t size)
{
    return oct_aligned_alloc(64, n, size);
}

static enum oct_err split_background(struct oct_bscan_chain *chain)
{
    uint32_t n = chain->plan->geometry.n_samples;
    if (chain->plan->chain.dc != OCT_DC_FILE)
        return OCT_OK;
    chain->file_whole = alloc_aligned(n, sizeof(float));
    chain->file_rest = alloc_aligned(n, sizeof(float));
    if (!chain->file_whole || !chain->file_rest)
        return OCT_E_NO_MEMORY;
    for (uint32_t i = 0; i < n; i++) {
        double value = chain->plan->calibration.background[i];
        chain->file_whole[i] = (float)(int64_t)value;
        chain->file_rest[i] = (float)(value - (double)chain->file_whole[i]);
    }
    return OCT_OK;
}

enum oct_err oct_bscan_chain_init(struct oct_bscan_chain *chain, const struct oct_plan *plan,
                                  const struct oct_stages *stages, const char *wisdom_dir,
                                  struct oct_error *err)
{
    *chain = (struct oct_bscan_chain){.plan = plan};
    enum oct_err e = oct_line_chain_init(&chain->line, plan, stages, wisdom_dir, err);
    if (e)
        return e;
    if (split_background(chain))
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the background line");
    return OCT_OK;
}

void oct_bscan_chain_finish(struct oct_bscan_chain *chain)
{
    free(chain->file_whole);
    free(chain->file_rest);
    oct_line_chain_finish(&chain->line);
    *chain = (struct oct_bscan_chain){0};
}

enum oct_err oct_bscan_scratch_init(struct oct_bscan_scratch *scratch,
                                    const struct oct_bscan_chain *chain, struct oct_error *err)
{
    const struct oct_geometry *g = &chain->plan->geometry;
    const size_t n_pixels = (size_t)g->n_lines * g->depth;
    *scratch = (struct oct_bscan_scratch){
        .pair = alloc_aligned(2 * (size_t)g->depth, sizeof(float)),
        .spare = {alloc_aligned(n_pixels + OCT_SIFT_SLACK, sizeof(float)),
                  alloc_aligned(n_pixels + OCT_SIFT_SLACK, sizeof(float))},
        .room = alloc_aligned(2 * (size_t)g->n_samples, sizeof(uint16_t)),
    };
    if (!scratch->pair || !scratch->spare[0] || !scratch->spare[1] || !scratch->room ||
        oct_sieves_init(&scratch->sieves, n_pixels, 2 * (size_t)g->depth))
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a worker's buffers");
    return oct_line_scratch_init(&scratch->line, &chain->line, err);
}

void oct_bscan_scratch_finish(struct oct_bscan_scratch *scratch)
{
    oct_line_scratch_finish(&scratch->line);
    free(scratch->pair);
    free(scratch->spare[0]);
    free(scratch->spare[1]);
    oct_sieves_finish(&scratch->sieves);
    free(scratch->room);
    *scratch = (struct oct_bscan_scratch){0};
}

enum oct_err oct_bscan_init(struct oct_bscan *bscan, const struct oct_bscan_chain *chain,
                            unsigned n_shares)
{
    const struct oct_geometry *g = &chain->plan->geometry;
    const size_t n_pixels = (size_t)g->n_lines * g->depth;
    *bscan = (struct oct_bscan){
        .whole = alloc_aligned(g->n_samples, sizeof(float)),
        .rest = alloc_aligned(g->n_samples, sizeof(float)),
        .sums = alloc_aligned(g->n_samples, sizeof(uint32_t)),
        .n_shares = n_shares,
    };
    if (n_shares)
        bscan->sieves = calloc(n_shares, sizeof(*bscan->sieves));
    for (unsigned s = 0; bscan->sieves && s < n_shares; s++)
        if (oct_sieves_init(&bscan->sieves[s], n_pixels, 2 * (size_t)g->depth))
            return OCT_E_NO_MEMORY;
    if (g->sample_type == OCT_SAMPLE_U8)
        bscan->scratch = alloc_aligned(n_pixels, sizeof(float));
    if (!bscan->whole || !bscan->rest || !bscan->sums || (n_shares && !bscan->sieves) ||
        (g->sample_type == OCT_SAMPLE_U8 && !bscan->scratch))
        return OCT_E_NO_MEMORY;
    return OCT_OK;
}

void oct_bscan_finish(struct oct_bscan *bscan)
{
    free(bscan->scratch);
    for (unsigned s = 0; bscan->sieves && s < bscan->n_shares; s++)
        oct_sieves_finish(&bscan->sieves[s]);
    free(bscan->whole);
    free(bscan->rest);
    free(bscan->sums);
    free(bscan->sieves);
    *bscan = (struct oct_bscan){0};
}

/* ---- DC ---- */

void oct_bscan_take(struct oct_bscan *bscan, const struct oct_bscan_chain *chain,
                    const struct oct_engine_job *job)
{
    const bool is_f32 = chain->plan->geometry.sample_type == OCT_SAMPLE_F32;
    bscan->job = *job;
    bscan->min = FLT_MAX;
    bscan->max = -FLT_MAX;
    bscan->values = is_f32 ? job->out->pixels : job->out->values;
    job->out->status = OCT_OK;
    job->out->lo = job->display.lo;
    job->out->hi = job->display.hi;
}

void oct_bscan_begin(struct oct_bscan *bscan, const struct oct_bscan_chain *chain,
                     struct oct_bscan_scratch *scratch, bool alone)
{
    const struct oct_geometry *g = &chain->plan->geometry;
    const struct oct_raw_frame *in = bscan->job.in;

    if (!bscan->values)
        bscan->values = bscan->scratch;
    bscan->n_valid = 0;
    for (uint32_t j = 0; j < g->n_lines; j++)
        bscan->n_valid += in->line_valid[j] != 0;
    for (unsigned s = 0; s < (alone ? 1 : bscan->n_shares); s++)
        oct_sieves_empty(alone ? &scratch->sieves : &bscan->sieves[s], scratch->bounds);
    if (chain->plan->chain.dc != OCT_DC_BSCAN)
        return;
    oct_line_sums(bscan->sums, in, g);
    chain->line.stages->mean(bscan->whole, bscan->rest, bscan->sums, bscan->n_valid, g->n_samples);
}

/* ---- lines ---- */

/* What a missing line has: of the complex values, which may be NULL, NaN. */
static void put_nothing(const struct oct_bscan *bscan, uint32_t depth, float *values, float *z)
{
    for (uint32_t d = 0; d < depth; d++)
        values[d] = bscan->job.display.log ? NULL_DB : 0.0f;
    for (size_t d = 0; z && d < 2 * (size_t)depth; d++)
        z[d] = NAN;
}

/* Lines j and, where it exists, j + 1: values[0], values[1]. */
static void reconstruct(const struct oct_bscan *bscan, const struct oct_bscan_chain *chain,
                        struct oct_bscan_scratch *scratch, uint32_t j, float *values[2])
{
    const struct oct_geometry *g = &chain->plan->geometry;
    const struct oct_raw_frame *in = bscan->job.in;
    struct oct_line_pair pair = {.log = bscan->job.display.log};
    float *complex_values = bscan->job.out->complex_values;
    size_t n = 0;

    for (uint32_t k = 0; k < 2 && j + k < g->n_lines; k++) {
        float *z = complex_values ? complex_values + 2 * (size_t)(j + k) * g->depth : NULL;
        if (in->line_valid[j + k]) {
            uint16_t *room = scratch->room + n * g->n_samples;
            pair.line[n] = oct_raw_line(in, g, j + k, 0, g->n_samples, room);
            pair.z[n] = z;
            pair.value[n++] = values[k];
        } else {
            put_nothing(bscan, g->depth, values[k], z);
        }
    }
    if (chain->plan->chain.dc == OCT_DC_BSCAN) {
        pair.whole = bscan->whole;
        pair.rest = bscan->rest;
    } else if (chain->plan->chain.dc == OCT_DC_RUNNING) {
        pair.whole = bscan->job.dc;
        pair.rest = bscan->job.dc + g->n_samples;
    } else if (chain->plan->chain.dc == OCT_DC_FILE) {
        pair.whole = chain->file_whole;
        pair.rest = chain->file_rest;
    }
    if (n)
        oct_line_reconstruct(&chain->line, &scratch->line, &pair);
}

/* Scale of step 9 as a factor; 0 for an empty range: every pixel is then 0. */
static float pixel_scale(double lo, double hi)
{
    return hi > lo ? (float)(255 / (hi - lo)) : 0;
}

static void map_line(struct oct_bscan *bscan, const struct oct_bscan_chain *chain, uint32_t j,
                     const float *values)
{
    const struct oct_geometry *g = &chain->plan->geometry;
    struct oct_image_frame *out = bscan->job.out;
    chain->line.stages->to_u8((uint8_t *)out->pixels + (size_t)j * g->depth, values, g->depth,
                              (float)out->lo, pixel_scale(out->lo, out->hi));
}

bool oct_bscan_maps_at_once(const struct oct_bscan_chain *chain, const struct oct_bscan *bscan)
{
    return chain->plan->geometry.sample_type == OCT_SAMPLE_U8 &&
           bscan->job.display.range == OCT_RANGE_MANUAL;
}

/* Missing lines take no part in the limits, unless there is no other line. */
static bool takes_part(const struct oct_bscan *bscan, uint32_t j)
{
    return bscan->job.in->line_valid[j] || bscan->n_valid == 0;
}

void oct_bscan_lines(struct oct_bscan *bscan, const struct oct_bscan_chain *chain,
                     struct oct_bscan_scratch *scratch, uint32_t from, uint32_t to,
                     struct oct_sieves *sieves, float *min, float *max)
{
    const struct oct_stages *stages = chain->line.stages;
    const bool at_once = oct_bscan_maps_at_once(chain, bscan);
    const bool in_pairs = at_once && !bscan->job.out->values; /* nobody wants its values */
    uint32_t depth = chain->plan->geometry.depth;

    for (uint32_t j = from; j < to; j += 2) {
        uint32_t n = to - j < 2 ? 1 : 2;
        float *first = in_pairs ? scratch->pair : bscan->values + (size_t)j * depth;
        float *values[2] = {first, first + depth};
        reconstruct(bscan, chain, scratch, j, values);
        for (uint32_t k = 0; at_once && k < n; k++)
            map_line(bscan, chain, j + k, values[k]);
        if (at_once)
            continue;
        for (uint32_t k = 0; bscan->job.display.range == OCT_RANGE_AUTO && k < n; k++)
            if (takes_part(bscan, j + k))
                stages->min_max(values[k], depth, min, max);
        if (bscan->job.display.range == OCT_RANGE_PERCENTILE)
            oct_sieves_add(sieves, stages, first, (size_t)n * depth);
    }
}

/* ---- limits and pixels ---- */

void oct_bscan_limits(struct oct_bscan *bscan, const struct oct_bscan_chain *chain,
                      struct oct_bscan_scratch *scratch, bool alone)
{
    const struct oct_geometry *g = &chain->plan->geometry;
    const struct oct_display *display = &bscan->job.display;
    struct oct_image_frame *out = bscan->job.out;

    if (display->range == OCT_RANGE_AUTO) {
        out->lo = bscan->min;
        out->hi = bscan->max;
    } else if (display->range == OCT_RANGE_PERCENTILE) {
        const struct oct_percentile_values all = {
            .stages = chain->line.stages,
            .values = bscan->values,
            .n = (size_t)g->n_lines * g->depth,
            .n_missing = bscan->n_valid ? (size_t)(g->n_lines - bscan->n_valid) * g->depth : 0,
            .sieves = alone ? &scratch->sieves : bscan->sieves,
            .n_sieves = alone ? 1 : bscan->n_shares,
            .spare = {scratch->spare[0], scratch->spare[1]},
        };
        const double percent[2] = {display->percentile_lo, display->percentile_hi};
        double found[2];
        oct_percentiles_find(&all, percent, scratch->bounds, found);
        out->lo = found[0];
        out->hi = found[1];
    }
}

void oct_bscan_map(struct oct_bscan *bscan, const struct oct_bscan_chain *chain, uint32_t from,
                   uint32_t to)
{
    const uint32_t depth = chain->plan->geometry.depth;
    for (uint32_t end = to; end > from;) {
        const uint32_t first = end - from > MAP_LINES ? end - MAP_LINES : from;
        for (uint32_t j = first; j < end; j++)
            map_line(bscan, chain, j, bscan->values + (size_t)j * depth);
        end = first;
    }
}
