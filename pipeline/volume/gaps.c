#include "pipeline/volume/gaps.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RANGES 4096u

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first byte of a reason is stored");
const struct oct_volume_column_form oct_gap_columns[OCT_N_GAP_COLUMNS] = {
    [OCT_GAP_ACQUISITION] = {"/gaps/acquisition", 4, offsetof(struct oct_gap, acquisition), false},
    [OCT_GAP_FIRST_LINE] = {"/gaps/first_line", 8, offsetof(struct oct_gap, first_line), false},
    [OCT_GAP_N_LINES] = {"/gaps/n_lines", 8, offsetof(struct oct_gap, n_lines), false},
    [OCT_GAP_REASON] = {"/gaps/reason", 1, offsetof(struct oct_gap, reason), false},
};

uint32_t oct_gap_capacity(const struct oct_geometry *g)
{
    /* Every other line of each B-scan, and what lies before and after. */
    uint64_t most = (uint64_t)g->n_bscans * (g->n_lines / 2 + 1) + 2;
    return most < MOST_RANGES ? (uint32_t)most : MOST_RANGES;
}

enum oct_err oct_volume_gaps_init(struct oct_volume_gaps *gaps, struct oct_volume_file *file,
                                  const uint64_t column[OCT_N_GAP_COLUMNS], uint32_t capacity,
                                  struct oct_error *err)
{
    *gaps = (struct oct_volume_gaps){.file = file, .capacity = capacity};
    memcpy(gaps->column, column, sizeof(gaps->column));
    gaps->ranges = calloc(capacity, sizeof(*gaps->ranges));
    return gaps->ranges ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", file->path);
}

static bool joins(const struct oct_gap *last, const struct oct_gap *gap)
{
    return last->acquisition == gap->acquisition && last->reason == gap->reason &&
           last->first_line + last->n_lines == gap->first_line;
}

void oct_volume_gaps_add(struct oct_volume_gaps *gaps, const struct oct_gap *gap)
{
    uint32_t n = gaps->n_ranges;
    if (gap->n_lines == 0)
        return;
    bool joined = n > 0 && joins(&gaps->ranges[n - 1], gap);
    if (n < gaps->capacity && !joined) {
        gaps->ranges[n] = *gap;
        gaps->n_ranges++;
        return;
    }
    gaps->ranges[n - 1].n_lines += gap->n_lines;
    if (!joined)
        gaps->ranges[n - 1].reason = OCT_LOSS_MORE;
    if (gaps->first_dirty == n)
        gaps->first_dirty = n - 1;
}

enum oct_err oct_volume_gaps_push(struct oct_volume_gaps *gaps, uint64_t *n_bytes,
                                  struct oct_error *err)
{
    const uint32_t first = gaps->first_dirty, n = gaps->n_ranges - first;
    enum oct_err e = OCT_OK;
    for (int c = 0; c < OCT_N_GAP_COLUMNS && n > 0 && !e; c++) {
        const struct oct_volume_column_form *column = &oct_gap_columns[c];
        e = oct_volume_file_write_column(gaps->file, column, &gaps->ranges[first],
                                         sizeof(gaps->ranges[0]), n,
                                         gaps->column[c] + first * column->bytes, err);
        *n_bytes += e ? 0 : n * column->bytes;
    }
    gaps->first_dirty += e ? 0 : n;
    return e;
}

void oct_volume_gaps_finish(struct oct_volume_gaps *gaps)
{
    free(gaps->ranges);
    *gaps = (struct oct_volume_gaps){0};
}
