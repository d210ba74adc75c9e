#include "formats/volumes.h"

#include "formats/nifti_read.h"
#include "formats/picture_file.h"
#include "formats/recording.h"
#include "pipeline/volume/array.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NAMED 64u

/* *ops: NULL: NIfTI. */
static enum oct_err choose_format(const char *path, const struct oct_picture_file_ops **ops,
                                  struct oct_error *err)
{
    unsigned char start[OCT_PICTURE_FILE_START_BYTES];
    *ops = &oct_picture_file_hdf5;
    if (oct_recording_names_dataset(path))
        return OCT_OK;
    const enum oct_err e = oct_picture_file_start(path, start, err);
    if (e)
        return e;
    if (memcmp(start, "\x93NUMPY", 6) == 0)
        *ops = &oct_picture_file_npy;
    else if (oct_picture_file_of_device(start))
        *ops = oct_picture_file_of_device(start);
    else if (oct_nifti_begins(start))
        *ops = NULL;
    else if (!oct_recording_is_volume(path))
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: no volume: neither a recording, HDF5, .npy, .nii, .nii.gz, .vol nor "
                        "DICOM",
                        path);
    return OCT_OK;
}

/* ---- pictures that are the B-scans of a volume ---- */

/* The datasets of three axes in words: "/a, /b and 3 more". */
static void name_some(const struct oct_volume_array_name *names, unsigned n, char *text,
                      size_t text_bytes)
{
    const unsigned n_shown = n < 4 ? n : 4;
    size_t used = 0;
    for (unsigned i = 0; i < n_shown; i++)
        used +=
            (size_t)snprintf(text + used, text_bytes - used, "%s%s", i ? ", " : "", names[i].text);
    if (n > n_shown)
        snprintf(text + used, text_bytes - used, " and %u more", n - n_shown);
}

static bool is_recording(const struct oct_volume_array_name *names, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (strcmp(names[i].text, "/bscans") == 0 || strcmp(names[i].text, "/spectra") == 0 ||
            strcmp(names[i].text, OCT_PACKED_SPECTRA) == 0)
            return true;
    return false;
}

/* *name: of the only volume of a file that is no recording; NULL: it is one, or has none. */
static enum oct_err choose_volume(const char *path, const struct oct_volume_array_name *names,
                                  unsigned n, char **name, struct oct_error *err)
{
    char some[5 * sizeof(*names)];
    const size_t n_bytes = strlen(path) + sizeof(*names) + 1;
    if (n == 0 || is_recording(names, n))
        return OCT_OK;
    if (n > 1) {
        name_some(names, n, some, sizeof(some));
        return oct_fail(err, OCT_E_ARG, "%s: has %u datasets of 3 axes: %s; name one, as %s:%s",
                        path, n, some, path, names[0].text);
    }
    if (!(*name = malloc(n_bytes)))
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    snprintf(*name, n_bytes, "%s:%s", path, names[0].text);
    return OCT_OK;
}

static enum oct_err name_volume(const char *path, char **name, struct oct_error *err)
{
    struct oct_volume_array_name *names = calloc(MOST_NAMED, sizeof(*names));
    unsigned n;
    if (!names)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    enum oct_err e = oct_volume_array_list(path, 3, names, MOST_NAMED, &n, err);
    e = e ? e : choose_volume(path, names, n, name, err);
    free(names);
    return e;
}

struct stack {
    const char *path; /* as the user named it */
    struct oct_picture_file *file;
    struct oct_picture_file_facts facts;
};

static enum oct_err check_stack(const struct stack *s, struct oct_error *err)
{
    const unsigned n_axes = s->facts.n_axes;
    if (n_axes != 3)
        return oct_fail(err, OCT_E_FORMAT, "%s: has %u axes; a volume has 3", s->path, n_axes);
    if (s->facts.is_cut)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: truncated: %" PRIu64 " of %" PRIu64 " B-scans are whole", s->path,
                        s->facts.n_pictures, s->facts.n_claimed);
    if (s->facts.n_pictures > UINT32_MAX)
        return oct_fail(err, OCT_E_FORMAT, "%s: has %" PRIu64 " B-scans, too many for a volume",
                        s->path, s->facts.n_pictures);
    return OCT_OK;
}

static enum oct_err stack_open(struct stack *s, const char *path,
                               const struct oct_picture_file_ops *ops, struct oct_error *err)
{
    const struct oct_pictures_options options = {.what = OCT_PICTURES_FRAMES};
    char *name = NULL;
    *s = (struct stack){.path = path};
    enum oct_err e = OCT_OK;
    if (ops == &oct_picture_file_hdf5 && !oct_recording_names_dataset(path))
        e = name_volume(path, &name, err);
    if (!e)
        e = oct_picture_file_open(&s->file, ops, name ? name : path, &options, &s->facts, err);
    e = e ? e : check_stack(s, err);
    free(name);
    return e;
}

static void stack_info(const struct stack *s, struct oct_volume_info *info)
{
    *info = s->facts.volume;
    info->dims[0] = (uint32_t)s->facts.n_pictures;
    info->dims[1] = s->facts.height;
    info->dims[2] = s->facts.width;
}

static enum oct_err stack_load(const struct stack *s, const struct oct_volume_info *info,
                               float *values, struct oct_error *err)
{
    struct oct_volume_info now;
    struct oct_pictures_info unused;
    const size_t n = (size_t)s->facts.height * s->facts.width;
    enum oct_err e = OCT_OK;
    stack_info(s, &now);
    if (memcmp(now.dims, info->dims, sizeof(now.dims)) != 0)
        return oct_fail(err, OCT_E_FORMAT, "%s: has changed meanwhile", s->path);
    for (uint64_t v = 0; v < s->facts.n_pictures && !e; v++)
        e = s->file->ops->read(s->file, v, values + v * n, &unused, err);
    return e;
}

/* ---- any ---- */

enum oct_err oct_volume_look(const char *path, struct oct_volume_info *info, struct oct_error *err)
{
    const struct oct_picture_file_ops *ops;
    struct oct_nifti_facts nifti;
    struct stack stack;
    enum oct_err e = choose_format(path, &ops, err);
    if (e)
        return e;
    if (!ops) {
        e = oct_nifti_look(path, &nifti, err);
        if (!e)
            *info = nifti.volume;
        return e;
    }
    e = stack_open(&stack, path, ops, err);
    if (!e)
        stack_info(&stack, info);
    oct_picture_file_close(stack.file);
    return e;
}

enum oct_err oct_volume_load(const char *path, const struct oct_volume_info *info, float *values,
                             struct oct_error *err)
{
    const struct oct_picture_file_ops *ops;
    const struct oct_nifti_facts nifti = {.volume = *info};
    struct stack stack;
    enum oct_err e = choose_format(path, &ops, err);
    if (e)
        return e;
    if (!ops)
        return oct_nifti_load(path, &nifti, values, err);
    e = stack_open(&stack, path, ops, err);
    e = e ? e : stack_load(&stack, info, values, err);
    oct_picture_file_close(stack.file);
    return e;
}
