/* The two ways of registering frames of a sequence, rigid or by strips, behind one call: strips of
 * a batch of frames. A rigid shift is one strip of all lines. Private to this room. */
#ifndef OCT_ANALYSIS_ALIGN_ESTIMATOR_H
#define OCT_ANALYSIS_ALIGN_ESTIMATOR_H

#include "analysis/align/sequence.h"

#define OCT_ESTIMATOR_BATCH 16u

struct oct_estimator;

/* Of the setup: model (rigid or strips), sizes, shifts, strips, min_score, workers, backend. Sizes
 * are those of the region to register by. */
enum oct_err oct_estimator_create(struct oct_estimator **estimator,
                                  const struct oct_sequence_setup *setup, struct oct_error *err);
void oct_estimator_destroy(struct oct_estimator *estimator); /* NULL is fine */

enum oct_err oct_estimator_set_reference(struct oct_estimator *estimator,
                                         const struct oct_picture *reference,
                                         struct oct_error *err);

/* n <= OCT_ESTIMATOR_BATCH; strips: [n][n_strips]; before: [n], ZNCC unmoved. */
enum oct_err oct_estimator_find(struct oct_estimator *estimator, const struct oct_picture *pictures,
                                unsigned n, struct oct_strip *strips, float *before,
                                struct oct_error *err);

const char *oct_estimator_running(const struct oct_estimator *estimator);

#endif
