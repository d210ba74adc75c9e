/* One B-scan through the CPU engine, which is as exact on every machine and soon made: for commands
 * that look at a few B-scans. */
#ifndef OCT_TOOLS_ONE_BSCAN_H
#define OCT_TOOLS_ONE_BSCAN_H

#include "config/config.h"
#include "pipeline/plan/plan.h"

/* spectra: u16 [M][N]; line_valid [M]; values: float [M][D], counts^2. The plan makes f32 pictures.
 * Waits for the result. Errors: those of the engine; OCT_E_BACKEND and others when it loses the
 * B-scan. */
enum oct_err oct_one_bscan(const struct oct_plan *plan, const struct oct_config *config,
                           uint16_t *spectra, uint8_t *line_valid, float *values,
                           struct oct_error *err);

#endif
