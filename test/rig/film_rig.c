#include "test/rig/film_rig.h"

#include "test/rig/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- bytes ---- */

void film_put(struct film_bytes *file, const void *bytes, size_t n)
{
    assert_true(n <= sizeof(file->bytes) - file->n);
    if (n > 0)
        memcpy(file->bytes + file->n, bytes, n);
    file->n += n;
}

void film_set_u32(struct film_bytes *file, size_t at, uint32_t value)
{
    for (size_t i = 0; i < 4; i++)
        file->bytes[at + i] = (unsigned char)(value >> 8 * i);
}

void film_put_u16(struct film_bytes *file, uint32_t value)
{
    const unsigned char bytes[2] = {(unsigned char)value, (unsigned char)(value >> 8)};
    film_put(file, bytes, 2);
}

void film_put_u32(struct film_bytes *file, uint32_t value)
{
    film_put_u16(file, value & 0xffff);
    film_put_u16(file, value >> 16);
}

size_t film_chunk_begin(struct film_bytes *file, const char *name)
{
    const size_t begin = file->n;
    film_put(file, name, 4);
    film_put_u32(file, 0);
    return begin;
}

size_t film_list_begin(struct film_bytes *file, const char *list, const char *kind)
{
    const size_t begin = film_chunk_begin(file, list);
    film_put(file, kind, 4);
    return begin;
}

void film_chunk_end(struct film_bytes *file, size_t begin)
{
    film_set_u32(file, begin + 4, (uint32_t)(file->n - begin - 8));
    if (file->n % 2)
        film_put(file, "", 1);
}

void film_write(const struct film_bytes *file, const char *path, size_t n)
{
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    assert_true(n <= file->n && fwrite(file->bytes, 1, n, stream) == n);
    assert_int_equal(fclose(stream), 0);
}

/* ---- sequences ---- */

static const struct oct_pictures_options plain = {.what = OCT_PICTURES_FRAMES};

struct oct_pictures *film_open(const char *path, const struct oct_pictures_options *options)
{
    struct oct_pictures *pictures;
    must(oct_pictures_open(&pictures, &path, 1, options ? options : &plain, &failure));
    return pictures;
}

void film_read(struct oct_pictures *pictures, uint64_t frame, struct oct_picture *picture,
               struct oct_pictures_info *info)
{
    struct oct_error err = {.text = ""};
    if (oct_pictures_read(pictures, frame, picture, info, &err) != OCT_OK)
        fail_msg("picture %llu: %s", (unsigned long long)frame, err.text);
}

void film_refused(const char *path, const struct oct_pictures_options *options, enum oct_err code,
                  const char *says)
{
    struct oct_pictures *pictures;
    struct oct_picture picture;
    struct oct_error err = {.text = ""};
    enum oct_err e = oct_pictures_open(&pictures, &path, 1, options ? options : &plain, &err);
    assert_true((e == OCT_OK) == (pictures != NULL));
    if (e == OCT_OK) {
        e = oct_pictures_read(pictures, 0, &picture, NULL, &err);
        assert_null(picture.pixels);
    }
    oct_pictures_close(pictures);
    if (e != code || !strstr(err.text, says) || !strstr(err.text, path))
        fail_msg("%s: code %d, \"%s\" instead of %d, \"%s\"", path, e, err.text, code, says);
}
