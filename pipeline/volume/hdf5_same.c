#include "pipeline/volume/hdf5_same.h"

#include "pipeline/base/crc32c.h"
#include "pipeline/volume/hdf5_read.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES ((size_t)8 << 20)

/* What is read of one file, in order. */
struct sum {
    uint32_t crc;
    bool failed;
};

static void add(struct sum *s, const void *bytes, size_t n)
{
    s->crc = oct_crc32c_more(s->crc, bytes, n);
}

static void add_number(struct sum *s, uint64_t number)
{
    add(s, &number, sizeof(number));
}

/* ---- values in memory ---- */

static void add_values(struct sum *s, hid_t type, const unsigned char *at, size_t n);

/* The parts of a value of several: members, elements, or those that it points at. */
static void add_part(struct sum *s, hid_t type, const unsigned char *at, size_t n)
{
    if (type < 0)
        s->failed = true;
    else
        add_values(s, type, at, n);
    if (type >= 0)
        H5Tclose(type);
}

static void add_value(struct sum *s, hid_t type, const unsigned char *at)
{
    const H5T_class_t class = H5Tget_class(type);
    if (class == H5T_VLEN) {
        hvl_t list;
        memcpy(&list, at, sizeof(list));
        add_number(s, list.len);
        add_part(s, H5Tget_super(type), list.p, list.len);
    } else if (class == H5T_STRING && H5Tis_variable_str(type) > 0) {
        const char *text;
        memcpy(&text, at, sizeof(text));
        add(s, text ? text : "", text ? strlen(text) + 1 : 0);
    } else if (class == H5T_COMPOUND) {
        for (int i = 0; i < H5Tget_nmembers(type); i++)
            add_part(s, H5Tget_member_type(type, (unsigned)i),
                     at + H5Tget_member_offset(type, (unsigned)i), 1);
    } else if (class == H5T_ARRAY) {
        const hid_t element = H5Tget_super(type);
        const size_t bytes = element < 0 ? 0 : H5Tget_size(element);
        add_part(s, element, at, bytes ? H5Tget_size(type) / bytes : 0);
    } else {
        add(s, at, H5Tget_size(type));
    }
}

/* Whether values may point at others, or be texts: in any part of them. */
static bool points(hid_t type)
{
    return H5Tdetect_class(type, H5T_VLEN) != 0 || H5Tdetect_class(type, H5T_STRING) != 0;
}

static void add_values(struct sum *s, hid_t type, const unsigned char *at, size_t n)
{
    const size_t bytes = H5Tget_size(type);
    if (!points(type))
        add(s, at, n * bytes);
    else
        for (size_t i = 0; i < n; i++)
            add_value(s, type, at + i * bytes);
}

static void add_shape(struct sum *s, hid_t type, hid_t space)
{
    hsize_t dims[H5S_MAX_RANK];
    const int rank = H5Sget_simple_extent_dims(space, dims, NULL);
    add_number(s, (uint64_t)H5Tget_class(type));
    add_number(s, H5Tget_size(type));
    for (int i = 0; i < rank; i++)
        add_number(s, dims[i]);
    s->failed |= rank < 0;
}

/* ---- attributes ---- */

/* H5Aiterate's. */
static herr_t take_attribute(hid_t object, const char *name, const H5A_info_t *info, void *context)
{
    struct sum *s = context;
    (void)info;
    if (strcmp(name, "DIMENSION_LIST") == 0 || strcmp(name, "REFERENCE_LIST") == 0)
        return 0;
    const hid_t a = H5Aopen(object, name, H5P_DEFAULT);
    const hid_t type = a < 0 ? H5I_INVALID_HID : H5Aget_type(a);
    const hid_t space = a < 0 ? H5I_INVALID_HID : H5Aget_space(a);
    const hssize_t n = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
    void *values = type < 0 || n < 0 ? NULL : calloc((size_t)n + 1, H5Tget_size(type));
    s->failed |= !values || (n > 0 && H5Aread(a, type, values) < 0);
    if (!s->failed) {
        add(s, name, strlen(name) + 1);
        add_shape(s, type, space);
        add_values(s, type, values, (size_t)n);
        if (points(type))
            H5Dvlen_reclaim(type, space, H5P_DEFAULT, values);
    }
    free(values);
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    if (a >= 0)
        H5Aclose(a);
    return s->failed ? -1 : 0;
}

/* ---- values of datasets ---- */

/* As they are stored, packed or not: what was never written takes no time. */
static void add_chunks(struct sum *s, hid_t dataset)
{
    hsize_t n = 0, bytes, at[H5S_MAX_RANK] = {0};
    haddr_t place;
    unsigned mask;
    uint32_t filters;
    const hid_t space = H5Dget_space(dataset);
    const int rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
    s->failed |= rank < 0 || H5Dget_num_chunks(dataset, space, &n) < 0;
    for (hsize_t i = 0; i < n && !s->failed; i++) {
        s->failed = H5Dget_chunk_info(dataset, space, i, at, &mask, &place, &bytes) < 0;
        void *chunk = s->failed ? NULL : malloc(bytes + 1);
        s->failed |= !chunk || H5Dread_chunk(dataset, H5P_DEFAULT, at, &filters, chunk) < 0;
        if (!s->failed) {
            add(s, at, (size_t)rank * sizeof(*at));
            add_number(s, mask);
            add(s, chunk, bytes);
        }
        free(chunk);
    }
    if (space >= 0)
        H5Sclose(space);
}

static void add_read(struct sum *s, hid_t dataset, hid_t type, hid_t memory, hid_t space,
                     unsigned char *values)
{
    s->failed |= H5Dread(dataset, type, memory, space, H5P_DEFAULT, values) < 0;
    if (s->failed)
        return;
    add_values(s, type, values, (size_t)H5Sget_simple_extent_npoints(memory));
    if (points(type))
        H5Dvlen_reclaim(type, memory, H5P_DEFAULT, values);
}

/* Some rows of the first axis at a time. */
static void add_rows(struct sum *s, hid_t dataset, hid_t type, hid_t space)
{
    hsize_t dims[H5S_MAX_RANK] = {1}, first[H5S_MAX_RANK] = {0}, n_row = 1;
    const int rank = H5Sget_simple_extent_dims(space, dims, NULL);
    for (int i = 1; i < rank; i++)
        n_row *= dims[i];
    const hsize_t n_rows = dims[0], row_bytes = n_row * H5Tget_size(type),
                  group = row_bytes < PIECE_BYTES ? PIECE_BYTES / row_bytes : 1;
    unsigned char *values = calloc(group < n_rows ? group : n_rows, row_bytes);
    s->failed |= !values || rank < 0;
    for (; first[0] < n_rows && !s->failed; first[0] += group) {
        dims[0] = n_rows - first[0] < group ? n_rows - first[0] : group;
        const hid_t memory = rank > 0 ? H5Screate_simple(rank, dims, NULL) : H5Scopy(space);
        s->failed = memory < 0 || (rank > 0 && H5Sselect_hyperslab(space, H5S_SELECT_SET, first,
                                                                   NULL, dims, NULL) < 0);
        if (!s->failed)
            add_read(s, dataset, type, memory, space, values);
        if (memory >= 0)
            H5Sclose(memory);
    }
    free(values);
}

static void add_dataset(struct sum *s, hid_t dataset, bool with_values)
{
    const hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset),
                properties = H5Dget_create_plist(dataset);
    s->failed |= type < 0 || space < 0 || properties < 0;
    if (!s->failed)
        add_shape(s, type, space);
    const bool is_there = !s->failed && with_values && H5Dget_storage_size(dataset) > 0;
    if (is_there && H5Pget_layout(properties) == H5D_CHUNKED && !points(type))
        add_chunks(s, dataset);
    else if (is_there)
        add_rows(s, dataset, type, space);
    if (properties >= 0)
        H5Pclose(properties);
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
}

/* ---- an object ---- */

static struct sum sum_of(hid_t file, const char *name, bool with_values)
{
    struct sum s = {.crc = 0};
    const hid_t object = H5Oopen(file, name, H5P_DEFAULT);
    s.failed =
        object < 0 || H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, NULL, take_attribute, &s) < 0;
    if (!s.failed && H5Iget_type(object) == H5I_DATASET)
        add_dataset(&s, object, with_values);
    if (object >= 0)
        H5Oclose(object);
    return s;
}

enum oct_err oct_hdf5_same(hid_t from, hid_t to, const char *path, const char *name,
                           bool with_values, struct oct_error *err)
{
    const struct sum a = sum_of(from, name, with_values);
    const struct sum b = a.failed ? a : sum_of(to, name, with_values);
    if (a.failed || b.failed)
        return oct_fail(err, OCT_E_IO, "%s: %s: cannot be read back and compared", path, name);
    return a.crc == b.crc
               ? OCT_OK
               : oct_fail(err, OCT_E_IO, "%s: %s: the copy reads back otherwise", path, name);
}
