#include "pipeline/volume/rows.h"

#include <inttypes.h>
#include <stdlib.h>

#define MOST_GAPS (1u << 16) /* more than octd ever writes */
#define ANY_LENGTH UINT64_MAX

struct source {
    hid_t file;
    const char *path;
};

/* Reads an array of integers, or of any numbers as f64, into malloc'd memory; stays NULL where the
 * file has none. *n is its length: wanted, unless it comes in as ANY_LENGTH. */
static enum oct_err read_column(const struct source *from, const char *name, hid_t type,
                                uint64_t *n, void **values, struct oct_error *err)
{
    struct oct_hdf5_array a;
    enum oct_err e = oct_hdf5_array_open(&a, from->file, from->path, name, 1, err);
    if (e == OCT_OK && a.dataset >= 0) {
        if (a.is_float && type != H5T_NATIVE_DOUBLE)
            e = oct_fail(err, OCT_E_FORMAT, "%s: %s must be integers", from->path, name);
        else if (*n == ANY_LENGTH ? a.dims[0] > MOST_GAPS : a.dims[0] != *n)
            e = oct_fail(err, OCT_E_FORMAT, "%s: %s has %" PRIu64 " rows, %" PRIu64 " expected",
                         from->path, name, a.dims[0], *n == ANY_LENGTH ? MOST_GAPS : *n);
        else if (!(*values = calloc((size_t)a.dims[0] + 1, H5Tget_size(type))))
            e = oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", from->path);
        else
            e = oct_hdf5_array_read(&a, type, *values, err);
        *n = a.dims[0];
    }
    oct_hdf5_array_close(&a);
    return e;
}

static enum oct_err read_u64(const struct source *from, const char *name, uint64_t *n,
                             uint64_t **values, struct oct_error *err)
{
    void *read = NULL;
    enum oct_err e = read_column(from, name, H5T_NATIVE_UINT64, n, &read, err);
    *values = read;
    return e;
}

static enum oct_err read_u32(const struct source *from, const char *name, uint64_t *n,
                             uint32_t **values, struct oct_error *err)
{
    void *read = NULL;
    enum oct_err e = read_column(from, name, H5T_NATIVE_UINT32, n, &read, err);
    *values = read;
    return e;
}

static enum oct_err read_u8(const struct source *from, const char *name, uint64_t *n,
                            uint8_t **values, struct oct_error *err)
{
    void *read = NULL;
    enum oct_err e = read_column(from, name, H5T_NATIVE_UINT8, n, &read, err);
    *values = read;
    return e;
}

static enum oct_err read_f64(const struct source *from, const char *name, uint64_t *n,
                             double **values, struct oct_error *err)
{
    void *read = NULL;
    enum oct_err e = read_column(from, name, H5T_NATIVE_DOUBLE, n, &read, err);
    *values = read;
    return e;
}

/* Takes the table up to its first unused row. */
static enum oct_err keep_gaps(struct oct_volume_rows *rows, const struct source *from, uint64_t n,
                              const uint32_t *acquisition, const uint64_t *first_line,
                              const uint64_t *n_lines, const uint8_t *reason, struct oct_error *err)
{
    rows->gaps = calloc((size_t)n + 1, sizeof(*rows->gaps));
    if (!rows->gaps)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", from->path);
    for (; rows->n_gaps < n && n_lines[rows->n_gaps] > 0; rows->n_gaps++)
        rows->gaps[rows->n_gaps] = (struct oct_gap){
            .acquisition = acquisition[rows->n_gaps],
            .first_line = first_line[rows->n_gaps],
            .n_lines = n_lines[rows->n_gaps],
            .reason = reason[rows->n_gaps] < OCT_N_LOSSES ? (enum oct_loss)reason[rows->n_gaps]
                                                          : OCT_LOSS_NONE,
        };
    rows->has_gaps = true;
    return OCT_OK;
}

static enum oct_err read_gaps(struct oct_volume_rows *rows, const struct source *from,
                              struct oct_error *err)
{
    uint64_t n = ANY_LENGTH, *first_line = NULL, *n_lines = NULL;
    uint32_t *acquisition = NULL;
    uint8_t *reason = NULL;
    if (H5Lexists(from->file, "/gaps", H5P_DEFAULT) <= 0)
        return OCT_OK;
    enum oct_err e = read_u32(from, "/gaps/acquisition", &n, &acquisition, err);
    e = e ? e : read_u64(from, "/gaps/first_line", &n, &first_line, err);
    e = e ? e : read_u64(from, "/gaps/n_lines", &n, &n_lines, err);
    e = e ? e : read_u8(from, "/gaps/reason", &n, &reason, err);
    if (e == OCT_OK && acquisition && first_line && n_lines && reason)
        e = keep_gaps(rows, from, n, acquisition, first_line, n_lines, reason, err);
    free(acquisition);
    free(first_line);
    free(n_lines);
    free(reason);
    return e;
}

static void read_first_bscan(struct oct_volume_rows *rows, hid_t file)
{
    if (H5Aexists(file, "first_bscan") <= 0)
        return;
    hid_t attribute = H5Aopen(file, "first_bscan", H5P_DEFAULT);
    hid_t type = attribute < 0 ? H5I_INVALID_HID : H5Aget_type(attribute);
    hid_t space = attribute < 0 ? H5I_INVALID_HID : H5Aget_space(attribute);
    if (type >= 0 && space >= 0 && H5Tget_class(type) == H5T_INTEGER &&
        H5Sget_simple_extent_npoints(space) == 1)
        rows->counted = H5Aread(attribute, H5T_NATIVE_UINT64, &rows->first_bscan) >= 0;
    OCT_HDF5_CLOSE(space, type, attribute);
}

enum oct_err oct_volume_rows_read(struct oct_volume_rows *rows, hid_t file, const char *path,
                                  uint32_t n_bscans, struct oct_error *err)
{
    const struct source from = {file, path};
    uint64_t n = n_bscans;
    enum oct_err e = read_u64(&from, "/frames/sequence", &n, &rows->sequence, err);
    e = e ? e : read_u64(&from, "/frames/time_ns", &n, &rows->time_ns, err);
    e = e ? e : read_u64(&from, "/frames/number", &n, &rows->number, err);
    e = e ? e : read_u32(&from, "/frames/missing_lines", &n, &rows->missing_lines, err);
    e = e ? e : read_u32(&from, "/frames/acquisition", &n, &rows->acquisition, err);
    e = e ? e : read_u32(&from, "/frames/spectra_crc32c", &n, &rows->spectra_crc32c, err);
    e = e ? e : read_u32(&from, "/frames/bscans_crc32c", &n, &rows->bscans_crc32c, err);
    e = e ? e : read_u8(&from, "/frames/valid", &n, &rows->valid, err);
    e = e ? e : read_f64(&from, "/frames/lo", &n, &rows->lo, err);
    e = e ? e : read_f64(&from, "/frames/hi", &n, &rows->hi, err);
    e = e ? e : read_gaps(rows, &from, err);
    if (e == OCT_OK)
        read_first_bscan(rows, file);
    return e;
}

void oct_volume_rows_finish(struct oct_volume_rows *rows)
{
    free(rows->sequence);
    free(rows->time_ns);
    free(rows->number);
    free(rows->missing_lines);
    free(rows->acquisition);
    free(rows->spectra_crc32c);
    free(rows->bscans_crc32c);
    free(rows->valid);
    free(rows->lo);
    free(rows->hi);
    free(rows->gaps);
    *rows = (struct oct_volume_rows){0};
}
