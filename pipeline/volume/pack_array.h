/* One array on its way into a packed copy. Under the lock of hdf5_lock.h; included by the volume
 * files of this room only: it shows HDF5's types. */
#ifndef OCT_PIPELINE_VOLUME_PACK_ARRAY_H
#define OCT_PIPELINE_VOLUME_PACK_ARRAY_H

#include "pipeline/base/err.h"
#include "pipeline/volume/deflate.h"
#include "pipeline/volume/hdf5_image.h"

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCT_PACK_MAX_RANK 4

enum oct_pack_is { OCT_PACK_OTHER, OCT_PACK_SPECTRA, OCT_PACK_BSCANS };

struct oct_pack_array {
    char *name; /* the first that was met */
    enum oct_pack_is is;
    int rank;
    hsize_t dims[OCT_PACK_MAX_RANK], chunk[OCT_PACK_MAX_RANK];
    size_t value_bytes, row_bytes; /* a row: all of [v][...] */
    hsize_t group;                 /* rows that are read at once, a multiple of chunk[0] */
    bool zeros_are_free;           /* what is never written reads as zeros */
    uint32_t *crc;                 /* [dims[0]] of each row; of rank 1 of each group */
};

/* Whether it is worth packing, and how. Fills all but name, is and crc. */
bool oct_pack_array_plan(struct oct_pack_array *array, hid_t dataset);

/* Makes the empty chunked dataset in `file`; below 0: it could not be made. */
hid_t oct_pack_array_make(const struct oct_pack_array *array, hid_t from, hid_t file,
                          unsigned level);

/* Told of each group of rows when it was read, their checksums known; an error ends the work. */
struct oct_pack_watch {
    enum oct_err (*rows)(void *context, const struct oct_pack_array *array, hsize_t first,
                         hsize_t n, struct oct_error *err);
    void *context;
    double read_s; /* counts on */
};

/* Reads `from`, packs it and writes the chunks to `to`; crc is allocated and filled. */
enum oct_err oct_pack_array_fill(struct oct_pack_array *array, hid_t from, hid_t to,
                                 struct oct_deflate *deflate, const struct oct_hdf5_image *image,
                                 struct oct_pack_watch *watch, struct oct_error *err);

/* Reads the packed dataset and compares it with crc. OCT_E_IO: it differs. */
enum oct_err oct_pack_array_verify(const struct oct_pack_array *array, hid_t packed,
                                   struct oct_pack_watch *watch, struct oct_error *err);

#endif
