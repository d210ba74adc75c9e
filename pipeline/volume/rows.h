/* The columns of /frames and the gap map of a recording, read as a whole.
 *
 * A file need not have any of them; those that exist must be integers of the right length. All
 * calls are made under the HDF5 lock (hdf5_lock.h) except oct_volume_rows_finish. */
#ifndef OCT_PIPELINE_VOLUME_ROWS_H
#define OCT_PIPELINE_VOLUME_ROWS_H

#include "pipeline/base/err.h"
#include "pipeline/flow/loss.h"
#include "pipeline/volume/hdf5_read.h"
#include "pipeline/volume/layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oct_volume_rows {
    void *column[OCT_N_COLUMNS]; /* [V] of oct_volume_columns; each NULL where the file has none */
    struct oct_gap *gaps;        /* [n_gaps] */
    size_t n_gaps;
    bool has_gaps; /* there is a gap map, though it may be empty */
    bool counted;  /* the attribute first_bscan is there */
    uint64_t first_bscan;
};

/* path only names the file in errors. rows comes in zeroed; finish it in any case. OCT_E_FORMAT
 * says which array is wrong. */
enum oct_err oct_volume_rows_read(struct oct_volume_rows *rows, hid_t file, const char *path,
                                  uint32_t n_bscans, struct oct_error *err);

void oct_volume_rows_finish(struct oct_volume_rows *rows);

#endif
