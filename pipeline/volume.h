/* Recordings: one HDF5 file a volume (contract section 4, docs/recordings.md).
 *
 * Writing. All datasets are contiguous, allocated at creation and aligned to 4096 bytes, so each
 * lies at one fixed offset of the file. The file is created and its metadata is synced as
 * NAME.part; after that libhdf5 is not used any more: samples, pixels and rows are written with
 * pwrite at those offsets. The file is a valid HDF5 file at every moment from then on. It gets its
 * final name when it is closed whole.
 *
 * One thread uses a writer or a reader at a time. libhdf5 is not thread-safe; this file holds one
 * lock around all its calls, so that a reader and a writer may live in different threads. */
#ifndef OCT_PIPELINE_VOLUME_H
#define OCT_PIPELINE_VOLUME_H

#include "pipeline/err.h"
#include "pipeline/frame.h"
#include "pipeline/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- writing ---- */

/* What a volume file says about itself beside its arrays. Strings are borrowed for the call. */
struct oct_volume_about {
    const char *config_text; /* the whole effective configuration */
    const char *start_time;  /* UTC, ISO 8601; NULL: now */
    const char *eye;         /* "", "OD" or "OS" */
    const char *pseudonym;
    const char *engine;      /* describe() of the engine, "" for none */
    double width_um, height_um; /* scanned field, 0: unknown */
    double refractive_index;
};

struct oct_volume_writer;

/* Creates path (as path.part until closed whole). Space for all V B-scans is reserved, so a full
 * disk shows here (OCT_E_NO_SPACE). `plan` gives geometry and calibration and is not kept. */
enum oct_err oct_volume_create(struct oct_volume_writer **writer, const char *path,
                               const struct oct_plan *plan, const struct oct_volume_about *about,
                               bool with_spectra, bool with_bscans, struct oct_error *err);

/* Writes the spectra of B-scan info.bscan. Rows must come in rising order; skipped rows stay zero.
 * The data is copied before the call returns. */
enum oct_err oct_volume_write_spectra(struct oct_volume_writer *writer,
                                      const struct oct_raw_frame *frame, struct oct_error *err);

/* Writes the picture and its row of /frames. With spectra the same B-scan's spectra come first. */
enum oct_err oct_volume_write_image(struct oct_volume_writer *writer,
                                    const struct oct_image_frame *frame, struct oct_error *err);

/* For files without pictures: the row of /frames alone. */
enum oct_err oct_volume_write_row(struct oct_volume_writer *writer,
                                  const struct oct_bscan_info *info, const uint8_t *line_valid,
                                  struct oct_error *err);

/* Pushes everything accepted so far to the file and syncs it (fdatasync): only then is it counted
 * by oct_volume_written. */
enum oct_err oct_volume_sync(struct oct_volume_writer *writer, struct oct_error *err);

/* B-scans that are in the file with valid = 1, and bytes written so far. */
uint64_t oct_volume_written(const struct oct_volume_writer *writer);
uint64_t oct_volume_bytes(const struct oct_volume_writer *writer);

/* Syncs, closes, renames to the final name, syncs the folder; frees the writer in any case. On
 * error the .part file stays and holds what was written. */
enum oct_err oct_volume_close(struct oct_volume_writer *writer, struct oct_error *err);

/* Writes further datasets and groups into a closed file (the synthetic retina's /truth). Rank <= 3.
 * Intermediate groups are made. `attribute_units` may be NULL. */
enum oct_err oct_volume_add_f64(const char *path, const char *dataset, const double *values,
                                unsigned rank, const size_t *dims, const char *attribute_units,
                                struct oct_error *err);

/* ---- reading ---- */

struct oct_volume_facts {
    uint32_t n_bscans, n_lines, n_samples; /* V, M, N; n_samples 0: no spectra */
    uint32_t depth;                        /* D; 0: no pictures */
    enum oct_sample_type sample_type;
    uint64_t n_valid;       /* rows with valid = 1 (all rows where there is no /frames) */
    uint64_t missing_lines; /* sum */
    bool whole;             /* n_valid == n_bscans */
    char software[64], start_time[40], eye[8], pseudonym[128];
};

struct oct_volume_reader;

/* Opens any file with the contract's layout, ours or another program's (chunked and compressed
 * datasets too, as far as libhdf5 can read them). OCT_E_FORMAT: not HDF5, truncated, or without
 * /spectra and /bscans, says which. */
enum oct_err oct_volume_open(struct oct_volume_reader **reader, const char *path,
                             struct oct_error *err);

const struct oct_volume_facts *oct_volume_facts(const struct oct_volume_reader *reader);

/* The embedded configuration text, or NULL. Owned by the reader. */
const char *oct_volume_config_text(const struct oct_volume_reader *reader);

/* Fills cal from /calibration (empty where absent). The caller finishes it. */
enum oct_err oct_volume_calibration(struct oct_volume_reader *reader, struct oct_calibration *cal,
                                    struct oct_error *err);

/* Reads B-scan v: samples into frame->spectra, the mask into frame->line_valid, and sequence,
 * time_ns, missing_lines of frame->info. *valid tells whether the row was written at all. */
enum oct_err oct_volume_read_spectra(struct oct_volume_reader *reader, uint32_t v,
                                     struct oct_raw_frame *frame, bool *valid,
                                     struct oct_error *err);

/* Reads picture v into pixels ([M][D] of sample_type). */
enum oct_err oct_volume_read_image(struct oct_volume_reader *reader, uint32_t v, void *pixels,
                                   bool *valid, struct oct_error *err);

/* NULL is fine. */
void oct_volume_reader_destroy(struct oct_volume_reader *reader);

#endif
