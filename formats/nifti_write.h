/* NIfTI-1 files (.nii, .nii.gz; NIfTI-2 where a side is above 32767) of volumes [V][M][D]: depth is
 * the file's first axis, then A-lines, then B-scans. The file is whole or not there
 * (whole_file.h). */
#ifndef OCT_FORMATS_NIFTI_WRITE_H
#define OCT_FORMATS_NIFTI_WRITE_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum oct_nifti_sample { OCT_NIFTI_F32, OCT_NIFTI_U8, OCT_NIFTI_U16 };

struct oct_nifti_form {
    uint32_t dims[3];         /* V, M, D */
    double um[3];             /* one of them NaN: unknown, 1 mm is written and xyzt_units is
                                 unknown */
    const double (*to_mm)[4]; /* [3][4] as oct_volume_info; NULL: from um, origin 0 */
    const char *description;  /* up to 79 bytes */
    enum oct_nifti_sample sample;
    double slope, inter; /* value = slope * sample + inter; slope 0: samples are the values */
    double slice_s;      /* from plane to plane of the third axis; 0: unknown */
    bool is_placeless;   /* the axes have no directions: neither sform nor qform */
};

/* values: [V][M][D] f32. A path ending in .gz is compressed. */
enum oct_err oct_nifti_write(const char *path, bool force, const struct oct_nifti_form *form,
                             const float *values, struct oct_error *err);

/* The same plane by plane:
 *
 *     begin -> { put } -> end
 *
 * samples: of form->sample, the file's third axis slowest; all of them make the whole file. */
struct oct_nifti_out;

/* Makes the file under another name and writes its header. *out is NULL on error. */
enum oct_err oct_nifti_begin(struct oct_nifti_out **out, const char *path, bool force,
                             const struct oct_nifti_form *form, struct oct_error *err);
enum oct_err oct_nifti_put(struct oct_nifti_out *out, const void *samples, size_t n_bytes,
                           struct oct_error *err);
/* Gives the file its name; where e is not OCT_OK it is removed and e returned. Frees out. */
enum oct_err oct_nifti_end(struct oct_nifti_out *out, enum oct_err e, struct oct_error *err);

/* displacement: [3][V][M][D] in voxels, h(x) = x - u(x). Written as ITK reads displacement fields
 * (greedy, ANTs): five axes (D, M, V, 1, 3), intent NIFTI_INTENT_VECTOR, what is added to a fixed
 * place, mm, LPS. form is that of the fixed volume; moving_to_mm: of the moving one, whose voxels
 * h(x) counts; NULL: the same. */
enum oct_err oct_nifti_write_displacement(const char *path, bool force,
                                          const struct oct_nifti_form *form,
                                          const double (*moving_to_mm)[4],
                                          const float *displacement, struct oct_error *err);

#endif
