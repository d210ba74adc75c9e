/* What headers of NIfTI-1 and -2 both have, in numbers of other widths. Private to this room. */
#ifndef OCT_FORMATS_NIFTI_HEADER_H
#define OCT_FORMATS_NIFTI_HEADER_H

#include <nifti2_io.h>

#define OCT_NIFTI_FIELD(to, from, f) (to)->f = (__typeof__((to)->f))(from)->f

/* Fills *to from *from, of which one is of either kind; magic, sizes and vox_offset are left. */
#define OCT_NIFTI_CONVERT(to, from)                                                                \
    do {                                                                                           \
        OCT_NIFTI_FIELD(to, from, datatype);                                                       \
        OCT_NIFTI_FIELD(to, from, bitpix);                                                         \
        OCT_NIFTI_FIELD(to, from, scl_slope);                                                      \
        OCT_NIFTI_FIELD(to, from, scl_inter);                                                      \
        OCT_NIFTI_FIELD(to, from, dim_info);                                                       \
        OCT_NIFTI_FIELD(to, from, slice_code);                                                     \
        OCT_NIFTI_FIELD(to, from, slice_end);                                                      \
        OCT_NIFTI_FIELD(to, from, slice_duration);                                                 \
        OCT_NIFTI_FIELD(to, from, xyzt_units);                                                     \
        OCT_NIFTI_FIELD(to, from, intent_code);                                                    \
        OCT_NIFTI_FIELD(to, from, qform_code);                                                     \
        OCT_NIFTI_FIELD(to, from, sform_code);                                                     \
        OCT_NIFTI_FIELD(to, from, quatern_b);                                                      \
        OCT_NIFTI_FIELD(to, from, quatern_c);                                                      \
        OCT_NIFTI_FIELD(to, from, quatern_d);                                                      \
        OCT_NIFTI_FIELD(to, from, qoffset_x);                                                      \
        OCT_NIFTI_FIELD(to, from, qoffset_y);                                                      \
        OCT_NIFTI_FIELD(to, from, qoffset_z);                                                      \
        for (int i_ = 0; i_ < 8; i_++) {                                                           \
            OCT_NIFTI_FIELD(to, from, dim[i_]);                                                    \
            OCT_NIFTI_FIELD(to, from, pixdim[i_]);                                                 \
        }                                                                                          \
        for (int i_ = 0; i_ < 4; i_++) {                                                           \
            OCT_NIFTI_FIELD(to, from, srow_x[i_]);                                                 \
            OCT_NIFTI_FIELD(to, from, srow_y[i_]);                                                 \
            OCT_NIFTI_FIELD(to, from, srow_z[i_]);                                                 \
        }                                                                                          \
    } while (0)

#endif
