/* What a plain sample file looks like: real spectra of every kind pass, floats, swapped bytes and
 * samples beyond camera.bits do not. */
#include "formats/plain_check.h"
#include "test/rig/engine_scene.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 512, LINES = 64, TOTAL = N * LINES };

/* A spectrum as a camera sees it; what the table varies. */
struct camera {
    const char *name;
    double base, light;   /* counts of the dark level and of the source */
    double fringe, noise; /* share of the light; counts */
    unsigned bits;        /* saturates there */
    unsigned shift;       /* left-aligned by so much */
    double odd;           /* counts that odd pixels have more (two taps) */
};

static double counts_of(const struct camera *c, size_t i, uint64_t *random)
{
    double t = (double)(i % N) / N - 0.5, line = (double)(i / N);
    double light = c->light * exp(-12 * t * t);
    return c->base + light * (1 + c->fringe * cos(300 * t + line)) +
           c->noise * oct_random_normal(random) + (i % 2 ? c->odd : 0);
}

static void expose(const struct camera *c, uint16_t *samples)
{
    uint64_t random = 7;
    double most = (double)((1u << c->bits) - 1);
    for (size_t i = 0; i < TOTAL; i++) {
        double counts = fmin(fmax(round(counts_of(c, i, &random)), 0), most);
        samples[i] = (uint16_t)((uint16_t)counts << c->shift);
    }
}

static const struct camera cameras[] = {
    {"12 bit, quiet", 100, 2500, 0.3, 3, 12, 0, 0},
    {"12 bit, without noise or fringes", 100, 2500, 0, 0, 12, 0, 0},
    {"12 bit, saturated over half the line", 300, 20000, 0.3, 30, 12, 0, 0},
    {"12 bit, left-aligned", 100, 2500, 0.3, 3, 12, 4, 0},
    {"16 bit", 800, 50000, 0.2, 90, 16, 0, 0},
    {"16 bit, saturated", 800, 150000, 0.2, 90, 16, 0, 0},
    {"16 bit on the level of small floats", 16256, 1500, 0.2, 20, 16, 0, 0},
    {"16 bit on the level of larger floats", 17300, 900, 0.1, 9, 16, 0, 0},
    {"16 bit on the level of whole floats", 19210, 90, 0.2, 3, 16, 0, 0},
    {"two taps apart", 500, 9000, 0.2, 20, 16, 0, 700},
    {"two taps far apart", 500, 9000, 0.2, 20, 16, 0, 16384},
    {"8 bit, left-aligned", 5, 200, 0.3, 1, 8, 8, 0},
    {"8 bit", 5, 200, 0.3, 1, 8, 0, 0},
    {"dark", 2, 0, 0, 1.5, 12, 0, 0},
    {"dark on a pedestal of 256", 256, 0, 0, 1.5, 12, 0, 0},
    {"dark and noiseless", 0, 0, 0, 0, 12, 0, 0},
    {"constant", 18304, 0, 0, 0, 16, 0, 0},
    {"noise over the full range", 32768, 0, 0, 30000, 16, 0, 0},
};

static uint16_t samples[TOTAL];

static enum oct_plain_look judge(const void *bytes, size_t n, unsigned bits)
{
    size_t at;
    return oct_plain_judge(bytes, n, bits, &at);
}

TEST(spectra_of_every_kind_pass)
{
    for (size_t i = 0; i < sizeof(cameras) / sizeof(cameras[0]); i++) {
        const struct camera *c = &cameras[i];
        expose(c, samples);
        for (size_t n = 1; n <= TOTAL; n = n < TOTAL && 4 * n > TOTAL ? TOTAL : 4 * n) {
            enum oct_plain_look look = judge(samples, n, c->bits + c->shift);
            if (look != OCT_PLAIN_SAMPLES)
                fail_msg("%s, %zu samples: taken for %d", c->name, n, look);
        }
    }
}

TEST(patterns_of_tests_pass)
{
    for (int pattern = 0; pattern < 5; pattern++) {
        uint64_t random = 3;
        for (size_t i = 0; i < TOTAL; i++)
            samples[i] = pattern == 0   ? (uint16_t)i
                         : pattern == 1 ? (uint16_t)(i % 2 ? 65535 : 0)
                         : pattern == 2 ? (uint16_t)(i == 777 ? 65535 : 0)
                         : pattern == 3 ? (uint16_t)(oct_random_uniform(&random) * 65536)
                                        : (uint16_t)(i / N);
        if (judge(samples, TOTAL, 16) != OCT_PLAIN_SAMPLES)
            fail_msg("pattern %d: taken for %d", pattern, judge(samples, TOTAL, 16));
    }
}

/* As they lie in files: the words or the bytes of each number exchanged, both of them (big-endian),
 * and after a header that nobody named. */
static void lay(unsigned char *to, const void *numbers, size_t n_bytes, size_t size, int turn,
                size_t header)
{
    const unsigned char *from = numbers;
    memset(to, 0x5a, header);
    for (size_t i = 0; i < n_bytes; i++) {
        size_t within = i % size;
        if (turn & 1) /* words */
            within = size - 2 - within / 2 * 2 + within % 2;
        if (turn & 2)
            within ^= 1;
        to[header + i] = from[i / size * size + within];
    }
}

static void assert_lays_are_told(const void *numbers, size_t size, enum oct_plain_look wanted,
                                 const char *name, int way)
{
    static uint16_t laid[4 * TOTAL + 8];
    for (int turn = 0; turn < 4; turn++)
        for (size_t header = 0; header < size; header += size / 4) {
            lay((unsigned char *)laid, numbers, size * TOTAL, size, turn, header);
            enum oct_plain_look look = judge(laid, size / 2 * TOTAL, 16);
            /* 0x4394 and an empty word are 296.0 as well as 17300: refused by either name. */
            bool by_float = wanted == OCT_PLAIN_INTEGERS && strstr(name, "floats");
            if (look != wanted && !(by_float && look == OCT_PLAIN_FLOAT32))
                fail_msg("%s of %zu bytes, way %d, turn %d, header %zu: taken for %d", name, size,
                         way, turn, header, look);
        }
}

/* The same spectra as floats: counts, whole counts, shares of full scale, or less their mean. */
TEST(floats_are_told)
{
    static float f32[TOTAL];
    static double f64[TOTAL];
    for (size_t k = 0; k < 6; k++) { /* 12 and 16 bit */
        for (int way = 0; way < 4; way++) {
            uint64_t random = 5;
            for (size_t i = 0; i < TOTAL; i++) {
                double v = fmin(counts_of(&cameras[k], i, &random), 65535);
                f64[i] = way == 0   ? v
                         : way == 1 ? round(v)
                         : way == 2 ? v / 65535
                                    : v - 1000 + 0.25 * oct_random_normal(&random);
                f32[i] = (float)f64[i];
            }
            assert_lays_are_told(f32, sizeof(*f32), OCT_PLAIN_FLOAT32, cameras[k].name, way);
            assert_lays_are_told(f64, sizeof(*f64), OCT_PLAIN_FLOAT64, cameras[k].name, way);
        }
    }
}

/* Counts in more bits than they need: every second word is empty. */
TEST(wide_integers_are_told)
{
    static int32_t i32[TOTAL];
    static int64_t i64[TOTAL];
    for (size_t k = 0; k < 13; k++) { /* all that are lit */
        const struct camera *c = &cameras[k];
        expose(c, samples);
        for (int way = 0; way < 2; way++) {
            const int less = way ? samples[N / 4] : 0;
            for (size_t i = 0; i < TOTAL; i++)
                i64[i] = i32[i] = samples[i] - less;
            assert_lays_are_told(i32, sizeof(*i32), OCT_PLAIN_INTEGERS, c->name, way);
            if (way == 0)
                assert_lays_are_told(i64, sizeof(*i64), OCT_PLAIN_INTEGERS, c->name, way);
        }
    }
}

TEST(swapped_bytes_are_told)
{
    for (size_t k = 0; k < 10; k++) {
        if (cameras[k].shift || k == 8) /* k 8: its light stays within one byte */
            continue;
        expose(&cameras[k], samples);
        for (size_t i = 0; i < TOTAL; i++)
            samples[i] = (uint16_t)(samples[i] >> 8 | samples[i] << 8);
        enum oct_plain_look look = judge(samples, TOTAL, 16);
        if (look != OCT_PLAIN_SWAPPED)
            fail_msg("%s, swapped: taken for %d", cameras[k].name, look);
    }
}

/* The file as octctl reads it: a few windows of it, however large it is. */
TEST(a_file_is_judged_by_its_windows)
{
    char path[] = "/tmp/octd-test-plain-XXXXXX";
    struct oct_error err = {.text = ""};
    const uint64_t first = 10, bytes = 3000001ull * 8;
    int fd = mkstemp(path);
    assert_true(fd >= 0 && unlink(path) == 0);
    assert_int_equal(ftruncate(fd, (off_t)(first + bytes)), 0);
    assert_int_equal(oct_plain_check(fd, path, first, bytes, 12, &err), OCT_OK);
    const uint16_t large = 4096;
    const off_t end = (off_t)(first + bytes) - 40; /* in the last window */
    assert_int_equal(pwrite(fd, &large, 2, end), 2);
    assert_int_equal(oct_plain_check(fd, path, first, bytes, 13, &err), OCT_OK);
    assert_int_equal(oct_plain_check(fd, path, first, bytes, 12, &err), OCT_E_FORMAT);
    char place[64];
    snprintf(place, sizeof(place), "the sample at byte %lld is 4096", (long long)end);
    assert_non_null(strstr(err.text, place));
    assert_non_null(strstr(err.text, "camera.bits = 12 ends at 4095"));
    assert_non_null(strstr(err.text, "file.check_samples=no"));
    expose(&cameras[0], samples);
    assert_int_equal(pwrite(fd, samples, sizeof(samples), 2), sizeof(samples));
    assert_int_equal(oct_plain_check(fd, path, 2, 7, 12, &err), OCT_OK);
    assert_int_equal(oct_plain_check(fd, path, 2, 5000, 12, &err), OCT_OK);
    assert_int_equal(oct_plain_check(fd, path, 3, 5000, 16, &err), OCT_E_FORMAT); /* one byte off */
    close(fd);
}
