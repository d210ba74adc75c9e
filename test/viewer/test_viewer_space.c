/* The window's room: how much of it the B-scan has, that nothing overlaps, the divider, 1:1 pixels,
 * fields that stay where they are, help that is whole. */
#include "test/rig/tap.h"
#include "test/rig/viewer_scene.h"
#include "viewer/draw/draw.h"
#include "viewer/input.h"
#include "viewer/model/clock.h"
#include "viewer/model/words.h"
#include "viewer/settings.h"

#include <SDL.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEPTH_MM 2.0

static const int sizes[][2] = {{1280, 720}, {1920, 1080}, {3840, 2160}};
static const double scans_mm[] = {1.3, 6};
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))
#define N_SCANS (sizeof(scans_mm) / sizeof(scans_mm[0]))

struct stage {
    SDL_Surface *surface;
    SDL_Renderer *renderer;
    struct oct_draw *draw;
    struct oct_view_model model;
    struct oct_view_input input;
};

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

static void show(struct stage *stage, uint32_t n_lines, uint32_t depth, const uint8_t *pixels)
{
    struct oct_view_picture picture = picture_of(n_lines, depth, pixels);
    struct oct_view_tally tally = {0};

    oct_view_tally_add(&tally, &picture.header, 5 * OCT_NS_PER_S);
    oct_view_model_offer(&stage->model, &picture);
    oct_view_model_report(&stage->model, &tally, true);
    oct_view_picture_finish(&picture);
}

static struct stage *stage_open(const int size[2])
{
    struct stage *stage = calloc(1, sizeof(*stage));

    assert_non_null(stage);
    stage->surface =
        SDL_CreateRGBSurfaceWithFormat(0, size[0], size[1], 32, SDL_PIXELFORMAT_ARGB8888);
    stage->renderer = SDL_CreateSoftwareRenderer(stage->surface);
    assert_true(stage->surface && stage->renderer);
    assert_int_equal(oct_draw_create(&stage->draw, stage->renderer, NULL, NULL), OCT_OK);
    oct_view_model_init(&stage->model, "tcp://127.0.0.1:5702", true);
    oct_view_model_tick(&stage->model, 5 * OCT_NS_PER_S);
    oct_view_input_init(&stage->input);
    return stage;
}

static void stage_close(struct stage *stage)
{
    oct_draw_destroy(stage->draw);
    SDL_DestroyRenderer(stage->renderer);
    SDL_FreeSurface(stage->surface);
    oct_view_model_finish(&stage->model);
    free(stage);
}

static const struct oct_view_layout *stage_draw(struct stage *stage)
{
    assert_int_equal(oct_draw_frame(stage->draw, &stage->model, NULL), OCT_OK);
    SDL_RenderFlush(stage->renderer);
    return oct_draw_layout(stage->draw);
}

static uint32_t pixel_at(const struct stage *stage, int x, int y)
{
    uint32_t pixel;

    assert_true(x >= 0 && x < stage->surface->w && y >= 0 && y < stage->surface->h);
    memcpy(&pixel, (const uint8_t *)stage->surface->pixels + y * stage->surface->pitch + 4 * x,
           sizeof(pixel));
    return pixel & 0xffffffu;
}

/* A white B-scan of 200 A-lines and 400 pixels, square, of so many millimetres; a black en face
 * picture of 200 B-scans. */
static void show_scan(struct stage *stage, double mm)
{
    uint8_t *white = malloc(200 * 400);
    struct oct_view_image enface = oct_scene_enface(200, 200);

    assert_non_null(white);
    memset(white, 255, 200 * 400);
    show(stage, 200, 400, white);
    free(white);
    for (uint32_t i = 0; i < 200; i++)
        oct_scene_enface_fill(&enface, i, 10);
    oct_view_model_offer_enface(&stage->model, &enface);
    oct_view_image_finish(&enface);
    stage->model.daemon.lateral_um = stage->model.daemon.slow_um = mm * 1000 / 200;
    stage->model.daemon.axial_um = DEPTH_MM * 1000 / 400;
}

/* How much of the window is the B-scan's white. */
static double white_share(const struct stage *stage)
{
    const struct oct_view_rect r = oct_draw_layout(stage->draw)->bscan;
    unsigned n = 0;

    for (int y = r.y; y < r.y + r.h; y++)
        for (int x = r.x; x < r.x + r.w; x++)
            n += pixel_at(stage, x, y) == 0xffffff;
    return (double)n / stage->surface->w / stage->surface->h;
}

static void the_picture_has_most_of_the_window(void **state)
{
    for (size_t k = 0; k < 2 * N_SIZES * N_SCANS; k++) {
        struct stage *stage = stage_open(sizes[k / N_SCANS % N_SIZES]);
        const double dpi = k < N_SIZES * N_SCANS ? 96 : 400; /* usual letters, the largest */
        show_scan(stage, scans_mm[k % N_SCANS]);
        oct_draw_set_text(stage->draw, 12, dpi);
        for (int two = 0; two < 2; two++) {
            stage->model.settings.arrangement = two ? OCT_ARRANGEMENT_TWO : OCT_ARRANGEMENT_ALONE;
            const struct oct_view_layout *l = stage_draw(stage);
            double share = white_share(stage);
            print_message("%dx%d, %.0f dpi, %.1f mm, %s: %.1f %%\n", stage->surface->w,
                          stage->surface->h, dpi, scans_mm[k % N_SCANS],
                          two ? "beside en face" : "alone", 100 * share);
            assert_true(share >= (two ? 0.40 : 0.60));
            assert_int_equal(l->enface.w > 0, two);
        }
        stage_close(stage);
    }
}

static void words_say_how_far_the_scales_differ(void **state)
{
    struct stage *stage = stage_open(sizes[0]);
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
    stage_close(stage);
}

/* ---- the layout ---- */

static bool is_apart(struct oct_view_rect a, struct oct_view_rect b)
{
    return a.w <= 0 || a.h <= 0 || b.w <= 0 || b.h <= 0 || a.x + a.w <= b.x || b.x + b.w <= a.x ||
           a.y + a.h <= b.y || b.y + b.h <= a.y;
}

static void check_apart(const struct oct_view_layout *l, const struct oct_view_contents *c)
{
    struct oct_view_rect all[16 + OCT_VIEW_MOST_BUTTONS] = {
        l->recording, l->banner,  l->bscan,    l->guide, l->colours,  l->enface,
        l->profile,   l->divider, l->spectrum, l->slice, l->timeline, l->status};
    size_t n = 12;

    for (unsigned i = 0; i < c->n_buttons; i++) {
        struct oct_view_rect row = c->button[i].is_patients ? l->patient : l->buttons;
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
static void nothing_lies_over_another(void **state)
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
                                      .has_slice = i & 2,
                                      .n_buttons = i & 8 ? 14 : 8};
        struct oct_view_layout l;
        c.text_px = oct_view_layout_text_px(12, 96, size[0], size[1]);
        c.status_height = i & 16 ? 5 * c.text_px : c.text_px * 3 / 2;
        c.banner_height = i & 4 ? 4 * c.text_px : 0;
        c.guide_height = i & 4 ? 6 * c.text_px : 0;
        for (unsigned k = 0; k < c.n_buttons; k++)
            c.button[k] =
                (struct oct_view_button_room){i & 8 && k < 5, k == 2, c.text_px * (int)(3 + k % 4)};
        oct_view_layout_window(&l, &c);
        check_apart(&l, &c);
        assert_int_equal(l.slice.w > 0, c.has_slice && c.n_panels > 1);
        assert_int_equal(l.spectrum.w > 0, !c.has_slice && c.n_panels == 4);
        assert_int_equal(l.banner.h > 0, c.banner_height > 0);
        assert_int_equal(l.patient.w > 0, (i & 8) != 0);
        if (size[0] >= 1280)
            assert_int_equal(l.guide.w > 0, c.guide_height > 0);
    }
}

static bool stacks(struct stage *stage, double fast_mm, double slow_mm, enum oct_view_fit fit)
{
    stage->model.settings.arrangement = OCT_ARRANGEMENT_TWO;
    stage->model.settings.fit = fit;
    stage->model.daemon.lateral_um = fast_mm * 1000 / 200;
    stage->model.daemon.slow_um = slow_mm * 1000 / 200;
    const struct oct_view_layout *l = stage_draw(stage);
    assert_int_equal(l->is_stacked, l->enface.y > l->bscan.y);
    return l->is_stacked;
}

static void a_wide_scan_stands_above_its_en_face_picture(void **state)
{
    for (size_t k = 0; k < N_SIZES; k++) {
        struct stage *stage = stage_open(sizes[k]);
        show_scan(stage, 6);
        assert_true(stacks(stage, 6, 1, OCT_FIT_FILL)); /* both are wide */
        assert_true(stacks(stage, 12, 3, OCT_FIT_FILL));
        assert_true(stacks(stage, 12, 3, OCT_FIT_MICROMETRES));
        assert_false(stacks(stage, 6, 6, OCT_FIT_FILL)); /* a square one has room at the side */
        assert_false(stacks(stage, 1.3, 1.3, OCT_FIT_FILL));
        assert_false(stacks(stage, 1.3, 1.3, OCT_FIT_MICROMETRES));
        assert_false(stacks(stage, NAN, NAN, OCT_FIT_FILL));
        stage_close(stage);
    }
}

/* ---- the divider ---- */

static void mouse(struct stage *stage, uint32_t type, int x, int y, int clicks)
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
    stage_draw(stage);
}

/* Drags the divider by pixels, and returns where its middle is then. */
static int drag_divider(struct stage *stage, int by)
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

static void the_divider_is_dragged_and_remembered(void **state)
{
    const char *folder = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    char path[512];

    snprintf(path, sizeof(path), "%s/space-%d.ini", folder, (int)getpid());
    for (int stacked = 0; stacked < 2; stacked++) {
        struct stage *stage = stage_open(sizes[0]), *next = stage_open(sizes[0]);
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
        stage_close(stage);
        stage_close(next);
    }
    remove(path);
}

/* ---- 1:1 pixels ---- */

/* Every pixel differs from its neighbours. */
static uint8_t pattern(unsigned line, unsigned depth)
{
    return (uint8_t)(37 * line + 91 * depth);
}

static void check_pixels(struct stage *stage, unsigned n_lines, unsigned depth)
{
    const struct oct_view_rect r = oct_draw_picture_rect(stage->draw);
    const struct oct_view_rectf place = oct_draw_place(stage->draw);
    unsigned n_wrong = 0;

    assert_true(place.w == n_lines && place.h == depth);
    /* In the middle, where no words stand. */
    for (int y = r.y + r.h / 4; y < r.y + r.h / 2; y++)
        for (int x = r.x + r.w / 4; x < r.x + r.w * 3 / 4; x++)
            n_wrong += (pixel_at(stage, x, y) & 255) !=
                       pattern((unsigned)(x - (int)place.x), (unsigned)(y - (int)place.y));
    assert_int_equal(n_wrong, 0);
}

static void press(struct stage *stage, enum oct_view_action action, unsigned times)
{
    /* As a key does it: the lens knows what the last frame showed. */
    oct_view_lens_see(&stage->model.lens, oct_draw_layout(stage->draw)->bscan,
                      oct_draw_place(stage->draw));
    oct_view_model_apply(&stage->model, action, times);
    stage_draw(stage);
}

static void a_pixel_is_one_of_the_screen(void **state)
{
    static const unsigned pictures[][2] = {{301, 203}, {1500, 900}}; /* smaller, larger */

    for (size_t k = 0; k < 2; k++) {
        const unsigned n_lines = pictures[k][0], depth = pictures[k][1];
        struct stage *stage = stage_open(sizes[0]);
        uint8_t *pixels = malloc((size_t)n_lines * depth);
        assert_non_null(pixels);
        for (unsigned i = 0; i < n_lines * depth; i++)
            pixels[i] = pattern(i / depth, i % depth);
        show(stage, n_lines, depth, pixels);
        free(pixels);
        stage->model.settings.fit = OCT_FIT_PIXELS;
        const struct oct_view_layout *l = stage_draw(stage);
        check_pixels(stage, n_lines, depth);
        if (k == 1) { /* it is moved to its edges, and back at once */
            press(stage, OCT_ACTION_PAN_RIGHT, 50);
            check_pixels(stage, n_lines, depth);
            double right = oct_draw_place(stage->draw).x;
            assert_true(right + n_lines == l->bscan.x + l->bscan.w);
            press(stage, OCT_ACTION_PAN_LEFT, 1);
            assert_true(fabs(oct_draw_place(stage->draw).x - right - 0.1 * l->bscan.w) <= 1);
            press(stage, OCT_ACTION_PAN_DOWN, 50);
            assert_true(oct_draw_place(stage->draw).y + depth == l->bscan.y + l->bscan.h);
        }
        stage_close(stage);
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

static void numbers_grow_within_their_fields(void **state)
{
    struct stage *calm = stage_open(sizes[0]), *full = stage_open(sizes[0]);
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
    stage_close(calm);
    stage_close(full);
}

/* All of the line fits at each size, and the disk stands where it stood when losses grow. */
static void a_number_that_grows_moves_no_other(void **state)
{
    for (size_t k = 0; k < N_SIZES; k++) {
        struct stage *stage = stage_open(sizes[k]);
        show_scan(stage, 6);
        stage->model.daemon.known = stage->model.daemon.reachable = true;
        const struct oct_view_layout *l = stage_draw(stage);
        const struct oct_view_rect line = l->status, area = l->area;
        size_t n_bytes = (size_t)line.h * (size_t)stage->surface->pitch;
        const uint8_t *at =
            (const uint8_t *)stage->surface->pixels + line.y * stage->surface->pitch;
        uint8_t *before = malloc(n_bytes);
        assert_non_null(before);
        memcpy(before, at, n_bytes);
        stage->model.daemon.bscans_dropped = 123456;
        stage_draw(stage);
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
        stage_close(stage);
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

static void the_help_is_whole(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_picture_has_most_of_the_window),
        cmocka_unit_test(words_say_how_far_the_scales_differ),
        cmocka_unit_test(nothing_lies_over_another),
        cmocka_unit_test(a_wide_scan_stands_above_its_en_face_picture),
        cmocka_unit_test(the_divider_is_dragged_and_remembered),
        cmocka_unit_test(a_pixel_is_one_of_the_screen),
        cmocka_unit_test(numbers_grow_within_their_fields),
        cmocka_unit_test(a_number_that_grows_moves_no_other),
        cmocka_unit_test(the_help_is_whole),
    };
    return cmocka_run_group_tests_name("the window's room", tests, NULL, NULL);
}
