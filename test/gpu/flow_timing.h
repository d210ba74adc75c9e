/* What flow takes on a GPU, and reconstruction with it beside bare copies, in one run; for the
 * benchmark. Called when nothing else uses the device; it has no deadline. */
#ifndef OCT_TEST_GPU_FLOW_TIMING_H
#define OCT_TEST_GPU_FLOW_TIMING_H

#ifdef __cplusplus
extern "C" {
#endif

#include "analysis/flow/engine.h"
#include "pipeline/flow/engine.h"

#define OCT_FLOW_TIMED_STEPS 6 /* put, shift, lines, judge, bulk, score */

/* Microseconds a B-scan. */
struct oct_flow_times {
    unsigned n_bscans;                    /* at once, of the first two */
    double step_us[OCT_FLOW_TIMED_STEPS]; /* kernels of places, by events on the device */
    double places_us;                     /* all of them, one after another */
    double chain_us, complex_us;          /* kernels of reconstruction; storing B as well */
    double one_place_us;                  /* a place alone, in microseconds a place */
    double copies_us;                     /* bare copies: spectra up, pictures and d down */
    double recon_us, all_us;              /* reconstruction with copies; with flow */
    size_t complex_bytes;                 /* of B that went over the bus meanwhile */
};

/* values: [R][M][D][2] complex values of a place, with which kernels are timed. frame: a B-scan of
 * spectra. OCT_E_BACKEND, OCT_E_NO_MEMORY. */
enum oct_err oct_flow_time_cuda(const struct oct_plan *plan, const struct oct_raw_frame *frame,
                                const struct oct_flow_engine_setup *setup, const float *values,
                                unsigned device, struct oct_flow_times *times,
                                struct oct_error *err);

#ifdef __cplusplus
}
#endif

#endif
