/* What the axes of a dataset are, in the words of several programs at once:
 *
 *     axis_names, axis_spacing_um   octd's own: a name and micrometres from step to step
 *     element_size_um               three axes: as Fiji's and ilastik's readers of HDF5 take it,
 *                                   in the order of the axes (of a volume z, y, x)
 *     DIMENSION_LABELS              HDF5's own: h5py's dataset.dims[i].label
 *     DIMENSION_LIST                HDF5's own: dataset.dims[i][0] is the scale, a dataset of
 *                                   positions in um, /line_um for instance; netCDF's coordinates
 *
 * An unknown length is NaN in both spacings, and the axis has no scale.
 *
 * Every function is called under the lock of hdf5_lock.h; files, objects and properties are
 * libhdf5's hid_t, an int64_t. False: it failed, and `reason` says why. */
#ifndef OCT_PIPELINE_VOLUME_HDF5_AXES_H
#define OCT_PIPELINE_VOLUME_HDF5_AXES_H

#include "pipeline/volume/hdf5_make.h"

#include <stdbool.h>
#include <stdint.h>

#define OCT_HDF5_MOST_SCALES 16u

/* The scales of one file, open. Zeroed is empty. */
struct oct_hdf5_scales {
    unsigned n;
    struct oct_hdf5_scale {
        char axis[24];
        int64_t dataset;
        uint64_t n;
        double spacing_um;
    } scale[OCT_HDF5_MOST_SCALES];
};

/* The first three of the list above; of the file or a group, which have no axes for HDF5, the first
 * two. */
bool oct_hdf5_put_axes(int64_t object, unsigned rank, const char *const *names,
                       const double *spacing_um, struct oct_hdf5_reason *reason);

/* Makes /AXIS_um (a second one is /AXIS_um_2) of n positions, with the attributes units "um" and
 * long_name. properties: of its creation, below 0: libhdf5's. The scale belongs to `spacing_um` in
 * attach. */
bool oct_hdf5_scale_make(struct oct_hdf5_scales *scales, int64_t file, int64_t properties,
                         const char *axis, uint64_t n, const double *positions_um,
                         double spacing_um, const char *long_name, struct oct_hdf5_reason *reason);

/* Gives each axis of the dataset the scale of its name, its length and its spacing, if there is
 * one. */
bool oct_hdf5_scales_attach(const struct oct_hdf5_scales *scales, int64_t dataset, unsigned rank,
                            const char *const *names, const uint64_t *dims,
                            const double *spacing_um, struct oct_hdf5_reason *reason);

/* Makes `scale` of this name one and the dataset's axis use it. */
bool oct_hdf5_scale_use(int64_t dataset, unsigned axis, int64_t scale, const char *name,
                        struct oct_hdf5_reason *reason);

/* Fine on a zeroed one. */
void oct_hdf5_scales_close(struct oct_hdf5_scales *scales);

#endif
