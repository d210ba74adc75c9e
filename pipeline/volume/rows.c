#include "pipeline/volume/rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MOST_GAPS (1u << 16) /* more than octd ever writes */
#define ANY_LENGTH UINT64_MAX

struct source {
    hid_t file;
    const char *path;
};

/* Reads an array of integers, or of any numbers as f64, into malloc'd memory; stays NULL where the
 * file has none. *n is its length: wanted, unless it comes in as ANY_LENGTH. */
static enum oct_err read_column(const struct source *from,
                                const struct oct_volume_column_form *column, uint64_t *n,
                                void **values, struct oct_error *err)
{
    const char *name = column->name;
    const hid_t type = column->is_float     ? H5T_NATIVE_DOUBLE
                       : column->bytes == 8 ? H5T_NATIVE_UINT64
                       : column->bytes == 4 ? H5T_NATIVE_UINT32
                                            : H5T_NATIVE_UINT8;
    struct oct_hdf5_array a;
    enum oct_err e = oct_hdf5_array_open(&a, from->file, from->path, name, 1, err);
    if (e == OCT_OK && a.dataset >= 0) {
        if (a.is_float && !column->is_float)
            e = oct_fail(err, OCT_E_FORMAT, "%s: %s must be integers", from->path, name);
        else if (*n == ANY_LENGTH ? a.dims[0] > MOST_GAPS : a.dims[0] != *n)
            e = oct_fail(err, OCT_E_FORMAT, "%s: %s has %" PRIu64 " rows, %" PRIu64 " expected",
                         from->path, name, a.dims[0], *n == ANY_LENGTH ? MOST_GAPS : *n);
        else if (!(*values = calloc((size_t)a.dims[0] + 1, column->bytes)))
            e = oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", from->path);
        else
            e = oct_hdf5_array_read(&a, type, *values, err);
        *n = a.dims[0];
    }
    oct_hdf5_array_close(&a);
    return e;
}

/* Takes the table up to its first unused row. */
static enum oct_err keep_gaps(struct oct_volume_rows *rows, const struct source *from, uint64_t n,
                              void *const columns[OCT_N_GAP_COLUMNS], struct oct_error *err)
{
    const uint64_t *n_lines = columns[OCT_GAP_N_LINES];
    rows->gaps = calloc((size_t)n + 1, sizeof(*rows->gaps));
    if (!rows->gaps)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", from->path);
    for (; rows->n_gaps < n && n_lines[rows->n_gaps] > 0; rows->n_gaps++) {
        struct oct_gap *gap = &rows->gaps[rows->n_gaps];
        for (int c = 0; c < OCT_N_GAP_COLUMNS; c++)
            memcpy((char *)gap + oct_gap_columns[c].at,
                   (const char *)columns[c] + rows->n_gaps * oct_gap_columns[c].bytes,
                   oct_gap_columns[c].bytes);
        if ((unsigned)gap->reason >= OCT_N_LOSSES)
            gap->reason = OCT_LOSS_NONE;
    }
    rows->has_gaps = true;
    return OCT_OK;
}

static enum oct_err read_gaps(struct oct_volume_rows *rows, const struct source *from,
                              struct oct_error *err)
{
    void *columns[OCT_N_GAP_COLUMNS] = {NULL};
    uint64_t n = ANY_LENGTH;
    bool is_whole = true;
    enum oct_err e = OCT_OK;
    if (H5Lexists(from->file, "/gaps", H5P_DEFAULT) <= 0)
        return OCT_OK;
    for (int c = 0; c < OCT_N_GAP_COLUMNS && !e; c++) {
        e = read_column(from, &oct_gap_columns[c], &n, &columns[c], err);
        is_whole = is_whole && columns[c];
    }
    if (!e && is_whole)
        e = keep_gaps(rows, from, n, columns, err);
    for (int c = 0; c < OCT_N_GAP_COLUMNS; c++)
        free(columns[c]);
    return e;
}

enum oct_err oct_volume_rows_read(struct oct_volume_rows *rows, hid_t file, const char *path,
                                  uint32_t n_bscans, struct oct_error *err)
{
    const struct source from = {file, path};
    uint64_t n = n_bscans;
    enum oct_err e = OCT_OK;
    for (int c = 0; c < OCT_N_COLUMNS && !e; c++)
        e = read_column(&from, &oct_volume_columns[c], &n, &rows->column[c], err);
    e = e ? e : read_gaps(rows, &from, err);
    rows->counted = !e && oct_hdf5_count(file, "first_bscan", &rows->first_bscan);
    return e;
}

void oct_volume_rows_finish(struct oct_volume_rows *rows)
{
    for (int c = 0; c < OCT_N_COLUMNS; c++)
        free(rows->column[c]);
    free(rows->gaps);
    *rows = (struct oct_volume_rows){0};
}
