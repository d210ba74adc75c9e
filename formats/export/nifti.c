/* NIfTI-1 and -2 (formats/nifti_write.h): the array as it is, its last axis the file's first.
 *
 * Directions are those of a fundus as it is looked at, in both eyes: A-lines run to the patient's
 * left (nasal in OD, temporal in OS), B-scans downward (inferior), depth backward (posterior):
 * axes P, L, I of a right-handed system. The first voxel is the origin. Nothing in a recording
 * measures this, so sform and qform are NIFTI_XFORM_SCANNER_ANAT, and `descrip` says what is
 * convention and what is unknown. */
#include "formats/export/export.h"
#include "formats/nifti_write.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* As nibabel writes them: the direction in which the index grows. */
static const char LETTERS[] = {'L', 'P', 'I'};

/* How an axis lies, from the file's first to its last. */
struct layout {
    int direction[3]; /* into LETTERS, each once; mm along R, A, S become less */
    double mm[3];
    bool has_length[3]; /* false: 1 stands for it */
    bool is_placed;     /* directions mean something */
};

/* -1: the name says nothing. */
static int direction_of(const char *axis)
{
    static const struct {
        const char *name;
        int direction;
    } known[] = {{"line", 0}, {"x", 0}, {"depth", 1}, {"sample", 1}, {"bscan", 2}, {"y", 2}};
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (strcmp(axis, known[i].name) == 0)
            return known[i].direction;
    return -1;
}

/* Axes whose names say nothing get what is left; of one plane nothing is lost by that. */
static void place(const struct oct_export_form *form, struct layout *l)
{
    bool is_taken[3] = {false};
    l->is_placed = true;
    for (int i = 0; i < 3; i++) {
        const int d = direction_of(form->axes[2 - i]);
        l->direction[i] = d >= 0 && !is_taken[d] ? d : -1;
        if (l->direction[i] >= 0)
            is_taken[d] = true;
        else if (form->dims[2 - i] > 1)
            l->is_placed = false;
    }
    for (int i = 0; i < 3; i++)
        for (int d = 0; d < 3 && l->direction[i] < 0; d++)
            if (!is_taken[d]) {
                l->direction[i] = d;
                is_taken[d] = true;
            }
}

/* Places have lengths between them; samples of a spectrum, times and columns of a table have none,
 * and one plane need not have a thickness. */
static bool may_lack_length(const struct oct_export_form *form, int axis)
{
    static const char *const names[] = {"bscan", "line", "depth"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(form->axes[axis], names[i]) == 0)
            return form->dims[axis] == 1;
    return true;
}

static enum oct_err lay_out(const char *path, const struct oct_export_form *form, struct layout *l,
                            struct oct_error *err)
{
    place(form, l);
    for (int i = 0; i < 3; i++) {
        const int axis = 2 - i;
        const double um = form->um[axis];
        l->has_length[i] = um > 0 && isfinite(um);
        l->mm[i] = l->has_length[i] ? um / 1e3 : 1;
        if (!l->has_length[i] && !may_lack_length(form, axis))
            return oct_fail(err, OCT_E_ARG,
                            "%s: how far %ss of %s lie apart is not known; give --pixel-um", path,
                            form->axes[axis], form->name);
        if (!l->has_length[i] && form->dims[axis] > 1)
            l->is_placed = false;
    }
    return OCT_OK;
}

static void describe(const struct oct_export_form *form, const struct layout *l, char text[80])
{
    size_t n = (size_t)snprintf(text, 80, "eye %s; ", *form->eye ? form->eye : "unknown");
    if (l->is_placed)
        n += (size_t)snprintf(text + n, 80 - n, "axes %c%c%c by convention, origin unknown; ",
                              LETTERS[l->direction[0]], LETTERS[l->direction[1]],
                              LETTERS[l->direction[2]]);
    for (int i = 0; i < 3 && n < 80; i++)
        if (!l->has_length[i])
            n += (size_t)snprintf(text + n, 80 - n, "pixdim[%d] is no length; ", i + 1);
    if (n < 80)
        snprintf(text + n, 80 - n, "%s%s%s", form->name, *form->unit ? ", " : "", form->unit);
}

static struct oct_nifti_form nifti_form(const struct oct_export_form *form, const struct layout *l,
                                        double to_mm[3][4], const char *description)
{
    static const enum oct_nifti_sample samples[] = {[OCT_EXPORT_U8] = OCT_NIFTI_U8,
                                                    [OCT_EXPORT_U16] = OCT_NIFTI_U16,
                                                    [OCT_EXPORT_F32] = OCT_NIFTI_F32};
    struct oct_nifti_form out = {.dims = {form->dims[0], form->dims[1], form->dims[2]},
                                 .um = {1e3 * l->mm[2], 1e3 * l->mm[1], 1e3 * l->mm[0]},
                                 .to_mm = (const double(*)[4])to_mm,
                                 .description = description,
                                 .sample = samples[form->sample],
                                 .slice_s = form->plane_s > 0 ? form->plane_s : 0,
                                 .is_placeless = !l->is_placed};
    memset(to_mm, 0, 3 * sizeof(*to_mm));
    for (int i = 0; i < 3; i++)
        to_mm[l->direction[i]][i] = -l->mm[i];
    if (form->sample != OCT_EXPORT_F32 && isfinite(form->lo) && form->hi > form->lo) {
        out.slope = (form->hi - form->lo) / (form->sample == OCT_EXPORT_U8 ? 255 : 65535);
        out.inter = form->lo;
    }
    return out;
}

static enum oct_err put_plane(void *context, uint32_t plane, const void *pixels, size_t n_bytes,
                              struct oct_error *err)
{
    (void)plane;
    return oct_nifti_put(context, pixels, n_bytes, err);
}

/* One affine places all voxels: a frame along a straight line at most, or such at one place. */
static enum oct_err check_way(const char *path, const struct oct_export_form *form,
                              struct oct_error *err)
{
    const struct oct_scan *scan = form->scan;
    const bool is_frame = form->dims[0] == 1 && strcmp(form->axes[1], "line") == 0;
    if (!scan || (oct_scan_is_straight(scan) && (is_frame || oct_scan_is_one_place(scan))))
        return OCT_OK;
    return oct_fail(err, OCT_E_ARG,
                    "%s: %s of a scan of pattern %s lie on no even grid of voxels: export %sPNG "
                    "or OME-TIFF",
                    path, form->name, oct_scan_pattern_names[scan->pattern],
                    oct_scan_is_one_place(scan)
                        ? "them as "
                        : "the picture from above, --dataset enface, or them as ");
}

static enum oct_err write_nifti(const char *path, const struct oct_export_source *sources,
                                unsigned n, const struct oct_export_options *options,
                                struct oct_error *err)
{
    const struct oct_export_form *form = &sources->form;
    struct oct_nifti_out *out;
    struct layout layout = {.is_placed = false};
    double to_mm[3][4];
    char description[80];
    (void)n; /* 1: the format takes no more */
    if (form->dims[0] == 0 || form->dims[1] == 0 || form->dims[2] == 0)
        return oct_fail(err, OCT_E_ARG, "%s: %s holds nothing", path, form->name);
    enum oct_err e = check_way(path, form, err);
    e = e ? e : lay_out(path, form, &layout, err);
    if (e)
        return e;
    describe(form, &layout, description);
    const struct oct_nifti_form header = nifti_form(form, &layout, to_mm, description);
    e = oct_nifti_begin(&out, path, options->force, &header, err);
    if (e)
        return e;
    e = oct_export_each_plane(sources, false, options, 0, form->dims[0], put_plane, out, err);
    return oct_nifti_end(out, e, err);
}

const struct oct_export_format oct_export_nifti = {
    .name = "nifti",
    .suffixes = {".nii.gz", ".nii"},
    .meaning = "the array for ITK-SNAP, FSL, nibabel: voxel size in mm, directions",
    .needs_um = true,
    .write = write_nifti,
};
