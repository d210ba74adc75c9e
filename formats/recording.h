/* A recording in any format: a volume file (.h5, contract section 4), a file of another program
 * (formats/input), or plain samples (.raw, .bin: [B][M][N] of file.sample, between
 * file.header_bytes and file.trailer_bytes). One thread uses a recording at a time. */
#ifndef OCT_FORMATS_RECORDING_H
#define OCT_FORMATS_RECORDING_H

#include "config/config.h"
#include "formats/input/input.h"
#include "pipeline/base/err.h"
#include "pipeline/flow/frame.h"
#include "pipeline/plan/calibration.h"
#include "pipeline/volume/volume.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct oct_recording;

/* Whether `path` is an HDF5 file: it begins as such, or its name ends in .h5 or .hdf5. False when
 * it cannot be read. */
bool oct_recording_is_volume(const char *path);

/* Whether oct_recording_open would take `path` for a volume with this config: it is one by the
 * above, and not a file of another program: it has /spectra or /bscans as volumes have them, no
 * HDF5 file can be read there, or file.dataset and file.transpose say nothing else. */
bool oct_recording_is_our_volume(const char *path, const struct oct_config *config);

/* Whether `path` is a file of another program that is known by its content; plain samples are
 * not. */
bool oct_recording_is_other(const char *path, const struct oct_config *config);

/* Whether `path` is FILE.h5:/DATASET: it has ":/", and no file has that very name. */
bool oct_recording_names_dataset(const char *path);

/* Opens `path`, "-" being standard input: a volume (see above), a file of another program that is
 * known by its content, and anything else is plain samples.
 *
 * A volume brings its own geometry: camera.samples, scan.lines and scan.bscans of the config are
 * changed to it, unless a file or --set gave them and they differ: then OCT_E_CONFIG names file,
 * key and both values. A volume without spectra is OCT_E_FORMAT.
 *
 * So does a file of another program, except for scan.bscans, which divides its B-scans into volumes
 * where it was given. Of camera.bits, scan.line_rate_hz, scan.width_um, scan.height_um and
 * record.eye those are changed that were not given and that the file says.
 *
 * Plain samples take their geometry from the config; camera.bits, where it was not given, is that
 * of 8-bit samples. The number of B-scans follows from the size and need not be a multiple of
 * scan.bscans. OCT_E_FORMAT when the size does not fit (says by how much).
 *
 * *recording is NULL on error. */
enum oct_err oct_recording_open(struct oct_recording **recording, const char *path,
                                struct oct_config *config, struct oct_error *err);

/* The same, and waiting for standard input ends (OCT_E_CLOSED) when *cancel is not 0. */
enum oct_err oct_recording_open_until(struct oct_recording **recording, const char *path,
                                      struct oct_config *config,
                                      const volatile sig_atomic_t *cancel, struct oct_error *err);

/* B-scans in the file. */
uint64_t oct_recording_n_bscans(const struct oct_recording *recording);

/* N, M, V: after open the same as camera.samples, scan.lines, scan.bscans of the config. */
uint32_t oct_recording_n_samples(const struct oct_recording *recording);
uint32_t oct_recording_n_lines(const struct oct_recording *recording);
uint32_t oct_recording_bscans_per_volume(const struct oct_recording *recording);

/* The number of B-scan 0 within its acquisition; 0 where the file does not say. */
uint64_t oct_recording_first_bscan(const struct oct_recording *recording);

/* The volume's facts, its embedded configuration text, and (in *cal, which the caller finishes) the
 * calibration that a volume or a file of another program brings. Others have none: NULL, NULL,
 * empty. The pointers live as long as the recording. */
const struct oct_volume_facts *oct_recording_facts(const struct oct_recording *recording);
const char *oct_recording_config_text(const struct oct_recording *recording);
enum oct_err oct_recording_calibration(struct oct_recording *recording, struct oct_calibration *cal,
                                       struct oct_error *err);

/* What a file of another program says, or what became of plain samples; NULL: it is a volume. Lives
 * as long as the recording. */
const struct oct_input_facts *oct_recording_input(const struct oct_recording *recording);

/* The file that it is read from, which it keeps open, and as messages call it. */
int oct_recording_file(const struct oct_recording *recording);
const char *oct_recording_name(const struct oct_recording *recording);

/* When it was recorded, UTC, ISO 8601, and whose word that is (OCT_TIME_... of volume.h): as the
 * file says, else when it was last changed; "" of a pipe that does not say. */
const char *oct_recording_start_time(const struct oct_recording *recording);
const char *oct_recording_start_time_source(const struct oct_recording *recording);

/* Reads B-scan i into frame->spectra ([M][N]) and frame->line_valid ([M]), both the caller's, and
 * sets number, volume, bscan, sequence, time_ns and missing_lines of frame->info; the rest of it is
 * left alone. Where a file has no times, time_ns is counted from 0 by scan.line_rate_hz. *valid is
 * false for a row of a volume that was never written: then every line_valid is 0. */
enum oct_err oct_recording_read(struct oct_recording *recording, uint64_t i,
                                struct oct_raw_frame *frame, bool *valid, struct oct_error *err);

/* NULL is fine. */
void oct_recording_close(struct oct_recording *recording);

#endif
