/* Whether an object of one HDF5 file reads as that of another: its attributes, shape and values.
 * What points at objects (DIMENSION_LIST, REFERENCE_LIST) is left out: places differ.
 *
 * Under the lock of hdf5_lock.h. Included by the volume files of this room only: it shows HDF5's
 * types. */
#ifndef OCT_PIPELINE_VOLUME_HDF5_SAME_H
#define OCT_PIPELINE_VOLUME_HDF5_SAME_H

#include "pipeline/base/err.h"

#include <hdf5.h>
#include <stdbool.h>

/* path: of `to`, for errors. with_values: those of a dataset too, as they are stored in chunks
 * where it has them. OCT_E_IO: they differ, or one cannot be read; OCT_E_NO_MEMORY. */
enum oct_err oct_hdf5_same(hid_t from, hid_t to, const char *path, const char *name,
                           bool with_values, struct oct_error *err);

#endif
