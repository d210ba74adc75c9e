/* The part of `octctl synth` that records mirrors before a synthetic spectrometer
 * (synth/spectrometer.h), each in a file of its own: OUT.h5, or OUT-1.h5, OUT-2.h5 and so on
 * of several; OUT.raw likewise, with the truth in OUT-1.raw.truth.h5.
 *
 * One B-scan of scan.lines A-lines a file. A recording carries a k map of even steps and no
 * dispersion, as one of a spectrometer that nobody has calibrated yet; /truth has the true ones. */
#ifndef OCT_TOOLS_SYNTH_MIRROR_H
#define OCT_TOOLS_SYNTH_MIRROR_H

#include "config/config.h"
#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* As given on the command line; texts NULL and numbers NaN where they were not. */
struct oct_synth_mirror {
    const char *mirrors;    /* DEPTH[+DEPTH...][,...] in px, or "none" in the place of a depth */
    const char *dispersion; /* A2,A3 */
    double snr_db, bump, gain, turns;
};

void oct_synth_mirror_init(struct oct_synth_mirror *mirror);

/* Whether any of the options was given. */
bool oct_synth_mirror_is_asked(const struct oct_synth_mirror *mirror);

/* Makes the files, and the calibration folder unless it is NULL. raw: plain samples. Returns the
 * exit status; says what is wrong. */
int oct_synth_mirror_make(const struct oct_synth_mirror *mirror, struct oct_config *config,
                          const char *out, bool raw, const char *calibration, uint64_t seed);

#endif
