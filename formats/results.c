#define _GNU_SOURCE /* TEMP_FAILURE_RETRY */
#include "formats/results.h"

#include "formats/whole_file.h"
#include "pipeline/base/utf8.h"
#include "pipeline/volume/hdf5_axes.h"
#include "pipeline/volume/hdf5_make.h"
#include "pipeline/volume/hdf5_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "values are written as they lie in memory"
#endif

struct dataset {
    hid_t id;
    enum oct_results_type type;
    unsigned rank;
    hsize_t dims[OCT_RESULTS_MOST_RANK];
};

struct oct_results {
    struct oct_whole_file file;
    hid_t h5;
    struct dataset datasets[OCT_RESULTS_MOST_DATASETS];
    unsigned n;
    struct oct_hdf5_scales scales;
    struct oct_error failure; /* the first; code OCT_OK: none */
};

/* Little-endian as this machine is: on the disk and in memory the same. */
static hid_t type_of(enum oct_results_type type)
{
    switch (type) {
    case OCT_RESULTS_F64:
        return H5T_IEEE_F64LE;
    case OCT_RESULTS_F32:
        return H5T_IEEE_F32LE;
    case OCT_RESULTS_U64:
        return H5T_STD_U64LE;
    case OCT_RESULTS_U32:
        return H5T_STD_U32LE;
    case OCT_RESULTS_I64:
        return H5T_STD_I64LE;
    default:
        return H5T_STD_U8LE;
    }
}

/* The first failure is kept. */
static void note(struct oct_results *r, const char *what, const struct oct_hdf5_reason *reason)
{
    int errnum;
    if (r->failure.code)
        return;
    const char *number = strstr(reason->text, "errno = "); /* the system's own, among much else */
    if (number && (errnum = (int)strtol(number + 8, NULL, 10)) > 0)
        oct_fail_errno(&r->failure, OCT_E_IO, errnum, "%s: cannot write %s", r->file.path, what);
    else
        oct_fail(&r->failure, OCT_E_IO, "%s: cannot write %s: %s", r->file.path, what,
                 reason->text);
}

/* Under the lock, right behind the call that failed: libhdf5 forgets its reason at the next. */
static void note_failure(struct oct_results *r, const char *what)
{
    struct oct_hdf5_reason reason;
    oct_hdf5_reason(reason.text, sizeof(reason.text));
    note(r, what, &reason);
}

enum oct_err oct_results_create(struct oct_results **results, const char *path, const char *kind,
                                bool force, struct oct_error *err)
{
    *results = NULL;
    struct oct_results *r = calloc(1, sizeof(*r));
    if (!r)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    enum oct_err e = oct_whole_file_init(&r->file, path, force, err);
    if (e) {
        free(r);
        return e;
    }
    oct_hdf5_lock();
    r->h5 = H5Fcreate(r->file.work, H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT);
    if (r->h5 < 0)
        note_failure(r, "its beginning");
    oct_hdf5_unlock();
    oct_results_text(r, NULL, "software", "octd " OCT_VERSION);
    oct_results_text(r, NULL, "kind", kind);
    if (r->failure.code) {
        e = oct_results_error(r, err);
        oct_results_discard(r);
        return e;
    }
    *results = r;
    return OCT_OK;
}

/* ---- results that are there ---- */

#define COPY_BYTES ((size_t)1 << 20)

static enum oct_err copy_all(int from, int to, const char *path, struct oct_error *err)
{
    ssize_t n = 0;
    char *buffer = malloc(COPY_BYTES);
    if (!buffer)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    bool ok = true;
    while (ok && (n = TEMP_FAILURE_RETRY(read(from, buffer, COPY_BYTES))) > 0)
        for (ssize_t done = 0, put = 0; ok && done < n; done += put) {
            put = TEMP_FAILURE_RETRY(write(to, buffer + done, (size_t)(n - done)));
            ok = put > 0;
        }
    const int errnum = errno;
    free(buffer);
    return ok && n == 0 ? OCT_OK
                        : oct_fail_errno(err, OCT_E_IO, errnum, "%s: cannot be copied", path);
}

static enum oct_err copy_file(const char *path, const char *work, struct oct_error *err)
{
    struct stat st;
    const int from = (int)TEMP_FAILURE_RETRY(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (from < 0 || fstat(from, &st) != 0) {
        const int errnum = errno;
        if (from >= 0)
            close(from);
        return oct_fail_errno(err, OCT_E_IO, errnum, "%s: cannot open", path);
    }
    if (!S_ISREG(st.st_mode)) {
        close(from);
        return oct_fail(err, OCT_E_IO, "%s: not a file", path);
    }
    const int to = (int)TEMP_FAILURE_RETRY(
        open(work, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, st.st_mode & 0777));
    enum oct_err e = to < 0 ? oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be made", work)
                            : copy_all(from, to, path, err);
    if (to >= 0 && close(to) != 0 && !e)
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be copied", path);
    close(from);
    return e;
}

/* In a child: what a damaged file does to libhdf5. */
static void look_at(const char *path)
{
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    H5O_info_t info;
    if (file >= 0)
        (void)H5Oget_info(file, &info);
    if (file >= 0)
        H5Fclose(file);
}

/* Under the lock. */
static enum oct_err open_copy(struct oct_results *r, const char *group, bool replace,
                              struct oct_error *err)
{
    const char *path = r->file.path;
    struct oct_hdf5_reason reason;
    enum oct_err e = oct_hdf5_probe(r->file.work, look_at, err);
    if (e)
        return e == OCT_E_CLOSED ? e : oct_fail(err, OCT_E_FORMAT, "%s: damaged, or no HDF5", path);
    r->h5 = H5Fopen(r->file.work, H5F_ACC_RDWR, H5P_DEFAULT);
    if (r->h5 < 0)
        return oct_fail(err, OCT_E_FORMAT, "%s: damaged, or no HDF5: %s", path,
                        oct_hdf5_reason(reason.text, sizeof(reason.text)));
    const htri_t is_there = H5Lexists(r->h5, group, H5P_DEFAULT);
    if (is_there > 0 && !replace)
        return oct_fail(err, OCT_E_ARG, "%s: holds %s already; --force replaces them", path, group);
    if (is_there < 0 || (is_there > 0 && H5Ldelete(r->h5, group, H5P_DEFAULT) < 0))
        return oct_fail(err, OCT_E_FORMAT, "%s: %s cannot be replaced: %s", path, group,
                        oct_hdf5_reason(reason.text, sizeof(reason.text)));
    return OCT_OK;
}

enum oct_err oct_results_amend(struct oct_results **results, const char *path, const char *group,
                               bool replace, struct oct_error *err)
{
    *results = NULL;
    struct oct_results *r = calloc(1, sizeof(*r));
    if (!r)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    r->h5 = H5I_INVALID_HID;
    enum oct_err e = oct_whole_file_init(&r->file, path, true, err);
    e = e ? e : copy_file(path, r->file.work, err);
    if (!e) {
        oct_hdf5_lock();
        e = open_copy(r, group, replace, err);
        oct_hdf5_unlock();
    }
    if (e)
        oct_results_discard(r);
    else
        *results = r;
    return e;
}

/* ---- attributes ---- */

/* Under the lock. n 0: a scalar. */
static void attribute(struct oct_results *r, const char *object, const char *name, hid_t type,
                      size_t n, const void *value)
{
    struct oct_hdf5_reason reason;
    if (r->failure.code)
        return;
    hid_t id = H5Oopen(r->h5, object ? object : "/", H5P_DEFAULT);
    if (id < 0)
        note_failure(r, name);
    else if (!oct_hdf5_put_attribute(id, name, type, type, n, value, &reason))
        note(r, name, &reason);
    OCT_HDF5_CLOSE(id);
}

void oct_results_text(struct oct_results *results, const char *object, const char *name,
                      const char *text)
{
    struct oct_hdf5_reason reason;
    char *copy = strdup(text ? text : "");
    if (!copy) {
        oct_fail(&results->failure, OCT_E_NO_MEMORY, "%s: out of memory", results->file.path);
        return;
    }
    oct_utf8_repair(copy);
    oct_hdf5_lock();
    hid_t type = oct_hdf5_make_text_type(&reason);
    if (type >= 0)
        attribute(results, object, name, type, 0, &copy);
    else
        note(results, name, &reason);
    OCT_HDF5_CLOSE(type);
    oct_hdf5_unlock();
    free(copy);
}

void oct_results_number(struct oct_results *results, const char *object, const char *name,
                        double value)
{
    oct_results_numbers(results, object, name, &value, 0);
}

void oct_results_numbers(struct oct_results *results, const char *object, const char *name,
                         const double *values, size_t n)
{
    oct_hdf5_lock();
    attribute(results, object, name, H5T_IEEE_F64LE, n, values);
    oct_hdf5_unlock();
}

void oct_results_count(struct oct_results *results, const char *object, const char *name,
                       uint64_t value)
{
    oct_hdf5_lock();
    attribute(results, object, name, H5T_STD_U64LE, 0, &value);
    oct_hdf5_unlock();
}

/* ---- datasets ---- */

/* Under the lock. */
static hid_t make_dataset(struct oct_results *r, const char *name, const struct dataset *d,
                          const uint64_t *dims)
{
    const double not_known = NAN;
    const bool is_float = d->type == OCT_RESULTS_F64 || d->type == OCT_RESULTS_F32;
    struct oct_hdf5_reason reason;
    hid_t id = oct_hdf5_make_dataset(r->h5, name, type_of(d->type), d->rank, dims,
                                     is_float ? &not_known : NULL, &reason);
    if (id < 0)
        note(r, name, &reason);
    return id;
}

unsigned oct_results_dataset(struct oct_results *results, const char *name,
                             enum oct_results_type type, unsigned rank, const uint64_t *dims,
                             const char *unit)
{
    struct oct_results *r = results;
    if (r->failure.code)
        return 0;
    if (r->n == OCT_RESULTS_MOST_DATASETS || rank < 1 || rank > OCT_RESULTS_MOST_RANK) {
        oct_fail(&r->failure, OCT_E_ARG, "%s: %s: no room for such a dataset", r->file.path, name);
        return 0;
    }
    struct dataset *d = &r->datasets[r->n];
    *d = (struct dataset){.type = type, .rank = rank};
    for (unsigned i = 0; i < rank; i++)
        d->dims[i] = dims[i];
    oct_hdf5_lock();
    d->id = make_dataset(r, name, d, dims);
    oct_hdf5_unlock();
    if (d->id < 0)
        return 0;
    if (unit)
        oct_results_text(r, name, "units", unit);
    return r->n++;
}

/* Under the lock. */
static void put_texts(struct oct_results *r, const char *name, char *const *texts, uint64_t n)
{
    struct oct_hdf5_reason reason;
    const hid_t type = oct_hdf5_make_text_type(&reason);
    const hid_t id =
        type < 0 ? type : oct_hdf5_make_dataset(r->h5, name, type, 1, &n, NULL, &reason);
    if (id < 0)
        note(r, name, &reason);
    else if (H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, texts) < 0)
        note_failure(r, name);
    if (id >= 0 && H5Dclose(id) < 0)
        note_failure(r, name);
    OCT_HDF5_CLOSE(type);
}

void oct_results_link(struct oct_results *r, const char *name, const char *of)
{
    if (r->failure.code)
        return;
    oct_hdf5_lock();
    const hid_t create = H5Pcreate(H5P_LINK_CREATE);
    if (H5Pset_create_intermediate_group(create, 1) < 0 ||
        H5Lcreate_soft(of, r->h5, name, create, H5P_DEFAULT) < 0)
        note_failure(r, name);
    OCT_HDF5_CLOSE(create);
    oct_hdf5_unlock();
}

void oct_results_texts(struct oct_results *results, const char *name, uint64_t n,
                       const char *(*text)(const void *context, uint64_t i), const void *context)
{
    uint64_t n_copied = 0;
    if (results->failure.code)
        return;
    char **copies = calloc(n + 1, sizeof(*copies));
    while (copies && n_copied < n && (copies[n_copied] = strdup(text(context, n_copied))))
        oct_utf8_repair(copies[n_copied++]);
    if (!copies || n_copied < n) {
        oct_fail(&results->failure, OCT_E_NO_MEMORY, "%s: out of memory", results->file.path);
    } else {
        oct_hdf5_lock();
        put_texts(results, name, copies, n);
        oct_hdf5_unlock();
    }
    for (uint64_t i = 0; i < n_copied; i++)
        free(copies[i]);
    free(copies);
}

/* Under the lock. */
static void make_scale(struct oct_results *r, const char *axis, uint64_t n, double spacing_um)
{
    const struct oct_hdf5_scales *scales = &r->scales;
    struct oct_hdf5_reason reason;
    for (unsigned i = 0; i < scales->n; i++)
        if (strcmp(scales->scale[i].axis, axis) == 0 && scales->scale[i].n == n &&
            scales->scale[i].spacing_um == spacing_um)
            return;
    double *um = malloc((n ? n : 1) * sizeof(*um));
    if (!um) {
        oct_fail(&r->failure, OCT_E_NO_MEMORY, "%s: out of memory", r->file.path);
        return;
    }
    for (uint64_t i = 0; i < n; i++)
        um[i] = (double)i * spacing_um;
    if (!oct_hdf5_scale_make(&r->scales, r->h5, -1, axis, n, um, spacing_um, "place", &reason))
        note(r, axis, &reason);
    free(um);
}

void oct_results_axes(struct oct_results *results, unsigned dataset, const char *const *names,
                      const double *spacing_um)
{
    struct oct_results *r = results;
    struct oct_hdf5_reason reason;
    uint64_t dims[OCT_RESULTS_MOST_RANK];
    if (r->failure.code || dataset >= r->n)
        return;
    const struct dataset *d = &r->datasets[dataset];
    oct_hdf5_lock();
    for (unsigned i = 0; i < d->rank; i++) {
        dims[i] = d->dims[i];
        if (spacing_um[i] > 0 && isfinite(spacing_um[i]) && !r->failure.code)
            make_scale(r, names[i], dims[i], spacing_um[i]);
    }
    if (!r->failure.code &&
        (!oct_hdf5_put_axes(d->id, d->rank, names, spacing_um, &reason) ||
         !oct_hdf5_scales_attach(&r->scales, d->id, d->rank, names, dims, spacing_um, &reason)))
        note(r, "axes", &reason);
    oct_hdf5_unlock();
}

void oct_results_write_rows(struct oct_results *results, unsigned dataset, uint64_t first,
                            uint64_t n, const void *values)
{
    struct oct_results *r = results;
    const struct dataset *d = &r->datasets[dataset];
    hsize_t start[OCT_RESULTS_MOST_RANK] = {first}, count[OCT_RESULTS_MOST_RANK];
    if (r->failure.code || dataset >= r->n || n == 0)
        return;
    memcpy(count, d->dims, sizeof(count));
    count[0] = n;
    oct_hdf5_lock();
    hid_t to = H5Dget_space(d->id), from = H5Screate_simple((int)d->rank, count, NULL);
    if (to < 0 || from < 0 ||
        H5Sselect_hyperslab(to, H5S_SELECT_SET, start, NULL, count, NULL) < 0 ||
        H5Dwrite(d->id, type_of(d->type), from, to, H5P_DEFAULT, values) < 0)
        note_failure(r, "values");
    OCT_HDF5_CLOSE(from, to);
    oct_hdf5_unlock();
}

void oct_results_write(struct oct_results *results, unsigned dataset, const void *values)
{
    if (dataset < results->n)
        oct_results_write_rows(results, dataset, 0, results->datasets[dataset].dims[0], values);
}

/* ---- the end ---- */

enum oct_err oct_results_error(const struct oct_results *results, struct oct_error *err)
{
    if (results->failure.code && err)
        *err = results->failure;
    return results->failure.code;
}

static void close_all(struct oct_results *r)
{
    oct_hdf5_lock();
    oct_hdf5_scales_close(&r->scales);
    for (unsigned i = 0; i < r->n; i++)
        if (H5Dclose(r->datasets[i].id) < 0)
            note_failure(r, "values");
    if (r->h5 >= 0 && H5Fclose(r->h5) < 0)
        note_failure(r, "its end");
    oct_hdf5_unlock();
}

enum oct_err oct_results_publish(struct oct_results *results, struct oct_error *err)
{
    struct oct_results *r = results;
    if (!r)
        return OCT_OK;
    close_all(r);
    enum oct_err e = oct_results_error(r, err);
    e = oct_whole_file_end(&r->file, e, err);
    free(r);
    return e;
}

enum oct_err oct_results_publish_as(struct oct_results *results, const char *path,
                                    struct oct_error *err)
{
    char *copy = strdup(path);
    if (!copy) {
        oct_results_discard(results);
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    }
    free(results->file.path);
    results->file.path = copy;
    return oct_results_publish(results, err);
}

void oct_results_discard(struct oct_results *results)
{
    if (!results)
        return;
    close_all(results);
    oct_whole_file_discard(&results->file);
    free(results);
}
