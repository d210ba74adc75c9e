#include "test/rig/correlate_suite.h"
#include "test/rig/correlate_oracle.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 3u

struct suite {
    const struct oct_correlator_ops *ops;
    unsigned deadline_ms;
};

/* Several pictures, and one more that they are correlated with where `cross` is set. */
struct load {
    struct oct_correlator_setup setup;
    struct oct_picture f[BATCH], g;
    bool cross;
    float *c2d; /* [BATCH][shifts] */
};

static size_t n_shifts(const struct oct_correlator_setup *s)
{
    return (2 * (size_t)s->max_dy + 1) * (2 * (size_t)s->max_dx + 1);
}

static void run(const struct suite *suite, struct load *l)
{
    struct oct_correlator *c;
    unsigned which;
    l->setup.n_batch = BATCH;
    l->setup.deadline_ms = suite->deadline_ms;
    l->c2d = calloc(BATCH * n_shifts(&l->setup), sizeof(float));
    assert_non_null(l->c2d);
    must(suite->ops->create(&c, &l->setup, &failure) ||
         (l->cross && suite->ops->set_reference(c, &l->g, &failure)) ||
         suite->ops->run(c, l->f, 1, l->c2d, &which, &failure) || /* less than a batch, then one */
         suite->ops->run(c, l->f, BATCH, l->c2d, &which, &failure));
    suite->ops->destroy(c);
}

static void finish(struct load *l)
{
    for (unsigned i = 0; i < BATCH; i++)
        oct_picture_finish(&l->f[i]);
    oct_picture_finish(&l->g);
    free(l->c2d);
}

/* Returns how far C is off, as a part of the bound. */
static double compare_at(const struct load *l, unsigned i, double most_n, int dy, int dx)
{
    const struct oct_correlator_setup *s = &l->setup;
    const struct oct_picture *f = &l->f[i], *g = l->cross ? &l->g : f;
    const size_t width = 2 * (size_t)s->max_dx + 1;
    const size_t at = (size_t)(dy + (int)s->max_dy) * width + (size_t)(dx + (int)s->max_dx);
    const double c = (double)l->c2d[i * n_shifts(s) + at];
    double n, n0 = fmin((double)f->height * f->width, (double)g->height * g->width);
    const double want = oct_oracle_correlation(f, g, s, most_n, dy, dx, &n);
    double bound = s->norm == OCT_CORRELATION_ZNCC ? 1e-5 : 1e-6;
    if (s->norm == OCT_CORRELATION_OVERLAP)
        bound *= n0 / n;
    if (isnan(want) != isnan(c) || (!isnan(want) && !(fabs(c - want) <= bound)))
        fail_msg("norm %d, picture %u at (%d, %d): %.9g, not %.9g (bound %.2g)", (int)s->norm, i,
                 dy, dx, c, want, bound);
    return isnan(want) ? 0 : fabs(c - want) / bound;
}

static void compare(const struct load *l)
{
    const int my = (int)l->setup.max_dy, mx = (int)l->setup.max_dx;
    for (unsigned i = 0; i < BATCH; i++) {
        const struct oct_picture *g = l->cross ? &l->g : &l->f[i];
        const double most_n =
            l->setup.norm == OCT_CORRELATION_ZNCC ? oct_oracle_most_n(&l->f[i], g, &l->setup) : 0;
        for (int dy = -my; dy <= my; dy++)
            for (int dx = -mx; dx <= mx; dx++)
                (void)compare_at(l, i, most_n, dy, dx);
    }
}

struct shape {
    uint32_t height, width, g_height, g_width, max_dy, max_dx;
};

static void make(struct load *l, struct shape s, enum oct_oracle_kind kind, unsigned masks)
{
    l->setup.height = s.height;
    l->setup.width = s.width;
    l->setup.g_height = s.g_height;
    l->setup.g_width = s.g_width;
    l->setup.max_dy = s.max_dy;
    l->setup.max_dx = s.max_dx;
    l->setup.masked = masks != 0;
    l->setup.min_overlap = 0.3;
    for (unsigned i = 0; i < BATCH; i++) {
        oct_oracle_picture(&l->f[i], s.height, s.width, kind, 1 + i);
        if ((masks & 1) && i != 1)
            oct_oracle_mask(&l->f[i], 3 + i);
    }
    if (l->cross)
        oct_oracle_picture(&l->g, s.g_height, s.g_width, kind, 2); /* as f[1], if of its size */
    if (masks & 2)
        oct_oracle_mask(&l->g, 9);
}

static void check(const struct suite *suite, struct shape shape, enum oct_oracle_kind kind,
                  bool cross, unsigned masks, enum oct_correlation_norm norm, bool keep_mean)
{
    struct load l = {.setup = {.norm = norm, .keep_mean = keep_mean}, .cross = cross};
    make(&l, shape, kind, masks);
    run(suite, &l);
    compare(&l);
    finish(&l);
}

static void pictures_with_themselves(void **state)
{
    const struct shape shape = {21, 18, 21, 18, 17, 17};
    for (unsigned kind = 0; kind < OCT_ORACLE_N_KINDS; kind++)
        for (unsigned norm = 0; norm < 3; norm++)
            for (unsigned masks = 0; masks < 2; masks++)
                check(*state, shape, kind, false, masks, norm, kind % 3 == 2);
}

static void pictures_with_a_reference(void **state)
{
    const struct shape shape = {20, 17, 20, 17, 8, 16};
    for (unsigned masks = 0; masks < 4; masks++)
        for (unsigned norm = 0; norm < 3; norm++)
            for (unsigned keep_mean = 0; keep_mean < 2; keep_mean++)
                check(*state, shape, masks % 2 ? OCT_ORACLE_U16_FLAT : OCT_ORACLE_DB, true, masks,
                      norm, keep_mean);
}

static void pictures_of_different_sizes(void **state)
{
    const struct shape shapes[] = {{19, 31, 16, 16, 18, 20},
                                   {16, 17, 33, 24, 10, 3},
                                   {5, 40, 29, 40, 12, 6},
                                   {24, 16, 8, 37, 7, 36}};
    for (unsigned i = 0; i < 4; i++)
        for (unsigned norm = 0; norm < 3; norm++)
            for (unsigned masks = 0; masks < 4; masks += 3)
                check(*state, shapes[i], OCT_ORACLE_U8, true, masks, norm, false);
}

/* Rows longer than a block has threads, columns longer than its segments. */
static void pictures_of_several_blocks(void **state)
{
    struct load l = {.setup = {.norm = OCT_CORRELATION_ZNCC}, .cross = true};
    uint32_t random = 7;
    make(&l, (struct shape){70, 300, 70, 300, 60, 280}, OCT_ORACLE_BLOBS, 0);
    run(*state, &l);
    for (unsigned i = 0; i < 60; i++)
        (void)compare_at(&l, i % BATCH, 70 * 300, (int)(oct_oracle_random(&random) % 121) - 60,
                         (int)(oct_oracle_random(&random) % 561) - 280);
    finish(&l);
}

static void what_is_refused(void **state)
{
    const struct suite *suite = *state;
    struct load l = {.cross = true};
    struct oct_error err;
    struct oct_correlator *c;
    float *again = calloc(BATCH * 17 * 17, sizeof(float));
    unsigned which = 9;
    make(&l, (struct shape){16, 16, 16, 16, 8, 8}, OCT_ORACLE_U8, 1);
    run(suite, &l);
    assert_int_equal(suite->ops->create(&c, &l.setup, &err), OCT_OK);
    assert_int_equal(suite->ops->set_reference(c, &l.g, &err), OCT_OK);
    const float kept = l.f[1].pixels[0];
    for (unsigned i = 0; i < 16 * 16; i++)
        l.f[1].pixels[i] = 7;
    assert_int_equal(suite->ops->set_reference(c, &l.f[1], &err), OCT_E_ARG);
    assert_int_equal(suite->ops->run(c, l.f, BATCH, again, &which, &err), OCT_E_ARG);
    assert_int_equal(which, 1);
    memset(l.f[2].valid, 0, 16 * 15);
    must_fail(suite->ops->run(c, l.f + 2, 1, again, &which, &failure), OCT_E_ARG, "less than 10 %");
    assert_int_equal(suite->ops->run(c, l.f, 1, again, &which, &err), OCT_OK);
    assert_memory_equal(again, l.c2d, 17 * 17 * sizeof(float)); /* the reference has stayed */
    assert_int_equal(suite->ops->set_reference(c, NULL, &err), OCT_OK);
    assert_int_equal(suite->ops->run(c, l.f, 1, again, &which, &err), OCT_OK);
    assert_true(fabsf(again[8 * 17 + 8] - 1) < 1e-6f);
    suite->ops->destroy(c);
    l.f[1].pixels[0] = kept;
    l.setup.max_dy = 16;
    assert_int_equal(suite->ops->create(&c, &l.setup, &err), OCT_E_ARG);
    assert_null(c);
    free(again);
    finish(&l);
}

static void large_pictures(void **state)
{
    for (unsigned kind = 0; kind < OCT_ORACLE_N_KINDS; kind++) {
        const unsigned norm = kind % 3, masks = kind % 2;
        struct load l = {.setup = {.norm = norm}, .cross = kind % 4 >= 2};
        uint32_t random = 11;
        double worst = 0;
        make(&l, (struct shape){1500, 750, 1500, 750, 250, 250}, kind, masks);
        run(*state, &l);
        const struct oct_picture *g = l.cross ? &l.g : &l.f[0];
        const double most_n =
            norm == OCT_CORRELATION_ZNCC ? oct_oracle_sums(&l.f[0], g, 0, 0).n : 0;
        for (unsigned i = 0; i < 6; i++) {
            const int dy = (int)(oct_oracle_random(&random) % 501) - 250;
            const int dx = (int)(oct_oracle_random(&random) % 501) - 250;
            worst = fmax(worst, compare_at(&l, 0, most_n, i ? dy : 0, i ? dx : 0));
        }
        printf("# norm %u, kind %u, %s: off by %.3f of the bound at most\n", norm, kind,
               masks ? "masked" : "whole", worst);
        finish(&l);
    }
}

int oct_correlate_suite_run(const struct oct_correlator_ops *ops, unsigned deadline_ms, bool large)
{
    struct suite suite = {ops, deadline_ms};
    const struct CMUnitTest tests[] = {
        {"pictures with themselves", pictures_with_themselves, NULL, NULL, &suite},
        {"pictures with a reference", pictures_with_a_reference, NULL, NULL, &suite},
        {"pictures of different sizes", pictures_of_different_sizes, NULL, NULL, &suite},
        {"pictures of several blocks", pictures_of_several_blocks, NULL, NULL, &suite},
        {"what cannot be correlated is refused", what_is_refused, NULL, NULL, &suite},
    };
    const struct CMUnitTest more[] = {
        {"pictures of 1500 x 750", large_pictures, NULL, NULL, &suite},
    };
    int n_failed = cmocka_run_group_tests_name("correlation", tests, NULL, NULL);
    if (large)
        n_failed += cmocka_run_group_tests_name("large correlations", more, NULL, NULL);
    return n_failed;
}
