/* /calibration of a recording. Called under the lock of hdf5_lock.h. Included by the volume files
 * of this room only. */
#ifndef OCT_PIPELINE_VOLUME_CALIBRATION_H
#define OCT_PIPELINE_VOLUME_CALIBRATION_H

#include "pipeline/plan/calibration.h"
#include "pipeline/volume/hdf5_lock.h"

#include <hdf5.h>

/* Fills cal with what the file has; empty on error. `path` names the file in errors. */
enum oct_err oct_volume_calibration_read(hid_t file, const char *path, struct oct_calibration *cal,
                                         struct oct_error *err);

#endif
