#include "pipeline/flow/line_sums.h"

#include "pipeline/base/wide.h"

#include <string.h>

/* Columns at a time, so that their sums stay in the first cache however long a line is. */
#define COLUMNS 4096u
#define SIDE_BY_SIDE 4u /* lines: the sums are loaded and stored once for all of them */

OCT_WIDE static void add_four(uint32_t *restrict sums, const uint16_t *const line[SIDE_BY_SIDE],
                              uint32_t n)
{
    const uint16_t *restrict a = line[0], *restrict b = line[1];
    const uint16_t *restrict c = line[2], *restrict d = line[3];
    for (uint32_t i = 0; i < n; i++)
        sums[i] += (uint32_t)a[i] + b[i] + c[i] + d[i];
}

OCT_WIDE static void add_one(uint32_t *restrict sums, const uint16_t *restrict line, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        sums[i] += line[i];
}

/* Columns first .. first + n - 1. Returns how many lines came. */
static uint32_t add_columns(uint32_t *sums, const struct oct_raw_frame *frame,
                            const struct oct_geometry *g, uint32_t first, uint32_t n)
{
    const uint16_t *line[SIDE_BY_SIDE];
    uint16_t room[SIDE_BY_SIDE][COLUMNS];
    uint32_t n_lines = 0, n_waiting = 0;
    memset(sums, 0, n * sizeof(*sums));
    for (uint32_t j = 0; j < g->n_lines; j++) {
        if (!frame->line_valid[j])
            continue;
        line[n_waiting] = oct_raw_line(frame, g, j, first, n, room[n_waiting]);
        n_waiting++;
        n_lines++;
        if (n_waiting < SIDE_BY_SIDE)
            continue;
        add_four(sums, line, n);
        n_waiting = 0;
    }
    while (n_waiting > 0)
        add_one(sums, line[--n_waiting], n);
    return n_lines;
}

uint32_t oct_line_sums(uint32_t *sums, const struct oct_raw_frame *frame,
                       const struct oct_geometry *g)
{
    uint32_t n_lines = 0;
    for (uint32_t first = 0; first < g->n_samples; first += COLUMNS) {
        uint32_t n = g->n_samples - first < COLUMNS ? g->n_samples - first : COLUMNS;
        n_lines = add_columns(sums + first, frame, g, first, n);
    }
    return n_lines;
}

OCT_WIDE void oct_line_mean(float *mean, const uint64_t *total, uint64_t n_lines,
                            uint32_t n_samples)
{
    float *whole = mean, *rest = mean + n_samples;
    if (n_lines == 0) {
        memset(mean, 0, 2 * (size_t)n_samples * sizeof(*mean));
        return;
    }
    for (uint32_t i = 0; i < n_samples; i++) {
        double value = (double)(int64_t)total[i] / (double)n_lines;
        double floor = (double)(int32_t)value;
        whole[i] = (float)floor;
        rest[i] = (float)(value - floor);
    }
}
