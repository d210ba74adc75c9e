/* What the plan of a reconstruction says of its complex depth values: how phases become lengths,
 * where the band of the samples lies, and how the noise of neighbouring depths hangs together.
 *
 * B[d] = (1/N) sum over i of x_i (W w)_i phi_i exp(-2 pi i d q_i / P2) (contract section 6): it
 * turns by -2 pi q_i / P2 from depth to depth. What moves deeper by dz turns B by -2 k n dz where
 * wavelengths rise with the sample, by +2 k n dz where they fall. k is the mean over the samples,
 * each weighed with (S W w)^2, S the source's line. */
#ifndef OCT_ANALYSIS_FLOW_OPTICS_H
#define OCT_ANALYSIS_FLOW_OPTICS_H

#include "analysis/flow/noise.h"

struct oct_plan;

struct oct_flow_optics {
    double rad_um;      /* 2 k n of a movement deeper, with its sign; NaN: k is not known */
    bool is_sign_known; /* by wavelengths; else by the word of the settings */
    double turns[2];    /* q / P2 of the first sample and of the last */
    bool has_rho;       /* else oct_flow_noise_correlate finds it in the data */
    double rho2[OCT_FLOW_LAGS];
};

/* source: [N] the mean line with the sample in place, or NULL: that of the plan's calibration, if
 * it has a background. falls: wavelengths fall along the samples, where a k map does not tell.
 * plan NULL: nothing is known. OCT_E_NO_MEMORY, OCT_E_CONFIG. */
enum oct_err oct_flow_optics_init(struct oct_flow_optics *optics, const struct oct_plan *plan,
                                  const double *source, double refractive_index, bool falls,
                                  struct oct_error *err);

#endif
