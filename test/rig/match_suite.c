#include "test/rig/match_suite.h"
#include "analysis/align/prepare.h"
#include "test/rig/correlate_oracle.h"
#include "test/rig/tap.h"
#include "test/rig/waves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HEIGHT 40u
#define WIDTH 70u
#define MARGIN 8u
#define N OCT_MATCH_SCENE_PICTURES
#define BOUND 1e-5

struct suite {
    const struct oct_matcher_ops *ops;
    unsigned deadline_ms;
};

/* ---- scenes ---- */

static void cut(struct oct_picture *to, const struct oct_picture *from, uint32_t y0, uint32_t x0,
                uint32_t noise)
{
    for (uint32_t y = 0; y < to->height; y++)
        for (uint32_t x = 0; x < to->width; x++)
            to->pixels[(size_t)y * to->width + x] =
                from->pixels[(size_t)(y + y0) * from->width + x + x0] +
                (noise ? (float)(oct_oracle_random(&noise) % 40) : 0);
}

void oct_match_scene_make(struct oct_match_scene *scene, uint32_t height, uint32_t width,
                          bool masked)
{
    static const uint32_t at[N][2] = {{3, 12}, {8, 8}, {13, 2}};
    struct oct_picture all;
    oct_oracle_picture(&all, height + 2 * MARGIN, width + 2 * MARGIN, OCT_ORACLE_U8, 17);
    must(oct_picture_init(&scene->g, height, width, false, &failure));
    cut(&scene->g, &all, MARGIN, MARGIN, 0);
    for (uint32_t i = 0; i < N; i++) { /* f(p) = all(p + at) = g(p + at - MARGIN) */
        must(oct_picture_init(&scene->f[i], height, width, false, &failure));
        cut(&scene->f[i], &all, at[i][0], at[i][1], 5 + i);
        scene->dy[i] = (int32_t)at[i][0] - (int32_t)MARGIN;
        scene->dx[i] = (int32_t)at[i][1] - (int32_t)MARGIN;
        if (masked && i != 1)
            oct_oracle_mask(&scene->f[i], 40 + i);
    }
    if (masked)
        oct_oracle_mask(&scene->g, 50);
    oct_picture_finish(&all);
}

void oct_match_scene_finish(struct oct_match_scene *scene)
{
    oct_picture_finish(&scene->g);
    for (unsigned i = 0; i < N; i++)
        oct_picture_finish(&scene->f[i]);
}

static struct oct_matcher_setup setup_of(const struct suite *suite, uint32_t height, uint32_t width,
                                         bool masked)
{
    return (struct oct_matcher_setup){.height = height,
                                      .width = width,
                                      .max_dy = 12,
                                      .max_dx = 15,
                                      .min_overlap = 0.3,
                                      .max_rows = 20,
                                      .max_radius = 20,
                                      .min_window_overlap = 0.5,
                                      .masked = masked,
                                      .n_batch = N,
                                      .deadline_ms = suite->deadline_ms};
}

static struct oct_matcher *open(const struct suite *suite, const struct oct_match_scene *scene,
                                bool masked)
{
    const struct oct_matcher_setup setup = setup_of(suite, scene->g.height, scene->g.width, masked);
    struct oct_matcher *m;
    must(suite->ops->create(&m, &setup, &failure) ||
         suite->ops->set_reference(m, &scene->g, &failure) ||
         suite->ops->load(m, scene->f, N, &failure));
    return m;
}

/* ---- the oracle ---- */

/* A picture of which only the window's rows are valid. */
static void mask_window(struct oct_picture *to, const struct oct_picture *from, uint32_t y0,
                        uint32_t n_rows)
{
    const size_t n = (size_t)from->height * from->width;
    must(oct_picture_init(to, from->height, from->width, true, &failure));
    memcpy(to->pixels, from->pixels, n * sizeof(float));
    if (from->valid)
        memcpy(to->valid, from->valid, n);
    memset(to->valid, 0, (size_t)y0 * from->width);
    const size_t end = (size_t)(y0 + n_rows) * from->width;
    memset(to->valid + end, 0, n - end);
}

static double zncc(const struct oct_picture *f, const struct oct_picture *g, double least, int dy,
                   int dx)
{
    const struct oct_oracle_sums s = oct_oracle_sums(f, g, dy, dx);
    if (s.n < least || s.n < 1)
        return NAN;
    return (s.fg - s.f * s.g / s.n) / sqrt((s.ff - s.f * s.f / s.n) * (s.gg - s.g * s.g / s.n));
}

static void check_score(float score, double wanted, const char *what, int dy, int dx)
{
    if (isnan(score) != isnan(wanted) || fabs((double)score - wanted) > BOUND)
        fail_msg("%s at (%d, %d): %.9g, not %.9g", what, dy, dx, (double)score, wanted);
}

/* The match is the largest of all, and its neighbours are those of the oracle. */
static void check_window(const struct oct_match_scene *scene, const struct oct_match_window *w,
                         const struct oct_match *match, double part)
{
    struct oct_picture f;
    double most = -2;
    int n_known = 0;
    const int r = (int)w->radius;
    mask_window(&f, &scene->f[w->picture], w->y0, w->n_rows);
    const double n_f = oct_oracle_sums(&f, &f, 0, 0).n;
    const double n_g = oct_oracle_sums(&scene->g, &scene->g, 0, 0).n;
    const double least = part * fmin(n_f, n_g);
    for (int dy = w->dy - r; dy <= w->dy + r; dy++)
        for (int dx = w->dx - r; dx <= w->dx + r; dx++) {
            const double c = zncc(&f, &scene->g, least, dy, dx);
            most = !isnan(c) && c > most ? c : most;
            if (abs(dy - match->dy) <= 1 && abs(dx - match->dx) <= 1) {
                n_known += !isnan(c);
                check_score(match->around[dy - match->dy + 1][dx - match->dx + 1], c, "around", dy,
                            dx);
            }
        }
    check_score(match->score, most, "the largest", match->dy, match->dx);
    assert_true(match->around[1][1] == match->score);
    assert_true(isnan(match->significance));
    assert_true(oct_match_is_inside(match, w->radius, w->radius) == (n_known == 9 || r == 0));
    for (int k = 0; k < 9; k++) { /* beyond the search nothing is known */
        const int dy = match->dy + k / 3 - 1, dx = match->dx + k % 3 - 1;
        if (abs(dy - w->dy) > r || abs(dx - w->dx) > r)
            assert_true(isnan(match->around[k / 3][k % 3]));
    }
    oct_picture_finish(&f);
}

/* ---- tests ---- */

static void whole_pictures(void **state)
{
    const struct suite *suite = *state;
    for (int masked = 0; masked < 2; masked++) {
        struct oct_match_scene scene;
        struct oct_match matches[N];
        oct_match_scene_make(&scene, HEIGHT, WIDTH, masked);
        struct oct_matcher *m = open(suite, &scene, masked);
        must(suite->ops->find(m, matches, &failure));
        for (unsigned i = 0; i < N; i++) {
            assert_int_equal(matches[i].dy, scene.dy[i]);
            assert_int_equal(matches[i].dx, scene.dx[i]);
            check_score(matches[i].score,
                        zncc(&scene.f[i], &scene.g, 1, matches[i].dy, matches[i].dx), "whole",
                        matches[i].dy, matches[i].dx);
            assert_true(oct_match_is_inside(&matches[i], 1, 1) && matches[i].significance > 5);
        }
        suite->ops->destroy(m);
        oct_match_scene_finish(&scene);
    }
}

static void windows_of_rows(void **state)
{
    const struct suite *suite = *state;
    static const struct oct_match_window windows[] = {
        {0, 10, 18, -4, 3, 5},  /* more rows than a chunk */
        {0, 0, 16, 0, 0, 6},    /* the upper border */
        {1, 22, 18, 2, -1, 4},  /* the lower border */
        {2, 12, 8, 5, -6, 0},   /* one shift */
        {2, 8, 20, 3, -9, 20},  /* more than a tile of shifts, beyond the borders */
        {1, 4, 12, 8, 8, 3},    /* the match is outside: on the border */
        {2, 30, 10, 12, 15, 5}, /* mostly outside the reference */
        {0, 30, 5, -60, 0, 3},  /* outside: nowhere */
    };
    enum { N_WINDOWS = sizeof(windows) / sizeof(windows[0]) };
    for (int masked = 0; masked < 2; masked++) {
        struct oct_match_scene scene;
        struct oct_match matches[N_WINDOWS];
        oct_match_scene_make(&scene, HEIGHT, WIDTH, masked);
        struct oct_matcher *m = open(suite, &scene, masked);
        must(suite->ops->look(m, windows, N_WINDOWS, matches, &failure));
        for (unsigned i = 0; i + 1 < N_WINDOWS; i++)
            if (!isnan(matches[i].score))
                check_window(&scene, &windows[i], &matches[i], 0.5);
        for (unsigned i = 0; i < 5; i++) {
            if (masked && i == 1) /* too little of it meets the reference there */
                continue;
            const unsigned p = windows[i].picture;
            assert_int_equal(matches[i].dy, scene.dy[p]);
            assert_int_equal(matches[i].dx, scene.dx[p]);
        }
        assert_true(oct_match_is_inside(&matches[4], 20, 20));
        assert_true(isnan(matches[N_WINDOWS - 1].score) && matches[N_WINDOWS - 1].dy == 0);
        suite->ops->destroy(m);
        oct_match_scene_finish(&scene);
    }
}

static void pictures_without_contrast(void **state)
{
    const struct suite *suite = *state;
    struct oct_match_scene scene;
    struct oct_match matches[N];
    struct oct_error err;
    const struct oct_match_window windows[] = {{1, 4, 12, 0, 0, 3}, {0, 10, 18, -4, 3, 5}};
    oct_match_scene_make(&scene, HEIGHT, WIDTH, true);
    for (unsigned i = 0; i < HEIGHT * WIDTH; i++)
        scene.f[1].pixels[i] = 60000;
    memset(scene.f[2].valid, 0, HEIGHT * WIDTH - 9);
    struct oct_matcher *m = open(suite, &scene, true);
    assert_int_equal(suite->ops->find(m, matches, &err), OCT_OK);
    assert_int_equal(matches[0].dy, scene.dy[0]);
    assert_true(isnan(matches[1].score) && matches[1].dy == 0 && matches[1].dx == 0);
    assert_true(isnan(matches[2].score));
    assert_int_equal(suite->ops->look(m, windows, 2, matches, &err), OCT_OK);
    assert_true(isnan(matches[0].score) && matches[0].dx == 0);
    assert_int_equal(matches[1].dx, scene.dx[0]);
    const struct oct_match_window outside[] = {
        {3, 0, 8, 0, 0, 1}, {0, 33, 8, 0, 0, 1}, {0, 0, 8, 0, 0, 21}};
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(suite->ops->look(m, &outside[i], 1, matches, &err), OCT_E_ARG);
    suite->ops->destroy(m);
    oct_match_scene_finish(&scene);
}

/* ---- what is a match ---- */

enum { SIDE = 128, SHIFT_Y = 7, SHIFT_X = -9 };

/* Light from the middle to a fifth at the sides, which stays where it is. */
static void light(struct oct_picture *p)
{
    for (uint32_t i = 0; i < SIDE * SIDE; i++) {
        const double y = (i / SIDE - 63.5) / 64, x = (i % SIDE - 63.5) / 64;
        p->pixels[i] = (float)(pow(0.21, (x * x + y * y) / 2) * (4 + (double)p->pixels[i]));
    }
}

static struct oct_picture waves_of(uint64_t seed, bool is_moved, double noise, bool is_lit)
{
    struct oct_waves waves;
    uint64_t random = 100 * seed + is_moved;
    oct_waves_init(&waves, seed, 6, 60);
    struct oct_picture p = oct_waves_picture(&waves, SIDE, SIDE, is_moved ? SHIFT_Y : 0,
                                             is_moved ? SHIFT_X : 0, 0, &random);
    if (is_lit)
        light(&p);
    oct_waves_add_noise(&p, noise, &random);
    must(oct_align_prepare(&p, &failure));
    return p;
}

/* Neither noise that leaves a score of a tenth, nor light that is fixed to the sensor. */
static void matches_are_told_from_chance(void **state)
{
    static const struct {
        double noise;
        bool is_lit;
    } rows[] = {{2, false}, {2, true}, {0.1, true}, {0, false}};
    const struct suite *suite = *state;
    const struct oct_matcher_setup setup = setup_of(suite, SIDE, SIDE, false);
    struct oct_matcher *m;
    must(suite->ops->create(&m, &setup, &failure));
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct oct_match matches[2];
        struct oct_picture g = waves_of(3, false, rows[i].noise, rows[i].is_lit);
        struct oct_picture f[2] = {waves_of(3, true, rows[i].noise, rows[i].is_lit),
                                   waves_of(4, false, rows[i].noise, rows[i].is_lit)};
        must(suite->ops->set_reference(m, &g, &failure));
        must(suite->ops->load(m, f, 2, &failure));
        must(suite->ops->find(m, matches, &failure));
        for (unsigned k = 0; k < 2; k++) {
            const double score = (double)matches[k].score, sig = (double)matches[k].significance;
            if (oct_match_stands_out(score, sig, setup.max_dy, setup.max_dx) != (k == 0))
                fail_msg("noise %g%s, %s: score %.2f, significance %.1f", rows[i].noise,
                         rows[i].is_lit ? ", uneven light" : "", k ? "another place" : "moved",
                         score, sig);
            oct_picture_finish(&f[k]);
        }
        assert_true(abs(matches[0].dy - SHIFT_Y) <= 1 && abs(matches[0].dx - SHIFT_X) <= 1);
        assert_true(oct_match_is_inside(&matches[0], setup.max_dy, setup.max_dx));
        assert_true(!(rows[i].noise > 1) || matches[0].score < 0.25F);
        oct_picture_finish(&g);
    }
    suite->ops->destroy(m);
}

/* The true shift is beyond the search: its border is no match, though it scores. */
static void borders_are_no_match(void **state)
{
    const struct suite *suite = *state;
    struct oct_matcher_setup setup = setup_of(suite, SIDE, SIDE, false);
    struct oct_picture g = waves_of(3, false, 0, false), f = waves_of(3, true, 0, false);
    struct oct_match match;
    struct oct_matcher *m;
    setup.max_dx = -SHIFT_X - 1;
    must(suite->ops->create(&m, &setup, &failure));
    must(suite->ops->set_reference(m, &g, &failure));
    must(suite->ops->load(m, &f, 1, &failure));
    must(suite->ops->find(m, &match, &failure));
    assert_int_equal(match.dx, SHIFT_X + 1);
    assert_false(oct_match_is_inside(&match, setup.max_dy, setup.max_dx));
    suite->ops->destroy(m);
    oct_picture_finish(&f);
    oct_picture_finish(&g);
}

int oct_match_suite_run(const struct oct_matcher_ops *ops, unsigned deadline_ms)
{
    struct suite suite = {ops, deadline_ms};
    const struct CMUnitTest tests[] = {
        {"shifts of whole pictures", whole_pictures, NULL, NULL, &suite},
        {"shifts of windows", windows_of_rows, NULL, NULL, &suite},
        {"pictures without contrast match nowhere", pictures_without_contrast, NULL, NULL, &suite},
        {"matches are told from chance", matches_are_told_from_chance, NULL, NULL, &suite},
        {"borders of a search are no match", borders_are_no_match, NULL, NULL, &suite},
    };
    return cmocka_run_group_tests_name("registration", tests, NULL, NULL);
}
