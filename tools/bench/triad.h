/* What the memory moves at most: a limit for what reads and writes fields beyond the caches. */
#ifndef OCT_TOOLS_BENCH_TRIAD_H
#define OCT_TOOLS_BENCH_TRIAD_H

#include "pipeline/base/err.h"

struct oct_workers;

/* Bytes read and written a second by a[i] = b[i] + s c[i] of f32, each array of 64 MiB, by the
 * caller and the workers (NULL: the caller alone); as STREAM counts, 12 bytes an element. The best
 * of runs of about `seconds` together. OCT_E_NO_MEMORY. */
enum oct_err oct_bench_triad(struct oct_workers *workers, double seconds, double *bytes_per_s,
                             struct oct_error *err);

#endif
