/* From configuration to the settings of analyses. An analysis without keys needs nothing here. */
#ifndef OCT_CONFIG_ANALYSIS_H
#define OCT_CONFIG_ANALYSIS_H

#include "analysis/average/average.h"
#include "analysis/enface/enface.h"
#include "config/config.h"
#include "pipeline/plan/plan.h"

/* Room for the settings of any analysis. */
union oct_config_analysis_settings {
    struct oct_enface_settings enface;
    struct oct_average_settings average;
};

/* Fills the settings of the analysis of that name; false: it has none. */
bool oct_config_analysis(const struct oct_config *config, const char *name,
                         union oct_config_analysis_settings *settings);

/* Whether the average of B-scans is asked for: by a window or by repeats. */
bool oct_config_averages(const struct oct_config *config);

/* Whether recordings get the results of the analysis of that name. */
bool oct_config_records(const struct oct_config *config, const char *name);

/* Distances between B-scans, A-lines and depth pixels (in tissue), NaN where the configuration and
 * the calibration do not tell. */
struct oct_spacing oct_config_spacing(const struct oct_config *config, const struct oct_plan *plan);

#endif
