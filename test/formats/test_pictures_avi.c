/* AVI as input: every way to store grey gives the pixels that went in, whatever lies between them
 * in the file; files that end early give what is whole; others are refused by name. The files are
 * made here chunk by chunk. */
#include "test/rig/film_rig.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { H = 21, W = 18 }; /* rows of 18 bytes are padded to 20, of 54 to 56 */

/* How a film is stored, and what lies around its pictures. */
struct kind {
    char codec[5]; /* "": 0 */
    unsigned bits;
    int sign; /* of biHeight */
    bool inverted_palette, without_palette, tight;
    unsigned n_frames, n_more; /* in the first RIFF, and in an AVIX */
    unsigned sound_streams;    /* before the pictures' own */
    bool in_recs, with_junk;
    uint32_t rate, scale, frame_us;
};

static const struct kind usual = {
    .bits = 8, .sign = 1, .n_frames = 5, .rate = 30000, .scale = 1001, .frame_us = 33367};

static unsigned char pixel(unsigned frame, unsigned y, unsigned x)
{
    return (unsigned char)((frame * 91 + y * 7 + x * 13) ^ (y * x));
}

static bool is_top_down(const struct kind *k)
{
    return k->sign < 0 || k->codec[0] == 'Y' || k->codec[0] == 'G';
}

static void put_picture(struct film_bytes *file, const struct kind *k, unsigned frame)
{
    const unsigned n = k->bits / 8;
    char name[8];
    snprintf(name, sizeof(name), "%02ud%c", k->sound_streams, frame % 2 ? 'b' : 'c');
    const size_t chunk = film_chunk_begin(file, name);
    for (unsigned row = 0; row < H; row++) {
        unsigned char bytes[4 * W + 3] = {0};
        const unsigned y = is_top_down(k) ? row : H - 1 - row;
        for (unsigned x = 0; x < W; x++)
            for (unsigned c = 0; c < n; c++)
                bytes[x * n + c] = c == 3                ? 0xee
                                   : k->inverted_palette ? (unsigned char)~pixel(frame, y, x)
                                                         : pixel(frame, y, x);
        film_put(file, bytes, k->tight ? W * n : (W * n + 3) / 4 * 4);
    }
    film_chunk_end(file, chunk);
}

static void put_stream(struct film_bytes *file, const struct kind *k, const char *type)
{
    const size_t list = film_list_begin(file, "LIST", "strl");
    size_t chunk = film_chunk_begin(file, "strh");
    film_put(file, type, 4);
    film_put(file, "\0\0\0", 4);
    for (unsigned i = 0; i < 3; i++)
        film_put_u32(file, 0);
    film_put_u32(file, k->scale);
    film_put_u32(file, k->rate);
    film_put_u32(file, 0);
    film_put_u32(file, k->n_frames + k->n_more);
    film_put(file, (unsigned char[20]){0}, 20);
    film_chunk_end(file, chunk);
    chunk = film_chunk_begin(file, "strf");
    film_put_u32(file, 40);
    film_put_u32(file, W);
    film_put_u32(file, k->sign < 0 ? (uint32_t)-H : H);
    film_put_u16(file, 1);
    film_put_u16(file, k->bits);
    film_put(file, k->codec[0] ? k->codec : "\0\0\0", 4);
    film_put(file, (unsigned char[20]){0}, 20);
    for (unsigned i = 0; k->bits == 8 && !k->without_palette && i < 256; i++)
        film_put_u32(file, (k->inverted_palette ? 255 - i : i) * 0x010101);
    film_chunk_end(file, chunk);
    film_chunk_end(file, list);
}

static void put_headers(struct film_bytes *file, const struct kind *k)
{
    const size_t list = film_list_begin(file, "LIST", "hdrl");
    const size_t chunk = film_chunk_begin(file, "avih");
    film_put_u32(file, k->frame_us);
    film_put(file, (unsigned char[52]){0}, 52);
    film_chunk_end(file, chunk);
    for (unsigned i = 0; i < k->sound_streams; i++)
        put_stream(file, k, "auds");
    put_stream(file, k, "vids");
    if (k->with_junk) /* of two the first is read */
        put_stream(file, k, "vids");
    film_chunk_end(file, list);
}

static size_t put_movi(struct film_bytes *file, const struct kind *k, unsigned first, unsigned n)
{
    const size_t list = film_list_begin(file, "LIST", "movi");
    for (unsigned i = first; i < first + n; i++) {
        const size_t rec = k->in_recs ? film_list_begin(file, "LIST", "rec ") : 0;
        if (k->with_junk)
            film_chunk_end(file, film_chunk_begin(file, "ix00"));
        if (k->sound_streams) {
            const size_t sound = film_chunk_begin(file, "00wb");
            film_put(file, "an odd number", 13);
            film_chunk_end(file, sound);
        }
        put_picture(file, k, i);
        if (k->with_junk) {
            struct kind other = *k;
            other.sound_streams++;
            put_picture(file, &other, i + 3);
        }
        if (k->in_recs)
            film_chunk_end(file, rec);
    }
    film_chunk_end(file, list);
    return list;
}

/* Returns where its first movi list begins. */
static size_t make(struct film_bytes *file, const struct kind *k)
{
    file->n = 0;
    size_t riff = film_list_begin(file, "RIFF", "AVI ");
    put_headers(file, k);
    if (k->with_junk) {
        const size_t junk = film_chunk_begin(file, "JUNK");
        film_put(file, "LIST....movi", 12);
        film_chunk_end(file, junk);
    }
    const size_t movi = put_movi(file, k, 0, k->n_frames);
    film_chunk_end(file, film_chunk_begin(file, "idx1"));
    film_chunk_end(file, riff);
    if (k->n_more) {
        riff = film_list_begin(file, "RIFF", "AVIX");
        put_movi(file, k, k->n_frames, k->n_more);
        film_chunk_end(file, riff);
    }
    return movi;
}

/* frame: which of the film was put there. */
static void check_picture(struct oct_pictures *pictures, uint64_t index, unsigned frame)
{
    struct oct_picture picture;
    struct oct_pictures_info info;
    film_read(pictures, index, &picture, &info);
    assert_true(picture.height == H && picture.width == W && !picture.valid);
    assert_true(info.bits == 8 && info.is_integer && info.index == index && isnan(info.um[0]));
    for (unsigned y = 0; y < H; y++)
        for (unsigned x = 0; x < W; x++)
            if (picture.pixels[y * W + x] != (float)pixel(frame, y, x))
                fail_msg("picture %u, y %u, x %u: %g", frame, y, x,
                         (double)picture.pixels[y * W + x]);
    oct_picture_finish(&picture);
}

static void check_film(const char *path, uint64_t n)
{
    const struct oct_pictures_options keep = {.keeps_whole = true};
    struct oct_pictures *pictures = film_open(path, &keep);
    assert_int_equal(oct_pictures_count(pictures), n);
    for (uint64_t i = n; i-- > 0;)
        check_picture(pictures, i, (unsigned)i);
    oct_pictures_close(pictures);
}

TEST(grey_of_every_kind)
{
    static const struct kind kinds[] = {
        {.bits = 8, .sign = 1, .n_frames = 3},
        {.bits = 8, .sign = -1, .n_frames = 3},
        {.bits = 8, .sign = 1, .n_frames = 3, .inverted_palette = true},
        {.bits = 8, .sign = 1, .n_frames = 3, .without_palette = true},
        {.bits = 8, .sign = 1, .n_frames = 3, .tight = true},
        {.codec = "DIB ", .bits = 8, .sign = 1, .n_frames = 3},
        {.codec = "RGB ", .bits = 24, .sign = 1, .n_frames = 3},
        {.codec = "Y800", .bits = 8, .sign = 1, .n_frames = 3, .without_palette = true},
        {.codec = "Y8  ", .bits = 8, .sign = -1, .n_frames = 3, .tight = true},
        {.codec = "GREY", .bits = 8, .sign = 1, .n_frames = 3, .inverted_palette = false},
        {.bits = 24, .sign = 1, .n_frames = 3},
        {.bits = 24, .sign = -1, .n_frames = 3, .tight = true},
        {.bits = 32, .sign = 1, .n_frames = 3},
    };
    static struct film_bytes file;
    for (unsigned k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        make(&file, &kinds[k]);
        film_write(&file, "kind.avi", file.n);
        check_film("kind.avi", 3);
    }
}

TEST(what_lies_between_pictures_is_passed_by)
{
    static struct film_bytes file;
    struct kind k = usual;
    k.with_junk = k.in_recs = true;
    k.sound_streams = 2;
    k.n_more = 4;
    make(&file, &k);
    film_put(&file, "RIFF\4\0\0\0WAVE and so on", 22); /* is none of it */
    film_write(&file, "between.avi", file.n);
    struct oct_pictures *pictures = film_open("between.avi", NULL);
    assert_null(oct_pictures_warning(pictures));
    oct_pictures_close(pictures);
    check_film("between.avi", 9);
}

/* A program that loses a frame may write a chunk of no bytes. */
TEST(a_chunk_of_no_bytes_repeats)
{
    static struct film_bytes file;
    struct oct_picture picture;
    file.n = 0;
    const size_t riff = film_list_begin(&file, "RIFF", "AVI ");
    put_headers(&file, &usual);
    const size_t movi = film_list_begin(&file, "LIST", "movi");
    film_chunk_end(&file, film_chunk_begin(&file, "00dc"));
    put_picture(&file, &usual, 7);
    film_chunk_end(&file, film_chunk_begin(&file, "00db"));
    film_chunk_end(&file, film_chunk_begin(&file, "00dc"));
    put_picture(&file, &usual, 9);
    film_chunk_end(&file, movi);
    film_chunk_end(&file, riff);
    film_write(&file, "repeat.avi", file.n);
    struct oct_pictures *pictures = film_open("repeat.avi", NULL);
    assert_int_equal(oct_pictures_count(pictures), 5);
    check_picture(pictures, 4, 9);
    for (unsigned i = 1; i < 4; i++)
        check_picture(pictures, i, 7);
    film_read(pictures, 0, &picture, NULL); /* there is nothing yet to repeat */
    for (unsigned i = 0; i < H * W; i++)
        assert_true(picture.valid && picture.valid[i] == 0);
    oct_picture_finish(&picture);
    oct_pictures_close(pictures);
}

static double fps_of(const struct kind *k, double given)
{
    static struct film_bytes file;
    const struct oct_pictures_options options = {.fps = given};
    struct oct_pictures_times times = {0};
    struct oct_error err;
    make(&file, k);
    film_write(&file, "rate.avi", file.n);
    struct oct_pictures *pictures = film_open("rate.avi", &options);
    const double fps = oct_pictures_fps(pictures);
    assert_int_equal(oct_pictures_times(pictures, 3, &times, &err), OCT_OK);
    assert_null(times.time_s);
    assert_true(isnan(fps) ? isnan(times.start_s) : times.start_s == 3 / fps);
    assert_int_equal(oct_pictures_times(pictures, 5, &times, &err), OCT_E_ARG);
    oct_pictures_times_finish(&times);
    oct_pictures_close(pictures);
    return fps;
}

TEST(the_rate_is_that_of_the_stream)
{
    static struct film_bytes file;
    struct kind k = usual;
    struct oct_pictures *pictures;
    assert_true(fps_of(&k, 0) == 30000.0 / 1001);
    assert_true(fps_of(&k, 12.5) == 12.5);
    k.scale = 0;
    assert_true(fps_of(&k, 0) == 1e6 / 33367);
    k.frame_us = 0;
    assert_true(isnan(fps_of(&k, 0)));
    k = usual;
    k.rate = 25;
    k.scale = 1;
    assert_true(fps_of(&k, 0) == 25);
    make(&file, &usual);
    film_write(&file, "other.avi", file.n);
    const char *paths[] = {"rate.avi", "other.avi"};
    must(oct_pictures_open(&pictures, paths, 2, &(struct oct_pictures_options){.um = {0}},
                           &failure));
    assert_true(isnan(oct_pictures_fps(pictures)) && oct_pictures_count(pictures) == 10);
    oct_pictures_close(pictures);
}

/* ---- files that end early ---- */

/* keep: how many bytes of the file there are. */
static void check_cut(const struct film_bytes *file, size_t keep, uint64_t n_whole, unsigned n)
{
    const struct oct_pictures_options options = {.keeps_whole = true};
    const char *path = "cut.avi";
    char says[80];
    snprintf(says, sizeof(says), "truncated; pictures that are whole: %u of %u", (unsigned)n_whole,
             n);
    film_write(file, path, keep);
    if (n_whole == 0) {
        film_refused(path, &options, OCT_E_FORMAT, "truncated AVI");
        return;
    }
    film_refused(path, NULL, OCT_E_FORMAT, says);
    struct oct_pictures *pictures = film_open(path, &options);
    const char *warning = oct_pictures_warning(pictures);
    snprintf(says, sizeof(says), "whole and used: %u of %u", (unsigned)n_whole, n);
    assert_true(warning && strstr(warning, says) && strstr(warning, "cut.avi"));
    oct_pictures_close(pictures);
    check_film(path, n_whole);
}

TEST(truncated_files_keep_what_was_whole)
{
    static struct film_bytes file;
    struct kind k = usual;
    const size_t picture = 8 + 20 * H;
    k.n_more = 4;
    const size_t first = make(&file, &k) + 12, second = file.n - 4 * picture;
    check_cut(&file, first + picture - 1, 0, 9);
    check_cut(&file, first + picture, 1, 9);
    check_cut(&file, first + picture + 3, 1, 9);
    check_cut(&file, first + 5 * picture - 1, 4, 9);
    check_cut(&file, first + 5 * picture, 5, 9); /* its index is gone, and the AVIX */
    check_cut(&file, second + 2 * picture + 100, 7, 9);
    check_cut(&file, file.n - 1, 8, 9);
    film_write(&file, "cut.avi", first - 12 - 200); /* within the headers */
    film_refused("cut.avi", &(struct oct_pictures_options){.keeps_whole = true}, OCT_E_FORMAT,
                 "truncated AVI");
    k.n_more = 0; /* the index alone is cut: nothing is lost */
    make(&file, &k);
    film_write(&file, "index.avi", file.n - 3);
    struct oct_pictures *pictures = film_open("index.avi", NULL);
    assert_true(!oct_pictures_warning(pictures) && oct_pictures_count(pictures) == 5);
    oct_pictures_close(pictures);
}

/* A recorder that was killed leaves sizes of 0, and perhaps room that it had reserved. */
TEST(unfinished_files_are_read)
{
    static struct film_bytes file;
    static const unsigned char nothing[1000];
    struct kind k = usual;
    const size_t movi = make(&file, &k), end = movi + 12 + 5 * (8 + 20 * H);
    film_set_u32(&file, 4, 0);
    film_set_u32(&file, movi + 4, 0);
    file.n = end;
    check_cut(&file, end - 100, 4, 5);
    film_put(&file, nothing, sizeof(nothing));
    film_write(&file, "reserved.avi", file.n);
    check_film("reserved.avi", 5);
}

/* ---- what is refused ---- */

static void refuse(struct kind k, const char *says)
{
    static struct film_bytes file;
    make(&file, &k);
    film_write(&file, "refused.avi", file.n);
    film_refused("refused.avi", NULL, OCT_E_FORMAT, says);
}

TEST(other_films_are_refused_by_name)
{
    static const char *const codecs[] = {"MJPG", "H264", "XVID", "FFV1", "\1\0\0\0"};
    struct kind k = usual;
    for (unsigned i = 0; i < 4; i++) {
        char says[32];
        snprintf(says, sizeof(says), "(codec %s)", codecs[i]);
        memcpy(k.codec, codecs[i], 4);
        refuse(k, says);
    }
    memcpy(k.codec, codecs[4], 4);
    refuse(k, "(codec RLE8)");
    k = usual;
    k.bits = 16;
    refuse(k, "16 bits a pixel");
    k = usual;
    k.n_frames = 0;
    refuse(k, "holds no picture");
}

/* The usual film with one field of its headers changed: the place is counted from the strf's
 * contents. */
static void refuse_changed(size_t at, uint32_t value, const char *says)
{
    static struct film_bytes file;
    make(&file, &usual);
    const size_t strf = 12 + 12 + 64 + 12 + 64 + 8;
    assert_memory_equal(file.bytes + strf - 8, "strf", 4);
    film_set_u32(&file, strf + at, value);
    film_write(&file, "changed.avi", file.n);
    film_refused("changed.avi", NULL, OCT_E_FORMAT, says);
}

TEST(damage_is_refused_by_name)
{
    static struct film_bytes file;
    refuse_changed(4, 19000, "19000 x 21; each side");
    refuse_changed(4, 0x80000000, "each side");
    refuse_changed(8, 0x80000000, "18 x 2147483648");
    refuse_changed(8, 16384, "picture 0 has 420 bytes; 18 x 16384 pixels of 8 bits need 327680");
    refuse_changed(40 + 4 * (size_t)pixel(0, 0, 0), 0x010203, "differ at x 0, y 0");
    refuse_changed(32, 2, "a pixel that the palette lacks"); /* biClrUsed */
    struct kind k = usual;
    k.codec[0] = '\0';
    size_t movi = make(&file, &k);
    memcpy(file.bytes + movi + 12 + 8 + 20 * H, "00pc", 4);
    film_write(&file, "palette.avi", file.n);
    film_refused("palette.avi", NULL, OCT_E_FORMAT, "palette changes");
    movi = make(&file, &k);
    film_set_u32(&file, movi + 12 + 4, 0xfffffff0); /* 4 GiB in the first picture */
    film_write(&file, "claims.avi", file.n);
    film_refused("claims.avi", NULL, OCT_E_FORMAT, "no picture is whole");
    k.bits = 24;
    movi = make(&file, &k);
    file.bytes[movi + 20 + (size_t)56 * 20 + 3 * 4 + 1] ^=
        1; /* the last row that is stored is the first */
    film_write(&file, "colour.avi", file.n);
    film_refused("colour.avi", NULL, OCT_E_FORMAT, "differ at x 4, y 0");
}

/* 16384 x 16384 pixels that no byte of the file stands for. */
TEST(sizes_without_bytes_are_refused)
{
    static struct film_bytes file;
    file.n = 0;
    const size_t riff = film_list_begin(&file, "RIFF", "AVI ");
    put_headers(&file, &usual);
    film_set_u32(&file, 12 + 12 + 64 + 12 + 64 + 8 + 4, 16384);
    film_set_u32(&file, 12 + 12 + 64 + 12 + 64 + 8 + 8, 16384);
    const size_t movi = film_list_begin(&file, "LIST", "movi");
    for (unsigned i = 0; i < 100; i++)
        film_chunk_end(&file, film_chunk_begin(&file, "00db"));
    film_chunk_end(&file, movi);
    film_chunk_end(&file, riff);
    film_write(&file, "empty.avi", file.n);
    film_refused("empty.avi", NULL, OCT_E_FORMAT, "holds no picture");
}
