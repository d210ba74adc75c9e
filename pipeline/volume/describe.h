/* What a recording says of its axes and greys to who does not know octd. Under the lock of
 * hdf5_lock.h; files and datasets are libhdf5's hid_t, an int64_t. */
#ifndef OCT_PIPELINE_VOLUME_DESCRIBE_H
#define OCT_PIPELINE_VOLUME_DESCRIBE_H

#include "pipeline/flow/image.h"
#include "pipeline/plan/geometry.h"
#include "pipeline/volume/hdf5_axes.h"
#include "pipeline/volume/volume.h"

/* Makes /bscan_um, /line_um and /depth_um, of those axes whose spacing is known: where each B-scan
 * and A-line lies in the field, from 0, and how deep each pixel of a picture, from the path
 * difference 0. A file of which the rows are no places of one field has no /bscan_um. */
bool oct_volume_describe_places(struct oct_hdf5_scales *scales, int64_t file, int64_t properties,
                                const struct oct_geometry *g, const struct oct_volume_about *about,
                                const struct oct_spacing *spacing, struct oct_hdf5_reason *reason);

/* Bytes of those, at most. */
uint64_t oct_volume_describe_bytes(const struct oct_geometry *g);

/* Attributes of /bscans: quantity, units, grey_quantity, grey_limits, grey_meaning, and grey_lo and
 * grey_hi where they are common to all B-scans. */
bool oct_volume_describe_grey(int64_t bscans, enum oct_sample_type type,
                              const struct oct_volume_about *about, struct oct_hdf5_reason *reason);

#endif
