/* The analyses there are. One row each: what a name in analysis.run means. */
#ifndef OCT_ANALYSIS_ANALYSES_H
#define OCT_ANALYSIS_ANALYSES_H

#include "analysis/analysis.h"

extern const struct oct_analysis_ops *const oct_analyses[];
extern const unsigned oct_n_analyses;

/* NULL: there is none of that name. */
const struct oct_analysis_ops *oct_analysis_find(const char *name);

/* "enface,quality", as analysis.run takes it: for messages. */
void oct_analysis_names(char *text, size_t text_bytes);

#endif
