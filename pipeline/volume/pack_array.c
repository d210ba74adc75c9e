#include "pipeline/volume/pack_array.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/crc32c.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_BYTES ((uint64_t)64 << 10)
#define SMALL_ROW_BYTES ((uint64_t)128 << 10)
#define SMALL_CHUNK_BYTES ((uint64_t)256 << 10)
#define MOST_CHUNK_BYTES ((uint64_t)512 << 10)
#define GROUP_BYTES ((uint64_t)8 << 20)
#define MOST_ROW_BYTES ((uint64_t)1 << 30)
#define MOST_SPARSE 2048u /* bytes of values to one in the file */

/* ---- how ---- */

static void choose_chunk(struct oct_pack_array *a)
{
    const uint64_t row = a->row_bytes;
    memcpy(a->chunk, a->dims, sizeof(a->chunk));
    a->chunk[0] = 1;
    if (row < SMALL_ROW_BYTES)
        a->chunk[0] = row < SMALL_CHUNK_BYTES / 2 ? SMALL_CHUNK_BYTES / row : 1;
    if (a->chunk[0] > a->dims[0])
        a->chunk[0] = a->dims[0];
    if (a->rank > 1 && row > MOST_CHUNK_BYTES) {
        uint64_t n_parts = (row + MOST_CHUNK_BYTES - 1) / MOST_CHUNK_BYTES;
        n_parts = n_parts < a->dims[1] ? n_parts : a->dims[1];
        a->chunk[1] = (a->dims[1] + n_parts - 1) / n_parts;
    }
    const uint64_t chunk_rows_bytes = a->chunk[0] * row;
    const uint64_t n = chunk_rows_bytes < GROUP_BYTES ? GROUP_BYTES / chunk_rows_bytes : 1;
    a->group = n * a->chunk[0];
}

static bool has_values(hid_t dataset, size_t *value_bytes)
{
    const hid_t type = H5Dget_type(dataset);
    const H5T_class_t class = type < 0 ? H5T_NO_CLASS : H5Tget_class(type);
    *value_bytes = type < 0 ? 0 : H5Tget_size(type);
    OCT_HDF5_CLOSE(type);
    return (class == H5T_INTEGER || class == H5T_FLOAT) && *value_bytes >= 1 && *value_bytes <= 16;
}

static bool is_packed(hid_t dataset, bool *zeros_are_free)
{
    const hid_t properties = H5Dget_create_plist(dataset);
    H5D_fill_value_t fill = H5D_FILL_VALUE_ERROR;
    const bool packed = properties < 0 || H5Pget_nfilters(properties) != 0 ||
                        H5Pfill_value_defined(properties, &fill) < 0;
    *zeros_are_free = fill != H5D_FILL_VALUE_USER_DEFINED;
    OCT_HDF5_CLOSE(properties);
    return packed;
}

bool oct_pack_array_plan(struct oct_pack_array *array, hid_t dataset)
{
    struct oct_pack_array *a = array;
    hsize_t dims[H5S_MAX_RANK] = {0};
    const hid_t space = H5Dget_space(dataset);
    const bool is_array = space >= 0 && H5Sget_simple_extent_type(space) == H5S_SIMPLE;
    *a = (struct oct_pack_array){.rank =
                                     is_array ? H5Sget_simple_extent_dims(space, dims, NULL) : -1};
    OCT_HDF5_CLOSE(space);
    if (a->rank < 1 || a->rank > OCT_PACK_MAX_RANK || !has_values(dataset, &a->value_bytes) ||
        is_packed(dataset, &a->zeros_are_free))
        return false;
    uint64_t row = a->value_bytes;
    for (int i = 0; i < a->rank; i++) {
        a->dims[i] = dims[i];
        if (dims[i] == 0 || (i > 0 && dims[i] > MOST_ROW_BYTES / row))
            return false;
        row *= i > 0 ? dims[i] : 1;
    }
    if (a->dims[0] > UINT64_MAX / row || a->dims[0] * row < LEAST_BYTES)
        return false;
    /* What was never written takes no space and may claim any size: it is copied as it is. */
    const uint64_t stored = H5Dget_storage_size(dataset);
    if (stored == 0 || a->dims[0] * row / MOST_SPARSE > stored)
        return false;
    a->row_bytes = (size_t)row;
    choose_chunk(a);
    return true;
}

/* The fill value is of the dataset's own type. */
static bool copy_fill(hid_t from, hid_t to, hid_t type)
{
    unsigned char value[16];
    const hid_t properties = H5Dget_create_plist(from);
    const bool ok = properties >= 0 && H5Pget_fill_value(properties, type, value) >= 0 &&
                    H5Pset_fill_value(to, type, value) >= 0;
    OCT_HDF5_CLOSE(properties);
    return ok;
}

hid_t oct_pack_array_make(const struct oct_pack_array *array, hid_t from, hid_t file,
                          unsigned level)
{
    const struct oct_pack_array *a = array;
    const hid_t stored = H5Dget_type(from), space = H5Dget_space(from);
    const hid_t type = stored < 0 ? H5I_INVALID_HID : H5Tcopy(stored);
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    hid_t dataset = H5I_INVALID_HID;
    if (type >= 0 && space >= 0 && properties >= 0 &&
        H5Pset_chunk(properties, a->rank, a->chunk) >= 0 &&
        (a->value_bytes == 1 || H5Pset_shuffle(properties) >= 0) &&
        H5Pset_deflate(properties, level) >= 0 && H5Pset_obj_track_times(properties, 0) >= 0 &&
        (a->zeros_are_free || copy_fill(from, properties, type)))
        dataset = H5Dcreate2(file, a->name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    OCT_HDF5_CLOSE(properties, type, space, stored);
    return dataset;
}

/* ---- reading ---- */

static enum oct_err refuse(const struct oct_pack_array *a, const char *what, struct oct_error *err)
{
    char reason[160];
    oct_hdf5_reason(reason, sizeof(reason));
    return oct_fail(err, OCT_E_IO, "%s: %s%s%s", a->name, what, reason[0] ? ": " : "", reason);
}

static uint32_t crc_count(const struct oct_pack_array *a, hsize_t n)
{
    return a->rank == 1 ? 1 : (uint32_t)n; /* a row of rank 1 is a single value */
}

/* That of the group of rows which begins with row `first`; dims[0]: how many there are. */
static size_t crc_place(const struct oct_pack_array *a, hsize_t first)
{
    return (size_t)(a->rank == 1 ? (first + a->group - 1) / a->group : first);
}

/* Reads n rows as they are stored, and times it. */
static enum oct_err read_rows(const struct oct_pack_array *a, hid_t dataset, hsize_t first,
                              hsize_t n, unsigned char *rows, struct oct_pack_watch *watch,
                              struct oct_error *err)
{
    hsize_t start[OCT_PACK_MAX_RANK] = {first}, count[OCT_PACK_MAX_RANK];
    const uint64_t began = oct_clock_ns();
    memcpy(count, a->dims, sizeof(count));
    count[0] = n;
    const hid_t type = H5Dget_type(dataset), from = H5Dget_space(dataset);
    const hid_t to = H5Screate_simple(a->rank, count, NULL);
    const bool ok = type >= 0 && from >= 0 && to >= 0 &&
                    H5Sselect_hyperslab(from, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
                    H5Dread(dataset, type, to, from, H5P_DEFAULT, rows) >= 0;
    const enum oct_err e = ok ? OCT_OK : refuse(a, "cannot be read", err);
    OCT_HDF5_CLOSE(to, from, type);
    watch->read_s += 1e-9 * (double)(oct_clock_ns() - began);
    return e;
}

static hsize_t rows_at(const struct oct_pack_array *a, hsize_t first)
{
    return a->dims[0] - first < a->group ? a->dims[0] - first : a->group;
}

static void take_crc(const struct oct_pack_array *a, const unsigned char *rows, hsize_t n,
                     uint32_t *crc)
{
    const uint32_t n_crc = crc_count(a, n);
    const size_t bytes = (size_t)(n / n_crc) * a->row_bytes;
    for (uint32_t i = 0; i < n_crc; i++)
        crc[i] = oct_crc32c(rows + i * bytes, bytes);
}

/* ---- packing ---- */

/* Chunks of one group of rows. */
struct batch {
    struct oct_deflate_job *jobs;
    hsize_t (*place)[OCT_PACK_MAX_RANK]; /* [n] where each begins */
    size_t n, room, chunk_bytes, job_bytes;
    unsigned char *memory; /* [room][job_bytes] */
};

static hsize_t parts_of_row(const struct oct_pack_array *a)
{
    return a->rank > 1 ? (a->dims[1] + a->chunk[1] - 1) / a->chunk[1] : 1;
}

static bool batch_init(struct batch *b, const struct oct_pack_array *a)
{
    b->chunk_bytes = a->value_bytes;
    for (int i = 0; i < a->rank; i++)
        b->chunk_bytes *= (size_t)a->chunk[i];
    b->room = (size_t)(a->group / a->chunk[0] * parts_of_row(a));
    const size_t bound = oct_deflate_bound(b->chunk_bytes);
    b->job_bytes = 2 * b->chunk_bytes + bound;
    b->jobs = calloc(b->room, sizeof(*b->jobs));
    b->place = calloc(b->room, sizeof(*b->place));
    b->memory = b->job_bytes > SIZE_MAX / b->room ? NULL : malloc(b->job_bytes * b->room);
    if (!b->jobs || !b->place || !b->memory)
        return false;
    for (size_t i = 0; i < b->room; i++) {
        unsigned char *own = b->memory + i * b->job_bytes;
        b->jobs[i] = (struct oct_deflate_job){.bytes = own,
                                              .shuffled = own + b->chunk_bytes,
                                              .packed = own + 2 * b->chunk_bytes,
                                              .n_bytes = b->chunk_bytes,
                                              .value_bytes = a->value_bytes};
    }
    return true;
}

static void batch_finish(struct batch *b)
{
    free(b->jobs);
    free(b->place);
    free(b->memory);
}

/* Cuts n rows from `first` on into chunks; beyond the array's end they are zeros. */
static void cut(struct batch *b, const struct oct_pack_array *a, const unsigned char *rows,
                hsize_t first, hsize_t n)
{
    const size_t line_bytes = a->rank > 1 ? a->row_bytes / (size_t)a->dims[1] : a->row_bytes;
    const hsize_t n_lines = a->rank > 1 ? a->dims[1] : 1, a_part = a->rank > 1 ? a->chunk[1] : 1;
    b->n = 0;
    for (hsize_t v = 0; v < n; v += a->chunk[0])
        for (hsize_t line = 0; line < n_lines; line += a_part) {
            unsigned char *to = b->memory + b->n * b->job_bytes;
            const hsize_t n_rows = n - v < a->chunk[0] ? n - v : a->chunk[0];
            const hsize_t part = n_lines - line < a_part ? n_lines - line : a_part;
            /* Either whole rows, or lines of a single one: one piece of memory. */
            const size_t bytes = (size_t)n_rows * (size_t)part * line_bytes;
            memcpy(to, rows + (size_t)v * a->row_bytes + (size_t)line * line_bytes, bytes);
            memset(to + bytes, 0, b->chunk_bytes - bytes);
            b->place[b->n][0] = first + v;
            if (a->rank > 1)
                b->place[b->n][1] = line;
            b->n++;
        }
}

static enum oct_err write_batch(const struct oct_pack_array *a, const struct batch *b, hid_t to,
                                struct oct_error *err)
{
    for (size_t i = 0; i < b->n; i++) {
        const struct oct_deflate_job *job = &b->jobs[i];
        if (job->is_zero && a->zeros_are_free)
            continue;
        if (job->n_packed == 0)
            return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory for packing", a->name);
        if (H5Dwrite_chunk(to, H5P_DEFAULT, 0, b->place[i], job->n_packed, job->packed) < 0)
            return refuse(a, "cannot be written", err);
    }
    return OCT_OK;
}

static enum oct_err check_disk(const struct oct_hdf5_image *image, struct oct_error *err)
{
    if (image->raw_errno)
        return oct_fail_errno(err, OCT_E_IO, image->raw_errno, "cannot be written");
    return image->failed ? oct_fail(err, OCT_E_NO_MEMORY, "out of memory") : OCT_OK;
}

struct work {
    struct oct_pack_array *array;
    struct oct_deflate *deflate;
    struct batch batch[2];
    unsigned char *rows;
};

static enum oct_err work_init(struct work *w, struct oct_error *err)
{
    struct oct_pack_array *a = w->array;
    a->crc = calloc(crc_place(a, a->dims[0]), sizeof(*a->crc));
    w->rows = malloc((size_t)a->group * a->row_bytes);
    if (a->crc && w->rows && batch_init(&w->batch[0], a) && batch_init(&w->batch[1], a))
        return OCT_OK;
    oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory for packing", a->name);
    return OCT_E_NO_MEMORY;
}

/* While one batch is packed the one before is written and the next is read. */
enum oct_err oct_pack_array_fill(struct oct_pack_array *array, hid_t from, hid_t to,
                                 struct oct_deflate *deflate, const struct oct_hdf5_image *image,
                                 struct oct_pack_watch *watch, struct oct_error *err)
{
    struct oct_pack_array *a = array;
    struct work w = {.array = a, .deflate = deflate};
    unsigned which = 0;
    enum oct_err e = work_init(&w, err);
    for (hsize_t first = 0; first < a->dims[0] && !e; first += a->group, which ^= 1) {
        const hsize_t n = rows_at(a, first);
        e = read_rows(a, from, first, n, w.rows, watch, err);
        if (e)
            break;
        take_crc(a, w.rows, n, a->crc + crc_place(a, first));
        cut(&w.batch[which], a, w.rows, first, n);
        oct_deflate_wait(deflate); /* for the other batch */
        oct_deflate_start(deflate, w.batch[which].jobs, w.batch[which].n);
        if (first > 0)
            e = write_batch(a, &w.batch[which ^ 1], to, err);
        e = e ? e : check_disk(image, err);
        e = e ? e : watch->rows(watch->context, a, first, n, err);
    }
    oct_deflate_wait(deflate);
    e = e ? e : write_batch(a, &w.batch[which ^ 1], to, err);
    e = e ? e : check_disk(image, err);
    batch_finish(&w.batch[0]);
    batch_finish(&w.batch[1]);
    free(w.rows);
    return e;
}

/* ---- comparing ---- */

enum oct_err oct_pack_array_verify(const struct oct_pack_array *array, hid_t packed,
                                   struct oct_pack_watch *watch, struct oct_error *err)
{
    const struct oct_pack_array *a = array;
    unsigned char *rows = malloc((size_t)a->group * a->row_bytes);
    uint32_t *crc = calloc((size_t)a->group, sizeof(*crc));
    enum oct_err e = OCT_OK;
    if (!rows || !crc)
        e = oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", a->name);
    for (hsize_t first = 0; first < a->dims[0] && rows && crc && !e; first += a->group) {
        const hsize_t n = rows_at(a, first);
        e = read_rows(a, packed, first, n, rows, watch, err);
        if (e)
            break;
        take_crc(a, rows, n, crc);
        if (memcmp(crc, a->crc + crc_place(a, first), crc_count(a, n) * sizeof(*crc)) != 0)
            e = oct_fail(err, OCT_E_IO, "%s: the packed copy reads back otherwise", a->name);
        e = e ? e : watch->rows(watch->context, a, first, n, err);
    }
    free(rows);
    free(crc);
    return e;
}
