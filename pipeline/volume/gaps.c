#include "pipeline/volume/gaps.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RANGES 4096u
#define AT_ONCE 256u

uint32_t oct_gap_capacity(const struct oct_geometry *g)
{
    /* Every other line of each B-scan, and what lies before and after. */
    uint64_t most = (uint64_t)g->n_bscans * (g->n_lines / 2 + 1) + 2;
    return most < MOST_RANGES ? (uint32_t)most : MOST_RANGES;
}

size_t oct_gap_column_bytes(enum oct_gap_column column)
{
    static const size_t bytes[OCT_N_GAP_COLUMNS] = {
        [OCT_GAP_ACQUISITION] = 4,
        [OCT_GAP_FIRST_LINE] = 8,
        [OCT_GAP_N_LINES] = 8,
        [OCT_GAP_REASON] = 1,
    };
    return bytes[column];
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

static void value_of(const struct oct_gap *gap, enum oct_gap_column column, unsigned char *value)
{
    uint8_t reason = (uint8_t)gap->reason;
    const void *from[OCT_N_GAP_COLUMNS] = {
        [OCT_GAP_ACQUISITION] = &gap->acquisition,
        [OCT_GAP_FIRST_LINE] = &gap->first_line,
        [OCT_GAP_N_LINES] = &gap->n_lines,
        [OCT_GAP_REASON] = &reason,
    };
    memcpy(value, from[column], oct_gap_column_bytes(column));
}

static enum oct_err push_some(struct oct_volume_gaps *gaps, uint32_t first, uint32_t n,
                              struct oct_error *err)
{
    unsigned char values[AT_ONCE * sizeof(uint64_t)];
    enum oct_err e = OCT_OK;
    for (int c = 0; c < OCT_N_GAP_COLUMNS && e == OCT_OK; c++) {
        enum oct_gap_column column = (enum oct_gap_column)c;
        size_t bytes = oct_gap_column_bytes(column);
        for (uint32_t i = 0; i < n; i++)
            value_of(&gaps->ranges[first + i], column, values + i * bytes);
        e = oct_volume_file_write(gaps->file, values, n * bytes, gaps->column[c] + first * bytes,
                                  false, err);
    }
    return e;
}

enum oct_err oct_volume_gaps_push(struct oct_volume_gaps *gaps, uint64_t *n_bytes,
                                  struct oct_error *err)
{
    const size_t row_bytes = 4 + 8 + 8 + 1;
    while (gaps->first_dirty < gaps->n_ranges) {
        uint32_t first = gaps->first_dirty, n = gaps->n_ranges - first;
        if (n > AT_ONCE)
            n = AT_ONCE;
        enum oct_err e = push_some(gaps, first, n, err);
        if (e != OCT_OK)
            return e;
        gaps->first_dirty += n;
        *n_bytes += n * row_bytes;
    }
    return OCT_OK;
}

void oct_volume_gaps_finish(struct oct_volume_gaps *gaps)
{
    free(gaps->ranges);
    *gaps = (struct oct_volume_gaps){0};
}
