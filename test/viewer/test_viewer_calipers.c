/* Several calipers: their numbers, what is held, whose picture they are, and how they are drawn. */
#include "test/rig/tap.h"
#include "test/rig/viewer_scene.h"
#include "test/rig/viewer_stage.h"
#include "viewer/input.h"
#include "viewer/model/clock.h"
#include "viewer/model/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEASURE 0x5cc8ffu

static struct oct_view_point at(double line, double depth)
{
    return (struct oct_view_point){line, depth};
}

static unsigned count(const struct oct_viewer_stage *s)
{
    return oct_view_calipers_count(&s->model.calipers);
}

static void a_number_is_the_lowest_free_one(void **state)
{
    struct oct_view_calipers *c = calloc(1, sizeof(*c));

    assert_non_null(c);
    for (unsigned i = 0; i < OCT_VIEW_MOST_CALIPERS; i++) {
        assert_true(oct_view_calipers_add(c, at(i, 0), at(i, 9)));
        assert_true(c->shown.held == i && oct_view_calipers_count(c) == i + 1);
    }
    assert_false(oct_view_calipers_add(c, at(50, 0), at(50, 9)));
    assert_int_equal(c->shown.held, 8);
    c->shown.held = 3;
    oct_view_calipers_remove(c); /* the fourth; the fifth keeps its number and is held */
    assert_true(c->shown.held == 4 && oct_view_calipers_held(c)->end[0].line == 4);
    assert_true(oct_view_calipers_add(c, at(60, 0), at(60, 9)));
    assert_true(c->shown.held == 3 && oct_view_calipers_held(c)->end[0].line == 60);
    c->shown.held = 8;
    oct_view_calipers_remove(c); /* after the last comes the first */
    assert_int_equal(c->shown.held, 0);
    oct_view_calipers_clear(c);
    assert_true(oct_view_calipers_count(c) == 0 && !oct_view_calipers_held(c));
    oct_view_calipers_remove(c);
    oct_view_calipers_move(c, at(1, 2), at(3, 4));
    assert_true(oct_view_calipers_count(c) == 1 && c->shown.caliper[0].end[1].depth == 4);
    free(c);
}

static struct oct_picture_header picture(uint64_t frame_num, uint32_t n_lines)
{
    return (struct oct_picture_header){.frame_num = frame_num, .n_lines = n_lines, .depth = 100};
}

static void show(struct oct_view_calipers *c, uint64_t frame_num, bool stands, const char *source)
{
    struct oct_picture_header header = picture(frame_num, 120);
    oct_view_calipers_show(c, &header, stands, source);
}

/* -1: none; else the A-line of the first. */
static double first_of(const struct oct_view_calipers *c)
{
    return c->shown.caliper[0].is_set ? c->shown.caliper[0].end[0].line : -1;
}

static void those_of_a_standing_picture_are_its_own(void **state)
{
    struct oct_view_calipers *c = calloc(1, sizeof(*c));

    assert_non_null(c);
    show(c, 1, false, "a");
    oct_view_calipers_add(c, at(10, 0), at(10, 9));
    show(c, 2, false, "a");
    assert_true(first_of(c) == 10); /* the live ones stay */
    show(c, 2, true, "a");          /* frozen: a copy */
    assert_true(first_of(c) == 10);
    oct_view_calipers_move(c, at(20, 0), at(20, 9));
    show(c, 1, true, "a"); /* stepped back */
    assert_true(first_of(c) == -1);
    oct_view_calipers_add(c, at(30, 0), at(30, 9));
    show(c, 2, true, "a");
    assert_true(first_of(c) == 20);
    show(c, 2, true, "b"); /* the same number of another acquisition or file */
    assert_true(first_of(c) == -1);
    show(c, 9, false, "a"); /* live again */
    assert_true(first_of(c) == 10);
    show(c, 1, true, "a"); /* straight to one of before */
    assert_true(first_of(c) == 30);
    oct_view_calipers_clear(c);
    show(c, 2, true, "a");
    show(c, 1, true, "a");
    assert_true(first_of(c) == -1); /* cleared ones do not come back */
    free(c);
}

static void a_picture_of_another_size_has_others(void **state)
{
    struct oct_view_calipers *c = calloc(1, sizeof(*c));
    struct oct_picture_header wide = picture(2, 500);

    assert_non_null(c);
    show(c, 1, false, "a");
    oct_view_calipers_add(c, at(10, 0), at(10, 9));
    oct_view_calipers_show(c, &wide, false, "a");
    assert_true(first_of(c) == -1);
    show(c, 3, false, "a");
    assert_true(first_of(c) == 10);
    free(c);
}

static void the_last_sets_are_kept_and_the_live_one(void **state)
{
    struct oct_view_calipers *c = calloc(1, sizeof(*c));
    const uint64_t n = OCT_VIEW_KEPT_CALIPERS + 10;

    assert_non_null(c);
    show(c, 0, false, "a");
    oct_view_calipers_add(c, at(99, 0), at(99, 9));
    for (uint64_t i = 1; i <= n; i++) {
        show(c, i, true, "a");
        oct_view_calipers_clear(c);
        oct_view_calipers_add(c, at((double)i, 0), at((double)i, 9));
    }
    show(c, 0, false, "a");
    assert_true(first_of(c) == 99);
    show(c, n, true, "a");
    assert_true(first_of(c) == (double)n);
    show(c, n - 15, true, "a");
    assert_true(first_of(c) == (double)(n - 15));
    show(c, 1, true, "a"); /* too long ago */
    assert_true(first_of(c) == -1);
    free(c);
}

/* ---- in the window ---- */

static void draw(struct oct_viewer_stage *s)
{
    assert_int_equal(oct_draw_frame(s->draw, &s->model, NULL), OCT_OK);
    SDL_RenderFlush(s->renderer);
}

/* Pixels of the calipers' colour in a part of the panel, in shares of it. */
static unsigned blue(const struct oct_viewer_stage *s, double x0, double y0, double x1, double y1)
{
    struct oct_view_rect r = oct_draw_layout(s->draw)->bscan;
    unsigned n = 0;

    for (int y = r.y + (int)(y0 * r.h); y < r.y + (int)(y1 * r.h); y++)
        for (int x = r.x + (int)(x0 * r.w); x < r.x + (int)(x1 * r.w); x++)
            n += (((uint32_t *)((uint8_t *)s->surface->pixels + y * s->surface->pitch))[x] &
                  0xffffff) == MEASURE;
    return n;
}

static void mouse(struct oct_viewer_stage *s, struct oct_view_input *input, uint32_t type, double x,
                  double y)
{
    struct oct_view_rect r = oct_draw_layout(s->draw)->bscan;
    SDL_Event event = {.type = type};

    if (type == SDL_MOUSEMOTION) {
        event.motion.x = r.x + (int)(x * r.w);
        event.motion.y = r.y + (int)(y * r.h);
    } else {
        event.button.button = SDL_BUTTON_LEFT;
        event.button.x = r.x + (int)(x * r.w);
        event.button.y = r.y + (int)(y * r.h);
    }
    oct_view_input_take(input, &event, &s->model, s->draw, 1);
}

static void drag(struct oct_viewer_stage *s, struct oct_view_input *input, double x0, double y0,
                 double x1, double y1)
{
    mouse(s, input, SDL_MOUSEBUTTONDOWN, x0, y0);
    mouse(s, input, SDL_MOUSEMOTION, (x0 + x1) / 2, (y0 + y1) / 2);
    mouse(s, input, SDL_MOUSEMOTION, x1, y1);
    mouse(s, input, SDL_MOUSEBUTTONUP, x1, y1);
}

static void drags_make_calipers_and_move_their_ends(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_input *input = calloc(1, sizeof(*input));
    const struct oct_view_caliper *c = s->model.calipers.shown.caliper;

    assert_non_null(input);
    oct_view_model_apply(&s->model, OCT_ACTION_MEASURE, 1);
    draw(s);
    drag(s, input, 0.2, 0.2, 0.2, 0.6);
    drag(s, input, 0.5, 0.2, 0.5, 0.6);
    assert_int_equal(count(s), 2);
    assert_true(fabs(c[0].end[1].line / 120 - 0.2) < 0.01 && s->model.calipers.shown.held == 1);
    assert_true(fabs(c[1].end[1].line / 120 - 0.5) < 0.01);
    drag(s, input, 0.2, 0.2, 0.3, 0.1); /* the first end of the first one */
    assert_true(count(s) == 2 && s->model.calipers.shown.held == 0);
    assert_true(fabs(c[0].end[1].line / 120 - 0.3) < 0.01 && c[0].end[1].depth < 12);
    assert_true(fabs(c[0].end[0].line / 120 - 0.2) < 0.01 && c[0].end[0].depth > 55);
    mouse(s, input, SDL_MOUSEBUTTONDOWN, 0.8, 0.8); /* a click has no length */
    mouse(s, input, SDL_MOUSEBUTTONUP, 0.8, 0.8);
    assert_int_equal(count(s), 2);
    mouse(s, input, SDL_MOUSEBUTTONDOWN, 0.8, 0.8); /* taken away while they are dragged */
    oct_view_model_apply(&s->model, OCT_ACTION_CLEAR, 1);
    mouse(s, input, SDL_MOUSEMOTION, 0.9, 0.9);
    mouse(s, input, SDL_MOUSEBUTTONUP, 0.9, 0.9);
    assert_int_equal(count(s), 0);
    for (unsigned i = 0; i < OCT_VIEW_MOST_CALIPERS + 2; i++)
        drag(s, input, 0.05 + 0.08 * i, 0.1, 0.05 + 0.08 * i, 0.9);
    assert_int_equal(count(s), OCT_VIEW_MOST_CALIPERS);
    assert_non_null(strstr(s->model.message, "9 calipers are the most"));
    free(input);
    oct_viewer_stage_close(s);
}

static void several_have_numbers_and_a_table_of_lengths(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();

    oct_view_model_add_caliper(&s->model, at(20, 20), at(20, 40));
    draw(s);
    unsigned one_beside = blue(s, 0.17, 0.38, 0.6, 0.48);
    assert_true(one_beside > 150);                  /* its length stands beside it */
    assert_int_equal(blue(s, 0.65, 0, 1, 0.19), 0); /* and no table */
    oct_view_model_add_caliper(&s->model, at(60, 20), at(60, 30));
    draw(s);
    assert_true(blue(s, 0.17, 0.38, 0.45, 0.48) < one_beside / 3); /* a number */
    unsigned two = blue(s, 0.65, 0, 1, 0.19);
    assert_true(two > 300);
    oct_view_model_add_caliper(&s->model, at(80, 20), at(80, 30));
    draw(s);
    unsigned three = blue(s, 0.65, 0, 1, 0.19);
    assert_true(three > two * 5 / 4 && three < two * 2);
    for (int i = 0; i < 9; i++) /* all of it is within the panel */
        oct_view_model_add_caliper(&s->model, at(90, 20), at(90, 30));
    draw(s);
    assert_true(blue(s, 0.65, 0, 1, 0.4) > 2 * three);
    oct_viewer_stage_close(s);
}

static void keys_add_hold_and_remove(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    const struct oct_view_caliper *c = s->model.calipers.shown.caliper;

    oct_view_model_apply(&s->model, OCT_ACTION_CALIPERS, 1);
    oct_view_model_apply(&s->model, OCT_ACTION_CALIPERS, 1);
    assert_true(count(s) == 2 && s->model.measuring && c[0].end[0].line < c[1].end[0].line);
    double line = c[1].end[1].line, first = c[0].end[1].line;
    oct_view_model_apply(&s->model, OCT_ACTION_LEVEL_UP, 1); /* Right: the last one's end */
    assert_true(c[1].end[1].line == line + 1);
    oct_view_model_apply(&s->model, OCT_ACTION_HOLD, 1); /* its other end */
    oct_view_model_apply(&s->model, OCT_ACTION_HOLD, 1); /* the first one's end */
    oct_view_model_apply(&s->model, OCT_ACTION_LEVEL_UP, 3);
    assert_true(c[0].end[1].line == first + 3 && c[1].end[1].line == line + 1);
    oct_view_model_apply(&s->model, OCT_ACTION_REMOVE, 1);
    assert_true(count(s) == 1 && !c[0].is_set && c[1].is_set);
    oct_view_model_apply(&s->model, OCT_ACTION_MARK, 1);
    oct_view_model_apply(&s->model, OCT_ACTION_REMOVE, 1); /* the point is held */
    assert_true(count(s) == 1 && !s->model.has_mark);
    oct_view_model_apply(&s->model, OCT_ACTION_REMOVE, 1);
    oct_view_model_apply(&s->model, OCT_ACTION_REMOVE, 1);
    assert_int_equal(count(s), 0);
    oct_viewer_stage_close(s);
}

/* By the model's own actions: freeze, measure, go on, freeze again. */
static void a_frozen_picture_keeps_its_calipers(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_archive *archive = oct_view_archive_create(1 << 20);
    struct oct_view_picture next = oct_scene_layered(30, 4);

    assert_non_null(archive);
    oct_view_model_attach(&s->model, archive);
    for (uint64_t i = 0; i < 3; i++) {
        next.header.frame_num = 100 + i;
        next.arrival_ns = s->model.now_ns + i * OCT_NS_PER_S;
        oct_view_archive_add(archive, &next);
    }
    oct_view_model_offer(&s->model, &next); /* the newest one */
    oct_view_model_apply(&s->model, OCT_ACTION_FREEZE, 1);
    oct_view_model_add_caliper(&s->model, at(20, 20), at(20, 40));
    oct_view_model_apply(&s->model, OCT_ACTION_OLDER, 1);
    assert_int_equal(s->model.shown.header.frame_num, 101);
    assert_int_equal(count(s), 0);
    oct_view_model_add_caliper(&s->model, at(50, 20), at(50, 40));
    oct_view_model_add_caliper(&s->model, at(60, 20), at(60, 40));
    oct_view_model_apply(&s->model, OCT_ACTION_NEWER, 1);
    assert_int_equal(count(s), 1);
    oct_view_model_apply(&s->model, OCT_ACTION_FREEZE, 1); /* live */
    assert_int_equal(count(s), 0);
    oct_view_model_apply(&s->model, OCT_ACTION_FREEZE, 1);
    assert_int_equal(count(s), 1);
    oct_view_model_apply(&s->model, OCT_ACTION_OLDER, 1);
    assert_int_equal(count(s), 2);
    oct_view_picture_finish(&next);
    oct_viewer_stage_close(s);
    oct_view_archive_destroy(archive);
}

/* The B-scan of that number of the open file comes. */
static void play(struct oct_viewer_stage *s, uint32_t bscan)
{
    struct oct_view_picture picture = oct_scene_layered(30, 4);

    picture.header.frame_num = bscan;
    oct_view_playback_offer(&s->model, &picture, bscan, true, "");
    oct_view_picture_finish(&picture);
}

static void open_file(struct oct_viewer_stage *s, const char *name)
{
    struct oct_view_file *file = calloc(1, sizeof(*file));

    assert_non_null(file);
    snprintf(file->path, sizeof(file->path), "/data/%s", name);
    snprintf(file->name, sizeof(file->name), "%s", name);
    file->n_bscans = file->n_valid = 40;
    file->n_lines = 120;
    file->depth = 100;
    file->log = true;
    file->axial_um = file->lateral_um = 4;
    oct_view_playback_open(&s->model, file->path, 0, false);
    oct_view_playback_opened(&s->model, file);
    free(file);
}

static void a_recordings_bscans_keep_theirs(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();

    oct_view_model_add_caliper(&s->model, at(10, 20), at(10, 40)); /* live */
    open_file(s, "a.h5");
    play(s, 0);
    assert_int_equal(count(s), 0);
    oct_view_model_add_caliper(&s->model, at(20, 20), at(20, 40));
    oct_view_model_add_caliper(&s->model, at(30, 20), at(30, 40));
    play(s, 1);
    assert_int_equal(count(s), 0);
    play(s, 0);
    assert_int_equal(count(s), 2);
    open_file(s, "b.h5");
    play(s, 0);
    assert_int_equal(count(s), 0);
    oct_view_playback_end(&s->model);
    assert_int_equal(count(s), 1);
    open_file(s, "a.h5");
    play(s, 0);
    assert_int_equal(count(s), 2);
    oct_viewer_stage_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_is_the_lowest_free_one),
        cmocka_unit_test(those_of_a_standing_picture_are_its_own),
        cmocka_unit_test(a_picture_of_another_size_has_others),
        cmocka_unit_test(the_last_sets_are_kept_and_the_live_one),
        cmocka_unit_test(drags_make_calipers_and_move_their_ends),
        cmocka_unit_test(several_have_numbers_and_a_table_of_lengths),
        cmocka_unit_test(keys_add_hold_and_remove),
        cmocka_unit_test(a_frozen_picture_keeps_its_calipers),
        cmocka_unit_test(a_recordings_bscans_keep_theirs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
