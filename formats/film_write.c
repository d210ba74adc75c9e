#include "formats/film_write.h"

#include "formats/input/npy_header.h"
#include "formats/tiff_fault.h"
#include "formats/whole_file.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <tiffio.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "headers and samples are written as they lie in memory"
#endif

#define MOST_SIDE 16384u
#define MOST_AVI_BYTES ((uint64_t)2147483647 - 65536) /* what every program reads */
#define MOST_AVI_HEADER 1280u
#define MOST_TIFF_BYTES ((uint64_t)4294967295 - 1048576) /* offsets of 32 bits */
#define TIFF_PICTURE_BYTES 512u /* at most, of a picture beside its pixels */

struct oct_film_file {
    struct oct_whole_file file; /* with a stream for AVI and .npy */
    struct oct_film_setup setup;
    TIFF *tiff;
    bool is_big;            /* TIFF */
    uint64_t n;             /* pictures so far */
    size_t picture_bytes;   /* in the file */
    unsigned char *scratch; /* [picture_bytes]: a picture as AVI and libtiff take it */
    struct oct_tiff_fault fault;
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

/* ---- AVI ----
 *
 * 8 bits from the last row to the first, as every program reads them; red, green and blue from the
 * first to the last, as ffmpeg writes them: OpenCV 5.0 crashes on the other order. */

struct avi_chunk {
    char name[4];
    uint32_t n_bytes;
};

struct avi_list {
    struct avi_chunk chunk;
    char kind[4];
};

/* All that stands before the palette, or before the list of pictures. */
struct avi_header {
    struct avi_list riff, hdrl;
    struct avi_chunk avih;
    uint32_t picture_us, bytes_per_s, padding, flags, n_pictures, n_initial, n_streams;
    uint32_t buffer_bytes, width, height, reserved[4];
    struct avi_list strl;
    struct avi_chunk strh;
    char type[4], handler[4];
    uint32_t stream_flags, priority, initial, scale, rate, start, length, stream_buffer, quality;
    uint32_t sample_bytes;
    uint16_t frame[4]; /* left, top, right, bottom */
    struct avi_chunk strf;
    uint32_t format_bytes;
    int32_t format_width, format_height; /* below 0: from the first row to the last */
    uint16_t n_planes, bits;
    uint32_t compression, image_bytes, x_per_m, y_per_m, n_colours, n_important;
};
_Static_assert(sizeof(struct avi_header) == 212, "an AVI's header as it lies in a file");

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

static uint64_t avi_bytes(const struct oct_film_file *f, uint64_t n)
{
    return MOST_AVI_HEADER + n * (f->picture_bytes + sizeof(struct avi_chunk) + 16);
}

/* The header of a film of n pictures, to where the file is written now. */
static enum oct_err put_avi_header(struct oct_film_file *f, uint32_t n, struct oct_error *err)
{
    const struct oct_film_setup *s = &f->setup;
    const bool is_grey = s->pixel == OCT_FILM_U8;
    const double us = 1e6 / s->fps, rate = (double)f->picture_bytes * s->fps;
    const uint32_t bytes = (uint32_t)f->picture_bytes, palette_bytes = is_grey ? 1024 : 0;
    const uint32_t header_bytes = 224 + palette_bytes, movi_bytes = 4 + n * (bytes + 8);
    uint32_t palette[256];
    struct avi_header h = {
        .riff = {{"RIFF", header_bytes - 12 + movi_bytes + 8 + 16 * n}, "AVI "},
        .hdrl = {{"LIST", header_bytes - 32}, "hdrl"},
        .avih = {"avih", 56},
        .picture_us = us < 4294967295.0 ? (uint32_t)lround(us) : UINT32_MAX,
        .bytes_per_s = rate < 4294967295.0 ? (uint32_t)rate : UINT32_MAX,
        .flags = 0x10, /* has an index */
        .n_pictures = n,
        .n_streams = 1,
        .buffer_bytes = bytes,
        .width = s->width,
        .height = s->height,
        .strl = {{"LIST", 116 + palette_bytes}, "strl"},
        .strh = {"strh", 56},
        .type = "vids",
        .handler = "DIB ",
        .length = n,
        .stream_buffer = bytes,
        .quality = UINT32_MAX, /* not said */
        .frame = {0, 0, (uint16_t)s->width, (uint16_t)s->height},
        .strf = {"strf", 40 + palette_bytes},
        .format_bytes = 40,
        .format_width = (int32_t)s->width,
        .format_height = is_grey ? (int32_t)s->height : -(int32_t)s->height,
        .n_planes = 1,
        .bits = is_grey ? 8 : 24,
        .image_bytes = bytes,
        .n_colours = is_grey ? 256 : 0,
    };
    const struct avi_list movi = {{"LIST", movi_bytes}, "movi"};
    find_rate(s->fps, &h.rate, &h.scale);
    for (uint32_t i = 0; i < 256; i++)
        palette[i] = i * 0x010101;
    enum oct_err e = oct_whole_file_put(&f->file, &h, sizeof(h), err);
    e = e ? e : oct_whole_file_put(&f->file, palette, palette_bytes, err);
    return e ? e : oct_whole_file_put(&f->file, &movi, sizeof(movi), err);
}

static enum oct_err add_to_avi(struct oct_film_file *f, const unsigned char *pixels,
                               struct oct_error *err)
{
    const size_t n_channels = bytes_of(f->setup.pixel), width = f->setup.width;
    const size_t stride = f->picture_bytes / f->setup.height;
    const struct avi_chunk head = {"00db", (uint32_t)f->picture_bytes};
    if (avi_bytes(f, f->n + 1) > MOST_AVI_BYTES)
        return oct_fail(err, OCT_E_ARG,
                        "%s: an AVI of more than 2 GiB; write a TIFF stack, or fewer pictures",
                        f->file.path);
    for (size_t y = 0; y < f->setup.height; y++) {
        const size_t row = n_channels == 1 ? f->setup.height - 1 - y : y;
        const unsigned char *from = pixels + row * width * n_channels;
        unsigned char *to = f->scratch + y * stride;
        if (n_channels == 1)
            memcpy(to, from, width);
        for (size_t i = 0; n_channels == 3 && i < 3 * width; i++)
            to[i] = from[i / 3 * 3 + 2 - i % 3];
    }
    const enum oct_err e = oct_whole_file_put(&f->file, &head, sizeof(head), err);
    return e ? e : oct_whole_file_put(&f->file, f->scratch, f->picture_bytes, err);
}

static enum oct_err put_avi_index(struct oct_film_file *f, struct oct_error *err)
{
    const struct avi_chunk idx1 = {"idx1", (uint32_t)(16 * f->n)};
    const uint32_t bytes = (uint32_t)f->picture_bytes;
    enum oct_err e = oct_whole_file_put(&f->file, &idx1, sizeof(idx1), err);
    for (uint32_t i = 0; !e && i < f->n; i++) {
        const struct {
            char name[4];
            uint32_t flags, offset, n_bytes;
        } entry = {"00db", 0x10 /* a picture of its own */, 4 + i * (bytes + 8), bytes};
        e = oct_whole_file_put(&f->file, &entry, sizeof(entry), err);
    }
    return e;
}

/* ---- numpy ---- */

static enum oct_err put_npy_header(struct oct_film_file *f, struct oct_error *err)
{
    static const char *const types[] = {
        [OCT_FILM_U8] = "|u1", [OCT_FILM_U16] = "<u2", [OCT_FILM_F32] = "<f4"};
    char header[OCT_NPY_MADE_BYTES];
    oct_npy_header_make(header, types[f->setup.pixel], f->n, f->setup.height, f->setup.width);
    return oct_whole_file_put(&f->file, header, sizeof(header), err);
}

/* ---- TIFF ---- */

static enum oct_err cannot_write(const struct oct_film_file *f, int errnum, struct oct_error *err)
{
    if (errnum)
        return oct_fail_errno(err, OCT_E_IO, errnum, "%s: cannot be written", f->file.path);
    return oct_fail(err, OCT_E_IO, "%s: cannot be written: %s", f->file.path, f->fault.text);
}

static enum oct_err open_tiff(struct oct_film_file *f, struct oct_error *err)
{
    TIFFOpenOptions *options = oct_tiff_fault_options(&f->fault);
    f->is_big = f->setup.n_pictures * (f->picture_bytes + TIFF_PICTURE_BYTES) > MOST_TIFF_BYTES;
    errno = 0;
    if (options) {
        f->tiff = TIFFOpenExt(f->file.work, f->is_big ? "w8" : "w", options);
        TIFFOpenOptionsFree(options);
    }
    return f->tiff ? OCT_OK : cannot_write(f, errno ? errno : EIO, err);
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
    return cannot_write(f, errno, err);
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

static enum oct_err begin_film(struct oct_film_file *f, struct oct_error *err)
{
    if (f->setup.format == OCT_FILM_TIFF)
        return open_tiff(f, err);
    if (f->setup.format == OCT_FILM_NPY)
        return put_npy_header(f, err);
    if (f->setup.n_pictures > (MOST_AVI_BYTES - MOST_AVI_HEADER) / (f->picture_bytes + 24))
        return oct_fail(err, OCT_E_ARG,
                        "%s: %" PRIu64 " pictures of %zu bytes make an AVI of more than 2 GiB; "
                        "write a TIFF stack, or fewer pictures",
                        f->file.path, f->setup.n_pictures, f->picture_bytes);
    return put_avi_header(f, 0, err);
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
    e = setup->format == OCT_FILM_TIFF ? oct_whole_file_init(&f->file, path, setup->force, err)
                                       : oct_whole_file_open(&f->file, path, setup->force, err);
    if (!e && !(f->scratch = calloc(1, f->picture_bytes)))
        e = oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    e = e ? e : begin_film(f, err);
    if (e)
        oct_film_file_discard(f);
    else
        *film = f;
    return e;
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
        e = oct_whole_file_put(&film->file, pixels, film->picture_bytes, err);
    film->n += e == OCT_OK;
    return e;
}

/* The header of a stream says how many pictures there are, and is written again. */
static enum oct_err end_film(struct oct_film_file *f, struct oct_error *err)
{
    if (f->tiff) {
        f->fault.text[0] = '\0';
        TIFFClose(f->tiff);
        f->tiff = NULL;
        return f->fault.text[0] ? cannot_write(f, 0, err) : OCT_OK;
    }
    const bool is_avi = f->setup.format == OCT_FILM_AVI;
    enum oct_err e = is_avi ? put_avi_index(f, err) : OCT_OK;
    e = e ? e : oct_whole_file_rewind(&f->file, err);
    if (!e)
        e = is_avi ? put_avi_header(f, (uint32_t)f->n, err) : put_npy_header(f, err);
    return e;
}

enum oct_err oct_film_file_publish(struct oct_film_file *film, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    if (film->n == 0)
        e = oct_fail(err, OCT_E_ARG, "%s: a film without pictures", film->file.path);
    e = e ? e : end_film(film, err);
    e = oct_whole_file_end(&film->file, e, err);
    oct_film_file_discard(film);
    return e;
}

void oct_film_file_discard(struct oct_film_file *film)
{
    if (!film)
        return;
    if (film->tiff)
        TIFFClose(film->tiff);
    oct_whole_file_discard(&film->file);
    free(film->scratch);
    free(film);
}
