/* The oracle's windows: pipeline/plan/window.h's equations, written again. */
#ifndef OCT_TEST_RIG_ORACLE_WINDOW_H
#define OCT_TEST_RIG_ORACLE_WINDOW_H

#include "test/rig/oracle.h"

/* w[i] = dq/di of the rising places, [n]. */
double oct_oracle_slope(const double *place, size_t n, size_t i);

bool oct_oracle_has_window(const struct oct_oracle_setup *setup);

/* flat: [N], the division by the source at each sample, so scaled that a mirror keeps its
 * amplitude. place: [N] */
void oct_oracle_fill_window(const struct oct_oracle_setup *setup, const double *place,
                            double *flat);

/* What the spectrum is multiplied with at place q, any: nothing is left outside the camera. */
double oct_oracle_window_at(const struct oct_oracle_setup *setup, const double *place,
                            const double *flat, double q);

#endif
