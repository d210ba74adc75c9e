/* Films as output: what is written is read back, whole or not at all; and stacks of TIFF that end
 * early, which are cut from such a film. */
#include "formats/film_write.h"
#include "test/rig/film_rig.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { T = 7, H = 33, W = 45, N = H * W };

union pixels {
    uint8_t u8[3 * N];
    uint16_t u16[N];
    float f32[N];
};

static uint32_t number(unsigned frame, unsigned i)
{
    return ((frame * N + i) * 2654435761u) >> 16;
}

static float wanted(enum oct_film_pixel pixel, unsigned frame, unsigned i)
{
    if (pixel == OCT_FILM_F32)
        return (float)number(frame, i) / 3 - 7000;
    return (float)(pixel == OCT_FILM_U16 ? number(frame, i) : number(frame, i) & 0xff);
}

static void fill(union pixels *p, enum oct_film_pixel pixel, unsigned frame)
{
    for (unsigned i = 0; i < N; i++) {
        const float v = wanted(pixel, frame, i);
        if (pixel == OCT_FILM_F32)
            p->f32[i] = v;
        else if (pixel == OCT_FILM_U16)
            p->u16[i] = (uint16_t)v;
        else if (pixel == OCT_FILM_U8)
            p->u8[i] = (uint8_t)v;
        else
            memset(p->u8 + 3 * i, (int)v, 3);
    }
}

static struct oct_film_setup setup_of(enum oct_film_format format, enum oct_film_pixel pixel)
{
    return (struct oct_film_setup){
        .format = format, .pixel = pixel, .height = H, .width = W, .fps = 25, .force = true};
}

static void write_film(const char *path, const struct oct_film_setup *setup, unsigned n)
{
    static union pixels pixels;
    struct oct_film_file *film;
    must(oct_film_file_create(&film, path, setup, &failure));
    for (unsigned t = 0; t < n; t++) {
        fill(&pixels, setup->pixel, t);
        must(oct_film_file_add(film, &pixels, &failure));
    }
    must(oct_film_file_publish(film, &failure));
}

static void check_film(const char *path, enum oct_film_pixel pixel, unsigned n)
{
    const struct oct_pictures_options keep = {.keeps_whole = true};
    struct oct_picture picture;
    struct oct_pictures_info info;
    struct oct_pictures *pictures = film_open(path, &keep);
    assert_int_equal(oct_pictures_count(pictures), n);
    for (unsigned t = 0; t < n; t++) {
        film_read(pictures, t, &picture, &info);
        assert_true(picture.height == H && picture.width == W && !picture.valid);
        assert_int_equal(info.bits, pixel == OCT_FILM_F32 ? 32 : pixel == OCT_FILM_U16 ? 16 : 8);
        for (unsigned i = 0; i < N; i++)
            assert_true(picture.pixels[i] == wanted(pixel, t, i));
        oct_picture_finish(&picture);
    }
    oct_pictures_close(pictures);
}

TEST(every_film_is_read_back)
{
    static const struct {
        const char *name;
        enum oct_film_pixel pixel;
    } films[] = {
        {"a.avi", OCT_FILM_U8},   {"rgb.AVI", OCT_FILM_RGB}, {"a.tif", OCT_FILM_U8},
        {"b.tiff", OCT_FILM_U16}, {"a.npy", OCT_FILM_U8},    {"b.npy", OCT_FILM_U16},
        {"c.npy", OCT_FILM_F32},
    };
    for (unsigned i = 0; i < sizeof(films) / sizeof(films[0]); i++) {
        enum oct_film_format format;
        assert_true(oct_film_format_of(films[i].name, &format));
        const struct oct_film_setup setup = setup_of(format, films[i].pixel);
        write_film(films[i].name, &setup, T);
        check_film(films[i].name, films[i].pixel, T);
    }
    enum oct_film_format format;
    assert_false(oct_film_format_of("a.mp4", &format));
    assert_false(oct_film_format_of(".avi", &format));
}

/* Where each byte of an AVI of one picture lies, by the format's description. */
TEST(an_avi_says_what_it_is)
{
    static unsigned char bytes[1248 + 8 + 48 * H + 8 + 16 + 1];
    const struct oct_film_setup setup = setup_of(OCT_FILM_AVI, OCT_FILM_U8);
    write_film("one.avi", &setup, 1);
    FILE *file = fopen("one.avi", "rb");
    assert_int_equal(fread(bytes, 1, sizeof(bytes), file), sizeof(bytes) - 1);
    fclose(file);
    const uint32_t whole = sizeof(bytes) - 1 - 8, n = 48 * H;
    static const unsigned char first[] = {'0', '0', 'd', 'b'};
    const uint32_t sizes[][2] = {{4, whole},
                                 {16, 1216},
                                 {1240, 4 + 8 + n},
                                 {1252, n},
                                 {1256 + n + 4, 16},
                                 {1256 + n + 16, 4},
                                 {1256 + n + 20, n},
                                 {32, 40000},
                                 {48, 1},
                                 {64, W},
                                 {68, H}};
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const unsigned char *at = bytes + sizes[i][0];
        const uint32_t value =
            at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        if (value != sizes[i][1])
            fail_msg("at %u: %u, not %u", sizes[i][0], value, sizes[i][1]);
    }
    assert_memory_equal(bytes + 1248, first, 4);
    assert_memory_equal(bytes + 1256 + n, "idx1", 4);
    assert_int_equal(bytes[1256 + 48 * (H - 1)], (int)wanted(OCT_FILM_U8, 0, 0)); /* bottom-up */
    assert_int_equal(bytes[1256 + 47], 0);
}

TEST(rates_are_kept)
{
    static const double rates[] = {25,  30000.0 / 1001, 29.97, 1.0 / 300,
                                   0.1, 977.5,          1e-6,  123456.75};
    for (unsigned i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        struct oct_film_setup setup = setup_of(OCT_FILM_AVI, OCT_FILM_U8);
        setup.fps = rates[i];
        write_film("rate.avi", &setup, 1);
        struct oct_pictures *pictures = film_open("rate.avi", NULL);
        if (fabs(oct_pictures_fps(pictures) / rates[i] - 1) > 1e-12)
            fail_msg("%.17g became %.17g", rates[i], oct_pictures_fps(pictures));
        oct_pictures_close(pictures);
    }
}

static void must_refuse(struct oct_film_setup setup, enum oct_err code, const char *says)
{
    struct oct_film_file *film;
    struct oct_error err = {.text = ""};
    assert_int_equal(oct_film_file_create(&film, "no.film", &setup, &err), code);
    assert_null(film);
    if (!strstr(err.text, says) || !strstr(err.text, "no.film"))
        fail_msg("\"%s\" does not say \"%s\"", err.text, says);
    assert_int_not_equal(access("no.film", F_OK), 0);
}

TEST(what_does_not_fit_is_refused)
{
    struct oct_film_setup setup = setup_of(OCT_FILM_AVI, OCT_FILM_U16);
    must_refuse(setup, OCT_E_ARG, "AVI takes 8 bits");
    must_refuse(setup_of(OCT_FILM_TIFF, OCT_FILM_RGB), OCT_E_ARG, "a TIFF stack takes");
    must_refuse(setup_of(OCT_FILM_NPY, OCT_FILM_RGB), OCT_E_ARG, ".npy takes");
    setup = setup_of(OCT_FILM_AVI, OCT_FILM_U8);
    setup.fps = 0;
    must_refuse(setup, OCT_E_ARG, "0 pictures a second");
    setup.fps = (double)NAN;
    must_refuse(setup, OCT_E_ARG, "pictures a second");
    setup.fps = 25;
    setup.n_pictures = 2147420000 / (48 * H + 24);
    must_refuse(setup, OCT_E_ARG, "more than 2 GiB; write a TIFF stack");
    setup.n_pictures = 0;
    setup.width = 16385;
    must_refuse(setup, OCT_E_ARG, "each side");
}

/* Pictures of 32 KiB and 24 bytes: 65 485 fit, and that is known before the first comes. */
TEST(an_avi_stops_before_2_gib)
{
    struct oct_film_setup setup = setup_of(OCT_FILM_AVI, OCT_FILM_U8);
    struct oct_film_file *film;
    struct oct_error err = {.text = ""};
    struct stat st;
    setup.height = 2;
    setup.width = 16384;
    setup.n_pictures = 65485;
    assert_int_equal(oct_film_file_create(&film, "large.avi", &setup, &err), OCT_OK);
    oct_film_file_discard(film);
    setup.n_pictures = 65486;
    assert_int_equal(oct_film_file_create(&film, "large.avi", &setup, &err), OCT_E_ARG);
    assert_int_not_equal(stat("large.avi", &st), 0);
}

static unsigned n_files(void)
{
    char command[200], text[16] = "";
    snprintf(command, sizeof(command), "ls -A '%s' | grep -c new", ".");
    FILE *pipe = popen(command, "r");
    assert_true(fgets(text, sizeof(text), pipe) != NULL);
    pclose(pipe);
    return (unsigned)atoi(text);
}

TEST(films_are_whole_or_not_there)
{
    static const char *const names[] = {"new.avi", "new.tif", "new.npy"};
    static union pixels pixels;
    struct oct_film_file *film;
    struct oct_error err = {.text = ""};
    for (unsigned i = 0; i < 3; i++) {
        struct oct_film_setup setup = setup_of((enum oct_film_format)i, OCT_FILM_U8);
        setup.force = false;
        assert_int_equal(oct_film_file_create(&film, names[i], &setup, &err), OCT_OK);
        assert_int_equal(oct_film_file_add(film, &pixels, &err), OCT_OK);
        assert_int_not_equal(access(names[i], F_OK), 0);
        oct_film_file_discard(film);
        assert_int_equal(n_files(), i);
        assert_int_equal(oct_film_file_create(&film, names[i], &setup, &err), OCT_OK);
        assert_int_equal(oct_film_file_publish(film, &err), OCT_E_ARG); /* without pictures */
        assert_int_equal(n_files(), i);
        write_film(names[i], &setup, 2);
        assert_int_equal(n_files(), i + 1);
        assert_int_equal(oct_film_file_create(&film, names[i], &setup, &err), OCT_E_IO);
        assert_true(strstr(err.text, "exists already") && !film);
    }
}

TEST(a_film_that_is_lost_on_the_way_is_said)
{
    static union pixels pixels;
    for (unsigned i = 0; i < 3; i++) {
        const struct oct_film_setup setup = setup_of((enum oct_film_format)i, OCT_FILM_U8);
        struct oct_film_file *film;
        struct oct_error err = {.text = ""};
        char work[300];
        snprintf(work, sizeof(work), "%s.new.%ld", "full", (long)getpid());
        assert_int_equal(oct_film_file_create(&film, "full", &setup, &err), OCT_OK);
        enum oct_err e = OCT_OK;
        for (unsigned t = 0; e == OCT_OK && t < 10; t++) {
            e = oct_film_file_add(film, &pixels, &err);
            if (t == 2) /* the file goes away under the writer */
                assert_int_equal(unlink(work), 0);
        }
        assert_int_equal(e, OCT_OK);
        must_fail(oct_film_file_publish(film, &failure), OCT_E_IO, "full: cannot be");
        assert_int_not_equal(access("full", F_OK), 0);
    }
}

/* ---- TIFF stacks that end early ---- */

static void check_cut(const unsigned char *bytes, size_t n, size_t n_whole_at[T + 1])
{
    static const struct oct_pictures_options keep = {.keeps_whole = true};
    struct oct_pictures *pictures;
    struct oct_error err;
    const char *path = "cut.tif";
    FILE *file = fopen(path, "wb");
    assert_true(fwrite(bytes, 1, n, file) == n && fclose(file) == 0);
    const enum oct_err e = oct_pictures_open(&pictures, &path, 1, &keep, &err);
    const uint64_t found = e ? 0 : oct_pictures_count(pictures);
    assert_true(e == OCT_OK || strstr(err.text, "truncated"));
    if (!e) {
        assert_true((oct_pictures_warning(pictures) == NULL) == (found == T));
        oct_pictures_close(pictures);
        check_film(path, OCT_FILM_U16, (unsigned)found);
        if (found < T)
            film_refused(path, NULL, OCT_E_FORMAT, "truncated; pictures that are whole");
    }
    assert_true(found <= T);
    n_whole_at[found] = n;
}

TEST(truncated_stacks_keep_what_was_whole)
{
    static unsigned char bytes[1 << 16];
    const struct oct_film_setup setup = setup_of(OCT_FILM_TIFF, OCT_FILM_U16);
    size_t n_whole_at[T + 1] = {0};
    write_film("stack.tif", &setup, T);
    FILE *file = fopen("stack.tif", "rb");
    const size_t n = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    assert_true(n > T * N * 2 && n < sizeof(bytes));
    for (size_t cut = n - 1; cut > 0; cut -= cut < 97 ? cut : 97)
        check_cut(bytes, cut, n_whole_at);
    for (unsigned i = 0; i < T; i++) /* every number of whole pictures has come */
        assert_true(n_whole_at[i] > 0 && n_whole_at[i] < n);
    assert_true(n_whole_at[T - 1] > n_whole_at[1]);
}

/* A stack whose directories lie before the pixels, as some programs write it. Returns where the
 * pixels begin. */
static size_t make_stack(struct film_bytes *file, unsigned n)
{
    const uint32_t ifd_bytes = 2 + 9 * 12 + 4, pixels = 8 + n * ifd_bytes;
    const uint32_t tags[9][2] = {{256, W}, {257, H}, {258, 16}, {259, 1},    {262, 1},
                                 {273, 0}, {277, 1}, {278, H},  {279, 2 * N}};
    file->n = 0;
    film_put(file, "II*\0\10\0\0\0", 8);
    for (uint32_t t = 0; t < n; t++) {
        film_put_u16(file, 9);
        for (unsigned i = 0; i < 9; i++) {
            film_put_u16(file, tags[i][0]);
            film_put_u16(file, 4);
            film_put_u32(file, 1);
            film_put_u32(file, tags[i][0] == 273 ? pixels + t * 2 * N : tags[i][1]);
        }
        film_put_u32(file, t + 1 < n ? 8 + (t + 1) * ifd_bytes : 0);
    }
    for (unsigned t = 0; t < n; t++)
        for (unsigned i = 0; i < N; i++)
            film_put_u16(file, number(t, i));
    return pixels;
}

TEST(directories_before_pixels_promise_nothing)
{
    static struct film_bytes file;
    const struct oct_pictures_options keep = {.keeps_whole = true};
    const char *path = "before.tif";
    const size_t pixels = make_stack(&file, T);
    film_write(&file, path, file.n);
    check_film(path, OCT_FILM_U16, T);
    film_write(&file, path, file.n - 1);
    check_film(path, OCT_FILM_U16, T - 1);
    film_refused(path, NULL, OCT_E_FORMAT, "pictures that are whole: 6");
    film_write(&file, path, pixels + 3 * 2 * N + 5);
    check_film(path, OCT_FILM_U16, 3);
    film_write(&file, path, pixels + 2 * N - 1);
    film_refused(path, &keep, OCT_E_FORMAT, "truncated TIFF");
}
