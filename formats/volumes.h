/* Whole volumes as input of offline analyses, f32 [V][M][D], depth (the file's fastest axis)
 * fastest:
 *     recordings of octd: /bscans, as dB, missing A-lines NaN
 *     FILE.h5:/DATASET    three axes of any type of numbers; its attribute axis_spacing_um,
 *                         element_size_um or um gives the spacing; FILE.h5 alone where it has one
 *     .npy                three axes; no spacing
 *     .vol                Heidelberg Spectralis (HEYEX): grey as the device shows it, 255 (linear
 *                         intensity)^(1/4). Not dB: the device has subtracted its noise, so that
 *                         many pixels have no logarithm
 *     DICOM               Ophthalmic Tomography Image Storage: grey as it is stored
 *     .nii, .nii.gz       NIfTI-1 and -2 of three axes (further ones of 1), scl_slope applied;
 *                         pixdim gives the spacing, its first axis is our depth
 * Formats are recognised by content. One thread uses a file at a time; sides and sizes are checked
 * against the file before anything is allocated. */
#ifndef OCT_FORMATS_VOLUMES_H
#define OCT_FORMATS_VOLUMES_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct oct_volume_info {
    uint32_t dims[3]; /* V, M, D */
    double um[3];     /* of a voxel along each; NaN: unknown. Depth: of tissue where a recording's
                         configuration knows the refractive index, as octctl surfaces */
    bool is_db;       /* values are dB */
    bool is_linear;   /* values are counts^2 */
    char eye[8];      /* "OD", "OS"; "": unknown */

    /* Of a circle: where its first A-line lies, to the right of its centre and above it on the
     * fundus; 0, 0: it is none. */
    double circle_mm[2];
    bool is_own_circle; /* octd's: all B-scans are of it, and it goes from the right downwards.
                           Else a device's: each may be another, from temporal upwards */

    /* Of what another device exported. */
    const char *format;        /* "Spectralis .vol", "DICOM"; NULL: it is none. Static */
    char start_time[40];       /* ISO 8601; "": unknown */
    unsigned sample_bits;      /* as they are stored: 8, 16; 32: f32 */
    unsigned n_layers;         /* that the device found: oct_pictures_layer */
    const char *const *layers; /* [n_layers]: "ilm", "bm", "nfl", ...; static */

    bool is_nifti;
    double to_mm[3][4]; /* of NIfTI: voxel (i, j, k) = (depth, A-line, B-scan) to RAS+ mm */
};

/* What the file holds. OCT_E_IO: cannot be opened; OCT_E_FORMAT: none of the above, truncated, or a
 * wrong number of axes (says which); OCT_E_ARG: several datasets of three axes and none named. */
enum oct_err oct_volume_look(const char *path, struct oct_volume_info *info, struct oct_error *err);

/* values: [V][M][D] of info.dims as look said; OCT_E_FORMAT: the file has changed since. */
enum oct_err oct_volume_load(const char *path, const struct oct_volume_info *info, float *values,
                             struct oct_error *err);

#endif
