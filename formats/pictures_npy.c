/* Arrays of numpy, .npy of version 1, 2 and 3: [T][H][W] or [H][W], integers of 8 and 16 bits and
 * floats of 32 and 64, of either order of bytes, in C order. The header is
 *
 *     "\x93NUMPY", u8 major, u8 minor, u16 (major 1) or u32 length, little-endian, and then
 *     {'descr': '<u2', 'fortran_order': False, 'shape': (20, 480, 640), }
 *
 * (numpy.lib.format). What it states is compared with the size of the file before anything is
 * allocated. */
#define _GNU_SOURCE /* TEMP_FAILURE_RETRY */
#include "formats/picture_file.h"
#include "formats/sample.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_HEADER_BYTES 65536u
#define MOST_AXES 8u

struct npy_file {
    char *path;
    int fd;
    uint64_t file_bytes, first_byte; /* of the samples */
    struct oct_sample_kind sample;
    uint64_t dims[MOST_AXES];
    unsigned n_axes;
    uint64_t n; /* whole pictures */
    uint32_t height, width;
    unsigned char *row; /* [width][bytes] */
};

static void npy_file_close(void *file)
{
    struct npy_file *f = file;
    if (!f)
        return;
    if (f->fd >= 0)
        close(f->fd);
    free(f->row);
    free(f->path);
    free(f);
}

static enum oct_err read_at(const struct npy_file *f, uint64_t offset, void *bytes, size_t n,
                            struct oct_error *err)
{
    return oct_picture_file_read_at(f->fd, f->path, offset, bytes, n, err);
}

/* ---- the header ---- */

static enum oct_err damaged(const struct npy_file *f, const char *what, struct oct_error *err)
{
    return oct_fail(err, OCT_E_FORMAT, "%s: damaged .npy file: %s", f->path, what);
}

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* What stands behind 'key': in the text; NULL: nothing does. */
static const char *value_of(const char *text, const char *key)
{
    char name[32];
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof(name), i == 0 ? "'%s'" : "\"%s\"", key);
        const char *at = strstr(text, name);
        if (!at)
            continue;
        at = skip_blanks(at + strlen(name));
        return *at == ':' ? skip_blanks(at + 1) : NULL;
    }
    return NULL;
}

static enum oct_err read_type(struct npy_file *f, const char *text, struct oct_error *err)
{
    const char *at = value_of(text, "descr");
    char order = '\0', kind = '\0', quote = '\0', end = '\0';
    unsigned bytes = 0;
    if (!at || !*at)
        return damaged(f, "its header has no type", err);
    const bool is_plain = (*at == '\'' || *at == '"') &&
                          sscanf(at, "%c%c%c%1u%c", &quote, &order, &kind, &bytes, &end) == 5 &&
                          end == quote && strchr("<>|=", order);
    const bool is_integer = (kind == 'u' || kind == 'i') && (bytes == 1 || bytes == 2);
    if (!is_plain || !(is_integer || (kind == 'f' && (bytes == 4 || bytes == 8))))
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: samples of type %.*s; save them as uint8, uint16, int16, float32 or "
                        "float64",
                        f->path, (int)strcspn(at, ",}"), at);
    f->sample = (struct oct_sample_kind){kind, bytes, order == '>'};
    return OCT_OK;
}

static enum oct_err read_order(struct npy_file *f, const char *text, struct oct_error *err)
{
    const char *at = value_of(text, "fortran_order");
    if (!at || (strncmp(at, "True", 4) != 0 && strncmp(at, "False", 5) != 0))
        return damaged(f, "its header has no order of axes", err);
    if (*at == 'F')
        return OCT_OK;
    return oct_fail(err, OCT_E_FORMAT,
                    "%s: an array in Fortran order; save numpy.ascontiguousarray(array)", f->path);
}

static bool read_extent(const char **at, uint64_t *extent)
{
    const char *digits = *at;
    *extent = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        if (*extent > (UINT64_MAX - 9) / 10)
            return false;
        *extent = *extent * 10 + (uint64_t)(**at - '0');
    }
    return *at > digits;
}

static enum oct_err read_shape(struct npy_file *f, const char *text, struct oct_error *err)
{
    const char *at = value_of(text, "shape");
    if (!at || *at != '(')
        return damaged(f, "its header has no shape", err);
    for (at = skip_blanks(at + 1); *at != ')'; at = skip_blanks(at)) {
        if (f->n_axes == MOST_AXES || !read_extent(&at, &f->dims[f->n_axes]))
            return damaged(f, "a shape that cannot be", err);
        f->n_axes++;
        at = skip_blanks(at);
        if (*at == ',')
            at++;
        else if (*at != ')')
            return damaged(f, "a shape that cannot be", err);
    }
    if (f->n_axes != 2 && f->n_axes != 3)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: has %u axes; pictures have 3, [T][H][W], one picture 2", f->path,
                        f->n_axes);
    return OCT_OK;
}

static enum oct_err read_header(struct npy_file *f, struct oct_error *err)
{
    unsigned char start[12] = {0};
    enum oct_err e = read_at(f, 0, start, 10, err);
    if (e)
        return e;
    const bool is_short = start[6] == 1;
    if (start[6] < 1 || start[6] > 3)
        return oct_fail(err, OCT_E_FORMAT, "%s: .npy of version %u; 1 to 3 are read", f->path,
                        start[6]);
    if (!is_short && (e = read_at(f, 10, start + 10, 2, err)) != OCT_OK)
        return e;
    uint64_t n = (uint64_t)start[8] | (uint64_t)start[9] << 8;
    if (!is_short)
        n |= (uint64_t)start[10] << 16 | (uint64_t)start[11] << 24;
    f->first_byte = (is_short ? 10 : 12) + n;
    if (n > MOST_HEADER_BYTES)
        return damaged(f, "a header of more than 64 KiB", err);
    char *text = calloc(1, n + 1);
    if (!text)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", f->path);
    e = read_at(f, f->first_byte - n, text, n, err);
    if (!e)
        e = read_type(f, text, err);
    if (!e)
        e = read_order(f, text, err);
    if (!e)
        e = read_shape(f, text, err);
    free(text);
    return e;
}

static enum oct_err begin(struct npy_file *f, struct oct_picture_file_facts *facts,
                          struct oct_error *err)
{
    struct stat st;
    enum oct_err e = oct_picture_file_descriptor(&f->fd, f->path, err);
    if (e)
        return e;
    if (fstat(f->fd, &st) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot read", f->path);
    f->file_bytes = (uint64_t)st.st_size;
    if ((e = read_header(f, err)) != OCT_OK)
        return e;
    const uint64_t n_claimed = f->n_axes == 3 ? f->dims[0] : 1;
    const uint64_t *sides = f->dims + f->n_axes - 2;
    if (n_claimed == 0 || sides[0] == 0 || sides[1] == 0)
        return oct_fail(err, OCT_E_FORMAT, "%s: is empty", f->path);
    if ((e = oct_picture_file_check(f->path, sides[0], sides[1], err)) != OCT_OK)
        return e;
    f->height = (uint32_t)sides[0];
    f->width = (uint32_t)sides[1];
    const uint64_t picture_bytes = sides[0] * sides[1] * f->sample.bytes;
    const uint64_t n_whole = (f->file_bytes - f->first_byte) / picture_bytes;
    f->n = n_whole < n_claimed ? n_whole : n_claimed;
    if (f->n == 0)
        return oct_fail(err, OCT_E_FORMAT, "%s: truncated .npy file: no picture is whole", f->path);
    if (!(f->row = malloc((size_t)f->width * f->sample.bytes)))
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", f->path);
    *facts = (struct oct_picture_file_facts){
        .n_pictures = f->n,
        .height = f->height,
        .width = f->width,
        .is_cut = f->n < n_claimed,
        .n_claimed = n_claimed,
        .volume = {.n_axes = f->n_axes, .um = {NAN, NAN, NAN}},
    };
    return OCT_OK;
}

static enum oct_err npy_file_open(void **file, const char *path,
                                  const struct oct_pictures_options *options,
                                  struct oct_picture_file_facts *facts, struct oct_error *err)
{
    (void)options;
    *file = NULL;
    struct npy_file *f = calloc(1, sizeof(*f));
    if (!f || !(f->path = strdup(path))) {
        free(f);
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    }
    f->fd = -1;
    const enum oct_err e = begin(f, facts, err);
    if (e) {
        npy_file_close(f);
        return e;
    }
    *file = f;
    return OCT_OK;
}

/* ---- pixels ---- */

static enum oct_err npy_file_read(void *file, uint64_t index, float *pixels,
                                  struct oct_pictures_info *info, struct oct_error *err)
{
    const struct npy_file *f = file;
    const size_t row_bytes = (size_t)f->width * f->sample.bytes;
    info->bits = f->sample.kind == 'f' ? 32 : 8 * f->sample.bytes;
    for (uint64_t y = 0; y < f->height; y++) {
        const uint64_t offset = f->first_byte + (index * f->height + y) * row_bytes;
        const enum oct_err e = read_at(f, offset, f->row, row_bytes, err);
        if (e)
            return e;
        for (uint32_t x = 0; x < f->width; x++)
            pixels[y * f->width + x] = oct_sample_to_float(
                oct_sample_decode(&f->sample, f->row + (size_t)x * f->sample.bytes));
    }
    return OCT_OK;
}

const struct oct_picture_file_ops oct_picture_file_npy = {
    .open = npy_file_open,
    .close = npy_file_close,
    .read = npy_file_read,
};
