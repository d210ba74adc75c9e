/* What a recording of a mirror shows when it is reconstructed: the axial peak with the configured
 * chain, and with every window. For octctl calibrate report. One thread. */
#ifndef OCT_TOOLS_CALIBRATE_MEASURE_H
#define OCT_TOOLS_CALIBRATE_MEASURE_H

#include "analysis/rolloff/mirror.h"
#include "config/config.h"
#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define OCT_MEASURE_WINDOWS 7u
extern const char *const oct_measure_window_names[OCT_MEASURE_WINDOWS];

/* One reconstruction. */
struct oct_measure_peak {
    bool is_there;                                        /* this chain was computed */
    const char *window;                                   /* NULL: as configured */
    struct oct_mirror mirror;                             /* depths from zero delay on */
    double depth_um, fwhm_um, of_limit, amplitude_counts; /* NaN: not known */
    double *line; /* [depth] counts^2, the mean over the A-lines; owned */
};

struct oct_measure {
    char *why; /* what is wrong with the recording; NULL: nothing; owned. Then only path is set. */
    const char *path;
    uint32_t n_lines, n_samples, depth; /* depth: P2/4 */
    bool is_at_rest;     /* the fringe is in the mean A-line too: the smooth source was taken off in
                            its place, whatever pipeline.dc says */
    bool has_background; /* the configuration's; else the recording's own source is what `flat`
                            divides by */
    double axial_um;     /* optical path of a depth pixel in air; NaN: unknown */
    double limit_px, limit_um; /* width that the fringe's own spectrum allows (source.h), no
                                  window */
    const char *interpolation;
    struct oct_measure_peak configured;
    struct oct_measure_peak windows[OCT_MEASURE_WINDOWS];
};

/* Reads the first whole B-scan of the recording, with the configuration and calibration that
 * recon would take, and reconstructs it by the CPU engine. A recording that is no good mirror is no
 * error: measure->why says it. Errors: those of opening a recording, of the plan and of the engine.
 * axial_um: where the calibration has no wavelengths; NaN. */
enum oct_err oct_measure_init(struct oct_measure *measure, const char *path,
                              const struct oct_config *config, double axial_um,
                              struct oct_error *err);

#endif
