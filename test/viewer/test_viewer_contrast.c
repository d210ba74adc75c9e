/* The contrast of every text that the window draws, in all its states, against the very pixels that
 * it is drawn on: 4.5 at least (WCAG 2.1, 1.4.3). The linker leads oct_text_draw here
 * (Makefile). */
#include "pipeline/base/clock.h"
#include "test/rig/tap.h"
#include "test/rig/viewer_daemon.h"
#include "test/rig/viewer_maps.h"
#include "test/rig/viewer_scene.h"
#include "test/rig/viewer_stage.h"
#include "viewer/draw/canvas.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S OCT_NS_PER_S
#define LEAST_CONTRAST 4.5
/* Of the pixels under a text, those of thin lines that pass through its rectangle. */
#define MOST_STRAYS 0.06

/* What the wrapper, which has no context of its own, looks at. */
static struct {
    SDL_Renderer *renderer;
    const char *scene;
    unsigned n_texts, n_faint;
} looks;

static double linear(unsigned level)
{
    double c = level / 255.0;
    return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

static double luminance(uint32_t rgb)
{
    return 0.2126 * linear(rgb >> 16 & 255) + 0.7152 * linear(rgb >> 8 & 255) +
           0.0722 * linear(rgb & 255);
}

static double contrast(uint32_t a, uint32_t b)
{
    double la = luminance(a), lb = luminance(b);
    return (fmax(la, lb) + 0.05) / (fmin(la, lb) + 0.05);
}

/* The share of pixels in the rectangle on which the ink is too faint. */
static double faint_share(SDL_Rect r, uint32_t ink)
{
    int width, height;
    size_t n_faint = 0;
    uint32_t last = 0;
    bool last_is_faint = contrast(ink, last) < LEAST_CONTRAST;
    SDL_GetRendererOutputSize(looks.renderer, &width, &height);
    if (!SDL_IntersectRect(&r, &(SDL_Rect){0, 0, width, height}, &r))
        return 0;
    uint32_t *px = malloc((size_t)r.w * (size_t)r.h * sizeof(*px));
    assert_non_null(px);
    assert_int_equal(
        SDL_RenderReadPixels(looks.renderer, &r, SDL_PIXELFORMAT_ARGB8888, px, r.w * 4), 0);
    for (int i = 0; i < r.w * r.h; i++) {
        if ((px[i] & 0xffffff) != last) {
            last = px[i] & 0xffffff;
            last_is_faint = contrast(ink, last) < LEAST_CONTRAST;
        }
        n_faint += last_is_faint;
    }
    free(px);
    return (double)n_faint / ((double)r.w * r.h);
}

/* The names are the linker's. NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c) */
int __real_oct_text_draw(struct oct_text *text, enum oct_text_size size, int x, int y,
                         const char *string, uint32_t rgb);
int __wrap_oct_text_draw(struct oct_text *text, enum oct_text_size size, int x, int y,
                         const char *string, uint32_t rgb);

int __wrap_oct_text_draw(struct oct_text *text, enum oct_text_size size, int x, int y,
                         const char *string, uint32_t rgb)
{
    SDL_Rect r = {x, y, oct_text_width(text, size, string), oct_text_line_height(text, size)};
    double share = r.w > 0 ? faint_share(r, rgb) : 0;
    looks.n_texts += r.w > 0;
    if (share > MOST_STRAYS) {
        looks.n_faint++;
        print_error("%s: \"%s\" in %06x is too faint on %.0f %% of its pixels\n", looks.scene,
                    string, rgb, 100 * share);
    }
    return __real_oct_text_draw(text, size, x, y, string, rgb);
}
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c) */

/* ---- states of the window ---- */

struct window {
    struct oct_viewer_stage *stage;
    struct oct_view_model *model;
    struct oct_view_daemon d;
    struct oct_view_tally tally;
};

static void hear(struct window *w)
{
    w->d.answer_ns++;
    oct_scene_hear(w->model, &w->d, OCT_WISH_NONE, false, "");
}

/* A window whose picture is white all over, or black; octd records. */
static struct window open_window(bool white)
{
    struct window w = {.stage = oct_viewer_stage_open()};
    struct oct_picture_header h = oct_scene_header(1, "a");
    size_t n = (size_t)h.n_lines * h.depth;
    uint8_t *pixels = malloc(n);
    assert_non_null(pixels);
    memset(pixels, white ? 255 : 0, n);
    w.model = &w.stage->model;
    assert_int_equal(oct_view_picture_set(&w.model->shown, &h, pixels, n, NULL), OCT_OK);
    free(pixels);
    w.model->serial++;
    assert_int_equal(oct_view_daemon_read(&w.d, oct_scene_status, strlen(oct_scene_status), NULL),
                     OCT_OK);
    w.d.reachable = true;
    for (h.frame_num = 0; h.frame_num <= 50; h.frame_num++)
        oct_view_tally_add(&w.tally, &h, 10 * S + h.frame_num * S / 50);
    w.model->shown.arrival_ns = 11 * S;
    oct_view_model_report(w.model, &w.tally, true);
    hear(&w);
    looks.renderer = w.stage->renderer;
    return w;
}

static void look(struct window *w, const char *scene)
{
    looks.scene = scene;
    assert_int_equal(oct_draw_frame(w->stage->draw, w->model, NULL), OCT_OK);
}

static void show_enface(struct window *w, float value)
{
    struct oct_view_image image = oct_scene_enface(8, 120);
    for (uint32_t i = 0; i < 8; i++)
        oct_scene_enface_fill(&image, i, value);
    oct_view_overlay_take(w->model, &oct_view_overlay_enface, &image);
    oct_view_image_finish(&image);
}

static void do_each(struct window *w, const enum oct_view_action *actions, size_t n,
                    const char *scene)
{
    for (size_t i = 0; i < n; i++) {
        oct_view_model_apply(w->model, actions[i], 1);
        look(w, scene);
    }
}
#define DO(w, scene, ...)                                                                          \
    do_each(w, (const enum oct_view_action[]){__VA_ARGS__},                                        \
            sizeof((const enum oct_view_action[]){__VA_ARGS__}) / sizeof(enum oct_view_action),    \
            scene)

static void look_at_all(bool white)
{
    struct window w = open_window(white);
    show_enface(&w, white ? 70 : 10);
    look(&w, "recording, alarms");
    DO(&w, "layouts", OCT_ACTION_LAYOUT, OCT_ACTION_LAYOUT, OCT_ACTION_DETAILS, OCT_ACTION_GUIDE);
    DO(&w, "guide", OCT_ACTION_GUIDE, OCT_ACTION_AVERAGE, OCT_ACTION_AVERAGE);
    DO(&w, "palettes", OCT_ACTION_PALETTE, OCT_ACTION_PALETTE, OCT_ACTION_PALETTE);
    DO(&w, "points", OCT_ACTION_MEASURE, OCT_ACTION_MARK, OCT_ACTION_HOLD, OCT_ACTION_LEVEL_UP,
       OCT_ACTION_MEASURE);
    oct_view_model_say(w.model, "a message");
    DO(&w, "frozen", OCT_ACTION_FREEZE, OCT_ACTION_LAYOUT);
    DO(&w, "frozen, help", OCT_ACTION_HELP, OCT_ACTION_HELP, OCT_ACTION_FREEZE);
    w.d.record.active = w.d.disk_slow = false;
    w.d.record.volumes_written += 2;
    hear(&w);
    look(&w, "saved, B-scans are missing");
    DO(&w, "not recording", OCT_ACTION_ACKNOWLEDGE, OCT_ACTION_PSEUDONYM);
    oct_view_model_type(w.model, "P-2");
    look(&w, "typing");
    oct_view_model_end_typing(w.model, false);
    w.d.record.disk_left_s = 100;
    for (uint64_t second = 12; second < 30; second++) {
        w.tally.last_arrival_ns = second * S;
        oct_view_tally_add(&w.tally, &w.model->shown.header, second * S);
        oct_view_model_report(w.model, &w.tally, true);
        oct_view_model_tick(w.model, second * S);
        w.d.record.active = true;
        w.d.lines_missing++;
        hear(&w);
    }
    look(&w, "disk low, lines missing");
    w.d.record.active = false;
    DO(&w, "operator", OCT_ACTION_LOCK, OCT_ACTION_HELP, OCT_ACTION_HELP, OCT_ACTION_LOCK);
    oct_view_model_tick(w.model, 60 * S);
    look(&w, "no signal");
    DO(&w, "no signal", OCT_ACTION_LAYOUT, OCT_ACTION_LAYOUT, OCT_ACTION_FREEZE, OCT_ACTION_FREEZE);
    strcpy(w.d.state, "idle");
    hear(&w);
    look(&w, "idle");
    w.d.reachable = false;
    hear(&w);
    oct_view_model_report(w.model, &w.tally, false);
    look(&w, "octd gone");
    w.model->playback.active = true;
    strcpy(w.model->playback.file.name, "a.h5");
    w.model->playback.file.n_bscans = 8;
    look(&w, "playback");
    w.model->playback.read.valid = true;
    w.model->playback.file.verdict = OCT_MARK_REPEAT;
    look(&w, "playback, repeat");
    oct_viewer_stage_close(w.stage);
}

static double fibres_at(uint32_t j)
{
    return 20 + 0.3 * j;
}

static double change_at(uint32_t bscan, uint32_t line)
{
    return 20 - 40. * line / OCT_MAPS_LINES + 0 * bscan;
}

/* Her four exams of either eye and mark, and one of a patient who has no name. */
static void show_exams(struct window *w, bool white)
{
    struct oct_view_exams *e = &w->model->exams;
    struct oct_view_exam read[5] = {{.name = ""}};
    for (unsigned i = 0; i < 5; i++) {
        snprintf(read[i].name, sizeof(read[i].name), i ? "then%u.h5" : "now.h5", i);
        snprintf(read[i].pseudonym, sizeof(read[i].pseudonym), i < 4 ? "P-1" : "");
        snprintf(read[i].eye, sizeof(read[i].eye), i % 2 ? "OS" : "OD");
        snprintf(read[i].begun, sizeof(read[i].begun), "2026-0%u-01 10:00", i + 1);
        read[i].verdict = (enum oct_volume_mark)(i % 3);
        read[i].n_bscans = 60;
        read[i].n_valid = i ? 60 : 40;
        read[i].field_mm[0] = read[i].field_mm[1] = 6;
        read[i].has_thumb = true;
        memset(read[i].thumb, white ? 255 : 0, sizeof(read[i].thumb));
    }
    e->is_open = true;
    e->n_files = 6;
    oct_view_exams_add(e, read, 5);
    look(w, "exams");
    const struct oct_view_layout *l = oct_draw_layout(w->stage->draw);
    const struct oct_view_rect row = {l->list.x, l->list.y + 2 * l->row_height, l->list.w,
                                      l->row_height};
    /* Nothing lies over them. */
    assert_true(oct_viewer_stage_count(w->stage, row, RGB_BUTTON) > (unsigned)(row.w * row.h / 2));
    oct_view_list_move(&e->rows, 1, 10);
    oct_view_exams_type(e, "P");
    look(w, "exams, searched");
    e->n_left_out = 3;
    look(w, "exams, not all of them");
    e->is_open = false;
}

static void look_at_clinic(bool white)
{
    struct window w = open_window(white);
    struct oct_view_playback *p = &w.model->playback;
    oct_maps_play(w.stage, "OD", fibres_at);
    look(&w, "thickness");
    p->slice_line = OCT_MAPS_LINES - 1;
    DO(&w, "nerve fibres", OCT_ACTION_LAYERS, OCT_ACTION_LAYERS, OCT_ACTION_LAYERS);
    w.model->settings.layers = w.model->settings.all_layers = true;
    look(&w, "nerve fibres");
    oct_maps_compare(w.stage, change_at);
    p->follow.has_before = true;
    look(&w, "compared");
    p->follow.state = OCT_FOLLOW_FAILED;
    snprintf(p->follow.why, sizeof(p->follow.why), "no common place");
    look(&w, "not compared");
    p->follow.state = OCT_FOLLOW_READS;
    look(&w, "compares");
    p->follow.is_on = false;
    show_exams(&w, white);
    DO(&w, "report", OCT_ACTION_REPORT);
    oct_view_report_page_take(w.model, "{}", NULL);
    look(&w, "report, made");
    oct_view_report_page_take(w.model, NULL, "/r.d/now-report.pdf: is there already");
    look(&w, "report, refused");
    DO(&w, "export", OCT_ACTION_EXPORT);
    for (w.model->exported.state = OCT_EXPORT_RUNS; w.model->exported.state <= OCT_EXPORT_FAILED;
         w.model->exported.state++)
        look(&w, "export");
    oct_viewer_stage_close(w.stage);
}

TEST(every_text_has_enough_contrast)
{
    looks.n_texts = looks.n_faint = 0;
    for (unsigned white = 0; white < 2; white++) {
        look_at_all(white);
        look_at_clinic(white);
    }
    struct oct_viewer_stage *stage = oct_viewer_stage_open();
    stage->model.has_picture = false;
    looks.renderer = stage->renderer;
    looks.scene = "waiting";
    assert_int_equal(oct_draw_frame(stage->draw, &stage->model, NULL), OCT_OK);
    oct_viewer_stage_close(stage);
    assert_true(looks.n_texts > 1000);
    assert_int_equal(looks.n_faint, 0);
}

/* ---- marks ---- */

/* Of the pixels of that ink in a rectangle, the share beside which, within two lines' thickness, no
 * pixel has enough contrast; counts them. */
static double lost_share(const struct oct_viewer_stage *s, struct oct_view_rect r, uint32_t ink,
                         unsigned *n)
{
    const int reach = 2 * (oct_draw_layout(s->draw)->text_px / 10 + 1);
    unsigned n_lost = 0;
    *n = 0;
    for (int y = r.y + reach; y < r.y + r.h - reach; y++)
        for (int x = r.x + reach; x < r.x + r.w - reach; x++) {
            if (oct_viewer_stage_pixel(s, x, y) != ink)
                continue;
            bool is_seen = false;
            for (int d = -reach; d <= reach && !is_seen; d++)
                is_seen = contrast(ink, oct_viewer_stage_pixel(s, x + d, y)) >= LEAST_CONTRAST ||
                          contrast(ink, oct_viewer_stage_pixel(s, x, y + d)) >= LEAST_CONTRAST;
            n_lost += !is_seen;
            (*n)++;
        }
    return *n > 0 ? (double)n_lost / *n : 0;
}

TEST(marks_and_scale_bars_are_seen_on_light_and_dark)
{
    for (unsigned white = 0; white < 2; white++) {
        struct window w = open_window(white);
        const struct oct_view_layout *l = oct_draw_layout(w.stage->draw);
        unsigned n;
        show_enface(&w, white ? 70 : 10);
        w.model->settings.guide = false; /* its arrow is filled */
        DO(&w, "marks", OCT_ACTION_LAYOUT, OCT_ACTION_MEASURE, OCT_ACTION_MARK);
        oct_view_model_set_caliper(w.model, (struct oct_view_point){20, 30},
                                   (struct oct_view_point){90, 80});
        look(&w, "marks");
        const struct {
            struct oct_view_rect in;
            uint32_t ink;
        } marks[] = {{l->picture, RGB_PLAIN},
                     {l->picture, RGB_MEASURE},
                     {l->picture, RGB_MARK},
                     {l->enface_at, RGB_PLAIN}};
        for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
            const double lost = lost_share(w.stage, marks[i].in, marks[i].ink, &n);
            if (n < 10 || lost > 0.02)
                fail_msg("%s: %u pixels of %06x, %.0f %% are lost", white ? "white" : "black", n,
                         marks[i].ink, 100 * lost);
        }
        oct_viewer_stage_close(w.stage);
    }
}

/* ---- words on pictures ---- */

/* Inks of words on a picture, on the shade that labels have there. */
TEST(words_on_any_picture_have_enough_contrast)
{
    static const uint32_t inks[] = {RGB_PLAIN, RGB_DIM,     RGB_GOOD,    RGB_WARN,
                                    RGB_BAD,   RGB_MEASURE, RGB_MARK,    RGB_CELL,
                                    RGB_ILM,   RGB_RPE,     RGB_PLAYBACK};
    for (size_t i = 0; i < sizeof(inks) / sizeof(inks[0]); i++)
        for (unsigned picture = 0; picture < 256; picture++) {
            uint32_t under = 0;
            for (int shift = 0; shift < 24; shift += 8) {
                uint32_t ground = RGB_GROUND >> shift & 255;
                under |=
                    (ground * OCT_DRAW_LABEL_SHADE + picture * (255 - OCT_DRAW_LABEL_SHADE)) / 255
                    << shift;
            }
            assert_true(contrast(inks[i], under) >= LEAST_CONTRAST);
        }
    assert_true(contrast(0xffffff, 0x000000) > 20.99); /* as WCAG says */
    assert_true(contrast(0x777777, 0xffffff) < 4.5 && contrast(0x767676, 0xffffff) > 4.5);
}
