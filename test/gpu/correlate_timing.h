/* What a correlation takes on a GPU beside what its transforms alone take there, in one run; for
 * the benchmark. Called when nothing else uses the device; it has no deadline. */
#ifndef OCT_TEST_GPU_CORRELATE_TIMING_H
#define OCT_TEST_GPU_CORRELATE_TIMING_H

#ifdef __cplusplus
extern "C" {
#endif

#include "analysis/correlate/correlate.h"

/* Microseconds a picture, by events on the device, the best of several. */
struct oct_correlate_times {
    uint32_t height, width;           /* padded, as the engine has it */
    uint32_t best_height, best_width; /* those of the quickest pair */
    double pair_us;                   /* bare cuFFT r2c and c2r of the whole batch at that size */
    double own_pair_us;               /* and at the engine's size */
    double kernels_us;                /* the engine, pictures and C2D on the device */
    double copies_us; /* and with copies from and to pinned memory, nothing overlapping */
};

/* Each picture of the batch (setup->n_batch) is correlated with itself. OCT_E_BACKEND,
 * OCT_E_NO_MEMORY. */
enum oct_err oct_correlate_time_cuda(const struct oct_correlator_setup *setup, unsigned device,
                                     struct oct_correlate_times *times, struct oct_error *err);

#ifdef __cplusplus
}
#endif

#endif
