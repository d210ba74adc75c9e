/* The viewer's drawing, judged by what is in the pixels, at three sizes. */
#include "test/rig/tap.h"
#include "test/rig/viewer_scene.h"
#include "viewer/draw/draw.h"
#include "viewer/draw/png.h"
#include "viewer/input.h"
#include "viewer/model/clock.h"
#include "viewer/model/words.h"

#include <SDL.h>
#include <SDL_image.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S OCT_NS_PER_S

struct stage {
    SDL_Surface *surface;
    SDL_Renderer *renderer;
    struct oct_draw *draw;
    struct oct_view_model model;
};

static const int sizes[][2] = {{640, 480}, {1280, 720}, {3840, 2160}};
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

static struct stage stage_open(const int size[2], const char *font)
{
    struct stage stage = {0};

    stage.surface =
        SDL_CreateRGBSurfaceWithFormat(0, size[0], size[1], 32, SDL_PIXELFORMAT_ARGB8888);
    assert_non_null(stage.surface);
    stage.renderer = SDL_CreateSoftwareRenderer(stage.surface);
    assert_non_null(stage.renderer);
    assert_int_equal(oct_draw_create(&stage.draw, stage.renderer, font, NULL), OCT_OK);
    oct_view_model_init(&stage.model, "tcp://127.0.0.1:5702", true);
    oct_view_model_tick(&stage.model, 5 * S);
    return stage;
}

static void stage_show(struct stage *stage, struct oct_view_picture picture)
{
    struct oct_view_tally tally = {0};

    oct_view_tally_add(&tally, &picture.header, 5 * S);
    oct_view_model_offer(&stage->model, &picture);
    oct_view_model_report(&stage->model, &tally, true);
    oct_view_picture_finish(&picture);
}

static void stage_draw(struct stage *stage)
{
    assert_int_equal(oct_draw_frame(stage->draw, &stage->model, NULL), OCT_OK);
    SDL_RenderFlush(stage->renderer);
}

static void stage_close(struct stage *stage)
{
    oct_draw_destroy(stage->draw);
    SDL_DestroyRenderer(stage->renderer);
    SDL_FreeSurface(stage->surface);
    oct_view_model_finish(&stage->model);
}

static uint32_t pixel_at(const struct stage *stage, int x, int y)
{
    const uint8_t *row = (const uint8_t *)stage->surface->pixels + y * stage->surface->pitch;
    uint32_t pixel;

    assert_true(x >= 0 && x < stage->surface->w && y >= 0 && y < stage->surface->h);
    memcpy(&pixel, row + 4 * x, sizeof(pixel));
    return pixel & 0xffffffu;
}

/* Pixels of the rectangle whose brightest channel is at least `least`. */
static unsigned count_bright(const struct stage *stage, struct oct_view_rect r, unsigned least)
{
    unsigned n = 0;

    for (int y = r.y; y < r.y + r.h; y++)
        for (int x = r.x; x < r.x + r.w; x++) {
            uint32_t p = pixel_at(stage, x, y);
            n += (p >> 16) >= least || (p >> 8 & 255) >= least || (p & 255) >= least;
        }
    return n;
}

static void a_layer_lies_at_its_depth_and_the_first_a_line_at_the_left(void **state)
{
    for (size_t k = 0; k < N_SIZES; k++) {
        struct stage stage = stage_open(sizes[k], NULL);
        stage_show(&stage, oct_scene_layered(30, 4));
        stage.model.settings.fit = OCT_FIT_MICROMETRES;
        stage_draw(&stage);
        struct oct_view_rect r = oct_draw_picture_rect(stage.draw);
        assert_true(abs(r.w * 100 - r.h * 120) <= 120); /* 120 x 100: proportions kept */
        assert_true(r.h > sizes[k][1] / 2);
        for (int part = 1; part < 8; part++) {
            int x = r.x + r.w / 8 * part, brightest = 0;
            double sum = 0, sum_y = 0;
            for (int y = r.y; y < r.y + r.h; y++) {
                int grey = (int)(pixel_at(&stage, x, y) & 255);
                brightest = grey > brightest ? grey : brightest;
                sum += grey > 128;
                sum_y += grey > 128 ? y + 0.5 : 0;
            }
            assert_int_equal(brightest, 255);
            /* Its middle is at depth 32 of 100, its thickness 4 of 100. */
            assert_true(fabs(sum_y / sum - (r.y + 0.32 * r.h)) < 1.0);
            assert_true(fabs(sum - 0.04 * r.h) < 2.5);
        }
        int y = r.y + r.h * 3 / 4;
        assert_int_equal(pixel_at(&stage, r.x, y) & 255, 200);
        assert_int_equal(pixel_at(&stage, r.x + r.w - 1, y) & 255, 10);
        assert_int_equal(pixel_at(&stage, r.x + r.w / 2, y) & 255, 10);
        stage_close(&stage);
    }
}

static struct oct_view_rect drawn_rect(struct stage *stage)
{
    stage_draw(stage);
    return oct_draw_picture_rect(stage->draw);
}

static bool same_rect(struct oct_view_rect a, struct oct_view_rect b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

/* Where a spacing is not known there are no proportions to keep. */
static void a_picture_of_unknown_spacing_fills_its_panel(void **state)
{
    for (size_t k = 0; k < N_SIZES; k++) {
        struct stage stage = stage_open(sizes[k], NULL);
        stage_show(&stage, oct_scene_layered(30, 4));
        struct oct_view_rect all = drawn_rect(&stage);
        assert_true(same_rect(all, oct_draw_layout(stage.draw)->bscan));
        assert_true((double)all.w * all.h > 0.5 * sizes[k][0] * sizes[k][1]);
        stage.model.daemon.axial_um = 2.5; /* one of both is not enough */
        assert_true(same_rect(all, drawn_rect(&stage)));
        oct_view_model_apply(&stage.model, OCT_ACTION_FIT, 1); /* square pixels */
        struct oct_view_rect square = drawn_rect(&stage);
        assert_true(abs(square.w * 100 - square.h * 120) <= 120);
        stage.model.daemon.lateral_um = 5; /* 600 um across, 250 deep: as it is in the eye */
        struct oct_view_rect known = drawn_rect(&stage);
        assert_true(abs(known.w * 250 - known.h * 600) <= 600);
        stage.model.daemon.lateral_um = NAN;
        assert_true(same_rect(square, drawn_rect(&stage)));
        stage.model.settings.fit = OCT_FIT_FILL;
        assert_true(same_rect(all, drawn_rect(&stage)));
        stage_close(&stage);
    }
}

static void contrast_acts_on_the_drawn_picture(void **state)
{
    struct stage stage = stage_open(sizes[1], NULL);

    stage_show(&stage, oct_scene_layered(30, 4));
    stage_draw(&stage);
    struct oct_view_rect r = oct_draw_picture_rect(stage.draw);
    int x = r.x + r.w / 2, y = r.y + r.h * 3 / 4;
    assert_int_equal(pixel_at(&stage, x, y) & 255, 10); /* 12.35 dB in 10 .. 70 */
    oct_view_model_apply(&stage.model, OCT_ACTION_LEVEL_DOWN, 20);
    stage_draw(&stage);
    assert_int_equal(pixel_at(&stage, x, y) & 255, 95); /* 12.35 dB in -10 .. 50 */
    oct_view_model_drag(&stage.model, 20.0 / 60.0, 30.0 / 60.0);
    stage_draw(&stage);
    assert_int_equal(pixel_at(&stage, x, y) & 255, 0); /* in 25 .. 55 */
    oct_view_model_apply(&stage.model, OCT_ACTION_PUBLISHED_CONTRAST, 1);
    stage_draw(&stage);
    assert_int_equal(pixel_at(&stage, x, y) & 255, 10);
    stage_close(&stage);
}

static struct oct_view_rect bottom_of(const struct stage *stage, struct oct_view_rect r)
{
    int top = r.y + r.h + 1;
    return (struct oct_view_rect){0, top, stage->surface->w, stage->surface->h - top};
}

static void words_are_drawn_at_every_size(void **state)
{
    for (size_t k = 0; k < N_SIZES; k++) {
        struct stage stage = stage_open(sizes[k], NULL);
        int text_px = oct_view_layout_text_px(12, 96, sizes[k][0], sizes[k][1]);
        stage_draw(&stage); /* waiting: no picture yet */
        struct oct_view_rect area = oct_draw_picture_rect(stage.draw);
        assert_true(count_bright(&stage, area, 200) > (unsigned)(text_px * text_px));
        assert_true(count_bright(&stage, (struct oct_view_rect){0, 0, sizes[k][0], sizes[k][1]},
                                 10) == (unsigned)(sizes[k][0] * sizes[k][1]));
        stage_show(&stage, oct_scene_layered(30, 4));
        stage_draw(&stage);
        struct oct_view_rect bar = bottom_of(&stage, oct_draw_picture_rect(stage.draw));
        assert_true(count_bright(&stage, bar, 150) > (unsigned)(3 * text_px * text_px));
        /* A message stands below the picture and does not move it. */
        struct oct_view_rect calm = oct_draw_picture_rect(stage.draw);
        struct oct_view_rect foot = oct_draw_layout(stage.draw)->timeline;
        unsigned quiet = count_bright(&stage, foot, 150);
        oct_view_model_say(&stage.model, "saved %s", "somewhere-with-a-long-name.png");
        stage_draw(&stage);
        assert_true(count_bright(&stage, foot, 150) > quiet + (unsigned)(text_px * text_px));
        struct oct_view_rect now = oct_draw_picture_rect(stage.draw);
        assert_memory_equal(&now, &calm, sizeof(now));
        /* The notice of a silence, then the help overlay, cover part of the picture with words. */
        uint32_t left_top = pixel_at(&stage, area.x + area.w / 2, area.y + 2);
        oct_view_model_tick(&stage.model, 60 * S);
        stage_draw(&stage);
        assert_true(pixel_at(&stage, area.x + area.w / 2, area.y + 2) != left_top);
        struct oct_view_rect r = oct_draw_picture_rect(stage.draw);
        unsigned before = count_bright(&stage, r, 100);
        oct_view_model_apply(&stage.model, OCT_ACTION_HELP, 1);
        stage_draw(&stage);
        assert_true(count_bright(&stage, r, 100) != before);
        stage_close(&stage);
    }
}

/* What is not written must not be what stood there before. */
static void nothing_of_the_frame_before_stays(void **state)
{
    static const enum oct_view_action then[] = {
        OCT_ACTION_LAYOUT,  OCT_ACTION_LAYOUT, OCT_ACTION_HELP,       OCT_ACTION_HELP,
        OCT_ACTION_ZOOM_IN, OCT_ACTION_LAYOUT, OCT_ACTION_ZOOM_RESET, OCT_ACTION_FIT};
    for (size_t k = 0; k < N_SIZES; k++) {
        struct stage used = stage_open(sizes[k], NULL);
        stage_show(&used, oct_scene_layered(30, 4));
        size_t n_bytes = (size_t)used.surface->pitch * (size_t)sizes[k][1];
        void *over_white = malloc(n_bytes);
        assert_non_null(over_white);
        for (size_t i = 0; i < sizeof(then) / sizeof(then[0]); i++) {
            oct_view_model_apply(&used.model, then[i], 1);
            memset(used.surface->pixels, 0xff, n_bytes);
            stage_draw(&used);
            memcpy(over_white, used.surface->pixels, n_bytes);
            memset(used.surface->pixels, 0, n_bytes);
            stage_draw(&used);
            assert_memory_equal(over_white, used.surface->pixels, n_bytes);
        }
        free(over_white);
        stage_close(&used);
    }
}

static unsigned count_colour(const struct stage *stage, struct oct_view_rect r, uint32_t rgb)
{
    unsigned n = 0;

    for (int y = r.y; y < r.y + r.h; y++)
        for (int x = r.x; x < r.x + r.w; x++)
            n += pixel_at(stage, x, y) == rgb;
    return n;
}

static void what_the_arrows_move_has_a_frame(void **state)
{
    for (size_t k = 0; k < N_SIZES; k++) {
        struct stage stage = stage_open(sizes[k], NULL);
        int text_px = oct_view_layout_text_px(12, 96, sizes[k][0], sizes[k][1]);
        stage_show(&stage, oct_scene_layered(30, 4));
        oct_view_model_apply(&stage.model, OCT_ACTION_MARK, 1);
        oct_view_model_apply(&stage.model, OCT_ACTION_LEVEL_DOWN, 30); /* A-line 30.5 of 120 */
        oct_view_model_apply(&stage.model, OCT_ACTION_WINDOW_CLOSER, 10);
        stage_draw(&stage);
        struct oct_view_rect r = oct_draw_picture_rect(stage.draw);
        int x = r.x + (int)(30.5 / 120 * r.w), y = r.y + (int)(60.5 / 100 * r.h);
        /* The left side of the frame, below the label; the mark's own cross in its middle. */
        struct oct_view_rect side = {x - text_px, y - text_px / 4, text_px / 2, text_px / 2};
        assert_true(count_colour(&stage, side, 0xd8dee6) >= (unsigned)text_px / 2);
        assert_true(count_colour(&stage, (struct oct_view_rect){x - 2, y - 2, 5, 5}, 0xffe14d) > 4);
        oct_view_model_apply(&stage.model, OCT_ACTION_MEASURE, 1); /* contrast again: no frame */
        stage_draw(&stage);
        assert_int_equal(count_colour(&stage, side, 0xd8dee6), 0);
        stage_close(&stage);
    }
}

/* Recording for 75 s, as octd says it. */
static void stage_record(struct stage *stage, const char *pseudonym)
{
    struct oct_view_daemon *d = &stage->model.daemon;

    stage->model.has_control = true;
    d->known = d->reachable = d->record.active = true;
    d->record.elapsed_s = 75;
    d->record.bscans_in_file = 17;
    snprintf(d->record.pseudonym, sizeof(d->record.pseudonym), "%s", pseudonym);
}

/* The column behind the last one of a strip that has something on the red of a recording. */
static int end_of_words(const struct stage *stage, struct oct_view_rect strip)
{
    int end = strip.x;

    for (int x = strip.x; x < strip.x + strip.w; x++)
        for (int y = strip.y; y < strip.y + strip.h; y++)
            end = pixel_at(stage, x, y) != 0xb3261e ? x + 1 : end;
    return end;
}

static void a_long_pseudonym_leaves_the_recording_readable(void **state)
{
    static const char *const names[] = {
        "P-0123456789-0123456789-0123456789-0123456789-0123456789-0123456789-0123456789-01234567",
        "\u00c4\u00d6\u00dc-\u0416\u0416\u0416-\u00c4\u00d6\u00dc-\u0416\u0416\u0416-"
        "\u00c4\u00d6\u00dc"
        "-\u0416\u0416\u0416-\u00c4\u00d6\u00dc-\u0416\u0416\u0416-\u00c4\u00d6\u00dc-\u0416\u0416",
        "\xff\xfe\x80\x80\x80-\xc3", /* no letters at all */
    };
    for (size_t k = 0; k < N_SIZES * 3; k++) {
        const int *size = sizes[k / 3];
        struct stage stage = stage_open(size, NULL);
        stage_record(&stage, "");
        stage_draw(&stage);
        struct oct_view_rect part = oct_draw_layout(stage.draw)->recording;
        struct oct_view_rect patient = oct_draw_layout(stage.draw)->patient;
        int margin = oct_draw_layout(stage.draw)->margin, end = end_of_words(&stage, part);
        assert_true(end > 20 * oct_draw_layout(stage.draw)->text_px && end < part.x + part.w);
        size_t n_row = (size_t)part.w * sizeof(uint32_t);
        uint8_t *alone = malloc(n_row * (size_t)part.h);
        assert_non_null(alone);
        const uint8_t *pixels = stage.surface->pixels;
        for (int y = 0; y < part.h; y++)
            memcpy(alone + n_row * (size_t)y, pixels + y * stage.surface->pitch, n_row);
        stage_record(&stage, names[k % 3]);
        for (int typing = 0; typing < 3; typing++) {
            stage.model.typing = typing > 0;
            stage.model.patient.selected = typing > 1;
            snprintf(stage.model.typed, sizeof(stage.model.typed), "%s", names[k % 3]);
            stage_draw(&stage);
            for (int y = 0; y < part.h; y++)
                assert_memory_equal(alone + n_row * (size_t)y, pixels + y * stage.surface->pitch,
                                    n_row);
            assert_true(end_of_words(&stage, patient) <= size[0] - margin);
            assert_true(count_bright(&stage, patient, 0xd0) > 20); /* some of it is there */
        }
        free(alone);
        stage_close(&stage);
    }
}

static void words_too_long_for_their_line_end_within_it(void **state)
{
    struct stage stage = stage_open(sizes[0], NULL);

    stage_record(&stage, "P-0123456789-0123456789-0123456789-0123456789");
    stage.model.daemon.record.active = false;
    stage.model.answer.wish = OCT_WISH_RECORD;
    memset(stage.model.answer.text, 'W', sizeof(stage.model.answer.text) - 1);
    stage.model.daemon.record.failed = true;
    memset(stage.model.daemon.last_error, 'W', sizeof(stage.model.daemon.last_error) - 1);
    stage_draw(&stage);
    const struct oct_view_layout *l = oct_draw_layout(stage.draw);
    struct oct_view_rect right = {l->header.w - l->margin, 0, l->margin, l->header.h};
    assert_int_equal(count_colour(&stage, right, 0x222a34), (unsigned)(right.w * right.h));
    right = (struct oct_view_rect){l->area.x + l->area.w, l->area.y, 640 - l->area.x - l->area.w,
                                   l->area.h};
    assert_int_equal(count_colour(&stage, right, 0x12161c), (unsigned)(right.w * right.h));
    stage_close(&stage);
}

static bool press(struct oct_view_input *input, struct oct_view_model *model, SDL_Keycode key)
{
    SDL_Event event = {.key = {.type = SDL_KEYDOWN, .keysym = {.sym = key}}};

    input->quit = false;
    oct_view_input_take(input, &event, model, NULL, 1);
    return input->quit;
}

static void escape_does_not_leave_a_recording(void **state)
{
    struct oct_view_input input;
    struct oct_view_model model;

    oct_view_input_init(&input);
    oct_view_model_init(&model, "x", true);
    assert_true(press(&input, &model, SDLK_ESCAPE));
    model.help = true;
    assert_false(press(&input, &model, SDLK_ESCAPE));
    assert_false(model.help);
    model.has_control = true;
    oct_view_model_apply(&model, OCT_ACTION_RECORD, 1); /* wished for */
    assert_false(press(&input, &model, SDLK_ESCAPE));
    assert_non_null(strstr(model.message, "Q closes"));
    oct_view_wishes_drop(&model.wishes, OCT_WISH_NONE);
    model.daemon.record.active = true;
    assert_false(press(&input, &model, SDLK_ESCAPE));
    model.help = true; /* the help goes all the same */
    assert_false(press(&input, &model, SDLK_ESCAPE));
    assert_false(model.help);
    model.settings.operators = true;
    assert_false(press(&input, &model, SDLK_ESCAPE));
    assert_non_null(strstr(model.message, "Stop ends that"));
    model.settings.operators = false;
    model.asked = OCT_WISH_STOP; /* octd would not hear it any more */
    assert_false(press(&input, &model, SDLK_q));
    assert_true(press(&input, &model, SDLK_q));
    model.asked = OCT_WISH_NONE;
    assert_true(press(&input, &model, SDLK_q));
    model.daemon.record.active = false;
    assert_true(press(&input, &model, SDLK_ESCAPE));
    oct_view_model_finish(&model);
}

static void without_a_font_picture_and_lamp_are_drawn(void **state)
{
    struct stage stage = stage_open(sizes[1], "/nonexistent/font.ttf");

    stage_draw(&stage);
    struct oct_view_rect r = oct_draw_picture_rect(stage.draw);
    assert_true(count_bright(&stage, bottom_of(&stage, r), 200) > 50);
    stage_show(&stage, oct_scene_layered(30, 4));
    oct_view_model_apply(&stage.model, OCT_ACTION_HELP, 1);
    stage_draw(&stage);
    r = oct_draw_picture_rect(stage.draw);
    assert_int_equal(pixel_at(&stage, r.x + r.w / 2, r.y + r.h * 32 / 100) & 255, 255);
    stage_close(&stage);
}

static void snapshots_are_whole_files_under_new_names(void **state)
{
    const char *folder = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    static const struct oct_view_caption caption;
    struct stage stage = stage_open(sizes[0], NULL);
    char first[256], second[256], third[256], fixed[256];
    struct oct_error err = {0};
    time_t now = time(NULL);

    stage_draw(&stage);
    assert_int_equal(
        oct_png_save_new(stage.surface, &caption, folder, now, first, sizeof(first), NULL), OCT_OK);
    assert_int_equal(
        oct_png_save_new(stage.surface, &caption, folder, now, second, sizeof(second), NULL),
        OCT_OK);
    assert_string_not_equal(first, second);
    SDL_Surface *back = IMG_Load(first);
    assert_non_null(back);
    assert_true(back->w == sizes[0][0] && back->h == sizes[0][1]);
    SDL_FreeSurface(back);
    snprintf(fixed, sizeof(fixed), "%s/fixed.png", folder);
    assert_int_equal(oct_png_save(stage.surface, &caption, fixed, NULL), OCT_OK);
    assert_int_equal(oct_png_save(stage.surface, &caption, fixed, NULL), OCT_OK);
    assert_int_equal(oct_png_save(stage.surface, &caption, "/nonexistent/a.png", &err), OCT_E_IO);
    assert_non_null(strstr(err.text, "/nonexistent/a.png"));
    assert_int_equal(
        oct_png_save_new(stage.surface, &caption, "/nonexistent", now, third, sizeof(third), &err),
        OCT_E_IO);
    remove(first);
    remove(fixed);
    remove(second);
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layer_lies_at_its_depth_and_the_first_a_line_at_the_left),
        cmocka_unit_test(a_picture_of_unknown_spacing_fills_its_panel),
        cmocka_unit_test(contrast_acts_on_the_drawn_picture),
        cmocka_unit_test(words_are_drawn_at_every_size),
        cmocka_unit_test(nothing_of_the_frame_before_stays),
        cmocka_unit_test(what_the_arrows_move_has_a_frame),
        cmocka_unit_test(a_long_pseudonym_leaves_the_recording_readable),
        cmocka_unit_test(words_too_long_for_their_line_end_within_it),
        cmocka_unit_test(escape_does_not_leave_a_recording),
        cmocka_unit_test(without_a_font_picture_and_lamp_are_drawn),
        cmocka_unit_test(snapshots_are_whole_files_under_new_names),
    };
    return cmocka_run_group_tests_name("viewer drawing", tests, NULL, NULL);
}
