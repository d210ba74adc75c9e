#include "pipeline/volume/array.h"

#include "pipeline/volume/hdf5_read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SOURCE_BYTES (16u << 20)          /* names of very many files */
#define MOST_PROBED_BYTES ((uint64_t)64 << 20) /* rows that the child process unpacks */

struct oct_volume_array {
    char *path, *dataset;
    struct oct_hdf5_source source;
    struct oct_hdf5_array array;
    struct oct_volume_array_facts facts;
};

static void look(const char *name);
static void look_at_names(const char *path);

/* probed: a child process has read the dataset, or all of them, without crashing, or this is that
 * child, which is given one name for both: FILE:/DATASET. */
static enum oct_err open_file(struct oct_volume_array *a, bool probed, struct oct_error *err)
{
    const bool is_list = a->dataset[0] == '\0';
    const size_t n = strlen(a->path) + strlen(a->dataset) + 2;
    char *name = malloc(n);
    if (!name)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", a->path);
    snprintf(name, n, "%s%s%s", a->path, is_list ? "" : ":", a->dataset);
    const enum oct_err e = oct_hdf5_source_open(&a->source, a->path,
                                                probed    ? NULL
                                                : is_list ? look_at_names
                                                          : look,
                                                name, err);
    free(name);
    return e;
}

/* axis_names: as many texts of any length as there are axes. */
static void read_axes(const struct oct_hdf5_array *array, char axes[OCT_VOLUME_ARRAY_MAX_RANK][16])
{
    char *texts[OCT_VOLUME_ARRAY_MAX_RANK] = {NULL};
    struct oct_hdf5_attribute a;
    const bool is_there = oct_hdf5_attribute_open(&a, array->dataset, "axis_names");
    const hid_t memory = is_there ? H5Tget_native_type(a.type, H5T_DIR_DEFAULT) : H5I_INVALID_HID;
    if (memory >= 0 && H5Tis_variable_str(memory) > 0 && a.n == (hssize_t)array->rank &&
        H5Aread(a.id, memory, texts) >= 0) {
        for (unsigned i = 0; i < array->rank; i++) {
            snprintf(axes[i], sizeof(axes[i]), "%s", texts[i] ? texts[i] : "");
            oct_hdf5_printable(axes[i]);
        }
        H5Dvlen_reclaim(memory, a.space, H5P_DEFAULT, texts);
    }
    OCT_HDF5_CLOSE(memory);
    oct_hdf5_attribute_close(&a);
}

/* A text attribute as one line; "": there is none that fits. */
static void read_line(hid_t object, const char *name, char *line, size_t line_bytes)
{
    char *text = oct_hdf5_text(object, name, line_bytes - 1);
    snprintf(line, line_bytes, "%s", text ? text : "");
    oct_hdf5_printable(line);
    free(text);
}

/* Of a value as read_box gives it. */
static unsigned memory_bytes(bool is_float, unsigned value_bytes)
{
    unsigned bytes = is_float ? 4 : 1;
    while (bytes < value_bytes && bytes < 8)
        bytes *= 2;
    return bytes;
}

static hid_t memory_type(const struct oct_volume_array_facts *f)
{
    if (f->is_float)
        return f->memory_bytes == 4 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
    switch (f->memory_bytes) {
    case 1:
        return f->is_signed ? H5T_NATIVE_INT8 : H5T_NATIVE_UINT8;
    case 2:
        return f->is_signed ? H5T_NATIVE_INT16 : H5T_NATIVE_UINT16;
    case 4:
        return f->is_signed ? H5T_NATIVE_INT32 : H5T_NATIVE_UINT32;
    default:
        return f->is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64;
    }
}

/* Whether all extents are within what products of them allow. */
static bool is_modest(const struct oct_volume_array_facts *f)
{
    uint64_t n = f->memory_bytes;
    for (unsigned i = 0; i < f->rank; i++) {
        if (f->dims[i] == 0 || f->dims[i] > UINT64_MAX / n)
            return false;
        n *= f->dims[i];
    }
    return true;
}

/* How its values are stored. */
static void find_storage(struct oct_volume_array *a)
{
    struct oct_volume_array_facts *f = &a->facts;
    hsize_t chunk[OCT_HDF5_MAX_RANK] = {0};
    hid_t properties = H5Dget_create_plist(a->array.dataset);
    if (properties >= 0 && H5Pget_layout(properties) == H5D_CHUNKED &&
        H5Pget_chunk(properties, OCT_HDF5_MAX_RANK, chunk) == (int)f->rank)
        for (unsigned i = 0; i < f->rank; i++)
            f->chunk[i] = chunk[i];
    OCT_HDF5_CLOSE(properties);
    f->memory_bytes = memory_bytes(f->is_float, f->value_bytes);
    f->stored_bytes = H5Dget_storage_size(a->array.dataset);
    f->place =
        is_modest(f) ? oct_hdf5_array_place(&a->array, memory_type(f), a->source.file_bytes) : 0;
}

static enum oct_err open_all(struct oct_volume_array *a, bool probed, struct oct_error *err)
{
    struct oct_volume_array_facts *f = &a->facts;
    enum oct_err e = open_file(a, probed, err);
    e = e ? e : oct_hdf5_array_open(&a->array, a->source.file, a->path, a->dataset, 0, err);
    if (e == OCT_OK && a->array.dataset < 0)
        e = oct_fail(err, OCT_E_FORMAT, "%s: has no dataset %s; h5ls -r lists what it has", a->path,
                     a->dataset);
    if (e != OCT_OK)
        return e;
    *f = (struct oct_volume_array_facts){.rank = a->array.rank,
                                         .is_float = a->array.is_float,
                                         .is_signed = a->array.is_signed,
                                         .value_bytes = (unsigned)a->array.value_bytes};
    for (unsigned i = 0; i < f->rank; i++)
        f->dims[i] = a->array.dims[i];
    find_storage(a);
    oct_hdf5_spacing(a->array.dataset, f->spacing_um, f->rank);
    read_line(a->array.dataset, "units", f->unit, sizeof(f->unit));
    read_axes(&a->array, f->axes);
    if (!oct_hdf5_floats(a->array.dataset, "step", &f->step, 1))
        f->step = NAN;
    read_line(a->source.file, "method", f->method, sizeof(f->method));
    return OCT_OK;
}

static struct oct_volume_array *array_new(const char *path, const char *dataset)
{
    struct oct_volume_array *a = calloc(1, sizeof(*a));
    if (!a)
        return NULL;
    a->array = (struct oct_hdf5_array){.dataset = -1, .type = -1};
    a->path = strdup(path);
    a->dataset = strdup(dataset);
    if (a->path && a->dataset)
        return a;
    free(a->path);
    free(a->dataset);
    free(a);
    return NULL;
}

/* Under the lock. */
static void array_free(struct oct_volume_array *a)
{
    oct_hdf5_array_close(&a->array);
    oct_hdf5_source_close(&a->source);
    free(a->path);
    free(a->dataset);
    free(a);
}

/* Walks the index of a chunked array and unpacks its first and last row. */
static void look_at_rows(struct oct_volume_array *a)
{
    uint64_t bytes = sizeof(float);
    for (unsigned i = 1; i < a->facts.rank; i++) {
        if (a->facts.dims[i] > MOST_PROBED_BYTES || a->facts.dims[i] == 0)
            return;
        bytes *= a->facts.dims[i];
        if (bytes > MOST_PROBED_BYTES)
            return;
    }
    H5Dget_storage_size(a->array.dataset);
    void *row = malloc((size_t)bytes);
    if (row && a->facts.dims[0] > 0) {
        oct_hdf5_array_read_row(&a->array, 0, H5T_NATIVE_FLOAT, row, NULL);
        oct_hdf5_array_read_row(&a->array, a->facts.dims[0] - 1, H5T_NATIVE_FLOAT, row, NULL);
    }
    free(row);
}

/* In the child of the probe. */
static void look(const char *name)
{
    char *path = strdup(name), *colon = NULL;
    struct oct_volume_array *a = NULL;
    for (char *next = path; next && (next = strstr(next, ":/")); next++)
        colon = next; /* the last: of what stands behind it none has one */
    if (colon) {
        *colon = '\0';
        a = array_new(path, colon + 1);
    }
    if (a && open_all(a, true, NULL) == OCT_OK)
        look_at_rows(a);
    if (a)
        array_free(a);
    free(path);
}

/* ---- which there are ---- */

struct list {
    const char *path;
    unsigned rank;                      /* 0: any */
    struct oct_volume_array_root *root; /* NULL: not asked for */
    struct oct_volume_array_entry *entries;
    unsigned most, n;
};

static void describe(const struct oct_hdf5_array *array, struct oct_volume_array_entry *e)
{
    char class[32];
    *e = (struct oct_volume_array_entry){.rank = array->rank,
                                         .is_float = array->is_float,
                                         .is_signed = array->is_signed,
                                         .value_bytes = (unsigned)array->value_bytes};
    memcpy(e->dims, array->dims, sizeof(e->dims));
    read_line(array->dataset, "CLASS", class, sizeof(class));
    e->is_scale = strcmp(class, "DIMENSION_SCALE") == 0;
    oct_hdf5_spacing(array->dataset, e->spacing_um, e->rank);
    read_line(array->dataset, "units", e->unit, sizeof(e->unit));
    read_axes(array, e->axes);
}

/* H5Literate's, of every link below the root; soft and external ones are left out. */
static herr_t take_name(hid_t root, const char *name, const H5L_info_t *link, void *context)
{
    struct list *list = context;
    struct oct_hdf5_array array;
    struct oct_volume_array_entry entry;
    struct oct_volume_array_name full;
    H5O_info_t object;
    const int length = snprintf(full.text, sizeof(full.text), "/%s", name);
    if (list->n == list->most)
        return 1; /* enough */
    if (link->type != H5L_TYPE_HARD || length >= (int)sizeof(full.text) ||
        H5Oget_info_by_name2(root, name, &object, H5O_INFO_BASIC, H5P_DEFAULT) < 0 ||
        object.type != H5O_TYPE_DATASET)
        return 0;
    if (oct_hdf5_array_open(&array, root, list->path, full.text, 0, NULL) == OCT_OK &&
        array.dataset >= 0) {
        describe(&array, &entry); /* of all of them, in the child of the probe too */
        entry.name = full;
        if (list->rank == 0 || array.rank == list->rank)
            list->entries[list->n++] = entry;
    }
    oct_hdf5_array_close(&array);
    return 0;
}

static void read_etdrs(hid_t file, struct oct_volume_array_root *root)
{
    root->fovea_px[0] = root->fovea_px[1] = NAN;
    if (H5Lexists(file, "etdrs", H5P_DEFAULT) <= 0)
        return;
    hid_t group = H5Oopen(file, "etdrs", H5P_DEFAULT);
    if (group >= 0) {
        read_line(group, "superior", root->superior, sizeof(root->superior));
        if (!oct_hdf5_floats(group, "fovea_px", root->fovea_px, 2))
            root->fovea_px[0] = root->fovea_px[1] = NAN;
    }
    OCT_HDF5_CLOSE(group);
}

static void read_root(hid_t file, struct oct_volume_array_root *root)
{
    read_line(file, "software", root->software, sizeof(root->software));
    read_line(file, "kind", root->kind, sizeof(root->kind));
    read_line(file, "eye", root->eye, sizeof(root->eye));
    read_line(file, "source_crc32c", root->source_crc32c, sizeof(root->source_crc32c));
    read_line(file, "input_crc32c", root->input_crc32c, sizeof(root->input_crc32c));
    read_etdrs(file, root);
    root->source = oct_hdf5_text(file, "source", MOST_SOURCE_BYTES);
    for (char *line = root->source, *end; line; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        if (end)
            *end = '\0';
        oct_hdf5_printable(line);
        if (end)
            *end = '\n';
    }
}

/* Under the lock. */
static enum oct_err list_names(struct list *list, bool probed, struct oct_error *err)
{
    struct oct_volume_array *a = array_new(list->path, "");
    if (!a)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", list->path);
    enum oct_err e = open_file(a, probed, err);
    if (e == OCT_OK && list->root)
        read_root(a->source.file, list->root);
    if (e == OCT_OK && H5Lvisit(a->source.file, H5_INDEX_NAME, H5_ITER_INC, take_name, list) < 0)
        e = oct_fail(err, OCT_E_FORMAT, "%s: damaged HDF5 file: its datasets cannot be listed",
                     list->path);
    array_free(a);
    return e;
}

/* In the child of the probe. */
static void look_at_names(const char *path)
{
    struct oct_volume_array_entry none;
    struct oct_volume_array_root root;
    /* Of a rank that there is not, so that it goes on to the end. */
    struct list all = {
        .path = path, .rank = OCT_HDF5_MAX_RANK + 1, .root = &root, .entries = &none, .most = 1};
    list_names(&all, true, NULL);
}

enum oct_err oct_volume_array_entries(const char *path, struct oct_volume_array_root *root,
                                      struct oct_volume_array_entry *entries, unsigned most,
                                      unsigned *n, struct oct_error *err)
{
    struct list list = {.path = path, .root = root, .entries = entries, .most = most};
    if (root)
        *root = (struct oct_volume_array_root){.source = NULL};
    oct_hdf5_lock();
    const enum oct_err e = list_names(&list, false, err);
    oct_hdf5_unlock();
    *n = list.n;
    return e;
}

enum oct_err oct_volume_array_list(const char *path, unsigned rank,
                                   struct oct_volume_array_name *names, unsigned most, unsigned *n,
                                   struct oct_error *err)
{
    struct oct_volume_array_entry *entries = calloc(most ? most : 1, sizeof(*entries));
    struct list list = {.path = path, .rank = rank, .entries = entries, .most = most};
    *n = 0;
    if (!entries)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    oct_hdf5_lock();
    const enum oct_err e = list_names(&list, false, err);
    oct_hdf5_unlock();
    *n = list.n;
    for (unsigned i = 0; i < list.n; i++)
        names[i] = entries[i].name;
    free(entries);
    return e;
}

/* ---- one of them ---- */

enum oct_err oct_volume_array_open(struct oct_volume_array **array, const char *path,
                                   const char *dataset, struct oct_error *err)
{
    *array = NULL;
    if (dataset[0] != '/' || strstr(dataset, ":/"))
        return oct_fail(err, OCT_E_ARG, "%s: a dataset's name begins with / and has no \":/\": %s",
                        path, dataset);
    struct oct_volume_array *a = array_new(path, dataset);
    if (!a)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    oct_hdf5_lock();
    enum oct_err e = open_all(a, false, err);
    if (e != OCT_OK)
        array_free(a);
    oct_hdf5_unlock();
    if (e == OCT_OK)
        *array = a;
    return e;
}

void oct_volume_array_close(struct oct_volume_array *array)
{
    if (!array)
        return;
    oct_hdf5_lock();
    array_free(array);
    oct_hdf5_unlock();
}

const struct oct_volume_array_facts *oct_volume_array_facts(const struct oct_volume_array *array)
{
    return &array->facts;
}

enum oct_err oct_volume_array_read_row(struct oct_volume_array *array, uint64_t row, float *values,
                                       struct oct_error *err)
{
    if (row >= array->facts.dims[0])
        return oct_fail(err, OCT_E_ARG, "%s: %s: no row %llu", array->path, array->dataset,
                        (unsigned long long)row);
    oct_hdf5_lock();
    enum oct_err e = oct_hdf5_array_read_row(&array->array, row, H5T_NATIVE_FLOAT, values, err);
    oct_hdf5_unlock();
    return e;
}

enum oct_err oct_volume_array_read(struct oct_volume_array *array, float *values,
                                   struct oct_error *err)
{
    oct_hdf5_lock();
    enum oct_err e = oct_hdf5_array_read(&array->array, H5T_NATIVE_FLOAT, values, err);
    oct_hdf5_unlock();
    return e;
}

enum oct_err oct_volume_array_read_f64(struct oct_volume_array *array, double *values,
                                       struct oct_error *err)
{
    oct_hdf5_lock();
    enum oct_err e = oct_hdf5_array_read(&array->array, H5T_NATIVE_DOUBLE, values, err);
    oct_hdf5_unlock();
    return e;
}

enum oct_err oct_volume_array_read_box(struct oct_volume_array *array,
                                       const uint64_t first[OCT_VOLUME_ARRAY_MAX_RANK],
                                       const uint64_t count[OCT_VOLUME_ARRAY_MAX_RANK],
                                       void *values, struct oct_error *err)
{
    const struct oct_volume_array_facts *f = &array->facts;
    hsize_t from_first[OCT_HDF5_MAX_RANK], from_count[OCT_HDF5_MAX_RANK];
    for (unsigned i = 0; i < f->rank; i++) {
        if (count[i] == 0 || first[i] >= f->dims[i] || count[i] > f->dims[i] - first[i])
            return oct_fail(err, OCT_E_ARG, "%s: %s: has no such part", array->path,
                            array->dataset);
        from_first[i] = first[i];
        from_count[i] = count[i];
    }
    oct_hdf5_lock();
    const enum oct_err e = oct_hdf5_array_read_selected(&array->array, from_first, from_count,
                                                        memory_type(f), values, err);
    oct_hdf5_unlock();
    return e;
}
