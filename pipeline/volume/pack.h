/* A packed copy of a closed recording: its large arrays in chunks, shuffled and deflated by filters
 * that every libhdf5 has, everything else as it is. Nothing is lost: all that the copy holds, its
 * attributes and links too, is read back from the disk and compared with the recording before the
 * caller gives it a name.
 *
 * A chunk is a B-scan; A-lines of one where it is larger than 512 KiB, B-scans where they are
 * smaller than 128 KiB. Chunks of nothing but zeros (rows that never came) take no space. */
#ifndef OCT_PIPELINE_VOLUME_PACK_H
#define OCT_PIPELINE_VOLUME_PACK_H

#include "pipeline/base/err.h"

#include <signal.h>
#include <stdint.h>

struct oct_volume_pack_options {
    unsigned level;                                               /* of zlib, 1..9 */
    unsigned n_threads;                                           /* that pack; 0: one a core */
    void (*progress)(void *context, uint64_t done, uint64_t all); /* in bytes; NULL: none */
    void *context;
    const volatile sig_atomic_t *cancel; /* NULL: never */
};

struct oct_volume_pack_report {
    unsigned n_arrays;                      /* that were packed; 0: none, and there is no copy */
    uint64_t values_bytes, packed_bytes;    /* of these, before and after */
    uint64_t file_bytes, packed_file_bytes; /* on the disk, the holes of files left out */
    double pack_s;                          /* of reading, packing and writing */
    double read_s, read_packed_s;           /* of reading all values of these arrays, one thread */
};

/* Writes `out`, which must not exist. OCT_E_STATE: the recording is still being written, or another
 * program changes it. OCT_E_FORMAT: no recording, damaged (an array that does not match its
 * checksums too), or with links, values or references that a copy would lose. OCT_E_IO,
 * OCT_E_NO_SPACE, OCT_E_NO_MEMORY; OCT_E_CLOSED: cancelled. After a failure `out` is not there.
 * With n_arrays 0 it is not there either. `in` is never changed. Whoever puts the copy in its place
 * opens it before, to change it (closed.h), and closes it when that is done. */
enum oct_err oct_volume_pack(const char *in, const char *out,
                             const struct oct_volume_pack_options *options,
                             struct oct_volume_pack_report *report, struct oct_error *err);

#endif
