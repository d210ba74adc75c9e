#define _GNU_SOURCE /* TEMP_FAILURE_RETRY */
#include "pipeline/volume/hdf5_read.h"

#include "pipeline/base/utf8.h"
#include "pipeline/volume/hdf5_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* libhdf5 unpacks a chunk at a time into memory of its own. */
#define MAX_CHUNK_BYTES ((uint64_t)1 << 30)

/* At the start, or after a block of another program's own: at 512, 1024, 2048, ... */
static bool has_signature(const struct oct_hdf5_source *s)
{
    static const char signature[8] = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};
    char start[sizeof(signature)];
    for (uint64_t at = 0; at < s->file_bytes; at = at ? at * 2 : 512)
        if (TEMP_FAILURE_RETRY(pread(s->fd, start, sizeof(start), (off_t)at)) ==
                (ssize_t)sizeof(start) &&
            memcmp(start, signature, sizeof(start)) == 0)
            return true;
    return false;
}

enum oct_err oct_hdf5_source_open(struct oct_hdf5_source *source, const char *path,
                                  void (*look)(const char *name), const char *name,
                                  struct oct_error *err)
{
    struct oct_hdf5_source *s = source;
    struct stat st;
    char reason[160] = "";
    s->file = H5I_INVALID_HID;
    /* O_NONBLOCK: opening a named pipe must not block. */
    s->fd = (int)TEMP_FAILURE_RETRY(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (s->fd < 0 || fstat(s->fd, &st) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot open", path);
    if (!S_ISREG(st.st_mode))
        return oct_fail(err, OCT_E_FORMAT, "%s: not a file", path);
    const enum oct_err e = look ? oct_hdf5_probe(name, look, err) : OCT_OK;
    if (e)
        return e;
    s->file_bytes = (uint64_t)st.st_size;
    oct_hdf5_image_init(&s->image, s->fd, s->file_bytes);
    s->file = oct_hdf5_image_open(&s->image, H5F_ACC_RDONLY, 1, reason, sizeof(reason));
    if (s->file >= 0)
        return OCT_OK;
    if (s->image.failed)
        return oct_fail(err, OCT_E_IO, "%s: cannot be read: the disk refuses", path);
    if (!has_signature(s))
        return oct_fail(err, OCT_E_FORMAT, "%s: not an HDF5 file (%" PRIu64 " bytes)", path,
                        s->file_bytes);
    return oct_fail(err, OCT_E_FORMAT, "%s: damaged or truncated HDF5 file: %s", path, reason);
}

void oct_hdf5_source_close(struct oct_hdf5_source *source)
{
    if (source->file > 0)
        H5Fclose(source->file);
    oct_hdf5_image_finish(&source->image);
    if (source->fd > 0)
        close(source->fd);
}

static enum oct_err refuse(const struct oct_hdf5_array *array, const char *what,
                           struct oct_error *err)
{
    return oct_fail(err, OCT_E_FORMAT, "%s: %s: %s", array->path, array->name, what);
}

static enum oct_err refuse_hdf5(const struct oct_hdf5_array *array, const char *what,
                                struct oct_error *err)
{
    char reason[160];
    oct_hdf5_reason(reason, sizeof(reason));
    return oct_fail(err, OCT_E_FORMAT, "%s: %s: %s: %s", array->path, array->name, what, reason);
}

/* Whether every link on the way to "/a/b" exists; none may leave the file. */
static enum oct_err find_links(const struct oct_hdf5_array *array, hid_t file, bool *is_there,
                               struct oct_error *err)
{
    char part[256];
    *is_there = false;
    for (const char *end = array->name; *end;) {
        H5L_info_t link;
        end = strchr(end + 1, '/');
        if (!end)
            end = array->name + strlen(array->name);
        size_t n = (size_t)(end - array->name);
        if (n >= sizeof(part))
            return OCT_OK;
        memcpy(part, array->name, n);
        part[n] = '\0';
        if (H5Lexists(file, part, H5P_DEFAULT) <= 0)
            return OCT_OK;
        if (H5Lget_info(file, part, &link, H5P_DEFAULT) < 0)
            return refuse_hdf5(array, "cannot read how it is linked", err);
        if (link.type != H5L_TYPE_HARD && link.type != H5L_TYPE_SOFT)
            return refuse(array,
                          "it is a link into another file, and those are not followed: copy "
                          "it into this one (h5copy -f ext)",
                          err);
    }
    *is_there = true;
    return OCT_OK;
}

/* Refuses values that lie in other files: the file says in which, and they may be anything, a pipe
 * that never ends for instance. Refuses filters that libhdf5 would have to load, too. */
static enum oct_err check_storage(const struct oct_hdf5_array *array, hid_t properties,
                                  struct oct_error *err)
{
    static const char elsewhere[] =
        "its values lie in other files, and those are not read: copy them into this one";
    if (properties < 0)
        return refuse_hdf5(array, "cannot read how it is stored", err);
    if (H5Pget_layout(properties) == H5D_VIRTUAL || H5Pget_external_count(properties) != 0)
        return refuse(array, elsewhere, err);
    int n_filters = H5Pget_nfilters(properties);
    for (int i = 0; i < n_filters; i++) {
        unsigned flags;
        size_t n_values = 0;
        char name[40] = "";
        H5Z_filter_t filter = H5Pget_filter2(properties, (unsigned)i, &flags, &n_values, NULL,
                                             sizeof(name) - 1, name, NULL);
        if (filter < 0 || filter >= H5Z_FILTER_RESERVED || H5Zfilter_avail(filter) <= 0)
            return oct_fail(err, OCT_E_FORMAT,
                            "%s: %s: packed with filter %d (%s), which libhdf5 itself lacks: "
                            "repack the file (h5repack -f GZIP=1)",
                            array->path, array->name, (int)filter, oct_hdf5_printable(name));
    }
    return OCT_OK;
}

static enum oct_err check_chunks(const struct oct_hdf5_array *array, hid_t properties,
                                 struct oct_error *err)
{
    hsize_t chunk[OCT_HDF5_MAX_RANK];
    if (H5Pget_layout(properties) != H5D_CHUNKED)
        return OCT_OK;
    if (H5Pget_chunk(properties, OCT_HDF5_MAX_RANK, chunk) != (int)array->rank)
        return refuse_hdf5(array, "its chunks have another rank", err);
    uint64_t bytes = array->value_bytes;
    for (unsigned i = 0; i < array->rank; i++) {
        if (chunk[i] > MAX_CHUNK_BYTES || bytes * chunk[i] > MAX_CHUNK_BYTES)
            return refuse(array, "its chunks are larger than 1 GiB", err);
        bytes *= chunk[i];
    }
    return OCT_OK;
}

static enum oct_err check_type(struct oct_hdf5_array *array, struct oct_error *err)
{
    array->type = H5Dget_type(array->dataset);
    H5T_class_t class = array->type < 0 ? H5T_NO_CLASS : H5Tget_class(array->type);
    if (class != H5T_INTEGER && class != H5T_FLOAT)
        return refuse(array, "its values are neither integers nor floats", err);
    array->is_float = class == H5T_FLOAT;
    array->is_signed = array->is_float || H5Tget_sign(array->type) != H5T_SGN_NONE;
    array->value_bytes = H5Tget_size(array->type);
    if (array->value_bytes < 1 || array->value_bytes > 16)
        return refuse(array, "its values have an absurd size", err);
    return OCT_OK;
}

static enum oct_err check_extent(struct oct_hdf5_array *array, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    hid_t space = H5Dget_space(array->dataset);
    hsize_t dims[H5S_MAX_RANK] = {0};
    bool is_array = space >= 0 && H5Sget_simple_extent_type(space) == H5S_SIMPLE;
    int rank = is_array ? H5Sget_simple_extent_ndims(space) : 0;
    if (array->rank == 0 && rank >= 1 && rank <= OCT_HDF5_MAX_RANK)
        array->rank = (unsigned)rank;
    if (!is_array)
        e = refuse(array, "it is not an array", err);
    else if (array->rank == 0)
        e = oct_fail(err, OCT_E_FORMAT, "%s: %s: %d axes: 1 to %d belong there", array->path,
                     array->name, rank, OCT_HDF5_MAX_RANK);
    else if (rank != (int)array->rank)
        e = oct_fail(err, OCT_E_FORMAT, "%s: %s: %d axes where %u belong", array->path, array->name,
                     rank, array->rank);
    else if (H5Sget_simple_extent_dims(space, dims, NULL) < 0)
        e = refuse_hdf5(array, "cannot read its extents", err);
    for (unsigned i = 0; e == OCT_OK && i < array->rank; i++)
        array->dims[i] = dims[i];
    OCT_HDF5_CLOSE(space);
    return e;
}

enum oct_err oct_hdf5_array_open(struct oct_hdf5_array *array, hid_t file, const char *path,
                                 const char *name, unsigned rank, struct oct_error *err)
{
    bool is_there;
    *array = (struct oct_hdf5_array){
        .path = path, .name = name, .rank = rank, .dataset = -1, .type = -1};
    enum oct_err e = find_links(array, file, &is_there, err);
    if (e != OCT_OK || !is_there)
        return e;
    array->dataset = H5Dopen2(file, name, H5P_DEFAULT);
    if (array->dataset < 0)
        return refuse_hdf5(array, "cannot be opened as a dataset", err);
    hid_t properties = H5Dget_create_plist(array->dataset);
    e = check_storage(array, properties, err); /* first: extents may be those of another file */
    e = e ? e : check_type(array, err);
    e = e ? e : check_extent(array, err);
    e = e ? e : check_chunks(array, properties, err);
    OCT_HDF5_CLOSE(properties);
    return e;
}

void oct_hdf5_array_close(struct oct_hdf5_array *array)
{
    OCT_HDF5_CLOSE(array->type, array->dataset);
    array->type = array->dataset = -1;
}

uint64_t oct_hdf5_array_place(const struct oct_hdf5_array *array, hid_t memory_type,
                              uint64_t file_bytes)
{
    hid_t properties = H5Dget_create_plist(array->dataset);
    bool plain = properties >= 0 && H5Pget_layout(properties) == H5D_CONTIGUOUS &&
                 H5Pget_external_count(properties) == 0 && H5Tequal(array->type, memory_type) > 0;
    OCT_HDF5_CLOSE(properties);
    haddr_t offset = plain ? H5Dget_offset(array->dataset) : HADDR_UNDEF;
    uint64_t bytes = array->value_bytes;
    for (unsigned i = 0; i < array->rank; i++)
        bytes *= array->dims[i]; /* limits of geometry.h: no overflow */
    if (offset == HADDR_UNDEF || offset > file_bytes || bytes > file_bytes - offset)
        return 0;
    return (uint64_t)offset;
}

enum oct_err oct_hdf5_array_read(const struct oct_hdf5_array *array, hid_t memory_type,
                                 void *values, struct oct_error *err)
{
    if (H5Dread(array->dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
        return refuse_hdf5(array, "cannot be read", err);
    return OCT_OK;
}

enum oct_err oct_hdf5_array_read_row(const struct oct_hdf5_array *array, uint64_t v,
                                     hid_t memory_type, void *values, struct oct_error *err)
{
    const uint64_t n = array->rank > 1 ? array->dims[1] : 1;
    return oct_hdf5_array_read_part(array, v, 0, n, memory_type, values, err);
}

enum oct_err oct_hdf5_array_read_part(const struct oct_hdf5_array *array, uint64_t v,
                                      uint64_t first_item, uint64_t n, hid_t memory_type,
                                      void *values, struct oct_error *err)
{
    hsize_t first[OCT_HDF5_MAX_RANK] = {v, first_item};
    hsize_t count[OCT_HDF5_MAX_RANK] = {1, n};
    for (unsigned i = 2; i < array->rank; i++)
        count[i] = array->dims[i];
    return oct_hdf5_array_read_selected(array, first, count, memory_type, values, err);
}

enum oct_err oct_hdf5_array_read_selected(const struct oct_hdf5_array *array, const hsize_t *first,
                                          const hsize_t *count, hid_t memory_type, void *values,
                                          struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    hid_t from = H5Dget_space(array->dataset);
    hid_t to = H5Screate_simple((int)array->rank, count, NULL);
    if (from < 0 || to < 0 ||
        H5Sselect_hyperslab(from, H5S_SELECT_SET, first, NULL, count, NULL) < 0 ||
        H5Dread(array->dataset, memory_type, to, from, H5P_DEFAULT, values) < 0)
        e = refuse_hdf5(array, "cannot be read", err);
    OCT_HDF5_CLOSE(from, to);
    return e;
}

bool oct_hdf5_attribute_open(struct oct_hdf5_attribute *attribute, hid_t object, const char *name)
{
    struct oct_hdf5_attribute *a = attribute;
    *a = (struct oct_hdf5_attribute){H5I_INVALID_HID, H5I_INVALID_HID, H5I_INVALID_HID, -1};
    if (H5Aexists(object, name) <= 0 || (a->id = H5Aopen(object, name, H5P_DEFAULT)) < 0)
        return false;
    a->type = H5Aget_type(a->id);
    a->space = H5Aget_space(a->id);
    a->n = a->space < 0 ? -1 : H5Sget_simple_extent_npoints(a->space);
    return a->type >= 0 && a->n >= 0;
}

void oct_hdf5_attribute_close(struct oct_hdf5_attribute *attribute)
{
    OCT_HDF5_CLOSE(attribute->space, attribute->type, attribute->id);
}

bool oct_hdf5_count(hid_t object, const char *name, uint64_t *value)
{
    struct oct_hdf5_attribute a;
    const bool is_read = oct_hdf5_attribute_open(&a, object, name) &&
                         H5Tget_class(a.type) == H5T_INTEGER && a.n == 1 &&
                         H5Aread(a.id, H5T_NATIVE_UINT64, value) >= 0;
    oct_hdf5_attribute_close(&a);
    return is_read;
}

static char *variable_text(hid_t attribute, hid_t type, size_t max_bytes)
{
    char *text = NULL, *copy = NULL;
    hid_t memory = H5Tcopy(type); /* keeps its character set: libhdf5 does not convert those */
    if (memory >= 0 && H5Aread(attribute, memory, &text) >= 0 && text) {
        size_t n = strnlen(text, max_bytes + 1);
        copy = n <= max_bytes ? strndup(text, n) : NULL;
        H5free_memory(text);
    }
    OCT_HDF5_CLOSE(memory);
    return copy;
}

static char *fixed_text(hid_t attribute, hid_t type, size_t max_bytes)
{
    size_t n = H5Tget_size(type);
    if (n < 1 || n > max_bytes)
        return NULL;
    char *text = calloc(n + 1, 1);
    if (text && H5Aread(attribute, type, text) < 0) {
        free(text);
        return NULL;
    }
    if (text && H5Tget_strpad(type) == H5T_STR_SPACEPAD)
        while (n > 0 && text[n - 1] == ' ')
            text[--n] = '\0';
    return text;
}

char *oct_hdf5_text(hid_t object, const char *name, size_t max_bytes)
{
    struct oct_hdf5_attribute a;
    char *text = NULL;
    if (oct_hdf5_attribute_open(&a, object, name) && H5Tget_class(a.type) == H5T_STRING && a.n == 1)
        text = H5Tis_variable_str(a.type) > 0 ? variable_text(a.id, a.type, max_bytes)
                                              : fixed_text(a.id, a.type, max_bytes);
    oct_hdf5_attribute_close(&a);
    if (text)
        oct_utf8_repair(text);
    return text;
}

bool oct_hdf5_floats(hid_t object, const char *name, double *values, unsigned n)
{
    struct oct_hdf5_attribute a;
    const bool done = oct_hdf5_attribute_open(&a, object, name) &&
                      H5Tget_class(a.type) == H5T_FLOAT && a.n == (hssize_t)n &&
                      H5Aread(a.id, H5T_NATIVE_DOUBLE, values) >= 0;
    oct_hdf5_attribute_close(&a);
    return done;
}

void oct_hdf5_spacing(hid_t object, double *spacing_um, unsigned n)
{
    static const char *const names[] = {"axis_spacing_um", "element_size_um", "um"};
    bool is_known = false;
    for (unsigned i = 0; i < n; i++)
        spacing_um[i] = NAN;
    for (unsigned k = 0; k < sizeof(names) / sizeof(names[0]) && !is_known; k++)
        is_known = oct_hdf5_floats(object, names[k], spacing_um, n);
    for (unsigned i = 0; i < n; i++)
        if (!(isfinite(spacing_um[i]) && spacing_um[i] > 0))
            spacing_um[i] = NAN;
}
