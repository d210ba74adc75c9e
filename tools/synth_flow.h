/* The part of `octctl synth` that records vessels in which blood flows (synth/flow.h): one volume,
 * with calibration and /truth; of OUT.raw the truth is in OUT.raw.truth.h5. */
#ifndef OCT_TOOLS_SYNTH_FLOW_H
#define OCT_TOOLS_SYNTH_FLOW_H

#include "config/config.h"
#include "synth/flow.h"
#include "synth/retina.h"

/* As given on the command line. */
struct oct_synth_flow {
    bool is_asked;
    uint64_t n_vessels, n_bursts;
    double tail_rad, snr_db;
};

void oct_synth_flow_init(struct oct_synth_flow *flow);

/* Makes the recording, and the calibration folder unless it is NULL. raw: plain samples. Returns
 * the exit status; says what is wrong. */
int oct_synth_flow_make(const struct oct_synth_flow *flow, struct oct_config *config,
                        const char *out, bool raw, const char *calibration,
                        enum oct_eye_motion motion, unsigned n_blinks, uint64_t seed);

#endif
