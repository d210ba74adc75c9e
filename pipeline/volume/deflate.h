/* Chunks of HDF5 datasets packed on several cores, to the bytes that libhdf5's own filters shuffle
 * and deflate make: libhdf5 itself packs in one thread, under its lock.
 *
 *     start(batch) -> the owner reads the next one meanwhile -> wait -> ...
 *
 * Threads: one owner calls everything. Between start and wait the jobs belong to the threads. */
#ifndef OCT_PIPELINE_VOLUME_DEFLATE_H
#define OCT_PIPELINE_VOLUME_DEFLATE_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oct_deflate_job {
    const unsigned char *bytes; /* [n_bytes], of values of value_bytes each */
    size_t n_bytes, value_bytes;
    unsigned char *shuffled; /* [n_bytes], memory of the job's own */
    unsigned char *packed;   /* [oct_deflate_bound(n_bytes)] */
    size_t n_packed;         /* the result; 0: out of memory */
    bool is_zero;            /* the result: nothing but zeros, not packed */
};

struct oct_deflate;

/* OCT_E_NO_MEMORY, OCT_E_IO (no thread); *deflate is NULL then. level: of zlib, 1..9. */
enum oct_err oct_deflate_create(struct oct_deflate **deflate, unsigned n_threads, unsigned level,
                                struct oct_error *err);

/* Bytes that n_bytes take at most when packed. */
size_t oct_deflate_bound(size_t n_bytes);

/* No batch may be under way. The jobs stay the caller's. */
void oct_deflate_start(struct oct_deflate *deflate, struct oct_deflate_job *jobs, size_t n);

/* Returns when all are done; at once when none was started. */
void oct_deflate_wait(struct oct_deflate *deflate);

/* Waits; NULL is fine. */
void oct_deflate_destroy(struct oct_deflate *deflate);

#endif
