#include "pipeline/volume/datasets.h"

#include "pipeline/volume/layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names in /analysis that are looked at: a dataset and its columns for each form. */
#define MOST_NAMES (OCT_VOLUME_MAX_FORMS * (1 + OCT_N_RESULT_COLUMNS + OCT_IMAGE_MAX_NUMBERS))
#define NAME_BYTES (3 * OCT_IMAGE_NAME_BYTES) /* "/analysis/", a form's name, a suffix */

struct names {
    char name[MOST_NAMES][OCT_IMAGE_NAME_BYTES];
    unsigned n;
};

/* One dataset being read. */
struct source {
    hid_t file;
    const char *path;
    uint32_t n_bscans;
    struct oct_volume_dataset *dataset;
};

/* For H5Literate. Whatever has another name than a form can have is not ours. */
static herr_t note_name(hid_t group, const char *name, const H5L_info_t *info, void *argument)
{
    struct names *names = argument;
    size_t n = strlen(name);
    (void)group;
    (void)info;
    if (n > 0 && n < OCT_IMAGE_NAME_BYTES &&
        strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == n)
        memcpy(names->name[names->n++], name, n + 1);
    return names->n == MOST_NAMES;
}

/* Whether there is such a link, to something in this file. */
static bool is_here(hid_t file, const char *name)
{
    H5L_info_t link;
    return H5Lexists(file, name, H5P_DEFAULT) > 0 &&
           H5Lget_info(file, name, &link, H5P_DEFAULT) >= 0 && link.type == H5L_TYPE_HARD;
}

static void list_names(hid_t file, struct names *names)
{
    names->n = 0;
    hid_t group = is_here(file, "/analysis") ? H5Gopen2(file, "/analysis", H5P_DEFAULT) : -1;
    if (group < 0)
        return;
    H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, note_name, names);
    H5Gclose(group);
}

static void column_name(const struct source *from, int column, char name[NAME_BYTES])
{
    const struct oct_volume_dataset *d = from->dataset;
    bool is_of_frames = !d->of_volume && d->bscans_an_image == 1;
    snprintf(name, NAME_BYTES, "%s/%s%s", is_of_frames ? "/frames" : "/analysis", d->name,
             oct_volume_result_columns[column].name);
}

/* Whether it is a dataset of results; sets of_volume. */
static bool is_result(const struct source *from)
{
    char name[NAME_BYTES];
    for (int of_volume = 0; of_volume < 2; of_volume++) {
        from->dataset->of_volume = of_volume;
        column_name(from, OCT_RESULT_VALID, name);
        if (is_here(from->file, of_volume ? "/analysis" : "/frames") && is_here(from->file, name))
            return true;
    }
    return false;
}

static void copy_text(hid_t object, const char *name, char *text, size_t text_bytes)
{
    char *value = oct_hdf5_text(object, name, 256);
    snprintf(text, text_bytes, "%s", value ? value : "");
    oct_hdf5_printable(text);
    free(value);
}

static uint32_t n_rows_of(const struct source *from)
{
    const struct oct_volume_dataset *d = from->dataset;
    uint32_t n = d->bscans_an_image;
    return d->of_volume ? 1 : from->n_bscans / n + (from->n_bscans % n > 0);
}

/* The attribute of a dataset whose images are of blocks of B-scans each; 1: it has none. */
static uint32_t read_block(hid_t dataset)
{
    uint64_t n;
    return oct_hdf5_count(dataset, "bscans_an_image", &n) && n > 1 && n <= UINT32_MAX ? (uint32_t)n
                                                                                      : 1;
}

static enum oct_err check_shape(const struct source *from, const struct oct_hdf5_array *a,
                                struct oct_error *err)
{
    const struct oct_volume_dataset *d = from->dataset;
    bool is_u8 = !a->is_float && !a->is_signed && a->value_bytes == 1;
    uint64_t n = 1;
    if (!is_u8 && !(a->is_float && a->value_bytes == sizeof(float)))
        return oct_fail(err, OCT_E_FORMAT, "%s: %s: its values are neither u8 nor f32", a->path,
                        a->name);
    if (d->of_volume ? a->rank > OCT_IMAGE_MAX_RANK : a->rank < 2)
        return oct_fail(err, OCT_E_FORMAT, "%s: %s: %u axes cannot be", a->path, a->name, a->rank);
    if (!d->of_volume && a->dims[0] != n_rows_of(from))
        return oct_fail(err, OCT_E_FORMAT, "%s: %s has %" PRIu64 " rows, %" PRIu32 " expected",
                        a->path, a->name, a->dims[0], n_rows_of(from));
    for (unsigned i = d->of_volume ? 0 : 1; i < a->rank; i++) {
        if (a->dims[i] == 0 || a->dims[i] > OCT_MAX_BSCAN_SAMPLES / n)
            return oct_fail(err, OCT_E_FORMAT, "%s: %s: its extents cannot be", a->path, a->name);
        n *= a->dims[i];
    }
    return OCT_OK;
}

static enum oct_err read_shape(const struct source *from, struct oct_error *err)
{
    struct oct_volume_dataset *d = from->dataset;
    struct oct_hdf5_array a;
    char name[NAME_BYTES];
    snprintf(name, sizeof(name), "/analysis/%s", d->name);
    enum oct_err e = oct_hdf5_array_open(&a, from->file, from->path, name, 0, err);
    if (e == OCT_OK && a.dataset < 0)
        e = oct_fail(err, OCT_E_FORMAT, "%s: %s cannot be found", from->path, name);
    if (e == OCT_OK && d->of_volume) {
        d->bscans_an_image = read_block(a.dataset);
        d->of_volume = d->bscans_an_image == 1;
    }
    e = e ? e : check_shape(from, &a, err);
    if (e == OCT_OK) {
        d->type = a.is_float ? OCT_SAMPLE_F32 : OCT_SAMPLE_U8;
        d->rank = a.rank;
        memcpy(d->dims, a.dims, sizeof(d->dims));
        copy_text(a.dataset, "units", d->unit, sizeof(d->unit));
        copy_text(a.dataset, "quantity", d->quantity, sizeof(d->quantity));
    }
    oct_hdf5_array_close(&a);
    return e;
}

/* Of values that are `most` at most; *sum adds them up. */
static enum oct_err read_column(const struct source *from, int column, uint64_t most, uint64_t *sum,
                                struct oct_error *err)
{
    uint32_t n = n_rows_of(from);
    struct oct_hdf5_array a;
    char name[NAME_BYTES];
    uint64_t *values = NULL;
    column_name(from, column, name);
    enum oct_err e = oct_hdf5_array_open(&a, from->file, from->path, name, 1, err);
    if (e == OCT_OK && a.dataset < 0)
        e = oct_fail(err, OCT_E_FORMAT, "%s: %s cannot be found", from->path, name);
    if (e == OCT_OK && (a.is_signed || a.dims[0] != n))
        e = oct_fail(err, OCT_E_FORMAT, "%s: %s must be %" PRIu32 " unsigned integers", from->path,
                     name, n);
    if (e == OCT_OK && !(values = calloc(n, sizeof(*values))))
        e = oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", from->path);
    e = e ? e : oct_hdf5_array_read(&a, H5T_NATIVE_UINT64, values, err);
    for (uint32_t i = 0; values && e == OCT_OK && i < n; i++) {
        *sum += values[i];
        if (values[i] > most)
            e = oct_fail(err, OCT_E_FORMAT,
                         "%s: %s: row %" PRIu32 " is %" PRIu64 ": at most %" PRIu64 " can be",
                         from->path, name, i, values[i], most);
    }
    free(values);
    oct_hdf5_array_close(&a);
    return e;
}

static enum oct_err read_one(const struct source *from, struct oct_error *err)
{
    struct oct_volume_dataset *d = from->dataset;
    uint64_t n_valid = 0, n_rows = 0;
    enum oct_err e = read_shape(from, err);
    e = e ? e : read_column(from, OCT_RESULT_VALID, 1, &n_valid, err);
    if (e == OCT_OK)
        e = read_column(from, OCT_RESULT_ROWS, d->dims[d->of_volume ? 0 : 1], &n_rows, err);
    d->n_valid = (uint32_t)n_valid;
    return e;
}

enum oct_err oct_volume_datasets_read(hid_t file, const char *path, uint32_t n_bscans,
                                      struct oct_volume_dataset datasets[OCT_VOLUME_MAX_FORMS],
                                      unsigned *n, struct oct_error *err)
{
    struct names names;
    enum oct_err e = OCT_OK;
    *n = 0;
    list_names(file, &names);
    for (unsigned i = 0; i < names.n && *n < OCT_VOLUME_MAX_FORMS && e == OCT_OK; i++) {
        struct oct_volume_dataset *d = &datasets[*n];
        const struct source from = {file, path, n_bscans, d};
        *d = (struct oct_volume_dataset){.bscans_an_image = 1};
        memcpy(d->name, names.name[i], sizeof(d->name));
        if (!is_result(&from))
            continue;
        e = read_one(&from, err);
        (*n)++;
    }
    return e;
}
