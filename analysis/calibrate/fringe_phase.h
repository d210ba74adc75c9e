/* The phase of a fringe that was found: the last step of oct_fringe_find; oct_fringe_refine
 * (fringe.h) does it anew. */
#ifndef OCT_ANALYSIS_CALIBRATE_FRINGE_PHASE_H
#define OCT_ANALYSIS_CALIBRATE_FRINGE_PHASE_H

#include "analysis/calibrate/fringe.h"

/* Phase, envelope and weight from re and im, by a first model: a straight line through the band's
 * middle, so that no step between samples comes near half a turn. middle, width: of the band, in
 * cycles a sample. OCT_E_NO_MEMORY. */
enum oct_err oct_fringe_first_phase(struct oct_fringe *fringe, double middle, double width,
                                    struct oct_error *err);

#endif
