#include "pipeline/base/crc32c.h"
#include "pipeline/base/file_at.h"
#include "pipeline/plan/calibration.h"
#include "pipeline/plan/geometry.h"
#include "pipeline/volume/datasets.h"
#include "pipeline/volume/hdf5_lock.h"
#include "pipeline/volume/hdf5_read.h"
#include "pipeline/volume/rows.h"
#include "pipeline/volume/volume.h"

#include <errno.h>
#include <hdf5.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* /calibration of a recording. Called under the lock of hdf5_lock.h. Included by the volume files
 * of this room only. */

#define MAX_P2 (2u * OCT_MAX_SAMPLES) /* P1 is at most the largest N, a power of two */

#define MAX_ROWS                                                                                   \
    ((uint64_t)OCT_MAX_BSCAN_SAMPLES) /* of a table that is no spectrum: A-lines of a volume */

/* A list (columns 1) or a table of pairs (columns 2); stays NULL where the file has none. */
static enum oct_err read_table(hid_t file, const char *path, const char *name, unsigned columns,
                               uint64_t most, double **values, size_t *n_rows,
                               struct oct_error *err)
{
    struct oct_hdf5_array a;
    enum oct_err e = oct_hdf5_array_open(&a, file, path, name, columns, err);
    if (e == OCT_OK && a.dataset >= 0) {
        if (a.dims[0] < 1 || a.dims[0] > most || (columns == 2 && a.dims[1] != 2))
            e = oct_fail(err, OCT_E_FORMAT, "%s: %s must be [n]%s with 1 to %llu rows", path, name,
                         columns == 2 ? "[2]" : "", (unsigned long long)most);
        else if (!(*values = calloc((size_t)(a.dims[0] * columns), sizeof(double))))
            e = oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
        else
            e = oct_hdf5_array_read(&a, H5T_NATIVE_DOUBLE, *values, err);
        if (e == OCT_OK)
            *n_rows = (size_t)a.dims[0];
    }
    oct_hdf5_array_close(&a);
    return e;
}

/* Fills cal with what the file has; empty on error. `path` names the file in errors. */
static enum oct_err read_calibration(hid_t file, const char *path, struct oct_calibration *cal,
                                     struct oct_error *err)
{
    *cal = (struct oct_calibration){0};
    enum oct_err e = read_table(file, path, "/calibration/wavelengths_nm", 1, MAX_P2,
                                &cal->wavelengths_nm, &cal->n_wavelengths, err);
    e = e ? e
          : read_table(file, path, "/calibration/kmap_px", 1, MAX_P2, &cal->kmap_px, &cal->n_kmap,
                       err);
    e = e ? e
          : read_table(file, path, "/calibration/dispersion", 2, MAX_P2, &cal->dispersion,
                       &cal->n_dispersion, err);
    e = e ? e
          : read_table(file, path, "/calibration/background", 1, MAX_P2, &cal->background,
                       &cal->n_background, err);
    e = e ? e
          : read_table(file, path, "/calibration/positions_um", 2, MAX_ROWS, &cal->positions_um,
                       &cal->n_positions, err);
    if (e != OCT_OK)
        oct_calibration_finish(cal);
    return e;
}

#define MAX_CONFIG_BYTES ((size_t)16 << 20)

/* An array that is read a B-scan at a time. */
struct series {
    struct oct_hdf5_array array;
    hid_t memory_type;
    size_t row_bytes; /* in memory */
    uint64_t place;   /* offset in the file of values that are as in memory, 0: ask libhdf5 */
};

struct oct_volume_reader {
    char *path;
    struct oct_hdf5_source source;
    struct series spectra, bscans, line_valid;
    uint8_t *packed; /* the row of /spectra_packed read last; NULL: none was */
    struct oct_volume_rows rows;
    char *config_text;
    struct oct_volume_facts facts;
};

/* ---- opening ---- */

static void look(const char *path);

static enum oct_err refuse_extents(const struct oct_hdf5_array *a, struct oct_error *err)
{
    return oct_fail(err, OCT_E_FORMAT,
                    "%s: %s is [%" PRIu64 "][%" PRIu64 "][%" PRIu64
                    "]: beyond what can be processed, or empty",
                    a->path, a->name, a->dims[0], a->dims[1], a->dims[2]);
}

static enum oct_err check_extents(const struct oct_hdf5_array *a, uint64_t min_last,
                                  uint64_t max_last, struct oct_error *err)
{
    if (a->dims[0] < 1 || a->dims[0] > OCT_MAX_BSCANS || a->dims[1] < 1 ||
        a->dims[1] > OCT_MAX_LINES || a->dims[2] < min_last || a->dims[2] > max_last ||
        a->dims[1] * a->dims[2] * OCT_MAX_SAMPLES > OCT_MAX_BSCAN_SAMPLES * max_last)
        return refuse_extents(a, err);
    return OCT_OK;
}

/* memory_type and place, once array is open and checked. */
static void settle(struct oct_volume_reader *r, struct series *s, hid_t memory_type)
{
    s->memory_type = memory_type;
    s->row_bytes = H5Tget_size(memory_type);
    for (unsigned i = 1; i < s->array.rank; i++)
        s->row_bytes *= (size_t)s->array.dims[i];
    s->place = oct_hdf5_array_place(&s->array, memory_type, r->source.file_bytes);
}

/* Spectra as they were sent: a line is as many bytes as its attributes say. */
static enum oct_err open_packed(struct oct_volume_reader *r, struct oct_error *err)
{
    struct oct_hdf5_array *a = &r->spectra.array;
    enum oct_err e = oct_hdf5_array_open(a, r->source.file, r->path, OCT_PACKED_SPECTRA, 3, err);
    if (e != OCT_OK || a->dataset < 0)
        return e;
    uint64_t n_samples = 0;
    char *name = oct_hdf5_text(a->dataset, OCT_PACKED_FORMAT, 64);
    const uint16_t format = name ? oct_samples_named(name) : 0;
    free(name);
    if (!oct_hdf5_count(a->dataset, OCT_PACKED_SAMPLES, &n_samples) || !format ||
        oct_samples_bits(format) == 16 || a->is_signed || a->is_float || a->value_bytes != 1 ||
        n_samples < OCT_MIN_SAMPLES || n_samples > OCT_MAX_SAMPLES ||
        !oct_samples_fit(format, n_samples) || a->dims[2] != oct_samples_bytes(format, n_samples))
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: " OCT_PACKED_SPECTRA " must be u8 [V][M][bytes of a line], with the "
                        "attributes " OCT_PACKED_FORMAT " (u8 or mono12p) and " OCT_PACKED_SAMPLES,
                        r->path);
    r->facts.n_samples = (uint32_t)n_samples;
    r->facts.spectra_format = format;
    return OCT_OK;
}

static enum oct_err open_spectra(struct oct_volume_reader *r, struct oct_error *err)
{
    struct oct_hdf5_array *a = &r->spectra.array;
    enum oct_err e = oct_hdf5_array_open(a, r->source.file, r->path, "/spectra", 3, err);
    if (e != OCT_OK)
        return e;
    if (a->dataset < 0 && ((e = open_packed(r, err)) || a->dataset < 0))
        return e;
    if (a->is_signed || a->value_bytes > 2)
        return oct_fail(err, OCT_E_FORMAT, "%s: /spectra must be unsigned integers of 8 or 16 bits",
                        r->path);
    const bool is_packed = r->facts.spectra_format != 0;
    e = check_extents(a, OCT_MIN_SAMPLES, is_packed ? 3 * OCT_MAX_SAMPLES / 2 : OCT_MAX_SAMPLES,
                      err);
    if (e != OCT_OK)
        return e;
    settle(r, &r->spectra, is_packed ? H5T_NATIVE_UINT8 : H5T_NATIVE_UINT16);
    r->facts.n_bscans = (uint32_t)a->dims[0];
    r->facts.n_lines = (uint32_t)a->dims[1];
    if (!is_packed) {
        r->facts.spectra_format = OCT_LINES_U16;
        r->facts.n_samples = (uint32_t)a->dims[2];
    }
    return OCT_OK;
}

static enum oct_err open_bscans(struct oct_volume_reader *r, struct oct_error *err)
{
    struct oct_hdf5_array *a = &r->bscans.array;
    enum oct_err e = oct_hdf5_array_open(a, r->source.file, r->path, "/bscans", 3, err);
    if (e != OCT_OK || a->dataset < 0)
        return e;
    bool is_u8 = !a->is_signed && a->value_bytes == 1;
    if (!a->is_float && (a->is_signed || a->value_bytes > 2))
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: /bscans must be floats or unsigned integers of 8 or 16 bits", r->path);
    e = check_extents(a, 1, OCT_MAX_SAMPLES, err);
    if (e != OCT_OK)
        return e;
    if (r->facts.n_samples > 0 &&
        (a->dims[0] != r->facts.n_bscans || a->dims[1] != r->facts.n_lines))
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: /bscans has %" PRIu64 " B-scans of %" PRIu64
                        " lines, /spectra %u of %u",
                        r->path, a->dims[0], a->dims[1], r->facts.n_bscans, r->facts.n_lines);
    settle(r, &r->bscans, is_u8 ? H5T_NATIVE_UINT8 : H5T_NATIVE_FLOAT);
    r->facts.n_bscans = (uint32_t)a->dims[0];
    r->facts.n_lines = (uint32_t)a->dims[1];
    r->facts.depth = (uint32_t)a->dims[2];
    r->facts.sample_type = is_u8 ? OCT_SAMPLE_U8 : OCT_SAMPLE_F32;
    return OCT_OK;
}

static enum oct_err open_mask(struct oct_volume_reader *r, struct oct_error *err)
{
    struct oct_hdf5_array *a = &r->line_valid.array;
    enum oct_err e = oct_hdf5_array_open(a, r->source.file, r->path, "/frames/line_valid", 2, err);
    if (e != OCT_OK || a->dataset < 0)
        return e;
    if (a->is_float || a->dims[0] != r->facts.n_bscans || a->dims[1] != r->facts.n_lines)
        return oct_fail(err, OCT_E_FORMAT, "%s: /frames/line_valid must be integers [%u][%u]",
                        r->path, r->facts.n_bscans, r->facts.n_lines);
    settle(r, &r->line_valid, H5T_NATIVE_UINT8);
    return OCT_OK;
}

static enum oct_err open_frames(struct oct_volume_reader *r, struct oct_error *err)
{
    struct oct_volume_facts *f = &r->facts;
    enum oct_err e = oct_volume_rows_read(&r->rows, r->source.file, r->path, f->n_bscans, err);
    f->has_spectra_crc = r->rows.column[OCT_COLUMN_SPECTRA_CRC] != NULL;
    f->has_bscans_crc = r->rows.column[OCT_COLUMN_BSCANS_CRC] != NULL;
    f->has_number = r->rows.column[OCT_COLUMN_NUMBER] != NULL;
    f->has_gaps = r->rows.has_gaps;
    f->counted = r->rows.counted;
    f->first_bscan = r->rows.first_bscan;
    return e == OCT_OK ? open_mask(r, err) : e;
}

static void copy_text(struct oct_volume_reader *r, const char *name, char *text, size_t text_bytes)
{
    char *value = oct_hdf5_text(r->source.file, name, 4096);
    snprintf(text, text_bytes, "%s", value ? value : "");
    oct_hdf5_printable(text); /* it is shown on terminals */
    free(value);
}

static void count_rows(struct oct_volume_reader *r)
{
    struct oct_volume_facts *f = &r->facts;
    for (uint32_t v = 0; v < f->n_bscans; v++) {
        const struct oct_volume_row row = oct_volume_row(r, v);
        f->n_valid += row.valid;
        f->missing_lines += row.valid ? row.missing_lines : 0;
    }
    f->whole = f->n_valid == f->n_bscans;
}

static enum oct_err open_all(struct oct_volume_reader *r, bool probed, struct oct_error *err)
{
    struct oct_volume_facts *f = &r->facts;
    /* Not probed: a child process reads the file first. */
    enum oct_err e = oct_hdf5_source_open(&r->source, r->path, probed ? NULL : look, r->path, err);
    e = e ? e : open_spectra(r, err);
    e = e ? e : open_bscans(r, err);
    if (e == OCT_OK && f->n_bscans == 0)
        e = oct_fail(err, OCT_E_FORMAT, "%s: holds neither /spectra nor /bscans: no recording",
                     r->path);
    e = e ? e : open_frames(r, err);
    if (e != OCT_OK)
        return e;
    copy_text(r, "software", f->software, sizeof(f->software));
    copy_text(r, "start_time", f->start_time, sizeof(f->start_time));
    copy_text(r, "start_time_source", f->start_time_source, sizeof(f->start_time_source));
    copy_text(r, "eye", f->eye, sizeof(f->eye));
    copy_text(r, "pseudonym", f->pseudonym, sizeof(f->pseudonym));
    copy_text(r, "mark", f->mark, sizeof(f->mark));
    copy_text(r, "engine", f->engine, sizeof(f->engine));
    r->config_text = oct_hdf5_text(r->source.file, "config", MAX_CONFIG_BYTES);
    hid_t pictures = r->bscans.array.dataset >= 0 ? r->bscans.array.dataset : r->source.file;
    oct_hdf5_spacing(pictures, f->spacing_um, 3);
    count_rows(r);
    return OCT_OK;
}

static struct oct_volume_reader *reader_new(const char *path)
{
    struct oct_volume_reader *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    struct series *all[] = {&r->spectra, &r->bscans, &r->line_valid};
    for (int i = 0; i < 3; i++)
        all[i]->array = (struct oct_hdf5_array){.dataset = -1, .type = -1};
    r->path = strdup(path);
    if (r->path)
        return r;
    free(r);
    return NULL;
}

/* Under the lock. */
static void reader_free(struct oct_volume_reader *r)
{
    oct_hdf5_array_close(&r->spectra.array);
    oct_hdf5_array_close(&r->bscans.array);
    oct_hdf5_array_close(&r->line_valid.array);
    oct_hdf5_source_close(&r->source);
    free(r->path);
    oct_volume_rows_finish(&r->rows);
    free(r->packed);
    free(r->config_text);
    free(r);
}

/* Walks the index of a chunked array and unpacks its first and last B-scan. */
static void look_at_series(const struct oct_volume_reader *r, const struct series *s)
{
    if (s->array.dataset < 0 || s->place != 0)
        return;
    H5Dget_storage_size(s->array.dataset);
    void *row = malloc(s->row_bytes);
    if (row) {
        oct_hdf5_array_read_row(&s->array, 0, s->memory_type, row, NULL);
        oct_hdf5_array_read_row(&s->array, r->facts.n_bscans - 1, s->memory_type, row, NULL);
    }
    free(row);
}

/* In the child of the probe (hdf5_probe.h): makes every libhdf5 call that the parent may make
 * later. */
static void look(const char *path)
{
    struct oct_calibration cal;
    struct oct_volume_reader *r = reader_new(path);
    if (!r)
        return;
    if (open_all(r, true, NULL) == OCT_OK) {
        look_at_series(r, &r->spectra);
        look_at_series(r, &r->bscans);
        look_at_series(r, &r->line_valid);
        if (read_calibration(r->source.file, r->path, &cal, NULL) == OCT_OK)
            oct_calibration_finish(&cal);
        struct oct_volume_dataset datasets[OCT_VOLUME_MAX_FORMS];
        unsigned n;
        oct_volume_datasets_read(r->source.file, r->path, r->facts.n_bscans, datasets, &n, NULL);
    }
    reader_free(r);
}

enum oct_err oct_volume_open(struct oct_volume_reader **reader, const char *path,
                             struct oct_error *err)
{
    *reader = NULL;
    struct oct_volume_reader *r = reader_new(path);
    if (!r)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    oct_hdf5_lock();
    enum oct_err e = open_all(r, false, err);
    if (e != OCT_OK)
        reader_free(r);
    oct_hdf5_unlock();
    if (e == OCT_OK)
        *reader = r;
    return e;
}

void oct_volume_reader_destroy(struct oct_volume_reader *reader)
{
    if (!reader)
        return;
    oct_hdf5_lock();
    reader_free(reader);
    oct_hdf5_unlock();
}

const struct oct_volume_facts *oct_volume_facts(const struct oct_volume_reader *reader)
{
    return &reader->facts;
}

const char *oct_volume_config_text(const struct oct_volume_reader *reader)
{
    return reader->config_text;
}

/* ---- rows ---- */

/* Of B-scan v the n items (A-lines) from `first` on. */
struct part {
    uint32_t v, first, n;
};

static enum oct_err read_plain(struct oct_volume_reader *r, const struct series *s,
                               struct part part, void *values, struct oct_error *err)
{
    const size_t item_bytes = s->row_bytes / (size_t)s->array.dims[1], n = part.n * item_bytes;
    const uint32_t v = part.v;
    const ssize_t got =
        oct_file_read_at(r->source.fd, values, n,
                         s->place + (uint64_t)v * s->row_bytes + (uint64_t)part.first * item_bytes);
    if (got < 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: %s: cannot read B-scan %u", r->path,
                              s->array.name, v);
    if ((size_t)got < n)
        return oct_fail(err, OCT_E_FORMAT, "%s: %s: the file ends within B-scan %u", r->path,
                        s->array.name, v);
    return OCT_OK;
}

static enum oct_err read_part(struct oct_volume_reader *r, const struct series *s, struct part part,
                              void *values, struct oct_error *err)
{
    if (s->place != 0)
        return read_plain(r, s, part, values, err);
    oct_hdf5_lock();
    enum oct_err e = oct_hdf5_array_read_part(&s->array, part.v, part.first, part.n, s->memory_type,
                                              values, err);
    oct_hdf5_unlock();
    return e;
}

static enum oct_err read_series(struct oct_volume_reader *r, const struct series *s, uint32_t v,
                                void *values, struct oct_error *err)
{
    return read_part(r, s, (struct part){v, 0, (uint32_t)s->array.dims[1]}, values, err);
}

static enum oct_err check_row(const struct oct_volume_reader *r, const struct series *s,
                              const char *what, uint32_t v, struct oct_error *err)
{
    if (s->array.dataset < 0)
        return oct_fail(err, OCT_E_ARG, "%s: holds no %s", r->path, what);
    if (v >= r->facts.n_bscans)
        return oct_fail(err, OCT_E_ARG, "%s: no B-scan %u: it has %u", r->path, v,
                        r->facts.n_bscans);
    return OCT_OK;
}

struct oct_volume_row oct_volume_row(const struct oct_volume_reader *reader, uint32_t v)
{
    void *const *column = reader->rows.column;
    const uint8_t *valid = column[OCT_COLUMN_VALID];
    struct oct_volume_row row = {.valid = false};
    if (v >= reader->facts.n_bscans)
        return row;
    for (int c = 0; c < OCT_COLUMN_VALID; c++) {
        const struct oct_volume_column_form *form = &oct_volume_columns[c];
        if (column[c] && (!form->is_float || (column[OCT_COLUMN_LO] && column[OCT_COLUMN_HI])))
            memcpy((char *)&row + form->at, (const char *)column[c] + v * form->bytes, form->bytes);
    }
    row.valid = !valid || valid[v];
    return row;
}

uint64_t oct_volume_first_bscan(const struct oct_volume_reader *reader)
{
    for (uint32_t v = 0; v < reader->facts.n_bscans; v++) {
        const struct oct_volume_row row = oct_volume_row(reader, v);
        if (row.valid)
            return row.number < v ? 0 : row.number - v;
    }
    return 0;
}

const struct oct_gap *oct_volume_gaps(const struct oct_volume_reader *reader, size_t *n)
{
    *n = reader->rows.n_gaps;
    return reader->rows.gaps;
}

static bool all_zero(const uint16_t *line, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (line[i] != 0)
            return false;
    return true;
}

/* Reads the mask and counts missing_lines from it, so that the two agree: later steps divide by the
 * number of lines that came. */
static enum oct_err read_mask(struct oct_volume_reader *r, uint32_t v, struct oct_raw_frame *frame,
                              struct oct_error *err)
{
    const struct oct_volume_facts *f = &r->facts;
    uint8_t *mask = frame->line_valid;
    bool has_mask = r->line_valid.array.dataset >= 0;
    bool guess = !has_mask && oct_volume_row(r, v).missing_lines > 0;
    memset(mask, 1, f->n_lines);
    if (has_mask) {
        enum oct_err e = read_series(r, &r->line_valid, v, mask, err);
        if (e != OCT_OK)
            return e;
    }
    uint32_t n_missing = 0;
    for (uint32_t j = 0; j < f->n_lines; j++) {
        if (guess)
            mask[j] = !all_zero(frame->spectra + (size_t)j * f->n_samples, f->n_samples);
        mask[j] = mask[j] != 0;
        n_missing += !mask[j];
    }
    frame->info.missing_lines = n_missing;
    return OCT_OK;
}

/* The one place where stored samples become u16. */
static enum oct_err read_samples(struct oct_volume_reader *r, uint32_t v, uint16_t *samples,
                                 struct oct_error *err)
{
    if (r->facts.spectra_format == OCT_LINES_U16)
        return read_series(r, &r->spectra, v, samples, err);
    if (!r->packed && !(r->packed = malloc(r->spectra.row_bytes)))
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", r->path);
    enum oct_err e = read_series(r, &r->spectra, v, r->packed, err);
    if (e == OCT_OK)
        oct_samples_unpack(samples, r->packed, (size_t)r->facts.n_lines * r->facts.n_samples,
                           r->facts.spectra_format);
    return e;
}

enum oct_err oct_volume_read_spectra(struct oct_volume_reader *reader, uint32_t v,
                                     struct oct_raw_frame *frame, bool *valid,
                                     struct oct_error *err)
{
    struct oct_volume_reader *r = reader;
    enum oct_err e = check_row(r, &r->spectra, "spectra", v, err);
    e = e ? e : read_samples(r, v, frame->spectra, err);
    e = e ? e : read_mask(r, v, frame, err);
    if (e != OCT_OK)
        return e;
    frame->format = OCT_LINES_U16;
    const struct oct_volume_row row = oct_volume_row(r, v);
    frame->info.sequence = row.sequence;
    frame->info.time_ns = row.time_ns;
    *valid = row.valid;
    return OCT_OK;
}

uint32_t oct_volume_spectra_crc32c(const struct oct_volume_reader *r,
                                   const struct oct_raw_frame *frame)
{
    return oct_crc32c(r->packed ? r->packed : (const void *)frame->spectra, r->spectra.row_bytes);
}

enum oct_err oct_volume_read_image(struct oct_volume_reader *reader, uint32_t v, void *pixels,
                                   bool *valid, struct oct_error *err)
{
    struct oct_volume_reader *r = reader;
    enum oct_err e = check_row(r, &r->bscans, "B-scans", v, err);
    e = e ? e : read_series(r, &r->bscans, v, pixels, err);
    if (e == OCT_OK)
        *valid = oct_volume_row(r, v).valid;
    return e;
}

enum oct_err oct_volume_read_image_lines(struct oct_volume_reader *reader, uint32_t v,
                                         uint32_t first, uint32_t n, void *pixels,
                                         struct oct_error *err)
{
    struct oct_volume_reader *r = reader;
    enum oct_err e = check_row(r, &r->bscans, "B-scans", v, err);
    if (e == OCT_OK && (n == 0 || first >= r->facts.n_lines || n > r->facts.n_lines - first))
        e = oct_fail(err, OCT_E_ARG, "%s: no %u A-lines from %u on: a B-scan has %u", r->path, n,
                     first, r->facts.n_lines);
    if (e == OCT_OK)
        e = read_part(r, &r->bscans, (struct part){v, first, n}, pixels, err);
    return e;
}

enum oct_err oct_volume_read_line_valid(struct oct_volume_reader *reader, uint32_t v,
                                        uint8_t *valid, bool *known, struct oct_error *err)
{
    const uint32_t n = reader->facts.n_lines;
    *known = reader->line_valid.array.dataset >= 0;
    memset(valid, 1, n);
    if (!*known)
        return OCT_OK;
    enum oct_err e = check_row(reader, &reader->line_valid, "mask of lines", v, err);
    e = e ? e : read_series(reader, &reader->line_valid, v, valid, err);
    for (uint32_t j = 0; j < n; j++)
        valid[j] = valid[j] != 0;
    return e;
}

enum oct_err oct_volume_calibration(struct oct_volume_reader *reader, struct oct_calibration *cal,
                                    struct oct_error *err)
{
    oct_hdf5_lock();
    enum oct_err e = read_calibration(reader->source.file, reader->path, cal, err);
    oct_hdf5_unlock();
    return e;
}

enum oct_err oct_volume_datasets(struct oct_volume_reader *reader,
                                 struct oct_volume_dataset datasets[OCT_VOLUME_MAX_FORMS],
                                 unsigned *n, struct oct_error *err)
{
    oct_hdf5_lock();
    enum oct_err e = oct_volume_datasets_read(reader->source.file, reader->path,
                                              reader->facts.n_bscans, datasets, n, err);
    oct_hdf5_unlock();
    return e;
}
