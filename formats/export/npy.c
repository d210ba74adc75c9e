/* numpy's .npy, format 1.0: a header that says type and shape, then the array as it is. */
#include "formats/export/export.h"
#include "formats/whole_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HEADER_BYTES 128u /* a multiple of 64, as the format wants; the text is shorter */

/* https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html */
static void make_header(const struct oct_export_form *form, char header[HEADER_BYTES])
{
    static const char magic[] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0};
    static const char *const types[] = {
        [OCT_EXPORT_U8] = "|u1", [OCT_EXPORT_U16] = "<u2", [OCT_EXPORT_F32] = "<f4"};
    const unsigned n_text = HEADER_BYTES - sizeof(magic) - 2;
    char text[HEADER_BYTES];
    const int n = snprintf(text, sizeof(text),
                           "{'descr': '%s', 'fortran_order': False, 'shape': (%" PRIu32 ", %" PRIu32
                           ", %" PRIu32 "), }",
                           types[form->sample], form->dims[0], form->dims[1], form->dims[2]);
    memset(header, ' ', HEADER_BYTES);
    memcpy(header, magic, sizeof(magic));
    header[8] = (char)n_text; /* little-endian u16; it is below 128 */
    header[9] = 0;
    memcpy(header + 10, text, (size_t)n);
    header[HEADER_BYTES - 1] = '\n';
}

struct output {
    FILE *file;
    const char *path;
};

static enum oct_err put_plane(void *context, uint32_t plane, const void *pixels, size_t n_bytes,
                              struct oct_error *err)
{
    const struct output *out = context;
    (void)plane;
    errno = 0;
    return fwrite(pixels, 1, n_bytes, out->file) == n_bytes
               ? OCT_OK
               : oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", out->path);
}

static enum oct_err write_npy(const char *path, const struct oct_export_source *sources, unsigned n,
                              const struct oct_export_options *options, struct oct_error *err)
{
    struct oct_whole_file whole;
    char header[HEADER_BYTES];
    (void)n; /* 1: the format takes no more */
    enum oct_err e = oct_whole_file_init(&whole, path, options->force, err);
    if (e)
        return e;
    make_header(&sources->form, header);
    FILE *file = fopen(whole.work, "wxe");
    if (!file) {
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be made", path);
        oct_whole_file_discard(&whole);
        return e;
    }
    errno = 0;
    if (fwrite(header, 1, HEADER_BYTES, file) != HEADER_BYTES)
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", path);
    struct output out = {file, path};
    if (!e)
        e = oct_export_each_plane(sources, false, options, 0, sources->form.dims[0], put_plane,
                                  &out, err);
    if (fclose(file) != 0 && !e)
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", path);
    if (!e)
        return oct_whole_file_publish(&whole, err);
    oct_whole_file_discard(&whole);
    return e;
}

const struct oct_export_format oct_export_npy = {
    .name = "npy",
    .suffixes = {".npy"},
    .meaning = "numpy.load: the array alone",
    .write = write_npy,
};
