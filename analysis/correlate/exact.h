/* The integer sum itself, P(d) = sum over p of f(p) g(p + d), for pictures of integers 0 .. 65535:
 * equal to the direct sum in every bit, whatever the backend. Pixels that are masked count as 0.
 *
 * Transforms in double of the pixels less their rounded mean; each P is rounded to the next
 * integer, from which it is at most 6 eps log2(P_y P_x) |f| |g| away. Where that bound is not well
 * below 1/2, the pixels are split into bytes, x = 256 h + l, and the products are put together in
 * int64. The means are put back by exact sums over the overlap. Sizes and signs as in correlate.h.
 *
 * One thread uses a struct oct_exact at a time. */
#ifndef OCT_ANALYSIS_CORRELATE_EXACT_H
#define OCT_ANALYSIS_CORRELATE_EXACT_H

#include "analysis/correlate/correlate.h"

struct oct_exact;

/* Takes the sizes and the shifts of the setup; of the rest norm and keep_mean. *exact is NULL on
 * error. OCT_E_ARG: sizes or shifts that cannot be, zncc; OCT_E_NO_MEMORY. */
enum oct_err oct_exact_create(struct oct_exact **exact, const struct oct_correlator_setup *setup,
                              struct oct_error *err);
void oct_exact_destroy(struct oct_exact *exact); /* NULL is fine */

/* The sums, and C made from them in double. sums, c2d: [2 max_dy + 1][2 max_dx + 1], the first is
 * at d = (-max_dy, -max_dx). g may be f. OCT_E_FORMAT: another size, or a valid pixel that is no
 * integer from 0 to 65535; OCT_E_ARG: no contrast, or less than 10 % of a picture valid. */
enum oct_err oct_exact_correlation(struct oct_exact *exact, const struct oct_picture *f,
                                   const struct oct_picture *g, int64_t *sums, float *c2d,
                                   struct oct_error *err);

#endif
