#include "formats/film_write.h"

#include "formats/whole_file.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <tiffio.h>

#define MOST_SIDE 16384u
#define MOST_AVI_BYTES ((uint64_t)2147483647 - 65536)    /* what every program reads */
#define MOST_TIFF_BYTES ((uint64_t)4294967295 - 1048576) /* offsets of 32 bits */
#define TIFF_PICTURE_BYTES 512u /* at most, of a picture beside its pixels */
#define NPY_HEADER_BYTES 128u

struct oct_film_file {
    struct oct_whole_file file;
    struct oct_film_setup setup;
    FILE *stream; /* of AVI and .npy; NULL otherwise, and once it is closed */
    TIFF *tiff;
    bool is_big;            /* TIFF */
    uint64_t n;             /* pictures so far */
    size_t picture_bytes;   /* in the file */
    unsigned char *scratch; /* [picture_bytes]: a picture as AVI and libtiff take it */
    unsigned char header[1280];
    size_t header_bytes;
    char fault[160]; /* libtiff's first error */
};

static size_t bytes_of(enum oct_film_pixel pixel)
{
    static const size_t bytes[] = {
        [OCT_FILM_U8] = 1, [OCT_FILM_RGB] = 3, [OCT_FILM_U16] = 2, [OCT_FILM_F32] = 4};
    return bytes[pixel];
}

bool oct_film_format_of(const char *path, enum oct_film_format *format)
{
    static const struct {
        const char *suffix;
        enum oct_film_format format;
    } known[] = {{".avi", OCT_FILM_AVI},
                 {".tif", OCT_FILM_TIFF},
                 {".tiff", OCT_FILM_TIFF},
                 {".npy", OCT_FILM_NPY}};
    const size_t n = strlen(path);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const size_t n_suffix = strlen(known[i].suffix);
        if (n > n_suffix && strcasecmp(path + n - n_suffix, known[i].suffix) == 0) {
            *format = known[i].format;
            return true;
        }
    }
    return false;
}

static enum oct_err cannot_write(const struct oct_film_file *f, int errnum, struct oct_error *err)
{
    return oct_fail_errno(err, OCT_E_IO, errnum ? errnum : EIO, "%s: cannot be written",
                          f->file.path);
}

static enum oct_err write_bytes(struct oct_film_file *f, const void *bytes, size_t n,
                                struct oct_error *err)
{
    errno = 0;
    return fwrite(bytes, 1, n, f->stream) == n ? OCT_OK : cannot_write(f, errno, err);
}

/* ---- AVI ----
 *
 * 8 bits from the last row to the first, as every program reads them; red, green and blue from the
 * first to the last, as ffmpeg writes them: OpenCV 5.0 crashes on the other order. */

static void put_u32(struct oct_film_file *f, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        f->header[f->header_bytes++] = (unsigned char)(value >> 8 * i);
}

static void put_u16(struct oct_film_file *f, uint32_t value)
{
    f->header[f->header_bytes++] = (unsigned char)value;
    f->header[f->header_bytes++] = (unsigned char)(value >> 8);
}

static void put_name(struct oct_film_file *f, const char *name)
{
    memcpy(f->header + f->header_bytes, name, 4);
    f->header_bytes += 4;
}

static void put_list(struct oct_film_file *f, const char *list, uint64_t n_bytes, const char *kind)
{
    put_name(f, list);
    put_u32(f, (uint32_t)n_bytes);
    put_name(f, kind);
}

static void put_chunk(struct oct_film_file *f, const char *name, uint32_t n_bytes)
{
    put_name(f, name);
    put_u32(f, n_bytes);
}

/* The fraction nearest to fps of which both numbers stay below 2^31: its continued fraction. */
static void find_rate(double fps, uint32_t *rate, uint32_t *scale)
{
    double rest = fps;
    uint64_t a = 0, b = 1, c = 1, d = 0; /* the two newest convergents: a / b, c / d */
    *rate = *scale = 1;
    for (int i = 0; i < 32; i++) {
        const double whole = floor(rest);
        if (whole * (double)c + (double)a >= 2147483648.0 ||
            whole * (double)d + (double)b >= 2147483648.0)
            return;
        const uint64_t p = (uint64_t)whole * c + a, q = (uint64_t)whole * d + b;
        a = c;
        b = d;
        c = p;
        d = q;
        if (p > 0) {
            *rate = (uint32_t)p;
            *scale = (uint32_t)q;
        }
        if ((double)p / (double)q == fps || rest - whole <= 0)
            return;
        rest = 1 / (rest - whole);
    }
}

static void put_stream(struct oct_film_file *f, uint32_t n)
{
    const struct oct_film_setup *s = &f->setup;
    const bool is_grey = s->pixel == OCT_FILM_U8;
    uint32_t rate, scale;
    find_rate(s->fps, &rate, &scale);
    put_list(f, "LIST", is_grey ? 1140 : 116, "strl");
    put_chunk(f, "strh", 56);
    put_name(f, "vids");
    put_name(f, "DIB ");
    for (int i = 0; i < 3; i++) /* flags, priority and language, initial frames */
        put_u32(f, 0);
    put_u32(f, scale);
    put_u32(f, rate);
    put_u32(f, 0); /* start */
    put_u32(f, n);
    put_u32(f, (uint32_t)f->picture_bytes);
    put_u32(f, UINT32_MAX); /* quality: not said */
    put_u32(f, 0);
    put_u32(f, 0); /* left, top; right, bottom: 16 bits each */
    put_u16(f, s->width);
    put_u16(f, s->height);
    put_chunk(f, "strf", is_grey ? 1064 : 40);
    put_u32(f, 40);
    put_u32(f, s->width);
    put_u32(f, is_grey ? s->height : 0 - s->height); /* below 0: from the first row to the last */
    put_u16(f, 1);
    put_u16(f, is_grey ? 8 : 24);
    put_u32(f, 0); /* BI_RGB */
    put_u32(f, (uint32_t)f->picture_bytes);
    put_u32(f, 0);
    put_u32(f, 0);
    put_u32(f, is_grey ? 256 : 0);
    put_u32(f, 0);
    for (uint32_t i = 0; is_grey && i < 256; i++)
        put_u32(f, i * 0x010101);
}

static uint64_t avi_bytes(const struct oct_film_file *f, uint64_t n)
{
    return sizeof(f->header) + n * (f->picture_bytes + 8 + 16);
}

/* The header of a film of n pictures: f->header. */
static void make_avi_header(struct oct_film_file *f, uint32_t n)
{
    const uint64_t header_bytes = f->setup.pixel == OCT_FILM_U8 ? 1248 : 224;
    const uint64_t movi_bytes = 4 + n * ((uint64_t)f->picture_bytes + 8);
    const double us = 1e6 / f->setup.fps, rate = (double)f->picture_bytes * f->setup.fps;
    f->header_bytes = 0;
    put_list(f, "RIFF", header_bytes - 12 + movi_bytes + 8 + 16 * (uint64_t)n, "AVI ");
    put_list(f, "LIST", header_bytes - 32, "hdrl");
    put_chunk(f, "avih", 56);
    put_u32(f, us < 4294967295.0 ? (uint32_t)lround(us) : UINT32_MAX);
    put_u32(f, rate < 4294967295.0 ? (uint32_t)rate : UINT32_MAX);
    put_u32(f, 0);
    put_u32(f, 0x10); /* has an index */
    put_u32(f, n);
    put_u32(f, 0);
    put_u32(f, 1); /* streams */
    put_u32(f, (uint32_t)f->picture_bytes);
    put_u32(f, f->setup.width);
    put_u32(f, f->setup.height);
    for (int i = 0; i < 4; i++)
        put_u32(f, 0);
    put_stream(f, n);
    put_list(f, "LIST", movi_bytes, "movi");
}

static enum oct_err add_to_avi(struct oct_film_file *f, const unsigned char *pixels,
                               struct oct_error *err)
{
    const size_t n_channels = bytes_of(f->setup.pixel), width = f->setup.width;
    const size_t stride = f->picture_bytes / f->setup.height;
    const uint32_t n_bytes = (uint32_t)f->picture_bytes;
    unsigned char head[8] = "00db";
    if (avi_bytes(f, f->n + 1) > MOST_AVI_BYTES)
        return oct_fail(err, OCT_E_ARG,
                        "%s: an AVI of more than 2 GiB; write a TIFF stack, or fewer pictures",
                        f->file.path);
    for (int i = 0; i < 4; i++)
        head[4 + i] = (unsigned char)(n_bytes >> 8 * i);
    for (size_t y = 0; y < f->setup.height; y++) {
        const size_t row = n_channels == 1 ? f->setup.height - 1 - y : y;
        const unsigned char *from = pixels + row * width * n_channels;
        unsigned char *to = f->scratch + y * stride;
        if (n_channels == 1)
            memcpy(to, from, width);
        for (size_t i = 0; n_channels == 3 && i < 3 * width; i++)
            to[i] = from[i / 3 * 3 + 2 - i % 3];
    }
    const enum oct_err e = write_bytes(f, head, sizeof(head), err);
    return e ? e : write_bytes(f, f->scratch, f->picture_bytes, err);
}

static enum oct_err end_avi(struct oct_film_file *f, struct oct_error *err)
{
    enum oct_err e;
    f->header_bytes = 0;
    put_chunk(f, "idx1", (uint32_t)(16 * f->n));
    e = write_bytes(f, f->header, f->header_bytes, err);
    for (uint64_t i = 0; e == OCT_OK && i < f->n; i++) {
        f->header_bytes = 0;
        put_name(f, "00db");
        put_u32(f, 0x10); /* a picture of its own */
        put_u32(f, (uint32_t)(4 + i * (f->picture_bytes + 8)));
        put_u32(f, (uint32_t)f->picture_bytes);
        e = write_bytes(f, f->header, f->header_bytes, err);
    }
    make_avi_header(f, (uint32_t)f->n);
    return e;
}

/* ---- numpy ---- */

static void make_npy_header(struct oct_film_file *f)
{
    static const char *const types[] = {
        [OCT_FILM_U8] = "|u1", [OCT_FILM_U16] = "<u2", [OCT_FILM_F32] = "<f4"};
    char *text = (char *)f->header;
    memset(f->header, ' ', NPY_HEADER_BYTES);
    memcpy(f->header, "\x93NUMPY\x01\x00\x76\x00", 10); /* 118 bytes follow */
    const int n =
        snprintf(text + 10, NPY_HEADER_BYTES - 10,
                 "{'descr': '%s', 'fortran_order': False, 'shape': (%" PRIu64 ", %u, %u), }",
                 types[f->setup.pixel], f->n, f->setup.height, f->setup.width);
    text[10 + n] = ' ';
    text[NPY_HEADER_BYTES - 1] = '\n';
    f->header_bytes = NPY_HEADER_BYTES;
}

/* ---- TIFF ---- */

static int keep_fault(TIFF *tiff, void *context, const char *module, const char *format,
                      va_list args) __attribute__((format(printf, 4, 0)));
static int keep_fault(TIFF *tiff, void *context, const char *module, const char *format,
                      va_list args)
{
    struct oct_film_file *f = context;
    (void)tiff;
    (void)module;
    if (!f->fault[0])
        vsnprintf(f->fault, sizeof(f->fault), format, args);
    return 1;
}

static enum oct_err open_tiff(struct oct_film_file *f, struct oct_error *err)
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    f->is_big = f->setup.n_pictures * (f->picture_bytes + TIFF_PICTURE_BYTES) > MOST_TIFF_BYTES;
    errno = 0;
    if (options) {
        TIFFOpenOptionsSetErrorHandlerExtR(options, keep_fault, f);
        TIFFOpenOptionsSetWarningHandlerExtR(options, keep_fault, f);
        f->tiff = TIFFOpenExt(f->file.work, f->is_big ? "w8" : "w", options);
        TIFFOpenOptionsFree(options);
    }
    return f->tiff ? OCT_OK : cannot_write(f, errno, err);
}

static enum oct_err add_to_tiff(struct oct_film_file *f, const unsigned char *pixels,
                                struct oct_error *err)
{
    if (!f->is_big && (f->n + 1) * (f->picture_bytes + TIFF_PICTURE_BYTES) > MOST_TIFF_BYTES)
        return oct_fail(err, OCT_E_ARG, "%s: a TIFF of more than 4 GiB; write fewer pictures",
                        f->file.path);
    memcpy(f->scratch, pixels, f->picture_bytes); /* libtiff may change what it writes */
    errno = 0;
    if (TIFFSetField(f->tiff, TIFFTAG_IMAGEWIDTH, f->setup.width) &&
        TIFFSetField(f->tiff, TIFFTAG_IMAGELENGTH, f->setup.height) &&
        TIFFSetField(f->tiff, TIFFTAG_BITSPERSAMPLE, 8 * (unsigned)bytes_of(f->setup.pixel)) &&
        TIFFSetField(f->tiff, TIFFTAG_SAMPLESPERPIXEL, 1) &&
        TIFFSetField(f->tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK) &&
        TIFFSetField(f->tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) &&
        TIFFSetField(f->tiff, TIFFTAG_ROWSPERSTRIP, f->setup.height) &&
        TIFFSetField(f->tiff, TIFFTAG_SOFTWARE, "octd " OCT_VERSION) &&
        TIFFWriteEncodedStrip(f->tiff, 0, f->scratch, (tmsize_t)f->picture_bytes) >= 0 &&
        TIFFWriteDirectory(f->tiff))
        return OCT_OK;
    if (errno)
        return cannot_write(f, errno, err);
    return oct_fail(err, OCT_E_IO, "%s: cannot be written: %s", f->file.path, f->fault);
}

/* ---- any format ---- */

static enum oct_err check_setup(const char *path, const struct oct_film_setup *s,
                                struct oct_error *err)
{
    static const unsigned taken[] = {[OCT_FILM_AVI] = 1u << OCT_FILM_U8 | 1u << OCT_FILM_RGB,
                                     [OCT_FILM_TIFF] = 1u << OCT_FILM_U8 | 1u << OCT_FILM_U16,
                                     [OCT_FILM_NPY] = 1u << OCT_FILM_U8 | 1u << OCT_FILM_U16 |
                                                      1u << OCT_FILM_F32};
    static const char *const takes[] = {[OCT_FILM_AVI] = "AVI takes 8 bits and red, green and blue",
                                        [OCT_FILM_TIFF] = "a TIFF stack takes 8 and 16 bits",
                                        [OCT_FILM_NPY] = ".npy takes 8 and 16 bits and floats"};
    if (!(taken[s->format] >> s->pixel & 1))
        return oct_fail(err, OCT_E_ARG, "%s: %s", path, takes[s->format]);
    if (s->height < 1 || s->width < 1 || s->height > MOST_SIDE || s->width > MOST_SIDE)
        return oct_fail(err, OCT_E_ARG,
                        "%s: pictures of %u x %u; each side must have 1 to %u "
                        "pixels",
                        path, s->width, s->height, MOST_SIDE);
    if (s->format == OCT_FILM_AVI && !(s->fps >= 1e-6 && s->fps <= 1e6))
        return oct_fail(err, OCT_E_ARG, "%s: %g pictures a second; an AVI needs 1e-6 to 1e6", path,
                        s->fps);
    return OCT_OK;
}

static enum oct_err open_file(struct oct_film_file *f, struct oct_error *err)
{
    if (f->setup.format == OCT_FILM_TIFF)
        return open_tiff(f, err);
    if (f->setup.format == OCT_FILM_AVI &&
        f->setup.n_pictures > (MOST_AVI_BYTES - sizeof(f->header)) / (f->picture_bytes + 24))
        return oct_fail(err, OCT_E_ARG,
                        "%s: %" PRIu64 " pictures of %zu bytes make an AVI of more than 2 GiB; "
                        "write a TIFF stack, or fewer pictures",
                        f->file.path, f->setup.n_pictures, f->picture_bytes);
    if (!(f->stream = fopen(f->file.work, "wxe")))
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be made", f->file.path);
    if (f->setup.format == OCT_FILM_AVI)
        make_avi_header(f, 0);
    else
        make_npy_header(f);
    return write_bytes(f, f->header, f->header_bytes, err);
}

enum oct_err oct_film_file_create(struct oct_film_file **film, const char *path,
                                  const struct oct_film_setup *setup, struct oct_error *err)
{
    *film = NULL;
    enum oct_err e = check_setup(path, setup, err);
    if (e)
        return e;
    struct oct_film_file *f = calloc(1, sizeof(*f));
    if (!f)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    f->setup = *setup;
    size_t stride = setup->width * bytes_of(setup->pixel);
    if (setup->format == OCT_FILM_AVI)
        stride = (stride + 3) / 4 * 4;
    f->picture_bytes = stride * setup->height;
    e = oct_whole_file_init(&f->file, path, setup->force, err);
    if (e == OCT_OK && !(f->scratch = calloc(1, f->picture_bytes)))
        e = oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    if (e == OCT_OK)
        e = open_file(f, err);
    if (e) {
        oct_film_file_discard(f);
        return e;
    }
    *film = f;
    return OCT_OK;
}

enum oct_err oct_film_file_add(struct oct_film_file *film, const void *pixels,
                               struct oct_error *err)
{
    enum oct_err e;
    if (film->setup.format == OCT_FILM_AVI)
        e = add_to_avi(film, pixels, err);
    else if (film->setup.format == OCT_FILM_TIFF)
        e = add_to_tiff(film, pixels, err);
    else
        e = write_bytes(film, pixels, film->picture_bytes, err);
    film->n += e == OCT_OK;
    return e;
}

/* The header says how many pictures there are, and is written again. */
static enum oct_err end_stream(struct oct_film_file *f, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    if (f->setup.format == OCT_FILM_AVI)
        e = end_avi(f, err);
    else
        make_npy_header(f);
    if (e == OCT_OK && fseek(f->stream, 0, SEEK_SET) != 0)
        e = cannot_write(f, errno, err);
    if (e == OCT_OK)
        e = write_bytes(f, f->header, f->header_bytes, err);
    FILE *stream = f->stream;
    f->stream = NULL;
    if (fclose(stream) != 0 && e == OCT_OK)
        e = cannot_write(f, errno, err);
    return e;
}

static enum oct_err end_tiff(struct oct_film_file *f, struct oct_error *err)
{
    f->fault[0] = '\0';
    TIFFClose(f->tiff);
    f->tiff = NULL;
    if (!f->fault[0])
        return OCT_OK;
    return oct_fail(err, OCT_E_IO, "%s: cannot be written: %s", f->file.path, f->fault);
}

enum oct_err oct_film_file_publish(struct oct_film_file *film, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    if (film->n == 0)
        e = oct_fail(err, OCT_E_ARG, "%s: a film without pictures", film->file.path);
    else
        e = film->tiff ? end_tiff(film, err) : end_stream(film, err);
    if (e == OCT_OK)
        e = oct_whole_file_publish(&film->file, err);
    oct_film_file_discard(film);
    return e;
}

void oct_film_file_discard(struct oct_film_file *film)
{
    if (!film)
        return;
    if (film->stream)
        fclose(film->stream);
    if (film->tiff)
        TIFFClose(film->tiff);
    oct_whole_file_discard(&film->file);
    free(film->scratch);
    free(film);
}
