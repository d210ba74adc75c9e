/* Spectralis .vol as pictures and as volumes: every pixel, spacing, eye, time and layer is that of
 * the file, which is made here byte by byte; damaged ones are refused, cut ones read as far as they
 * go. The export of a real eye is compared in test_device_volumes.py. */
#include "formats/volumes.h"
#include "test/rig/film_rig.h"
#include "test/rig/tap.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { V = 3, M = 20, D = 17, LAYERS = 2, SLO = 5 };
enum { BSCAN_HEADER = 256 + 4 * LAYERS * M, BSCAN = BSCAN_HEADER + 4 * M * D };
enum { FIRST = 2048 + SLO * SLO, WHOLE = FIRST + V * BSCAN };

/* 2020-02-03T04:05:06.5Z in units of 100 ns since 1601. */
#define EXAM_TIME 132251763065000000u
#define EXAM_NS 1580702706500000000u

static void put_at(struct film_bytes *file, size_t at, const void *bytes, size_t n)
{
    memcpy(file->bytes + at, bytes, n);
}

static void put_f64(struct film_bytes *file, size_t at, double value)
{
    put_at(file, at, &value, sizeof(value));
}

static void put_f32(struct film_bytes *file, size_t at, float value)
{
    put_at(file, at, &value, sizeof(value));
}

/* Linear intensity; one pixel lies outside the picture, one is what noise subtracted leaves. */
static float value(unsigned v, unsigned x, unsigned z)
{
    if (x == 3 && z == 4)
        return FLT_MAX;
    if (x == 5 && z == 6)
        return -0.001F;
    return (float)((v * D + z) * M + x) / (V * M * D);
}

static float layer(unsigned v, unsigned k, unsigned x)
{
    return x == 7 ? FLT_MAX : x == 8 ? (float)D : (float)(1 + 4 * k + v) + 0.125F * (float)(x % 8);
}

static void put_bscan(struct film_bytes *file, unsigned v)
{
    const size_t at = FIRST + v * BSCAN;
    put_at(file, at, "HSF-BS-103", 10);
    film_set_u32(file, at + 12, BSCAN_HEADER);
    film_set_u32(file, at + 48, LAYERS);
    film_set_u32(file, at + 52, 256);
    for (unsigned k = 0; k < LAYERS; k++)
        for (unsigned x = 0; x < M; x++)
            put_f32(file, at + 256 + 4 * (k * M + x), layer(v, k, x));
    for (unsigned z = 0; z < D; z++)
        for (unsigned x = 0; x < M; x++)
            put_f32(file, at + BSCAN_HEADER + 4 * (z * M + x), value(v, x, z));
}

/* A volume scan of a left eye. */
static struct film_bytes *make(void)
{
    static struct film_bytes file;
    const uint64_t time = EXAM_TIME;
    file.n = WHOLE;
    memset(file.bytes, 0, WHOLE);
    put_at(&file, 0, "HSF-OCT-103", 11);
    film_set_u32(&file, 12, M);
    film_set_u32(&file, 16, V);
    film_set_u32(&file, 20, D);
    put_f64(&file, 24, 0.0115);
    put_f64(&file, 32, 0.12);
    put_f64(&file, 40, 0.00387);
    film_set_u32(&file, 48, SLO);
    film_set_u32(&file, 52, SLO);
    put_at(&file, 84, "OS", 3);
    put_at(&file, 88, &time, sizeof(time));
    film_set_u32(&file, 96, 3);
    film_set_u32(&file, 100, BSCAN_HEADER);
    put_at(&file, 140, "Patient 007", 11);
    for (unsigned v = 0; v < V; v++)
        put_bscan(&file, v);
    return &file;
}

static const char *write_as(const struct film_bytes *file, const char *name, size_t n)
{
    film_write(file, name, n);
    return name;
}

/* As the device shows it. */
static float grey(float linear)
{
    return (float)(255 * sqrt(sqrt(fmax((double)linear, 0))));
}

static void check_pixels(const struct oct_picture *p, unsigned v)
{
    assert_true(p->height == M && p->width == D && p->valid);
    for (unsigned x = 0; x < M; x++)
        for (unsigned z = 0; z < D; z++) {
            const float linear = value(v, x, z), want = grey(linear);
            assert_int_equal(p->valid[x * D + z], linear < 1e38F);
            if (p->valid[x * D + z] && p->pixels[x * D + z] != want)
                fail_msg("B-scan %u, A-line %u, depth %u: %g, not %g", v, x, z,
                         (double)p->pixels[x * D + z], (double)want);
        }
}

TEST(pictures_are_bscans_as_the_device_shows_them)
{
    const char *path = write_as(make(), "a.vol", WHOLE);
    struct oct_pictures *pictures = film_open(path, NULL);
    struct oct_picture picture;
    struct oct_pictures_info info;
    assert_int_equal(oct_pictures_count(pictures), V);
    for (unsigned v = V; v-- > 0;) {
        film_read(pictures, v, &picture, &info);
        check_pixels(&picture, v);
        assert_true(info.bits == 32 && !info.is_db && info.time_ns == EXAM_NS);
        assert_float_equal(info.um[0], 11.5, 1e-4);
        assert_float_equal(info.um[1], 3.87, 1e-4);
        oct_picture_finish(&picture);
    }
    oct_pictures_close(pictures);
    assert_true(oct_pictures_is_volume(path));
}

TEST(an_en_face_picture_is_the_mean_of_its_slab)
{
    const struct oct_pictures_options options = {
        .what = OCT_PICTURES_EN_FACE, .slab = {{.at = 8}, {.at = 10}}, .any_side = true};
    struct oct_pictures *pictures = film_open(write_as(make(), "a.vol", WHOLE), &options);
    struct oct_picture picture;
    struct oct_pictures_info info;
    film_read(pictures, 0, &picture, &info);
    assert_true(picture.height == V && picture.width == M);
    assert_float_equal(info.um[0], 120, 1e-4);
    assert_float_equal(info.um[1], 11.5, 1e-4);
    for (unsigned v = 0; v < V; v++)
        for (unsigned x = 0; x < M; x++)
            assert_float_equal(picture.pixels[v * M + x],
                               (grey(value(v, x, 8)) + grey(value(v, x, 9))) / 2, 1e-4);
    oct_picture_finish(&picture);
    oct_pictures_close(pictures);
}

TEST(a_volume_says_its_spacing_and_eye)
{
    float values[V][M][D];
    struct oct_volume_info info;
    const char *path = write_as(make(), "a.vol", WHOLE);
    must(oct_volume_look(path, &info, &failure));
    assert_true(info.dims[0] == V && info.dims[1] == M && info.dims[2] == D);
    assert_float_equal(info.um[0], 120, 1e-4);
    assert_float_equal(info.um[1], 11.5, 1e-4);
    assert_float_equal(info.um[2], 3.87, 1e-4);
    assert_true(!info.is_db && !info.is_linear);
    assert_string_equal(info.eye, "OS");
    must(oct_volume_load(path, &info, &values[0][0][0], &failure));
    assert_float_equal(values[2][19][16], grey(value(2, 19, 16)), 0);
    assert_true(isnan(values[1][3][4]) && values[1][5][6] == 0);
}

TEST(layers_of_the_device_lie_where_it_found_them)
{
    struct oct_volume_info info;
    float px[M];
    const char *path = write_as(make(), "a.vol", WHOLE);
    assert_true(oct_pictures_are_of_device(path));
    must(oct_volume_look(path, &info, &failure));
    assert_string_equal(info.format, "Spectralis .vol");
    assert_string_equal(info.start_time, "2020-02-03T04:05:06Z");
    assert_int_equal(info.n_layers, LAYERS);
    assert_string_equal(info.layers[0], "ilm");
    assert_string_equal(info.layers[1], "bm");
    struct oct_pictures *pictures = film_open(path, NULL);
    for (unsigned v = 0; v < V; v++)
        for (unsigned k = 0; k < LAYERS; k++) {
            must(oct_pictures_layer(pictures, v, k, px, &failure));
            for (unsigned x = 0; x < M; x++)
                if (x == 7 || x == 8) /* none, and below the picture */
                    assert_true(isnan(px[x]));
                else
                    assert_true(px[x] == layer(v, k, x));
        }
    oct_pictures_close(pictures);
}

TEST(what_is_not_known_is_not_told)
{
    static const uint32_t patterns[] = {1, 2, 5};
    struct oct_volume_info info;
    for (unsigned i = 0; i < 3; i++) { /* a line, a circle, a star: not side by side */
        struct film_bytes *file = make();
        film_set_u32(file, 96, patterns[i]);
        memset(file->bytes + 84, 0, 12); /* eye and time */
        put_f64(file, 24, i == 0 ? -1 : i == 1 ? (double)NAN : 1e300);
        const char *path = write_as(file, "b.vol", WHOLE);
        must(oct_volume_look(path, &info, &failure));
        assert_true(isnan(info.um[0]) && isnan(info.um[1]) && info.um[2] > 3.8);
        assert_true(!info.eye[0] && !info.start_time[0]);
    }
}

TEST(a_file_that_ends_early_gives_its_whole_bscans)
{
    const struct oct_pictures_options keep = {.keeps_whole = true};
    struct oct_volume_info info;
    const char *path = write_as(make(), "cut.vol", WHOLE - 1);
    film_refused(path, NULL, OCT_E_FORMAT, "truncated; pictures that are whole: 2 of 3");
    struct oct_pictures *pictures = film_open(path, &keep);
    assert_int_equal(oct_pictures_count(pictures), 2);
    assert_non_null(oct_pictures_warning(pictures));
    oct_pictures_close(pictures);
    must_fail(oct_volume_look(path, &info, &failure), OCT_E_FORMAT, "2 of 3");
    const struct oct_pictures_options face = {
        .what = OCT_PICTURES_EN_FACE, .any_side = true, .projection = OCT_PICTURES_OVER_ALL};
    film_refused(path, &face, OCT_E_FORMAT, "2 of 3 B-scans are whole");
    film_refused(write_as(make(), "cut.vol", FIRST + BSCAN - 1), &keep, OCT_E_FORMAT, "no B-scan");
    film_refused(write_as(make(), "cut.vol", 2000), &keep, OCT_E_FORMAT, "truncated");
}

TEST(damaged_headers_are_refused)
{
    static const struct {
        size_t at;
        uint32_t value;
        const char *says;
    } wrong[] = {
        {12, 0, "each side"},           {12, 0x80000000u, "each side"},
        {20, 1u << 30, "each side"},    {16, 0, "damaged .vol"},
        {16, UINT32_MAX, "truncated"},  {48, UINT32_MAX, "damaged .vol"},
        {52, 60000, "truncated"},       {100, 0, "damaged .vol"},
        {100, UINT32_MAX, "truncated"}, {FIRST, 0, "B-scan 0"},
        {FIRST + 12, 7, "B-scan 0"},    {FIRST + 48, UINT32_MAX, "B-scan 0"},
        {FIRST + 48, 3, "B-scan 0"},    {FIRST + 52, UINT32_MAX, "B-scan 0"},
        {FIRST + 52, 257, "B-scan 0"},  {FIRST + 52, 8, "B-scan 0"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct film_bytes *file = make();
        film_set_u32(file, wrong[i].at, wrong[i].value);
        film_refused(write_as(file, "wrong.vol", WHOLE), NULL, OCT_E_FORMAT, wrong[i].says);
    }
    struct film_bytes *file = make();
    struct oct_picture picture;
    film_set_u32(file, FIRST + BSCAN, 0);
    struct oct_pictures *pictures = film_open(write_as(file, "wrong.vol", WHOLE), NULL);
    must_fail(oct_pictures_read(pictures, 1, &picture, NULL, &failure), OCT_E_FORMAT, "B-scan 1");
    oct_pictures_close(pictures);
}
