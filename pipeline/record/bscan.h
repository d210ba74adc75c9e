/* Writes one kept B-scan into a file, with the ranges of the gap map that concern it. */
#ifndef OCT_PIPELINE_RECORD_BSCAN_H
#define OCT_PIPELINE_RECORD_BSCAN_H

#include "pipeline/record/keeper.h"
#include "pipeline/volume/volume.h"

/* Writes the B-scan as row `row`: spectra, picture, row of /frames as the file holds them, a range
 * of the gap map for every run of missing lines, and one for all lines when the engine lost the
 * picture. Errors as of volume.h. */
enum oct_err oct_record_bscan(struct oct_volume_writer *writer, const struct oct_kept *kept,
                              uint32_t row, const struct oct_geometry *geometry, bool spectra,
                              bool bscans, struct oct_error *err);

#endif
