#define _GNU_SOURCE /* TEMP_FAILURE_RETRY */
/* What is added to a closed file: further arrays, as the ground truth of synthetic recordings, and
 * attributes of its root. */
#include "pipeline/volume/volume.h"

#include "pipeline/volume/hdf5_image.h"
#include "pipeline/volume/hdf5_make.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

struct addition {
    const char *name; /* of the array, or "attributes" */

    const double *values; /* NULL: notes */
    const char *units;
    unsigned rank;
    const size_t *dims;

    const struct oct_volume_note *notes; /* [n_notes] */
    unsigned n_notes;
};

static bool put_array(hid_t file, const struct addition *a, struct oct_hdf5_reason *reason)
{
    uint64_t extent[3];
    for (unsigned i = 0; i < a->rank; i++)
        extent[i] = a->dims[i];
    const hid_t array =
        oct_hdf5_make_dataset(file, a->name, H5T_IEEE_F64LE, a->rank, extent, NULL, reason);
    bool ok = array >= 0;
    if (ok && H5Dwrite(array, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, a->values) < 0) {
        ok = false;
        oct_hdf5_reason(reason->text, sizeof(reason->text));
    }
    ok = ok && (!a->units || oct_hdf5_put_text(array, "units", a->units, reason));
    OCT_HDF5_CLOSE(array);
    return ok;
}

static bool put_notes(hid_t file, const struct addition *a, struct oct_hdf5_reason *reason)
{
    bool ok = true;
    for (const struct oct_volume_note *n = a->notes; ok && n < a->notes + a->n_notes; n++)
        ok = n->text ? oct_hdf5_put_text(file, n->name, n->text, reason)
                     : oct_hdf5_put_attribute(file, n->name, H5T_STD_U64LE, H5T_NATIVE_UINT64, 0,
                                              &n->number, reason);
    return ok;
}

/* Into the image in memory; the file is not changed yet. Under the lock. */
static bool put(struct oct_hdf5_image *image, const struct addition *a,
                struct oct_hdf5_reason *reason)
{
    const hid_t file =
        oct_hdf5_image_open(image, H5F_ACC_RDWR, 1, reason->text, sizeof(reason->text));
    bool ok = file >= 0 && (a->values ? put_array(file, a, reason) : put_notes(file, a, reason));
    if (file >= 0 && H5Fclose(file) < 0 && ok) {
        ok = false;
        oct_hdf5_reason(reason->text, sizeof(reason->text));
    }
    return ok;
}

static enum oct_err add(int fd, const char *path, const struct addition *a, struct oct_error *err)
{
    struct stat st;
    struct oct_hdf5_image image;
    struct oct_hdf5_reason reason = {.text = ""};
    uint64_t n_bytes;
    if (fd < 0 || fstat(fd, &st) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot open", path);
    if (!S_ISREG(st.st_mode))
        return oct_fail(err, OCT_E_IO, "%s: not a file", path);
    oct_hdf5_image_init(&image, fd, (uint64_t)st.st_size);
    oct_hdf5_lock();
    const bool ok = put(&image, a, &reason);
    oct_hdf5_unlock();
    const enum oct_err e =
        ok ? oct_hdf5_image_store(&image, fd, path, &n_bytes, err)
           : oct_fail(err, OCT_E_IO, "%s: cannot add %s: %s", path, a->name, reason.text);
    oct_hdf5_image_finish(&image);
    return e;
}

static enum oct_err add_to(const char *path, const struct addition *a, struct oct_error *err)
{
    const int fd = (int)TEMP_FAILURE_RETRY(open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC));
    const enum oct_err e = add(fd, path, a, err);
    if (fd >= 0)
        close(fd);
    return e;
}

enum oct_err oct_volume_add_f64(const char *path, const char *dataset, const double *values,
                                unsigned rank, const size_t *dims, const char *attribute_units,
                                struct oct_error *err)
{
    const struct addition a = {
        .name = dataset, .values = values, .units = attribute_units, .rank = rank, .dims = dims};
    if (rank > 3)
        return oct_fail(err, OCT_E_ARG, "%s: %s: %u axes, at most 3 can be stored", path, dataset,
                        rank);
    return add_to(path, &a, err);
}

enum oct_err oct_volume_add_notes(const char *path, const struct oct_volume_note *notes, unsigned n,
                                  struct oct_error *err)
{
    const struct addition a = {.name = "attributes", .notes = notes, .n_notes = n};
    return add_to(path, &a, err);
}

enum oct_err oct_volume_create_empty(const char *path, struct oct_error *err)
{
    struct oct_hdf5_image image;
    uint64_t n_bytes;
    char reason[160] = "";
    const int fd =
        (int)TEMP_FAILURE_RETRY(open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (fd < 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", path);
    oct_hdf5_image_init(&image, -1, 0);
    oct_hdf5_lock();
    const hid_t file = oct_hdf5_image_open(&image, H5F_ACC_TRUNC, 1, reason, sizeof(reason));
    if (file >= 0)
        H5Fclose(file);
    oct_hdf5_unlock();
    const enum oct_err e = file >= 0
                               ? oct_hdf5_image_store(&image, fd, path, &n_bytes, err)
                               : oct_fail(err, OCT_E_IO, "%s: cannot be made: %s", path, reason);
    oct_hdf5_image_finish(&image);
    close(fd);
    return e;
}
