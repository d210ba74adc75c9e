/* Blood flow in the viewer: its colours over the B-scan, the bulk motion, the scale of speeds, the
 * angiogram with the places that moved, and the keys that ask for them. */
#include "pipeline/base/clock.h"
#include "test/rig/tap.h"
#include "test/rig/viewer_daemon.h"
#include "test/rig/viewer_scene.h"
#include "test/rig/viewer_stage.h"
#include "viewer/draw/draw.h"
#include "viewer/model/buttons.h"
#include "viewer/model/model.h"
#include "viewer/model/words.h"

#include <SDL.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S OCT_NS_PER_S
#define WARN 0xe6b866u
#define GOOD 0x7fc8a0u
#define BAD 0xf08a7cu
enum { W = 120, H = 100 }; /* A-lines and depths, as oct_scene_layered */

static void put_number(struct oct_image_header *h, const char *name, double value)
{
    struct oct_image_header_number *n = &h->numbers[h->n_numbers++];
    snprintf(n->name, sizeof(n->name), "%s", name);
    n->n_values = 1;
    n->values[0] = value;
}

static struct oct_view_image image_of(struct oct_image_header h, const void *values, size_t n_bytes)
{
    struct oct_view_image image = {0};
    snprintf(h.acquisition_id, sizeof(h.acquisition_id), "a");
    assert_int_equal(oct_view_image_set(&image, &h, values, n_bytes, NULL), OCT_OK);
    image.arrival_ns = 11 * S;
    return image;
}

/* d of all pixels, but nothing flows outside A-lines 40 .. 59, depths 60 .. 79. */
static struct oct_view_image flow_of(uint8_t d, double bulk, bool moved, uint64_t frame_num)
{
    static uint8_t values[W * H];
    struct oct_image_header h = {.dataset = "analysis/flow",
                                 .frame_num = frame_num,
                                 .type = OCT_SAMPLE_U8,
                                 .rank = 2,
                                 .dims = {W, H}};
    memset(values, 0, sizeof(values));
    for (unsigned j = 40; j < 60; j++)
        memset(values + j * H + 60, d, 20);
    put_number(&h, "bulk_decorrelation", bulk);
    put_number(&h, "snr_db", 12.25);
    put_number(&h, "tau_us", 5020);
    put_number(&h, "moved", moved);
    return image_of(h, values, sizeof(values));
}

/* A third of the A-lines each: towards the beam at the limit, still, away; at depths 60 .. 79, and
 * nothing is known above. */
static struct oct_view_image velocity_of(double limit, uint64_t frame_num)
{
    static float values[W / 2 * H]; /* two A-lines at each point */
    struct oct_image_header h = {.dataset = "analysis/velocity",
                                 .frame_num = frame_num,
                                 .type = OCT_SAMPLE_F32,
                                 .rank = 2,
                                 .dims = {W / 2, H},
                                 .unit = "mm/s"};
    for (unsigned j = 0; j < W / 2; j++)
        for (unsigned d = 0; d < H; d++)
            values[j * H + d] = d < 60 || d >= 80 ? NAN : (float)(limit * ((int)(j / 20) - 1));
    put_number(&h, "ambiguous_mm_s", limit);
    put_number(&h, "tau_us", 10);
    return image_of(h, values, sizeof(values));
}

static void take(struct oct_viewer_stage *s, const struct oct_view_overlay *o,
                 struct oct_view_image image)
{
    s->model.shown.header.frame_num = image.header.frame_num;
    s->model.serial++;
    oct_view_overlay_take(&s->model, o, &image);
    oct_view_image_finish(&image);
}

/* The colour in the middle of a pixel of the B-scan. */
static uint32_t colour_at(struct oct_viewer_stage *s, double line, double depth)
{
    const struct oct_view_rectf p = oct_draw_layout(s->draw)->place;
    return oct_viewer_stage_pixel(s, (int)(p.x + (line + 0.5) / W * p.w),
                                  (int)(p.y + (depth + 0.5) / H * p.h));
}

static int red(uint32_t rgb)
{
    return (int)(rgb >> 16 & 255);
}

static int blue(uint32_t rgb)
{
    return (int)(rgb & 255);
}

static void what_flows_is_red_and_the_rest_as_it_was(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    oct_viewer_stage_draw(s);
    const uint32_t before = colour_at(s, 50, 70), beside = colour_at(s, 30, 70);
    assert_true(red(before) == blue(before));
    take(s, &oct_view_overlay_flow, flow_of(255, 0.04, false, 1));
    oct_viewer_stage_draw(s);
    assert_true(red(colour_at(s, 50, 70)) > 200 && blue(colour_at(s, 50, 70)) < 80);
    assert_int_equal(colour_at(s, 30, 70), beside);
    take(s, &oct_view_overlay_flow, flow_of(64, 0.04, false, 1)); /* less of it */
    oct_viewer_stage_draw(s);
    assert_true(red(colour_at(s, 50, 70)) > 90 && red(colour_at(s, 50, 70)) < 200);
    oct_view_lens_zoom(&s->model.lens, 8, 0.5, 0.75); /* pixels are drawn one by one */
    oct_viewer_stage_draw(s);
    assert_true(red(colour_at(s, 58.5, 77)) > 90 && blue(colour_at(s, 58.5, 77)) < 80);
    assert_true(red(colour_at(s, 60.5, 77)) == blue(colour_at(s, 60.5, 77)));
    oct_view_lens_init(&s->model.lens);
    s->model.shown.header.frame_num = 2; /* another picture has none of it */
    oct_viewer_stage_draw(s);
    assert_int_equal(colour_at(s, 50, 70), before);
    oct_viewer_stage_close(s);
}

static void of_places_in_turn_the_newest_is_drawn(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    static uint8_t values[2 * W * H];
    struct oct_image_header h = {
        .frame_num = 1, .bscan = 3, .type = OCT_SAMPLE_U8, .rank = 3, .dims = {2, W, H}};
    memset(values + (size_t)W * H, 255, (size_t)W * H);
    take(s, &oct_view_overlay_flow, image_of(h, values, sizeof(values)));
    oct_viewer_stage_draw(s);
    assert_true(red(colour_at(s, 50, 70)) > 200);
    h.bscan = 2;
    take(s, &oct_view_overlay_flow, image_of(h, values, sizeof(values)));
    oct_viewer_stage_draw(s);
    assert_true(red(colour_at(s, 50, 70)) == blue(colour_at(s, 50, 70)));
    oct_viewer_stage_close(s);
}

static void the_bulk_motion_is_a_bar_and_in_words(void **state)
{
    static const struct {
        double bulk;
        bool moved;
        uint32_t rgb;
        const char *words;
    } cases[] = {
        {0.04, false, GOOD, "flow: bulk 0.04, SNR 12.2 dB, tau 5.02 ms"},
        {0.15, false, WARN, "flow: bulk 0.15, SNR 12.2 dB, tau 5.02 ms"},
        {0.25, false, BAD, "flow: bulk 0.25, SNR 12.2 dB, tau 5.02 ms"},       /* above max_bulk */
        {0.02, true, BAD, "flow: MOVED, bulk 0.02, SNR 12.2 dB, tau 5.02 ms"}, /* a blink */
    };
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_phrase p;
    unsigned n_before = 0;
    s->model.settings.guide = false;
    s->model.daemon.flow.max_bulk = 0.2;
    for (unsigned i = 0; i < 4; i++) {
        take(s, &oct_view_overlay_flow, flow_of(0, cases[i].bulk, cases[i].moved, 1));
        oct_view_flow_text(&s->model, &p);
        assert_string_equal(p.text, cases[i].words);
        assert_int_equal(p.tone == OCT_TONE_BAD, cases[i].moved);
        const struct oct_view_rect corner = {0, oct_viewer_stage_draw(s)->bscan.y, 400, 100};
        const unsigned n = oct_viewer_stage_count(s, corner, cases[i].rgb);
        assert_true(n > 20);
        assert_true(i == 0 || i == 3 || n > n_before);
        n_before = n;
    }
    oct_viewer_stage_close(s);
}

static void velocities_are_red_black_and_blue_by_a_scale(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_phrase p;
    s->model.settings.flow = false;
    s->model.settings.velocity = true;
    oct_viewer_stage_draw(s);
    const uint32_t above = colour_at(s, 60, 40);
    assert_int_equal(oct_draw_layout(s->draw)->speeds.w, 0);
    take(s, &oct_view_overlay_velocity, velocity_of(15.4, 1));
    const struct oct_view_layout *l = oct_viewer_stage_draw(s);
    const uint32_t towards = colour_at(s, 20, 70), away = colour_at(s, 100, 70);
    assert_true(red(towards) == 255 && blue(towards) < 60);
    assert_true(blue(away) == 255 && red(away) < 120);
    assert_int_equal(colour_at(s, 60, 70), 0); /* still */
    assert_int_equal(colour_at(s, 60, 40), above);
    assert_true(l->speeds.w > 0 && l->speeds.y >= l->colours.y + l->colours.h);
    const int x = l->speeds.x + l->text_px, middle = l->speeds.y + l->speeds.h / 2;
    const uint32_t up = oct_viewer_stage_pixel(s, x, middle - l->speeds.h / 4);
    const uint32_t down = oct_viewer_stage_pixel(s, x, middle + l->speeds.h / 4);
    assert_true(red(up) > 100 && blue(up) < 70 && blue(down) > 100 && red(down) < 70);
    assert_true(blue(oct_viewer_stage_pixel(s, x, middle)) < 10);
    oct_view_flow_text(&s->model, &p);
    assert_string_equal(p.text, "velocity, ambiguous from 15.4 mm/s on, tau 10 \u00b5s");
    take(s, &oct_view_overlay_velocity, velocity_of(NAN, 2)); /* no scale: nothing of it */
    assert_false(oct_view_model_has_flow(&s->model));
    oct_viewer_stage_close(s);
}

/* Ten B-scans a second, four a place. */
static void the_last_bscan_of_a_place_stands_until_the_next_has_its_flow(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_archive *archive = oct_view_archive_create(8u << 20);
    unsigned n_drawn = 0;
    s->model.archive = archive;
    s->model.daemon.repeats = 4;
    for (uint64_t k = 1; k <= 60; k++) {
        struct oct_view_picture picture = oct_scene_layered(30, 4);
        const uint64_t at_ns = 20 * S + k * S / 10;
        picture.header.frame_num = k;
        snprintf(picture.header.acquisition_id, sizeof(picture.header.acquisition_id), "a");
        picture.arrival_ns = at_ns;
        oct_view_model_tick(&s->model, at_ns);
        oct_view_archive_add(archive, &picture);
        oct_view_tally_add(&s->model.tally, &picture.header, at_ns);
        oct_view_model_offer(&s->model, &picture);
        oct_view_picture_finish(&picture);
        if (k % 4 == 1 && k > 4) { /* one B-scan late */
            struct oct_view_image image = flow_of(255, 0, false, k - 1);
            image.arrival_ns = at_ns;
            oct_view_overlay_take(&s->model, &oct_view_overlay_flow, &image);
            oct_view_image_finish(&image);
        }
        n_drawn += oct_view_model_has_flow(&s->model);
    }
    assert_true(n_drawn > 48);
    assert_int_equal(s->model.shown.header.frame_num, 56);
    s->model.archive = NULL;
    oct_view_archive_destroy(archive);
    oct_viewer_stage_close(s);
}

/* ---- the angiogram ---- */

/* Rows first .. end - 1 of five came; of these `gap` has no flow. */
static struct oct_view_image angiogram_of(unsigned end, unsigned gap, bool whole, double moved)
{
    static float values[5 * W];
    struct oct_image_header h = {.dataset = "analysis/angiogram",
                                 .type = OCT_SAMPLE_F32,
                                 .rank = 2,
                                 .dims = {5, W},
                                 .whole = whole,
                                 .hi = 9};
    for (unsigned r = 0; r < 5; r++)
        for (unsigned j = 0; j < W; j++)
            values[r * W + j] = r < end && r != gap ? 8 : NAN;
    put_number(&h, "places", end);
    put_number(&h, "moved", moved);
    return image_of(h, values, sizeof(values));
}

static void must_have_gaps(const struct oct_viewer_stage *s, const char *wanted)
{
    char gaps[6] = "";
    for (unsigned r = 0; r < 5; r++)
        gaps[r] = s->model.angiogram.is_gap[r] ? 'x' : '-';
    assert_string_equal(gaps, wanted);
}

static unsigned hatched(struct oct_viewer_stage *s, unsigned row)
{
    const struct oct_view_rect r = oct_viewer_stage_draw(s)->angiogram;
    unsigned n = 0;
    /* Amber over the panel's ground: neither grey nor the ground. */
    for (int y = r.y + r.h * (int)row / 5; y < r.y + r.h * (int)(row + 1) / 5; y++)
        for (int x = r.x; x < r.x + r.w; x++) {
            const uint32_t rgb = oct_viewer_stage_pixel(s, x, y);
            n += red(rgb) > 150 && blue(rgb) < red(rgb) - 60;
        }
    return n;
}

static void places_that_moved_are_hatched_and_counted(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_phrase lines[2];
    s->model.settings.arrangement = OCT_ARRANGEMENT_TWO;
    s->model.settings.fit = OCT_FIT_FILL;
    assert_false(oct_view_model_has_angiogram(&s->model));
    assert_int_equal(oct_viewer_stage_draw(s)->angiogram.w, 0);
    take(s, &oct_view_overlay_angiogram, angiogram_of(3, 1, false, 1));
    must_have_gaps(s, "-x---"); /* not those that are still to come */
    oct_view_angiogram_text(&s->model, lines);
    assert_string_equal(lines[0].text, "angiogram");
    assert_string_equal(lines[1].text, "1 of 3 places moved");
    assert_true(oct_viewer_stage_draw(s)->angiogram.w > 0);
    assert_int_equal(s->model.angiogram.enface.newest_row, 2);
    assert_true(hatched(s, 1) > 100 && hatched(s, 2) == 0 && hatched(s, 4) == 0);
    take(s, &oct_view_overlay_angiogram, angiogram_of(4, 3, false, 2));
    must_have_gaps(s, "---x-"); /* the newest one */
    assert_int_equal(s->model.angiogram.enface.newest_row, 3);
    take(s, &oct_view_overlay_angiogram, angiogram_of(5, 4, true, 2)); /* the last one moved, too */
    must_have_gaps(s, "----x");
    take(s, &oct_view_overlay_angiogram, angiogram_of(2, 9, false, 0));
    must_have_gaps(s, "----x"); /* of the volume before */
    snprintf(s->model.daemon.flow.slab, sizeof(s->model.daemon.flow.slab), "deep");
    oct_view_angiogram_text(&s->model, lines);
    assert_string_equal(lines[0].text, "angiogram, deep");
    assert_string_equal(lines[1].text, "");
    s->model.angiogram.enface.forget = true; /* of another slab */
    take(s, &oct_view_overlay_angiogram, angiogram_of(2, 1, false, 0));
    must_have_gaps(s, "-----"); /* no layer was found there, but nothing moved */
    s->model.settings.flow = false;
    assert_int_equal(oct_viewer_stage_draw(s)->angiogram.w, 0);
    oct_viewer_stage_close(s);
}

static void another_size_begins_anew(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    static float values[3000 * 2];
    struct oct_image_header h = {.type = OCT_SAMPLE_F32, .rank = 2, .dims = {3000, 2}, .hi = 1};
    take(s, &oct_view_overlay_angiogram, angiogram_of(5, 3, true, 1));
    must_have_gaps(s, "---x-");
    values[5998] = values[5999] = 0;
    for (unsigned i = 2980; i < 2986; i++) /* several rows on one of the screen */
        values[2 * i] = values[2 * i + 1] = NAN;
    put_number(&h, "moved", 6);
    h.whole = true;
    take(s, &oct_view_overlay_angiogram, image_of(h, values, sizeof(values)));
    must_have_gaps(s, "-----");
    unsigned n = 0;
    for (unsigned r = 0; r < OCT_VIEW_ENFACE_MOST; r++)
        n += s->model.angiogram.is_gap[r];
    assert_true(n >= 3 && n <= 5);
    h.whole = false;
    values[5998] = values[5999] = NAN;
    take(s, &oct_view_overlay_angiogram, image_of(h, values, sizeof(values)));
    assert_int_equal(s->model.angiogram.enface.newest_row, 2046); /* places are not told */
    h.dims[0] = 0;                                                /* there are no rows */
    take(s, &oct_view_overlay_angiogram, image_of(h, values, 0));
    assert_false(oct_view_model_has_angiogram(&s->model));
    oct_viewer_stage_close(s);
}

/* ---- keys ---- */

static struct oct_view_daemon told(const char *flow, const char *velocity, int repeats)
{
    char json[512];
    struct oct_view_daemon d = {.reachable = true, .answer_ns = 1};
    snprintf(json, sizeof(json),
             "{\"ok\":true,\"state\":\"running\",\"scan\":{\"repeats\":%d},\"analysis\":["
             "{\"name\":\"flow\",\"at_rest\":%s,\"slab\":\"deep\",\"max_bulk\":0.25},"
             "{\"name\":\"angiogram\",\"at_rest\":%s},{\"name\":\"velocity\",\"at_rest\":%s}]}",
             repeats, flow, flow, velocity);
    assert_int_equal(oct_view_daemon_read(&d, json, strlen(json), NULL), OCT_OK);
    return d;
}

static void one_key_draws_what_octd_computes_in_turn(void **state)
{
    static const struct {
        const char *flow_rests, *velocity_rests, *drawn; /* after each press */
    } cases[] = {{"false", "false", "v-fv"}, {"false", "true", "-f-f"}, {"true", "false", "v-v-"}};
    static struct oct_view_model m;
    for (unsigned i = 0; i < 3; i++) {
        oct_view_model_init(&m, "x", true);
        oct_view_model_tick(&m, 1000 * S);
        struct oct_view_daemon d = told(cases[i].flow_rests, cases[i].velocity_rests, 4);
        oct_scene_hear(&m, &d, OCT_WISH_NONE, false, "");
        assert_true(m.settings.flow && !m.settings.velocity && m.daemon.flow.max_bulk == 0.25);
        for (const char *c = cases[i].drawn; *c; c++) {
            oct_view_model_apply(&m, OCT_ACTION_FLOW, 1);
            assert_int_equal(m.settings.flow, *c == 'f');
            assert_int_equal(m.settings.velocity, *c == 'v');
            assert_int_equal(oct_view_flow_is_on(&m), *c != '-');
        }
        oct_view_model_finish(&m);
    }
}

static void without_repeats_the_key_says_what_to_set(void **state)
{
    static struct oct_view_model m;
    char text[OCT_VIEW_LABEL_BYTES];
    struct oct_view_daemon d = told("true", "true", 1);
    oct_view_model_init(&m, "x", true);
    oct_view_model_tick(&m, 1000 * S);
    oct_scene_hear(&m, &d, OCT_WISH_NONE, false, "");
    for (int i = 0; i < 2; i++) {
        oct_view_model_apply(&m, OCT_ACTION_FLOW, 1);
        assert_non_null(strstr(m.message, "set scan.repeats to 2 or more"));
        assert_int_equal(oct_view_model_take_wish(&m, text), OCT_WISH_NONE);
    }
    d = told("true", "true", 2);
    d.answer_ns = 2;
    oct_scene_hear(&m, &d, OCT_WISH_NONE, false, "");
    oct_view_model_apply(&m, OCT_ACTION_FLOW, 1);
    assert_string_equal(m.message, "octd finds no flow: U again sets flow.enabled = yes");
    oct_view_model_apply(&m, OCT_ACTION_FLOW, 1);
    assert_int_equal(oct_view_model_take_wish(&m, text), OCT_WISH_ENABLE);
    assert_string_equal(text, "flow.enabled");
    oct_view_model_finish(&m);
}

static unsigned slab_buttons(const struct oct_view_model *m, const char **lit)
{
    static struct oct_view_button b[OCT_VIEW_MOST_BUTTONS];
    unsigned n = 0;
    *lit = "";
    for (unsigned i = oct_view_buttons(m, b); i > 0; i--)
        if (b[i - 1].row == OCT_BUTTONS_SLABS) {
            n++;
            *lit = b[i - 1].look == OCT_BUTTON_ON ? b[i - 1].label : *lit;
        }
    return n;
}

static void slabs_are_asked_for_and_lit_when_octd_has_them(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_model *m = &s->model;
    struct oct_view_daemon d = told("false", "true", 4);
    char text[OCT_VIEW_LABEL_BYTES];
    const char *lit;
    m->settings.arrangement = OCT_ARRANGEMENT_TWO;
    oct_scene_hear(m, &d, OCT_WISH_NONE, false, "");
    assert_int_equal(slab_buttons(m, &lit), 0); /* nothing came yet */
    take(s, &oct_view_overlay_angiogram, angiogram_of(5, 9, true, 0));
    assert_int_equal(slab_buttons(m, &lit), 4);
    assert_string_equal(lit, "Deep");
    const struct oct_view_layout *l = oct_viewer_stage_draw(s);
    assert_true(l->slabs.w > 0 && l->slabs.y >= l->angiogram.y + l->angiogram.h);
    oct_view_model_apply(m, OCT_ACTION_SUPERFICIAL, 1);
    assert_int_equal(oct_view_model_take_wish(m, text), OCT_WISH_FLOW_SLAB);
    assert_string_equal(text, "superficial");
    assert_string_equal(oct_view_wish_rows[OCT_WISH_FLOW_SLAB].key, "flow.slab");
    oct_scene_hear(m, &d, OCT_WISH_FLOW_SLAB, true, "superficial");
    assert_false(m->angiogram.enface.forget);
    snprintf(d.flow.slab, sizeof(d.flow.slab), "superficial");
    d.answer_ns++;
    oct_scene_hear(m, &d, OCT_WISH_NONE, false, "");
    assert_true(m->angiogram.enface.forget); /* rows of two slabs are not mixed */
    slab_buttons(m, &lit);
    assert_string_equal(lit, "Superficial");
    oct_view_model_apply(m, OCT_ACTION_SUPERFICIAL, 1); /* again: the whole depth */
    assert_int_equal(oct_view_model_take_wish(m, text), OCT_WISH_FLOW_SLAB);
    assert_string_equal(text, "");
    oct_viewer_stage_close(s);
}

/* ---- the trace ---- */

/* n rows from time 0.1 * first on: 10 nm a row. */
static struct oct_view_image trace_of(unsigned first, unsigned n, const char *acquisition)
{
    static float values[2000 * 3];
    struct oct_image_header h = {.type = OCT_SAMPLE_F32,
                                 .rank = 2,
                                 .dims = {n, 3},
                                 .n_labels = 3,
                                 .labels = {"time_s", "nm", "sd_nm"}};
    for (unsigned i = 0; i < n; i++) {
        values[3 * i] = 0.1f * (float)(first + i);
        values[3 * i + 1] = first + i == 5 ? NAN : 10 * (float)(first + i);
        values[3 * i + 2] = 4;
    }
    struct oct_view_image image = image_of(h, values, sizeof(float) * 3 * n);
    snprintf(image.header.acquisition_id, sizeof(image.header.acquisition_id), "%s", acquisition);
    return image;
}

static void a_trace_stands_in_place_of_the_spectrum(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    const struct oct_view_trace *t = &s->model.trace;
    char text[96];
    s->model.settings.arrangement = OCT_ARRANGEMENT_FOUR;
    const struct oct_view_rect area = oct_viewer_stage_draw(s)->spectrum;
    const unsigned n_before = oct_viewer_stage_count(s, area, 0x5cc8ffu);
    assert_false(oct_view_model_has_trace(&s->model));
    for (unsigned i = 0; i < 12; i++)
        take(s, &oct_view_overlay_trace, trace_of(i, 1, "a"));
    assert_true(oct_view_model_has_trace(&s->model));
    assert_int_equal(t->n, 11); /* one was not known */
    oct_view_trace_text(&s->model, text, sizeof(text));
    assert_string_equal(text, "trace, nm: 110, sd 4");
    oct_viewer_stage_draw(s);
    /* The curve, rising, with its band; above it the bright layer of the A-lines. */
    assert_true(oct_viewer_stage_count(s, area, 0x5cc8ffu) > n_before + 100);
    assert_true(t->lines[0][20] > 200 && t->lines[0][50] < 60);
    take(s, &oct_view_overlay_trace, trace_of(3, 1, "a")); /* from before: it began anew */
    assert_int_equal(t->n, 1);
    take(s, &oct_view_overlay_trace, trace_of(4, 1, "b"));
    assert_int_equal(t->n, 1);
    take(s, &oct_view_overlay_trace, trace_of(100, 1500, "b")); /* the last are kept */
    assert_int_equal(t->n, OCT_VIEW_TRACE_MOST);
    assert_true(fabs(t->points[t->n - 1].moved - 15990) < 1);
    take(s, &oct_view_overlay_trace, trace_of(1700, 1, "b"));
    assert_true(t->n == OCT_VIEW_TRACE_MOST && fabs(t->points[0].moved - 5770) < 1);
    oct_view_model_tick(&s->model, 30 * S);
    assert_false(oct_view_model_has_trace(&s->model)); /* none comes any more */
    oct_viewer_stage_close(s);
}

/* ---- what is no such image ---- */

static void other_forms_are_refused(void **state)
{
    struct oct_image_header h = {.type = OCT_SAMPLE_U8, .rank = 2, .dims = {3, 4}};
    struct oct_view_flow f = {.n_lines = 0};
    struct oct_view_image image = {.header = h};
    assert_int_equal(oct_view_overlay_flow.check(&h, NULL), OCT_OK);
    oct_view_flow_set(&f, &image, true); /* no velocity is u8 */
    assert_int_equal(f.n_lines, 0);
    h.rank = 1;
    assert_int_equal(oct_view_overlay_flow.check(&h, NULL), OCT_E_FORMAT);
    h.rank = 3; /* no depths */
    assert_int_equal(oct_view_overlay_velocity.check(&h, NULL), OCT_E_FORMAT);
    h.rank = 2;
    h.n_labels = 4;
    assert_int_equal(oct_view_overlay_flow.check(&h, NULL), OCT_E_FORMAT);
    assert_int_equal(oct_view_overlay_angiogram.check(&h, NULL), OCT_E_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_flows_is_red_and_the_rest_as_it_was),
        cmocka_unit_test(of_places_in_turn_the_newest_is_drawn),
        cmocka_unit_test(the_bulk_motion_is_a_bar_and_in_words),
        cmocka_unit_test(velocities_are_red_black_and_blue_by_a_scale),
        cmocka_unit_test(the_last_bscan_of_a_place_stands_until_the_next_has_its_flow),
        cmocka_unit_test(places_that_moved_are_hatched_and_counted),
        cmocka_unit_test(another_size_begins_anew),
        cmocka_unit_test(one_key_draws_what_octd_computes_in_turn),
        cmocka_unit_test(without_repeats_the_key_says_what_to_set),
        cmocka_unit_test(slabs_are_asked_for_and_lit_when_octd_has_them),
        cmocka_unit_test(a_trace_stands_in_place_of_the_spectrum),
        cmocka_unit_test(other_forms_are_refused),
    };
    return cmocka_run_group_tests_name("viewer flow", tests, NULL, NULL);
}
