/* A file that libhdf5 reads and writes in memory only. None of its writes, syncs and truncations
 * touches a disk, so they fail only when memory runs out.
 *
 *     libhdf5 --writes--> pages in memory --oct_hdf5_image_store--> a file of the disk
 *             <--reads--- those pages; else base_fd, by pread; else zeros
 *
 * The reason: when a flush fails, libhdf5 1.10 cannot close its file any more and crashes when the
 * program exits. oct_hdf5_image_store writes to the disk without libhdf5 and may retry or report a
 * failure. Parts that are never written take no memory, so arrays of gigabytes are holes.
 *
 * Files that the open one points at (external links, virtual datasets) cannot be opened through it.
 *
 * Values of datasets may be too many for memory: oct_hdf5_image_write_through.
 *
 * Included by the volume files of this room only: it shows HDF5's types. Under the lock of
 * hdf5_lock.h where it says so. */
#ifndef OCT_PIPELINE_VOLUME_HDF5_IMAGE_H
#define OCT_PIPELINE_VOLUME_HDF5_IMAGE_H

#include "pipeline/base/err.h"
#include "pipeline/volume/hdf5_lock.h"

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oct_hdf5_page;

struct oct_hdf5_image {
    int base_fd; /* borrowed; -1: it begins empty */
    uint64_t base_bytes;
    uint64_t end;                /* its length */
    int raw_fd;                  /* borrowed; values of datasets go there at once; -1: none */
    int raw_errno;               /* of the first write there that failed */
    bool failed;                 /* a request of libhdf5 failed: the contents are not valid */
    struct oct_hdf5_page *pages; /* those that were written, rising */
    size_t n_pages, room;
};

/* base_fd -1: an empty file; else a regular file of base_bytes, which nobody changes meanwhile. */
void oct_hdf5_image_init(struct oct_hdf5_image *image, int base_fd, uint64_t base_bytes);

/* From now on the values of datasets are written to fd at once, an empty regular file, and read
 * back from there; the pages hold only what describes them, for oct_hdf5_image_store into the same
 * fd. A write that fails sets `failed` and raw_errno, and libhdf5 hears nothing of it. */
void oct_hdf5_image_write_through(struct oct_hdf5_image *image, int fd);

/* Replaces bytes while its file is closed; `failed` when memory runs out. */
void oct_hdf5_image_put(struct oct_hdf5_image *image, uint64_t offset, const void *bytes,
                        size_t n_bytes);

/* Opens it (H5F_ACC_RDONLY, H5F_ACC_RDWR) or makes it anew (H5F_ACC_TRUNC, in the layout that every
 * libhdf5 reads), objects aligned to `alignment`. The image must stay where it is until the file is
 * closed. Negative: refused, and `reason` has libhdf5's. Under the lock. */
hid_t oct_hdf5_image_open(struct oct_hdf5_image *image, unsigned flags, uint64_t alignment,
                          char *reason, size_t reason_bytes);

/* Writes the pages into fd, which has the image's base or nothing, and sets its length; its file
 * must be closed. *n_bytes: written. OCT_E_IO names `path`; OCT_E_NO_MEMORY: `failed`, nothing was
 * written. */
enum oct_err oct_hdf5_image_store(const struct oct_hdf5_image *image, int fd, const char *path,
                                  uint64_t *n_bytes, struct oct_error *err);

/* Whether `fd` reads as what store wrote there. OCT_E_IO: it does not, or cannot be read. */
enum oct_err oct_hdf5_image_compare(const struct oct_hdf5_image *image, int fd, const char *path,
                                    struct oct_error *err);

/* Frees the pages; its file must be closed. */
void oct_hdf5_image_finish(struct oct_hdf5_image *image);

#endif
