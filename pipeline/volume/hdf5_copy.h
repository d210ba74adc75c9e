/* A copy of all that an HDF5 file holds: groups, datasets, links, attributes, dimension scales.
 * Which datasets are copied as they are stored, and which are made otherwise, the caller decides.
 *
 *     objects -> { values of the caller's own datasets } -> attributes -> finish
 *
 * Under the lock of hdf5_lock.h; the file should have been looked at before (hdf5_probe.h).
 * Included by the volume files of this room only: it shows HDF5's types. */
#ifndef OCT_PIPELINE_VOLUME_HDF5_COPY_H
#define OCT_PIPELINE_VOLUME_HDF5_COPY_H

#include "pipeline/base/err.h"

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>

struct oct_hdf5_object {
    char *name; /* "/group/name" */
    haddr_t address;
    bool is_dataset;
};

struct oct_hdf5_copy {
    const char *path; /* of the file, for errors; borrowed */
    hid_t from, to;   /* files */

    /* Makes the dataset `name` in `to` and sets *is_made, or leaves it to be copied as it is. */
    enum oct_err (*make)(void *context, const char *name, hid_t dataset, bool *is_made,
                         struct oct_error *err);
    void *context;

    struct oct_hdf5_object *objects; /* the copy's own; zeroed before */
    size_t n_objects, room;
};

/* OCT_E_FORMAT: it has links into other files, values in other files, references that are no
 * dimension scales, or groups nested deeper than 32: says where. OCT_E_IO, OCT_E_NO_MEMORY. */
enum oct_err oct_hdf5_copy_objects(struct oct_hdf5_copy *copy, struct oct_error *err);

/* Of all objects, and the scales of all datasets. Errors as above. */
enum oct_err oct_hdf5_copy_attributes(struct oct_hdf5_copy *copy, struct oct_error *err);

void oct_hdf5_copy_finish(struct oct_hdf5_copy *copy);

#endif
