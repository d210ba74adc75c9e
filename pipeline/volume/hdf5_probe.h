/* A first look at a file from outside, taken by a child process: libhdf5 1.10 trusts much of what a
 * file says about itself, and some damaged files make it crash or loop for ever (measured: test
 * damaged_metadata_never_crashes_the_reader). If the child survives, the parent reads the
 * file in the same way. */
#ifndef OCT_PIPELINE_VOLUME_HDF5_PROBE_H
#define OCT_PIPELINE_VOLUME_HDF5_PROBE_H

#include "pipeline/base/err.h"

#include <signal.h>

/* From now on a look ends early, and its child with it, when *cancel is not 0; it outlives all
 * looks. For programs that catch the signals that would end them; before other threads look. */
void oct_hdf5_probe_cancel(const volatile sig_atomic_t *cancel);

/* Runs look(path) in a child that is ended after a few seconds of computing. OCT_OK: it came to
 * its end, whatever it found. OCT_E_FORMAT: it crashed or did not end. OCT_E_CLOSED: cancelled, or
 * SIGINT or SIGTERM wait where they are blocked. Hold the lock of hdf5_lock.h
 * meanwhile: the child then owns libhdf5 alone. look must not wait for other threads: in the child
 * there are none. */
enum oct_err oct_hdf5_probe(const char *path, void (*look)(const char *path),
                            struct oct_error *err);

#endif
