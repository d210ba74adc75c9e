/* Pictures measured and copied on their way to a device: against sums in long double, with masks,
 * at any length, and with pixels that are not finite. */
#include "analysis/correlate/normal.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 12345.0f

struct scene {
    struct oct_picture picture;
    float *copy; /* [n + 1], the last is a guard */
    size_t n;
};

static void open_scene(struct scene *s, uint32_t height, uint32_t width, double mean, double spread,
                       bool masked)
{
    uint32_t random = height * 31 + width;
    s->n = (size_t)height * width;
    s->copy = malloc((s->n + 1) * sizeof(float));
    assert_non_null(s->copy);
    s->copy[s->n] = GUARD;
    must(oct_picture_init(&s->picture, height, width, masked, &failure));
    for (size_t i = 0; i < s->n; i++) {
        random = random * 1664525u + 1013904223u;
        s->picture.pixels[i] = (float)(mean + spread * ((random >> 8) / 16777216.0 - 0.5));
        if (masked && (random >> 4) % 5 == 0) {
            s->picture.valid[i] = 0;
            s->picture.pixels[i] = (random >> 12) % 2 ? NAN : 1e30f;
        }
    }
}

static void close_scene(struct scene *s)
{
    oct_picture_finish(&s->picture);
    free(s->copy);
}

static bool is_valid(const struct scene *s, size_t i)
{
    return !s->picture.valid || s->picture.valid[i];
}

static void check_numbers(const struct scene *s, const struct oct_normal *normal, bool keep_mean)
{
    long double sum = 0, squares = 0, root_mean_square = 0, n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (is_valid(s, i)) {
            sum += (long double)s->picture.pixels[i];
            n++;
        }
    for (size_t i = 0; i < s->n; i++)
        if (is_valid(s, i)) {
            const long double d = (long double)s->picture.pixels[i] - sum / n;
            squares += d * d;
        }
    root_mean_square = squares / n + (keep_mean ? sum / n * (sum / n) : 0);
    const double offset = keep_mean ? 0 : (double)(sum / n),
                 scale = (double)(1 / sqrtl(root_mean_square));
    assert_true(normal->finite && normal->usable);
    assert_int_equal(normal->n_valid, (uint64_t)n);
    assert_true(fabs(normal->offset - offset) <= 1e-14 * fabs(offset) + 1e-15 / scale);
    if (!(fabs(normal->scale / scale - 1) < 1e-13))
        fail_msg("scale %.17g, not %.17g", normal->scale, scale);
}

static void check_copy(const struct scene *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (is_valid(s, i) ? memcmp(&s->copy[i], &s->picture.pixels[i], sizeof(float)) != 0
                           : !isnan(s->copy[i]))
            fail_msg("pixel %zu is %.9g", i, (double)s->copy[i]);
    assert_true(s->copy[s->n] == GUARD);
}

TEST(numbers_and_copies_are_right_at_any_size_and_level)
{
    static const uint32_t sides[][2] = {{16, 16}, {17, 19}, {1, 21}, {3, 37}, {64, 100}, {5, 13}};
    static const double levels[][2] = {{0, 1}, {-40, 60}, {60000, 100}, {8e6, 40}, {0, 1e-20}};
    for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++)
        for (size_t k = 0; k < sizeof(levels) / sizeof(levels[0]); k++)
            for (unsigned how = 0; how < 4; how++) {
                struct scene s;
                struct oct_normal normal;
                open_scene(&s, sides[i][0], sides[i][1], levels[k][0], levels[k][1], how & 1);
                oct_normal_take(&normal, &s.picture, how & 2, s.copy);
                check_numbers(&s, &normal, how & 2);
                check_copy(&s);
                close_scene(&s);
            }
}

TEST(what_is_masked_is_left_out_wherever_it_is)
{
    struct scene s;
    struct oct_normal normal;
    for (size_t hole = 0; hole < 37; hole++) { /* steps of vectors, and what is left over */
        open_scene(&s, 1, 37, 10, 4, false);
        s.picture.valid = malloc(s.n);
        assert_non_null(s.picture.valid);
        memset(s.picture.valid, 1, s.n);
        s.picture.valid[hole] = 0;
        s.picture.pixels[hole] = INFINITY;
        oct_normal_take(&normal, &s.picture, false, s.copy);
        check_numbers(&s, &normal, false);
        check_copy(&s);
        close_scene(&s);
    }
}

TEST(pixels_that_are_not_finite_are_found)
{
    static const float wrong[] = {NAN, INFINITY, -INFINITY};
    struct scene s;
    struct oct_normal normal;
    for (size_t i = 0; i < 3; i++)
        for (size_t at = 0; at < 37; at += 4)
            for (unsigned how = 0; how < 4; how++) {
                open_scene(&s, 1, 37, 10, 4, how & 1);
                s.picture.pixels[at] = wrong[i];
                if (how & 1)
                    s.picture.valid[at] = 1;
                oct_normal_take(&normal, &s.picture, how & 2, s.copy);
                assert_false(normal.finite || normal.usable);
                close_scene(&s);
            }
}

TEST(pictures_without_contrast_are_not_usable)
{
    struct scene s;
    struct oct_normal normal;
    open_scene(&s, 40, 40, 0.1, 0, false); /* 0.1 as a float is no short number */
    oct_normal_take(&normal, &s.picture, false, s.copy);
    assert_true(normal.finite && !normal.usable);
    s.picture.pixels[1599] = nextafterf(s.picture.pixels[0], 1);
    oct_normal_take(&normal, &s.picture, false, s.copy);
    assert_true(normal.usable);
    close_scene(&s);

    open_scene(&s, 40, 40, 3, 1, true);
    memset(s.picture.valid, 0, s.n);
    oct_normal_take(&normal, &s.picture, false, s.copy);
    assert_true(normal.n_valid == 0 && !normal.usable);
    for (size_t i = 0; i < 160; i++) { /* a tenth is enough */
        s.picture.valid[10 * i] = 1;
        s.picture.pixels[10 * i] = (float)i;
        oct_normal_take(&normal, &s.picture, false, s.copy);
        assert_true(normal.n_valid == i + 1 && normal.usable == (i == 159));
    }
    close_scene(&s);
}
