/* Linking alone: an engine that finds what a script says, and tracks that must come of it. */
#include "analysis/cells/cells.h"
#include "test/rig/cells_script.h"
#include "test/rig/tap.h"

#include <math.h>
#include <string.h>

#define R 10.0
#define WIDTH 640u
#define HEIGHT 480u

struct rig {
    struct oct_cells_engine engine;
    struct oct_cells_film *film;
    struct oct_cells_params params;
    struct cells_script_picture *picture; /* the next one */
    const struct oct_cells_found *seen;
    unsigned n_seen;
    bool detect_only;
};

static void open_film(struct rig *r)
{
    const struct oct_cells_film_setup setup = {.height = HEIGHT,
                                               .width = WIDTH,
                                               .um = {NAN, NAN},
                                               .params = r->params,
                                               .detect_only = r->detect_only,
                                               .ops = &cells_script_ops,
                                               .engine = &r->engine};
    must(oct_cells_film_create(&r->film, &setup, &failure));
}

/* The next push opens another. */
static void close_film(struct rig *r)
{
    oct_cells_film_destroy(r->film);
    r->film = NULL;
}

static int set_up(void **state)
{
    static struct rig r;
    memset(&r, 0, sizeof r);
    oct_cells_params_octd(&r.params, R);
    r.params.floor = 0; /* scripted cells stand in no picture */
    r.engine.radius = R;
    r.picture = &r.engine.picture;
    *state = &r;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *r = *state;
    close_film(r);
    return 0;
}

static void show(struct rig *r, double x, double y)
{
    r->picture->cells[r->picture->n_cells++] =
        (struct oct_cell){.x = x, .y = y, .radius = R, .score = -4};
}

static void show_pale(struct rig *r, double x, double y, float score)
{
    r->picture->pale[r->picture->n_pale++] =
        (struct oct_cell){.x = x, .y = y, .radius = R + 1, .score = score};
}

/* The picture that the script holds is pushed, and the next one is empty. */
static enum oct_err push_skipping(struct rig *r, unsigned skipped)
{
    const struct oct_picture picture = {.height = HEIGHT, .width = WIDTH};
    if (!r->film)
        open_film(r);
    const enum oct_err e =
        oct_cells_film_push(r->film, &picture, NULL, skipped, &r->seen, &r->n_seen, NULL);
    memset(r->picture, 0, sizeof *r->picture);
    return e;
}

static void push(struct rig *r)
{
    assert_int_equal(push_skipping(r, 0), OCT_OK);
}

static void assert_seen(const struct rig *r, unsigned i, uint64_t track, double x, double y,
                        enum oct_cells_how how)
{
    assert_true(i < r->n_seen);
    const struct oct_cells_found *s = &r->seen[i];
    if (s->track != track || fabs(s->x_px - x) > 1e-9 || fabs(s->y_px - y) > 1e-9 || s->how != how)
        fail_msg("track %d at (%g, %g) %s instead of %d at (%g, %g) %s", (int)s->track, s->x_px,
                 s->y_px, oct_cells_how_names[s->how], (int)track, x, y, oct_cells_how_names[how]);
    assert_true(how == OCT_CELLS_COASTED ? isnan(s->score) : isfinite(s->score));
}

#define CASE(name) TEST_WITH(name, set_up, tear_down)

CASE(tracks_are_numbered_by_birth)
{
    struct rig *r = *state;
    show(r, 300, 100);
    show(r, 100, 200);
    push(r);
    assert_int_equal(r->n_seen, 2);
    assert_seen(r, 0, 1, 300, 100, OCT_CELLS_DETECTED);
    assert_seen(r, 1, 2, 100, 200, OCT_CELLS_DETECTED);
    assert_int_equal(r->seen[0].before, 0);
    show(r, 500, 50); /* the first in raster order, the last born */
    show(r, 303, 101);
    show(r, 104, 200);
    push(r);
    assert_int_equal(r->n_seen, 3);
    assert_seen(r, 0, 1, 303, 101, OCT_CELLS_DETECTED);
    assert_seen(r, 1, 2, 104, 200, OCT_CELLS_DETECTED);
    assert_seen(r, 2, 3, 500, 50, OCT_CELLS_DETECTED);
    assert_int_equal(r->seen[0].n_seen, 2);
    assert_int_equal(r->seen[0].before, 1);
    assert_true(r->seen[0].last_x == 300 && r->seen[0].last_y == 100);
    oct_cells_film_reset(r->film);
    show(r, 306, 102);
    push(r);
    assert_int_equal(r->n_seen, 1);
    assert_seen(r, 0, 4, 306, 102, OCT_CELLS_DETECTED);
    assert_int_equal(r->seen[0].n_seen, 1);
}

CASE(a_cell_is_predicted_by_half_of_each_displacement)
{
    struct rig *r = *state;
    show(r, 200, 100);
    push(r);
    show(r, 208, 104); /* v = (8, 4) */
    push(r);
    push(r); /* not seen: it coasts */
    assert_seen(r, 0, 1, 216, 108, OCT_CELLS_COASTED);
    assert_int_equal(r->seen[0].n_seen, 2);
    show(r, 228, 112); /* (20, 8) in two frames: v = ((8, 4) + (10, 4)) / 2 = (9, 4) */
    push(r);
    assert_seen(r, 0, 1, 228, 112, OCT_CELLS_DETECTED);
    assert_int_equal(r->seen[0].before, 2);
    assert_true(r->seen[0].last_x == 208);
    push(r);
    assert_seen(r, 0, 1, 237, 116, OCT_CELLS_COASTED);
    push(r);
    assert_seen(r, 0, 1, 246, 120, OCT_CELLS_COASTED);
    assert_int_equal(r->seen[0].before, 2);
}

/* Without a velocity 2 R; with one R sqrt(1 + misses), about the prediction. */
CASE(gates_open_with_misses)
{
    struct rig *r = *state;
    show(r, 200, 100);
    show(r, 200, 300);
    push(r);
    show(r, 220, 100);   /* 2 R */
    show(r, 220.1, 300); /* beyond: another cell */
    push(r);
    assert_int_equal(r->n_seen, 3);
    assert_seen(r, 0, 1, 220, 100, OCT_CELLS_DETECTED);
    assert_seen(r, 1, 2, 200, 300, OCT_CELLS_COASTED);
    assert_seen(r, 2, 3, 220.1, 300, OCT_CELLS_DETECTED);
    show(r, 240, 110.1); /* R from the prediction, and a little more */
    push(r);
    assert_seen(r, 0, 1, 240, 100, OCT_CELLS_COASTED);
    assert_seen(r, r->n_seen - 1, 4, 240, 110.1, OCT_CELLS_DETECTED);
    show(r, 260, 113); /* one miss: 14.1 */
    push(r);
    assert_seen(r, 0, 1, 260, 113, OCT_CELLS_DETECTED);
}

CASE(a_longest_step_replaces_the_first_gate)
{
    struct rig *r = *state;
    r->params.max_step = 46;
    show(r, 200, 100);
    push(r);
    show(r, 245, 100);
    push(r);
    assert_int_equal(r->n_seen, 1);
    assert_seen(r, 0, 1, 245, 100, OCT_CELLS_DETECTED);
    close_film(r);
    r->params.max_step = 20;
    show(r, 200, 100);
    push(r);
    show(r, 245, 100);
    push(r);
    assert_int_equal(r->n_seen, 2);
}

/* Not the first pairing of equals, as of distances that vanish beside the gate. */
CASE(the_nearest_cell_counts_whatever_the_largest_step)
{
    struct rig *r = *state;
    for (unsigned round = 0; round < 3; round++) {
        static const double steps[] = {1e12, 1e300, 0};
        r->params.max_step = steps[round];
        show(r, 200, 100);
        show(r, 300, 100);
        push(r);
        show(r, 310, 99);
        show(r, 210, 101);
        assert_int_equal(push_skipping(r, round == 2 ? UINT32_MAX : 0), OCT_OK);
        assert_int_equal(r->n_seen, 2);
        assert_seen(r, 0, 1, 210, 101, OCT_CELLS_DETECTED);
        assert_seen(r, 1, 2, 310, 99, OCT_CELLS_DETECTED);
        close_film(r);
    }
}

CASE(a_track_stands_so_many_misses_and_ends_with_the_next)
{
    struct rig *r = *state;
    for (unsigned n_missing = 0; n_missing <= 4; n_missing++) {
        close_film(r);
        show(r, 200, 100);
        push(r);
        for (unsigned i = 0; i < n_missing; i++) {
            push(r);
            assert_int_equal(r->n_seen, i < 3 ? 1 : 0);
        }
        show(r, 200, 100);
        push(r);
        assert_seen(r, 0, n_missing <= 3 ? 1 : 2, 200, 100, OCT_CELLS_DETECTED);
    }
    r->params.memory = 0;
    close_film(r);
    show(r, 200, 100);
    push(r);
    push(r);
    assert_int_equal(r->n_seen, 0);
}

CASE(a_detection_forgets_misses)
{
    struct rig *r = *state;
    for (unsigned frame = 0; frame < 40; frame++) {
        if (frame % 4 == 0)
            show(r, 200, 100);
        push(r);
        assert_int_equal(r->n_seen, 1);
        assert_seen(r, 0, 1, 200, 100, frame % 4 ? OCT_CELLS_COASTED : OCT_CELLS_DETECTED);
    }
}

/* S is defined from pixel 22 to pixel width - 23. */
CASE(a_prediction_beyond_the_searchable_part_ends_the_track)
{
    struct rig *r = *state;
    show(r, 605, 100);
    show(r, 35, 300);
    push(r);
    show(r, 611, 100); /* next: 617, the last pixel */
    show(r, 29, 300);  /* next: 23 */
    push(r);
    push(r);
    assert_int_equal(r->n_seen, 2);
    assert_seen(r, 0, 1, 617, 100, OCT_CELLS_COASTED);
    show(r, 617, 100); /* the prediction lies at 623: this is another cell */
    push(r);
    assert_int_equal(r->n_seen, 1);
    assert_seen(r, 0, 3, 617, 100, OCT_CELLS_DETECTED);
}

CASE(a_snake_finds_what_was_not_detected)
{
    struct rig *r = *state;
    show(r, 200, 100);
    push(r);
    show(r, 196, 100);
    push(r);
    show_pale(r, 193, 101, -1.3F); /* 0.7 threshold = 1.26 */
    push(r);
    assert_int_equal(r->engine.n_starts, 1);
    const struct oct_cell_start *start = &r->engine.starts[0];
    assert_true(start->x == 192 && start->y == 100);
    assert_true(start->vx == -1 && start->vy == 0 && start->mean_dy == 0 && !start->is_dark);
    assert_true(start->radii[0] == R && start->radii[19] == R);
    assert_seen(r, 0, 1, 193, 101, OCT_CELLS_SNAKE);
    assert_true(r->seen[0].radius_px == R + 1);
    assert_int_equal(r->seen[0].n_seen, 3);
    assert_int_equal(oct_cells_film_n_fields(r->film), 1);
    show_pale(r, 189.5, 101, -1.3F); /* v = ((-4, 0) + (-3, 1)) / 2 */
    push(r);
    assert_true(start->x == 189.5 && start->y == 101.5);
    assert_true(start->radii[7] == R + 0.125); /* of the snake before */
    show_pale(r, 186, 101, -1.3F);
    push(r);
    assert_seen(r, 0, 1, 186, 101, OCT_CELLS_SNAKE); /* seen, and a third miss */
    show_pale(r, 183, 101, -1.3F);
    push(r);
    assert_int_equal(r->n_seen, 0);
}

CASE(a_snake_that_does_not_count_is_refused)
{
    struct rig *r = *state;
    for (unsigned how = 0; how < 6; how++) {
        close_film(r);
        show(r, 200, 100);
        show(r, 300, 300);
        push(r);
        show(r, 200, 100);
        show(r, 300, 300);
        push(r);
        show(r, 300, 300);
        if (how == 5)
            show(r, 215, 100);
        show_pale(r, how == 1 ? 210.5 : 207, 100, how == 2 ? -1.25F : -1.3F);
        r->picture->snakes_leave = how == 3;
        r->picture->snakes_undefined = how == 4;
        push(r);
        if (how == 0)
            assert_seen(r, 0, 1, 207, 100, OCT_CELLS_SNAKE);
        else
            assert_seen(r, 0, 1, 200, 100, OCT_CELLS_COASTED);
        assert_int_equal(r->n_seen, how == 5 ? 3 : 2);
    }
}

/* Two snakes on one cell: the older track's counts. */
CASE(of_two_snakes_the_older_tracks_counts)
{
    struct rig *r = *state;
    for (unsigned i = 0; i < 2; i++) {
        show(r, 200, 100);
        show(r, 212, 100);
        push(r);
    }
    show_pale(r, 207, 100, -3);
    push(r);
    assert_int_equal(r->engine.n_starts, 2);
    assert_seen(r, 0, 1, 207, 100, OCT_CELLS_SNAKE);
    assert_seen(r, 1, 2, 212, 100, OCT_CELLS_COASTED);
}

CASE(the_flow_is_that_of_the_setup)
{
    struct rig *r = *state;
    r->params.flow_deg = 90;
    show(r, 200, 100);
    push(r);
    push(r);
    assert_true(r->engine.starts[0].vx == 0 && r->engine.starts[0].vy == 1);
}

/* The newborn's gate is wider: it would gain more by the cell, in pixels. */
CASE(a_track_without_velocity_takes_no_other_tracks_cell)
{
    struct rig *r = *state;
    show(r, 100, 100);
    push(r);
    show(r, 104, 100);
    show(r, 118, 100); /* begins here */
    push(r);
    show(r, 109, 100); /* 108 is predicted */
    push(r);
    assert_seen(r, 0, 1, 109, 100, OCT_CELLS_DETECTED);
    assert_seen(r, 1, 2, 118, 100, OCT_CELLS_COASTED);
}

/* Two cells, the second one faster by `faster` and `below` farther down: apart for four pictures,
 * one cell between them for eight, apart again. */
static void run_pair(struct rig *r, double faster, double below)
{
    for (unsigned frame = 0; frame < 20; frame++) {
        const double x = 200 + 2 * frame, x2 = x + faster * (frame - 7.5);
        if (frame < 4 || frame >= 12) {
            show(r, x, 100);
            show(r, x2, 100 + below);
        } else {
            show(r, (x + x2) / 2, 100 + below / 2);
        }
        push(r);
        const enum oct_cells_how how =
            frame < 4 || frame >= 12 ? OCT_CELLS_DETECTED : OCT_CELLS_COASTED;
        assert_int_equal(r->n_seen, 2);
        assert_seen(r, 0, 1, x, 100, how);
        assert_seen(r, 1, 2, x2, 100 + below, how);
    }
}

CASE(cells_that_pass_each_other_keep_their_tracks)
{
    struct rig *r = *state;
    run_pair(r, 3, 8);
}

/* The one that is missing ends after so many misses; the other one is seen again. */
CASE(a_cell_beside_one_that_is_gone_goes_on)
{
    struct rig *r = *state;
    for (unsigned frame = 0; frame < 12; frame++) {
        show(r, 200 + 2 * frame, 100);
        if (frame < 4)
            show(r, 200 + 2 * frame, 113);
        push(r);
        const bool is_merged = frame >= 4 && frame < 8;
        assert_seen(r, 0, 1, 200 + 2 * frame, 100,
                    is_merged ? OCT_CELLS_COASTED : OCT_CELLS_DETECTED);
        assert_int_equal(r->n_seen, frame < 7 ? 2 : 1);
    }
}

CASE(a_cell_near_a_track_begins_none)
{
    struct rig *r = *state;
    show(r, 200, 100);
    show(r, 209, 100); /* within R of the one before */
    show(r, 230, 100);
    push(r);
    assert_int_equal(r->n_seen, 2);
    assert_seen(r, 1, 2, 230, 100, OCT_CELLS_DETECTED);
}

CASE(between_searches_snakes_follow)
{
    struct rig *r = *state;
    r->params.detect_every = 10;
    for (unsigned frame = 0; frame < 40; frame++) {
        show(r, 100 + 4.0 * frame, 100);
        show_pale(r, 100 + 4.0 * frame, 100, -3);
        push(r);
        assert_int_equal(r->engine.n_searches, frame / 10 + 1);
        assert_int_equal(r->n_seen, 1);
        assert_seen(r, 0, 1, 100 + 4.0 * frame, 100,
                    frame % 10 ? OCT_CELLS_SNAKE : OCT_CELLS_DETECTED);
        assert_int_equal(r->seen[0].n_seen, frame + 1);
    }
    assert_int_equal(r->engine.n_searches, 4);
    assert_int_equal(r->engine.n_looks, 40);
    for (unsigned frame = 40; frame < 80; frame++) { /* searched and not found: four misses */
        show_pale(r, 100 + 4.0 * frame, 100, -3);
        push(r);
        assert_int_equal(r->n_seen, frame < 70 ? 1 : 0);
    }
}

CASE(pictures_left_out_are_frames_and_no_misses)
{
    struct rig *r = *state;
    r->params.memory = 1;
    show(r, 200, 100);
    push(r);
    show(r, 230, 100); /* 10 a frame: within 2 R a frame */
    assert_int_equal(push_skipping(r, 2), OCT_OK);
    assert_seen(r, 0, 1, 230, 100, OCT_CELLS_DETECTED);
    assert_int_equal(r->seen[0].before, 3);
    show(r, 285, 100); /* 280 is predicted */
    assert_int_equal(push_skipping(r, 4), OCT_OK);
    assert_seen(r, 0, 1, 285, 100, OCT_CELLS_DETECTED);
    assert_int_equal(push_skipping(r, 3), OCT_OK); /* one miss */
    assert_seen(r, 0, 1, 285 + 4 * 10.5, 100, OCT_CELLS_COASTED);
    push(r);
    assert_int_equal(r->n_seen, 0);
}

CASE(a_picture_that_failed_counts_as_left_out)
{
    struct rig *r = *state;
    show(r, 200, 100);
    push(r);
    show(r, 205, 100);
    push(r);
    show(r, 210, 100);
    r->picture->look_fails = OCT_E_BACKEND;
    assert_int_equal(push_skipping(r, 0), OCT_E_BACKEND);
    assert_int_equal(r->n_seen, 0);
    r->picture->follow_fails = OCT_E_NO_MEMORY;
    assert_int_equal(push_skipping(r, 0), OCT_E_NO_MEMORY);
    show(r, 220, 100);
    push(r);
    assert_int_equal(r->n_seen, 1);
    assert_seen(r, 0, 1, 220, 100, OCT_CELLS_DETECTED);
    assert_int_equal(r->seen[0].before, 3);
    assert_int_equal(r->seen[0].n_seen, 3);
    push(r);
    assert_seen(r, 0, 1, 225, 100, OCT_CELLS_COASTED);
}

CASE(boyers_snakes_always_count)
{
    struct rig *r = *state;
    oct_cells_params_boyer(&r->params, R);
    show(r, 200, 100);
    push(r);
    show_pale(r, 204, 110, -0.1F);
    push(r);
    const struct oct_cell_start *start = &r->engine.starts[0];
    assert_true(start->x == 200 && start->y == 100 && start->vx == 1 && start->vy == 1);
    assert_true(start->radii[3] == R && start->mean_dy == 0);
    assert_seen(r, 0, 1, 204, 110, OCT_CELLS_SNAKE);
    r->picture->snakes_leave = true;
    push(r);
    assert_true(start->x == 204 && start->y == 110 && start->mean_dy == -5);
    assert_true(start->radii[3] == R + 0.125);
    assert_seen(r, 0, 1, 204, 110, OCT_CELLS_SNAKE);
    for (unsigned i = 3; i < 10; i++)
        push(r);
    show(r, 207, 110); /* within R */
    show(r, 300, 300);
    push(r);
    assert_int_equal(r->engine.n_searches, 2);
    assert_int_equal(r->n_seen, 2);
    assert_seen(r, 0, 1, 204, 110, OCT_CELLS_SNAKE);
    assert_seen(r, 1, 2, 300, 300, OCT_CELLS_DETECTED);
    push(r); /* the last ten positions are all (204, 110) */
    assert_true(fabs(r->engine.starts[0].mean_dy) < 1e-9);
    r->picture->snakes_undefined = true;
    push(r);
    assert_int_equal(r->n_seen, 0);
}

CASE(detection_alone_lists_cells)
{
    struct rig *r = *state;
    r->detect_only = true;
    r->params.detect_every = 10;
    for (unsigned i = 0; i < 3; i++) {
        show(r, 300, 100);
        show(r, 200, 100);
        push(r);
        assert_int_equal(r->n_seen, 2);
        assert_seen(r, 0, 0, 300, 100, OCT_CELLS_DETECTED);
        assert_int_equal(r->engine.n_searches, i + 1);
    }
    assert_int_equal(r->engine.n_follows, 0);
}
