#define _GNU_SOURCE /* TEMP_FAILURE_RETRY */
#include "pipeline/volume/pack.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/crc32c.h"
#include "pipeline/base/err.h"
#include "pipeline/volume/closed.h"
#include "pipeline/volume/hdf5_copy.h"
#include "pipeline/volume/hdf5_lock.h"
#include "pipeline/volume/hdf5_probe.h"
#include "pipeline/volume/hdf5_read.h"
#include "pipeline/volume/pack_array.h"
#include "pipeline/volume/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether an object of one HDF5 file reads as that of another: its attributes, shape and values.
 * What points at objects (DIMENSION_LIST, REFERENCE_LIST) is left out: places differ.
 *
 * Under the lock of hdf5_lock.h. Included by the volume files of this room only: it shows HDF5's
 * types. */

#define PIECE_BYTES ((size_t)8 << 20)

/* What is read of one file, in order. */
struct sum {
    uint32_t crc;
    bool failed;
};

static void sum_add(struct sum *s, const void *bytes, size_t n)
{
    s->crc = oct_crc32c_more(s->crc, bytes, n);
}

static void add_number(struct sum *s, uint64_t number)
{
    sum_add(s, &number, sizeof(number));
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
    OCT_HDF5_CLOSE(type);
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
        sum_add(s, text ? text : "", text ? strlen(text) + 1 : 0);
    } else if (class == H5T_COMPOUND) {
        for (int i = 0; i < H5Tget_nmembers(type); i++)
            add_part(s, H5Tget_member_type(type, (unsigned)i),
                     at + H5Tget_member_offset(type, (unsigned)i), 1);
    } else if (class == H5T_ARRAY) {
        const hid_t element = H5Tget_super(type);
        const size_t bytes = element < 0 ? 0 : H5Tget_size(element);
        add_part(s, element, at, bytes ? H5Tget_size(type) / bytes : 0);
    } else {
        sum_add(s, at, H5Tget_size(type));
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
        sum_add(s, at, n * bytes);
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
        sum_add(s, name, strlen(name) + 1);
        add_shape(s, type, space);
        add_values(s, type, values, (size_t)n);
        if (points(type))
            H5Dvlen_reclaim(type, space, H5P_DEFAULT, values);
    }
    free(values);
    OCT_HDF5_CLOSE(space, type, a);
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
            sum_add(s, at, (size_t)rank * sizeof(*at));
            add_number(s, mask);
            sum_add(s, chunk, bytes);
        }
        free(chunk);
    }
    OCT_HDF5_CLOSE(space);
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
        OCT_HDF5_CLOSE(memory);
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
    OCT_HDF5_CLOSE(properties, space, type);
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
    OCT_HDF5_CLOSE(object);
    return s;
}

/* path: of `to`, for errors. with_values: those of a dataset too, as they are stored in chunks
 * where it has them. OCT_E_IO: they differ, or one cannot be read; OCT_E_NO_MEMORY. */
static enum oct_err check_same(hid_t from, hid_t to, const char *path, const char *name,
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

#define MOST_THREADS 64

struct pack {
    const char *in, *out;
    const struct oct_volume_pack_options *options;
    struct oct_volume_pack_report *report;
    int in_fd, out_fd;
    uint64_t in_bytes;
    struct oct_volume_reader *reader; /* for the rows' checksums */
    struct oct_hdf5_image from_image, to_image;
    hid_t from, to;
    haddr_t spectra, bscans; /* where these arrays are described, whatever their other names */
    struct oct_hdf5_copy copy;
    struct oct_pack_array *arrays;
    unsigned n, room;
    uint64_t done, all; /* bytes of progress */
};

/* ---- what is packed ---- */

static enum oct_err add(struct pack *p, const char *name, hid_t dataset,
                        struct oct_pack_array **added, struct oct_error *err)
{
    struct oct_pack_array a;
    H5O_info_t info;
    *added = NULL;
    if (!oct_pack_array_plan(&a, dataset))
        return OCT_OK;
    if (p->n == p->room) {
        const unsigned room = p->room ? 2 * p->room : 16;
        struct oct_pack_array *arrays = realloc(p->arrays, room * sizeof(*arrays));
        if (!arrays)
            return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", p->in);
        p->arrays = arrays;
        p->room = room;
    }
    if (H5Oget_info2(dataset, &info, H5O_INFO_BASIC) >= 0)
        a.is = info.addr == p->spectra  ? OCT_PACK_SPECTRA
               : info.addr == p->bscans ? OCT_PACK_BSCANS
                                        : OCT_PACK_OTHER;
    a.name = strdup(name);
    if (!a.name)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", p->in);
    p->arrays[p->n] = a;
    *added = &p->arrays[p->n++];
    p->report->values_bytes += a.dims[0] * a.row_bytes;
    return OCT_OK;
}

/* oct_hdf5_copy's. */
static enum oct_err make(void *context, const char *name, hid_t dataset, bool *is_made,
                         struct oct_error *err)
{
    struct pack *p = context;
    struct oct_pack_array *a;
    const enum oct_err e = add(p, name, dataset, &a, err);
    if (e || !a)
        return e;
    const hid_t made = oct_pack_array_make(a, dataset, p->to, p->options->level);
    if (made < 0)
        return oct_fail(err, OCT_E_IO, "%s: %s: cannot be made in the copy", p->in, name);
    H5Dclose(made);
    *is_made = true;
    return OCT_OK;
}

/* ---- the look of a child: everything but the values ---- */

static enum oct_err make_empty(void *context, const char *name, hid_t dataset, bool *is_made,
                               struct oct_error *err)
{
    const hid_t file = *(const hid_t *)context;
    const hid_t stored = H5Dget_type(dataset), space = H5Dget_space(dataset);
    const hid_t type = stored < 0 ? H5I_INVALID_HID : H5Tcopy(stored);
    const hid_t made = type < 0 || space < 0 ? H5I_INVALID_HID
                                             : H5Dcreate2(file, name, H5T_STD_U8LE, space,
                                                          H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dget_storage_size(dataset);
    *is_made = made >= 0;
    OCT_HDF5_CLOSE(made, type, space, stored);
    return *is_made ? OCT_OK : oct_fail(err, OCT_E_FORMAT, "%s: damaged", name);
}

static void look(const char *path)
{
    struct stat st;
    struct oct_hdf5_image from, to;
    char reason[160];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        return;
    oct_hdf5_image_init(&from, fd, (uint64_t)st.st_size);
    oct_hdf5_image_init(&to, -1, 0);
    hid_t file = oct_hdf5_image_open(&to, H5F_ACC_TRUNC, 1, reason, sizeof(reason));
    struct oct_hdf5_copy copy = {
        .path = path,
        .from = oct_hdf5_image_open(&from, H5F_ACC_RDONLY, 1, reason, sizeof(reason)),
        .to = file,
        .make = make_empty,
        .context = &file,
    };
    if (copy.from >= 0 && copy.to >= 0 && oct_hdf5_copy_objects(&copy, NULL) == OCT_OK)
        oct_hdf5_copy_attributes(&copy, NULL);
}

/* ---- opening ---- */

static uint64_t on_disk(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

static haddr_t address_of(hid_t file, const char *name)
{
    H5O_info_t info;
    return H5Lexists(file, name, H5P_DEFAULT) > 0 &&
                   H5Oget_info_by_name2(file, name, &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0
               ? info.addr
               : HADDR_UNDEF;
}

/* Under the lock. */
static enum oct_err open_files(struct pack *p, struct oct_error *err)
{
    struct stat st;
    char reason[160] = "";
    enum oct_err e = oct_hdf5_probe(p->in, look, err);
    if (e)
        return e;
    if (fstat(p->in_fd, &st) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be read", p->in);
    p->in_bytes = (uint64_t)st.st_size;
    p->out_fd = (int)TEMP_FAILURE_RETRY(
        open(p->out, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, st.st_mode & 0777));
    if (p->out_fd < 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be made", p->out);
    oct_hdf5_image_init(&p->from_image, p->in_fd, p->in_bytes);
    oct_hdf5_image_init(&p->to_image, -1, 0);
    oct_hdf5_image_write_through(&p->to_image, p->out_fd);
    p->from = oct_hdf5_image_open(&p->from_image, H5F_ACC_RDONLY, 1, reason, sizeof(reason));
    if (p->from < 0)
        return oct_fail(err, OCT_E_FORMAT, "%s: damaged HDF5 file: %s", p->in, reason);
    p->spectra = address_of(p->from, "/spectra");
    if (p->spectra == HADDR_UNDEF)
        p->spectra = address_of(p->from, OCT_PACKED_SPECTRA);
    p->bscans = address_of(p->from, "/bscans");
    p->to = oct_hdf5_image_open(&p->to_image, H5F_ACC_TRUNC, 1, reason, sizeof(reason));
    if (p->to < 0)
        return oct_fail(err, OCT_E_IO, "%s: libhdf5 cannot make it: %s", p->out, reason);
    return OCT_OK;
}

/* Under the lock. Nothing fails here: the files are in memory. */
static void close_files(struct pack *p)
{
    if (p->from >= 0)
        H5Fclose(p->from);
    if (p->to >= 0)
        H5Fclose(p->to);
    p->from = p->to = H5I_INVALID_HID;
}

/* ---- the rows on their way ---- */

static enum oct_err show(struct pack *p, uint64_t bytes, struct oct_error *err)
{
    const struct oct_volume_pack_options *o = p->options;
    p->done += bytes;
    if (o->progress)
        o->progress(o->context, p->done, p->all);
    return o->cancel && *o->cancel ? oct_fail(err, OCT_E_CLOSED, "%s: interrupted", p->in) : OCT_OK;
}

/* Rows that count as written must be what was written, or the copy would keep a damage for ever. */
static enum oct_err take_rows(void *context, const struct oct_pack_array *a, hsize_t first,
                              hsize_t n, struct oct_error *err)
{
    struct pack *p = context;
    const struct oct_volume_facts *f = oct_volume_facts(p->reader);
    const bool is_spectra = a->is == OCT_PACK_SPECTRA && f->has_spectra_crc;
    const bool is_bscans = a->is == OCT_PACK_BSCANS && f->has_bscans_crc;
    for (hsize_t v = first; (is_spectra || is_bscans) && v < first + n; v++) {
        const struct oct_volume_row row = oct_volume_row(p->reader, (uint32_t)v);
        if (row.valid && a->crc[v] != (is_spectra ? row.spectra_crc32c : row.bscans_crc32c))
            return oct_fail(err, OCT_E_FORMAT,
                            "%s: %s: B-scan %llu does not match its checksum: octctl check names "
                            "all that are damaged",
                            p->in, a->name, (unsigned long long)v);
    }
    return show(p, n * a->row_bytes, err);
}

static enum oct_err pass_rows(void *context, const struct oct_pack_array *a, hsize_t first,
                              hsize_t n, struct oct_error *err)
{
    (void)first;
    return show(context, n * a->row_bytes, err);
}

static enum oct_err fill(struct pack *p, struct oct_pack_array *a, struct oct_deflate *deflate,
                         struct oct_pack_watch *watch, struct oct_error *err)
{
    const hid_t from = H5Dopen2(p->from, a->name, H5P_DEFAULT);
    const hid_t to = H5Dopen2(p->to, a->name, H5P_DEFAULT);
    enum oct_err e = OCT_OK;
    if (from < 0 || to < 0)
        e = oct_fail(err, OCT_E_IO, "%s: %s: cannot be opened", p->in, a->name);
    else
        e = oct_pack_array_fill(a, from, to, deflate, &p->to_image, watch, err);
    if (to >= 0) {
        p->report->packed_bytes += e ? 0 : H5Dget_storage_size(to);
        H5Dclose(to);
    }
    OCT_HDF5_CLOSE(from);
    return e;
}

static unsigned n_threads(const struct oct_volume_pack_options *options)
{
    const long n = options->n_threads ? (long)options->n_threads : sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > MOST_THREADS ? MOST_THREADS : (unsigned)n;
}

/* Under the lock. */
static enum oct_err fill_all(struct pack *p, struct oct_error *err)
{
    struct oct_pack_watch watch = {.rows = take_rows, .context = p};
    struct oct_deflate *deflate;
    enum oct_err e = oct_deflate_create(&deflate, n_threads(p->options), p->options->level, err);
    for (unsigned i = 0; i < p->n && !e; i++)
        e = fill(p, &p->arrays[i], deflate, &watch, err);
    oct_deflate_destroy(deflate);
    p->report->read_s = watch.read_s;
    return e;
}

/* Under the lock. */
static enum oct_err write_copy(struct pack *p, struct oct_error *err)
{
    p->copy = (struct oct_hdf5_copy){
        .path = p->in, .from = p->from, .to = p->to, .make = make, .context = p};
    enum oct_err e = oct_hdf5_copy_objects(&p->copy, err);
    p->all = 2 * p->report->values_bytes;
    p->report->n_arrays = p->n;
    if (!e && p->n > 0)
        e = fill_all(p, err);
    e = e ? e : oct_hdf5_copy_attributes(&p->copy, err);
    return e;
}

/* The image's failures count before libhdf5's. */
static enum oct_err store(struct pack *p, struct oct_error *err)
{
    uint64_t n_bytes;
    if (p->to_image.raw_errno)
        return oct_fail_errno(err, OCT_E_IO, p->to_image.raw_errno, "%s: cannot be written",
                              p->out);
    enum oct_err e = oct_hdf5_image_store(&p->to_image, p->out_fd, p->out, &n_bytes, err);
    if (!e && TEMP_FAILURE_RETRY(fsync(p->out_fd)) != 0)
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", p->out);
    return e;
}

/* ---- the copy, read back ---- */

/* Under the lock. */
static enum oct_err verify_arrays(struct pack *p, hid_t file, struct oct_error *err)
{
    struct oct_pack_watch watch = {.rows = pass_rows, .context = p};
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < p->n && !e; i++) {
        const hid_t packed = H5Dopen2(file, p->arrays[i].name, H5P_DEFAULT);
        e = packed < 0
                ? oct_fail(err, OCT_E_IO, "%s: %s: the copy lacks it", p->out, p->arrays[i].name)
                : oct_pack_array_verify(&p->arrays[i], packed, &watch, err);
        OCT_HDF5_CLOSE(packed);
    }
    p->report->read_packed_s = watch.read_s;
    return e;
}

static bool is_packed(const struct pack *p, const char *name)
{
    for (unsigned i = 0; i < p->n; i++)
        if (strcmp(p->arrays[i].name, name) == 0)
            return true;
    return false;
}

/* Under the lock. The values of packed arrays were compared with those that were read. */
static enum oct_err verify_objects(struct pack *p, hid_t file, struct oct_error *err)
{
    char reason[160] = "";
    enum oct_err e = OCT_OK;
    const hid_t from =
        oct_hdf5_image_open(&p->from_image, H5F_ACC_RDONLY, 1, reason, sizeof(reason));
    if (from < 0)
        return oct_fail(err, OCT_E_IO, "%s: cannot be read again: %s", p->in, reason);
    for (size_t i = 0; i < p->copy.n_objects && !e; i++) {
        const char *name = p->copy.objects[i].name;
        e = check_same(from, file, p->out, name, !is_packed(p, name), err);
    }
    H5Fclose(from);
    return e;
}

/* Under the lock. */
static enum oct_err verify_file(struct pack *p, uint64_t n_bytes, struct oct_error *err)
{
    struct oct_hdf5_image image;
    char reason[160] = "";
    oct_hdf5_image_init(&image, p->out_fd, n_bytes);
    const hid_t file = oct_hdf5_image_open(&image, H5F_ACC_RDONLY, 1, reason, sizeof(reason));
    enum oct_err e = file < 0
                         ? oct_fail(err, OCT_E_IO, "%s: cannot be read back: %s", p->out, reason)
                         : verify_arrays(p, file, err);
    e = e ? e : verify_objects(p, file, err);
    if (file >= 0)
        H5Fclose(file);
    oct_hdf5_image_finish(&image);
    return e;
}

/* From the disk, not from the page cache where that can be helped; and as every reader does it.
 * libhdf5 reads the copy only when it is known to be described as it was made. */
static enum oct_err verify(struct pack *p, struct oct_error *err)
{
    struct stat st;
    struct oct_volume_reader *reader;
    if (fstat(p->out_fd, &st) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be read", p->out);
    (void)posix_fadvise(p->out_fd, 0, 0, POSIX_FADV_DONTNEED);
    enum oct_err e = oct_hdf5_image_compare(&p->to_image, p->out_fd, p->out, err);
    if (e)
        return e;
    oct_hdf5_lock();
    e = verify_file(p, (uint64_t)st.st_size, err);
    oct_hdf5_unlock();
    if (e)
        return e;
    e = oct_volume_open(&reader, p->out, err);
    if (!e)
        oct_volume_reader_destroy(reader);
    return e;
}

/* ---- all of it ---- */

static enum oct_err write_all(struct pack *p, struct oct_error *err)
{
    const uint64_t began = oct_clock_ns();
    oct_hdf5_lock();
    enum oct_err e = open_files(p, err);
    e = e ? e : write_copy(p, err);
    close_files(p);
    oct_hdf5_unlock();
    /* Where the disk failed it does not matter what libhdf5 then said. */
    if (p->to_image.raw_errno || (!e && p->n > 0))
        e = store(p, err);
    p->report->pack_s = 1e-9 * (double)(oct_clock_ns() - began);
    return e;
}

static void finish(struct pack *p, bool keep)
{
    for (unsigned i = 0; i < p->n; i++) {
        free(p->arrays[i].name);
        free(p->arrays[i].crc);
    }
    free(p->arrays);
    oct_hdf5_copy_finish(&p->copy);
    oct_hdf5_image_finish(&p->from_image);
    oct_hdf5_image_finish(&p->to_image);
    oct_volume_reader_destroy(p->reader);
    if (p->in_fd >= 0)
        close(p->in_fd);
    if (p->out_fd >= 0)
        close(p->out_fd);
    if (p->out_fd >= 0 && !keep)
        unlink(p->out);
}

enum oct_err oct_volume_pack(const char *in, const char *out,
                             const struct oct_volume_pack_options *options,
                             struct oct_volume_pack_report *report, struct oct_error *err)
{
    struct pack p = {.in = in,
                     .out = out,
                     .options = options,
                     .report = report,
                     .in_fd = -1,
                     .out_fd = -1,
                     .from = H5I_INVALID_HID,
                     .to = H5I_INVALID_HID};
    *report = (struct oct_volume_pack_report){0};
    enum oct_err e = oct_volume_closed_open(&p.in_fd, in, false, err);
    e = e ? e : oct_volume_open(&p.reader, in, err);
    e = e ? e : write_all(&p, err);
    if (!e && p.n > 0)
        e = verify(&p, err);
    report->file_bytes = p.in_fd >= 0 ? on_disk(p.in_fd) : 0;
    report->packed_file_bytes = p.out_fd >= 0 ? on_disk(p.out_fd) : 0;
    finish(&p, !e && p.n > 0);
    return e;
}
