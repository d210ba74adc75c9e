/* Further arrays in a closed file: the ground truth of synthetic recordings. */
#include "pipeline/volume.h"

#include "pipeline/hdf5_lock.h"

/* `reason` is taken where the failure is: libhdf5 forgets it at the next call. */
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

enum oct_err oct_volume_add_f64(const char *path, const char *dataset, const double *values,
                                unsigned rank, const size_t *dims, const char *attribute_units,
                                struct oct_error *err)
{
    if (rank > 3)
        return oct_fail(err, OCT_E_ARG, "%s: %s: %u axes, at most 3 can be stored", path, dataset,
                        rank);
    char reason[160] = "";
    hid_t array = H5I_INVALID_HID;
    bool ok = false;
    oct_hdf5_lock();
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    if (file < 0)
        oct_hdf5_reason(reason, sizeof(reason));
    else
        array = create_array(file, dataset, rank, dims, reason, sizeof(reason));
    if (array >= 0) {
        ok = H5Dwrite(array, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0 &&
             (!attribute_units || put_units(array, attribute_units));
        if (!ok)
            oct_hdf5_reason(reason, sizeof(reason));
        H5Dclose(array);
    }
    if (file >= 0 && H5Fclose(file) < 0 && ok) {
        ok = false;
        oct_hdf5_reason(reason, sizeof(reason));
    }
    oct_hdf5_unlock();
    if (!ok)
        return oct_fail(err, OCT_E_IO, "%s: cannot add %s: %s", path, dataset, reason);
    return OCT_OK;
}
