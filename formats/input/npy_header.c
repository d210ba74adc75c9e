#include "formats/input/npy_header.h"

#include "pipeline/base/file_at.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_HEADER_BYTES 65536u

const unsigned char oct_npy_magic[OCT_NPY_MAGIC_BYTES] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

static enum oct_err read_at(int fd, const char *name, uint64_t offset, void *bytes, size_t n,
                            struct oct_error *err)
{
    const ssize_t got = oct_file_read_at(fd, bytes, n, offset);
    if (got < 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot read", name);
    if ((size_t)got < n)
        return oct_fail(err, OCT_E_FORMAT, "%s: truncated .npy file: it ends in its header", name);
    return OCT_OK;
}

static enum oct_err damaged(const char *name, const char *what, struct oct_error *err)
{
    return oct_fail(err, OCT_E_FORMAT, "%s: damaged .npy file: %s", name, what);
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

static enum oct_err read_type(struct oct_npy_header *h, const char *name, const char *text,
                              struct oct_error *err)
{
    const char *at = value_of(text, "descr");
    char order = '\0', kind = '\0', quote = '\0', end = '\0';
    unsigned bytes = 0;
    if (!at || !*at)
        return damaged(name, "its header has no type", err);
    snprintf(h->type, sizeof(h->type), "%.*s", (int)strcspn(at, ",}"), at);
    const bool is_plain = (*at == '\'' || *at == '"') &&
                          sscanf(at, "%c%c%c%1u%c", &quote, &order, &kind, &bytes, &end) == 5 &&
                          end == quote && strchr("<>|=", order);
    const bool is_integer = (kind == 'u' || kind == 'i') && (bytes == 1 || bytes == 2);
    const bool is_long = (kind == 'u' || kind == 'i' || kind == 'f') && (bytes == 4 || bytes == 8);
    if (is_plain && (is_integer || is_long))
        h->sample = (struct oct_sample_kind){kind, bytes, order == '>'};
    return OCT_OK;
}

static enum oct_err read_order(struct oct_npy_header *h, const char *name, const char *text,
                               struct oct_error *err)
{
    const char *at = value_of(text, "fortran_order");
    if (!at || (strncmp(at, "True", 4) != 0 && strncmp(at, "False", 5) != 0))
        return damaged(name, "its header has no order of axes", err);
    h->is_fortran = *at == 'T';
    return OCT_OK;
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

static enum oct_err read_shape(struct oct_npy_header *h, const char *name, const char *text,
                               struct oct_error *err)
{
    const char *at = value_of(text, "shape");
    if (!at || *at != '(')
        return damaged(name, "its header has no shape", err);
    for (at = skip_blanks(at + 1); *at != ')'; at = skip_blanks(at)) {
        if (h->n_axes == OCT_NPY_MOST_AXES || !read_extent(&at, &h->dims[h->n_axes]))
            return damaged(name, "a shape that cannot be", err);
        h->n_axes++;
        at = skip_blanks(at);
        if (*at == ',')
            at++;
        else if (*at != ')')
            return damaged(name, "a shape that cannot be", err);
    }
    return OCT_OK;
}

enum oct_err oct_npy_header_read(struct oct_npy_header *h, int fd, const char *name,
                                 struct oct_error *err)
{
    unsigned char start[12] = {0};
    *h = (struct oct_npy_header){.first_byte = 0};
    enum oct_err e = read_at(fd, name, 0, start, 10, err);
    if (e)
        return e;
    const bool is_short = start[6] == 1;
    if (start[6] < 1 || start[6] > 3)
        return oct_fail(err, OCT_E_FORMAT, "%s: .npy of version %u; 1 to 3 are read", name,
                        start[6]);
    if (!is_short && (e = read_at(fd, name, 10, start + 10, 2, err)) != OCT_OK)
        return e;
    uint64_t n = (uint64_t)start[8] | (uint64_t)start[9] << 8;
    if (!is_short)
        n |= (uint64_t)start[10] << 16 | (uint64_t)start[11] << 24;
    h->first_byte = (is_short ? 10 : 12) + n;
    if (n > MOST_HEADER_BYTES)
        return damaged(name, "a header of more than 64 KiB", err);
    char *text = calloc(1, n + 1);
    if (!text)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", name);
    e = read_at(fd, name, h->first_byte - n, text, n, err);
    e = e ? e : read_type(h, name, text, err);
    e = e ? e : read_order(h, name, text, err);
    e = e ? e : read_shape(h, name, text, err);
    free(text);
    return e;
}

void oct_npy_header_make(char header[OCT_NPY_MADE_BYTES], const char *type, uint64_t n,
                         uint32_t height, uint32_t width)
{
    static const char magic[10] = {'\x93', 'N', 'U', 'M', 'P',
                                   'Y',    1,   0,   118, 0}; /* bytes follow */
    memset(header, ' ', OCT_NPY_MADE_BYTES);
    memcpy(header, magic, sizeof(magic));
    const int n_text = snprintf(header + 10, OCT_NPY_MADE_BYTES - 10,
                                "{'descr': '%s', 'fortran_order': False, 'shape': (%" PRIu64
                                ", %" PRIu32 ", %" PRIu32 "), }",
                                type, n, height, width);
    header[10 + n_text] = ' ';
    header[OCT_NPY_MADE_BYTES - 1] = '\n';
}
