/* Mosaics of a scene that is known at every place: places, components, blending. */
#include "test/rig/tap.h"

#include "analysis/align/matcher.h"
#include "analysis/align/mosaic.h"
#include "test/rig/waves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N 5u

/* Where the pictures lie in the scene, and their sizes. The first and the fourth share nothing. */
static const struct window {
    double y, x;
    uint32_t height, width;
} windows[N] = {
    {0, 0, 150, 140},        {10.37, 75.61, 160, 155}, {-15.82, 165.25, 145, 135},
    {5.4, 227.07, 155, 150}, {90.66, 45.18, 140, 145},
};

struct scene {
    struct oct_waves waves;
    struct oct_picture pictures[N + 1]; /* the last shows something else */
};

static int scene_make(void **state)
{
    struct scene *s = calloc(1, sizeof(*s));
    struct oct_waves other;
    uint64_t random = 5;

    oct_waves_init(&s->waves, 3, 6, 60);
    oct_waves_init(&other, 4, 6, 60);
    for (unsigned i = 0; i < N; i++)
        s->pictures[i] = oct_waves_picture(&s->waves, windows[i].height, windows[i].width,
                                           windows[i].y, windows[i].x, 0.1, &random);
    s->pictures[N] = oct_waves_picture(&other, 150, 150, 0, 0, 0.1, &random);
    *state = s;
    return 0;
}

static int scene_drop(void **state)
{
    struct scene *s = *state;

    for (unsigned i = 0; i < N + 1; i++)
        oct_picture_finish(&s->pictures[i]);
    free(s);
    return 0;
}

/* The pictures in an order; order[i] = N: the other one. */
static struct oct_mosaic find(const struct scene *s, const unsigned *order, unsigned n)
{
    struct oct_picture pictures[N + 1];
    struct oct_mosaic mosaic;
    struct oct_error err;

    for (unsigned i = 0; i < n; i++)
        pictures[i] = s->pictures[order[i]];
    if (oct_mosaic_find(&mosaic, pictures, n, &(struct oct_mosaic_setup){0}, NULL, NULL, &err))
        fail_msg("%s", err.text);
    return mosaic;
}

static void expect_places(const struct oct_mosaic *mosaic, const unsigned *order, unsigned n,
                          double bound_px)
{
    const struct oct_mosaic_place *first = NULL;
    unsigned at = 0;

    for (unsigned i = 0; i < n && !first; i++)
        if (mosaic->places[i].component == 0) {
            first = &mosaic->places[i];
            at = order[i];
        }
    assert_true(first && first->is_first && first->y == 0 && first->x == 0);
    for (unsigned i = 0; i < n; i++) {
        const struct oct_mosaic_place *p = &mosaic->places[i];
        if (order[i] == N)
            continue;
        assert_int_equal(p->component, 0);
        double dy = p->y - (windows[order[i]].y - windows[at].y);
        double dx = p->x - (windows[order[i]].x - windows[at].x);
        if (fabs(dy) > bound_px || fabs(dx) > bound_px)
            fail_msg("picture %u is off by %.3f, %.3f px", order[i], dy, dx);
    }
}

static void pictures_of_different_sizes_find_their_places_in_any_order(void **state)
{
    static const unsigned orders[3][N] = {{0, 1, 2, 3, 4}, {3, 0, 4, 2, 1}, {4, 2, 0, 1, 3}};

    for (unsigned k = 0; k < 3; k++) {
        struct oct_mosaic mosaic = find(*state, orders[k], N);
        assert_int_equal(mosaic.n_components, 1);
        assert_int_equal(mosaic.n_placed, N);
        unsigned n_tree = 0;
        for (unsigned i = 0; i < mosaic.n_edges; i++)
            n_tree += mosaic.edges[i].in_tree;
        assert_int_equal(n_tree, N - 1);
        expect_places(&mosaic, orders[k], N, 0.03);
        oct_mosaic_finish(&mosaic);
    }
}

static void what_does_not_connect_stays_in_a_component_of_its_own(void **state)
{
    static const unsigned order[N + 1] = {N, 3, 0, 4, 2, 1};
    struct oct_mosaic mosaic = find(*state, order, N + 1);

    assert_int_equal(mosaic.n_components, 2);
    assert_int_equal(mosaic.n_placed, N);
    assert_int_equal(mosaic.places[0].component, 1); /* first in the order, but the smaller one */
    expect_places(&mosaic, order, N + 1, 0.03);
    oct_mosaic_finish(&mosaic);
    /* Without the two in the middle the others are apart. */
    mosaic = find(*state, (const unsigned[]){0, 3, 4}, 3);
    assert_int_equal(mosaic.n_components, 2);
    assert_int_equal(mosaic.places[1].component, 1);
    oct_mosaic_finish(&mosaic);
}

static void the_strongest_overlaps_place_the_pictures(void **state)
{
    static const unsigned order[N] = {0, 1, 2, 3, 4};
    struct oct_mosaic mosaic = find(*state, order, N);

    for (unsigned k = 0; k < mosaic.n_edges; k++) {
        const struct oct_mosaic_edge *edge = &mosaic.edges[k];
        if (edge->in_tree || !(edge->significance >= OCT_MATCH_LEAST_SIGNIFICANCE))
            continue;
        /* The way along the tree between the two has no weaker edge. */
        for (unsigned at = edge->b; !mosaic.places[at].is_first; at = mosaic.places[at].with)
            if (mosaic.places[at].with == edge->a)
                assert_true(mosaic.places[at].score >= edge->score);
    }
    oct_mosaic_finish(&mosaic);
}

static void masked_pixels_count_neither_for_the_place_nor_in_the_canvas(void **state)
{
    struct scene *s = *state;
    struct oct_picture pictures[2];
    struct oct_mosaic mosaic;
    struct oct_picture canvas;
    struct oct_error err;
    float *weight;
    double y, x;

    for (unsigned i = 0; i < 2; i++) {
        size_t n = (size_t)s->pictures[i].height * s->pictures[i].width;
        assert_int_equal(
            oct_picture_init(&pictures[i], s->pictures[i].height, s->pictures[i].width, true, &err),
            OCT_OK);
        memcpy(pictures[i].pixels, s->pictures[i].pixels, n * sizeof(float));
        for (uint32_t row = 20; row < 60; row++) /* the same frame of both: it says "no motion" */
            for (uint32_t column = 0; column < pictures[i].width; column++) {
                pictures[i].pixels[row * pictures[i].width + column] = 1000.0F * (float)(row % 7);
                pictures[i].valid[row * pictures[i].width + column] = 0;
            }
    }
    assert_int_equal(
        oct_mosaic_find(&mosaic, pictures, 2, &(struct oct_mosaic_setup){0}, NULL, NULL, &err),
        OCT_OK);
    expect_places(&mosaic, (const unsigned[]){0, 1}, 2, 0.1); /* half of the overlap is masked */
    assert_int_equal(oct_mosaic_blend(&mosaic, pictures, &canvas, &weight, &y, &x, &err), OCT_OK);
    for (size_t i = 0; i < (size_t)canvas.height * canvas.width; i++)
        assert_true(isnan(canvas.pixels[i]) || fabsf(canvas.pixels[i]) < 10.0F);
    assert_true(isnan(canvas.pixels[(size_t)40 * canvas.width + 30])); /* of the first alone */
    oct_picture_finish(&canvas);
    free(weight);
    oct_mosaic_finish(&mosaic);
    for (unsigned i = 0; i < 2; i++)
        oct_picture_finish(&pictures[i]);
}

static void the_canvas_shows_the_scene_and_nan_where_no_picture_lies(void **state)
{
    struct scene *s = *state;
    static const unsigned order[N] = {0, 1, 2, 3, 4};
    struct oct_mosaic mosaic = find(s, order, N);
    struct oct_picture canvas, truth;
    struct oct_error err;
    uint64_t random = 1;
    float *weight;
    double y, x, sum = 0, n = 0;

    assert_int_equal(oct_mosaic_blend(&mosaic, s->pictures, &canvas, &weight, &y, &x, &err),
                     OCT_OK);
    assert_int_equal(y, 16);
    assert_int_equal(x, 0);
    assert_in_range(canvas.height, 246, 248);
    assert_in_range(canvas.width, 378, 379);
    truth = oct_waves_picture(&s->waves, canvas.height, canvas.width, -y, -x, 0, &random);
    for (size_t i = 0; i < (size_t)canvas.height * canvas.width; i++) {
        assert_true(isnan(canvas.pixels[i]) == !(weight[i] > 0));
        assert_true(canvas.valid[i] == !isnan(canvas.pixels[i]));
        if (isnan(canvas.pixels[i]))
            continue;
        sum += pow((double)canvas.pixels[i] - (double)truth.pixels[i], 2);
        n++;
    }
    assert_true(sqrt(sum / n) < 0.15); /* noise of 0.1, waves of 6 px between pixels */
    assert_true(n > 0.6 * canvas.height * canvas.width && n < 0.9 * canvas.height * canvas.width);
    assert_true(isnan(canvas.pixels[canvas.width - 1]));
    oct_picture_finish(&truth);
    oct_picture_finish(&canvas);
    free(weight);
    oct_mosaic_finish(&mosaic);
}

static bool stop_at_two(void *arg, unsigned done, unsigned of)
{
    *(unsigned *)arg = of;
    return done < 2;
}

static void what_cannot_be_is_refused(void **state)
{
    struct scene *s = *state;
    struct oct_picture flat, two[2];
    struct oct_mosaic mosaic;
    struct oct_error err;
    const struct oct_mosaic_setup setup = {0};
    unsigned of = 0;

    assert_int_equal(oct_mosaic_find(&mosaic, s->pictures, 1, &setup, NULL, NULL, &err), OCT_E_ARG);
    assert_int_equal(oct_picture_init(&flat, 100, 100, false, &err), OCT_OK);
    for (size_t i = 0; i < 10000; i++)
        flat.pixels[i] = 7;
    two[0] = s->pictures[0];
    two[1] = flat;
    assert_int_equal(oct_mosaic_find(&mosaic, two, 2, &setup, NULL, NULL, &err), OCT_E_ARG);
    assert_non_null(strstr(err.text, "fewer than two pictures have contrast"));
    assert_null(mosaic.places);
    assert_int_equal(oct_mosaic_find(&mosaic, s->pictures, N, &setup, stop_at_two, &of, &err),
                     OCT_E_AGAIN);
    assert_int_equal(of, N * (N - 1) / 2);
    oct_picture_finish(&flat);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_of_different_sizes_find_their_places_in_any_order),
        cmocka_unit_test(what_does_not_connect_stays_in_a_component_of_its_own),
        cmocka_unit_test(the_strongest_overlaps_place_the_pictures),
        cmocka_unit_test(masked_pixels_count_neither_for_the_place_nor_in_the_canvas),
        cmocka_unit_test(the_canvas_shows_the_scene_and_nan_where_no_picture_lies),
        cmocka_unit_test(what_cannot_be_is_refused),
    };

    return cmocka_run_group_tests(tests, scene_make, scene_drop);
}
