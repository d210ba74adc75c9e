/* What octd finds in pictures, in the viewer: what is kept of it, which picture it is drawn over,
 * its words and its pixels. */
#include "pipeline/base/clock.h"
#include "test/rig/tap.h"
#include "test/rig/viewer_scene.h"
#include "test/rig/viewer_stage.h"
#include "viewer/draw/draw.h"
#include "viewer/model/model.h"
#include "viewer/model/words.h"

#include <SDL.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- layers ---- */

#define S OCT_NS_PER_S
#define ILM 0x4be0d0u
#define RPE 0xff7ac8u
enum { W = 120, H = 100 }; /* A-lines and depths, as oct_scene_layered */

/* Layers of W A-lines; the caller finishes the image. */
static struct oct_view_image image_of(const float *ilm, const float *rpe, uint64_t frame_num)
{
    struct oct_image_header h = {.dataset = "analysis/surfaces",
                                 .acquisition_id = "a",
                                 .frame_num = frame_num,
                                 .type = OCT_SAMPLE_F32,
                                 .rank = 2,
                                 .dims = {OCT_SURFACES_N_ROWS, W}};
    struct oct_view_image image = {0};
    float values[OCT_SURFACES_N_ROWS * W] = {0};
    memcpy(values + OCT_LAYER_ILM * W, ilm, W * sizeof(float));
    memcpy(values + OCT_LAYER_RPE * W, rpe, W * sizeof(float));
    assert_int_equal(oct_view_image_set(&image, &h, values, sizeof(values), NULL), OCT_OK);
    image.arrival_ns = (10 + frame_num) * S;
    return image;
}

/* Level layers, but for A-lines first .. last - 1, which lack the ILM. */
static struct oct_view_image level(float ilm, float rpe, unsigned first, unsigned last,
                                   uint64_t frame_num)
{
    float i[W], r[W];
    for (unsigned j = 0; j < W; j++) {
        i[j] = j >= first && j < last ? NAN : ilm;
        r[j] = rpe;
    }
    return image_of(i, r, frame_num);
}

static void what_is_no_place_is_not_found(void **state)
{
    struct oct_view_layers layers = {.n_lines = 0};
    float ilm[W], rpe[W];
    double found;
    for (unsigned j = 0; j < W; j++) {
        ilm[j] = 20;
        rpe[j] = 50 + (float)j / 10;
    }
    ilm[3] = NAN;
    ilm[4] = -1;
    rpe[5] = INFINITY;
    rpe[6] = 1e9f;
    struct oct_view_image image = image_of(ilm, rpe, 1);
    oct_view_layers_set(&layers, &image);
    assert_int_equal(layers.n_lines, W);
    for (unsigned j = 0; j < 10; j++) {
        const double px = oct_view_layers_thickness(&layers, j + 0.2, j + 0.9, &found);
        assert_true(j >= 3 && j <= 6 ? isnan(px) && found == 0
                                     : fabs(px - 30 - j / 10.0) < 1e-4 && found == 1);
    }
    assert_true(fabs(oct_view_layers_thickness(&layers, 12.5, 8.5, &found) - 31.0) < 1e-4);
    oct_view_layers_thickness(&layers, -5, 1e9, &found);
    assert_true(fabs(found - (W - 4.0) / W) < 1e-9);

    /* An image of another form changes nothing. */
    image.header.dims[0] = 3;
    assert_int_equal(oct_view_overlay_layers.check(&image.header, NULL), OCT_E_FORMAT);
    oct_view_layers_set(&layers, &image);
    image.header.dims[0] = OCT_SURFACES_N_ROWS;
    image.header.type = OCT_SAMPLE_U8;
    assert_int_equal(oct_view_overlay_layers.check(&image.header, NULL), OCT_E_FORMAT);
    oct_view_layers_set(&layers, &image);
    assert_true(layers.n_lines == W && layers.of.frame_num == 1);
    image.header.type = OCT_SAMPLE_F32;
    image.header.frame_num = 2;
    image.header.dims[1] = W / 2; /* another scan */
    image.arrival_ns = 12 * S;
    oct_view_layers_set(&layers, &image);
    assert_true(layers.n_lines == W / 2 && layers.of.frame_num == 2 && layers.position[1][0] == 20);
    oct_view_image_finish(&image);
    oct_view_layers_finish(&layers);
    oct_view_layers_finish(&layers);
}

/* ---- drawn ---- */

static void offer_late(struct oct_viewer_stage *s, struct oct_view_image image)
{
    oct_view_overlay_take(&s->model, &oct_view_overlay_layers, &image);
    oct_view_image_finish(&image);
}

/* Layers of the picture that is shown. */
static void offer(struct oct_viewer_stage *s, struct oct_view_image image)
{
    s->model.shown.header.frame_num = image.header.frame_num;
    offer_late(s, image);
}

/* The mean y of pixels near that colour in column x, from `top` down; NaN: none is. Lines are drawn
 * with alpha. */
static double row_of(struct oct_viewer_stage *s, uint32_t rgb, double x, int top)
{
    double sum = 0;
    int n = 0;
    for (int y = top; y < s->surface->h; y++) {
        const uint32_t pixel = oct_viewer_stage_pixel(s, (int)lround(x), y);
        int off = 0;
        for (int shift = 0; shift < 24; shift += 8)
            off = SDL_max(off, abs((int)(pixel >> shift & 255) - (int)(rgb >> shift & 255)));
        if (off < 40) {
            sum += y;
            n++;
        }
    }
    return n ? sum / n : NAN;
}

static void lines_lie_on_the_layers(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    const int top = 150; /* below the words in the corner */
    offer(s, level(40, 80, 60, 90, 1));
    oct_viewer_stage_draw(s);
    struct oct_view_rectf p = oct_draw_layout(s->draw)->place;
    const double left = p.x + 30.5 / W * p.w, gap = p.x + 75.5 / W * p.w;
    assert_true(fabs(row_of(s, ILM, left, top) - (p.y + 40.5 / H * p.h)) < 3);
    assert_true(fabs(row_of(s, RPE, left, top) - (p.y + 80.5 / H * p.h)) < 3);
    assert_true(isnan(row_of(s, ILM, gap, top))); /* what is not found is not drawn */
    assert_true(fabs(row_of(s, RPE, gap, top) - (p.y + 80.5 / H * p.h)) < 3);

    oct_view_lens_zoom(&s->model.lens, 2, 0.5, 0.6); /* a zoomed picture takes them along */
    oct_viewer_stage_draw(s);
    p = oct_draw_layout(s->draw)->place;
    assert_true(fabs(row_of(s, ILM, p.x + 50.5 / W * p.w, top) - (p.y + 40.5 / H * p.h)) < 3);
    oct_view_lens_init(&s->model.lens);

    oct_view_model_apply(&s->model, OCT_ACTION_LAYERS, 1); /* all seven, then none */
    assert_true(s->model.settings.layers && s->model.settings.all_layers);
    oct_viewer_stage_draw(s);
    assert_true(row_of(s, RPE, left, top) > 0);
    oct_view_model_apply(&s->model, OCT_ACTION_LAYERS, 1);
    oct_viewer_stage_draw(s);
    assert_true(isnan(row_of(s, ILM, left, 0)) && isnan(row_of(s, RPE, left, 0)));
    oct_view_model_apply(&s->model, OCT_ACTION_LAYERS, 1);
    offer(s, level(20, 80, 0, 0, 2));
    oct_viewer_stage_draw(s);
    assert_true(row_of(s, RPE, left, top) > 0);
    s->model.shown.header.frame_num = 3; /* octd says no more of them */
    oct_viewer_stage_draw(s);
    assert_true(isnan(row_of(s, RPE, left, 0)));
    oct_viewer_stage_close(s);
}

static void the_thickness_stands_under_the_calipers_and_in_the_corner(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_phrase p;
    char text[80];
    oct_view_layers_text(&s->model, &p);
    assert_string_equal(p.text, "");
    oct_view_model_thickness_text(&s->model, 3, 3, text, sizeof(text));
    assert_string_equal(text, "");
    offer(s, level(20, 80, 60, 90, 1));
    oct_view_layers_text(&s->model, &p);
    assert_string_equal(p.text, "ILM to RPE 60 pixels in 75 % of the A-lines");
    s->model.daemon.axial_um = 2.5;
    oct_view_layers_text(&s->model, &p);
    assert_string_equal(p.text, "ILM to RPE 150 \u00b5m in 75 % of the A-lines");
    oct_view_model_thickness_text(&s->model, 3, 3, text, sizeof(text));
    assert_string_equal(text, "; ILM to RPE 150.0 \u00b5m");
    oct_view_model_thickness_text(&s->model, 61, 80, text, sizeof(text)); /* in the gap */
    assert_string_equal(text, "");
    offer(s, level(20, 80, 0, 0, 2));
    oct_view_layers_text(&s->model, &p);
    assert_string_equal(p.text, "ILM to RPE 150 \u00b5m");
    offer(s, level(20, 80, 0, W, 3));
    oct_view_layers_text(&s->model, &p);
    assert_string_equal(p.text, "layers: no retina seen");
    snprintf(s->model.layers.of.acquisition_id, sizeof(s->model.layers.of.acquisition_id), "b");
    oct_view_layers_text(&s->model, &p);
    assert_string_equal(p.text, "");
    oct_viewer_stage_close(s);
}

static bool has_text(const struct oct_viewer_stage *s)
{
    char text[80];
    oct_view_model_thickness_text(&s->model, 3, 3, text, sizeof(text));
    assert_int_equal(text[0] != 0, oct_view_model_has_layers(&s->model));
    return text[0] != 0;
}

static void a_frozen_picture_has_its_own_layers_and_no_others(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    uint64_t *shown = &s->model.shown.header.frame_num;
    offer(s, level(20, 80, 0, 0, 1));
    oct_view_model_apply(&s->model, OCT_ACTION_FREEZE, 1);
    offer_late(s, level(30, 70, 0, 0, 2));
    oct_view_model_tick(&s->model, 60 * S);
    assert_true(has_text(s));
    assert_true(s->model.layers.position[OCT_LAYER_ILM][0] == 20);
    *shown = 0; /* an older picture has none */
    assert_false(has_text(s));
    oct_view_model_apply(&s->model, OCT_ACTION_FREEZE, 1);
    *shown = 3;
    assert_false(has_text(s));
    oct_view_model_apply(&s->model, OCT_ACTION_FREEZE, 1);
    assert_false(has_text(s));
    offer_late(s, level(30, 70, 0, 0, 2)); /* they come when their picture is gone */
    assert_false(has_text(s));
    offer_late(s, level(30, 70, 0, 0, 3)); /* or still stands */
    assert_true(has_text(s));
    s->model.playback.active = true; /* a recording's pictures have none of the live ones' */
    snprintf(s->model.shown.header.acquisition_id, sizeof(s->model.shown.header.acquisition_id),
             "playback");
    assert_false(has_text(s));
    oct_viewer_stage_close(s);
}

/* A stream of pictures, each `apart_ns` after the other; of one in `every` the layers come
 * `late_ns` after it. */
struct stream {
    uint64_t apart_ns, late_ns;
    unsigned every;
};

struct seen {
    unsigned n, n_with, n_changes; /* turns of the window, with lines; lines or none */
    uint64_t newest;               /* picture */
};

static void send_picture(struct oct_viewer_stage *s, uint64_t frame, uint64_t at_ns)
{
    struct oct_view_picture picture = oct_scene_layered(30, 4);
    picture.header.frame_num = frame;
    snprintf(picture.header.acquisition_id, sizeof(picture.header.acquisition_id), "a");
    picture.arrival_ns = at_ns;
    oct_view_archive_add(s->model.archive, &picture);
    oct_view_tally_add(&s->model.tally, &picture.header, at_ns);
    oct_view_model_offer(&s->model, &picture);
    oct_view_picture_finish(&picture);
}

/* From picture `first` on for `n`. What is drawn is always the shown picture's own, and no picture
 * steps back. */
static struct seen run(struct oct_viewer_stage *s, struct stream t, unsigned first, unsigned n)
{
    struct seen seen = {.n = 0};
    bool before = false;
    for (uint64_t k = first; k < first + n; k++) {
        const uint64_t at_ns = 20 * S + k * t.apart_ns;
        const uint64_t of = (at_ns - 20 * S - t.late_ns) / t.apart_ns;
        oct_view_model_tick(&s->model, at_ns);
        send_picture(s, k, at_ns);
        if (at_ns >= 20 * S + t.late_ns && t.every > 0 && of % t.every == 0) {
            struct oct_view_image image = level(20, 20 + (float)(of % 70), 0, 0, of);
            image.arrival_ns = at_ns;
            offer_late(s, image);
        }
        const bool has = oct_view_model_has_layers(&s->model);
        const uint64_t shown = s->model.shown.header.frame_num;
        assert_true(!has ||
                    (s->model.layers.of.frame_num == shown &&
                     s->model.layers.position[OCT_LAYER_RPE][5] == 20 + (float)(shown % 70)));
        seen.n++;
        seen.n_with += has;
        seen.n_changes += has != before;
        before = has;
        seen.newest = shown;
    }
    return seen;
}

static void the_shown_picture_is_the_newest_that_has_layers(void **state)
{
    const uint64_t ms = S / 1000;
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_archive *archive = oct_view_archive_create(8u << 20);
    s->model.archive = archive;
    /* One in four of 100 a second, 20 ms late; every one, 30 ms late: lines stand still. */
    struct seen seen = run(s, (struct stream){10 * ms, 20 * ms, 4}, 1, 200);
    assert_true(seen.n_with > 180 && seen.n_changes == 1 && seen.newest >= 200 - 6);
    seen = run(s, (struct stream){10 * ms, 30 * ms, 1}, 201, 200);
    assert_true(seen.n_with > 190 && seen.n_changes <= 2 && seen.newest == 400 - 3);
    /* They end: the newest picture, within a quarter of a second. */
    seen = run(s, (struct stream){10 * ms, 0, 0}, 401, 30);
    assert_true(seen.n_with < 27 && seen.newest == 430);
    /* Two a second of a hundred would flash by: none; frozen upon its picture it has them. */
    seen = run(s, (struct stream){10 * ms, 0, 50}, 431, 170);
    assert_true(seen.n_with == 0 && seen.newest == 600);
    oct_view_model_apply(&s->model, OCT_ACTION_FREEZE, 1);
    assert_true(oct_view_model_has_layers(&s->model));
    oct_view_model_apply(&s->model, OCT_ACTION_FREEZE, 1);
    oct_view_archive_destroy(archive);
    s->model.archive = NULL;
    oct_viewer_stage_close(s);
}

static void a_slow_scan_shows_the_layers_of_each_picture(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_archive *archive = oct_view_archive_create(8u << 20);
    s->model.archive = archive;
    struct seen seen = run(s, (struct stream){S / 2, 0, 1}, 1, 20);
    assert_true(seen.n_with == 20 && seen.newest == 20);
    oct_view_archive_destroy(archive);
    s->model.archive = NULL;
    oct_viewer_stage_close(s);
}

/* Back leads to the picture before the shown one, not to a newer one that had no layers. */
static void frozen_back_begins_at_the_shown_picture(void **state)
{
    const uint64_t ms = S / 1000;
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_archive *archive = oct_view_archive_create(64u << 20);
    s->model.archive = archive;
    run(s, (struct stream){10 * ms, 50 * ms, 1}, 1, 100);
    assert_int_equal(s->model.shown.header.frame_num, 95);
    oct_view_model_apply(&s->model, OCT_ACTION_FREEZE, 1);
    oct_view_model_apply(&s->model, OCT_ACTION_OLDER, 1);
    assert_int_equal(s->model.shown.header.frame_num, 94);
    assert_false(oct_view_model_has_layers(&s->model));
    oct_view_model_apply(&s->model, OCT_ACTION_NEWER, 1);
    assert_int_equal(s->model.shown.header.frame_num, 95);
    assert_true(oct_view_model_has_layers(&s->model));
    oct_view_archive_destroy(archive);
    s->model.archive = NULL;
    oct_viewer_stage_close(s);
}

/* An average has the layers of a B-scan that is in its mean, where that one was moved to. */
static void layers_of_an_older_bscan_of_the_mean_lie_where_it_was_moved(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_archive *archive = oct_view_archive_create(8u << 20);
    const uint64_t frames[] = {90, 95, 96, 97, 100};
    double lines, depth;
    s->model.archive = archive;
    for (unsigned i = 0; i < 5; i++) {
        struct oct_view_image image = {.header = {.acquisition_id = "a", .n_numbers = 3}};
        image.header.frame_num = frames[i];
        image.header.numbers[0] = (struct oct_image_header_number){"averaged", 1, {8}};
        image.header.numbers[1] = (struct oct_image_header_number){"score", 1, {0.9}};
        image.header.numbers[2] =
            (struct oct_image_header_number){"shift_px", 2, {(double)frames[i] - 90, -3}};
        if (frames[i] == 96) /* left out */
            image.header.numbers[2].values[0] = image.header.numbers[2].values[1] = (double)NAN;
        image.arrival_ns = 11 * S;
        oct_view_archive_add_average(archive, &image);
        oct_view_average_read(&s->model.average, &image);
    }
    s->model.shown.header.frame_num = 100;
    for (uint64_t f = 88; f < 103; f++) {
        const bool in_it = f == 95 || f == 97 || f == 100;
        assert_int_equal(
            oct_view_overlay_belongs(&s->model, &(struct oct_view_of){f, "a"}, &lines, &depth),
            in_it);
        assert_true(!in_it || (lines == (double)f - 90 && depth == -3));
        assert_false(
            oct_view_overlay_belongs(&s->model, &(struct oct_view_of){f, "b"}, &lines, &depth));
    }
    oct_view_archive_destroy(archive);
    s->model.archive = NULL;
    oct_viewer_stage_close(s);
}

static void an_average_takes_the_layers_to_where_it_lies(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    float ilm[W], rpe[W];
    char text[80];
    for (unsigned j = 0; j < W; j++) {
        ilm[j] = 50;
        rpe[j] = j < 60 ? 80 : 90;
    }
    offer(s, image_of(ilm, rpe, 1));
    s->model.average = (struct oct_view_average){
        .score = 0.8, .shift_lines = 12, .shift_depth = -20, .arrival_ns = 11 * S};
    oct_viewer_stage_draw(s);
    const struct oct_view_rectf p = oct_draw_layout(s->draw)->place;
    assert_true(fabs(row_of(s, ILM, p.x + 30.5 / W * p.w, 150) - (p.y + 30.5 / H * p.h)) < 3);
    assert_true(fabs(row_of(s, RPE, p.x + 70.5 / W * p.w, 150) - (p.y + 60.5 / H * p.h)) < 3);
    assert_true(isnan(row_of(s, ILM, p.x + 8.5 / W * p.w, 150))); /* the first ones moved away */
    oct_view_model_thickness_text(&s->model, 71.5, 71.5, text, sizeof(text));
    assert_string_equal(text, "; ILM to RPE 30.0 pixels");
    oct_view_model_thickness_text(&s->model, 72.5, 72.5, text, sizeof(text));
    assert_string_equal(text, "; ILM to RPE 40.0 pixels");

    s->model.average.shift_lines = 0;
    s->model.average.shift_depth = 1e300;
    oct_viewer_stage_draw(s);
    assert_true(fabs(row_of(s, ILM, p.x + 30.5 / W * p.w, 150) - (p.y + 50.5 / H * p.h)) < 3);
    s->model.average.shift_lines = NAN; /* the newest B-scan was left out */
    assert_false(oct_view_model_has_layers(&s->model));
    oct_viewer_stage_close(s);
}

static void places_below_the_picture_are_not_drawn(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    offer(s, level(40, 999999, 0, 0, 1));
    oct_view_lens_zoom(&s->model.lens, 1e9, 0.5, 0.4);
    oct_viewer_stage_draw(s);
    oct_view_lens_init(&s->model.lens);
    oct_viewer_stage_draw(s);
    const struct oct_view_rectf p = oct_draw_layout(s->draw)->place;
    assert_true(isnan(row_of(s, RPE, p.x + 30.5 / W * p.w, 150)));
    assert_true(row_of(s, ILM, p.x + 30.5 / W * p.w, 150) > 0);
    oct_viewer_stage_close(s);
}

/* ---- en face ---- */

static struct oct_view_image enface_of(float value, uint64_t seconds)
{
    struct oct_view_image image = oct_scene_enface(4, W);
    float *values = image.values;
    for (unsigned i = 0; i < 4 * W; i++)
        values[i] = value;
    image.arrival_ns = seconds * S;
    return image;
}

static void offer_both(struct oct_viewer_stage *s, uint64_t seconds, bool slab)
{
    struct oct_view_image image = enface_of(10, seconds), by_layers = enface_of(20, seconds);
    oct_view_model_tick(&s->model, seconds * S);
    if (slab)
        oct_view_overlay_take(&s->model, &oct_view_overlay_slab, &by_layers);
    oct_view_overlay_take(&s->model, &oct_view_overlay_enface, &image);
    oct_view_image_finish(&image);
    oct_view_image_finish(&by_layers);
}

static void en_face_follows_layers_while_octd_makes_that(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_phrase p;
    oct_view_model_apply(&s->model, OCT_ACTION_PROJECTION, 1); /* none came: nothing to follow */
    assert_false(s->model.enface_follows_layers);
    offer_both(s, 12, true);
    assert_true(oct_view_enface_row(&s->model.enface, 0)[0] == 10);
    oct_view_model_apply(&s->model, OCT_ACTION_PROJECTION, 1);
    offer_both(s, 13, true);
    assert_true(oct_view_enface_row(&s->model.enface, 0)[0] == 20);
    oct_view_enface_text(&s->model, &p);
    assert_string_equal(p.text, "en face, by layers");
    offer_both(s, 14, false);
    assert_true(oct_view_enface_row(&s->model.enface, 0)[0] == 20);
    offer_both(s, 30, false); /* octd makes it no more */
    assert_true(oct_view_enface_row(&s->model.enface, 0)[0] == 10);
    assert_false(s->model.enface_follows_layers);
    offer_both(s, 31, true);
    oct_view_model_apply(&s->model, OCT_ACTION_PROJECTION, 1);
    assert_true(s->model.enface_follows_layers);
    oct_view_model_apply(&s->model, OCT_ACTION_PROJECTION, 1); /* and back */
    assert_false(s->model.enface_follows_layers);
    oct_viewer_stage_close(s);
}

static void bounds_in_depth_are_drawn_for_their_own_picture(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_enface_wishes *w = &s->model.enface_wishes;
    s->model.settings.arrangement = OCT_ARRANGEMENT_TWO;
    w->known = true;
    w->octds.projection = w->wanted.projection = OCT_PROJECTION_SLAB;
    w->octds.slab = (struct oct_view_slab){.first = 0.6, .last = 0.8};
    oct_viewer_stage_draw(s);
    const struct oct_view_rectf p = oct_draw_layout(s->draw)->place;
    uint32_t with, without;
    const size_t at =
        (size_t)floor(p.y + 0.6 * p.h) * (size_t)s->surface->pitch + 4 * (size_t)(p.x + 0.1 * p.w);
    memcpy(&with, (const uint8_t *)s->surface->pixels + at, sizeof(with));
    s->model.enface_follows_layers = true;
    oct_viewer_stage_draw(s);
    memcpy(&without, (const uint8_t *)s->surface->pixels + at, sizeof(without));
    assert_int_not_equal(with, without);
    s->model.enface_follows_layers = false;
    oct_viewer_stage_draw(s);
    memcpy(&without, (const uint8_t *)s->surface->pixels + at, sizeof(without));
    assert_int_equal(with, without);
    oct_viewer_stage_close(s);
}

/* ---- cells ---- */

#define CELL 0xff9a3cu

struct cell {
    float track, x, y, radius, how;
};

static struct oct_image_header header_of(uint32_t n, bool is_bscan)
{
    static const char *const labels[] = {"track", "x_px", "y_px", "radius_px", "how", "speed_um_s"};
    struct oct_image_header h = {.dataset = "analysis/cells",
                                 .acquisition_id = "a",
                                 .type = OCT_SAMPLE_F32,
                                 .rank = 2,
                                 .dims = {n, 6},
                                 .n_labels = 6,
                                 .n_numbers = 5};
    for (unsigned i = 0; i < 6; i++)
        snprintf(h.labels[i], sizeof(h.labels[i]), "%s", labels[i]);
    h.numbers[0] = (struct oct_image_header_number){"count", 1, {n}};
    h.numbers[1] = (struct oct_image_header_number){"median_speed_um_s", 1, {NAN}};
    h.numbers[2] = (struct oct_image_header_number){"width", 1, {W}};
    h.numbers[3] = (struct oct_image_header_number){"height", 1, {H}};
    h.numbers[4] = (struct oct_image_header_number){"is_bscan", 1, {is_bscan}};
    return h;
}

static struct oct_view_image table_of(const struct cell *cells, uint32_t n, bool is_bscan,
                                      uint64_t frame_num)
{
    struct oct_image_header h = header_of(n, is_bscan);
    struct oct_view_image image = {0};
    float values[OCT_VIEW_CELLS_MOST * 6];
    h.frame_num = frame_num;
    for (uint32_t i = 0; i < n; i++) {
        const struct cell *c = &cells[i];
        const float row[6] = {c->track, c->x, c->y, c->radius, c->how, 7};
        memcpy(values + 6 * i, row, sizeof(row));
    }
    assert_int_equal(oct_view_image_set(&image, &h, values, n * 6 * sizeof(float), NULL), OCT_OK);
    image.arrival_ns = (10 + frame_num) * S;
    return image;
}

static void take(struct oct_view_cells *cells, const struct cell *row, uint32_t n, uint64_t frame)
{
    struct oct_view_image image = table_of(row, n, true, frame);
    oct_view_cells_set(cells, &image);
    oct_view_image_finish(&image);
}

static void tracks_keep_their_last_positions(void **state)
{
    struct oct_view_cells cells = {.n = 0};
    for (unsigned frame = 0; frame < 30; frame++) {
        const struct cell rows[] = {{3, (float)frame, 50, 5, 0}, {9, 80, (float)frame, 4, 2}};
        take(&cells, rows, frame < 28 ? 2 : 1, frame);
    }
    assert_int_equal(cells.n, 1); /* the other one ended */
    assert_int_equal(cells.tracks[0].track, 3);
    assert_int_equal(cells.tracks[0].n, OCT_VIEW_CELLS_TAIL);
    for (unsigned i = 0; i < OCT_VIEW_CELLS_TAIL; i++)
        assert_int_equal((int)cells.tracks[0].x[i], 30 - (int)OCT_VIEW_CELLS_TAIL + (int)i);
    assert_false(cells.tracks[0].is_coasting);
    assert_true(oct_view_cells_are_new(&cells, 42 * S) && !oct_view_cells_are_new(&cells, 44 * S));
    const struct cell back = {3, 1, 1, 5, 2};
    take(&cells, &back, 1, 2); /* before the newest: another beginning */
    assert_true(cells.n == 1 && cells.tracks[0].n == 1 && cells.tracks[0].is_coasting);
    take(&cells, &back, 0, 3);
    assert_int_equal(cells.n, 0);
    assert_true(cells.arrival_ns == 13 * S);
}

static void what_cannot_be_a_cell_is_left_out(void **state)
{
    struct oct_view_cells cells = {.n = 0}, before;
    const struct cell rows[] = {{1, 5, 5, 3, 0},         {2, -0.5f, 5, 3, 0},    {3, 5, H, 3, 0},
                                {4, NAN, 5, 3, 0},       {5, 5, INFINITY, 3, 0}, {6, 5, 5, 0, 0},
                                {7, 5, 5, 500, 0},       {NAN, 5, 5, 3, 0},      {-4, 5, 5, 3, 0},
                                {3e9f, 5, 5, 3, 0},      {1, 50, 50, 3, 0},      {8, 5, 5, NAN, 0},
                                {11, W - 1, H - 1, 3, 1}};
    take(&cells, rows, 13, 1);
    assert_int_equal(cells.n, 2);
    assert_true(cells.tracks[0].track == 1 && cells.tracks[1].track == 11);
    assert_true(cells.tracks[0].n == 1 && cells.tracks[0].x[0] < 6); /* one track, one row */

    before = cells;
    struct oct_view_image image = table_of(rows, 1, true, 5);
    const struct oct_image_header good = image.header;
    image.header.n_labels = 0;
    oct_view_cells_set(&cells, &image);
    image.header = good;
    image.header.rank = 1;
    oct_view_cells_set(&cells, &image);
    image.header = good;
    image.header.type = OCT_SAMPLE_U8;
    oct_view_cells_set(&cells, &image);
    image.header = good;
    image.header.dims[0] = OCT_VIEW_CELLS_MOST + 1;
    assert_int_equal(oct_view_overlay_cells.check(&image.header, NULL), OCT_E_FORMAT);
    oct_view_cells_set(&cells, &image);
    assert_memory_equal(&cells, &before, sizeof(cells));
    image.header = good;
    image.header.numbers[2].values[0] = 1e12; /* of no picture: no place is within it */
    oct_view_cells_set(&cells, &image);
    assert_true(cells.n == 0 && cells.width == 0);
    oct_view_image_finish(&image);
}

/* ---- drawn ---- */

static void cells_offer_late(struct oct_viewer_stage *s, const struct cell *rows, uint32_t n,
                             bool is_bscan, uint64_t frame)
{
    struct oct_view_image image = table_of(rows, n, is_bscan, frame);
    oct_view_overlay_take(&s->model, &oct_view_overlay_cells, &image);
    oct_view_image_finish(&image);
}

/* Of the picture that is shown, where they are of a B-scan. */
static void cells_offer(struct oct_viewer_stage *s, const struct cell *rows, uint32_t n,
                        bool is_bscan, uint64_t frame)
{
    if (is_bscan)
        s->model.shown.header.frame_num = frame;
    cells_offer_late(s, rows, n, is_bscan, frame);
}

/* Where pixels have exactly the colour of cells: their box; n 0: nowhere. Of words, which have
 * another ground about them, nothing reaches below `top`. */
struct box {
    int x0, y0, x1, y1;
    unsigned n;
};

static struct box find_box(struct oct_viewer_stage *s, int top)
{
    struct box b = {INT32_MAX, INT32_MAX, -1, -1, 0};
    oct_viewer_stage_draw(s);
    for (int y = top; y < s->surface->h; y++)
        for (int x = 0; x < s->surface->w; x++) {
            if (oct_viewer_stage_pixel(s, x, y) != CELL)
                continue;
            b.x0 = x < b.x0 ? x : b.x0;
            b.x1 = x > b.x1 ? x : b.x1;
            b.y0 = y < b.y0 ? y : b.y0;
            b.y1 = y > b.y1 ? y : b.y1;
            b.n++;
        }
    return b;
}

static void circles_lie_about_their_cells(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    const struct cell cell = {1, 60, 59, 8, 0};
    cells_offer(s, &cell, 1, true, 1);
    const int top = 200;
    struct box b = find_box(s, top);
    struct oct_view_rectf p = oct_draw_layout(s->draw)->place;
    const double cx = p.x + 60.5 / W * p.w, cy = p.y + 59.5 / H * p.h;
    assert_true(b.n > 50);
    assert_true(fabs((b.x0 + b.x1) / 2.0 - cx) < 3 && fabs((b.y0 + b.y1) / 2.0 - cy) < 3);
    assert_true(fabs(b.x1 - b.x0 - 16 * p.w / W) < 6 && fabs(b.y1 - b.y0 - 16 * p.h / H) < 6);
    oct_view_lens_zoom(&s->model.lens, 2, 0.5, 0.6); /* a zoomed picture takes them along */
    struct box zoomed = find_box(s, top);
    p = oct_draw_layout(s->draw)->place;
    assert_true(fabs((zoomed.x0 + zoomed.x1) / 2.0 - (p.x + 60.5 / W * p.w)) < 3);
    assert_true(fabs(zoomed.x1 - zoomed.x0 - 2.0 * (b.x1 - b.x0)) < 8);
    oct_view_lens_init(&s->model.lens);
    /* Of pixels of 2 x 1 um the radius is in pixels of the finer axis. */
    s->model.daemon.lateral_um = 2;
    s->model.daemon.axial_um = 1;
    s->model.settings.fit = OCT_FIT_FILL;
    b = find_box(s, top);
    p = oct_draw_layout(s->draw)->place;
    assert_true(fabs(b.x1 - b.x0 - 8 * p.w / W) < 6 && fabs(b.y1 - b.y0 - 16 * p.h / H) < 6);
    oct_view_model_apply(&s->model, OCT_ACTION_CELLS, 1);
    assert_int_equal(find_box(s, 0).n, 0);
    cells_offer(s, &cell, 1, true, 2);
    assert_int_equal(find_box(s, 0).n, 0);
    oct_view_model_apply(&s->model, OCT_ACTION_CELLS, 1);
    cells_offer(s, &cell, 1, true, 3);
    assert_true(find_box(s, top).n > 50);
    s->model.average = (struct oct_view_average){
        .score = 1, .shift_lines = 6, .shift_depth = -12, .arrival_ns = 11 * S};
    struct box moved = find_box(s, top); /* an average takes them along */
    p = oct_draw_layout(s->draw)->place;
    assert_true(fabs((moved.x0 + moved.x1) / 2.0 - (p.x + 66.5 / W * p.w)) < 3);
    assert_true(fabs((moved.y0 + moved.y1) / 2.0 - (p.y + 47.5 / H * p.h)) < 3);
    s->model.average.arrival_ns = 0;
    s->model.shown.header.frame_num = 4; /* octd says no more of them */
    assert_int_equal(find_box(s, 0).n, 0);
    oct_viewer_stage_close(s);
}

static void cells_of_volumes_are_on_the_en_face_picture(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_image enface = oct_scene_enface(H, W);
    const struct cell at_first = {1, 20, 70, 6, 0}, then = {1, 90, 70, 6, 0};
    oct_scene_enface_fill(&enface, 5, 20);
    oct_view_overlay_take(&s->model, &oct_view_overlay_enface, &enface);
    cells_offer(s, &at_first, 1, false, 1);
    assert_int_equal(find_box(s, 0).n, 0); /* there is no such panel */
    s->model.settings.arrangement = OCT_ARRANGEMENT_TWO;
    const struct oct_view_rect *area = &oct_draw_layout(s->draw)->enface;
    struct box b = find_box(s, 0);
    b = find_box(s, area->y + area->h / 2);
    assert_true(b.n > 20 && b.x0 >= area->x && b.x1 < area->x + area->w);
    const int middle = (b.x0 + b.x1) / 2;
    cells_offer(s, &then, 1, false, 2);
    struct box moved = find_box(s, area->y + area->h / 2);
    const int by = (moved.x0 + moved.x1) / 2 - middle;
    assert_true(by > area->w / 3); /* 70 of 120 A-lines */
    /* Where it came from: a tail of another alpha, between both. */
    uint32_t tail;
    const int x = middle + by / 2, y = (moved.y0 + moved.y1) / 2;
    memcpy(&tail, (const uint8_t *)s->surface->pixels + y * s->surface->pitch + 4 * x,
           sizeof(tail));
    assert_true((tail >> 16 & 255) > (tail & 255) + 60);
    cells_offer(s, &then, 1, true, 3); /* of the B-scan: not here */
    b = find_box(s, area->y + area->h / 2);
    assert_true(b.n > 0 && b.x1 < area->x);
    oct_view_image_finish(&enface);
    oct_viewer_stage_close(s);
}

static void the_corner_says_how_many_and_how_fast(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_phrase p;
    const struct cell rows[] = {{1, 20, 70, 6, 0}, {2, 90, 70, 6, 2}};
    oct_view_cells_text(&s->model, &p);
    assert_string_equal(p.text, "");
    cells_offer(s, rows, 2, true, 1);
    oct_view_cells_text(&s->model, &p);
    assert_string_equal(p.text, "cells 2");
    s->model.cells.count = 300;
    s->model.cells.median_um_s = 1372.4;
    oct_view_cells_text(&s->model, &p);
    assert_string_equal(p.text, "cells 300, median 1372 um/s");
    s->model.cells.median_um_s = 0.00867;
    oct_view_cells_text(&s->model, &p);
    assert_string_equal(p.text, "cells 300, median 0.00867 um/s");
    snprintf(s->model.cells.of.acquisition_id, sizeof(s->model.cells.of.acquisition_id), "b");
    oct_view_cells_text(&s->model, &p);
    assert_string_equal(p.text, "");
    oct_viewer_stage_close(s);
}

static void a_frozen_picture_has_its_own_cells_and_no_others(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    const struct cell one = {1, 20, 70, 6, 0}, other = {1, 90, 70, 6, 0};
    cells_offer(s, &one, 1, true, 1);
    oct_view_model_apply(&s->model, OCT_ACTION_FREEZE, 1);
    cells_offer_late(s, &other, 1, true, 2);
    oct_view_model_tick(&s->model, 60 * S);
    assert_true(oct_view_model_has_cells(&s->model));
    assert_true(s->model.cells.tracks[0].x[0] < 21);
    cells_offer(s, &other, 1, false, 2); /* en face goes on */
    assert_true(s->model.cells.tracks[0].x[0] > 89);
    oct_view_model_apply(&s->model, OCT_ACTION_FREEZE, 1);
    cells_offer(s, &one, 1, true, 5);
    s->model.shown.header.frame_num = 6;
    assert_false(oct_view_model_has_cells(&s->model));
    oct_view_model_apply(&s->model, OCT_ACTION_FREEZE, 1);
    assert_false(oct_view_model_has_cells(&s->model));
    cells_offer_late(s, &one, 1, true, 6);
    assert_true(oct_view_model_has_cells(&s->model));
    oct_viewer_stage_close(s);
}

/* Where the next volume has replaced the row that a cell was found in, it is not drawn. */
static void cells_of_a_volume_lie_on_its_own_rows(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_image enface = oct_scene_enface(H, W);
    const struct cell rows[] = {{1, 20, 20, 4, 0}, {2, 20, 70, 4, 0}};
    s->model.settings.arrangement = OCT_ARRANGEMENT_TWO;
    for (uint32_t row = 0; row < H; row++)
        oct_scene_enface_fill(&enface, row, 20);
    oct_view_overlay_take(&s->model, &oct_view_overlay_enface, &enface);
    cells_offer(s, rows, 2, false, 1);
    find_box(s, 0);
    const struct oct_view_rect *area = &oct_draw_layout(s->draw)->enface;
    const int words = area->y + area->h / 8;
    const struct box both = find_box(s, words);
    assert_true(both.n > 40 && both.y1 - both.y0 > area->h / 4);
    const uint32_t newest[] = {10, 40, 90};
    for (unsigned i = 0; i < 3; i++) { /* of the next volume */
        enface.header.volume = 1;
        enface.header.bscan = newest[i];
        oct_view_overlay_take(&s->model, &oct_view_overlay_enface, &enface);
        const struct box b = find_box(s, words);
        assert_true(i == 0   ? b.n == both.n
                    : i == 1 ? b.n > 20 && b.y0 > both.y0 + area->h / 4
                             : b.n == 0);
    }
    s->model.cells.volume = 1; /* its own have come */
    assert_int_equal(find_box(s, words).n, both.n);
    s->model.cells.volume = 3; /* an en face picture that is late */
    assert_int_equal(find_box(s, words).n, 0);
    oct_view_image_finish(&enface);
    oct_viewer_stage_close(s);
}

/* ---- a mirror ---- */

#define POINT 0x5cc8ffu
#define MIRROR 0xffe14du
enum { DEPTH = 100 }; /* as oct_scene_layered */

static const struct {
    const char *name;
    double value;
} numbers[] = {
    {"state", 0},         {"depth_px", 70.25},   {"depth_um", 175.6},
    {"peak_db", 56},      {"fwhm_px", 6.125},    {"fwhm_um", 15.3125},
    {"snr_db", 51.26},    {"points", 4},         {"fwhm_tissue_um", 12.25},
    {"db_per_mm", -80},   {"db_per_100px", -20}, {"minus_6db_px", 30},
    {"minus_6db_um", 75},
};
enum { N_NUMBERS = sizeof(numbers) / sizeof(numbers[0]) };

static void put(struct oct_view_image *table, const char *name, double value)
{
    struct oct_image_header *h = &table->header;
    for (unsigned i = 0; i < h->n_numbers; i++)
        if (strcmp(h->numbers[i].name, name) == 0)
            h->numbers[i].values[0] = value;
}

/* Four points that fall by 0.2 dB a pixel; the caller finishes the table. */
static struct oct_view_image rolloff_table_of(uint64_t arrival_ns)
{
    static const float rows[4][2] = {{10, 68}, {30, 64}, {50, 60}, {70.25f, 56}};
    struct oct_image_header h = {.dataset = "analysis/rolloff",
                                 .frame_num = 1,
                                 .acquisition_id = "a",
                                 .type = OCT_SAMPLE_F32,
                                 .rank = 2,
                                 .dims = {4, 2},
                                 .n_labels = 2,
                                 .labels = {"depth_px", "peak_db"},
                                 .n_numbers = N_NUMBERS};
    struct oct_view_image table = {0};
    for (unsigned i = 0; i < N_NUMBERS; i++) {
        snprintf(h.numbers[i].name, sizeof(h.numbers[i].name), "%s", numbers[i].name);
        h.numbers[i].n_values = 1;
        h.numbers[i].values[0] = numbers[i].value;
    }
    assert_int_equal(oct_view_image_set(&table, &h, rows, sizeof(rows), NULL), OCT_OK);
    table.arrival_ns = arrival_ns;
    return table;
}

static void hostile_tables_leave_nothing(void **state)
{
    struct oct_view_rolloff r = {.n = 0};
    struct oct_view_image table = rolloff_table_of(11 * S);
    float *values = table.values;
    oct_view_rolloff_set(&r, &table);
    assert_true(r.n == 4 && r.state == OCT_MIRROR_FOUND && r.snr_db == 51.26);
    assert_true(fabs(oct_view_rolloff_line(&r, 40.0625) - 62) < 1e-4);

    table.header.dims[0] = OCT_ROLLOFF_MOST_POINTS + 1;
    assert_int_equal(oct_view_overlay_rolloff.check(&table.header, NULL), OCT_E_FORMAT);
    table.header.dims[0] = 4;
    table.header.type = OCT_SAMPLE_U8;
    table.header.frame_num = 20;
    assert_int_equal(oct_view_overlay_rolloff.check(&table.header, NULL), OCT_E_FORMAT);
    oct_view_rolloff_set(&r, &table);
    assert_true(r.n == 4 && r.of.frame_num == 1);

    table.header.type = OCT_SAMPLE_F32;
    values[0] = -1;
    values[3] = NAN;
    values[4] = 1e30f;
    put(&table, "state", 1e300);
    put(&table, "snr_db", 1e300);
    put(&table, "db_per_100px", NAN);
    oct_view_rolloff_set(&r, &table);
    assert_true(r.n == 1 && r.state == OCT_MIRROR_WEAK && isnan(r.snr_db));
    assert_true(isnan(oct_view_rolloff_line(&r, 5)));
    put(&table, "state", -2);
    oct_view_rolloff_set(&r, &table);
    assert_int_equal(r.state, OCT_MIRROR_WEAK);
    oct_view_image_finish(&table);
}

static void rolloff_offer(struct oct_viewer_stage *s, struct oct_view_image table)
{
    oct_view_overlay_take(&s->model, &oct_view_overlay_rolloff, &table);
    oct_view_image_finish(&table);
}

static void words_say_width_and_rolloff(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_phrase lines[2];
    assert_int_equal(oct_view_rolloff_text(&s->model, lines), 0);
    rolloff_offer(s, rolloff_table_of(11 * S));
    assert_int_equal(oct_view_rolloff_text(&s->model, lines), 2);
    assert_string_equal(lines[0].text, "70.2 px: FWHM 6.12 px, 15.31 \u00b5m, SNR 51.3 dB");
    assert_string_equal(lines[1].text, "-80.00 dB/mm, -6 dB at 0.07 mm, 4 points");

    /* Without the camera's wavelengths, and with too few points for a line. */
    struct oct_view_image table = rolloff_table_of(11 * S);
    static const char *const unknown[] = {"fwhm_um", "fwhm_tissue_um", "db_per_mm", "minus_6db_um"};
    for (int i = 0; i < 4; i++)
        put(&table, unknown[i], NAN);
    oct_view_overlay_take(&s->model, &oct_view_overlay_rolloff, &table);
    assert_int_equal(oct_view_rolloff_text(&s->model, lines), 2);
    assert_string_equal(lines[0].text, "70.2 px: FWHM 6.12 px, SNR 51.3 dB");
    assert_string_equal(lines[1].text, "-20.00 dB/100 px, -6 dB at 30 px, 4 points");
    put(&table, "state", OCT_MIRROR_HARMONIC);
    put(&table, "db_per_100px", NAN);
    oct_view_overlay_take(&s->model, &oct_view_overlay_rolloff, &table);
    assert_int_equal(oct_view_rolloff_text(&s->model, lines), 1);
    assert_non_null(strstr(lines[0].text, "no mirror: "));
    assert_non_null(strstr(lines[0].text, "saturated"));
    oct_view_image_finish(&table);

    /* Not of another acquisition, not over another picture, and not where nobody wants it. */
    snprintf(s->model.rolloff.of.acquisition_id, sizeof(s->model.rolloff.of.acquisition_id), "b");
    assert_int_equal(oct_view_rolloff_text(&s->model, lines), 0);
    rolloff_offer(s, rolloff_table_of(11 * S));
    s->model.shown.header.frame_num++;
    assert_int_equal(oct_view_rolloff_text(&s->model, lines), 0);
    oct_view_model_apply(&s->model, OCT_ACTION_FREEZE, 1);
    assert_int_equal(oct_view_rolloff_text(&s->model, lines), 0);
    oct_view_model_apply(&s->model, OCT_ACTION_FREEZE, 1);
    s->model.shown.header.frame_num--;
    assert_int_equal(oct_view_rolloff_text(&s->model, lines), 2);
    s->model.settings.operators = true;
    oct_view_model_apply(&s->model, OCT_ACTION_ROLLOFF, 1); /* not an operator's */
    assert_int_equal(oct_view_rolloff_text(&s->model, lines), 2);
    s->model.settings.operators = false;
    oct_view_model_apply(&s->model, OCT_ACTION_ROLLOFF, 1);
    assert_int_equal(oct_view_rolloff_text(&s->model, lines), 0);
    oct_viewer_stage_close(s);
}

/* ---- drawn ---- */

/* How many pixels of a colour the panel has in columns first .. last, and their mean row. */
static unsigned count(const struct oct_viewer_stage *s, int first, int last, uint32_t rgb,
                      double *row)
{
    const struct oct_view_rect panel = oct_draw_layout(s->draw)->profile;
    unsigned n = 0;
    double sum = 0;
    for (int y = panel.y; y < panel.y + panel.h; y++)
        for (int x = first; x <= last; x++)
            if (oct_viewer_stage_pixel(s, x, y) == rgb) {
                n++;
                sum += y;
            }
    *row = n ? sum / n : NAN;
    return n;
}

/* The column of a depth, as the profile's curve has it. */
static int column_of(const struct oct_viewer_stage *s, double depth_px)
{
    const struct oct_view_layout *l = oct_draw_layout(s->draw);
    const int left = 4 * l->text_px, width = l->profile.w - left - l->margin;
    return l->profile.x + left + (int)((depth_px + 0.5) / DEPTH * width);
}

static unsigned count_all(const struct oct_viewer_stage *s, uint32_t rgb)
{
    double row;
    return count(s, column_of(s, 0), column_of(s, DEPTH - 2), rgb, &row);
}

static void rolloff_draw(struct oct_viewer_stage *s)
{
    s->model.message[0] = '\0';
    assert_int_equal(oct_draw_frame(s->draw, &s->model, NULL), OCT_OK);
}

static void points_and_line_lie_in_the_profile(void **state)
{
    static const double depths[] = {10, 30, 50};
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    double row, mirror, rows[3];
    s->model.settings.arrangement = OCT_ARRANGEMENT_FOUR;
    rolloff_draw(s);
    assert_int_equal(count_all(s, POINT), 0);
    rolloff_offer(s, rolloff_table_of(11 * S));
    rolloff_draw(s);
    for (int i = 0; i < 3; i++) {
        const int x = column_of(s, depths[i]);
        assert_true(count(s, x - 2, x + 2, POINT, &rows[i]) >= 9);
        assert_int_equal(count(s, x - 30, x - 12, POINT, &row), 0);
        assert_true(i == 0 || rows[i] > rows[i - 1] + 2); /* deeper is lower */
    }
    /* The newest lies over its point; as far below the third as that is below the second. */
    const int x = column_of(s, 70.25);
    assert_true(count(s, x - 2, x + 2, MIRROR, &mirror) >= 9);
    assert_true(fabs(mirror - rows[2] - (rows[2] - rows[1])) < 2);
    oct_view_model_apply(&s->model, OCT_ACTION_ROLLOFF, 1);
    rolloff_draw(s);
    assert_int_equal(count_all(s, POINT), 0);
    oct_viewer_stage_close(s);
}

/* Peaks far above the published limits, in dB and in counts^2, do not leave the panel. */
static void peaks_beyond_the_limits_have_room(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_image table = rolloff_table_of(11 * S);
    s->model.settings.arrangement = OCT_ARRANGEMENT_FOUR;
    for (int i = 0; i < 4; i++)
        ((float *)table.values)[2 * i + 1] += 60;
    put(&table, "peak_db", 116);
    oct_view_overlay_take(&s->model, &oct_view_overlay_rolloff, &table);
    for (int log = 0; log < 2; log++) {
        s->model.contrast.log = log;
        rolloff_draw(s);
        const struct oct_view_layout *l = oct_draw_layout(s->draw);
        const int x = column_of(s, 10);
        double row;
        assert_true(count(s, x - 2, x + 2, POINT, &row) >= 4);
        assert_true(row > l->profile.y && row < l->profile.y + l->profile.h / 2.0);
    }
    oct_view_image_finish(&table);
    oct_viewer_stage_close(s);
}

/* ---- octd's average ---- */

struct averages {
    struct oct_view_model model;
    struct oct_view_picture picture;
    struct oct_view_image image;
    char text[64];
};

static const float six[6] = {1, 2, 3, 4, 5, 6};

static void send_bscan(struct averages *a, uint64_t frame_num)
{
    const struct oct_picture_header header = {
        .frame_num = frame_num, .sample_type = OCT_SAMPLE_F32, .n_lines = 2, .depth = 3, .hi = 9};
    assert_int_equal(oct_view_picture_set(&a->picture, &header, six, sizeof(six), NULL), OCT_OK);
    a->picture.arrival_ns = a->model.now_ns;
    oct_view_model_offer(&a->model, &a->picture);
}

static void send_average(struct averages *a, uint64_t frame_num, double averaged, double score,
                         double shift)
{
    struct oct_image_header h = {.type = OCT_SAMPLE_F32, .rank = 2, .dims = {2, 3}, .hi = 9};
    h.frame_num = frame_num;
    h.n_numbers = 3;
    h.numbers[0] = (struct oct_image_header_number){"averaged", 1, {averaged}};
    h.numbers[1] = (struct oct_image_header_number){"score", 1, {score}};
    h.numbers[2] = (struct oct_image_header_number){"shift_px", 2, {shift, shift}};
    assert_int_equal(oct_view_overlay_average.check(&h, NULL), OCT_OK);
    assert_int_equal(oct_view_image_set(&a->image, &h, six, sizeof(six), NULL), OCT_OK);
    a->image.arrival_ns = a->model.now_ns;
    oct_view_overlay_take(&a->model, &oct_view_overlay_average, &a->image);
}

/* What stands in the corner, and whether it stands out. */
static void must_say(struct averages *a, const char *text, bool amiss)
{
    assert_int_equal(oct_view_average_text(&a->model, a->text, sizeof(a->text)), amiss);
    assert_string_equal(a->text, text);
}

static void averages_init(struct averages *a)
{
    *a = (struct averages){.text = ""};
    oct_view_model_init(&a->model, "x", true);
    a->model.daemon.known = true;
    a->model.daemon.average_bscans = 16;
    oct_view_model_tick(&a->model, 1000);
}

static void averages_finish(struct averages *a)
{
    oct_view_picture_finish(&a->picture);
    oct_view_image_finish(&a->image);
    oct_view_model_finish(&a->model);
}

/* The average stands in place of B-scans, with what is said of it; amber below the least score. */
static void the_average_stands_in_place_of_bscans(void **state)
{
    static struct averages a;
    averages_init(&a);
    send_bscan(&a, 40);
    oct_view_model_apply(&a.model, OCT_ACTION_AVERAGE, 1);
    must_say(&a, "AVERAGE: none comes", true);
    send_bscan(&a, 41);
    assert_int_equal(a.model.shown.header.frame_num, 41);
    send_average(&a, 41, 14, 0.25, NAN);
    must_say(&a, "AVERAGE of 16 (14 in it, the newest left out)  0.25", true);
    send_bscan(&a, 42);
    send_average(&a, 43, 14, 0.5, 1);
    send_bscan(&a, 44);
    assert_int_equal(a.model.shown.header.frame_num, 43);
    assert_true(oct_view_picture_value(&a.model.shown, 1, 2) == 6);
    must_say(&a, "AVERAGE of 16 (14 in it)  0.50", false);
    oct_view_model_apply(&a.model, OCT_ACTION_AVERAGE, 1);
    must_say(&a, "AVERAGE of 16 (14 in it)  0.50", false); /* until a B-scan comes */
    send_average(&a, 45, 14, 0.5, 1);
    assert_int_equal(a.model.shown.header.frame_num, 43);
    send_bscan(&a, 46);
    assert_int_equal(a.model.shown.header.frame_num, 46);
    assert_true(a.model.average.arrival_ns == 0);
    averages_finish(&a);
}

/* An operator who shows an average that octd does not make sees B-scans that move. */
static void bscans_go_on_where_no_average_comes(void **state)
{
    static struct averages a;
    averages_init(&a);
    oct_view_model_apply(&a.model, OCT_ACTION_AVERAGE, 1);
    send_average(&a, 1, 2, 0.5, 1);
    a.model.daemon.average_bscans = 1;
    send_bscan(&a, 2);
    assert_int_equal(a.model.shown.header.frame_num, 2);
    must_say(&a, "AVERAGE: off (octctl set average.bscans 16)", true);
    a.model.daemon.average_bscans = 16;
    send_average(&a, 3, 2, 0.5, 1);
    oct_view_model_tick(&a.model, 1000 + OCT_NS_PER_S);
    send_bscan(&a, 4);
    assert_int_equal(a.model.shown.header.frame_num, 3);
    oct_view_model_tick(&a.model, 1000 + 3 * OCT_NS_PER_S);
    send_bscan(&a, 5);
    assert_int_equal(a.model.shown.header.frame_num, 5);
    must_say(&a, "AVERAGE: none comes", true);
    averages_finish(&a);
}

/* Frozen, the corner speaks of the picture that is shown, whatever comes meanwhile. */
static void a_frozen_picture_keeps_what_is_said_of_it(void **state)
{
    static struct averages a;
    averages_init(&a);
    oct_view_model_apply(&a.model, OCT_ACTION_AVERAGE, 1);
    send_average(&a, 1, 2, 0.5, 1);
    oct_view_model_apply(&a.model, OCT_ACTION_FREEZE, 1);
    send_average(&a, 2, 3, 0.1, NAN);
    must_say(&a, "AVERAGE of 16 (2 in it)  0.50", false);
    oct_view_model_apply(&a.model, OCT_ACTION_FREEZE, 1);
    assert_int_equal(a.model.shown.header.frame_num, 2);
    must_say(&a, "AVERAGE of 16 (3 in it, the newest left out)  0.10", true);
    oct_view_model_apply(&a.model, OCT_ACTION_AVERAGE, 1);
    send_bscan(&a, 3);
    oct_view_model_apply(&a.model, OCT_ACTION_FREEZE, 1);
    oct_view_model_apply(&a.model, OCT_ACTION_AVERAGE, 1);
    must_say(&a, "one B-scan, not the average", true);
    averages_finish(&a);
}

/* ---- the sharpest dispersion ---- */

struct scene {
    struct oct_view_model model;
    struct oct_view_picture picture;
    struct oct_view_image image;
    char text[160];
};

static const uint8_t pixels[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

static void sharpened_send_bscan(struct scene *s, uint64_t frame_num)
{
    const struct oct_picture_header header = {.frame_num = frame_num,
                                              .acquisition_id = "x-1",
                                              .sample_type = OCT_SAMPLE_U8,
                                              .n_lines = 2,
                                              .depth = 3,
                                              .hi = 9};
    assert_int_equal(oct_view_picture_set(&s->picture, &header, pixels, 6, NULL), OCT_OK);
    s->picture.arrival_ns = s->model.now_ns;
    oct_view_model_offer(&s->model, &s->picture);
}

static void send_result(struct scene *s, double a4)
{
    struct oct_image_header h = {
        .type = OCT_SAMPLE_U8, .rank = 2, .dims = {4, 3}, .lo = -20, .hi = 30, .frame_num = 77};
    h.n_numbers = 3;
    h.numbers[0] = (struct oct_image_header_number){"dispersion", 4, {14.856, -1.8055, a4, 0}};
    h.numbers[1] = (struct oct_image_header_number){"sharpness", 2, {19.91, 35.97}};
    h.numbers[2] = (struct oct_image_header_number){"width_px", 2, {7.358, 4.612}};
    assert_int_equal(oct_view_overlay_sharpened.check(&h, NULL), OCT_OK);
    assert_int_equal(oct_view_image_set(&s->image, &h, pixels, sizeof(pixels), NULL), OCT_OK);
    s->image.arrival_ns = s->model.now_ns;
    oct_view_overlay_take(&s->model, &oct_view_overlay_sharpened, &s->image);
}

static void open_scene(struct scene *s)
{
    *s = (struct scene){.text = ""};
    oct_view_model_init(&s->model, "x", true);
    s->model.has_control = true;
    s->model.daemon.known = s->model.daemon.reachable = true;
    oct_view_model_tick(&s->model, 1000);
    sharpened_send_bscan(s, 40);
}

static void close_scene(struct scene *s)
{
    oct_view_picture_finish(&s->picture);
    oct_view_image_finish(&s->image);
    oct_view_model_finish(&s->model);
}

static void sharpened_must_say(struct scene *s, unsigned i, const char *text)
{
    assert_int_equal(oct_view_sharpened_text(&s->model, i, s->text, sizeof(s->text)), text != NULL);
    if (text)
        assert_string_equal(s->text, text);
}

/* Presses D; the wish goes out, and octd grants it. */
static void ask(struct scene *s)
{
    char text[OCT_VIEW_LABEL_BYTES];
    const struct oct_view_daemon daemon = s->model.daemon;
    const struct oct_view_answer granted = {.wish = OCT_WISH_CALIBRATE, .ok = true};
    oct_view_model_apply(&s->model, OCT_ACTION_SHARPEN, 1);
    assert_int_equal(oct_view_model_take_wish(&s->model, text), OCT_WISH_CALIBRATE);
    oct_view_model_hear(&s->model, &daemon, &granted);
    assert_true(s->model.sharpening.waits);
}

static void before_and_after_are_shown_and_left_again(void **state)
{
    static struct scene s;
    open_scene(&s);
    send_result(&s, 0); /* nobody asked for it */
    assert_int_equal(s.model.shown.header.frame_num, 40);
    ask(&s);
    sharpened_send_bscan(&s, 41); /* the stream goes on meanwhile */
    assert_int_equal(s.model.shown.header.frame_num, 41);
    send_result(&s, 0);
    assert_int_equal(s.model.shown.header.frame_num, 77);
    assert_int_equal(s.model.shown.header.n_lines, 4);
    assert_string_equal(s.model.shown.header.acquisition_id, ""); /* no layers over it */
    assert_true(s.model.frozen && !s.model.sharpening.waits);
    sharpened_must_say(&s, 0, "before | after: sharpness 19.9 -> 36.0; width 7.36 -> 4.61 px");
    sharpened_must_say(&s, 1, "[calibration] dispersion_over = spectrum");
    sharpened_must_say(&s, 2, "dispersion_a2 = 14.8560  dispersion_a3 = -1.8055");
    sharpened_must_say(&s, 3, NULL);
    sharpened_send_bscan(&s, 42);
    assert_int_equal(s.model.shown.header.frame_num, 77); /* until D is pressed again */
    oct_view_model_apply(&s.model, OCT_ACTION_SHARPEN, 1);
    assert_false(s.model.frozen);
    assert_int_equal(s.model.shown.header.frame_num, 42);
    sharpened_must_say(&s, 0, NULL);
    ask(&s);
    send_result(&s, 0.25); /* with what the configuration had */
    sharpened_must_say(&s, 3, "dispersion_a4 = 0.2500  dispersion_a5 = 0.0000");
    close_scene(&s);
}

static void a_failure_ends_the_wait_and_is_told(void **state)
{
    static struct scene s;
    char text[OCT_VIEW_LABEL_BYTES];
    open_scene(&s);
    struct oct_view_daemon daemon = s.model.daemon;
    const struct oct_view_answer none = {.wish = OCT_WISH_NONE};
    const struct oct_view_answer no = {.wish = OCT_WISH_CALIBRATE, .text = "none come"};

    oct_view_model_apply(&s.model, OCT_ACTION_SHARPEN, 1);
    assert_int_equal(oct_view_model_take_wish(&s.model, text), OCT_WISH_CALIBRATE);
    oct_view_model_hear(&s.model, &daemon, &no);
    assert_false(s.model.sharpening.waits);
    assert_string_equal(s.model.message, "octd refused the sharpest dispersion: none come");

    ask(&s);
    daemon.errand.number = 1;
    daemon.errand.pending = true;
    oct_view_model_hear(&s.model, &daemon, &none);
    assert_true(s.model.sharpening.waits);
    daemon.errand.pending = false;
    strcpy(daemon.errand.why, "nothing to sharpen");
    oct_view_model_hear(&s.model, &daemon, &none);
    assert_false(s.model.sharpening.waits);
    assert_string_equal(s.model.message, "no sharper dispersion: nothing to sharpen");

    ask(&s); /* the failure before it is not taken for this one's */
    oct_view_model_hear(&s.model, &daemon, &none);
    assert_true(s.model.sharpening.waits);
    oct_view_model_tick(&s.model, 61 * OCT_NS_PER_S);
    oct_view_model_hear(&s.model, &daemon, &none);
    assert_false(s.model.sharpening.waits);
    close_scene(&s);
}

static void what_is_no_such_picture_is_refused(void **state)
{
    struct oct_image_header h = {.type = OCT_SAMPLE_U8, .rank = 2, .dims = {3, 3}};
    assert_int_equal(oct_view_overlay_sharpened.check(&h, NULL), OCT_E_FORMAT);
    h.dims[0] = 0;
    assert_int_equal(oct_view_overlay_sharpened.check(&h, NULL), OCT_E_FORMAT);
    h.dims[0] = 4;
    h.rank = 1;
    assert_int_equal(oct_view_overlay_sharpened.check(&h, NULL), OCT_E_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_place_is_not_found),
        cmocka_unit_test(lines_lie_on_the_layers),
        cmocka_unit_test(the_thickness_stands_under_the_calipers_and_in_the_corner),
        cmocka_unit_test(a_frozen_picture_has_its_own_layers_and_no_others),
        cmocka_unit_test(the_shown_picture_is_the_newest_that_has_layers),
        cmocka_unit_test(a_slow_scan_shows_the_layers_of_each_picture),
        cmocka_unit_test(frozen_back_begins_at_the_shown_picture),
        cmocka_unit_test(layers_of_an_older_bscan_of_the_mean_lie_where_it_was_moved),
        cmocka_unit_test(an_average_takes_the_layers_to_where_it_lies),
        cmocka_unit_test(places_below_the_picture_are_not_drawn),
        cmocka_unit_test(bounds_in_depth_are_drawn_for_their_own_picture),
        cmocka_unit_test(en_face_follows_layers_while_octd_makes_that),
        cmocka_unit_test(tracks_keep_their_last_positions),
        cmocka_unit_test(what_cannot_be_a_cell_is_left_out),
        cmocka_unit_test(circles_lie_about_their_cells),
        cmocka_unit_test(cells_of_volumes_are_on_the_en_face_picture),
        cmocka_unit_test(the_corner_says_how_many_and_how_fast),
        cmocka_unit_test(a_frozen_picture_has_its_own_cells_and_no_others),
        cmocka_unit_test(cells_of_a_volume_lie_on_its_own_rows),
        cmocka_unit_test(hostile_tables_leave_nothing),
        cmocka_unit_test(words_say_width_and_rolloff),
        cmocka_unit_test(points_and_line_lie_in_the_profile),
        cmocka_unit_test(peaks_beyond_the_limits_have_room),
        cmocka_unit_test(the_average_stands_in_place_of_bscans),
        cmocka_unit_test(bscans_go_on_where_no_average_comes),
        cmocka_unit_test(a_frozen_picture_keeps_what_is_said_of_it),
        cmocka_unit_test(before_and_after_are_shown_and_left_again),
        cmocka_unit_test(a_failure_ends_the_wait_and_is_told),
        cmocka_unit_test(what_is_no_such_picture_is_refused),
    };
    return cmocka_run_group_tests_name("viewer overlays", tests, NULL, NULL);
}
