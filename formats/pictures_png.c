/* PNG by libpng: grey of 1 to 16 bits, palettes and colour whose channels are equal. */
#include "formats/picture_file.h"

#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct png_file {
    struct oct_picture_file file;
    FILE *stream;
    png_structp png;
    png_infop info;
    uint32_t height, width;
    unsigned n_channels, n_bytes; /* of a sample as decoded: 1 or 2 */
    unsigned char *rows;          /* while a picture is decoded */
    char fault[160];              /* libpng's last error */
};

static void keep_fault(png_structp png, png_const_charp text)
{
    struct png_file *f = png_get_error_ptr(png);
    snprintf(f->fault, sizeof(f->fault), "%s", text);
    longjmp(png_jmpbuf(png), 1);
}

static void ignore_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

/* Ends decoding; the next picture begins anew. */
static void end_decoding(struct png_file *f)
{
    png_destroy_read_struct(&f->png, &f->info, NULL);
    if (f->stream)
        fclose(f->stream);
    free(f->rows);
    f->stream = NULL;
    f->rows = NULL;
}

static void png_file_close(struct oct_picture_file *file)
{
    end_decoding((struct png_file *)file);
}

static enum oct_err begin(struct png_file *f, struct oct_error *err)
{
    int fd;
    enum oct_err e = oct_picture_file_descriptor(&fd, f->file.path, err);
    if (e)
        return e;
    f->stream = fdopen(fd, "rb");
    if (!f->stream)
        close(fd);
    else
        f->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, f, keep_fault, ignore_warning);
    f->info = f->png ? png_create_info_struct(f->png) : NULL;
    return f->info ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", f->file.path);
}

static enum oct_err damaged(const struct png_file *f, struct oct_error *err)
{
    return oct_fail(err, OCT_E_FORMAT, "%s: damaged or truncated PNG file: %s", f->file.path,
                    f->fault);
}

/* Reads the header and asks for samples of 8 or 16 bits. No object with a value changes between
 * setjmp and a fault but those of *f. */
static enum oct_err read_header(struct png_file *f, struct oct_error *err)
{
    if (setjmp(png_jmpbuf(f->png)))
        return damaged(f, err);
    png_init_io(f->png, f->stream);
    png_set_user_limits(f->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX); /* ours have the last word */
    png_set_keep_unknown_chunks(f->png, PNG_HANDLE_CHUNK_NEVER, NULL, 0);
    png_read_info(f->png, f->info);
    enum oct_err e = oct_picture_file_check(f->file.path, png_get_image_height(f->png, f->info),
                                            png_get_image_width(f->png, f->info), err);
    if (e)
        return e;
    f->height = png_get_image_height(f->png, f->info);
    f->width = png_get_image_width(f->png, f->info);
    const int colour = png_get_color_type(f->png, f->info);
    if (colour == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(f->png);
    else if (png_get_bit_depth(f->png, f->info) < 8)
        png_set_expand_gray_1_2_4_to_8(f->png);
    if (colour & PNG_COLOR_MASK_ALPHA || colour == PNG_COLOR_TYPE_PALETTE) /* it may have a tRNS */
        png_set_strip_alpha(f->png);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    png_set_swap(f->png);
#endif
    return OCT_OK;
}

static enum oct_err png_file_open(struct oct_picture_file *file,
                                  const struct oct_pictures_options *options,
                                  struct oct_picture_file_facts *facts, struct oct_error *err)
{
    struct png_file *f = (struct png_file *)file;
    (void)options;
    enum oct_err e = begin(f, err);
    e = e ? e : read_header(f, err);
    *facts =
        (struct oct_picture_file_facts){.n_pictures = 1, .height = f->height, .width = f->width};
    end_decoding(f);
    return e;
}

static unsigned sample(const struct png_file *f, const unsigned char *row, size_t i)
{
    uint16_t wide;
    if (f->n_bytes == 1)
        return row[i];
    memcpy(&wide, row + 2 * i, sizeof(wide));
    return wide;
}

/* False: the channels differ, at *x. */
static bool take_row(const struct png_file *f, const unsigned char *row, float *pixels, uint32_t *x)
{
    for (uint32_t i = 0; i < f->width; i++) {
        const unsigned grey = sample(f, row, (size_t)i * f->n_channels);
        *x = i;
        for (unsigned c = 1; c < f->n_channels; c++)
            if (sample(f, row, (size_t)i * f->n_channels + c) != grey)
                return false;
        pixels[i] = (float)grey;
    }
    return true;
}

/* Interlaced pictures are decoded whole, others a row at a time. */
static enum oct_err decode(struct png_file *f, float *pixels, struct oct_error *err)
{
    uint32_t x;
    if (setjmp(png_jmpbuf(f->png)))
        return damaged(f, err);
    const int n_passes = png_set_interlace_handling(f->png);
    png_read_update_info(f->png, f->info);
    const size_t row_bytes = png_get_rowbytes(f->png, f->info);
    f->n_channels = png_get_channels(f->png, f->info);
    f->n_bytes = png_get_bit_depth(f->png, f->info) / 8u;
    f->rows = calloc(n_passes > 1 ? f->height : 1, row_bytes);
    if (!f->rows)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", f->file.path);
    for (int pass = 1; pass < n_passes; pass++)
        for (uint32_t y = 0; y < f->height; y++)
            png_read_row(f->png, f->rows + y * row_bytes, NULL);
    for (uint32_t y = 0; y < f->height; y++) {
        unsigned char *row = f->rows + (n_passes > 1 ? y * row_bytes : 0);
        png_read_row(f->png, row, NULL);
        if (!take_row(f, row, pixels + (size_t)y * f->width, &x))
            return oct_fail(err, OCT_E_FORMAT, "%s: " OCT_PICTURE_FILE_COLOUR, f->file.path, x, y);
    }
    png_read_end(f->png, NULL); /* the last checksum */
    return OCT_OK;
}

static enum oct_err png_file_read(struct oct_picture_file *file, uint64_t index, float *pixels,
                                  struct oct_pictures_info *info, struct oct_error *err)
{
    struct png_file *f = (struct png_file *)file;
    const uint32_t height = f->height, width = f->width;
    (void)index;
    enum oct_err e = begin(f, err);
    e = e ? e : read_header(f, err);
    if (e == OCT_OK && (f->height != height || f->width != width))
        e = oct_fail(err, OCT_E_FORMAT, "%s: its size has changed meanwhile", f->file.path);
    e = e ? e : decode(f, pixels, err);
    if (e == OCT_OK)
        info->bits = 8 * f->n_bytes;
    f->height = height;
    f->width = width;
    end_decoding(f);
    return e;
}

const struct oct_picture_file_ops oct_picture_file_png = {
    .bytes = sizeof(struct png_file),
    .open = png_file_open,
    .close = png_file_close,
    .read = png_file_read,
};
