/* A first look at a file from outside, taken by a child process: libhdf5 1.10 trusts much of what a
 * file says about itself, and some damaged files make it crash or loop for ever (measured: test
 * damaged_metadata_never_crashes_the_reader). If the child survives, the parent reads the
 * file in the same way. */
#ifndef OCT_PIPELINE_VOLUME_HDF5_PROBE_H
#define OCT_PIPELINE_VOLUME_HDF5_PROBE_H

#include "pipeline/base/err.h"

/* Runs look(path) in a child that is ended after a few seconds of computing. OCT_OK: it came to
 * its end, whatever it found. OCT_E_FORMAT: it crashed or did not end. Hold the lock of hdf5_lock.h
 * meanwhile: the child then owns libhdf5 alone. look must not wait for other threads: in the child
 * there are none. */
enum oct_err oct_hdf5_probe(const char *path, void (*look)(const char *path),
                            struct oct_error *err);

#endif
