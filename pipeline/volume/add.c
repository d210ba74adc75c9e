#define _GNU_SOURCE /* TEMP_FAILURE_RETRY */
/* Further arrays in a closed file: the ground truth of synthetic recordings. */
#include "pipeline/volume/volume.h"

#include "pipeline/volume/hdf5_image.h"
#include "pipeline/volume/hdf5_make.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

struct addition {
    const char *name, *units;
    const double *values;
    unsigned rank;
    const size_t *dims;
};

/* Adds the array to the image in memory; the file is not changed yet. Under the lock. */
static bool put(struct oct_hdf5_image *image, const struct addition *a,
                struct oct_hdf5_reason *reason)
{
    hid_t array = H5I_INVALID_HID;
    uint64_t extent[3];
    bool ok = false;
    hid_t file = oct_hdf5_image_open(image, H5F_ACC_RDWR, 1, reason->text, sizeof(reason->text));
    for (unsigned i = 0; i < a->rank; i++)
        extent[i] = a->dims[i];
    if (file >= 0)
        array = oct_hdf5_make_dataset(file, a->name, H5T_IEEE_F64LE, a->rank, extent, NULL, reason);
    if (array >= 0) {
        ok = H5Dwrite(array, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, a->values) >= 0;
        if (!ok)
            oct_hdf5_reason(reason->text, sizeof(reason->text));
        ok = ok && (!a->units || oct_hdf5_put_text(array, "units", a->units, reason));
        H5Dclose(array);
    }
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
    bool ok = put(&image, a, &reason);
    oct_hdf5_unlock();
    enum oct_err e =
        ok ? oct_hdf5_image_store(&image, fd, path, &n_bytes, err)
           : oct_fail(err, OCT_E_IO, "%s: cannot add %s: %s", path, a->name, reason.text);
    oct_hdf5_image_finish(&image);
    return e;
}

static enum oct_err build_empty(struct oct_hdf5_image *image, const char *path,
                                struct oct_error *err)
{
    char reason[160] = "";
    oct_hdf5_lock();
    hid_t file = oct_hdf5_image_open(image, H5F_ACC_TRUNC, 1, reason, sizeof(reason));
    if (file >= 0)
        H5Fclose(file);
    oct_hdf5_unlock();
    return file >= 0 ? OCT_OK : oct_fail(err, OCT_E_IO, "%s: cannot be made: %s", path, reason);
}

enum oct_err oct_volume_create_empty(const char *path, struct oct_error *err)
{
    struct oct_hdf5_image image;
    uint64_t n_bytes;
    int fd = (int)TEMP_FAILURE_RETRY(open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (fd < 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", path);
    oct_hdf5_image_init(&image, -1, 0);
    enum oct_err e = build_empty(&image, path, err);
    e = e ? e : oct_hdf5_image_store(&image, fd, path, &n_bytes, err);
    oct_hdf5_image_finish(&image);
    close(fd);
    return e;
}

enum oct_err oct_volume_add_f64(const char *path, const char *dataset, const double *values,
                                unsigned rank, const size_t *dims, const char *attribute_units,
                                struct oct_error *err)
{
    const struct addition a = {dataset, attribute_units, values, rank, dims};
    if (rank > 3)
        return oct_fail(err, OCT_E_ARG, "%s: %s: %u axes, at most 3 can be stored", path, dataset,
                        rank);
    int fd = (int)TEMP_FAILURE_RETRY(open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC));
    enum oct_err e = add(fd, path, &a, err);
    if (fd >= 0)
        close(fd);
    return e;
}
