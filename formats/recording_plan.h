/* What a recording is reconstructed with: the configuration and calibration it carries, overruled
 * key by key by what the command line and its config file say. */
#ifndef OCT_FORMATS_RECORDING_PLAN_H
#define OCT_FORMATS_RECORDING_PLAN_H

#include "formats/recording.h"
#include "pipeline/plan/plan.h"

/* The configuration the recording was made with, under the keys that were given now; config comes
 * in as oct_recording_open left it. OCT_E_FORMAT: the recording's is damaged. */
enum oct_err oct_recording_config(struct oct_config *config, struct oct_recording *recording,
                                  struct oct_error *err);

/* On return *config is the effective configuration (scan.bscans: all B-scans of the recording) and
 * *plan its plan. config comes in as oct_recording_open left it. */
enum oct_err oct_recording_plan(struct oct_plan **plan, struct oct_config *config,
                                struct oct_recording *recording, struct oct_error *err);

#endif
