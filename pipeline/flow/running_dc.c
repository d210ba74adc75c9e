#include "pipeline/flow/running_dc.h"

#include "pipeline/base/aligned.h"
#include "pipeline/base/wide.h"
#include "pipeline/flow/line_sums.h"

#include <stdlib.h>
#include <string.h>

struct oct_running_dc {
    struct oct_geometry geometry;
    uint32_t n_bscans; /* places of the window */
    uint32_t *sums;    /* [n_bscans][N]; B-scan v lies at v % n_bscans */
    uint32_t *n_lines; /* [n_bscans] that came; 0: the place is empty, its sums mean nothing */
    uint64_t *total;   /* [N] over the window */
    uint64_t n_total;  /* lines in it */
    bool has_newest;
    struct oct_bscan_info newest;
};

enum oct_err oct_running_dc_create(struct oct_running_dc **out, const struct oct_plan *plan,
                                   struct oct_error *err)
{
    const struct oct_geometry *g = &plan->geometry;
    const uint32_t n = plan->chain.dc_bscans < g->n_bscans ? plan->chain.dc_bscans : g->n_bscans;
    struct oct_running_dc *dc = calloc(1, sizeof(*dc));
    *out = NULL;
    if (dc) {
        dc->geometry = *g;
        dc->n_bscans = n > 1 ? n : 1;
        dc->sums = oct_aligned_calloc(64, (size_t)dc->n_bscans * g->n_samples, sizeof(*dc->sums));
        dc->n_lines = calloc(dc->n_bscans, sizeof(*dc->n_lines));
        dc->total = oct_aligned_calloc(64, g->n_samples, sizeof(*dc->total));
    }
    if (!dc || !dc->sums || !dc->n_lines || !dc->total) {
        oct_running_dc_destroy(dc);
        oct_fail_key(err, OCT_E_NO_MEMORY, "pipeline.dc_bscans",
                     "out of memory for the running mean of %u B-scans: lower pipeline.dc_bscans",
                     n);
        return OCT_E_NO_MEMORY;
    }
    *out = dc;
    return OCT_OK;
}

void oct_running_dc_destroy(struct oct_running_dc *dc)
{
    if (!dc)
        return;
    free(dc->sums);
    free(dc->n_lines);
    free(dc->total);
    free(dc);
}

OCT_WIDE static void add(uint64_t *restrict total, const uint32_t *restrict sums, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        total[i] += sums[i];
}

OCT_WIDE static void subtract(uint64_t *restrict total, const uint32_t *restrict sums, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        total[i] -= sums[i];
}

static uint32_t *sums_at(struct oct_running_dc *dc, uint32_t place)
{
    return dc->sums + (size_t)place * dc->geometry.n_samples;
}

static void leave(struct oct_running_dc *dc, uint32_t place)
{
    if (dc->n_lines[place] == 0)
        return;
    subtract(dc->total, sums_at(dc, place), dc->geometry.n_samples);
    dc->n_total -= dc->n_lines[place];
    dc->n_lines[place] = 0;
}

static void begin_anew(struct oct_running_dc *dc)
{
    memset(dc->total, 0, dc->geometry.n_samples * sizeof(*dc->total));
    memset(dc->n_lines, 0, dc->n_bscans * sizeof(*dc->n_lines));
    dc->n_total = 0;
}

/* Takes out of the window what the B-scan `info` moves out of it. */
static void move_to(struct oct_running_dc *dc, const struct oct_bscan_info *info)
{
    const struct oct_bscan_info *newest = &dc->newest;
    const bool goes_on = dc->has_newest && info->acquisition == newest->acquisition &&
                         info->volume == newest->volume && info->number > newest->number;
    if (!goes_on || info->number - newest->number >= dc->n_bscans)
        begin_anew(dc);
    else
        for (uint64_t v = newest->number + 1; v <= info->number; v++)
            leave(dc, (uint32_t)(v % dc->n_bscans));
    dc->has_newest = true;
    dc->newest = *info;
}

void oct_running_dc_push(struct oct_running_dc *dc, const struct oct_raw_frame *frame, float *line)
{
    const uint32_t n_samples = dc->geometry.n_samples;
    const uint32_t place = (uint32_t)(frame->info.number % dc->n_bscans);
    move_to(dc, &frame->info);
    dc->n_lines[place] = oct_line_sums(sums_at(dc, place), frame, &dc->geometry);
    add(dc->total, sums_at(dc, place), n_samples);
    dc->n_total += dc->n_lines[place];
    oct_line_mean(line, dc->total, dc->n_total, n_samples);
}

enum oct_err oct_running_dc_alone(float **line, const struct oct_plan *plan,
                                  const struct oct_raw_frame *frame, struct oct_error *err)
{
    struct oct_running_dc *dc;
    *line = NULL;
    if (plan->chain.dc != OCT_DC_RUNNING)
        return OCT_OK;
    enum oct_err e = oct_running_dc_create(&dc, plan, err);
    if (e)
        return e;
    *line = oct_aligned_alloc(64, 2 * (size_t)plan->geometry.n_samples, sizeof(float));
    if (*line)
        oct_running_dc_push(dc, frame, *line);
    else
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the line of a running mean");
    oct_running_dc_destroy(dc);
    return e;
}
