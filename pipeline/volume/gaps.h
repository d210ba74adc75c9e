/* The gap map of a recording: /gaps, one row a range of A-lines that the file lacks (loss.h).
 *
 * Ranges are gathered in memory and written before the rows of /frames that they explain. The table
 * has a fixed length, like every array of the file. When it is full, the last range gets the reason
 * "more" and counts the lines of all that follow. One thread. */
#ifndef OCT_PIPELINE_VOLUME_GAPS_H
#define OCT_PIPELINE_VOLUME_GAPS_H

#include "pipeline/base/err.h"
#include "pipeline/flow/loss.h"
#include "pipeline/plan/geometry.h"
#include "pipeline/volume/file.h"

#include <stddef.h>
#include <stdint.h>

/* /gaps/NAME */
enum oct_gap_column {
    OCT_GAP_ACQUISITION,
    OCT_GAP_FIRST_LINE,
    OCT_GAP_N_LINES,
    OCT_GAP_REASON,
    OCT_N_GAP_COLUMNS
};

struct oct_volume_gaps {
    struct oct_volume_file *file;       /* borrowed */
    uint64_t column[OCT_N_GAP_COLUMNS]; /* offsets in the file */
    struct oct_gap *ranges;             /* owned */
    uint32_t n_ranges, capacity;
    uint32_t first_dirty; /* ranges from here on differ from the file's */
};

/* Rows of the table for volumes of this geometry. */
uint32_t oct_gap_capacity(const struct oct_geometry *geometry);

extern const struct oct_volume_column_form
    oct_gap_columns[OCT_N_GAP_COLUMNS]; /* of struct oct_gap */

enum oct_err oct_volume_gaps_init(struct oct_volume_gaps *gaps, struct oct_volume_file *file,
                                  const uint64_t column[OCT_N_GAP_COLUMNS], uint32_t capacity,
                                  struct oct_error *err);

/* Adds a range. Neighbouring ranges of one reason become one. */
void oct_volume_gaps_add(struct oct_volume_gaps *gaps, const struct oct_gap *gap);

/* Writes what is new (not synced); *n_bytes counts on. */
enum oct_err oct_volume_gaps_push(struct oct_volume_gaps *gaps, uint64_t *n_bytes,
                                  struct oct_error *err);

/* Fine on a zeroed one. */
void oct_volume_gaps_finish(struct oct_volume_gaps *gaps);

#endif
