/* Recordings: one HDF5 file a volume (contract section 4, docs/recordings.md).
 *
 * Writing. All datasets are contiguous, allocated at creation and aligned to 4096 bytes, so each
 * lies at one fixed offset of the file. The file is created and its metadata is synced as
 * NAME.part; after that libhdf5 is not used any more: samples, pixels and rows are written with
 * pwrite at those offsets. The file is a valid HDF5 file at every moment from then on. It gets its
 * final name when it is closed.
 *
 * A B-scan is a row: its number within the volume, info.bscan. Its samples and pixels are gathered
 * into aligned blocks, which a thread of the writer's writes while the next are gathered
 * (volume/queue.h); its row of /frames gets valid = 1 only when they are synced. So a row with
 * valid = 1 is right whenever the writer is killed. A failure to write is returned by a later call,
 * at the latest by the next sync. Blocks take 28 MiB at most, less while the disk keeps up, and 2
 * MiB more for each dataset with a result a B-scan.
 *
 * One thread uses a writer or a reader at a time. libhdf5 is not thread-safe; this file holds one
 * lock around all its calls, so that a reader and a writer may live in different threads. */
#ifndef OCT_PIPELINE_VOLUME_VOLUME_H
#define OCT_PIPELINE_VOLUME_VOLUME_H

#include "pipeline/base/err.h"
#include "pipeline/flow/frame.h"
#include "pipeline/flow/image.h"
#include "pipeline/flow/loss.h"
#include "pipeline/plan/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCT_VOLUME_MAX_FORMS 16u

/* Spectra as they were sent where that is not u16: u8 [V][M][bytes of a line]. Its attributes say
 * how many samples a line has and how they lie in the bytes, as oct_samples_name has it. */
#define OCT_PACKED_SPECTRA "/spectra_packed"
#define OCT_PACKED_SAMPLES "samples"
#define OCT_PACKED_FORMAT "sample_format"

/* Whose word start_time is: what recorded it, or, where that left none, when the file that it was
 * made from was last changed. */
#define OCT_TIME_RECORDED "recorded"
#define OCT_TIME_FILE_MODIFIED "file_modified"
#define OCT_TIME_UNKNOWN "unknown"

/* ---- writing ---- */

/* What a volume file says about itself beside its arrays. Strings are borrowed for the call. */
struct oct_volume_about {
    const char *config_text;       /* the whole effective configuration */
    const char *start_time;        /* UTC, ISO 8601; "": unknown; NULL: now */
    const char *start_time_source; /* OCT_TIME_...; NULL: recorded */
    const char *eye;               /* "", "OD" or "OS" */
    const char *pseudonym;
    const char *engine;         /* describe() of the engine, "" for none */
    double width_um, height_um; /* scanned field, 0: unknown */
    uint32_t field_bscans;      /* B-scans that height_um holds; 0: as many as the file has rows */
    struct oct_scan_protocol scan;
    uint16_t spectra_format; /* enum oct_lines_format: u8 or 12 bits packed: /spectra_packed; else
                                /spectra, u16 */
    bool has_complex;       /* beside /bscans the complex values that they were made of, /complex */
    bool is_log;            /* pictures are of dB; else of counts^2 */
    bool limits_are_common; /* those of u8 are lo and hi in all B-scans, in dB or counts^2 */
    double lo, hi;
    double refractive_index;
    bool gap_map;         /* the file has one; the owner calls oct_volume_write_gap for each gap */
    bool counted;         /* row r is B-scan first_bscan + r of its acquisition, or a gap */
    uint64_t first_bscan; /* then: of row 0 */
    /* Results of analyses that the file has room for, /analysis/NAME each; their labels and axes
     * outlive the writer. */
    const struct oct_image_form *const *forms; /* [n_forms] */
    unsigned n_forms;
};

struct oct_volume_writer;

/* OCT_E_ARG: more than OCT_VOLUME_MAX_FORMS, a form that cannot be (image.h), or names of which the
 * datasets would collide. */
enum oct_err oct_volume_forms_check(const struct oct_image_form *const *forms, unsigned n_forms,
                                    struct oct_error *err);

/* Bytes of the images of this form in the file of a volume, with their columns. */
uint64_t oct_volume_form_bytes(const struct oct_image_form *form, uint32_t n_bscans);

/* Whether a frame is an image of this form: the same name, type and extents, the first of which may
 * be smaller. */
bool oct_volume_result_fits(const struct oct_image_form *form, const struct oct_image_frame *frame);

/* Creates path (as path.part until closed). Space for all V B-scans is reserved, so a full disk
 * shows here (OCT_E_NO_SPACE: nothing is left behind). OCT_E_IO: path or path.part exists already
 * (neither is ever overwritten), or the folder cannot be written. OCT_E_ARG: neither spectra nor
 * B-scans are to be written, or the forms cannot be (oct_volume_forms_check). `plan` gives geometry
 * and calibration and is not kept. *writer is NULL on error. */
enum oct_err oct_volume_create(struct oct_volume_writer **writer, const char *path,
                               const struct oct_plan *plan, const struct oct_volume_about *about,
                               bool with_spectra, bool with_bscans, struct oct_error *err);

/* Writes the spectra of B-scan info.bscan and the mask of its lines. Those of another format than
 * the file's are unpacked, where it is u16, or else OCT_E_ARG and change nothing. Rows must rise
 * from call to call: a row out of range or not greater than the one before is OCT_E_ARG and changes
 * nothing. Skipped rows stay zero with valid = 0. The data is copied before the call returns. */
enum oct_err oct_volume_write_spectra(struct oct_volume_writer *writer,
                                      const struct oct_raw_frame *frame, struct oct_error *err);

/* Writes the picture, with its complex values where the file has them (else OCT_E_ARG, as of the
 * rest), and its row of /frames. Rows must rise among the pictures as among the
 * spectra (else OCT_E_ARG, nothing changed), but spectra may run ahead of pictures by any number;
 * in a file with spectra those of the same B-scan must have come (else OCT_E_ARG). A picture whose
 * status is not OCT_OK is not written and its row keeps valid = 0; its spectra stay. */
enum oct_err oct_volume_write_image(struct oct_volume_writer *writer,
                                    const struct oct_image_frame *frame, struct oct_error *err);

/* For files without pictures: the row of /frames alone, after the spectra of the same B-scan, in
 * rising order (else OCT_E_ARG). */
enum oct_err oct_volume_write_row(struct oct_volume_writer *writer,
                                  const struct oct_bscan_info *info, struct oct_error *err);

/* Writes a result of about->forms[i_form]; copied before the call returns.
 *
 * One image a B-scan: goes to row info.bscan. Rows of one form must rise, and may come before or
 * after the picture of their B-scan. /frames/NAME_valid of the row becomes 1 as /frames/valid does:
 * only when the result is synced. Of a table with fewer rows than the form has, the rest is NaN
 * (f32) or 0 (u8); so are, in a file that was closed, images that never came, but for pictures of
 * B-scans, and their columns but for _rows and _valid.
 *
 * One image a volume: each replaces the one before. The writer keeps the newest and writes it at
 * the next sync. /analysis/NAME_valid is 0 in the file while the image is being replaced there.
 *
 * OCT_E_ARG: no such form, a frame of another form, a status that is not OCT_OK, or a row out of
 * range or out of order; nothing is changed and the writer goes on. */
enum oct_err oct_volume_write_result(struct oct_volume_writer *writer, unsigned i_form,
                                     const struct oct_image_frame *frame, struct oct_error *err);

/* Notes lines that the file lacks, and why, in its gap map, if it has one. Goes to the file with
 * the next sync. */
enum oct_err oct_volume_write_gap(struct oct_volume_writer *writer, const struct oct_gap *gap,
                                  struct oct_error *err);

/* Pushes everything accepted so far to the file and syncs it (fdatasync): only then are its rows
 * valid and counted by oct_volume_written. The writer also does so by itself when many rows wait.
 * After a failure to write or sync every later call fails with the same code. Rows that were
 * counted before stay valid; what else the file holds is unknown. */
enum oct_err oct_volume_sync(struct oct_volume_writer *writer, struct oct_error *err);

/* B-scans that are in the file with valid = 1, and bytes written so far (metadata too). */
uint64_t oct_volume_written(const struct oct_volume_writer *writer);
uint64_t oct_volume_bytes(const struct oct_volume_writer *writer);

/* Syncs, gives the disk back the space of rows that never came (as far as the file system punches
 * holes; the layout stays), closes, renames to the final name, syncs the folder; frees the writer
 * in any case. On error the .part file stays and holds what was written; OCT_E_IO also when a file
 * of the final name has appeared meanwhile. NULL is fine. */
enum oct_err oct_volume_close(struct oct_volume_writer *writer, struct oct_error *err);

/* Makes an HDF5 file that holds nothing yet, or empties one. OCT_E_IO: it cannot be written. */
enum oct_err oct_volume_create_empty(const char *path, struct oct_error *err);

/* Writes further datasets and groups into a closed file (the synthetic retina's /truth). Rank <= 3.
 * Intermediate groups are made. `attribute_units` becomes the attribute "units"; it may be NULL.
 * OCT_E_IO: no such file, it has such a dataset already, or the disk failed. After a disk failure
 * the contents of the file are unknown, so add datasets before the file gets its final name.
 * OCT_E_NO_MEMORY: nothing was changed. */
enum oct_err oct_volume_add_f64(const char *path, const char *dataset, const double *values,
                                unsigned rank, const size_t *dims, const char *attribute_units,
                                struct oct_error *err);

/* A fact about a file, as an attribute of its root: text, or a whole number. */
struct oct_volume_note {
    const char *name;
    const char *text; /* UTF-8; NULL: the number */
    uint64_t number;
};

/* Adds attributes to a closed file, unsynced. OCT_E_IO: no such file, it has one of that name
 * already, or the disk failed: then the contents of the file are unknown. */
enum oct_err oct_volume_add_notes(const char *path, const struct oct_volume_note *notes, unsigned n,
                                  struct oct_error *err);

/* ---- reading ---- */

struct oct_volume_facts {
    uint32_t n_bscans, n_lines, n_samples; /* V, M, N; n_samples 0: no spectra */
    uint16_t spectra_format;               /* enum oct_lines_format, as they lie in the file */
    uint32_t depth;                        /* D; 0: no pictures */
    enum oct_sample_type sample_type;
    uint64_t n_valid;       /* rows with valid = 1 (all rows where there is no /frames) */
    uint64_t missing_lines; /* sum */
    bool whole;             /* n_valid == n_bscans */
    bool has_spectra_crc, has_bscans_crc; /* of each array that is there */
    bool has_number, has_gaps;
    bool counted; /* row r is B-scan first_bscan + r */
    uint64_t first_bscan;
    char software[64], start_time[40], eye[8], pseudonym[128];
    char start_time_source[16]; /* OCT_TIME_...; "": the file does not say */
    char mark[8];               /* "", "keep" or "repeat" (label.h) */
    char engine[160];           /* what computed the pictures; "": unknown */
    double spacing_um[3]; /* from B-scan to B-scan, line to line, pixel to pixel of a picture; NaN:
                             the file does not say */
};

struct oct_volume_reader;

/* Opens any file with the contract's layout, ours or another program's (chunked, compressed and
 * big-endian datasets too, as far as libhdf5 can read them; spectra of 8 or 16 unsigned bits;
 * pictures of 8 bits are read as u8, of 16 bits or floats as f32). Everything but one of /spectra,
 * /spectra_packed and /bscans is optional. OCT_E_IO: cannot be opened; OCT_E_FORMAT: no plain file,
 * not HDF5, truncated, without /spectra and /bscans, in other files in part, packed with a filter
 * that is not libhdf5's own, or of a shape or type beyond geometry.h's limits: says which. */
enum oct_err oct_volume_open(struct oct_volume_reader **reader, const char *path,
                             struct oct_error *err);

const struct oct_volume_facts *oct_volume_facts(const struct oct_volume_reader *reader);

/* The embedded configuration text, or NULL. Owned by the reader. */
const char *oct_volume_config_text(const struct oct_volume_reader *reader);

/* Fills cal from /calibration (empty where absent; coefficients are zero: the file holds the phase
 * they gave). The caller finishes it; on error it is empty. */
enum oct_err oct_volume_calibration(struct oct_volume_reader *reader, struct oct_calibration *cal,
                                    struct oct_error *err);

/* A row of /frames as it stands in the file; 0 where the file has no such column. */
struct oct_volume_row {
    bool valid;
    uint32_t missing_lines, acquisition, spectra_crc32c, bscans_crc32c;
    uint64_t sequence, time_ns, number;
    double lo, hi; /* what 0 and 255 of a u8 picture stand for; both 0: unknown */
};
struct oct_volume_row oct_volume_row(const struct oct_volume_reader *reader, uint32_t v);

/* The number of row 0 within its acquisition, by the first row that is there; 0 where the file does
 * not say. */
uint64_t oct_volume_first_bscan(const struct oct_volume_reader *reader);

/* The gap map; *n is 0 where there is none. Owned by the reader. Values are not checked. */
const struct oct_gap *oct_volume_gaps(const struct oct_volume_reader *reader, size_t *n);

/* A dataset of results, /analysis/NAME: [V][...], of blocks of B-scans [blocks][...], or of the
 * whole volume [...]. */
struct oct_volume_dataset {
    char name[OCT_IMAGE_NAME_BYTES];
    char unit[32], quantity[32]; /* "" where the file does not say */
    enum oct_sample_type type;
    unsigned rank; /* 1..4 */
    uint64_t dims[OCT_IMAGE_MAX_RANK + 1];
    bool of_volume;
    uint32_t bscans_an_image; /* 1; more: of blocks of so many B-scans */
    uint32_t n_valid;         /* rows with valid = 1; of the volume: 0 or 1 */
};

/* Lists those that the file has, by name, OCT_VOLUME_MAX_FORMS at most. A dataset counts as one
 * when /frames/NAME_valid or /analysis/NAME_valid is there. OCT_E_FORMAT: one of them is not as
 * this writer makes them: its shape, its type, a flag that is neither 0 nor 1, or more rows in use
 * than there are; says which. */
enum oct_err oct_volume_datasets(struct oct_volume_reader *reader,
                                 struct oct_volume_dataset datasets[OCT_VOLUME_MAX_FORMS],
                                 unsigned *n, struct oct_error *err);

/* Reads B-scan v: samples into frame->spectra, the mask into frame->line_valid, and sequence,
 * time_ns, missing_lines of frame->info (zero in files that have none). *valid tells whether the
 * row was written whole; without /frames/valid every row is. The mask wins where it disagrees with
 * missing_lines; in a file without a mask that misses lines, lines of nothing but zeros are the
 * missing ones. OCT_E_ARG: v out of range or no spectra in the file. */
enum oct_err oct_volume_read_spectra(struct oct_volume_reader *reader, uint32_t v,
                                     struct oct_raw_frame *frame, bool *valid,
                                     struct oct_error *err);

/* CRC-32C of the spectra read last, into this frame, as spectra_crc32c of their row has it. */
uint32_t oct_volume_spectra_crc32c(const struct oct_volume_reader *reader,
                                   const struct oct_raw_frame *frame);

/* Reads picture v into pixels ([M][D] of sample_type). Errors as for spectra. */
enum oct_err oct_volume_read_image(struct oct_volume_reader *reader, uint32_t v, void *pixels,
                                   bool *valid, struct oct_error *err);

/* Reads A-lines first .. first + n - 1 of picture v into pixels ([n][D]), n > 0. OCT_E_ARG: there
 * are no such, or no pictures. */
enum oct_err oct_volume_read_image_lines(struct oct_volume_reader *reader, uint32_t v,
                                         uint32_t first, uint32_t n, void *pixels,
                                         struct oct_error *err);

/* Reads which A-lines of B-scan v came: valid: [M], 1 or 0. *known is false where the file has no
 * mask; then all are 1. OCT_E_ARG: v out of range. */
enum oct_err oct_volume_read_line_valid(struct oct_volume_reader *reader, uint32_t v,
                                        uint8_t *valid, bool *known, struct oct_error *err);

/* NULL is fine. */
void oct_volume_reader_destroy(struct oct_volume_reader *reader);

#endif
