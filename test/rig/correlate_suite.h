/* What every engine of analysis/correlate/correlate.h must stand: against direct sums in double
 * precision (correlate_oracle.h), to the bounds of that header. For the CUDA engine, on its
 * stand-in and on a device. */
#ifndef OCT_TEST_RIG_CORRELATE_SUITE_H
#define OCT_TEST_RIG_CORRELATE_SUITE_H

#include "analysis/correlate/correlate.h"

/* Returns the number of failures. With `large` also pictures of 1500 x 750 at some shifts, for
 * engines that are fast. */
int oct_correlate_suite_run(const struct oct_correlator_ops *ops, unsigned deadline_ms, bool large);

#endif
