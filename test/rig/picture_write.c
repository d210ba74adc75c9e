#include "test/rig/picture_write.h"

#include "formats/whole_file.h"

#include <errno.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>

#define ROWS_PER_STRIP 64u

/* ---- PNG ---- */

static void keep_fault(png_structp png, png_const_charp text)
{
    char *fault = png_get_error_ptr(png);
    snprintf(fault, 160, "%s", text);
    longjmp(png_jmpbuf(png), 1);
}

static void ignore_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

/* False: libpng failed; its reason is in fault. */
static bool encode_png(png_structp png, png_infop info, FILE *stream, uint32_t height,
                       uint32_t width, unsigned bits, const void *pixels)
{
    if (setjmp(png_jmpbuf(png)))
        return false;
    png_init_io(png, stream);
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_IHDR(png, info, width, height, (int)bits, PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (bits == 16)
        png_set_swap(png);
#endif
    for (uint32_t y = 0; y < height; y++)
        png_write_row(png, (const unsigned char *)pixels + (size_t)y * width * (bits / 8));
    png_write_end(png, info);
    return true;
}

static enum oct_err write_png(const struct oct_whole_file *file, uint32_t height, uint32_t width,
                              unsigned bits, const void *pixels, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    char fault[160] = "out of memory";
    FILE *stream = fopen(file->work, "wxe");
    if (!stream)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be made", file->path);
    png_structp png =
        png_create_write_struct(PNG_LIBPNG_VER_STRING, fault, keep_fault, ignore_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    errno = 0;
    if (!info || !encode_png(png, info, stream, height, width, bits, pixels))
        e = errno ? oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", file->path)
                  : oct_fail(err, OCT_E_IO, "%s: cannot be written: %s", file->path, fault);
    png_destroy_write_struct(&png, &info);
    if (fclose(stream) != 0 && e == OCT_OK)
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", file->path);
    return e;
}

enum oct_err oct_picture_write_png(const char *path, bool force, uint32_t height, uint32_t width,
                                   unsigned bits, const void *pixels, struct oct_error *err)
{
    struct oct_whole_file file;
    enum oct_err e = oct_whole_file_init(&file, path, force, err);
    if (e)
        return e;
    e = write_png(&file, height, width, bits, pixels, err);
    if (e == OCT_OK)
        return oct_whole_file_publish(&file, err);
    oct_whole_file_discard(&file);
    return e;
}

/* ---- TIFF ---- */

static int silent(TIFF *tiff, void *context, const char *module, const char *format, va_list args)
{
    (void)tiff;
    (void)context;
    (void)module;
    (void)format;
    (void)args;
    return 1;
}

static bool encode_tiff(TIFF *tiff, uint32_t height, uint32_t width, const float *pixels)
{
    bool ok = TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, width) &&
              TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, height) &&
              TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 32) &&
              TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 1) &&
              TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_IEEEFP) &&
              TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK) &&
              TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) &&
              TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, ROWS_PER_STRIP) &&
              TIFFSetField(tiff, TIFFTAG_SOFTWARE, "octd " OCT_VERSION);
    float *strip = malloc((size_t)ROWS_PER_STRIP * width * sizeof(*strip));
    for (uint32_t y = 0; ok && strip && y < height; y += ROWS_PER_STRIP) {
        const uint32_t n = height - y < ROWS_PER_STRIP ? height - y : ROWS_PER_STRIP;
        const size_t bytes = (size_t)n * width * sizeof(*strip);
        memcpy(strip, pixels + (size_t)y * width, bytes); /* libtiff may change what it writes */
        ok = TIFFWriteEncodedStrip(tiff, y / ROWS_PER_STRIP, strip, (tmsize_t)bytes) >= 0;
    }
    ok = ok && strip;
    free(strip);
    return ok && TIFFWriteDirectory(tiff);
}

static enum oct_err write_tiff(const struct oct_whole_file *file, uint32_t height, uint32_t width,
                               const float *pixels, struct oct_error *err)
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    TIFF *tiff = NULL;
    if (options) {
        TIFFOpenOptionsSetErrorHandlerExtR(options, silent, NULL);
        TIFFOpenOptionsSetWarningHandlerExtR(options, silent, NULL);
        errno = 0;
        tiff = TIFFOpenExt(file->work, "w", options);
        TIFFOpenOptionsFree(options);
    }
    if (!tiff)
        return oct_fail_errno(err, OCT_E_IO, errno ? errno : ENOMEM, "%s: cannot be made",
                              file->path);
    errno = 0;
    bool ok = encode_tiff(tiff, height, width, pixels);
    int errnum = errno ? errno : EIO;
    TIFFClose(tiff);
    return ok ? OCT_OK : oct_fail_errno(err, OCT_E_IO, errnum, "%s: cannot be written", file->path);
}

enum oct_err oct_picture_write_tiff(const char *path, bool force, uint32_t height, uint32_t width,
                                    const float *pixels, struct oct_error *err)
{
    struct oct_whole_file file;
    enum oct_err e = oct_whole_file_init(&file, path, force, err);
    if (e)
        return e;
    e = write_tiff(&file, height, width, pixels, err);
    if (e == OCT_OK)
        return oct_whole_file_publish(&file, err);
    oct_whole_file_discard(&file);
    return e;
}
