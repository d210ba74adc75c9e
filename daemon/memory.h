/* The recorder's memory: how many B-scans the configuration asks it to keep, and whether this
 * machine has room for them. */
#ifndef OCT_DAEMON_MEMORY_H
#define OCT_DAEMON_MEMORY_H

#include "config/config.h"
#include "pipeline/plan/geometry.h"
#include "pipeline/record/recorder.h"

/* From record.buffer_s and record.last_s at scan.line_rate_hz. OCT_E_CONFIG: record.last_s takes
 * more than there is, or more B-scans than a file may hold; says how much would do. */
enum oct_err oct_memory_plan(const struct oct_config *config, const struct oct_geometry *geometry,
                             uint32_t *buffer_bscans, uint32_t *history_bscans,
                             struct oct_error *err);

/* Logs how much memory was taken. */
void oct_memory_tell(struct oct_recorder *recorder, const struct oct_config *config);

#endif
