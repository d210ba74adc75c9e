/* numpy's .npy, format 1.0: a header that says type and shape, then the array as it is. */
#include "formats/export/export.h"
#include "formats/input/npy_header.h"
#include "formats/whole_file.h"

static enum oct_err put_plane(void *context, uint32_t plane, const void *pixels, size_t n_bytes,
                              struct oct_error *err)
{
    (void)plane;
    return oct_whole_file_put(context, pixels, n_bytes, err);
}

static enum oct_err write_npy(const char *path, const struct oct_export_source *sources, unsigned n,
                              const struct oct_export_options *options, struct oct_error *err)
{
    static const char *const types[] = {
        [OCT_EXPORT_U8] = "|u1", [OCT_EXPORT_U16] = "<u2", [OCT_EXPORT_F32] = "<f4"};
    const struct oct_export_form *form = &sources->form;
    struct oct_whole_file file;
    char header[OCT_NPY_MADE_BYTES];
    (void)n; /* 1: the format takes no more */
    enum oct_err e = oct_whole_file_open(&file, path, options->force, err);
    if (e)
        return e;
    oct_npy_header_make(header, types[form->sample], form->dims[0], form->dims[1], form->dims[2]);
    e = oct_whole_file_put(&file, header, sizeof(header), err);
    e = e ? e
          : oct_export_each_plane(sources, false, options, 0, form->dims[0], put_plane, &file, err);
    return oct_whole_file_end(&file, e, err);
}

const struct oct_export_format oct_export_npy = {
    .name = "npy",
    .suffixes = {".npy"},
    .meaning = "numpy.load: the array alone",
    .write = write_npy,
};
