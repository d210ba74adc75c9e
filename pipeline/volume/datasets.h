/* What a recording holds of analyses: reading the list of /analysis. Called under the lock of
 * hdf5_lock.h. */
#ifndef OCT_PIPELINE_VOLUME_DATASETS_H
#define OCT_PIPELINE_VOLUME_DATASETS_H

#include "pipeline/base/err.h"
#include "pipeline/volume/hdf5_read.h"
#include "pipeline/volume/volume.h"

/* As oct_volume_datasets; path only names the file in errors. */
enum oct_err oct_volume_datasets_read(hid_t file, const char *path, uint32_t n_bscans,
                                      struct oct_volume_dataset datasets[OCT_VOLUME_MAX_FORMS],
                                      unsigned *n, struct oct_error *err);

#endif
