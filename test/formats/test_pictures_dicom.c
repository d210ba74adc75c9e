/* Ophthalmic Tomography Images as pictures and volumes: with and without value representations, 8
 * and 16 bits, packed by RLE, JPEG and JPEG-LS; spacing by whatever says it; what is not read and
 * what is damaged is refused in one line. The files are made here element by element; files of
 * octctl export and of pydicom are read in test_device_volumes.py. */
#include "formats/volumes.h"
#include "test/rig/film_rig.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { V = 3, D = 16, M = 20, N = V * D * M };
enum { OPEN = -1 }; /* a length that a mark ends */

/* What a file is; changed by each test. */
struct image {
    const char *syntax, *class, *grey, *eye, *maker;
    unsigned bits, stored, samples, is_signed, n_parts;
    const char *n_frames, *spacing, *between, *directions;
    const char *places[V]; /* Image Position (Patient); "": not there */
    float lines[V][4];     /* Ophthalmic Frame Location; all 0: not there */
    const char *times[V];
    bool implicit, frames_first;
    uint32_t pixel_bytes; /* 0: all */
};

static struct image plain(void)
{
    return (struct image){.syntax = "1.2.840.10008.1.2.1",
                          .class = "1.2.840.10008.5.1.4.1.1.77.1.5.4",
                          .grey = "MONOCHROME2",
                          .eye = "L ",
                          .maker = "Somebody",
                          .bits = 8,
                          .stored = 8,
                          .samples = 1,
                          .n_parts = 1,
                          .n_frames = "3 ",
                          .spacing = "0.0039\\0.0115",
                          .between = "0.24",
                          .directions = "1\\0\\0\\0\\1\\0",
                          .places = {"", "", ""},
                          .times = {"", "", ""}};
}

static bool is_implicit; /* of what is put from here on */

static void put_header(struct film_bytes *f, uint32_t tag, const char *vr, uint32_t n)
{
    const bool is_long = strstr("OBOWSQUN", vr) != NULL;
    film_put_u16(f, tag >> 16);
    film_put_u16(f, tag & 0xffff);
    if (!is_implicit)
        film_put(f, vr, 2);
    if (!is_implicit && is_long)
        film_put_u16(f, 0);
    if (is_implicit || is_long)
        film_put_u32(f, n);
    else
        film_put_u16(f, n);
}

/* Padded to an even length. */
static void put_text(struct film_bytes *f, uint32_t tag, const char *vr, const char *text)
{
    const uint32_t n = (uint32_t)strlen(text);
    put_header(f, tag, vr, n + n % 2);
    film_put(f, text, n);
    film_put(f, strcmp(vr, "UI") == 0 ? "" : " ", n % 2);
}

static void put_u16(struct film_bytes *f, uint32_t tag, unsigned value)
{
    put_header(f, tag, "US", 2);
    film_put_u16(f, value);
}

/* An item, or with the tags of their ends the mark of one, of a sequence. */
static void put_mark(struct film_bytes *f, uint32_t tag, uint32_t n)
{
    film_put_u16(f, tag >> 16);
    film_put_u16(f, tag & 0xffff);
    film_put_u32(f, n);
}

static void begin(struct film_bytes *f, uint32_t tag)
{
    put_header(f, tag, "SQ", (uint32_t)OPEN);
    put_mark(f, 0xfffee000, (uint32_t)OPEN);
}

static void end(struct film_bytes *f)
{
    put_mark(f, 0xfffee00d, 0);
    put_mark(f, 0xfffee0dd, 0);
}

static void put_frames(struct film_bytes *f, const struct image *image)
{
    put_header(f, 0x52009230, "SQ", (uint32_t)OPEN);
    for (unsigned v = 0; v < V; v++) {
        put_mark(f, 0xfffee000, (uint32_t)OPEN);
        if (image->times[v][0]) {
            begin(f, 0x00209111);
            put_text(f, 0x00189074, "DT", image->times[v]);
            end(f);
        }
        if (image->places[v][0]) {
            begin(f, 0x00209113);
            put_text(f, 0x00200032, "DS", image->places[v]);
            end(f);
        }
        if (image->lines[v][2] + image->lines[v][3] > 0) {
            begin(f, 0x00220031);
            put_header(f, 0x00220032, "FL", 16);
            film_put(f, image->lines[v], 16);
            end(f);
        }
        put_mark(f, 0xfffee00d, 0);
    }
    put_mark(f, 0xfffee0dd, 0);
}

/* All up to the pixels. */
static struct film_bytes *make_header(const struct image *image)
{
    static struct film_bytes file;
    struct film_bytes *f = &file;
    memset(f, 0, sizeof(*f));
    f->n = 128;
    is_implicit = false;
    film_put(f, "DICM", 4);
    put_text(f, 0x00020010, "UI", image->syntax);
    is_implicit = image->implicit;
    if (image->frames_first)
        put_frames(f, image);
    put_text(f, 0x00080016, "UI", image->class);
    put_text(f, 0x0008002a, "DT", "20200203040506.5+0100");
    put_text(f, 0x00080070, "LO", image->maker);
    put_text(f, 0x00100010, "PN", "Nobody^At all");
    put_text(f, 0x00200062, "CS", image->eye);
    put_u16(f, 0x00209162, 1);
    put_u16(f, 0x00209163, image->n_parts);
    put_u16(f, 0x00280002, image->samples);
    put_text(f, 0x00280004, "CS", image->grey);
    put_text(f, 0x00280008, "IS", image->n_frames);
    put_u16(f, 0x00280010, D);
    put_u16(f, 0x00280011, M);
    put_u16(f, 0x00280100, image->bits);
    put_u16(f, 0x00280101, image->stored);
    put_u16(f, 0x00280102, image->stored - 1);
    put_u16(f, 0x00280103, image->is_signed);
    begin(f, 0x52009229);
    begin(f, 0x00289110);
    put_text(f, 0x00280030, "DS", image->spacing);
    put_text(f, 0x00180088, "DS", image->between);
    end(f);
    begin(f, 0x00209116);
    put_text(f, 0x00200037, "DS", image->directions);
    end(f);
    end(f);
    put_frames(f, image);
    return f;
}

static unsigned value(const struct image *image, unsigned v, unsigned z, unsigned x)
{
    return ((v * D + z) * M + x) * 2654435761u >> (32 - image->stored);
}

static const char *write_as(struct film_bytes *f, const char *name)
{
    film_write(f, name, f->n);
    return name;
}

static const char *make(const struct image *image, const char *name)
{
    struct film_bytes *f = make_header(image);
    const unsigned n = image->bits / 8;
    put_header(f, 0x7fe00010, n == 1 ? "OB" : "OW",
               image->pixel_bytes ? image->pixel_bytes : N * n);
    for (unsigned i = 0; i < N; i++) { /* what lies above the stored bits is not theirs */
        const unsigned pixel = value(image, i / (D * M), i / M % D, i % M) | ~0u << image->stored;
        if (n == 1)
            film_put(f, &(unsigned char){(unsigned char)pixel}, 1);
        else
            film_put_u16(f, pixel & 0xffff);
    }
    return write_as(f, name);
}

static void check_pictures(const char *path, const struct image *image)
{
    struct oct_pictures *pictures = film_open(path, NULL);
    struct oct_picture picture;
    struct oct_pictures_info info;
    assert_int_equal(oct_pictures_count(pictures), V);
    for (unsigned v = V; v-- > 0;) {
        film_read(pictures, v, &picture, &info);
        assert_true(picture.height == M && picture.width == D && !picture.valid);
        assert_true(info.bits == image->bits && !info.is_db && info.is_integer);
        for (unsigned x = 0; x < M; x++)
            for (unsigned z = 0; z < D; z++)
                assert_int_equal((int)picture.pixels[x * D + z], value(image, v, z, x));
        oct_picture_finish(&picture);
    }
    oct_pictures_close(pictures);
}

static void look(const char *path, struct oct_volume_info *info)
{
    must(oct_volume_look(path, info, &failure));
}

TEST(pixels_are_those_of_the_file)
{
    static const unsigned kinds[][2] = {{8, 8}, {8, 7}, {16, 16}, {16, 12}};
    for (unsigned i = 0; i < 8; i++) {
        struct image image = plain();
        image.bits = kinds[i / 2][0];
        image.stored = kinds[i / 2][1];
        image.implicit = i % 2;
        image.syntax = i % 2 ? "1.2.840.10008.1.2" : image.syntax;
        check_pictures(make(&image, "a.dcm"), &image);
    }
}

TEST(facts_are_those_of_the_file)
{
    struct oct_volume_info info;
    struct oct_picture picture;
    struct oct_pictures_info about;
    struct image image = plain();
    image.times[1] = "20200203040507";
    const char *path = make(&image, "a.dcm");
    look(path, &info);
    assert_string_equal(info.format, "DICOM");
    assert_true(info.dims[0] == V && info.dims[1] == M && info.dims[2] == D);
    assert_string_equal(info.eye, "OS");
    assert_string_equal(info.start_time, "2020-02-03T03:05:06Z");
    assert_int_equal(info.n_layers, 0);
    assert_float_equal(info.um[1], 11.5, 1e-4);
    assert_float_equal(info.um[2], 3.9, 1e-4);
    struct oct_pictures *pictures = film_open(path, NULL);
    film_read(pictures, 0, &picture, &about);
    oct_picture_finish(&picture);
    assert_true(about.time_ns == 1580699106500000000u);
    assert_float_equal(about.um[0], 11.5, 1e-4);
    assert_float_equal(about.um[1], 3.9, 1e-4);
    film_read(pictures, 1, &picture, &about);
    oct_picture_finish(&picture);
    assert_true(about.time_ns == 1580702707000000000u);
    oct_pictures_close(pictures);
}

static void check_distance(const struct image *image, double um)
{
    struct oct_volume_info info;
    look(make(image, "a.dcm"), &info);
    if (isnan(um) ? !isnan(info.um[0]) : !(fabs(info.um[0] - um) < 1e-6 * um))
        fail_msg("%g um from B-scan to B-scan, not %g", info.um[0], um);
}

TEST(the_distance_of_bscans_is_what_their_places_say)
{
    struct image image = plain();
    check_distance(&image, 240);
    image.between = "";
    check_distance(&image, NAN);
    image.between = "0.24";
    image.places[0] = "1\\0\\0";
    image.places[1] = "1\\0.3\\0.4";
    image.places[2] = "1\\0.6\\0.8";
    check_distance(&image, 500);
    image.places[2] = "1\\0.3\\0.4"; /* uneven: what is said of all */
    check_distance(&image, 240);
    /* On the fundus, 20 A-lines of 11.5 um on 23 pixels: one is 10 um. */
    const float lines[V][4] = {{50, 10, 50, 33}, {42, 11, 42, 34}, {34, 12, 34, 35}};
    memcpy(image.lines, lines, sizeof(lines));
    memcpy(image.places, (const char *[V]){"", "", ""}, sizeof(image.places));
    check_distance(&image, 80);
    image.lines[2][2] = 40; /* a star */
    check_distance(&image, NAN);
}

/* ---- packed ---- */

/* One fragment a frame behind a table of offsets that says nothing. */
static const char *make_packed(const struct image *image, const unsigned char *const *fragments,
                               const uint32_t *sizes)
{
    struct film_bytes *f = make_header(image);
    put_header(f, 0x7fe00010, "OB", (uint32_t)OPEN);
    put_mark(f, 0xfffee000, 0);
    for (unsigned v = 0; v < V; v++) {
        put_mark(f, 0xfffee000, sizes[v]);
        film_put(f, fragments[v], sizes[v]);
    }
    put_mark(f, 0xfffee0dd, 0);
    return write_as(f, "packed.dcm");
}

/* A frame by RLE (PS3.5 G): one segment of literal runs of a row each. */
static uint32_t pack_rle(const struct image *image, unsigned v, unsigned char *to)
{
    uint32_t n = 64;
    memset(to, 0, 64);
    to[0] = 1;
    to[4] = 64;
    for (unsigned z = 0; z < D; z++) {
        to[n++] = M - 1;
        for (unsigned x = 0; x < M; x++)
            to[n++] = (unsigned char)value(image, v, z, x);
    }
    return n;
}

TEST(frames_packed_by_rle)
{
    unsigned char bytes[V][1024];
    const unsigned char *const fragments[V] = {bytes[0], bytes[1], bytes[2]};
    /* Segments, where they begin, a run beyond the last pixel. */
    static const struct {
        unsigned at;
        unsigned char value;
    } wrong[] = {{0, 0}, {0, 2}, {0, 255}, {4, 60}, {5, 255}, {7, 255}, {64 + 15 * 21, 20}};
    uint32_t sizes[V];
    struct image image = plain();
    image.syntax = "1.2.840.10008.1.2.5";
    for (unsigned v = 0; v < V; v++)
        sizes[v] = pack_rle(&image, v, bytes[v]);
    check_pictures(make_packed(&image, fragments, sizes), &image);
    for (uint32_t n = 0; n < sizes[0]; n += n < 60 ? 20 : 2) /* cut, in its header too */
        film_refused(make_packed(&image, fragments, (const uint32_t[V]){n, n, n}), NULL,
                     OCT_E_FORMAT, "a frame that is damaged");
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        pack_rle(&image, 0, bytes[0]);
        bytes[0][wrong[i].at] = wrong[i].value;
        film_refused(make_packed(&image, fragments, sizes), NULL, OCT_E_FORMAT,
                     "a frame that is damaged");
    }
}

/* 100 z + 7 x of 12 bits, as DCMTK packs it: JPEG lossless (process 14, first order) and
 * JPEG-LS. */
static const char jpeg[] =
    "ffd8ffe000104a46494600010100000100010000ffc3000b100010001401011100ffc40016000101010000000000"
    "0000000000000000030710ffda0008010100010000ceeeeeeeeeeeeeeeeeef647777777777777777777b23bbbbbb"
    "bbbbbbbbbbbbd91ddddddddddddddddddec8eeeeeeeeeeeeeeeeeef647777777777777777777b23bbbbbbbbbbbbb"
    "bbbbbd91ddddddddddddddddddec8eeeeeeeeeeeeeeeeeef647777777777777777777b23bbbbbbbbbbbbbbbbbbd9"
    "1ddddddddddddddddddec8eeeeeeeeeeeeeeeeeef647777777777777777777b23bbbbbbbbbbbbbbbbbbd91dddddd"
    "ddddddddddddff00ffd9";
static const char jpeg_ls[] =
    "ffd8fff7000b0c0010001401011100ffda0008010100000000a6cd97365d33cb59cd974cf2d67398913a65544d4a"
    "525294aaaaa22709111111112492492498c692492492492555312aaaaaaaaa861555557fccc0ff7ff45f7fff7a2f"
    "3fff7d175fff7e4b8fff7f25b7ff7f92d3ff7fc965ff7fe961ff7fe95dff7fe8ffd9";

static uint32_t from_hex(const char *hex, unsigned char *bytes)
{
    uint32_t n = 0;
    for (; hex[2 * n]; n++) {
        const char digits[3] = {hex[2 * n], hex[2 * n + 1], '\0'};
        bytes[n] = (unsigned char)strtoul(digits, NULL, 16);
    }
    bytes[n] = 0;
    return n + n % 2;
}

TEST(frames_packed_by_jpeg)
{
    static const struct {
        const char *syntax, *hex;
    } kinds[] = {{"1.2.840.10008.1.2.4.70", jpeg}, {"1.2.840.10008.1.2.4.80", jpeg_ls}};
    for (unsigned k = 0; k < 2; k++) {
        unsigned char bytes[512];
        const uint32_t n = from_hex(kinds[k].hex, bytes);
        const unsigned char *const fragments[V] = {bytes, bytes, bytes};
        const uint32_t sizes[V] = {n, n, n};
        struct oct_picture picture;
        struct image image = plain();
        image.syntax = kinds[k].syntax;
        image.bits = 16;
        image.stored = 12;
        struct oct_pictures *pictures = film_open(make_packed(&image, fragments, sizes), NULL);
        for (unsigned v = 0; v < V; v++) {
            film_read(pictures, v, &picture, NULL);
            for (unsigned x = 0; x < M; x++)
                for (unsigned z = 0; z < D; z++)
                    assert_int_equal((int)picture.pixels[x * D + z], 100 * z + 7 * x);
            oct_picture_finish(&picture);
        }
        oct_pictures_close(pictures);
        image.bits = image.stored = 8; /* they are of 12 */
        film_refused(make_packed(&image, fragments, sizes), NULL, OCT_E_FORMAT, "unpacked");
        image.bits = 16;
        image.stored = 12;
        film_refused(make_packed(&image, fragments, (const uint32_t[V]){n / 2 & ~1u, n, n}), NULL,
                     OCT_E_FORMAT, "unpacked");
        const uint32_t two[V] = {n, n, 0};
        image.n_frames = "4";
        film_refused(make_packed(&image, fragments, two), NULL, OCT_E_FORMAT,
                     "packed by transfer syntax");
    }
}

/* ---- what is refused ---- */

TEST(what_is_not_read_is_told_by_name)
{
    struct image wrong[10];
    static const char *const says[10] = {"SOP class 1.2.840.10008.5.1.4.1.1.7",
                                         "transfer syntax 1.2.840.10008.1.2.4.90",
                                         "deflated",
                                         "part 1 of 2",
                                         "MONOCHROME1",
                                         "pixels of",
                                         "pixels of",
                                         "pixels of",
                                         "with 0 frames",
                                         "with 1e+09 frames"};
    for (unsigned i = 0; i < 10; i++)
        wrong[i] = plain();
    wrong[0].class = "1.2.840.10008.5.1.4.1.1.7";
    wrong[1].syntax = "1.2.840.10008.1.2.4.90";
    wrong[2].syntax = "1.2.840.10008.1.2.1.99";
    wrong[3].n_parts = 2;
    wrong[4].grey = "MONOCHROME1";
    wrong[5].samples = 3;
    wrong[6].is_signed = 1;
    wrong[7].stored = 9;
    wrong[8].n_frames = "0";
    wrong[9].n_frames = "1000000000";
    for (unsigned i = 0; i < 10; i++)
        film_refused(make(&wrong[i], "wrong.dcm"), NULL, OCT_E_FORMAT, says[i]);
    struct image more = plain();
    more.n_frames = "4";
    film_refused(make(&more, "wrong.dcm"), NULL, OCT_E_FORMAT, "with 4 frames, 960 bytes");
    more = plain();
    more.frames_first = true; /* before it is known how many there are */
    film_refused(make(&more, "wrong.dcm"), NULL, OCT_E_FORMAT, "damaged or truncated");
    struct image face = plain();
    face.maker = "octd";
    face.directions = "1\\0\\0\\0\\0\\1";
    film_refused(make(&face, "wrong.dcm"), NULL, OCT_E_FORMAT, "an en face picture");
}

TEST(cut_files_are_refused_wherever_they_end)
{
    const struct image image = plain();
    struct film_bytes *f = make_header(&image);
    const size_t n_header = f->n;
    make(&image, "whole.dcm");
    for (size_t n = 132; n < n_header + 40; n++) {
        film_write(f, "cut.dcm", n);
        film_refused("cut.dcm", NULL, OCT_E_FORMAT, "cut.dcm");
    }
    film_write(f, "cut.dcm", f->n - 1);
    film_refused("cut.dcm", NULL, OCT_E_FORMAT, "longer than what it lies in");
}

/* Sequences in sequences, so many that a reader that calls itself for each has no stack left. */
TEST(depth_has_a_bound)
{
    for (int implicit = 0; implicit < 2; implicit++) {
        struct image image = plain();
        image.implicit = implicit;
        image.syntax = implicit ? "1.2.840.10008.1.2" : image.syntax;
        struct film_bytes *f = make_header(&image);
        for (unsigned i = 0; i < 4000; i++)
            begin(f, 0x00089999);
        film_refused(write_as(f, "deep.dcm"), NULL, OCT_E_FORMAT, "deeper than in any image");
        f = make_header(&image);
        for (uint32_t n = 30000; n > 20000; n -= is_implicit ? 16 : 20) { /* lengths, no marks */
            put_header(f, 0x00089999, "SQ", n);
            put_mark(f, 0xfffee000, n - 8);
        }
        while (f->n < 100000)
            film_put_u32(f, 0);
        film_refused(write_as(f, "deep.dcm"), NULL, OCT_E_FORMAT, "deeper than in any image");
    }
}

TEST(marks_that_have_no_place_are_refused)
{
    static const uint32_t marks[] = {0xfffee000, 0xfffee00d, 0xfffee0dd};
    const struct image image = plain();
    for (unsigned i = 0; i < 3; i++) {
        struct film_bytes *f = make_header(&image);
        put_mark(f, marks[i], 0);
        film_refused(write_as(f, "mark.dcm"), NULL, OCT_E_FORMAT, "damaged or truncated DICOM");
    }
    struct film_bytes *f = make_header(&image);
    put_header(f, 0x00089999, "SQ", (uint32_t)OPEN);
    put_u16(f, 0x00089999, 1);
    film_refused(write_as(f, "mark.dcm"), NULL, OCT_E_FORMAT, "no item where one is due");
    f = make_header(&image);
    put_header(f, 0x00089999, "OB", (uint32_t)OPEN);
    film_refused(write_as(f, "mark.dcm"), NULL, OCT_E_FORMAT, "without an end");
    f = make_header(&image);
    put_header(f, 0x00089999, "??", 2);
    film_put_u16(f, 0);
    film_refused(write_as(f, "mark.dcm"), NULL, OCT_E_FORMAT, "no value representation");
}
