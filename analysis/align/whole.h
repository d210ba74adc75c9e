/* The whole-pixel shift of a whole picture: every maximum of the ZNCC of 2 x 2 binned pictures that
 * might be the largest is climbed at full resolution, and the best is taken. Where the binned
 * pictures do not tell (small ones, a low score, many maxima alike), all shifts are searched at
 * full resolution: the answer is that of the full search but for noise.
 *
 * One thread uses a search at a time. */
#ifndef OCT_ANALYSIS_ALIGN_WHOLE_H
#define OCT_ANALYSIS_ALIGN_WHOLE_H

#include "analysis/align/level.h"
#include "analysis/align/matcher.h"

struct oct_whole;

/* Of the setup: sizes, max_dy, max_dx, min_overlap, masked, plans_ahead. OCT_E_ARG: sizes or shifts
 * that cannot be; OCT_E_NO_MEMORY. */
enum oct_err oct_whole_create(struct oct_whole **whole, const struct oct_matcher_setup *setup,
                              struct oct_error *err);
void oct_whole_destroy(struct oct_whole *whole); /* NULL is fine */

/* The reference has contrast and is borrowed until the next. */
enum oct_err oct_whole_set_reference(struct oct_whole *whole, const struct oct_level *reference,
                                     struct oct_error *err);

enum oct_err oct_whole_find(struct oct_whole *whole, const struct oct_level *moving,
                            struct oct_match *match, struct oct_error *err);

#endif
