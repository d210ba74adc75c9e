/* What is made in an HDF5 file by libhdf5 itself: text types, attributes and datasets. Every
 * function is called under the lock. Where a call fails `reason` says why, as oct_hdf5_reason; what
 * is closed afterwards would make libhdf5 forget it. Objects and types are libhdf5's hid_t, an
 * int64_t; below 0 it is none. */
#ifndef OCT_PIPELINE_VOLUME_HDF5_MAKE_H
#define OCT_PIPELINE_VOLUME_HDF5_MAKE_H

#include "pipeline/volume/hdf5_lock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCT_HDF5_MOST_RANK 8u

struct oct_hdf5_reason {
    char text[256];
};

/* The type of UTF-8 text of any length, closed by the caller; below 0: it could not be made. */
int64_t oct_hdf5_make_text_type(struct oct_hdf5_reason *reason);

/* values: [n] of type `from`, stored as `stored`; n 0: one value, a scalar. */
bool oct_hdf5_put_attribute(int64_t object, const char *name, int64_t stored, int64_t from,
                            size_t n, const void *values, struct oct_hdf5_reason *reason);

/* A scalar attribute of text, UTF-8. */
bool oct_hdf5_put_text(int64_t object, const char *name, const char *text,
                       struct oct_hdf5_reason *reason);

/* A dataset of rank 0 (a scalar) to OCT_HDF5_MOST_RANK, with the groups on its path and no times:
 * the same content is the same bytes. fill: what unwritten values are; NULL: 0. The caller closes
 * it; below 0: it could not be made. */
int64_t oct_hdf5_make_dataset(int64_t file, const char *name, int64_t stored, unsigned rank,
                              const uint64_t *dims, const double *fill,
                              struct oct_hdf5_reason *reason);

/* The same with the creation properties `properties`. */
int64_t oct_hdf5_make_dataset_with(int64_t file, const char *name, int64_t stored, unsigned rank,
                                   const uint64_t *dims, int64_t properties,
                                   struct oct_hdf5_reason *reason);

#endif
