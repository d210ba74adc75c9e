#include "pipeline/volume/hdf5_make.h"

#include <hdf5.h>
#include <stdio.h>

_Static_assert(sizeof(hid_t) == sizeof(int64_t), "the header says int64_t");

static void note(struct oct_hdf5_reason *reason)
{
    oct_hdf5_reason(reason->text, sizeof(reason->text));
}

int64_t oct_hdf5_make_text_type(struct oct_hdf5_reason *reason)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    if (type >= 0 && H5Tset_size(type, H5T_VARIABLE) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0)
        return type;
    note(reason);
    OCT_HDF5_CLOSE(type);
    return H5I_INVALID_HID;
}

bool oct_hdf5_put_attribute(int64_t object, const char *name, int64_t stored, int64_t from,
                            size_t n, const void *values, struct oct_hdf5_reason *reason)
{
    const hsize_t length = n;
    hid_t attribute = H5I_INVALID_HID;
    hid_t space = n ? H5Screate_simple(1, &length, NULL) : H5Screate(H5S_SCALAR);
    if (space >= 0)
        attribute = H5Acreate2(object, name, stored, space, H5P_DEFAULT, H5P_DEFAULT);
    const bool ok = attribute >= 0 && H5Awrite(attribute, from, values) >= 0;
    if (!ok)
        note(reason);
    OCT_HDF5_CLOSE(attribute, space);
    return ok;
}

bool oct_hdf5_put_text(int64_t object, const char *name, const char *text,
                       struct oct_hdf5_reason *reason)
{
    hid_t type = oct_hdf5_make_text_type(reason);
    const bool ok = type >= 0 && oct_hdf5_put_attribute(object, name, type, type, 0, &text, reason);
    OCT_HDF5_CLOSE(type);
    return ok;
}

int64_t oct_hdf5_make_dataset_with(int64_t file, const char *name, int64_t stored, unsigned rank,
                                   const uint64_t *dims, int64_t properties,
                                   struct oct_hdf5_reason *reason)
{
    hid_t dataset = H5I_INVALID_HID;
    hsize_t extent[OCT_HDF5_MOST_RANK];
    if (rank > OCT_HDF5_MOST_RANK) {
        snprintf(reason->text, sizeof(reason->text), "a dataset of rank %u: at most %u", rank,
                 OCT_HDF5_MOST_RANK);
        return H5I_INVALID_HID;
    }
    for (unsigned i = 0; i < rank; i++)
        extent[i] = dims[i];
    hid_t links = H5Pcreate(H5P_LINK_CREATE);
    hid_t space = rank ? H5Screate_simple((int)rank, extent, NULL) : H5Screate(H5S_SCALAR);
    if (links >= 0 && space >= 0 && H5Pset_create_intermediate_group(links, 1) >= 0)
        dataset = H5Dcreate2(file, name, stored, space, links, properties, H5P_DEFAULT);
    if (dataset < 0)
        note(reason);
    OCT_HDF5_CLOSE(space, links);
    return dataset;
}

int64_t oct_hdf5_make_dataset(int64_t file, const char *name, int64_t stored, unsigned rank,
                              const uint64_t *dims, const double *fill,
                              struct oct_hdf5_reason *reason)
{
    hid_t dataset = H5I_INVALID_HID, properties = H5Pcreate(H5P_DATASET_CREATE);
    if (properties < 0 || H5Pset_obj_track_times(properties, 0) < 0 ||
        (fill && H5Pset_fill_value(properties, H5T_NATIVE_DOUBLE, fill) < 0))
        note(reason);
    else
        dataset = oct_hdf5_make_dataset_with(file, name, stored, rank, dims, properties, reason);
    OCT_HDF5_CLOSE(properties);
    return dataset;
}
