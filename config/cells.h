/* Texts of the section [cells] as settings of the analysis. Pure. */
#ifndef OCT_CONFIG_CELLS_H
#define OCT_CONFIG_CELLS_H

#include "analysis/cells/live.h"
#include "config/config.h"

/* "X,Y,W,H"; "": all. False: it is neither; *roi is all. */
bool oct_config_cells_roi(const char *text, struct oct_cells_roi *roi);

/* A number of degrees, -360 to 360; "": none. False: it is neither; there is none. */
bool oct_config_cells_flow(const char *text, bool *has_flow, double *deg);

void oct_config_cells(const struct oct_config *config, struct oct_cells_settings *settings);

#endif
