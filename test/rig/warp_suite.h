/* What an engine of analysis/warp/solver.h must stand: E, both forces, T(h) and J against the
 * oracle, steps of a level against the oracle's, deformations that are known, null pairs, folds,
 * masks, spacing, small sides, and what callers do wrong. For the CPU engine, the CUDA engine on
 * its stand-in and on a device. */
#ifndef OCT_TEST_RIG_WARP_SUITE_H
#define OCT_TEST_RIG_WARP_SUITE_H

#include "analysis/warp/solver.h"

struct oct_warp_suite {
    const struct oct_warp_ops *ops;
    const char *backend; /* not NULL: the engine that `select`, oct_warp_select, makes for it; ops
                            is what it must run */
    enum oct_err (*select)(const struct oct_warp_ops **ops, struct oct_warp_engine **engine,
                           const char *backend, const struct oct_warp_setup *setup,
                           struct oct_error *err);
    struct oct_workers *workers; /* NULL: one thread */
    unsigned deadline_ms;
    unsigned depth; /* 0: small volumes and few of them, for an engine that is slow; 1: all of the
                       acceptance but its pair of 128^3; 2: with it */
};

/* Returns the number of failures. */
int oct_warp_suite_run(const struct oct_warp_suite *suite);

#endif
