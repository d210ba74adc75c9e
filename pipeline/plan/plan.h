/* The plan: everything about a reconstruction that does not depend on the samples, computed once,
 * in double precision, and handed to every engine. The accuracy of the product is decided here.
 *
 * Source: B. A. Shafer, "Real-time adaptive-optics OCT image reconstruction on a GPU", Purdue
 * 2014, chapters 2 and 4; docs/reconstruction.md has the equations. For one A-line x (N samples,
 * DC removed) an engine computes
 *
 *     u[2i]   = x_padded[i]                                        i < P1
 *     u[2i+1] = c2r(X[k] * shift[k])[i],  X = r2c(x_padded)        k <= P1/2      (exact 2x)
 *     v[q]    = phase[q] * sum_t weight[t][q] * u[tap_first[q] + t]     q < P2
 *     B       = fft(v)                                  (counts: phase carries the 1/N)
 *     I[d]    = |B[crop_first + d]|^2                              d < D
 *
 * which is steps 2 to 8: a bin of the 2x-long spectrum that was the Nyquist bin, halved, is zero
 * at every odd sample, so shift[P1/2] = 0, and shift carries the 1/P1 of the inverse. With
 * interpolation = nufft the way to B is that of spread.h instead. The window W of window.h is part
 * of the phase in both.
 *
 * A plan is immutable after creation and may be read by any number of threads. */
#ifndef OCT_PIPELINE_PLAN_PLAN_H
#define OCT_PIPELINE_PLAN_PLAN_H

#include "pipeline/base/err.h"
#include "pipeline/plan/calibration.h"
#include "pipeline/plan/geometry.h"
#include "pipeline/plan/scan.h"
#include "pipeline/plan/spread.h"
#include "pipeline/plan/window.h"

#include <stdbool.h>
#include <stdint.h>

enum oct_dc {
    OCT_DC_BSCAN,
    OCT_DC_FILE,
    OCT_DC_NONE,
    OCT_DC_RUNNING /* the line comes with each job: pipeline/flow/running_dc.h */
};
enum oct_interpolation {
    OCT_INTERPOLATION_LINEAR,
    OCT_INTERPOLATION_CUBIC,
    OCT_INTERPOLATION_NUFFT
};
enum oct_range { OCT_RANGE_AUTO, OCT_RANGE_MANUAL, OCT_RANGE_PERCENTILE };

#define OCT_MAX_TAPS 4u

/* B-scans of the running mean. */
#define OCT_MIN_DC_BSCANS 2u
#define OCT_MAX_DC_BSCANS 4096u
#define OCT_STANDARD_DC_BSCANS 32u

/* Bounds of the accuracy of nufft: beyond the lower one floats end. */
#define OCT_MIN_ACCURACY_DB OCT_SPREAD_LEAST_DB
#define OCT_MAX_ACCURACY_DB (-40.0)
#define OCT_STANDARD_ACCURACY_DB (-80.0)

/* What the camera's own wavelengths must lie within: beyond, a file is not in nm. */
#define OCT_MIN_WAVELENGTH_NM 200.0
#define OCT_MAX_WAVELENGTH_NM 3000.0

/* Steps 8 and 9: how an intensity becomes a pixel. A copy travels with every submission, so that
 * it may change while frames flow. Missing lines take no part in the limits of auto and percentile.
 */
struct oct_display {
    bool log; /* pixels from 10*log10(max(I, 1e-12)) dB instead of I (counts^2) */
    enum oct_range range;
    double lo, hi;        /* manual: dB when log, else counts^2; hi > lo */
    double percentile_lo; /* percentile: 0..100, of the B-scan's pixels, linear between ranks */
    double percentile_hi;
    double smoothing_bscans; /* percentile: time constant s in B-scans, >= 0. From the second
                                B-scan of a volume on: limit += (own - limit) / (1 + s). A volume
                                starts afresh, so that it reconstructs alike wherever it is run. A
                                B-scan of which nothing is left (no line came; a single one, which
                                is its own mean) changes no limits and is no volume's first. */
};

/* What the chain does with the samples, beside geometry and calibration. */
struct oct_chain {
    enum oct_dc dc;
    enum oct_interpolation interpolation;
    uint32_t dc_bscans; /* running: of this many B-scans; 0: the standard */
    double accuracy_db; /* nufft: largest error, of the largest amplitude; 0: the standard */
    struct oct_shaping shaping;
};

/* The thesis's: bscan, linear. */
extern const struct oct_chain oct_chain_thesis;

/* Samples at q steps before the first or after the last tap never occur: tap_first[q] + n_taps <=
 * P2 for every q. All arrays are 64-byte aligned and owned by the plan. */
struct oct_plan {
    struct oct_geometry geometry;
    struct oct_chain chain;
    const float *background;   /* [N] counts; NULL unless dc == OCT_DC_FILE */
    struct oct_spread spread;  /* nufft; else empty */
    unsigned n_taps;           /* 2 linear, 4 cubic; nufft: 0, and of the tables that follow only
                                  the phase is there, the others are NULL */
    const uint32_t *tap_first; /* [P2], into u */
    const float *weight;       /* [n_taps][P2] */
    const float *phase_re;     /* [P2], W exp(-i theta) / N, or W times the file's phase / N */
    const float *phase_im;
    const float *shift_re; /* [P1/2 + 1], exp(+i pi k / P1) / P1, last 0 */
    const float *shift_im;
    double q_minus, q_plus; /* where on the k grid t of the coefficients is -1 and +1 */
    double axial_um;        /* optical path per depth pixel, micrometres in air; NaN: axial.h */
    struct oct_calibration calibration; /* the plan's own copy */
    struct oct_scan scan; /* where the A-lines lie; until oct_plan_set_scan a raster of a field of
                             unknown size */
};

/* Checks the calibration against the geometry and computes the tables. Exactly one of wavelengths
 * and k map must be there. OCT_E_CONFIG names the key (calibration.wavelengths, ...) and what is
 * wrong: count, not strictly monotonic, not nanometres, not positive over all P2 positions,
 * dispersion count, background missing for dc=file or for flatten, dc=bscan with a single line,
 * dc=running with a single line in the volume, a depth scale that contradicts another, nufft
 * with depths beyond P2/4. *plan is NULL on error. */
enum oct_err oct_plan_create(struct oct_plan **plan, const struct oct_geometry *geometry,
                             const struct oct_calibration *calibration,
                             const struct oct_chain *chain, struct oct_error *err);

/* Where the A-lines lie, before others see the plan: n_lines becomes the geometry's, file the
 * calibration's positions; n_bscans stays the scan's own. OCT_E_CONFIG as oct_scan_check, or
 * scan.positions has other than n_bscans * M rows; the plan is as before. */
enum oct_err oct_plan_set_scan(struct oct_plan *plan, const struct oct_scan *scan,
                               struct oct_error *err);

/* theta of contract step 5 in radians at place q of the P2 steps, from the coefficients: what the
 * recorder writes is what the engines apply. */
double oct_plan_theta(const struct oct_plan *plan, double q);

/* Whether both make the same pictures of the same samples: they were made of the same geometry, but
 * for the number of B-scans where neither chain nor scan looks at it, calibration, chain and
 * scan. */
bool oct_plan_is_same(const struct oct_plan *a, const struct oct_plan *b);

/* NULL is fine. */
void oct_plan_destroy(struct oct_plan *plan);

#endif
