/* The metadata of a recording: which arrays it has, what it says about itself, and where in the
 * file every array lies. Made once, in memory, by libhdf5; see docs/recordings.md for the list. */
#ifndef OCT_PIPELINE_VOLUME_LAYOUT_H
#define OCT_PIPELINE_VOLUME_LAYOUT_H

#include "pipeline/base/err.h"
#include "pipeline/plan/plan.h"
#include "pipeline/volume/gaps.h"
#include "pipeline/volume/hdf5_image.h"
#include "pipeline/volume/volume.h"

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

/* Of the results of one form, one value a result: /frames/NAME_..., [V], or, of the whole volume
 * and of blocks of B-scans, /analysis/NAME_..., [1] or [blocks]. `valid` is last: it is written
 * after the others. The form's numbers have columns of their own, f64, beside them. */
enum oct_volume_result_column {
    OCT_RESULT_ROWS, /* how much of the first axis is in use */
    OCT_RESULT_LO,   /* u8 alone */
    OCT_RESULT_HI,
    OCT_RESULT_VALID,
    OCT_N_RESULT_COLUMNS
};

struct oct_volume_result_layout {
    uint64_t data; /* /analysis/NAME */
    uint64_t column[OCT_N_RESULT_COLUMNS];
    uint64_t number[OCT_IMAGE_MAX_NUMBERS]; /* of form->numbers */
};

/* Offsets in bytes from the start of the file, all multiples of OCT_VOLUME_BLOCK_BYTES; 0: the file
 * has no such array. */
struct oct_volume_layout {
    uint64_t spectra;        /* u16 [V][M][N], or u8 [V][M][bytes of a line] */
    uint64_t bscans;         /* u8 or f32 [V][M][D] */
    uint64_t complex_values; /* r, i f32 [V][M][D] */
    uint64_t line_valid;     /* u8 [V][M] */
    uint64_t column[OCT_N_COLUMNS];
    uint64_t gap_column[OCT_N_GAP_COLUMNS];
    struct oct_volume_result_layout results[OCT_VOLUME_MAX_FORMS]; /* of about->forms */
    uint64_t file_bytes;
};

extern const struct oct_volume_column_form
    oct_volume_columns[OCT_N_COLUMNS]; /* of oct_volume_row */

/* name: "_valid", what follows the form's name. No structs: `at` is 0. */
extern const struct oct_volume_column_form oct_volume_result_columns[OCT_N_RESULT_COLUMNS];

/* Bytes of a B-scan of spectra as the file has them. */
size_t oct_volume_spectra_bytes(const struct oct_geometry *g, const struct oct_volume_about *about);

/* An upper bound of the file's length. */
uint64_t oct_volume_layout_estimate(const struct oct_plan *plan,
                                    const struct oct_volume_about *about, bool with_spectra,
                                    bool with_bscans);

/* Makes the HDF5 file in memory (hdf5_image.h), layout->file_bytes long, with holes where the
 * arrays will lie, so that the metadata is complete before the first byte goes to the disk. The
 * caller initialises and finishes `image`; `path` only names the file in errors. */
enum oct_err oct_volume_layout_build(struct oct_hdf5_image *image, struct oct_volume_layout *layout,
                                     const char *path, const struct oct_plan *plan,
                                     const struct oct_volume_about *about, bool with_spectra,
                                     bool with_bscans, struct oct_error *err);

#endif
