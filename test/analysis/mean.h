/* The mean of each B-scan, as an example (docs/tasks/write-an-analysis.md).
 *
 * Input: values. Result: one labelled number a B-scan, f32: the mean of its finite values, in dB,
 * or in counts^2 with log=no; NaN where it has none. */
#ifndef OCT_ANALYSIS_MEAN_MEAN_H
#define OCT_ANALYSIS_MEAN_MEAN_H

#include "analysis/analysis.h"

extern const struct oct_analysis_ops oct_mean_cpu;

#endif
