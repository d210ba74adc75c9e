/* TIFF by libtiff: grey of 1, 8, 16 and 32 bits, signed too, and floats; strips and tiles; one
 * picture a directory, except for thumbnails; palettes and colour whose channels are equal. */
#include "formats/picture_file.h"
#include "formats/tiff_fault.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tiffio.h>
#include <unistd.h>

#define MOST_CHUNK_BYTES ((uint64_t)2 << 30) /* a strip or a tile, as decoded */

struct tiff_file {
    struct oct_picture_file file;
    TIFF *tiff;
    uint32_t *directories; /* [n]: those that hold pictures */
    uint32_t n, room;
    uint32_t height, width;
    bool is_cut; /* the file ends before its last picture does */
    struct oct_tiff_fault fault;
};

/* How the pixels of the current directory are stored. */
struct store {
    uint32_t height, width;
    uint16_t bits, n_samples, n_colours; /* of n_samples the first 1 or 3; the rest is alpha */
    uint16_t format, photometric, compression;
    bool planes, tiled, is_palette;
    uint16_t *palette[3];
    uint32_t chunk_height, chunk_width;
    uint64_t chunk_bytes, chunk_row_bytes;
};

static void tiff_file_close(struct oct_picture_file *file)
{
    struct tiff_file *f = (struct tiff_file *)file;
    if (f->tiff)
        TIFFClose(f->tiff);
    free(f->directories);
}

static enum oct_err damaged(const struct tiff_file *f, struct oct_error *err)
{
    return oct_fail(err, OCT_E_FORMAT, "%s: damaged or truncated TIFF file%s%s", f->file.path,
                    f->fault.text[0] ? ": " : "", f->fault.text);
}

static enum oct_err refuse(const struct tiff_file *f, const char *what, struct oct_error *err)
{
    return oct_fail(err, OCT_E_FORMAT, "%s: picture %u: %s", f->file.path,
                    (unsigned)TIFFCurrentDirectory(f->tiff), what);
}

/* ---- how it is stored ---- */

static enum oct_err check_samples(const struct tiff_file *f, struct store *s, struct oct_error *err)
{
    const bool is_float = s->format == SAMPLEFORMAT_IEEEFP;
    const bool is_integer = s->format == SAMPLEFORMAT_UINT || s->format == SAMPLEFORMAT_INT ||
                            s->format == SAMPLEFORMAT_VOID;
    s->is_palette = s->photometric == PHOTOMETRIC_PALETTE;
    s->n_colours = 1;
    if (s->photometric == PHOTOMETRIC_RGB || s->photometric == PHOTOMETRIC_YCBCR)
        s->n_colours = 3;
    else if (s->photometric > PHOTOMETRIC_PALETTE)
        return refuse(f, "neither grey nor red, green and blue; convert it to grey", err);
    if (s->n_samples < s->n_colours || s->n_samples > 16)
        return refuse(f, "a number of channels that does not fit its colours", err);
    if (s->photometric == PHOTOMETRIC_YCBCR && s->compression != COMPRESSION_JPEG)
        return refuse(f, "colour of luminance and difference; convert it to grey", err);
    if (!(is_float && (s->bits == 32 || s->bits == 64)) &&
        !(is_integer && (s->bits == 8 || s->bits == 16 || s->bits == 32)) &&
        !(is_integer && s->bits == 1 && s->n_samples == 1))
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: picture %u: samples of %u bits; 8 and 16 bits and floats are read",
                        f->file.path, (unsigned)TIFFCurrentDirectory(f->tiff), s->bits);
    if (s->photometric == PHOTOMETRIC_MINISWHITE && is_float)
        return refuse(f, "floats of which the least is white; invert it", err);
    if (s->is_palette &&
        (s->bits > 16 || is_float || s->n_samples != 1 ||
         !TIFFGetField(f->tiff, TIFFTAG_COLORMAP, &s->palette[0], &s->palette[1], &s->palette[2])))
        return refuse(f, "a palette that cannot be", err);
    return OCT_OK;
}

static enum oct_err check_chunks(const struct tiff_file *f, struct store *s, struct oct_error *err)
{
    s->tiled = TIFFIsTiled(f->tiff);
    if (s->tiled) {
        TIFFGetField(f->tiff, TIFFTAG_TILELENGTH, &s->chunk_height);
        TIFFGetField(f->tiff, TIFFTAG_TILEWIDTH, &s->chunk_width);
        s->chunk_row_bytes = (uint64_t)TIFFTileRowSize64(f->tiff);
    } else {
        TIFFGetFieldDefaulted(f->tiff, TIFFTAG_ROWSPERSTRIP, &s->chunk_height);
        if (s->chunk_height > s->height)
            s->chunk_height = s->height;
        s->chunk_width = s->width;
        s->chunk_row_bytes = (uint64_t)TIFFScanlineSize64(f->tiff);
    }
    const uint64_t samples = (uint64_t)s->chunk_width * (s->planes ? 1 : s->n_samples);
    if (s->chunk_height == 0 || s->chunk_width == 0 ||
        s->chunk_row_bytes < (samples * s->bits + 7) / 8)
        return refuse(f, "strips or tiles that cannot be", err);
    if (s->chunk_height > OCT_PICTURE_MOST_SIDE || s->chunk_width > OCT_PICTURE_MOST_SIDE ||
        s->chunk_row_bytes > MOST_CHUNK_BYTES / s->chunk_height)
        return refuse(f, "strips or tiles of more than 2 GiB", err);
    s->chunk_bytes = s->chunk_row_bytes * s->chunk_height;
    return OCT_OK;
}

static enum oct_err look_at_store(const struct tiff_file *f, struct store *s, struct oct_error *err)
{
    uint16_t planes = PLANARCONFIG_CONTIG;
    *s = (struct store){.photometric = UINT16_MAX};
    TIFFGetField(f->tiff, TIFFTAG_IMAGELENGTH, &s->height);
    TIFFGetField(f->tiff, TIFFTAG_IMAGEWIDTH, &s->width);
    TIFFGetFieldDefaulted(f->tiff, TIFFTAG_BITSPERSAMPLE, &s->bits);
    TIFFGetFieldDefaulted(f->tiff, TIFFTAG_SAMPLESPERPIXEL, &s->n_samples);
    TIFFGetFieldDefaulted(f->tiff, TIFFTAG_SAMPLEFORMAT, &s->format);
    TIFFGetFieldDefaulted(f->tiff, TIFFTAG_COMPRESSION, &s->compression);
    TIFFGetFieldDefaulted(f->tiff, TIFFTAG_PLANARCONFIG, &planes);
    if (!TIFFGetField(f->tiff, TIFFTAG_PHOTOMETRIC, &s->photometric))
        s->photometric = PHOTOMETRIC_MINISBLACK;
    s->planes = planes == PLANARCONFIG_SEPARATE && s->n_samples > 1;
    enum oct_err e = oct_picture_file_check(f->file.path, s->height, s->width, err);
    e = e ? e : check_samples(f, s, err);
    if (e == OCT_OK && s->photometric == PHOTOMETRIC_YCBCR)
        TIFFSetField(f->tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    if (e == OCT_OK && !TIFFIsCODECConfigured(s->compression))
        e = refuse(f, "packed in a way that libtiff does not know", err);
    return e ? e : check_chunks(f, s, err);
}

/* ---- directories ---- */

/* Bytes of strip or tile i that are needed; what a program states of the last strip may be the size
 * of a full one. */
static uint64_t needed_bytes(const struct store *s, uint32_t i, uint64_t stated)
{
    if (s->compression != COMPRESSION_NONE || s->tiled)
        return stated;
    const uint32_t n_strips = (s->height + s->chunk_height - 1) / s->chunk_height; /* of a plane */
    const uint32_t left = s->height - i % n_strips * s->chunk_height;
    const uint64_t bytes = s->chunk_row_bytes * (left < s->chunk_height ? left : s->chunk_height);
    return bytes < stated ? bytes : stated;
}

/* Whether the bytes of all strips or tiles lie in the file. */
static bool is_whole(const struct tiff_file *f, const struct store *s)
{
    const uint32_t n = s->tiled ? TIFFNumberOfTiles(f->tiff) : TIFFNumberOfStrips(f->tiff);
    for (uint32_t i = 0; i < n; i++) {
        int fault = 0;
        const uint64_t offset = TIFFGetStrileOffsetWithErr(f->tiff, i, &fault);
        const uint64_t bytes = fault ? 0 : TIFFGetStrileByteCountWithErr(f->tiff, i, &fault);
        if (fault || offset > f->file.file_bytes ||
            needed_bytes(s, i, bytes) > f->file.file_bytes - offset)
            return false;
    }
    return true;
}

static enum oct_err add_directory(struct tiff_file *f, struct oct_error *err)
{
    struct store s;
    uint32_t type = 0;
    TIFFGetFieldDefaulted(f->tiff, TIFFTAG_SUBFILETYPE, &type);
    if (type & (FILETYPE_REDUCEDIMAGE | FILETYPE_MASK))
        return OCT_OK;
    enum oct_err e = look_at_store(f, &s, err);
    if (e)
        return e;
    if (f->n == 0) {
        f->height = s.height;
        f->width = s.width;
    }
    if (s.height != f->height || s.width != f->width)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: picture %u is %u x %u, but its first %u x %u; split the file",
                        f->file.path, f->n, s.width, s.height, f->width, f->height);
    if (!is_whole(f, &s)) {
        f->is_cut = true;
        return OCT_OK;
    }
    if (f->n == f->room) {
        const uint32_t room = f->room ? 2 * f->room : 16;
        uint32_t *grown = realloc(f->directories, room * sizeof(*grown));
        if (!grown)
            return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", f->file.path);
        f->directories = grown;
        f->room = room;
    }
    f->directories[f->n++] = TIFFCurrentDirectory(f->tiff);
    return OCT_OK;
}

/* ImageJ writes stacks beyond 4 GiB with one directory for all pictures. */
static bool is_headless_stack(const struct tiff_file *f)
{
    const char *text = NULL, *images;
    if (f->n != 1 || !TIFFSetDirectory(f->tiff, (tdir_t)f->directories[0]) ||
        !TIFFGetField(f->tiff, TIFFTAG_IMAGEDESCRIPTION, &text) || !text ||
        strncmp(text, "ImageJ=", 7) != 0)
        return false;
    images = strstr(text, "images=");
    return images && strtoul(images + 7, NULL, 10) > 1;
}

static enum oct_err list_directories(struct tiff_file *f, struct oct_error *err)
{
    do {
        const enum oct_err e = add_directory(f, err);
        if (e || f->is_cut)
            return e;
        if (TIFFLastDirectory(f->tiff)) {
            if (f->n == 0)
                return oct_fail(err, OCT_E_FORMAT, "%s: holds no picture", f->file.path);
            if (is_headless_stack(f))
                return oct_fail(err, OCT_E_FORMAT,
                                "%s: a stack in a form of ImageJ's own, of which other programs "
                                "see the first picture alone; save it as an image sequence",
                                f->file.path);
            return OCT_OK;
        }
    } while (TIFFReadDirectory(f->tiff));
    f->is_cut = true;
    return OCT_OK;
}

static enum oct_err begin(struct tiff_file *f, struct oct_error *err)
{
    int fd;
    struct stat st;
    enum oct_err e = oct_picture_file_descriptor(&fd, f->file.path, err);
    if (e)
        return e;
    f->file.file_bytes = fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;
    TIFFOpenOptions *options = oct_tiff_fault_options(&f->fault);
    if (options) {
        TIFFOpenOptionsSetMaxSingleMemAlloc(options, (tmsize_t)MOST_CHUNK_BYTES);
        f->tiff = TIFFFdOpenExt(fd, f->file.path, "rm", options); /* m: a file that is cut meanwhile
                                                                must not raise a signal */
        TIFFOpenOptionsFree(options);
    }
    if (!f->tiff)
        close(fd);
    return f->tiff ? OCT_OK : damaged(f, err);
}

/* libtiff does not say which directory is the current one after it has failed to read one. */
static enum oct_err begin_again(struct tiff_file *f, struct oct_error *err)
{
    TIFFClose(f->tiff);
    f->tiff = NULL;
    return begin(f, err);
}

static enum oct_err tiff_file_open(struct oct_picture_file *file,
                                   const struct oct_pictures_options *options,
                                   struct oct_picture_file_facts *facts, struct oct_error *err)
{
    struct tiff_file *f = (struct tiff_file *)file;
    (void)options;
    enum oct_err e = begin(f, err);
    e = e ? e : list_directories(f, err);
    if (!e && f->is_cut)
        e = f->n == 0 ? damaged(f, err) : begin_again(f, err);
    *facts = (struct oct_picture_file_facts){
        .n_pictures = f->n, .height = f->height, .width = f->width, .is_cut = f->is_cut};
    return e;
}

/* ---- pixels ---- */

static float integer_sample(const struct store *s, const unsigned char *at)
{
    uint16_t u16;
    uint32_t u32;
    if (s->bits == 8)
        return s->format == SAMPLEFORMAT_INT ? (float)(int8_t)*at : (float)*at;
    if (s->bits == 16) {
        memcpy(&u16, at, sizeof(u16));
        return s->format == SAMPLEFORMAT_INT ? (float)(int16_t)u16 : (float)u16;
    }
    memcpy(&u32, at, sizeof(u32));
    return s->format == SAMPLEFORMAT_INT ? (float)(int32_t)u32 : (float)u32;
}

static float sample(const struct store *s, const unsigned char *row, size_t i)
{
    float f32;
    double f64;
    if (s->bits == 1)
        return row[i / 8] >> (7 - i % 8) & 1 ? 255.0f : 0.0f;
    const unsigned char *at = row + i * (s->bits / 8);
    if (s->format != SAMPLEFORMAT_IEEEFP)
        return integer_sample(s, at);
    if (s->bits == 32) {
        memcpy(&f32, at, sizeof(f32));
        return f32;
    }
    memcpy(&f64, at, sizeof(f64));
    return (float)f64;
}

static float inverted(const struct store *s, float value)
{
    const float most = s->bits == 32 ? 4294967295.0f : s->bits == 16 ? 65535.0f : 255.0f;
    return (s->format == SAMPLEFORMAT_INT ? -1.0f : most) - value;
}

static bool same(float a, float b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* One row of a chunk: n pixels of plane `plane`. False: colour, at pixel *x of the row. */
static bool take_row(const struct store *s, const unsigned char *row, unsigned plane, uint32_t n,
                     float *pixels, uint32_t *x)
{
    const size_t step = s->planes ? 1 : s->n_samples;
    for (uint32_t i = 0; i < n; i++) {
        float value = sample(s, row, i * step);
        *x = i;
        for (unsigned c = 1; !s->planes && c < s->n_colours; c++)
            if (!same(sample(s, row, i * step + c), value))
                return false;
        if (s->is_palette) {
            const unsigned entry = (unsigned)value & ((1u << (s->bits & 31)) - 1);
            if (s->palette[0][entry] != s->palette[1][entry] ||
                s->palette[0][entry] != s->palette[2][entry])
                return false;
            value = (float)(s->palette[0][entry] >> 8);
        }
        if (s->photometric == PHOTOMETRIC_MINISWHITE)
            value = inverted(s, value);
        if (plane > 0 && !same(pixels[i], value))
            return false;
        pixels[i] = value;
    }
    return true;
}

/* The chunk whose first pixel is (y0, x0). */
static enum oct_err read_chunk(struct tiff_file *f, const struct store *s, unsigned plane,
                               uint32_t y0, uint32_t x0, unsigned char *chunk, float *pixels,
                               struct oct_error *err)
{
    const uint32_t h = s->height - y0 < s->chunk_height ? s->height - y0 : s->chunk_height;
    const uint32_t w = s->width - x0 < s->chunk_width ? s->width - x0 : s->chunk_width;
    tmsize_t got;
    if (s->tiled)
        got = TIFFReadEncodedTile(f->tiff, TIFFComputeTile(f->tiff, x0, y0, 0, (uint16_t)plane),
                                  chunk, (tmsize_t)s->chunk_bytes);
    else
        got = TIFFReadEncodedStrip(f->tiff, TIFFComputeStrip(f->tiff, y0, (uint16_t)plane), chunk,
                                   (tmsize_t)(s->chunk_row_bytes * h));
    if (got < 0 || (uint64_t)got < s->chunk_row_bytes * h)
        return damaged(f, err);
    for (uint32_t y = 0; y < h; y++) {
        uint32_t x;
        float *to = pixels + (size_t)(y0 + y) * s->width + x0;
        if (!take_row(s, chunk + y * s->chunk_row_bytes, plane, w, to, &x))
            return oct_fail(err, OCT_E_FORMAT, "%s: " OCT_PICTURE_FILE_COLOUR, f->file.path, x0 + x,
                            y0 + y);
    }
    return OCT_OK;
}

static enum oct_err read_pixels(struct tiff_file *f, const struct store *s, float *pixels,
                                struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    unsigned char *chunk = calloc(1, s->chunk_bytes);
    if (!chunk)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", f->file.path);
    f->fault.text[0] = '\0';
    for (unsigned plane = 0; plane < (s->planes ? s->n_colours : 1u); plane++)
        for (uint32_t y = 0; y < s->height; y += s->chunk_height)
            for (uint32_t x = 0; e == OCT_OK && x < s->width; x += s->chunk_width)
                e = read_chunk(f, s, plane, y, x, chunk, pixels, err);
    free(chunk);
    return e;
}

static bool go_to(struct tiff_file *f, uint32_t directory)
{
    const uint32_t now = TIFFCurrentDirectory(f->tiff);
    if (now == directory)
        return true;
    if (now + 1 == directory)
        return TIFFReadDirectory(f->tiff);
    return TIFFSetDirectory(f->tiff, (tdir_t)directory);
}

static enum oct_err tiff_file_read(struct oct_picture_file *file, uint64_t index, float *pixels,
                                   struct oct_pictures_info *info, struct oct_error *err)
{
    struct tiff_file *f = (struct tiff_file *)file;
    struct store s;
    if (!go_to(f, f->directories[index]))
        return damaged(f, err);
    enum oct_err e = look_at_store(f, &s, err);
    if (e == OCT_OK && (s.height != f->height || s.width != f->width))
        e = refuse(f, "its size has changed meanwhile", err);
    e = e ? e : read_pixels(f, &s, pixels, err);
    info->bits = s.bits <= 8 ? 8 : s.bits == 16 ? 16 : 32;
    return e;
}

const struct oct_picture_file_ops oct_picture_file_tiff = {
    .bytes = sizeof(struct tiff_file),
    .open = tiff_file_open,
    .close = tiff_file_close,
    .read = tiff_file_read,
};
