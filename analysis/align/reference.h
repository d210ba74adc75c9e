/* Which frame of a sequence is the reference, and how the reference itself moved while it was
 * taken. */
#ifndef OCT_ANALYSIS_ALIGN_REFERENCE_H
#define OCT_ANALYSIS_ALIGN_REFERENCE_H

#include "numeric/picture.h"

/* How many frames are compared. */
#define OCT_REFERENCE_CANDIDATES 16u

/* Chooses the picture that is most like the others: the largest sum of ZNCC maxima against them, of
 * 4x binned pictures. All have one size; n is at most OCT_REFERENCE_CANDIDATES, at least one has
 * contrast. OCT_E_ARG: none has; OCT_E_NO_MEMORY. */
enum oct_err oct_reference_choose(const struct oct_picture *pictures, unsigned n, unsigned *chosen,
                                  struct oct_error *err);

/* The reference's own motion, as Azimipour 2018 has it: over many frames the eye is where it is on
 * average, so what all frames' shifts have in common is the reference's. For each line y
 *
 *     motion[y] = -(median over frames of (shift[frame][y] - mean over lines of shift[frame]))
 *
 * shifts: [n_frames][height] of one axis, left without their means; motion: [height]; scratch:
 * [n_frames]. */
void oct_reference_motion(double *shifts, uint64_t n_frames, uint32_t height, double *scratch,
                          double *motion);

/* shift[y] += motion[y + dy[y]], linear between lines; dy as found, also where shift is dy itself:
 * give a copy. */
void oct_reference_undo(const double *motion, uint32_t height, const double *dy, double *shift);

#endif
