#include "pipeline/flow/background.h"

#include "pipeline/base/aligned.h"
#include "pipeline/base/wide.h"
#include "pipeline/flow/line_sums.h"

#include <stdlib.h>

enum oct_err oct_background_init(struct oct_background *b, const struct oct_geometry *geometry,
                                 unsigned bits, struct oct_error *err)
{
    *b = (struct oct_background){
        .geometry = *geometry,
        .limit = (uint16_t)((1u << bits) - 1),
        .sums = oct_aligned_calloc(64, geometry->n_samples, sizeof(*b->sums)),
        .total = oct_aligned_calloc(64, geometry->n_samples, sizeof(*b->total)),
        .room = oct_aligned_alloc(64, geometry->n_samples, sizeof(*b->room)),
    };
    return b->sums && b->total && b->room
               ? OCT_OK
               : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a background");
}

void oct_background_finish(struct oct_background *b)
{
    free(b->sums);
    free(b->total);
    free(b->room);
    *b = (struct oct_background){.sums = NULL};
}

OCT_WIDE static uint32_t count_saturated(const uint16_t *line, uint32_t n, uint16_t limit)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        count += line[i] >= limit;
    return count;
}

void oct_background_add(struct oct_background *b, const struct oct_raw_frame *frame)
{
    const struct oct_geometry *g = &b->geometry;
    const uint32_t n_lines = oct_line_sums(b->sums, frame, g);
    for (uint32_t i = 0; i < g->n_samples; i++)
        b->total[i] += b->sums[i];
    for (uint32_t j = 0; j < g->n_lines; j++)
        if (frame->line_valid[j])
            b->n_saturated += count_saturated(oct_raw_line(frame, g, j, 0, g->n_samples, b->room),
                                              g->n_samples, b->limit);
    b->n_lines += n_lines;
    b->n_bscans += n_lines > 0;
}

enum oct_err oct_background_check(const struct oct_background *b, struct oct_error *err)
{
    if (b->n_lines < OCT_BACKGROUND_LEAST_LINES)
        return oct_fail(err, OCT_E_STATE,
                        "%u A-lines are too few for a background, their mean is noise: at least "
                        "%u, so more B-scans (--bscans)",
                        (unsigned)b->n_lines, OCT_BACKGROUND_LEAST_LINES);
    return OCT_OK;
}

double oct_background_at(const struct oct_background *b, uint32_t i)
{
    return b->n_lines ? (double)b->total[i] / (double)b->n_lines : 0;
}
