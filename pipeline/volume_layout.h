/* The metadata of a recording: which arrays it has, what it says about itself, and where in the
 * file every array lies. Made once, in memory, by libhdf5; see docs/recordings.md for the list. */
#ifndef OCT_PIPELINE_VOLUME_LAYOUT_H
#define OCT_PIPELINE_VOLUME_LAYOUT_H

#include "pipeline/err.h"
#include "pipeline/plan.h"
#include "pipeline/volume.h"
#include "pipeline/volume_gaps.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* /frames/NAME: one value a B-scan. `valid` is last: it is written after the others. */
enum oct_volume_column {
    OCT_COLUMN_SEQUENCE,
    OCT_COLUMN_TIME_NS,
    OCT_COLUMN_MISSING_LINES,
    OCT_COLUMN_ACQUISITION,
    OCT_COLUMN_NUMBER,
    OCT_COLUMN_SPECTRA_CRC,
    OCT_COLUMN_BSCANS_CRC,
    OCT_COLUMN_LO,
    OCT_COLUMN_HI,
    OCT_COLUMN_VALID,
    OCT_N_COLUMNS
};

/* Offsets in bytes from the start of the file, all multiples of OCT_VOLUME_BLOCK_BYTES; 0: the file
 * has no such array. */
struct oct_volume_layout {
    uint64_t spectra;    /* u16 [V][M][N] */
    uint64_t bscans;     /* u8 or f32 [V][M][D] */
    uint64_t line_valid; /* u8 [V][M] */
    uint64_t column[OCT_N_COLUMNS];
    uint64_t gap_column[OCT_N_GAP_COLUMNS];
    uint64_t file_bytes;
};

/* Bytes of one value of a column. */
size_t oct_volume_column_bytes(enum oct_volume_column column);

/* An upper bound of the file's length. */
uint64_t oct_volume_layout_estimate(const struct oct_plan *plan,
                                    const struct oct_volume_about *about, bool with_spectra,
                                    bool with_bscans);

/* Makes the HDF5 file in memory: *image_fd is a sparse file of layout->file_bytes whose holes are
 * the arrays still to be written; the caller closes it. `path` only names the file in errors.
 *
 * In memory, because libhdf5 1.10 that meets a full disk while it flushes cannot close its file any
 * more and crashes when the program exits; and because the file on disk then comes into being with
 * its metadata whole. */
enum oct_err oct_volume_layout_build(int *image_fd, struct oct_volume_layout *layout,
                                     const char *path, const struct oct_plan *plan,
                                     const struct oct_volume_about *about, bool with_spectra,
                                     bool with_bscans, struct oct_error *err);

#endif
