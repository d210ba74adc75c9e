/* What the search for a dispersion found, as JSON and as lines of a configuration: octctl and octd
 * say the same. Pure; any thread. */
#ifndef OCT_ANALYSIS_CALIBRATE_SHARPEN_TEXT_H
#define OCT_ANALYSIS_CALIBRATE_SHARPEN_TEXT_H

#include "analysis/calibrate/sharpen.h"

#include <stddef.h>

struct cJSON;

/* Adds members to the object: state (found, nothing, at_bound), why (empty: found), a2, a3 (what
 * remained, rad over the spectrum), a2_error, a3_error, agreement, sharpness_before, _after,
 * width_before_px, width_after_px (null: no line has a layer that stands out), widths, lines,
 * lines_saturated; and if it is found and the dispersion is no file: over_spectrum and over_grid,
 * [a2, a3, a4, a5] of the whole dispersion, and ini, the lines of section calibration. */
void oct_sharpen_describe(const struct oct_sharpen_result *result,
                          const struct oct_sharpen_dispersion *whole, struct cJSON *object);

/* Line i of section calibration, "dispersion_a2 = 7.000933", of coefficients. False: there are not
 * so many. */
#define OCT_SHARPEN_INI_BYTES 64
bool oct_sharpen_ini(const struct oct_sharpen_dispersion *whole, unsigned i,
                     char line[OCT_SHARPEN_INI_BYTES]);

/* "" if it is found, else why it is of no use and what to do. */
const char *oct_sharpen_why(enum oct_sharpen_state state);

#endif
