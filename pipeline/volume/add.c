#define _GNU_SOURCE /* TEMP_FAILURE_RETRY */
/* Further arrays in a closed file: the ground truth of synthetic recordings. */
#include "pipeline/volume/volume.h"

#include "pipeline/volume/hdf5_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

/* Sets `reason` right where a call fails: libhdf5 forgets it at the next call. */
static hid_t create_array(hid_t file, const char *name, unsigned rank, const size_t *dims,
                          char *reason, size_t reason_bytes)
{
    hsize_t extent[3];
    for (unsigned i = 0; i < rank; i++)
        extent[i] = dims[i];
    hid_t links = H5Pcreate(H5P_LINK_CREATE);
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = rank ? H5Screate_simple((int)rank, extent, NULL) : H5Screate(H5S_SCALAR);
    hid_t dataset = H5I_INVALID_HID;
    if (H5Pset_create_intermediate_group(links, 1) >= 0 &&
        H5Pset_obj_track_times(properties, 0) >= 0) /* same seed, same bytes */
        dataset = H5Dcreate2(file, name, H5T_IEEE_F64LE, space, links, properties, H5P_DEFAULT);
    if (dataset < 0)
        oct_hdf5_reason(reason, reason_bytes);
    if (space >= 0)
        H5Sclose(space);
    if (properties >= 0)
        H5Pclose(properties);
    if (links >= 0)
        H5Pclose(links);
    return dataset;
}

static bool put_units(hid_t dataset, const char *units)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attribute = H5I_INVALID_HID;
    if (H5Tset_size(type, H5T_VARIABLE) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0)
        attribute = H5Acreate2(dataset, "units", type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool ok = attribute >= 0 && H5Awrite(attribute, type, &units) >= 0;
    if (attribute >= 0)
        H5Aclose(attribute);
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    return ok;
}

struct addition {
    const char *name, *units;
    const double *values;
    unsigned rank;
    const size_t *dims;
};

/* Adds the array to the image in memory; the file is not changed yet. Under the lock. */
static bool put(struct oct_hdf5_image *image, const struct addition *a, char *reason,
                size_t reason_bytes)
{
    hid_t array = H5I_INVALID_HID;
    bool ok = false;
    hid_t file = oct_hdf5_image_open(image, H5F_ACC_RDWR, 1, reason, reason_bytes);
    if (file >= 0)
        array = create_array(file, a->name, a->rank, a->dims, reason, reason_bytes);
    if (array >= 0) {
        ok = H5Dwrite(array, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, a->values) >= 0 &&
             (!a->units || put_units(array, a->units));
        if (!ok)
            oct_hdf5_reason(reason, reason_bytes);
        H5Dclose(array);
    }
    if (file >= 0 && H5Fclose(file) < 0 && ok) {
        ok = false;
        oct_hdf5_reason(reason, reason_bytes);
    }
    return ok;
}

static enum oct_err add(int fd, const char *path, const struct addition *a, struct oct_error *err)
{
    struct stat st;
    struct oct_hdf5_image image;
    char reason[160] = "";
    uint64_t n_bytes;
    if (fd < 0 || fstat(fd, &st) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot open", path);
    if (!S_ISREG(st.st_mode))
        return oct_fail(err, OCT_E_IO, "%s: not a file", path);
    oct_hdf5_image_init(&image, fd, (uint64_t)st.st_size);
    oct_hdf5_lock();
    bool ok = put(&image, a, reason, sizeof(reason));
    oct_hdf5_unlock();
    enum oct_err e = ok ? oct_hdf5_image_store(&image, fd, path, &n_bytes, err)
                        : oct_fail(err, OCT_E_IO, "%s: cannot add %s: %s", path, a->name, reason);
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
    if (e == OCT_OK)
        e = oct_hdf5_image_store(&image, fd, path, &n_bytes, err);
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
