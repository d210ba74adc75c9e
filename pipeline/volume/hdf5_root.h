/* Texts at the root of an HDF5 file that is closed, changed so that the file is whole at every
 * moment. Nothing that the file points at is overwritten:
 *
 *     | superblock | root header, heaps, arrays ... | new texts, new root header |
 *           +------> old root                                ^
 *           +- - - - - - - - - - - - - - - - - - - - - - - - +
 *
 * The new texts and a copy of the root's object header that points at them go behind the end of the
 * file. They are synced; then the superblock gets the new end, is synced, gets eight bytes that say
 * where the root lies now, and is synced. Each change makes the file some 5 KB longer.
 *
 * The two structures are those of the HDF5 File Format Specification 3.0, sections II.A (superblock
 * 0 and 1), III.E (global heap) and IV.A.1.a (object header 1), which libhdf5 1.x writes unless
 * it is told to write newer ones. libhdf5 itself reads the new file, in memory, before a byte of it
 * goes to the disk. */
#ifndef OCT_PIPELINE_VOLUME_HDF5_ROOT_H
#define OCT_PIPELINE_VOLUME_HDF5_ROOT_H

#include "pipeline/base/err.h"

#include <stdint.h>

#define OCT_HDF5_ROOT_TEXTS 8u

struct oct_hdf5_root_text {
    const char *name;
    const char *value; /* UTF-8, at most 255 bytes; NULL: the attribute is removed */
};

/* texts: [n], n <= OCT_HDF5_ROOT_TEXTS. fd may be read and written, and nobody else changes the
 * file meanwhile; `path` names it in errors. Not under the lock of hdf5_lock.h, which it takes.
 *
 * OCT_E_FORMAT: it has a newer layout, or is damaged; OCT_E_IO, OCT_E_NO_SPACE, OCT_E_NO_MEMORY.
 * After any of them the file has the texts that it had, but for a failure of the last sync, whose
 * message says that it may have either. */
enum oct_err oct_hdf5_root_put(int fd, const char *path, const struct oct_hdf5_root_text *texts,
                               unsigned n, struct oct_error *err);

#endif
