/* AVI, uncompressed: 8 bits grey or palette, 24 and 32 bits whose channels are equal. The movi
 * lists are walked chunk by chunk, without any index, so that a recording that was never finished
 * is read too. The parser is our own: libavformat would bring about a hundred packages for this one
 * format.
 *
 *     RIFF 'AVI ' { LIST hdrl { avih, LIST strl { strh, strf } ..., LIST odml { dmlh } },
 *                   LIST movi { 00db ..., LIST rec { 00db ... } } }
 *     RIFF 'AVIX' { LIST movi { ... } } ...                     (OpenDML, beyond 1 to 2 GB)
 *
 * Rows go from the last to the first unless biHeight < 0, each padded to 4 bytes. A chunk of no
 * bytes is the picture before it once more. Sizes that a file states are never allocated: what is
 * allocated has been seen to lie in the file. */
#include "formats/picture_file.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DEPTH 4u /* of lists in lists: RIFF, movi, rec */
#define FOURCC(a, b, c, d)                                                                         \
    ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)
#define NO_STREAM UINT32_MAX

enum palette_fault { COLOUR = -1, ABSENT = -2 };

/* Where the bytes of a picture lie. */
struct place {
    uint64_t offset;
    uint32_t n_bytes; /* 0: nothing has come before the first picture */
};

struct avi_file {
    struct oct_picture_file file;
    /* Of the first stream of pictures. */
    uint32_t stream, n_streams; /* its number, NO_STREAM until it has come; streams so far */
    bool in_stream;             /* the strl that is being read is its own */
    uint32_t codec, height, width, pixel_bytes;
    bool has_format, top_down;
    uint64_t n_claimed;
    double fps, frame_us; /* of strh and of avih; 0: not said */
    int16_t grey[256];    /* of a palette's entries, or enum palette_fault */

    struct place *places; /* [n] */
    uint64_t n, room;
    bool movi_is_cut, riff_is_cut;

    unsigned char *bytes; /* [n_bytes]: of one picture */
    size_t n_bytes;
};

static uint32_t u16_at(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static uint32_t u32_at(const unsigned char *at)
{
    return u16_at(at) | u16_at(at + 2) << 16;
}

static void avi_file_close(struct oct_picture_file *file)
{
    struct avi_file *f = (struct avi_file *)file;
    free(f->places);
    free(f->bytes);
}

/* The caller has seen that the bytes lie in the file. */
static enum oct_err read_at(const struct avi_file *f, uint64_t offset, void *bytes, size_t n,
                            struct oct_error *err)
{
    return oct_picture_file_read_at(&f->file, offset, bytes, n, err);
}

/* ---- the headers of a stream ---- */

/* Up to n bytes of a chunk; the rest is zeros. */
static enum oct_err read_start(const struct avi_file *f, uint64_t offset, uint64_t n_bytes,
                               unsigned char *bytes, size_t n, struct oct_error *err)
{
    memset(bytes, 0, n);
    return read_at(f, offset, bytes, n_bytes < n ? (size_t)n_bytes : n, err);
}

static enum oct_err read_avih(struct avi_file *f, uint64_t offset, uint64_t n_bytes,
                              struct oct_error *err)
{
    unsigned char bytes[4];
    const enum oct_err e = read_start(f, offset, n_bytes, bytes, sizeof(bytes), err);
    f->frame_us = u32_at(bytes);
    return e;
}

static enum oct_err read_strh(struct avi_file *f, uint64_t offset, uint64_t n_bytes,
                              struct oct_error *err)
{
    unsigned char bytes[36];
    const enum oct_err e = read_start(f, offset, n_bytes, bytes, sizeof(bytes), err);
    const uint32_t number = f->n_streams++, scale = u32_at(bytes + 20), rate = u32_at(bytes + 24);
    f->in_stream = f->stream == NO_STREAM && u32_at(bytes) == FOURCC('v', 'i', 'd', 's');
    if (e || !f->in_stream)
        return e;
    f->stream = number;
    f->fps = scale > 0 ? (double)rate / (double)scale : 0;
    if (u32_at(bytes + 32) > f->n_claimed)
        f->n_claimed = u32_at(bytes + 32);
    return OCT_OK;
}

static enum oct_err read_dmlh(struct avi_file *f, uint64_t offset, uint64_t n_bytes,
                              struct oct_error *err)
{
    unsigned char bytes[4];
    const enum oct_err e = read_start(f, offset, n_bytes, bytes, sizeof(bytes), err);
    if (u32_at(bytes) > f->n_claimed)
        f->n_claimed = u32_at(bytes);
    return e;
}

static bool is_uncompressed(uint32_t codec)
{
    return codec == 0 || codec == FOURCC('D', 'I', 'B', ' ') || codec == FOURCC('R', 'G', 'B', ' ');
}

static bool is_grey_codec(uint32_t codec)
{
    return codec == FOURCC('Y', '8', '0', '0') || codec == FOURCC('Y', '8', ' ', ' ') ||
           codec == FOURCC('G', 'R', 'E', 'Y');
}

static enum oct_err refuse_codec(const struct avi_file *f, struct oct_error *err)
{
    static const char *const known[] = {"", "RLE8", "RLE4", "bit fields", "JPEG", "PNG"};
    char name[16];
    for (int i = 0; i < 4; i++) {
        const int c = (int)(f->codec >> 8 * i & 0xff);
        name[i] = (char)(isprint(c) ? c : '?');
    }
    name[4] = '\0';
    if (f->codec < sizeof(known) / sizeof(known[0]))
        snprintf(name, sizeof(name), "%s", known[f->codec]);
    return oct_fail(err, OCT_E_FORMAT,
                    "%s: compressed AVI (codec %s); save it uncompressed, 8-bit grey, or as a TIFF "
                    "stack",
                    f->file.path, name);
}

/* entries: [n][4], blue, green, red, unused. Without a palette the bytes are grey levels. */
static void set_palette(struct avi_file *f, const unsigned char *entries, uint32_t n)
{
    for (uint32_t i = 0; i < 256; i++) {
        const unsigned char *entry = entries + (size_t)4 * i;
        f->grey[i] = n == 0 ? (int16_t)i : ABSENT;
        if (i < n)
            f->grey[i] = entry[0] == entry[1] && entry[0] == entry[2] ? entry[0] : COLOUR;
    }
}

static enum oct_err read_palette(struct avi_file *f, uint64_t offset, uint64_t n_bytes,
                                 const unsigned char *header, struct oct_error *err)
{
    unsigned char entries[1024] = {0};
    const uint64_t header_bytes = u32_at(header) < 40 ? 40 : u32_at(header);
    uint32_t n = u32_at(header + 32);
    n = n == 0 || n > 256 ? 256 : n;
    if (is_grey_codec(f->codec) || n_bytes < header_bytes + 4)
        n = 0;
    else if ((n_bytes - header_bytes) / 4 < n)
        n = (uint32_t)((n_bytes - header_bytes) / 4);
    const enum oct_err e = read_at(f, offset + header_bytes, entries, (size_t)4 * n, err);
    set_palette(f, entries, n);
    return e;
}

static enum oct_err read_strf(struct avi_file *f, uint64_t offset, uint64_t n_bytes,
                              struct oct_error *err)
{
    unsigned char header[40];
    if (!f->in_stream || f->has_format)
        return OCT_OK;
    if (n_bytes < sizeof(header))
        return oct_fail(err, OCT_E_FORMAT, "%s: damaged AVI: no format of its pictures",
                        f->file.path);
    enum oct_err e = read_at(f, offset, header, sizeof(header), err);
    if (e)
        return e;
    const int32_t height = (int32_t)u32_at(header + 8), width = (int32_t)u32_at(header + 4);
    const uint32_t bits = u16_at(header + 14);
    f->codec = u32_at(header + 16);
    if (!is_uncompressed(f->codec) && !is_grey_codec(f->codec))
        return refuse_codec(f, err);
    e = oct_picture_file_check(f->file.path, (uint64_t)(height < 0 ? -(int64_t)height : height),
                               width < 0 ? 0 : (uint64_t)width, err);
    if (e)
        return e;
    if (is_uncompressed(f->codec) && bits != 8 && bits != 24 && bits != 32)
        return oct_fail(err, OCT_E_FORMAT, "%s: an AVI of %u bits a pixel; 8, 24 and 32 are read",
                        f->file.path, bits);
    f->height = (uint32_t)(height < 0 ? -height : height);
    f->width = (uint32_t)width;
    f->pixel_bytes = is_grey_codec(f->codec) ? 1 : bits / 8;
    f->top_down = height < 0 || is_grey_codec(f->codec);
    f->has_format = true;
    return f->pixel_bytes == 1 ? read_palette(f, offset, n_bytes, header, err) : OCT_OK;
}

/* ---- pictures ---- */

static uint64_t row_bytes(const struct avi_file *f, bool padded)
{
    const uint64_t n = (uint64_t)f->width * f->pixel_bytes;
    return padded ? (n + 3) / 4 * 4 : n;
}

/* Rows are padded unless there are just bytes for rows that are not, as of some programs. */
static bool is_padded(const struct avi_file *f, uint64_t n_bytes)
{
    return n_bytes >= row_bytes(f, true) * f->height;
}

static enum oct_err check_bytes(const struct avi_file *f, uint64_t n_bytes, struct oct_error *err)
{
    const uint64_t needed = row_bytes(f, true) * f->height, tight = row_bytes(f, false) * f->height;
    if (n_bytes >= needed || n_bytes == tight || (n_bytes > tight && is_grey_codec(f->codec)))
        return OCT_OK;
    return oct_fail(err, OCT_E_FORMAT,
                    "%s: damaged AVI: picture %" PRIu64 " has %" PRIu64 " bytes; %u x %u pixels of "
                    "%u bits need %" PRIu64,
                    f->file.path, f->n, n_bytes, f->width, f->height, 8 * f->pixel_bytes, needed);
}

static enum oct_err add_picture(struct avi_file *f, uint64_t offset, uint32_t n_bytes,
                                struct oct_error *err)
{
    struct place place = {offset, n_bytes};
    if (!f->has_format)
        return oct_fail(err, OCT_E_FORMAT, "%s: damaged AVI: pictures before their format",
                        f->file.path);
    if (n_bytes == 0)
        place = f->n > 0 ? f->places[f->n - 1] : (struct place){0, 0};
    else {
        const enum oct_err e = check_bytes(f, n_bytes, err);
        if (e)
            return e;
        f->n_bytes = n_bytes > f->n_bytes ? n_bytes : f->n_bytes;
    }
    if (f->n == f->room) {
        const uint64_t room = f->room ? 2 * f->room : 256;
        struct place *grown = realloc(f->places, room * sizeof(*grown));
        if (!grown)
            return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", f->file.path);
        f->places = grown;
        f->room = room;
    }
    f->places[f->n++] = place;
    return OCT_OK;
}

/* ---- chunks ---- */

struct chunk {
    uint32_t id, kind;     /* kind: of a list */
    uint64_t offset, next; /* of its contents, and of the chunk behind it */
    uint64_t n_bytes;      /* of the contents, as far as they lie where they should */
    bool is_cut;
};

static bool is_list(uint32_t id)
{
    return id == FOURCC('L', 'I', 'S', 'T') || id == FOURCC('R', 'I', 'F', 'F');
}

static bool is_name(uint32_t id)
{
    for (int i = 0; i < 4; i++)
        if (!isprint((int)(id >> 8 * i & 0xff)))
            return false;
    return true;
}

/* The chunk at `at`, which must end before `end`. False: there is none, or only a part of its
 * header. A list of size 0 was never finished and goes on to the end. */
static enum oct_err look_at_chunk(const struct avi_file *f, uint64_t at, uint64_t end,
                                  struct chunk *chunk, bool *found, struct oct_error *err)
{
    unsigned char head[12] = {0};
    *found = false;
    *chunk = (struct chunk){0};
    if (end - at < 8)
        return OCT_OK;
    const enum oct_err e = read_at(f, at, head, end - at < sizeof(head) ? 8 : sizeof(head), err);
    if (e)
        return e;
    *chunk = (struct chunk){.id = u32_at(head), .offset = at + 8, .n_bytes = u32_at(head + 4)};
    if (!is_name(chunk->id))
        return OCT_OK;
    if (is_list(chunk->id)) {
        if (end - at < sizeof(head))
            return OCT_OK;
        chunk->kind = u32_at(head + 8);
        if (chunk->n_bytes < 4) {
            chunk->is_cut = true;
            chunk->n_bytes = end - chunk->offset;
        }
    }
    if (chunk->n_bytes > end - chunk->offset) {
        chunk->is_cut = true;
        chunk->n_bytes = end - chunk->offset;
    }
    chunk->next = chunk->offset + chunk->n_bytes + chunk->n_bytes % 2;
    if (chunk->next > end)
        chunk->next = end;
    *found = true;
    return OCT_OK;
}

/* "00db": number and kind of what a stream's chunk holds. */
static bool is_of_stream(uint32_t id, uint32_t stream, const char *kind)
{
    const int tens = (int)(id & 0xff), ones = (int)(id >> 8 & 0xff);
    return isdigit(tens) && isdigit(ones) && (uint32_t)(10 * (tens - '0') + ones - '0') == stream &&
           (int)(id >> 16 & 0xff) == kind[0] && (int)(id >> 24) == kind[1];
}

static enum oct_err take_chunk(struct avi_file *f, const struct chunk *chunk, uint32_t list,
                               struct oct_error *err)
{
    const bool of_pictures =
        list == FOURCC('m', 'o', 'v', 'i') || list == FOURCC('r', 'e', 'c', ' ');
    if (of_pictures) {
        if (is_of_stream(chunk->id, f->stream, "pc"))
            return oct_fail(err, OCT_E_FORMAT,
                            "%s: an AVI whose palette changes; save it as 8-bit grey",
                            f->file.path);
        if (!is_of_stream(chunk->id, f->stream, "db") && !is_of_stream(chunk->id, f->stream, "dc"))
            return OCT_OK;
        return chunk->is_cut ? OCT_OK
                             : add_picture(f, chunk->offset, (uint32_t)chunk->n_bytes, err);
    }
    if (chunk->is_cut)
        return OCT_OK;
    if (chunk->id == FOURCC('a', 'v', 'i', 'h'))
        return read_avih(f, chunk->offset, chunk->n_bytes, err);
    if (chunk->id == FOURCC('s', 't', 'r', 'h'))
        return read_strh(f, chunk->offset, chunk->n_bytes, err);
    if (chunk->id == FOURCC('s', 't', 'r', 'f'))
        return read_strf(f, chunk->offset, chunk->n_bytes, err);
    if (chunk->id == FOURCC('d', 'm', 'l', 'h'))
        return read_dmlh(f, chunk->offset, chunk->n_bytes, err);
    return OCT_OK;
}

static bool is_entered(uint32_t kind)
{
    return kind == FOURCC('h', 'd', 'r', 'l') || kind == FOURCC('s', 't', 'r', 'l') ||
           kind == FOURCC('o', 'd', 'm', 'l') || kind == FOURCC('m', 'o', 'v', 'i') ||
           kind == FOURCC('r', 'e', 'c', ' ');
}

/* The contents of a list, from `at` to `end`. Depth ends with the format: lists lie in lists
 * MOST_DEPTH deep at most. */
static enum oct_err walk(struct avi_file *f, uint32_t list, uint64_t at, uint64_t end,
                         unsigned depth, struct oct_error *err)
{
    const bool of_pictures =
        list == FOURCC('m', 'o', 'v', 'i') || list == FOURCC('r', 'e', 'c', ' ');
    while (at < end) {
        struct chunk chunk;
        bool found;
        enum oct_err e = look_at_chunk(f, at, end, &chunk, &found, err);
        if (e)
            return e;
        if (!found || chunk.is_cut)
            f->movi_is_cut |= of_pictures || chunk.kind == FOURCC('m', 'o', 'v', 'i');
        if (!found)
            return OCT_OK;
        if (!is_list(chunk.id))
            e = take_chunk(f, &chunk, list, err);
        else if (is_entered(chunk.kind) && depth < MOST_DEPTH)
            e = walk(f, chunk.kind, chunk.offset + 4, chunk.offset + chunk.n_bytes, depth + 1, err);
        if (e)
            return e;
        at = chunk.next;
    }
    return OCT_OK;
}

static enum oct_err walk_file(struct avi_file *f, struct oct_error *err)
{
    const uint32_t avi = FOURCC('A', 'V', 'I', ' '), avix = FOURCC('A', 'V', 'I', 'X');
    for (uint64_t at = 0; at < f->file.file_bytes;) {
        struct chunk chunk;
        bool found;
        enum oct_err e = look_at_chunk(f, at, f->file.file_bytes, &chunk, &found, err);
        if (e)
            return e;
        if (!found || chunk.id != FOURCC('R', 'I', 'F', 'F') ||
            chunk.kind != (at == 0 ? avi : avix))
            break;
        f->riff_is_cut |= chunk.is_cut;
        e = walk(f, chunk.kind, chunk.offset + 4, chunk.offset + chunk.n_bytes, 1, err);
        if (e)
            return e;
        at = chunk.next;
    }
    if (!f->has_format)
        return oct_fail(err, OCT_E_FORMAT, "%s: damaged or truncated AVI: no stream of pictures",
                        f->file.path);
    return OCT_OK;
}

static enum oct_err avi_file_open(struct oct_picture_file *file,
                                  const struct oct_pictures_options *options,
                                  struct oct_picture_file_facts *facts, struct oct_error *err)
{
    struct avi_file *f = (struct avi_file *)file;
    (void)options;
    f->stream = NO_STREAM;
    enum oct_err e = oct_picture_file_hold(file, err);
    e = e ? e : walk_file(f, err);
    if (e)
        return e;
    const bool is_cut = f->movi_is_cut || (f->riff_is_cut && f->n_claimed > f->n);
    if (f->n_bytes == 0)
        return oct_fail(err, OCT_E_FORMAT, "%s: %s", file->path,
                        is_cut ? "truncated AVI: no picture is whole" : "holds no picture");
    *facts = (struct oct_picture_file_facts){
        .n_pictures = f->n,
        .height = f->height,
        .width = f->width,
        .fps = f->fps > 0        ? f->fps
               : f->frame_us > 0 ? 1e6 / f->frame_us
                                 : 0,
        .is_cut = is_cut,
        .n_claimed = f->n_claimed,
    };
    return OCT_OK;
}

/* ---- pixels ---- */

static enum oct_err take_grey_row(const struct avi_file *f, const unsigned char *row, uint32_t y,
                                  float *pixels, struct oct_error *err)
{
    for (uint32_t x = 0; x < f->width; x++) {
        const int16_t value = f->grey[row[x]];
        if (value == ABSENT)
            return oct_fail(err, OCT_E_FORMAT,
                            "%s: damaged AVI: a pixel that the palette lacks, at x %u, y %u",
                            f->file.path, x, y);
        if (value == COLOUR)
            return oct_fail(err, OCT_E_FORMAT, "%s: " OCT_PICTURE_FILE_COLOUR, f->file.path, x, y);
        pixels[x] = value;
    }
    return OCT_OK;
}

static enum oct_err take_colour_row(const struct avi_file *f, const unsigned char *row, uint32_t y,
                                    float *pixels, struct oct_error *err)
{
    for (uint32_t x = 0; x < f->width; x++) {
        const unsigned char *pixel = row + (size_t)x * f->pixel_bytes;
        if (pixel[0] != pixel[1] || pixel[0] != pixel[2])
            return oct_fail(err, OCT_E_FORMAT, "%s: " OCT_PICTURE_FILE_COLOUR, f->file.path, x, y);
        pixels[x] = pixel[0];
    }
    return OCT_OK;
}

static enum oct_err avi_file_read(struct oct_picture_file *file, uint64_t index, float *pixels,
                                  struct oct_pictures_info *info, struct oct_error *err)
{
    struct avi_file *f = (struct avi_file *)file;
    const struct place place = f->places[index];
    info->bits = 8;
    for (size_t i = 0; place.n_bytes == 0 && i < (size_t)f->height * f->width; i++)
        pixels[i] = NAN;
    if (place.n_bytes == 0)
        return OCT_OK;
    if (!f->bytes && !(f->bytes = malloc(f->n_bytes)))
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", f->file.path);
    enum oct_err e = read_at(f, place.offset, f->bytes, place.n_bytes, err);
    const uint64_t stride = row_bytes(f, is_padded(f, place.n_bytes));
    for (uint32_t y = 0; e == OCT_OK && y < f->height; y++) {
        const unsigned char *row = f->bytes + stride * (f->top_down ? y : f->height - 1 - y);
        float *to = pixels + (size_t)y * f->width;
        e = f->pixel_bytes == 1 ? take_grey_row(f, row, y, to, err)
                                : take_colour_row(f, row, y, to, err);
    }
    return e;
}

const struct oct_picture_file_ops oct_picture_file_avi = {
    .bytes = sizeof(struct avi_file),
    .open = avi_file_open,
    .close = avi_file_close,
    .read = avi_file_read,
};
