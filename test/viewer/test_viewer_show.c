/* What the picture is, and that nobody takes a picture that is not live for a live one: the veil's
 * words, and what is drawn of it at three sizes. */
#include "test/rig/tap.h"
#include "test/rig/viewer_daemon.h"
#include "test/rig/viewer_scene.h"
#include "test/rig/viewer_stage.h"
#include "viewer/model/clock.h"
#include "viewer/model/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define S OCT_NS_PER_S
#define MS OCT_NS_PER_MS

struct scene {
    struct oct_viewer_stage *stage;
    struct oct_view_model *model;
    struct oct_view_tally tally;
    struct oct_view_daemon d;
};

static void hear(struct scene *s, bool reachable, const char *state)
{
    s->d.reachable = reachable;
    s->d.answer_ns++;
    strcpy(s->d.state, state);
    oct_scene_hear(s->model, &s->d, OCT_WISH_NONE, false, "");
}

/* Live pictures, 50 a second, at 11 s. */
static struct scene open_scene(void)
{
    struct scene s = {.stage = oct_viewer_stage_open(),
                      .d = {.known = true,
                            .disk_bytes_free = NAN,
                            .axial_um = NAN,
                            .lateral_um = NAN,
                            .slow_um = NAN,
                            .record = {.disk_left_s = NAN, .volumes = NAN}}};
    struct oct_picture_header header = oct_scene_header(1, "a");

    s.model = &s.stage->model;
    for (header.frame_num = 0; header.frame_num <= 50; header.frame_num++)
        oct_view_tally_add(&s.tally, &header, 10 * S + header.frame_num * 20 * MS);
    s.model->shown.arrival_ns = 11 * S;
    s.model->settings.guide = false; /* its lines go with a frozen picture */
    oct_view_model_report(s.model, &s.tally, true);
    hear(&s, true, "running");
    return s;
}

static void close_scene(struct scene *s)
{
    oct_viewer_stage_close(s->stage);
}

static void freeze(struct scene *s)
{
    oct_view_model_apply(s->model, OCT_ACTION_FREEZE, 1);
}

static void what_the_picture_is_follows_stream_daemon_and_user(void **state)
{
    struct scene s = open_scene();
    struct oct_view_veil veil;
    struct oct_view_model none;

    oct_view_model_init(&none, "x", true);
    assert_int_equal(oct_view_show(&none), OCT_SHOW_WAITING);
    assert_false(oct_view_show_veil(&none, &veil));
    assert_int_equal(oct_view_show(s.model), OCT_SHOW_LIVE);
    assert_false(oct_view_show_veil(s.model, &veil));
    s.model->average.arrival_ns = 11 * S;
    assert_int_equal(oct_view_show(s.model), OCT_SHOW_AVERAGED);
    assert_false(oct_view_show_veil(s.model, &veil));
    s.model->average.arrival_ns = 0;
    freeze(&s);
    assert_int_equal(oct_view_show(s.model), OCT_SHOW_FROZEN);
    assert_true(oct_view_show_veil(s.model, &veil) && !veil.covers);
    assert_string_equal(veil.words, "FROZEN");
    assert_string_equal(veil.more, "");
    oct_view_model_tick(s.model, 24 * S); /* held, and the stream ended: both are told */
    assert_int_equal(oct_view_show(s.model), OCT_SHOW_FROZEN);
    assert_true(oct_view_show_veil(s.model, &veil));
    assert_string_equal(veil.more, "NO SIGNAL");
    oct_view_model_report(s.model, &s.tally, false);
    hear(&s, false, "running"); /* octd gone while frozen */
    assert_int_equal(oct_view_show(s.model), OCT_SHOW_FROZEN);
    assert_true(oct_view_show_veil(s.model, &veil));
    assert_string_equal(veil.more, "OCTD IS GONE");
    freeze(&s);
    assert_int_equal(oct_view_show(s.model), OCT_SHOW_GONE);
    assert_true(oct_view_show_veil(s.model, &veil) && veil.covers);
    assert_string_equal(veil.words, "OCTD IS GONE");
    assert_string_equal(veil.more, "the last picture is 13 s old");
    oct_view_model_report(s.model, &s.tally, true);
    hear(&s, true, "idle"); /* it is back, and idle */
    assert_int_equal(oct_view_show(s.model), OCT_SHOW_NO_SIGNAL);
    assert_true(oct_view_show_veil(s.model, &veil) && veil.covers);
    assert_string_equal(veil.words, "NO SIGNAL");
    assert_string_equal(veil.more, "octd is idle: press Start");
    s.model->playback.active = true; /* a recording is shown, whatever octd does */
    assert_int_equal(oct_view_show(s.model), OCT_SHOW_PLAYBACK);
    assert_true(oct_view_show_veil(s.model, &veil) && !veil.covers && veil.plays);
    s.model->playback.active = false;
    oct_view_model_finish(&none);
    close_scene(&s);
}

/* Without an endpoint to ask, the pictures' publisher alone tells. */
static void without_control_a_lost_publisher_is_gone_when_pictures_stop(void **state)
{
    struct scene s = open_scene();

    s.model->has_control = s.model->daemon.known = false;
    oct_view_model_report(s.model, &s.tally, false);
    assert_int_equal(oct_view_show(s.model), OCT_SHOW_LIVE); /* a moment's break */
    oct_view_model_tick(s.model, 24 * S);
    assert_int_equal(oct_view_show(s.model), OCT_SHOW_GONE);
    oct_view_model_report(s.model, &s.tally, true);
    assert_int_equal(oct_view_show(s.model), OCT_SHOW_NO_SIGNAL);
    close_scene(&s);
}

/* ---- what is drawn ---- */

static const int sizes[][2] = {{1280, 720}, {1920, 1080}, {3840, 2160}};
enum { N_SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static void resize(struct oct_viewer_stage *stage, const int size[2])
{
    oct_draw_destroy(stage->draw);
    SDL_DestroyRenderer(stage->renderer);
    SDL_FreeSurface(stage->surface);
    stage->surface =
        SDL_CreateRGBSurfaceWithFormat(0, size[0], size[1], 32, SDL_PIXELFORMAT_ARGB8888);
    stage->renderer = SDL_CreateSoftwareRenderer(stage->surface);
    assert_int_equal(oct_draw_create(&stage->draw, stage->renderer, NULL, NULL), OCT_OK);
}

/* Draws the window, and returns a copy of it; to be freed. */
static uint32_t *drawn(struct oct_viewer_stage *stage)
{
    const size_t n = (size_t)stage->surface->w * (size_t)stage->surface->h;
    uint32_t *copy = malloc(n * sizeof(*copy));

    assert_non_null(copy);
    assert_int_equal(oct_draw_frame(stage->draw, &stage->model, NULL), OCT_OK);
    SDL_RenderFlush(stage->renderer);
    assert_int_equal(stage->surface->pitch, stage->surface->w * (int)sizeof(*copy));
    memcpy(copy, stage->surface->pixels, n * sizeof(*copy));
    return copy;
}

static unsigned light_of(uint32_t argb)
{
    return (argb >> 16 & 255) + (argb >> 8 & 255) + (argb & 255);
}

/* Rows of r in which any pixel has the colour: the height of words and what is as bright. */
static unsigned rows_with(const uint32_t *px, int width, struct oct_view_rect r, uint32_t rgb)
{
    unsigned n = 0;

    for (int y = r.y; y < r.y + r.h; y++)
        for (int x = r.x; x < r.x + r.w; x++)
            if ((px[y * width + x] & 0xffffff) == rgb) {
                n++;
                break;
            }
    return n;
}

/* Letters are read at two metres where they are 1/200 of that high: 10 mm, of a screen of 27 cm a
 * twenty-seventh. */
#define TONE_WARN 0xe6b866u
#define TONE_BAD 0xf08a7cu

static void a_frozen_picture_keeps_its_values_within_a_frame(void **state)
{
    for (size_t k = 0; k < N_SIZES; k++) {
        struct scene s = open_scene();
        resize(s.stage, sizes[k]);
        uint32_t *live = drawn(s.stage);
        freeze(&s);
        uint32_t *frozen = drawn(s.stage);
        const int width = sizes[k][0];
        const struct oct_view_layout *l = oct_draw_layout(s.stage->draw);
        const struct oct_view_rect r = l->bscan;
        size_t n_edge = 0, n_same = 0, n_inner = 0;
        for (int x = r.x; x < r.x + r.w; x++)
            n_edge += live[(r.y + 1) * width + x] != frozen[(r.y + 1) * width + x];
        assert_true(n_edge > (size_t)r.w / 4); /* stripes */
        /* The left three fifths, below the words in the corner and above the scale bars. */
        for (int y = r.y + r.h / 4; y < r.y + r.h * 2 / 3; y++)
            for (int x = r.x + l->text_px; x < r.x + r.w * 3 / 5; x++, n_inner++)
                n_same += live[y * width + x] == frozen[y * width + x];
        assert_int_equal(n_same, n_inner);
        /* The word in the lower right corner. */
        struct oct_view_rect corner = {r.x + r.w * 3 / 5, r.y + r.h * 3 / 4,
                                       r.w * 2 / 5 - l->text_px, r.h / 4 - l->text_px};
        assert_true(rows_with(frozen, width, corner, TONE_WARN) > (unsigned)sizes[k][1] / 27);
        free(live);
        free(frozen);
        close_scene(&s);
    }
}

static void an_old_picture_is_dimmed_and_hatched_with_words_over_it(void **state)
{
    for (size_t k = 0; k < N_SIZES; k++) {
        struct scene s = open_scene();
        resize(s.stage, sizes[k]);
        uint32_t *live = drawn(s.stage);
        const struct oct_view_rect before = oct_draw_layout(s.stage->draw)->bscan;
        oct_view_model_tick(s.model, 24 * S);
        uint32_t *old = drawn(s.stage);
        const int width = sizes[k][0];
        const struct oct_view_layout *l = oct_draw_layout(s.stage->draw);
        const struct oct_view_rect r = l->bscan;
        /* The bright layer: its brightest pixel, stripes and words apart. */
        unsigned brightest_live = 0, brightest_old = 0;
        for (int x = r.x + 2; x < r.x + r.w / 12; x++) {
            for (int y = before.y; y < before.y + before.h; y++)
                if (light_of(live[y * width + x]) > brightest_live)
                    brightest_live = light_of(live[y * width + x]);
            for (int y = r.y + r.h / 4; y < r.y + r.h / 2; y++)
                if (light_of(old[y * width + x]) > brightest_old)
                    brightest_old = light_of(old[y * width + x]);
        }
        assert_true(brightest_live > 600);
        assert_true(brightest_old < brightest_live * 6 / 10);
        struct oct_view_rect middle = {r.x + r.w / 4, r.y + r.h / 4, r.w / 2, r.h / 2};
        assert_true(rows_with(old, width, middle, TONE_BAD) > (unsigned)sizes[k][1] / 14);
        assert_true(l->banner.h > 0 && l->banner.y + l->banner.h <= r.y); /* beside the picture */
        free(live);
        free(old);
        close_scene(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_picture_is_follows_stream_daemon_and_user),
        cmocka_unit_test(without_control_a_lost_publisher_is_gone_when_pictures_stop),
        cmocka_unit_test(a_frozen_picture_keeps_its_values_within_a_frame),
        cmocka_unit_test(an_old_picture_is_dimmed_and_hatched_with_words_over_it),
    };
    return cmocka_run_group_tests_name("viewer, what the picture is", tests, NULL, NULL);
}
