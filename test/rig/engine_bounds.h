/* How near an engine must come to the oracle: contract 1.3, one function a bound. Each returns
 * whether the bound holds, prints a TAP comment where it does not, and keeps the worst figure.
 *
 * With nufft, the taps that the standard accuracy takes keep contract 1.3 as it is. Fewer taps are
 * held to the accuracy that was asked for alone, of the uncropped B-scan's largest amplitude: six
 * differ 80 dB below the maximum by up to 0.08 dB. */
#ifndef OCT_TEST_RIG_ENGINE_BOUNDS_H
#define OCT_TEST_RIG_ENGINE_BOUNDS_H

#include "pipeline/flow/frame.h"
#include "test/rig/engine_scene.h"

struct oct_worst {
    int linear_auto;       /* of 255 */
    int log_manual;        /* of 255 */
    double log_manual_off; /* fraction of pixels off at all, of the worst picture */
    int other;             /* of 255: beyond what float allows, see oct_bound_band */
    double f32_db;         /* where I > maximum - 80 dB */
    double limits_db;      /* lo and hi */
    double accuracy;       /* nufft: difference of amplitudes, of the largest */
    double complex_off;    /* of complex values, of the largest amplitude */
};

/* Linear, auto, u8: no pixel off by more than 1. lo and hi are the oracle's. */
bool oct_bound_linear_auto(struct oct_worst *worst, const struct oct_scene *scene,
                           const uint8_t *pixels, double lo, double hi);

/* Log, manual range lo .. lo + 60 dB, u8: none off by more than 1, at most 0.1 % off at all. */
bool oct_bound_log_manual(struct oct_worst *worst, const struct oct_scene *scene,
                          const uint8_t *pixels, double lo);

/* f32: within 0.01 dB wherever I > maximum - 80 dB; every pixel a finite number. With nufft
 * no pixel is further off than the accuracy. */
bool oct_bound_float(struct oct_worst *worst, const struct oct_scene *scene, bool log,
                     const float *pixels);

/* Complex values: with nufft within its accuracy of the oracle's, else within -100 dB, of the
 * largest amplitude, which a crop may not show: or within 1e-7 of the largest sample. A missing
 * line is NaN. */
bool oct_bound_complex(struct oct_worst *worst, const struct oct_scene *scene, const float *z);

/* lo and hi: within 0.02 dB of the oracle's.
 *
 * The minimum of a B-scan is a speckle null, where no float arithmetic can hold 0.02 dB: there the
 * limit is judged by its amplitude instead. The contract asks 0.01 dB at 80 dB below the maximum,
 * which is 10^(-80/20) * (10^(0.01/20) - 1) = 1.15e-7 of the largest amplitude; rounding noise
 * does not depend on what it is added to, so the same amplitude is what is granted further down,
 * and at least 1e-6 counts, the floor of step 8. */
bool oct_bound_limits(struct oct_worst *worst, const struct oct_scene *scene, bool log, double lo,
                      double hi, double oracle_lo, double oracle_hi);

/* Any u8 picture with limits lo, hi: no pixel off by more than 1 from what the oracle's amplitude
 * would show, give or take the granted amplitude above (which matters only more than 80 dB down).
 * With `auto` in log the limits to give are the engine's own, for the reason above: the picture
 * must agree with the limits that are reported with it. */
bool oct_bound_band(struct oct_worst *worst, const struct oct_scene *scene, bool log,
                    const uint8_t *pixels, double lo, double hi);

/* A B-scan that is exactly zero after step 1 (nothing but its own mean, or all lines missing): u8
 * pictures are all 0, since lo = hi in `auto` and the manual ranges of the tests begin at
 * 1 count^2. f32 may show one rounding of the mean to float, at most 2^-25 of it and alike in all
 * N samples, so at most that as an amplitude: 1e-7 of the largest sample is granted, 1e-14 in
 * intensity. */
bool oct_bound_dark(const struct oct_scene *scene, enum oct_sample_type sample_type, bool log,
                    const void *pixels);

#endif
