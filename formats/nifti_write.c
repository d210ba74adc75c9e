#include "formats/nifti_write.h"

#include "formats/nifti_header.h"
#include "formats/whole_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "voxels are written as they lie in memory, and the header says so by its own order of bytes"
#endif

#define MOST_SIDE_1 32767u /* of NIfTI-1 */
#define LEVEL "6"
#define SAME_MM 1e-6 /* per mm: a qform that differs by more from the sform is left out */

struct oct_nifti_out {
    struct oct_whole_file file;
    gzFile stream;      /* T: writes as it is */
    double to_mm[3][4]; /* of voxels (depth, A-line, B-scan) to RAS+ */
};

/* ---- the header ---- */

static void choose_map(const struct oct_nifti_form *form, double to_mm[3][4], bool *is_known)
{
    *is_known = form->um[0] > 0 && form->um[1] > 0 && form->um[2] > 0;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++)
            to_mm[i][k] = form->to_mm ? form->to_mm[i][k]
                          : i != k    ? 0
                          : *is_known ? form->um[2 - i] / 1e3
                                      : 1;
}

/* pixdim, and the place as sform and, where a rotation is all there is to it, as qform. */
static void put_space(const struct oct_nifti_form *form, double to_mm[3][4],
                      struct nifti_2_header *h)
{
    nifti_dmat44 map = {{{0}}};
    double size[3];
    bool is_same = true;
    for (int i = 0; i < 3; i++)
        memcpy(map.m[i], to_mm[i], sizeof(map.m[i]));
    map.m[3][3] = 1;
    nifti_dmat44_to_quatern(map, &h->quatern_b, &h->quatern_c, &h->quatern_d, &h->qoffset_x,
                            &h->qoffset_y, &h->qoffset_z, &size[0], &size[1], &size[2],
                            &h->pixdim[0]);
    const nifti_dmat44 again = nifti_quatern_to_dmat44(h->quatern_b, h->quatern_c, h->quatern_d,
                                                       h->qoffset_x, h->qoffset_y, h->qoffset_z,
                                                       size[0], size[1], size[2], h->pixdim[0]);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            is_same = is_same && fabs(again.m[i][k] - map.m[i][k]) <= SAME_MM * size[k];
    for (int i = 0; i < 3; i++) {
        const double um = form->um[2 - i];
        h->pixdim[i + 1] = form->to_mm && um > 0 ? um / 1e3 : size[i];
    }
    memcpy(h->srow_x, to_mm[0], sizeof(h->srow_x));
    memcpy(h->srow_y, to_mm[1], sizeof(h->srow_y));
    memcpy(h->srow_z, to_mm[2], sizeof(h->srow_z));
    h->sform_code = NIFTI_XFORM_SCANNER_ANAT;
    h->qform_code = is_same ? NIFTI_XFORM_SCANNER_ANAT : NIFTI_XFORM_UNKNOWN;
}

static void set_type(enum oct_nifti_sample sample, struct nifti_2_header *h)
{
    static const short types[][2] = {[OCT_NIFTI_F32] = {DT_FLOAT32, 32},
                                     [OCT_NIFTI_U8] = {DT_UINT8, 8},
                                     [OCT_NIFTI_U16] = {DT_UINT16, 16}};
    h->datatype = types[sample][0];
    h->bitpix = types[sample][1];
}

/* Planes of the third axis are taken one after another. */
static void put_slices(const struct oct_nifti_form *form, struct nifti_2_header *h)
{
    h->dim_info = FPS_INTO_DIM_INFO(0, 0, 3);
    h->slice_code = NIFTI_SLICE_SEQ_INC;
    h->slice_end = (int64_t)form->dims[0] - 1;
    h->slice_duration = form->slice_s;
    h->xyzt_units |= NIFTI_UNITS_SEC;
}

static void fill_header(const struct oct_nifti_form *form, bool is_displacement, double to_mm[3][4],
                        struct nifti_2_header *h)
{
    bool is_known;
    *h = (struct nifti_2_header){.scl_slope = form->slope != 0 ? form->slope : 1,
                                 .scl_inter = form->slope != 0 ? form->inter : 0};
    set_type(form->sample, h);
    choose_map(form, to_mm, &is_known);
    put_space(form, to_mm, h);
    if (form->is_placeless)
        h->sform_code = h->qform_code = NIFTI_XFORM_UNKNOWN;
    h->dim[0] = is_displacement ? 5 : 3;
    for (int i = 1; i < 8; i++)
        h->dim[i] = i <= 3 ? form->dims[3 - i] : i == 5 && is_displacement ? 3 : 1;
    for (int i = 4; i < 8; i++)
        h->pixdim[i] = 1;
    h->xyzt_units = is_known || is_displacement ? NIFTI_UNITS_MM : NIFTI_UNITS_UNKNOWN;
    if (is_displacement)
        h->intent_code = NIFTI_INTENT_VECTOR;
    if (form->slice_s > 0)
        put_slices(form, h);
    snprintf(h->descrip, sizeof(h->descrip), "%s", form->description ? form->description : "");
}

/* ---- bytes ---- */

static enum oct_err put_bytes(struct oct_nifti_out *o, const void *bytes, size_t n,
                              struct oct_error *err)
{
    const unsigned most = 1u << 30;
    for (size_t done = 0; done < n;) {
        const unsigned now = n - done < most ? (unsigned)(n - done) : most;
        errno = 0;
        if (gzwrite(o->stream, (const char *)bytes + done, now) != (int)now)
            return oct_fail_errno(err, OCT_E_IO, errno ? errno : EIO, "%s: cannot be written",
                                  o->file.path);
        done += now;
    }
    return OCT_OK;
}

static enum oct_err put_header(struct oct_nifti_out *o, const struct oct_nifti_form *form,
                               bool is_displacement, struct oct_error *err)
{
    static const char no_extensions[4];
    struct nifti_2_header wide;
    struct nifti_1_header narrow = {.sizeof_hdr = (int)sizeof(narrow),
                                    .regular = 'r',
                                    .vox_offset = sizeof(narrow) + 4,
                                    .magic = "n+1"};
    fill_header(form, is_displacement, o->to_mm, &wide);
    const uint32_t *dims = form->dims;
    const bool is_1 = dims[0] <= MOST_SIDE_1 && dims[1] <= MOST_SIDE_1 && dims[2] <= MOST_SIDE_1;
    wide.sizeof_hdr = (int)sizeof(wide);
    wide.vox_offset = sizeof(wide) + 4;
    memcpy(wide.magic, "n+2\0\r\n\032\n", sizeof(wide.magic));
    OCT_NIFTI_CONVERT(&narrow, &wide);
    memcpy(narrow.descrip, wide.descrip, sizeof(narrow.descrip));
    const enum oct_err e =
        is_1 ? put_bytes(o, &narrow, sizeof(narrow), err) : put_bytes(o, &wide, sizeof(wide), err);
    return e ? e : put_bytes(o, no_extensions, sizeof(no_extensions), err);
}

static enum oct_err begin(struct oct_nifti_out *o, const char *path, bool force,
                          const struct oct_nifti_form *form, bool is_displacement,
                          struct oct_error *err)
{
    const size_t n = strlen(path);
    const bool is_packed = n > 3 && strcasecmp(path + n - 3, ".gz") == 0;
    *o = (struct oct_nifti_out){0};
    const enum oct_err e = oct_whole_file_init(&o->file, path, force, err);
    if (e)
        return e;
    errno = 0;
    if (!(o->stream = gzopen(o->file.work, is_packed ? "wbe" LEVEL : "wbeT")))
        return oct_fail_errno(err, OCT_E_IO, errno ? errno : ENOMEM, "%s: cannot be made", path);
    gzbuffer(o->stream, 1 << 17);
    return put_header(o, form, is_displacement, err);
}

/* Names the file, unless e says that it failed. */
static enum oct_err end(struct oct_nifti_out *o, enum oct_err e, struct oct_error *err)
{
    errno = 0;
    const int closed = o->stream ? gzclose_w(o->stream) : Z_OK;
    if (!e && closed != Z_OK)
        e = oct_fail_errno(err, OCT_E_IO, errno ? errno : EIO, "%s: cannot be written",
                           o->file.path);
    return oct_whole_file_end(&o->file, e, err);
}

enum oct_err oct_nifti_begin(struct oct_nifti_out **out, const char *path, bool force,
                             const struct oct_nifti_form *form, struct oct_error *err)
{
    struct oct_nifti_out *o = malloc(sizeof(*o));
    *out = NULL;
    if (!o)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    const enum oct_err e = begin(o, path, force, form, false, err);
    if (e) {
        oct_nifti_end(o, e, NULL);
        return e;
    }
    *out = o;
    return OCT_OK;
}

enum oct_err oct_nifti_put(struct oct_nifti_out *out, const void *samples, size_t n_bytes,
                           struct oct_error *err)
{
    return put_bytes(out, samples, n_bytes, err);
}

enum oct_err oct_nifti_end(struct oct_nifti_out *out, enum oct_err e, struct oct_error *err)
{
    e = end(out, e, err);
    free(out);
    return e;
}

/* ---- what is written ---- */

enum oct_err oct_nifti_write(const char *path, bool force, const struct oct_nifti_form *form,
                             const float *values, struct oct_error *err)
{
    struct oct_nifti_out o;
    const size_t n = (size_t)form->dims[0] * form->dims[1] * form->dims[2];
    enum oct_err e = begin(&o, path, force, form, false, err);
    e = e ? e : put_bytes(&o, values, n * sizeof(*values), err);
    return end(&o, e, err);
}

/* Part i (RAS) of where voxel h(at) of the moving volume lies from voxel at of the fixed one. */
static double shift_mm(const double fixed[4], const double moving[4], const double at[3],
                       const double u[3])
{
    double mm = moving[3] - fixed[3];
    for (int k = 0; k < 3; k++)
        mm += (moving[k] - fixed[k]) * at[k] - moving[k] * u[k];
    return mm;
}

/* One part of one A-line; u: [3][V][M][D] at its first voxel. */
static void fill_row(const struct oct_nifti_out *o, const double (*moving_to_mm)[4], int part,
                     const uint32_t dims[3], uint32_t v, uint32_t m, const float *u, float *row)
{
    const size_t n = (size_t)dims[0] * dims[1] * dims[2];
    const double sign = part < 2 ? -1 : 1; /* RAS to LPS */
    const double *fixed = o->to_mm[part], *moving = moving_to_mm ? moving_to_mm[part] : fixed;
    for (uint32_t d = 0; d < dims[2]; d++) {
        const double at[3] = {d, m, v};
        const double moved[3] = {(double)u[2 * n + d], (double)u[n + d], (double)u[d]};
        row[d] = (float)(sign * shift_mm(fixed, moving, at, moved));
    }
}

enum oct_err oct_nifti_write_displacement(const char *path, bool force,
                                          const struct oct_nifti_form *form,
                                          const double (*moving_to_mm)[4],
                                          const float *displacement, struct oct_error *err)
{
    struct oct_nifti_out o;
    const uint32_t *dims = form->dims;
    float *row = malloc(dims[2] * sizeof(*row));
    if (!row)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    enum oct_err e = begin(&o, path, force, form, true, err);
    for (int part = 0; part < 3; part++)
        for (uint32_t v = 0; v < dims[0] && !e; v++)
            for (uint32_t m = 0; m < dims[1] && !e; m++) {
                const size_t first = ((size_t)v * dims[1] + m) * dims[2];
                fill_row(&o, moving_to_mm, part, dims, v, m, displacement + first, row);
                e = put_bytes(&o, row, dims[2] * sizeof(*row), err);
            }
    free(row);
    return end(&o, e, err);
}
