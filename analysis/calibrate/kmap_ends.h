/* How a k map goes on beyond its light. Included by kmap.c and kmap_calibration.c. */
#ifndef OCT_ANALYSIS_CALIBRATE_KMAP_ENDS_H
#define OCT_ANALYSIS_CALIBRATE_KMAP_ENDS_H

#include "analysis/calibrate/kmap.h"

/* rad per 1 of kappa: theta's slope at the first and at the last sample with light. */
void oct_kmap_end_slopes(const struct oct_kmap *kmap, double slope[2]);

#endif
