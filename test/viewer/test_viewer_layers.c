/* The layers that octd finds, in the viewer: what is kept of them, where they are drawn, the
 * thickness under the calipers, and the en face picture that follows them. */
#include "test/rig/tap.h"
#include "test/rig/viewer_scene.h"
#include "test/rig/viewer_stage.h"
#include "viewer/draw/draw.h"
#include "viewer/model/clock.h"
#include "viewer/model/model.h"
#include "viewer/model/words.h"

#include <SDL.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    memcpy(values + OCT_SURFACES_ILM * W, ilm, W * sizeof(float));
    memcpy(values + OCT_SURFACES_RPE * W, rpe, W * sizeof(float));
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
    assert_true(layers.n_lines == W && layers.frame_num == 1);
    image.header.type = OCT_SAMPLE_F32;
    image.header.frame_num = 2;
    image.header.dims[1] = W / 2; /* another scan */
    image.arrival_ns = 12 * S;
    oct_view_layers_set(&layers, &image);
    assert_true(layers.n_lines == W / 2 && layers.frame_num == 2 && layers.position[1][0] == 20);
    oct_view_image_finish(&image);
    oct_view_layers_finish(&layers);
    oct_view_layers_finish(&layers);
}

/* ---- drawn ---- */

static void offer_late(struct oct_viewer_stage *s, struct oct_view_image image)
{
    oct_view_model_offer_layers(&s->model, &image);
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
        uint32_t pixel;
        int off = 0;
        memcpy(&pixel,
               (const uint8_t *)s->surface->pixels + y * s->surface->pitch + 4 * (int)lround(x),
               sizeof(pixel));
        for (int shift = 0; shift < 24; shift += 8)
            off = SDL_max(off, abs((int)(pixel >> shift & 255) - (int)(rgb >> shift & 255)));
        if (off < 40) {
            sum += y;
            n++;
        }
    }
    return n ? sum / n : NAN;
}

static void draw(struct oct_viewer_stage *s)
{
    assert_int_equal(oct_draw_frame(s->draw, &s->model, NULL), OCT_OK);
    SDL_RenderFlush(s->renderer);
}

static void lines_lie_on_the_layers(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    const int top = 150; /* below the words in the corner */
    offer(s, level(40, 80, 60, 90, 1));
    draw(s);
    struct oct_view_rectf p = oct_draw_place(s->draw);
    const double left = p.x + 30.5 / W * p.w, gap = p.x + 75.5 / W * p.w;
    assert_true(fabs(row_of(s, ILM, left, top) - (p.y + 40.5 / H * p.h)) < 3);
    assert_true(fabs(row_of(s, RPE, left, top) - (p.y + 80.5 / H * p.h)) < 3);
    assert_true(isnan(row_of(s, ILM, gap, top))); /* what is not found is not drawn */
    assert_true(fabs(row_of(s, RPE, gap, top) - (p.y + 80.5 / H * p.h)) < 3);

    oct_view_lens_zoom(&s->model.lens, 2, 0.5, 0.6); /* a zoomed picture takes them along */
    draw(s);
    p = oct_draw_place(s->draw);
    assert_true(fabs(row_of(s, ILM, p.x + 50.5 / W * p.w, top) - (p.y + 40.5 / H * p.h)) < 3);
    oct_view_lens_init(&s->model.lens);

    oct_view_model_apply(&s->model, OCT_ACTION_LAYERS, 1);
    draw(s);
    assert_true(isnan(row_of(s, ILM, left, 0)) && isnan(row_of(s, RPE, left, 0)));
    oct_view_model_apply(&s->model, OCT_ACTION_LAYERS, 1);
    offer(s, level(20, 80, 0, 0, 2));
    draw(s);
    assert_true(row_of(s, RPE, left, top) > 0);
    s->model.shown.header.frame_num = 3; /* octd says no more of them */
    draw(s);
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
    assert_string_equal(p.text, "layers: none found");
    snprintf(s->model.layers.acquisition_id, sizeof(s->model.layers.acquisition_id), "b");
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
                    (s->model.layers.frame_num == shown &&
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
    oct_view_model_attach(&s->model, archive);
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
    oct_view_model_attach(&s->model, archive);
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
    oct_view_model_attach(&s->model, archive);
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
    oct_view_model_attach(&s->model, archive);
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
        assert_int_equal(oct_view_overlay_belongs(&s->model, "a", f, &lines, &depth), in_it);
        assert_true(!in_it || (lines == (double)f - 90 && depth == -3));
        assert_false(oct_view_overlay_belongs(&s->model, "b", f, &lines, &depth));
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
    draw(s);
    const struct oct_view_rectf p = oct_draw_place(s->draw);
    assert_true(fabs(row_of(s, ILM, p.x + 30.5 / W * p.w, 150) - (p.y + 30.5 / H * p.h)) < 3);
    assert_true(fabs(row_of(s, RPE, p.x + 70.5 / W * p.w, 150) - (p.y + 60.5 / H * p.h)) < 3);
    assert_true(isnan(row_of(s, ILM, p.x + 8.5 / W * p.w, 150))); /* the first ones moved away */
    oct_view_model_thickness_text(&s->model, 71.5, 71.5, text, sizeof(text));
    assert_string_equal(text, "; ILM to RPE 30.0 pixels");
    oct_view_model_thickness_text(&s->model, 72.5, 72.5, text, sizeof(text));
    assert_string_equal(text, "; ILM to RPE 40.0 pixels");

    s->model.average.shift_lines = 0;
    s->model.average.shift_depth = 1e300;
    draw(s);
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
    draw(s);
    oct_view_lens_init(&s->model.lens);
    draw(s);
    const struct oct_view_rectf p = oct_draw_place(s->draw);
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
        oct_view_model_offer_slab(&s->model, &by_layers);
    oct_view_model_offer_enface(&s->model, &image);
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
    draw(s);
    const struct oct_view_rectf p = oct_draw_place(s->draw);
    uint32_t with, without;
    const size_t at =
        (size_t)floor(p.y + 0.6 * p.h) * (size_t)s->surface->pitch + 4 * (size_t)(p.x + 0.1 * p.w);
    memcpy(&with, (const uint8_t *)s->surface->pixels + at, sizeof(with));
    s->model.enface_follows_layers = true;
    draw(s);
    memcpy(&without, (const uint8_t *)s->surface->pixels + at, sizeof(without));
    assert_int_not_equal(with, without);
    s->model.enface_follows_layers = false;
    draw(s);
    memcpy(&without, (const uint8_t *)s->surface->pixels + at, sizeof(without));
    assert_int_equal(with, without);
    oct_viewer_stage_close(s);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
