/* Arrays of numpy (npy_header.h): [T][H][W] or [H][W], integers of 8 and 16 bits and floats of 32
 * and 64, of either order of bytes, in C order. What a header states is compared with the size of
 * the file before anything is allocated. */
#include "formats/input/npy_header.h"
#include "formats/picture_file.h"

#include <math.h>
#include <stdlib.h>

struct npy_file {
    struct oct_picture_file file;
    uint64_t first_byte; /* of the samples */
    struct oct_sample_kind sample;
    uint64_t n; /* whole pictures */
    uint32_t height, width;
    unsigned char *row; /* [width][bytes] */
};

static void npy_file_close(struct oct_picture_file *file)
{
    free(((struct npy_file *)file)->row);
}

/* ---- the header ---- */

static enum oct_err check_header(struct npy_file *f, const struct oct_npy_header *h,
                                 struct oct_error *err)
{
    if (h->sample.kind == '\0' || (h->sample.kind != 'f' && h->sample.bytes > 2))
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: samples of type %s; save them as uint8, uint16, int16, float32 or "
                        "float64",
                        f->file.path, h->type);
    if (h->is_fortran)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: an array in Fortran order; save numpy.ascontiguousarray(array)",
                        f->file.path);
    if (h->n_axes != 2 && h->n_axes != 3)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: has %u axes; pictures have 3, [T][H][W], one picture 2", f->file.path,
                        h->n_axes);
    f->sample = h->sample;
    f->first_byte = h->first_byte;
    return OCT_OK;
}

static enum oct_err npy_file_open(struct oct_picture_file *file,
                                  const struct oct_pictures_options *options,
                                  struct oct_picture_file_facts *facts, struct oct_error *err)
{
    struct npy_file *f = (struct npy_file *)file;
    struct oct_npy_header header;
    (void)options;
    enum oct_err e = oct_picture_file_hold(file, err);
    e = e ? e : oct_npy_header_read(&header, file->fd, file->path, err);
    e = e ? e : check_header(f, &header, err);
    if (e)
        return e;
    const uint64_t n_claimed = header.n_axes == 3 ? header.dims[0] : 1;
    const uint64_t *sides = header.dims + header.n_axes - 2;
    if (n_claimed == 0 || sides[0] == 0 || sides[1] == 0)
        return oct_fail(err, OCT_E_FORMAT, "%s: is empty", file->path);
    if ((e = oct_picture_file_check(file->path, sides[0], sides[1], err)) != OCT_OK)
        return e;
    f->height = (uint32_t)sides[0];
    f->width = (uint32_t)sides[1];
    const uint64_t picture_bytes = sides[0] * sides[1] * f->sample.bytes;
    const uint64_t n_whole = (file->file_bytes - f->first_byte) / picture_bytes;
    f->n = n_whole < n_claimed ? n_whole : n_claimed;
    if (f->n == 0)
        return oct_fail(err, OCT_E_FORMAT, "%s: truncated .npy file: no picture is whole",
                        file->path);
    if (!(f->row = malloc((size_t)f->width * f->sample.bytes)))
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", file->path);
    *facts = (struct oct_picture_file_facts){
        .n_pictures = f->n,
        .height = f->height,
        .width = f->width,
        .is_cut = f->n < n_claimed,
        .n_claimed = n_claimed,
        .n_axes = header.n_axes,
        .volume = {.um = {NAN, NAN, NAN}},
    };
    return OCT_OK;
}

/* ---- pixels ---- */

static enum oct_err npy_file_read(struct oct_picture_file *file, uint64_t index, float *pixels,
                                  struct oct_pictures_info *info, struct oct_error *err)
{
    const struct npy_file *f = (struct npy_file *)file;
    const size_t row_bytes = (size_t)f->width * f->sample.bytes;
    info->bits = f->sample.kind == 'f' ? 32 : 8 * f->sample.bytes;
    for (uint64_t y = 0; y < f->height; y++) {
        const uint64_t offset = f->first_byte + (index * f->height + y) * row_bytes;
        const enum oct_err e = oct_picture_file_read_at(file, offset, f->row, row_bytes, err);
        if (e)
            return e;
        for (uint32_t x = 0; x < f->width; x++)
            pixels[y * f->width + x] = oct_sample_to_float(
                oct_sample_decode(&f->sample, f->row + (size_t)x * f->sample.bytes));
    }
    return OCT_OK;
}

const struct oct_picture_file_ops oct_picture_file_npy = {
    .bytes = sizeof(struct npy_file),
    .open = npy_file_open,
    .close = npy_file_close,
    .read = npy_file_read,
};
