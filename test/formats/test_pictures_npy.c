/* numpy's arrays as input: every type and order of bytes gives the numbers that went in, whatever
 * the version and the blanks of the header; others are refused by name. The files are made here
 * byte by byte. */
#include "test/rig/film_rig.h"
#include "test/rig/tap.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { T = 3, H = 19, W = 23 };

/* A header of the given version; its text gets blanks up to a multiple of 64 and a line feed. */
static void put_header(struct film_bytes *file, unsigned version, const char *text)
{
    const unsigned n_before = version == 1 ? 10 : 12, n_text = (unsigned)strlen(text) + 1;
    const unsigned n = (n_before + n_text + 63) / 64 * 64 - n_before;
    file->n = 0;
    film_put(file, "\x93NUMPY", 6);
    film_put_u16(file, version);
    if (version == 1)
        film_put_u16(file, n);
    else
        film_put_u32(file, n);
    film_put(file, text, n_text - 1);
    for (unsigned i = n_text; i < n; i++)
        film_put(file, " ", 1);
    film_put(file, "\n", 1);
}

static double value(const char *descr, unsigned i)
{
    const uint32_t random = i * 2654435761u;
    if (descr[1] == 'f')
        return i == 5 ? (double)NAN : ldexp((double)(int32_t)random, -20);
    const unsigned bits = descr[2] == '1' ? 8 : 16;
    const double whole = random >> (32 - bits);
    return descr[1] == 'i' ? whole - (bits == 8 ? 128 : 32768) : whole;
}

static void put_value(struct film_bytes *file, const char *descr, double v)
{
    const unsigned n = (unsigned)(descr[2] - '0');
    const float f32 = (float)v;
    uint64_t bits = (uint64_t)(int64_t)(isnan(v) ? 0 : v);
    uint32_t low;
    unsigned char bytes[8];
    if (descr[1] == 'f' && n == 4) {
        memcpy(&low, &f32, sizeof(low));
        bits = low;
    } else if (descr[1] == 'f') {
        memcpy(&bits, &v, sizeof(bits));
    }
    for (unsigned i = 0; i < n; i++)
        bytes[i] = (unsigned char)(bits >> 8 * (descr[0] == '>' ? n - 1 - i : i));
    film_put(file, bytes, n);
}

static void put_values(struct film_bytes *file, const char *descr, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        put_value(file, descr, value(descr, i));
}

static void check_pictures(const char *path, const char *descr, unsigned n)
{
    struct oct_picture picture;
    struct oct_pictures_info info;
    struct oct_pictures *pictures = film_open(path, NULL);
    assert_int_equal(oct_pictures_count(pictures), n);
    assert_true(isnan(oct_pictures_fps(pictures)));
    for (unsigned t = n; t-- > 0;) {
        film_read(pictures, t, &picture, &info);
        assert_true(picture.height == H && picture.width == W);
        assert_int_equal(info.bits, descr[1] == 'f' ? 32 : 8 * (descr[2] - '0'));
        for (unsigned i = 0; i < H * W; i++) {
            const double want = value(descr, t * H * W + i);
            const bool valid = !picture.valid || picture.valid[i];
            if (valid == isnan(want) || (valid && picture.pixels[i] != (float)want))
                fail_msg("%s, picture %u, pixel %u: %g", descr, t, i, (double)picture.pixels[i]);
        }
        oct_picture_finish(&picture);
    }
    oct_pictures_close(pictures);
}

TEST(numbers_of_every_kind)
{
    static const char *const types[] = {"|u1", "|i1", "<u2", ">u2", "<i2", ">i2",
                                        "<f4", ">f4", "<f8", ">f8", "<u1"};
    static struct film_bytes file;
    char text[160];
    for (unsigned k = 0; k < sizeof(types) / sizeof(types[0]); k++) {
        snprintf(text, sizeof(text),
                 "{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d, "
                 "%d), }",
                 types[k], T, H, W);
        put_header(&file, 1 + k % 3, text);
        put_values(&file, types[k], T * H * W);
        film_write(&file, "kind.npy", file.n);
        check_pictures("kind.npy", types[k], T);
    }
}

TEST(headers_of_every_style)
{
    static const char *const texts[] = {
        "{'descr': '|u1', 'fortran_order': False, 'shape': (19, 23), }",
        "{'shape':(19,23),'fortran_order':False,'descr':'|u1'}",
        "{\"descr\" : \"|u1\" ,\n \"shape\": ( 19 , 23 , ), \"fortran_order\":\tFalse}",
    };
    static struct film_bytes file;
    for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        put_header(&file, 1, texts[i]);
        put_values(&file, "|u1", H * W);
        film_put(&file, "behind", 6); /* another array, say */
        film_write(&file, "style.npy", file.n);
        check_pictures("style.npy", "|u1", 1);
    }
}

static void refuse(const char *text, const char *says)
{
    static struct film_bytes file;
    put_header(&file, 1, text);
    put_values(&file, "|u1", 2000);
    film_write(&file, "refused.npy", file.n);
    film_refused("refused.npy", NULL, OCT_E_FORMAT, says);
}

#define C_ORDER "'fortran_order': False"

TEST(other_arrays_are_refused_by_name)
{
    static const char *const types[] = {"'<c8'", "'<i4'", "'|b1'", "'<f2'", "'|u'", "'<M8[s]'"};
    static struct film_bytes file;
    char text[160], says[64];
    refuse("{'descr': '|u1', 'fortran_order': True, 'shape': (19, 23)}", "ascontiguousarray");
    for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        snprintf(text, sizeof(text), "{'descr': %s, " C_ORDER ", 'shape': (19, 23)}", types[i]);
        snprintf(says, sizeof(says), "samples of type %s; save them as", types[i]);
        refuse(text, says);
    }
    refuse("{'descr': [('a', '<u2'), ('b', '<f4')], " C_ORDER ", 'shape': (19, 23)}", "of type [");
    refuse("{'descr': '|u1', " C_ORDER ", 'shape': (19,)}", "has 1 axes");
    refuse("{'descr': '|u1', " C_ORDER ", 'shape': ()}", "has 0 axes");
    refuse("{'descr': '|u1', " C_ORDER ", 'shape': (1, 1, 19, 23)}", "has 4 axes");
    refuse("{'descr': '|u1', " C_ORDER ", 'shape': (0, 19, 23)}", "is empty");
    put_header(&file, 1, "{'descr': '|u1', " C_ORDER ", 'shape': (19, 8)}");
    put_values(&file, "|u1", 2000);
    film_write(&file, "small.npy", file.n);
    film_refused("small.npy", NULL, OCT_E_ARG, "8 x 19; each side");
}

/* Sizes that overflow, or that the file does not have. */
TEST(damage_is_refused)
{
    static struct film_bytes file;
    refuse("{'descr': '|u1', " C_ORDER ", 'shape': (18446744073709551617, 16, 16)}", "a shape");
    refuse("{'descr': '|u1', " C_ORDER ", 'shape': (4294967296, 4294967296)}", "each side");
    refuse("{'descr': '<f8', " C_ORDER ", 'shape': (16384, 16384)}", "no picture is whole");
    refuse("{'descr': '|u1', " C_ORDER ", 'shape': (-1, 19, 23)}", "a shape");
    refuse("{'descr': '|u1', " C_ORDER ", 'shape': (19 23)}", "a shape");
    refuse("{'descr': '|u1', " C_ORDER ", 'shape': (19, 23", "a shape");
    refuse("{'descr': '|u1', 'fortran_order': 0, 'shape': (19, 23)}", "order of axes");
    refuse("{" C_ORDER ", 'shape': (19, 23)}", "no type");
    refuse("{" C_ORDER ", 'shape': (19, 23), 'descr':", "no type");
    refuse("", "no type");
    put_header(&file, 4, "{'descr': '|u1', " C_ORDER ", 'shape': (19, 23)}");
    film_write(&file, "new.npy", file.n);
    film_refused("new.npy", NULL, OCT_E_FORMAT, "version 4");
    put_header(&file, 2, "{'descr': '|u1', " C_ORDER ", 'shape': (19, 23)}");
    film_set_u32(&file, 8, 0xffffffff);
    film_write(&file, "long.npy", file.n);
    film_refused("long.npy", NULL, OCT_E_FORMAT, "more than 64 KiB");
    film_write(&file, "start.npy", 12);
    film_refused("start.npy", NULL, OCT_E_FORMAT, "");
    film_write(&file, "magic.npy", 7);
    film_refused("magic.npy", NULL, OCT_E_FORMAT, "truncated");
}

TEST(truncated_files_keep_what_was_whole)
{
    static struct film_bytes file;
    const struct oct_pictures_options keep = {.keeps_whole = true};
    put_header(&file, 1, "{'descr': '<u2', " C_ORDER ", 'shape': (3, 19, 23), }");
    put_values(&file, "<u2", T * H * W);
    film_write(&file, "cut.npy", file.n - 1);
    film_refused("cut.npy", NULL, OCT_E_FORMAT, "pictures that are whole: 2 of 3");
    struct oct_pictures *pictures = film_open("cut.npy", &keep);
    assert_int_equal(oct_pictures_count(pictures), 2);
    assert_true(strstr(oct_pictures_warning(pictures), "whole and used: 2 of 3") != NULL);
    oct_pictures_close(pictures);
    film_write(&file, "cut.npy", file.n - 4 * H * W - 1);
    film_refused("cut.npy", &keep, OCT_E_FORMAT, "no picture is whole");
}
