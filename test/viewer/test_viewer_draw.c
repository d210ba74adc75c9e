/* The viewer's drawing, judged by what is in the pixels. */
#include "pipeline/base/clock.h"
#include "test/rig/tap.h"
#include "test/rig/viewer_daemon.h"
#include "test/rig/viewer_scene.h"
#include "test/rig/viewer_stage.h"
#include "viewer/draw/draw.h"
#include "viewer/draw/png.h"
#include "viewer/input.h"
#include "viewer/model/words.h"
#include "viewer/settings.h"

#include <SDL.h>
#include <SDL_image.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- what is in the pixels, at three sizes ---- */

#define S OCT_NS_PER_S

static const int sizes[][2] = {{640, 480}, {1280, 720}, {3840, 2160}};
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0])) /* of screens, too */

/* Pixels of the rectangle whose brightest channel is at least `least`. */
static unsigned count_bright(const struct oct_viewer_stage *stage, struct oct_view_rect r,
                             unsigned least)
{
    unsigned n = 0;
    for (int y = r.y; y < r.y + r.h; y++)
        for (int x = r.x; x < r.x + r.w; x++) {
            uint32_t p = oct_viewer_stage_pixel(stage, x, y);
            n += (p >> 16) >= least || (p >> 8 & 255) >= least || (p & 255) >= least;
        }
    return n;
}

TEST(a_layer_lies_at_its_depth_and_the_first_a_line_at_the_left)
{
    for (size_t k = 0; k < N_SIZES; k++) {
        struct oct_viewer_stage *stage = oct_viewer_stage_open_at(sizes[k], NULL);
        oct_viewer_stage_show(stage, oct_scene_layered(30, 4));
        stage->model.settings.fit = OCT_FIT_MICROMETRES;
        oct_viewer_stage_draw(stage);
        struct oct_view_rect r = oct_draw_layout(stage->draw)->picture;
        assert_true(abs(r.w * 100 - r.h * 120) <= 120); /* 120 x 100: proportions kept */
        assert_true(r.h > sizes[k][1] / 2);
        for (int part = 1; part < 8; part++) {
            int x = r.x + r.w / 8 * part, brightest = 0;
            double sum = 0, sum_y = 0;
            for (int y = r.y; y < r.y + r.h; y++) {
                int grey = (int)(oct_viewer_stage_pixel(stage, x, y) & 255);
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
        assert_int_equal(oct_viewer_stage_pixel(stage, r.x, y) & 255, 200);
        assert_int_equal(oct_viewer_stage_pixel(stage, r.x + r.w - 1, y) & 255, 10);
        assert_int_equal(oct_viewer_stage_pixel(stage, r.x + r.w / 2, y) & 255, 10);
        oct_viewer_stage_close(stage);
    }
}

static struct oct_view_rect drawn_rect(struct oct_viewer_stage *stage)
{
    oct_viewer_stage_draw(stage);
    return oct_draw_layout(stage->draw)->picture;
}

static bool same_rect(struct oct_view_rect a, struct oct_view_rect b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

/* Where a spacing is not known there are no proportions to keep. */
TEST(a_picture_of_unknown_spacing_fills_its_panel)
{
    for (size_t k = 0; k < N_SIZES; k++) {
        struct oct_viewer_stage *stage = oct_viewer_stage_open_at(sizes[k], NULL);
        oct_viewer_stage_show(stage, oct_scene_layered(30, 4));
        struct oct_view_rect all = drawn_rect(stage);
        assert_true(same_rect(all, oct_draw_layout(stage->draw)->bscan));
        assert_true((double)all.w * all.h > 0.5 * sizes[k][0] * sizes[k][1]);
        stage->model.daemon.axial_um = 2.5; /* one of both is not enough */
        assert_true(same_rect(all, drawn_rect(stage)));
        oct_view_model_apply(&stage->model, OCT_ACTION_FIT, 1); /* square pixels */
        struct oct_view_rect square = drawn_rect(stage);
        assert_true(abs(square.w * 100 - square.h * 120) <= 120);
        stage->model.daemon.lateral_um = 5; /* 600 um across, 250 deep: as it is in the eye */
        struct oct_view_rect known = drawn_rect(stage);
        assert_true(abs(known.w * 250 - known.h * 600) <= 600);
        stage->model.daemon.lateral_um = NAN;
        assert_true(same_rect(square, drawn_rect(stage)));
        stage->model.settings.fit = OCT_FIT_FILL;
        assert_true(same_rect(all, drawn_rect(stage)));
        oct_viewer_stage_close(stage);
    }
}

TEST(contrast_acts_on_the_drawn_picture)
{
    struct oct_viewer_stage *stage = oct_viewer_stage_open_at(sizes[1], NULL);
    oct_viewer_stage_show(stage, oct_scene_layered(30, 4));
    oct_viewer_stage_draw(stage);
    struct oct_view_rect r = oct_draw_layout(stage->draw)->picture;
    int x = r.x + r.w / 2, y = r.y + r.h * 3 / 4;
    assert_int_equal(oct_viewer_stage_pixel(stage, x, y) & 255, 10); /* 12.35 dB in 10 .. 70 */
    oct_view_model_apply(&stage->model, OCT_ACTION_LEVEL_DOWN, 20);
    oct_viewer_stage_draw(stage);
    assert_int_equal(oct_viewer_stage_pixel(stage, x, y) & 255, 95); /* 12.35 dB in -10 .. 50 */
    oct_view_model_drag(&stage->model, 20.0 / 60.0, 30.0 / 60.0);
    oct_viewer_stage_draw(stage);
    assert_int_equal(oct_viewer_stage_pixel(stage, x, y) & 255, 0); /* in 25 .. 55 */
    oct_view_model_apply(&stage->model, OCT_ACTION_PUBLISHED_CONTRAST, 1);
    oct_viewer_stage_draw(stage);
    assert_int_equal(oct_viewer_stage_pixel(stage, x, y) & 255, 10);
    oct_viewer_stage_close(stage);
}

static struct oct_view_rect bottom_of(const struct oct_viewer_stage *stage, struct oct_view_rect r)
{
    int top = r.y + r.h + 1;
    return (struct oct_view_rect){0, top, stage->surface->w, stage->surface->h - top};
}

TEST(words_are_drawn_at_every_size)
{
    for (size_t k = 0; k < N_SIZES; k++) {
        struct oct_viewer_stage *stage = oct_viewer_stage_open_at(sizes[k], NULL);
        int text_px = oct_view_layout_text_px(12, 96, sizes[k][0], sizes[k][1]);
        oct_viewer_stage_draw(stage); /* waiting: no picture yet */
        struct oct_view_rect area = oct_draw_layout(stage->draw)->picture;
        assert_true(count_bright(stage, area, 200) > (unsigned)(text_px * text_px));
        assert_true(count_bright(stage, (struct oct_view_rect){0, 0, sizes[k][0], sizes[k][1]},
                                 10) == (unsigned)(sizes[k][0] * sizes[k][1]));
        oct_viewer_stage_show(stage, oct_scene_layered(30, 4));
        oct_viewer_stage_draw(stage);
        struct oct_view_rect bar = bottom_of(stage, oct_draw_layout(stage->draw)->picture);
        assert_true(count_bright(stage, bar, 150) > (unsigned)(3 * text_px * text_px));
        /* A message stands below the picture and does not move it. */
        struct oct_view_rect calm = oct_draw_layout(stage->draw)->picture;
        struct oct_view_rect foot = oct_draw_layout(stage->draw)->timeline;
        unsigned quiet = count_bright(stage, foot, 150);
        oct_view_model_say(&stage->model, "saved %s", "somewhere-with-a-long-name.png");
        oct_viewer_stage_draw(stage);
        assert_true(count_bright(stage, foot, 150) > quiet + (unsigned)(text_px * text_px));
        struct oct_view_rect now = oct_draw_layout(stage->draw)->picture;
        assert_memory_equal(&now, &calm, sizeof(now));
        /* The notice of a silence, then the help overlay, cover part of the picture with words. */
        uint32_t left_top = oct_viewer_stage_pixel(stage, area.x + area.w / 2, area.y + 2);
        oct_view_model_tick(&stage->model, 60 * S);
        oct_viewer_stage_draw(stage);
        assert_true(oct_viewer_stage_pixel(stage, area.x + area.w / 2, area.y + 2) != left_top);
        struct oct_view_rect r = oct_draw_layout(stage->draw)->picture;
        unsigned before = count_bright(stage, r, 100);
        oct_view_model_apply(&stage->model, OCT_ACTION_HELP, 1);
        oct_viewer_stage_draw(stage);
        assert_true(count_bright(stage, r, 100) != before);
        oct_viewer_stage_close(stage);
    }
}

/* What is not written must not be what stood there before. */
TEST(nothing_of_the_frame_before_stays)
{
    static const enum oct_view_action then[] = {
        OCT_ACTION_LAYOUT,  OCT_ACTION_LAYOUT, OCT_ACTION_HELP,       OCT_ACTION_HELP,
        OCT_ACTION_ZOOM_IN, OCT_ACTION_LAYOUT, OCT_ACTION_ZOOM_RESET, OCT_ACTION_FIT};
    for (size_t k = 0; k < N_SIZES; k++) {
        struct oct_viewer_stage *used = oct_viewer_stage_open_at(sizes[k], NULL);
        oct_viewer_stage_show(used, oct_scene_layered(30, 4));
        size_t n_bytes = (size_t)used->surface->pitch * (size_t)sizes[k][1];
        void *over_white = malloc(n_bytes);
        assert_non_null(over_white);
        for (size_t i = 0; i < sizeof(then) / sizeof(then[0]); i++) {
            oct_view_model_apply(&used->model, then[i], 1);
            memset(used->surface->pixels, 0xff, n_bytes);
            oct_viewer_stage_draw(used);
            memcpy(over_white, used->surface->pixels, n_bytes);
            memset(used->surface->pixels, 0, n_bytes);
            oct_viewer_stage_draw(used);
            assert_memory_equal(over_white, used->surface->pixels, n_bytes);
        }
        free(over_white);
        oct_viewer_stage_close(used);
    }
}

TEST(what_the_arrows_move_has_a_frame)
{
    for (size_t k = 0; k < N_SIZES; k++) {
        struct oct_viewer_stage *stage = oct_viewer_stage_open_at(sizes[k], NULL);
        int text_px = oct_view_layout_text_px(12, 96, sizes[k][0], sizes[k][1]);
        oct_viewer_stage_show(stage, oct_scene_layered(30, 4));
        oct_view_model_apply(&stage->model, OCT_ACTION_MARK, 1);
        oct_view_model_apply(&stage->model, OCT_ACTION_LEVEL_DOWN, 30); /* A-line 30.5 of 120 */
        oct_view_model_apply(&stage->model, OCT_ACTION_WINDOW_CLOSER, 10);
        oct_viewer_stage_draw(stage);
        struct oct_view_rect r = oct_draw_layout(stage->draw)->picture;
        int x = r.x + (int)(30.5 / 120 * r.w), y = r.y + (int)(60.5 / 100 * r.h);
        /* The left side of the frame, below the label; the mark's own cross in its middle. */
        struct oct_view_rect side = {x - text_px, y - text_px / 4, text_px / 2, text_px / 2};
        assert_true(oct_viewer_stage_count(stage, side, 0xd8dee6) >= (unsigned)text_px / 2);
        assert_true(oct_viewer_stage_count(stage, (struct oct_view_rect){x - 2, y - 2, 5, 5},
                                           0xffe14d) > 4);
        oct_view_model_apply(&stage->model, OCT_ACTION_MEASURE, 1); /* contrast again: no frame */
        oct_viewer_stage_draw(stage);
        assert_int_equal(oct_viewer_stage_count(stage, side, 0xd8dee6), 0);
        oct_viewer_stage_close(stage);
    }
}

/* Recording for 75 s, as octd says it. */
static void stage_record(struct oct_viewer_stage *stage, const char *pseudonym)
{
    struct oct_view_daemon *d = &stage->model.daemon;
    stage->model.has_control = true;
    d->known = d->reachable = d->record.active = true;
    d->record.elapsed_s = 75;
    d->record.bscans_in_file = 17;
    snprintf(d->record.pseudonym, sizeof(d->record.pseudonym), "%s", pseudonym);
}

/* The column behind the last one of a strip that has something on the red of a recording. */
static int end_of_words(const struct oct_viewer_stage *stage, struct oct_view_rect strip)
{
    int end = strip.x;
    for (int x = strip.x; x < strip.x + strip.w; x++)
        for (int y = strip.y; y < strip.y + strip.h; y++)
            end = oct_viewer_stage_pixel(stage, x, y) != 0xb3261e ? x + 1 : end;
    return end;
}

TEST(a_long_pseudonym_leaves_the_recording_readable)
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
        struct oct_viewer_stage *stage = oct_viewer_stage_open_at(size, NULL);
        stage_record(stage, "");
        oct_viewer_stage_draw(stage);
        struct oct_view_rect part = oct_draw_layout(stage->draw)->recording;
        struct oct_view_rect patient = oct_draw_layout(stage->draw)->patient;
        int margin = oct_draw_layout(stage->draw)->margin, end = end_of_words(stage, part);
        assert_true(end > 20 * oct_draw_layout(stage->draw)->text_px && end < part.x + part.w);
        size_t n_row = (size_t)part.w * sizeof(uint32_t);
        uint8_t *alone = malloc(n_row * (size_t)part.h);
        assert_non_null(alone);
        const uint8_t *pixels = stage->surface->pixels;
        for (int y = 0; y < part.h; y++)
            memcpy(alone + n_row * (size_t)y, pixels + y * stage->surface->pitch, n_row);
        stage_record(stage, names[k % 3]);
        for (int typing = 0; typing < 3; typing++) {
            stage->model.typing = typing > 0;
            stage->model.patient.selected = typing > 1;
            snprintf(stage->model.typed, sizeof(stage->model.typed), "%s", names[k % 3]);
            oct_viewer_stage_draw(stage);
            for (int y = 0; y < part.h; y++)
                assert_memory_equal(alone + n_row * (size_t)y, pixels + y * stage->surface->pitch,
                                    n_row);
            assert_true(end_of_words(stage, patient) <= size[0] - margin);
            assert_true(count_bright(stage, patient, 0xd0) > 20); /* some of it is there */
        }
        free(alone);
        oct_viewer_stage_close(stage);
    }
}

TEST(words_too_long_for_their_line_end_within_it)
{
    struct oct_viewer_stage *stage = oct_viewer_stage_open_at(sizes[0], NULL);
    stage_record(stage, "P-0123456789-0123456789-0123456789-0123456789");
    stage->model.daemon.record.active = false;
    stage->model.answer.wish = OCT_WISH_RECORD;
    memset(stage->model.answer.text, 'W', sizeof(stage->model.answer.text) - 1);
    stage->model.daemon.record.failed = true;
    memset(stage->model.daemon.last_error, 'W', sizeof(stage->model.daemon.last_error) - 1);
    oct_viewer_stage_draw(stage);
    const struct oct_view_layout *l = oct_draw_layout(stage->draw);
    struct oct_view_rect right = {l->header.w - l->margin, 0, l->margin, l->header.h};
    assert_int_equal(oct_viewer_stage_count(stage, right, 0x222a34), (unsigned)(right.w * right.h));
    right = (struct oct_view_rect){l->area.x + l->area.w, l->area.y, 640 - l->area.x - l->area.w,
                                   l->area.h};
    assert_int_equal(oct_viewer_stage_count(stage, right, 0x12161c), (unsigned)(right.w * right.h));
    oct_viewer_stage_close(stage);
}

static bool press(struct oct_view_input *input, struct oct_view_model *model, SDL_Keycode key)
{
    SDL_Event event = {.key = {.type = SDL_KEYDOWN, .keysym = {.sym = key}}};
    input->quit = false;
    oct_view_input_take(input, &event, model, NULL, 1);
    return input->quit;
}

TEST(escape_does_not_leave_a_recording)
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

TEST(without_a_font_picture_and_lamp_are_drawn)
{
    struct oct_viewer_stage *stage = oct_viewer_stage_open_at(sizes[1], "/nonexistent/font.ttf");
    oct_viewer_stage_draw(stage);
    struct oct_view_rect r = oct_draw_layout(stage->draw)->picture;
    assert_true(count_bright(stage, bottom_of(stage, r), 200) > 50);
    oct_viewer_stage_show(stage, oct_scene_layered(30, 4));
    oct_view_model_apply(&stage->model, OCT_ACTION_HELP, 1);
    oct_viewer_stage_draw(stage);
    r = oct_draw_layout(stage->draw)->picture;
    assert_int_equal(oct_viewer_stage_pixel(stage, r.x + r.w / 2, r.y + r.h * 32 / 100) & 255, 255);
    oct_viewer_stage_close(stage);
}

TEST(snapshots_are_whole_files_under_new_names)
{
    static const char fixed[] = "fixed.png";
    static const struct oct_view_caption caption;
    struct oct_viewer_stage *stage = oct_viewer_stage_open_at(sizes[0], NULL);
    char first[256], second[256], third[256];
    struct oct_error err = {0};
    time_t now = time(NULL);
    oct_viewer_stage_draw(stage);
    assert_int_equal(
        oct_png_save_new(stage->surface, &caption, ".", now, first, sizeof(first), NULL), OCT_OK);
    assert_int_equal(
        oct_png_save_new(stage->surface, &caption, ".", now, second, sizeof(second), NULL), OCT_OK);
    assert_string_not_equal(first, second);
    SDL_Surface *back = IMG_Load(first);
    assert_non_null(back);
    assert_true(back->w == sizes[0][0] && back->h == sizes[0][1]);
    SDL_FreeSurface(back);
    assert_int_equal(oct_png_save(stage->surface, &caption, fixed, NULL), OCT_OK);
    assert_int_equal(oct_png_save(stage->surface, &caption, fixed, NULL), OCT_OK);
    must_fail(oct_png_save(stage->surface, &caption, "/nonexistent/a.png", &failure), OCT_E_IO,
              "/nonexistent/a.png");
    assert_int_equal(
        oct_png_save_new(stage->surface, &caption, "/nonexistent", now, third, sizeof(third), &err),
        OCT_E_IO);
    oct_viewer_stage_close(stage);
}

/* ---- the room: how much the B-scan has, that nothing overlaps, the divider, fields, help ---- */

#define DEPTH_MM 2.0

static const int screens[][2] = {{1280, 720}, {1920, 1080}, {3840, 2160}};
static const double scans_mm[] = {1.3, 6};
#define N_SCANS (sizeof(scans_mm) / sizeof(scans_mm[0]))

/* A B-scan of so many A-lines and pixels. */
static struct oct_view_picture picture_of(uint32_t n_lines, uint32_t depth, const uint8_t *pixels)
{
    struct oct_picture_header header = oct_scene_header(1, "a");
    struct oct_view_picture picture = {0};
    header.n_lines = n_lines;
    header.depth = depth;
    assert_int_equal(oct_view_picture_set(&picture, &header, pixels, (size_t)n_lines * depth, NULL),
                     OCT_OK);
    return picture;
}

/* A white B-scan of 200 A-lines and 400 pixels, square, of so many millimetres; a black en face
 * picture of 200 B-scans. */
static void show_scan(struct oct_viewer_stage *stage, double mm)
{
    uint8_t *white = malloc(200 * 400);
    struct oct_view_image enface = oct_scene_enface(200, 200);
    assert_non_null(white);
    memset(white, 255, 200 * 400);
    oct_viewer_stage_show(stage, picture_of(200, 400, white));
    free(white);
    for (uint32_t i = 0; i < 200; i++)
        oct_scene_enface_fill(&enface, i, 10);
    oct_view_overlay_take(&stage->model, &oct_view_overlay_enface, &enface);
    oct_view_image_finish(&enface);
    stage->model.daemon.lateral_um = stage->model.daemon.slow_um = mm * 1000 / 200;
    stage->model.daemon.axial_um = DEPTH_MM * 1000 / 400;
}

/* How much of the window is the B-scan's white. */
static double white_share(const struct oct_viewer_stage *stage)
{
    const struct oct_view_rect r = oct_draw_layout(stage->draw)->bscan;
    unsigned n = 0;
    for (int y = r.y; y < r.y + r.h; y++)
        for (int x = r.x; x < r.x + r.w; x++)
            n += oct_viewer_stage_pixel(stage, x, y) == 0xffffff;
    return (double)n / stage->surface->w / stage->surface->h;
}

TEST(the_picture_has_most_of_the_window)
{
    for (size_t k = 0; k < 2 * N_SIZES * N_SCANS; k++) {
        struct oct_viewer_stage *stage =
            oct_viewer_stage_open_at(screens[k / N_SCANS % N_SIZES], NULL);
        const double dpi = k < N_SIZES * N_SCANS ? 96 : 400; /* usual letters, the largest */
        show_scan(stage, scans_mm[k % N_SCANS]);
        oct_draw_set_text(stage->draw, 12, dpi);
        for (int two = 0; two < 2; two++) {
            stage->model.settings.arrangement = two ? OCT_ARRANGEMENT_TWO : OCT_ARRANGEMENT_ALONE;
            const struct oct_view_layout *l = oct_viewer_stage_draw(stage);
            double share = white_share(stage);
            print_message("%dx%d, %.0f dpi, %.1f mm, %s: %.1f %%\n", stage->surface->w,
                          stage->surface->h, dpi, scans_mm[k % N_SCANS],
                          two ? "beside en face" : "alone", 100 * share);
            assert_true(share >= (!two ? 0.60 : dpi > 96 ? 0.36 : 0.40));
            assert_int_equal(l->enface.w > 0, two);
        }
        oct_viewer_stage_close(stage);
    }
}

TEST(words_say_how_far_the_scales_differ)
{
    struct oct_viewer_stage *stage = oct_viewer_stage_open_at(screens[0], NULL);
    struct oct_view_rectf place = {0, 0, 900, 500};
    char text[64];
    show_scan(stage, 6); /* 6 x 2 mm in 900 x 500: 150 and 250 pixels a millimetre */
    oct_view_model_stretch_text(&stage->model, place, text, sizeof(text));
    assert_string_equal(text, "stretched 1.7x along depth");
    place.w = 3000;
    oct_view_model_stretch_text(&stage->model, place, text, sizeof(text));
    assert_string_equal(text, "stretched 2.0x across");
    place.w = 1500;
    oct_view_model_stretch_text(&stage->model, place, text, sizeof(text));
    assert_string_equal(text, "");
    stage->model.daemon.axial_um = NAN;
    place.w = 900;
    oct_view_model_stretch_text(&stage->model, place, text, sizeof(text));
    assert_string_equal(text, "");
    oct_viewer_stage_close(stage);
}

/* ---- the layout ---- */

static bool is_apart(struct oct_view_rect a, struct oct_view_rect b)
{
    return a.w <= 0 || a.h <= 0 || b.w <= 0 || b.h <= 0 || a.x + a.w <= b.x || b.x + b.w <= a.x ||
           a.y + a.h <= b.y || b.y + b.h <= a.y;
}

static void check_apart(const struct oct_view_layout *l, const struct oct_view_contents *c)
{
    struct oct_view_rect all[17 + OCT_VIEW_MOST_BUTTONS] = {
        l->recording, l->banner,  l->bscan,     l->guide,    l->colours,
        l->enface,    l->profile, l->divider,   l->spectrum, l->slice,
        l->timeline,  l->status,  l->angiogram, l->speeds,   l->fibres};
    size_t n = 15;
    for (unsigned i = 0; i < c->n_buttons; i++) {
        const struct oct_view_rect rows[] = {l->buttons, l->patient, l->slabs};
        struct oct_view_rect row = rows[c->button[i].row];
        if (row.w == 0) /* no room for the slabs */
            continue;
        all[n++] = l->button[i];
        assert_true(l->button[i].w >= 1 && l->button[i].x >= row.x);
        assert_true(l->button[i].x + l->button[i].w <= row.x + row.w);
    }
    for (size_t i = 0; i < n; i++) {
        assert_true(all[i].x >= 0 && all[i].y >= 0);
        assert_true(all[i].x + all[i].w <= c->width && all[i].y + all[i].h <= c->height);
        for (size_t k = 0; k < i; k++)
            assert_true(is_apart(all[i], all[k]));
    }
    assert_true(l->bscan.w > 0 && l->bscan.h > 0);
}

/* Every arrangement, with and without banner, guide, slice, patient's row and field. */
TEST(nothing_lies_over_another)
{
    static const int windows[][2] = {
        {320, 240}, {640, 480}, {1280, 720}, {1080, 1920}, {3840, 2160}};
    for (unsigned i = 0; i < 5 * 3 * 32; i++) {
        const int *size = windows[i / 96];
        struct oct_view_contents c = {.width = size[0],
                                      .height = size[1],
                                      .n_panels = i / 32 % 3 == 2 ? 4 : i / 32 % 3 + 1,
                                      .proportion = i & 1 ? 6 : 0.7,
                                      .enface_proportion = i & 1 ? 6 : 1,
                                      .fills = true,
                                      .has_speeds = i & 1,
                                      .has_angiogram = i & 17,
                                      .has_fibres = i & 16,
                                      .has_slice = i & 2,
                                      .n_buttons = i & 8 ? 14 : 8};
        struct oct_view_layout l;
        c.text_px = oct_view_layout_text_px(12, 96, size[0], size[1]);
        c.status_height = i & 16 ? 5 * c.text_px : c.text_px * 3 / 2;
        c.banner_height = i & 4 ? 4 * c.text_px : 0;
        c.guide_height = i & 4 ? 6 * c.text_px : 0;
        for (unsigned k = 0; k < c.n_buttons; k++)
            c.button[k] =
                (struct oct_view_button_room){!(i & 8) || (k >= 5 && k < 10) ? OCT_BUTTONS_BELOW
                                              : k < 5                        ? OCT_BUTTONS_PATIENT
                                                                             : OCT_BUTTONS_SLABS,
                                              k == 2, c.text_px * (int)(3 + k % 4)};
        oct_view_layout_window(&l, &c);
        check_apart(&l, &c);
        assert_int_equal(l.angiogram.w > 0, c.has_angiogram && c.n_panels > 1);
        assert_int_equal(l.speeds.w > 0, c.has_speeds && l.colours.w > 0);
        assert_true(size[0] < 1280 || !(i & 8) || l.slabs.w > 0 || !l.angiogram.w);
        assert_int_equal(l.slice.w > 0, c.has_slice && c.n_panels > 1);
        assert_int_equal(l.spectrum.w > 0, !c.has_slice && c.n_panels == 4);
        assert_int_equal(l.banner.h > 0, c.banner_height > 0);
        assert_int_equal(l.patient.w > 0, (i & 8) != 0);
        if (size[0] >= 1280)
            assert_int_equal(l.guide.w > 0, c.guide_height > 0);
    }
}

static bool stacks(struct oct_viewer_stage *stage, double fast_mm, double slow_mm,
                   enum oct_view_fit fit)
{
    stage->model.settings.arrangement = OCT_ARRANGEMENT_TWO;
    stage->model.settings.fit = fit;
    stage->model.daemon.lateral_um = fast_mm * 1000 / 200;
    stage->model.daemon.slow_um = slow_mm * 1000 / 200;
    const struct oct_view_layout *l = oct_viewer_stage_draw(stage);
    assert_int_equal(l->is_stacked, l->enface.y > l->bscan.y);
    return l->is_stacked;
}

TEST(a_wide_scan_stands_above_its_en_face_picture)
{
    for (size_t k = 0; k < N_SIZES; k++) {
        struct oct_viewer_stage *stage = oct_viewer_stage_open_at(screens[k], NULL);
        show_scan(stage, 6);
        assert_true(stacks(stage, 6, 1, OCT_FIT_FILL)); /* both are wide */
        assert_true(stacks(stage, 12, 3, OCT_FIT_FILL));
        assert_true(stacks(stage, 12, 3, OCT_FIT_MICROMETRES));
        assert_false(stacks(stage, 6, 6, OCT_FIT_FILL)); /* a square one has room at the side */
        assert_false(stacks(stage, 1.3, 1.3, OCT_FIT_FILL));
        assert_false(stacks(stage, 1.3, 1.3, OCT_FIT_MICROMETRES));
        assert_false(stacks(stage, NAN, NAN, OCT_FIT_FILL));
        oct_viewer_stage_close(stage);
    }
}

/* ---- the divider ---- */

static void mouse(struct oct_viewer_stage *stage, uint32_t type, int x, int y, int clicks)
{
    SDL_Event event = {.type = type};
    if (type == SDL_MOUSEMOTION) {
        event.motion.x = x;
        event.motion.y = y;
    } else {
        event.button.button = SDL_BUTTON_LEFT;
        event.button.x = x;
        event.button.y = y;
        event.button.clicks = (uint8_t)clicks;
    }
    oct_view_input_take(&stage->input, &event, &stage->model, stage->draw, 1);
    oct_viewer_stage_draw(stage);
}

/* Drags the divider by pixels, and returns where its middle is then. */
static int drag_divider(struct oct_viewer_stage *stage, int by)
{
    const struct oct_view_layout *l = oct_draw_layout(stage->draw);
    int x = l->divider.x + l->divider.w / 2, y = l->divider.y + l->divider.h / 2;
    int to_x = x + (l->is_stacked ? 0 : by), to_y = y + (l->is_stacked ? by : 0);
    mouse(stage, SDL_MOUSEMOTION, x, y, 0);
    assert_int_equal(stage->input.pointer, l->is_stacked ? OCT_POINTER_DOWN : OCT_POINTER_ACROSS);
    mouse(stage, SDL_MOUSEBUTTONDOWN, x, y, 1);
    mouse(stage, SDL_MOUSEMOTION, (x + to_x) / 2, (y + to_y) / 2, 0);
    mouse(stage, SDL_MOUSEMOTION, to_x, to_y, 0);
    mouse(stage, SDL_MOUSEBUTTONUP, to_x, to_y, 1);
    return l->is_stacked ? l->divider.y + l->divider.h / 2 : l->divider.x + l->divider.w / 2;
}

TEST(the_divider_is_dragged_and_remembered)
{
    static const char path[] = "space.ini";
    for (int stacked = 0; stacked < 2; stacked++) {
        struct oct_viewer_stage *stage = oct_viewer_stage_open_at(screens[0], NULL),
                                *next = oct_viewer_stage_open_at(screens[0], NULL);
        const double slow_mm = stacked ? 1 : 6;
        show_scan(stage, 6);
        show_scan(next, 6);
        assert_int_equal(stacks(stage, 6, slow_mm, OCT_FIT_FILL), stacked);
        const struct oct_view_layout *l = oct_draw_layout(stage->draw);
        const struct oct_view_rect first = l->divider;
        const int at = stacked ? first.y + first.h / 2 : first.x + first.w / 2;
        assert_true(abs(drag_divider(stage, -60) - (at - 60)) <= 1);
        assert_int_equal(l->enface.y + l->enface.h, l->area.y + l->area.h);
        const int set = stacked ? l->bscan.h : l->bscan.w;
        /* The next octview has it. */
        stage->model.settings.details = true;
        assert_int_equal(oct_view_settings_save(&stage->model, path, NULL), OCT_OK);
        assert_int_equal(oct_view_settings_load(&next->model, path, NULL), OCT_OK);
        assert_true(next->model.settings.details);
        stage->model.settings.details = next->model.settings.details = false;
        assert_int_equal(stacks(next, 6, slow_mm, OCT_FIT_FILL), stacked);
        const struct oct_view_rect again = oct_draw_layout(next->draw)->bscan;
        assert_true(abs((stacked ? again.h : again.w) - set) <= 1);
        /* No further than the limits; a double click: as at first. */
        drag_divider(stage, stacked ? 700 : 1200);
        assert_true(l->enface.w > 20 && l->enface.h > 20);
        drag_divider(stage, stacked ? -700 : -1200);
        assert_true(l->bscan.w > 100 && l->bscan.h > 100);
        mouse(stage, SDL_MOUSEBUTTONDOWN, l->divider.x + l->divider.w / 2,
              l->divider.y + l->divider.h / 2, 2);
        assert_memory_equal(&l->divider, &first, sizeof(first));
        oct_viewer_stage_close(stage);
        oct_viewer_stage_close(next);
    }
}

/* ---- 1:1 pixels ---- */

/* Every pixel differs from its neighbours. */
static uint8_t pattern(unsigned line, unsigned depth)
{
    return (uint8_t)(37 * line + 91 * depth);
}

static void check_pixels(struct oct_viewer_stage *stage, unsigned n_lines, unsigned depth)
{
    const struct oct_view_rect r = oct_draw_layout(stage->draw)->picture;
    const struct oct_view_rectf place = oct_draw_layout(stage->draw)->place;
    unsigned n_wrong = 0;
    assert_true(place.w == n_lines && place.h == depth);
    /* In the middle, where no words stand. */
    for (int y = r.y + r.h / 4; y < r.y + r.h / 2; y++)
        for (int x = r.x + r.w / 4; x < r.x + r.w * 3 / 4; x++)
            n_wrong += (oct_viewer_stage_pixel(stage, x, y) & 255) !=
                       pattern((unsigned)(x - (int)place.x), (unsigned)(y - (int)place.y));
    assert_int_equal(n_wrong, 0);
}

static void space_press(struct oct_viewer_stage *stage, enum oct_view_action action, unsigned times)
{
    /* As a key does it: the lens knows what the last frame showed. */
    oct_view_lens_see(&stage->model.lens, oct_draw_layout(stage->draw)->bscan,
                      oct_draw_layout(stage->draw)->place);
    oct_view_model_apply(&stage->model, action, times);
    oct_viewer_stage_draw(stage);
}

TEST(a_pixel_is_one_of_the_screen)
{
    static const unsigned pictures[][2] = {{301, 203}, {1500, 900}}; /* smaller, larger */
    for (size_t k = 0; k < 2; k++) {
        const unsigned n_lines = pictures[k][0], depth = pictures[k][1];
        struct oct_viewer_stage *stage = oct_viewer_stage_open_at(screens[0], NULL);
        uint8_t *pixels = malloc((size_t)n_lines * depth);
        assert_non_null(pixels);
        for (unsigned i = 0; i < n_lines * depth; i++)
            pixels[i] = pattern(i / depth, i % depth);
        oct_viewer_stage_show(stage, picture_of(n_lines, depth, pixels));
        free(pixels);
        stage->model.settings.fit = OCT_FIT_PIXELS;
        const struct oct_view_layout *l = oct_viewer_stage_draw(stage);
        check_pixels(stage, n_lines, depth);
        if (k == 1) { /* it is moved to its edges, and back at once */
            space_press(stage, OCT_ACTION_PAN_RIGHT, 50);
            check_pixels(stage, n_lines, depth);
            double right = oct_draw_layout(stage->draw)->place.x;
            assert_true(right + n_lines == l->bscan.x + l->bscan.w);
            space_press(stage, OCT_ACTION_PAN_LEFT, 1);
            assert_true(fabs(oct_draw_layout(stage->draw)->place.x - right - 0.1 * l->bscan.w) <=
                        1);
            space_press(stage, OCT_ACTION_PAN_DOWN, 50);
            assert_true(oct_draw_layout(stage->draw)->place.y + depth == l->bscan.y + l->bscan.h);
        }
        oct_viewer_stage_close(stage);
    }
}

/* ---- words ---- */

static void busy(struct oct_view_model *model)
{
    struct oct_view_daemon *d = &model->daemon;
    d->bscans_dropped = 12345;
    model->tally.n_bad = 12345;
    model->shown.header.volume = 1234;
    model->shown.header.bscan = 1023;
    model->shown.header.missing_lines = 12345;
    model->frozen = true;
    model->back = 3;
    model->frozen_ns = model->shown.arrival_ns + 9990 * OCT_NS_PER_MS;
    d->known = d->reachable = true;
    d->disk_bytes_free = 12345e9;
    d->record.disk_left_s = 3600 * 99 + 3599;
    d->latency_p50_us = 12345678;
    d->set_line_rate_hz = 250000;
    model->screen_ms = 100;
    model->screen_hz = 60;
    model->measuring = true;
    model->held = OCT_HELD_MARK;
}

TEST(numbers_grow_within_their_fields)
{
    struct oct_viewer_stage *calm = oct_viewer_stage_open_at(screens[0], NULL),
                            *full = oct_viewer_stage_open_at(screens[0], NULL);
    struct oct_view_field a[2 * OCT_VIEW_MOST_FIELDS], b[2 * OCT_VIEW_MOST_FIELDS];
    show_scan(full, 6);
    busy(&full->model);
    unsigned n = oct_view_fields(&calm->model, a), m = oct_view_fields(&full->model, b);
    n += oct_view_details(&calm->model, a + n);
    m += oct_view_details(&full->model, b + m);
    assert_int_equal(n, m);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(a[i].n_letters, b[i].n_letters);
        assert_true(strlen(a[i].phrase.text) <= a[i].n_letters);
        if (strlen(b[i].phrase.text) > b[i].n_letters)
            fail_msg("\"%s\" has no room in %u letters", b[i].phrase.text, b[i].n_letters);
    }
    oct_viewer_stage_close(calm);
    oct_viewer_stage_close(full);
}

/* All of the line fits at each size, and the disk stands where it stood when losses grow. */
TEST(a_number_that_grows_moves_no_other)
{
    for (size_t k = 0; k < N_SIZES; k++) {
        struct oct_viewer_stage *stage = oct_viewer_stage_open_at(screens[k], NULL);
        show_scan(stage, 6);
        stage->model.daemon.known = stage->model.daemon.reachable = true;
        const struct oct_view_layout *l = oct_viewer_stage_draw(stage);
        const struct oct_view_rect line = l->status, area = l->area;
        size_t n_bytes = (size_t)line.h * (size_t)stage->surface->pitch;
        const uint8_t *at =
            (const uint8_t *)stage->surface->pixels + line.y * stage->surface->pitch;
        uint8_t *before = malloc(n_bytes);
        assert_non_null(before);
        memcpy(before, at, n_bytes);
        stage->model.daemon.bscans_dropped = 123456;
        oct_viewer_stage_draw(stage);
        int first = line.w, last = 0;
        for (int x = 0; x < line.w; x++)
            for (int y = 0; y < line.h; y++)
                if (memcmp(before + y * stage->surface->pitch + 4 * x,
                           at + y * stage->surface->pitch + 4 * x, 4) != 0) {
                    first = x < first ? x : first;
                    last = x;
                }
        /* Six digits in place of one. */
        assert_true(last > first && last - first < 6 * l->text_px);
        assert_memory_equal(&line, &l->status, sizeof(line));
        assert_memory_equal(&area, &l->area, sizeof(area));
        free(before);
        oct_viewer_stage_close(stage);
    }
}

/* The words of all texts, in their order. */
static void join(const struct oct_view_help *help, char *all, size_t n_bytes)
{
    all[0] = '\0';
    for (unsigned i = 0; i < help->n; i++)
        snprintf(all + strlen(all), n_bytes - strlen(all), "%s ", help->text[i].text);
}

static void check_help(const struct oct_view_model *model, unsigned n_letters, unsigned n_lines,
                       bool whole)
{
    static struct oct_view_help help;
    static char all[16384];
    oct_view_help_arrange(&help, model, n_letters, n_lines);
    assert_true(help.n > 20 && help.n < OCT_VIEW_MOST_HELP);
    assert_true(help.n_letters <= n_letters && help.n_lines <= n_lines);
    assert_int_equal(help.is_cut, !whole);
    for (unsigned i = 0; i < help.n; i++) {
        const struct oct_view_help_text *t = &help.text[i];
        if (whole)
            assert_true(t->column + strlen(t->text) <= help.n_letters);
        assert_true(t->line < help.n_lines);
        for (unsigned k = 0; k < i && whole; k++) /* none over another */
            assert_true(help.text[k].line != t->line ||
                        help.text[k].column + strlen(help.text[k].text) < t->column ||
                        t->column + strlen(t->text) < help.text[k].column);
    }
    join(&help, all, sizeof(all));
    for (size_t i = 0; i < oct_view_n_keys && whole; i++)
        if (oct_view_keys[i].meaning &&
            (!model->settings.operators || oct_view_action_is_operators(oct_view_keys[i].action)))
            assert_non_null(strstr(all, oct_view_keys[i].meaning));
}

TEST(the_help_is_whole)
{
    struct oct_view_model model;
    oct_view_model_init(&model, "x", true);
    check_help(&model, 131, 37, true); /* 1280x720 */
    check_help(&model, 197, 55, true);
    check_help(&model, 397, 112, true);
    check_help(&model, 86, 33, false); /* 640x480 */
    check_help(&model, 43, 16, false);
    model.settings.operators = true;
    check_help(&model, 131, 37, true);
    oct_view_model_finish(&model);
}

/* ---- what the picture is, and the veil ---- */

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

TEST(what_the_picture_is_follows_stream_daemon_and_user)
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
TEST(without_control_a_lost_publisher_is_gone_when_pictures_stop)
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

TEST(a_frozen_picture_keeps_its_values_within_a_frame)
{
    for (size_t k = 0; k < N_SIZES; k++) {
        struct scene s = open_scene();
        resize(s.stage, screens[k]);
        uint32_t *live = drawn(s.stage);
        freeze(&s);
        uint32_t *frozen = drawn(s.stage);
        const int width = screens[k][0];
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
        assert_true(rows_with(frozen, width, corner, TONE_WARN) > (unsigned)screens[k][1] / 27);
        free(live);
        free(frozen);
        close_scene(&s);
    }
}

TEST(an_old_picture_is_dimmed_and_hatched_with_words_over_it)
{
    for (size_t k = 0; k < N_SIZES; k++) {
        struct scene s = open_scene();
        resize(s.stage, screens[k]);
        uint32_t *live = drawn(s.stage);
        const struct oct_view_rect before = oct_draw_layout(s.stage->draw)->bscan;
        oct_view_model_tick(s.model, 24 * S);
        uint32_t *old = drawn(s.stage);
        const int width = screens[k][0];
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
        assert_true(rows_with(old, width, middle, TONE_BAD) > (unsigned)screens[k][1] / 14);
        assert_true(l->banner.h > 0 && l->banner.y + l->banner.h <= r.y); /* beside the picture */
        free(live);
        free(old);
        close_scene(&s);
    }
}

/* ---- less light ---- */

/* Light of a pixel of sRGB, 0..1 (IEC 61966-2-1). */
static double dim_light_of(uint32_t argb)
{
    static const double weight[] = {0.0722, 0.7152, 0.2126};
    double light = 0;
    for (int i = 0; i < 3; i++) {
        double c = (argb >> 8 * i & 255) / 255.0;
        light += weight[i] * (c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4));
    }
    return light;
}

static double mean_light(const struct oct_viewer_stage *s, struct oct_view_rect r)
{
    double light = 0;
    for (int y = r.y; y < r.y + r.h; y++)
        for (int x = r.x; x < r.x + r.w; x++)
            light += dim_light_of(
                ((uint32_t *)((uint8_t *)s->surface->pixels + y * s->surface->pitch))[x]);
    return light / ((double)r.w * r.h);
}

static void draw(struct oct_viewer_stage *s)
{
    assert_int_equal(oct_draw_frame(s->draw, &s->model, NULL), OCT_OK);
    oct_draw_dim(s->draw, &s->model);
    SDL_RenderFlush(s->renderer);
}

TEST(a_half_and_a_quarter_of_the_light_are_left)
{
    static const double left[] = {0.5, 0.25, 1};
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    const struct oct_view_rect layer = {400, 300, 100, 40}, window = {0, 0, 1280, 720};
    draw(s);
    struct oct_view_rect r = oct_draw_layout(s->draw)->bscan;
    struct oct_view_rect bright = {r.x + r.w / 2, r.y + r.h * 31 / 100, 20, r.h / 50};
    double full = mean_light(s, bright), all = mean_light(s, window);
    assert_true(full > 0.9);
    assert_true(mean_light(s, layer) < full);
    for (int i = 0; i < 3; i++) {
        oct_view_model_apply(&s->model, OCT_ACTION_DIM, 1);
        s->model.message[0] = '\0';
        draw(s);
        assert_true(fabs(mean_light(s, bright) / full - left[i]) < 0.02);
        assert_true(fabs(mean_light(s, window) / all - left[i]) < 0.03);
    }
    oct_viewer_stage_close(s);
}

TEST(alarms_keep_their_light)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    oct_view_model_tick(&s->model, 60 * OCT_NS_PER_S);
    s->model.connected = s->model.daemon.known = s->model.daemon.reachable = true;
    s->model.has_control = true;
    snprintf(s->model.daemon.state, sizeof(s->model.daemon.state), "error");
    draw(s);
    struct oct_view_rect banner = oct_draw_layout(s->draw)->banner;
    struct oct_view_rect bscan = oct_draw_layout(s->draw)->bscan;
    assert_true(banner.w > 1000 && banner.h > 20);
    double alarm = mean_light(s, banner), picture = mean_light(s, bscan);
    oct_view_model_apply(&s->model, OCT_ACTION_DIM, 2);
    oct_view_model_apply(&s->model, OCT_ACTION_DIM, 1);
    s->model.message[0] = '\0';
    assert_int_equal(s->model.settings.light, OCT_LIGHT_QUARTER);
    draw(s);
    assert_true(mean_light(s, banner) == alarm);
    assert_true(mean_light(s, bscan) < 0.27 * picture);
    /* Around it all is dark: the rows above and below, and its ends. */
    assert_true(mean_light(s, (struct oct_view_rect){0, banner.y, banner.x, banner.h}) < 0.01);
    oct_viewer_stage_close(s);
}
