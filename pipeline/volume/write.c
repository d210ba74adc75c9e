#include "pipeline/volume/volume.h"

#include "pipeline/base/crc32c.h"
#include "pipeline/volume/file.h"
#include "pipeline/volume/gaps.h"
#include "pipeline/volume/hdf5_image.h"
#include "pipeline/volume/layout.h"
#include "pipeline/volume/results.h"
#include "pipeline/volume/stream.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Arrays are declared little-endian and written as they lie in memory. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values would need swapping");

#define N_STREAMS 4u
#define MAX_ROWS 1024u /* rows of /frames that wait for a sync */

/* Blocks that are being written or wait for the disk. There are so many that the disk is never
 * idle, neither between two blocks nor while one file is closed and the next is made. Making a file
 * takes two syncs, which wait behind blocks themselves: 4.3 and 2.8 ms where a block takes 1.1.
 * With three blocks the disk was idle for 2.8 ms a file, with six for 2.1, with ten for 0.3. A
 * block's memory is touched only when the disk lags by that much. */
#define N_UNDER_WAY 10u

/* A row of /frames that waits until its samples and pixels are safe. */
struct row {
    uint32_t bscan;
    struct oct_volume_row values;
};

struct oct_volume_writer {
    struct oct_geometry geometry;
    struct oct_volume_file file;
    struct oct_volume_layout layout;
    struct oct_volume_queue *queue;
    struct oct_volume_stream spectra, bscans, line_valid, complex_values;
    struct oct_volume_gaps gaps;
    struct oct_volume_results results;
    uint8_t *has_spectra;    /* [V] 1: accepted; NULL in files without spectra */
    uint8_t *has_image;      /* [V] likewise of pictures */
    uint32_t *spectra_crc;   /* [V] of those accepted; NULL likewise */
    uint16_t spectra_format; /* of the file */
    uint16_t *unpacked;      /* [M][N] a B-scan that came in another; NULL: none did */
    int64_t last_spectra;    /* the newest row accepted, -1: none */
    int64_t last_row;
    struct row *rows; /* [MAX_ROWS], rising */
    unsigned n_rows;
    bool dirty;           /* something went to the file that is not synced */
    uint64_t n_written;   /* rows with valid = 1, synced */
    uint64_t other_bytes; /* metadata and rows */
    enum oct_err broken;  /* the failure that every later call returns; OCT_OK: none */
};

/* ---- creating ---- */

static enum oct_err make_file(struct oct_volume_writer *w, const char *path,
                              const struct oct_plan *plan, const struct oct_volume_about *about,
                              bool with_spectra, bool with_bscans, struct oct_error *err)
{
    struct oct_hdf5_image image;
    oct_hdf5_image_init(&image, -1, 0);
    enum oct_err e = oct_volume_file_draft(&w->file, path, err);
    /* Reserve the space first: on a full disk nothing else need be done. */
    e = e ? e
          : oct_volume_file_reserve(
                &w->file, oct_volume_layout_estimate(plan, about, with_spectra, with_bscans), err);
    e = e ? e
          : oct_volume_layout_build(&image, &w->layout, path, plan, about, with_spectra,
                                    with_bscans, err);
    e = e ? e : oct_volume_file_reserve(&w->file, w->layout.file_bytes, err);
    e = e ? e : oct_hdf5_image_store(&image, w->file.fd, path, &w->other_bytes, err);
    e = e ? e : oct_volume_file_publish(&w->file, err);
    oct_hdf5_image_finish(&image);
    return e;
}

static enum oct_err make_streams(struct oct_volume_writer *w, const struct oct_volume_about *about,
                                 bool with_spectra, bool with_bscans, struct oct_error *err)
{
    const struct oct_geometry *g = &w->geometry;
    unsigned n_results = oct_volume_results_n_streams(about->forms, about->n_forms);
    enum oct_err e =
        oct_volume_queue_create(&w->queue, &w->file, N_STREAMS + n_results + N_UNDER_WAY, err);
    if (e == OCT_OK && with_spectra)
        e = oct_volume_stream_init(&w->spectra, &w->file, w->queue, w->layout.spectra,
                                   oct_volume_spectra_bytes(g, about), err);
    if (e == OCT_OK && with_spectra)
        e = oct_volume_stream_init(&w->line_valid, &w->file, w->queue, w->layout.line_valid,
                                   g->n_lines, err);
    if (e == OCT_OK && with_bscans)
        e = oct_volume_stream_init(&w->bscans, &w->file, w->queue, w->layout.bscans,
                                   oct_geometry_image_bytes(g), err);
    if (e == OCT_OK && w->layout.complex_values != 0)
        e = oct_volume_stream_init(&w->complex_values, &w->file, w->queue, w->layout.complex_values,
                                   oct_geometry_complex_bytes(g), err);
    if (e == OCT_OK && w->layout.gap_column[0] != 0)
        e = oct_volume_gaps_init(&w->gaps, &w->file, w->layout.gap_column, oct_gap_capacity(g),
                                 err);
    e = e ? e
          : oct_volume_results_init(&w->results, &w->file, w->queue, &w->layout, about, g->n_bscans,
                                    err);
    return e;
}

static void writer_free(struct oct_volume_writer *w)
{
    oct_volume_queue_destroy(w->queue);
    oct_volume_gaps_finish(&w->gaps);
    oct_volume_results_finish(&w->results);
    oct_volume_file_close(&w->file);
    free(w->has_spectra);
    free(w->has_image);
    free(w->spectra_crc);
    free(w->unpacked);
    free(w->rows);
    free(w);
}

enum oct_err oct_volume_create(struct oct_volume_writer **writer, const char *path,
                               const struct oct_plan *plan, const struct oct_volume_about *about,
                               bool with_spectra, bool with_bscans, struct oct_error *err)
{
    *writer = NULL;
    if (!with_spectra && !with_bscans)
        return oct_fail(err, OCT_E_ARG, "%s: neither spectra nor B-scans are to be recorded", path);
    enum oct_err e = oct_volume_forms_check(about->forms, about->n_forms, err);
    if (e != OCT_OK)
        return e;
    struct oct_volume_writer *w = calloc(1, sizeof(*w));
    if (!w)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    w->geometry = plan->geometry;
    w->spectra_format = about->spectra_format;
    w->last_spectra = w->last_row = -1;
    w->rows = calloc(MAX_ROWS, sizeof(*w->rows));
    w->has_spectra = with_spectra ? calloc(w->geometry.n_bscans, 1) : NULL;
    w->has_image = with_bscans ? calloc(w->geometry.n_bscans, 1) : NULL;
    w->spectra_crc = with_spectra ? calloc(w->geometry.n_bscans, sizeof(*w->spectra_crc)) : NULL;
    w->file.fd = w->file.direct_fd = -1;

    bool published = false;
    if (!w->rows || (with_spectra && (!w->has_spectra || !w->spectra_crc)) ||
        (with_bscans && !w->has_image))
        e = oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    e = e ? e : make_file(w, path, plan, about, with_spectra, with_bscans, err);
    published = e == OCT_OK;
    e = e ? e : make_streams(w, about, with_spectra, with_bscans, err);
    if (e != OCT_OK) {
        if (published)
            unlink(w->file.part);
        writer_free(w);
        return e;
    }
    *writer = w;
    return OCT_OK;
}

/* ---- rows of /frames ---- */

/* Writes one column of the waiting rows, a run of neighbours at a time. */
static enum oct_err put_column(struct oct_volume_writer *w, int column, struct oct_error *err)
{
    const struct oct_volume_column_form *form = &oct_volume_columns[column];
    enum oct_err e = OCT_OK;
    if (w->layout.column[column] == 0)
        return OCT_OK;
    for (unsigned first = 0, end; first < w->n_rows && !e; first = end) {
        for (end = first + 1; end < w->n_rows; end++)
            if (w->rows[end].bscan - w->rows[first].bscan != end - first)
                break;
        e = oct_volume_file_write_column(
            &w->file, form, &w->rows[first].values, sizeof(w->rows[0]), end - first,
            w->layout.column[column] + w->rows[first].bscan * form->bytes, err);
        w->other_bytes += e ? 0 : (end - first) * form->bytes;
    }
    return e;
}

/* Writes the data and everything that describes it, syncs, writes `valid`, and syncs again. In this
 * order no crash, not even of the machine, leaves a valid row whose data is not in the file. Rows
 * count as written when the second sync has ended: if it fails they may be valid in the file. */
static enum oct_err sync_all(struct oct_volume_writer *w, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    struct oct_volume_stream *streams[N_STREAMS] = {&w->spectra, &w->line_valid, &w->bscans,
                                                    &w->complex_values};
    for (unsigned i = 0; i < N_STREAMS && e == OCT_OK; i++)
        if (streams[i]->file)
            e = oct_volume_stream_push(streams[i], err);
    e = e ? e : oct_volume_gaps_push(&w->gaps, &w->other_bytes, err);
    for (int c = 0; c < OCT_COLUMN_VALID && e == OCT_OK; c++)
        e = put_column(w, c, err);
    e = e ? e : oct_volume_results_push(&w->results, &w->other_bytes, err);
    e = e ? e : oct_volume_file_sync(&w->file, err);
    if (e != OCT_OK || (w->n_rows == 0 && !oct_volume_results_are_new(&w->results)))
        return e;

    e = put_column(w, OCT_COLUMN_VALID, err);
    e = e ? e : oct_volume_results_push_valid(&w->results, &w->other_bytes, err);
    e = e ? e : oct_volume_file_sync(&w->file, err);
    if (e != OCT_OK)
        return e;
    for (unsigned i = 0; i < w->n_rows; i++)
        w->n_written += w->rows[i].values.valid;
    w->n_rows = 0;
    return OCT_OK;
}

static enum oct_err refuse_broken(const struct oct_volume_writer *w, struct oct_error *err)
{
    return oct_fail(err, w->broken, "%s: writing failed before; the recording is cut off there",
                    w->file.part);
}

enum oct_err oct_volume_sync(struct oct_volume_writer *writer, struct oct_error *err)
{
    if (writer->broken != OCT_OK)
        return refuse_broken(writer, err);
    if (!writer->dirty)
        return OCT_OK;
    writer->broken = sync_all(writer, err);
    writer->dirty = false;
    return writer->broken;
}

static enum oct_err add_row(struct oct_volume_writer *w, const struct row *row,
                            struct oct_error *err)
{
    w->rows[w->n_rows++] = *row;
    w->last_row = row->bscan;
    w->dirty = true;
    return w->n_rows == MAX_ROWS ? oct_volume_sync(w, err) : OCT_OK;
}

/* ---- accepting ---- */

/* Rows must be within the volume and rise. */
static enum oct_err check_row(const struct oct_volume_writer *w, const char *what, uint32_t bscan,
                              int64_t last, struct oct_error *err)
{
    if (bscan >= w->geometry.n_bscans)
        return oct_fail(err, OCT_E_ARG, "%s: %s of B-scan %u: the volume has %u", w->file.part,
                        what, bscan, w->geometry.n_bscans);
    if ((int64_t)bscan <= last)
        return oct_fail(err, OCT_E_ARG, "%s: %s of B-scan %u after those of %lld: rows must rise",
                        w->file.part, what, bscan, (long long)last);
    return OCT_OK;
}

/* The B-scan's bytes in the file's format. */
static enum oct_err spectra_of(struct oct_volume_writer *w, const struct oct_raw_frame *frame,
                               const void **bytes, struct oct_error *err)
{
    const size_t n = (size_t)w->geometry.n_lines * w->geometry.n_samples;
    *bytes = frame->spectra;
    if (oct_samples_bits(frame->format) == oct_samples_bits(w->spectra_format))
        return OCT_OK;
    if (oct_samples_bits(w->spectra_format) != 16)
        return oct_fail(err, OCT_E_ARG, "%s: its spectra are %s, B-scan %u is %s", w->file.part,
                        oct_samples_name(w->spectra_format), frame->info.bscan,
                        oct_samples_name(frame->format));
    if (!w->unpacked && !(w->unpacked = malloc(n * sizeof(*w->unpacked))))
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", w->file.part);
    oct_samples_unpack(w->unpacked, frame->spectra, n, frame->format);
    *bytes = w->unpacked;
    return OCT_OK;
}

enum oct_err oct_volume_write_spectra(struct oct_volume_writer *writer,
                                      const struct oct_raw_frame *frame, struct oct_error *err)
{
    struct oct_volume_writer *w = writer;
    uint32_t bscan = frame->info.bscan;
    if (w->broken != OCT_OK)
        return refuse_broken(w, err);
    if (!w->has_spectra)
        return oct_fail(err, OCT_E_ARG, "%s: this file holds no spectra", w->file.part);
    const void *bytes;
    enum oct_err e = check_row(w, "spectra", bscan, w->last_spectra, err);
    e = e ? e : spectra_of(w, frame, &bytes, err);
    if (e != OCT_OK)
        return e;
    w->dirty = true;
    e = oct_volume_stream_append(&w->spectra, bscan, bytes, err);
    e = e ? e : oct_volume_stream_append(&w->line_valid, bscan, frame->line_valid, err);
    if (e != OCT_OK)
        return w->broken = e;
    w->last_spectra = bscan;
    w->has_spectra[bscan] = 1;
    w->spectra_crc[bscan] = oct_crc32c(bytes, w->spectra.row_bytes);
    return OCT_OK;
}

static struct row row_of(const struct oct_volume_writer *w, const struct oct_bscan_info *info)
{
    return (struct row){.bscan = info->bscan,
                        .values = {
                            .valid = true,
                            .missing_lines = info->missing_lines,
                            .acquisition = info->acquisition,
                            .number = info->number,
                            .spectra_crc32c = w->spectra_crc ? w->spectra_crc[info->bscan] : 0,
                            .sequence = info->sequence,
                            .time_ns = info->time_ns,
                        }};
}

static enum oct_err check_spectra_came(const struct oct_volume_writer *w, uint32_t bscan,
                                       struct oct_error *err)
{
    if (w->has_spectra && !w->has_spectra[bscan])
        return oct_fail(err, OCT_E_ARG, "%s: B-scan %u: its spectra must come first", w->file.part,
                        bscan);
    return OCT_OK;
}

enum oct_err oct_volume_write_image(struct oct_volume_writer *writer,
                                    const struct oct_image_frame *frame, struct oct_error *err)
{
    struct oct_volume_writer *w = writer;
    uint32_t bscan = frame->info.bscan;
    if (w->broken != OCT_OK)
        return refuse_broken(w, err);
    if (w->layout.bscans == 0)
        return oct_fail(err, OCT_E_ARG, "%s: this file holds no B-scans", w->file.part);
    enum oct_err e = check_row(w, "picture", bscan, w->last_row, err);
    e = e ? e : check_spectra_came(w, bscan, err);
    if (!e && w->complex_values.file && frame->status == OCT_OK && !frame->complex_values)
        e = oct_fail(err, OCT_E_ARG, "%s: picture of B-scan %u without its complex values",
                     w->file.part, bscan);
    if (e != OCT_OK)
        return e;
    struct row row = row_of(w, &frame->info);
    row.values.valid = frame->status == OCT_OK;
    if (row.values.valid) {
        row.values.lo = frame->lo;
        row.values.hi = frame->hi;
        row.values.bscans_crc32c =
            oct_crc32c(frame->pixels, oct_geometry_image_bytes(&w->geometry));
        w->dirty = true;
        e = oct_volume_stream_append(&w->bscans, bscan, frame->pixels, err);
        if (e == OCT_OK && w->complex_values.file)
            e = oct_volume_stream_append(&w->complex_values, bscan, frame->complex_values, err);
        if (e != OCT_OK)
            return w->broken = e;
        w->has_image[bscan] = 1;
    }
    return add_row(w, &row, err);
}

enum oct_err oct_volume_write_row(struct oct_volume_writer *writer,
                                  const struct oct_bscan_info *info, struct oct_error *err)
{
    struct oct_volume_writer *w = writer;
    if (w->broken != OCT_OK)
        return refuse_broken(w, err);
    if (w->layout.bscans != 0)
        return oct_fail(err, OCT_E_ARG, "%s: rows of this file come with their pictures",
                        w->file.part);
    enum oct_err e = check_row(w, "row", info->bscan, w->last_row, err);
    e = e ? e : check_spectra_came(w, info->bscan, err);
    if (e != OCT_OK)
        return e;
    struct row row = row_of(w, info);
    return add_row(w, &row, err);
}

enum oct_err oct_volume_write_gap(struct oct_volume_writer *writer, const struct oct_gap *gap,
                                  struct oct_error *err)
{
    if (writer->broken != OCT_OK)
        return refuse_broken(writer, err);
    if (writer->layout.gap_column[0] == 0)
        return OCT_OK;
    oct_volume_gaps_add(&writer->gaps, gap);
    writer->dirty = true;
    return OCT_OK;
}

enum oct_err oct_volume_write_result(struct oct_volume_writer *writer, unsigned i_form,
                                     const struct oct_image_frame *frame, struct oct_error *err)
{
    if (writer->broken != OCT_OK)
        return refuse_broken(writer, err);
    enum oct_err e = oct_volume_results_accept(&writer->results, i_form, frame, err);
    if (e == OCT_E_ARG)
        return e;
    writer->dirty = true;
    return writer->broken = e;
}

/* ---- counting and closing ---- */

uint64_t oct_volume_written(const struct oct_volume_writer *writer)
{
    return writer->n_written;
}

uint64_t oct_volume_bytes(const struct oct_volume_writer *writer)
{
    return writer->other_bytes + oct_volume_queue_bytes(writer->queue) + writer->spectra.n_bytes +
           writer->line_valid.n_bytes + writer->bscans.n_bytes + writer->complex_values.n_bytes +
           oct_volume_results_bytes(&writer->results);
}

/* The space was reserved for all rows. Only what no row was written to is given back, so whoever
 * kills the program meanwhile leaves the same bytes. */
static void give_back(struct oct_volume_writer *w)
{
    const struct oct_geometry *g = &w->geometry;
    if (w->has_spectra) {
        oct_volume_file_give_back_rows(&w->file, w->layout.spectra, w->spectra.row_bytes,
                                       w->has_spectra, g->n_bscans);
        oct_volume_file_give_back_rows(&w->file, w->layout.line_valid, g->n_lines, w->has_spectra,
                                       g->n_bscans);
    }
    if (w->has_image)
        oct_volume_file_give_back_rows(&w->file, w->layout.bscans, oct_geometry_image_bytes(g),
                                       w->has_image, g->n_bscans);
    if (w->complex_values.file)
        oct_volume_file_give_back_rows(&w->file, w->layout.complex_values,
                                       oct_geometry_complex_bytes(g), w->has_image, g->n_bscans);
    oct_volume_results_give_back(&w->results);
}

enum oct_err oct_volume_close(struct oct_volume_writer *writer, struct oct_error *err)
{
    if (!writer)
        return OCT_OK;
    enum oct_err e = oct_volume_sync(writer, err);
    if (e == OCT_OK && writer->results.n > 0)
        e = oct_volume_results_end(&writer->results, &writer->other_bytes, err);
    if (e == OCT_OK) {
        give_back(writer);
        e = oct_volume_file_rename(&writer->file, err);
    }
    writer_free(writer);
    return e;
}
