/* The synthetic retina in the viewer's window: layers lie where the truth has them, the calipers
 * read the truth's distances, alarms and recording are seen, at three sizes of the window. */
#include "pipeline/base/clock.h"
#include "test/rig/synth_scene.h"
#include "test/rig/tap.h"
#include "test/rig/viewer_scene.h"
#include "test/rig/viewer_stage.h"

#include <SDL.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S OCT_NS_PER_S
#define BSCAN 20u /* of the rendered ones */
#define INDEX 1.36

static const int sizes[][2] = {{1280, 720}, {1920, 1080}, {3840, 2160}};
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

struct scene {
    const struct synth_scene *synth;
    uint8_t *pixels; /* [N_LINES][DEPTH], -10 .. 40 dB */
    struct oct_viewer_stage *stage;
};

static void reconstruct(struct scene *scene)
{
    float mean[SYNTH_N_SAMPLES], line[SYNTH_DEPTH];
    scene->pixels = malloc((size_t)SYNTH_N_LINES * SYNTH_DEPTH);
    assert_non_null(scene->pixels);
    synth_bscan_mean(scene->synth, BSCAN, mean);
    for (uint32_t j = 0; j < SYNTH_N_LINES; j++) {
        synth_reconstruct(scene->synth, BSCAN, j, mean, 0, SYNTH_DEPTH, line);
        for (uint32_t d = 0; d < SYNTH_DEPTH; d++) {
            double grey = (10 * log10(fmax((double)line[d], 1e-12)) + 10) / 50 * 255;
            scene->pixels[j * SYNTH_DEPTH + d] = (uint8_t)(grey < 0     ? 0
                                                           : grey > 255 ? 255
                                                                        : grey + 0.5);
        }
    }
}

static void open_stage(struct scene *scene, const int size[2])
{
    struct oct_view_picture picture = {0};
    struct oct_picture_header header = {.sample_type = OCT_SAMPLE_U8,
                                        .n_lines = SYNTH_N_LINES,
                                        .depth = SYNTH_DEPTH,
                                        .lo = -10,
                                        .hi = 40};
    struct oct_view_daemon daemon = {
        .known = true,
        .reachable = true,
        .answer_ns = 1,
        .state = "running",
        .axial_um = scene->synth->facts->axial_um / INDEX,
        .lateral_um = scene->synth->facts->width_um / SYNTH_N_LINES,
        .disk_bytes_free = NAN,
    };
    scene->stage = oct_viewer_stage_open_at(size, NULL);
    scene->stage->model.settings.guide = false; /* its lines lie over the picture */
    assert_int_equal(oct_view_picture_set(&picture, &header, scene->pixels,
                                          (size_t)SYNTH_N_LINES * SYNTH_DEPTH, NULL),
                     OCT_OK);
    oct_viewer_stage_show(scene->stage, picture);
    oct_view_model_hear(&scene->stage->model, &daemon, &(struct oct_view_answer){0});
}

/* The middle of the bright band that the screen shows near a depth of A-line j, in depth pixels. */
static double band_on_screen(const struct oct_viewer_stage *stage, uint32_t j, double depth,
                             double reach)
{
    struct oct_view_rectf place = oct_draw_layout(stage->draw)->place;
    int x = (int)(place.x + (j + 0.5) / SYNTH_N_LINES * place.w);
    double per_px = SYNTH_DEPTH / place.h, sum = 0, sum_depth = 0;
    for (double d = depth - reach; d <= depth + reach; d += per_px) {
        int y = (int)(place.y + d / per_px);
        double grey = oct_viewer_stage_pixel(stage, x, y) & 255;
        double weight = pow(10, grey / 255 * 5); /* intensity: the scale is 50 dB */
        sum += weight;
        sum_depth += weight * ((y + 0.5 - place.y) * per_px);
    }
    return sum_depth / sum;
}

TEST(the_calipers_read_the_truths_distance)
{
    struct scene scene = {.synth = *state};
    reconstruct(&scene);
    for (size_t k = 0; k < N_SIZES; k++) {
        open_stage(&scene, sizes[k]);
        scene.stage->model.settings.fit = OCT_FIT_MICROMETRES;
        oct_viewer_stage_draw(scene.stage);
        struct oct_view_rectf place = oct_draw_layout(scene.stage->draw)->place;
        double axial_um = scene.stage->model.daemon.axial_um, error_um = 0, band_error = 0;
        unsigned n = 0;
        for (uint32_t j = 10; j < SYNTH_N_LINES - 10; j += 4, n++) {
            /* A depth pixel's middle is half a pixel below its number. */
            double ilm = synth_surface(scene.synth, OCT_SURFACE_ILM, BSCAN, j) + 0.5;
            double isos = synth_surface(scene.synth, OCT_SURFACE_ISOS, BSCAN, j) + 0.5;
            struct oct_view_point a = {j + 0.5, band_on_screen(scene.stage, j, ilm, 8)};
            struct oct_view_point b = {j + 0.5, band_on_screen(scene.stage, j, isos, 8)};
            oct_view_model_set_caliper(&scene.stage->model, a, b);
            const struct oct_view_point *ends = scene.stage->model.calipers.shown.caliper[0].end;
            double um =
                oct_view_distance_um(ends[0], ends[1], oct_view_model_scale(&scene.stage->model));
            error_um += um - (isos - ilm) * axial_um;
            band_error += a.depth - ilm;
        }
        /* A pixel: of the picture, or of the screen where those are larger. */
        double pixel = fmax(1, SYNTH_DEPTH / place.h);
        assert_true(fabs(error_um / n) < pixel * axial_um);
        assert_true(fabs(band_error / n) < pixel);
        /* The proportions are those of the tissue. */
        double wide = scene.synth->facts->width_um, deep = SYNTH_DEPTH * axial_um;
        assert_true(fabs(place.w / place.h / (wide / deep) - 1) < 0.01);
        /* What is drawn: a line of its own colour between the ends. */
        oct_viewer_stage_draw(scene.stage);
        const struct oct_view_point *ends = scene.stage->model.calipers.shown.caliper[0].end;
        int x = (int)(place.x + ends[0].line / SYNTH_N_LINES * place.w);
        int y = (int)(place.y + (ends[0].depth + ends[1].depth) / 2 / SYNTH_DEPTH * place.h);
        assert_int_equal(oct_viewer_stage_pixel(scene.stage, x, y), 0x5cc8ff);
        oct_viewer_stage_close(scene.stage);
    }
    free(scene.pixels);
}

TEST(alarms_and_recording_are_seen)
{
    struct scene scene = {.synth = *state};
    reconstruct(&scene);
    for (size_t k = 0; k < N_SIZES; k++) {
        open_stage(&scene, sizes[k]);
        oct_viewer_stage_draw(scene.stage);
        const struct oct_view_layout *l = oct_draw_layout(scene.stage->draw);
        struct oct_view_rect stripe = {l->banner.x, l->banner.y, l->margin, l->text_px};
        assert_int_equal(oct_viewer_stage_count(scene.stage, stripe, 0xf08a7c), 0);
        assert_int_equal(oct_viewer_stage_count(scene.stage, l->header, 0xb3261e), 0);
        scene.stage->model.daemon.record.active = true;
        oct_view_model_tick(&scene.stage->model, 60 * S); /* nothing came for 55 s */
        oct_viewer_stage_draw(scene.stage);
        assert_int_equal(oct_viewer_stage_count(scene.stage, stripe, 0xf08a7c),
                         (unsigned)(stripe.w * stripe.h));
        assert_true(oct_viewer_stage_count(scene.stage, l->header, 0xb3261e) >
                    (unsigned)(l->header.w * l->header.h / 2));
        /* What the daemon does not confirm is not shown as recording. */
        scene.stage->model.daemon.reachable = false;
        oct_viewer_stage_draw(scene.stage);
        assert_int_equal(oct_viewer_stage_count(scene.stage, l->header, 0xb3261e), 0);
        oct_viewer_stage_close(scene.stage);
    }
    free(scene.pixels);
}

TEST(zoomed_the_panel_shows_the_part_and_nothing_beyond)
{
    struct scene scene = {.synth = *state};
    reconstruct(&scene);
    for (size_t k = 0; k < N_SIZES; k++) {
        open_stage(&scene, sizes[k]);
        scene.stage->model.lens = (struct oct_view_lens){10, 0.5, 0.5, 1, 1};
        oct_viewer_stage_draw(scene.stage);
        struct oct_view_rectf place = oct_draw_layout(scene.stage->draw)->place;
        struct oct_view_rect r = oct_draw_layout(scene.stage->draw)->picture;
        const struct oct_view_layout *l = oct_draw_layout(scene.stage->draw);
        assert_true(r.w <= l->bscan.w && r.h <= l->bscan.h && place.h > 9.9 * l->bscan.h);
        /* The middle pixel of the screen is the picture's pixel there. */
        for (int dy = -40; dy <= 40; dy += 8) {
            int x = r.x + r.w / 2, y = r.y + r.h / 2 + dy;
            uint32_t line = (uint32_t)((x + 0.5 - place.x) / place.w * SYNTH_N_LINES);
            uint32_t d = (uint32_t)((y + 0.5 - place.y) / place.h * SYNTH_DEPTH);
            assert_int_equal(oct_viewer_stage_pixel(scene.stage, x, y) & 255,
                             scene.pixels[line * SYNTH_DEPTH + d]);
        }
        /* Left of the panel and above it is the ground. */
        assert_int_equal(
            oct_viewer_stage_pixel(scene.stage, l->bscan.x - 1, l->bscan.y + l->bscan.h / 2),
            0x12161c);
        oct_viewer_stage_close(scene.stage);
    }
    free(scene.pixels);
}

TEST(en_face_profile_and_spectrum_have_their_panels)
{
    struct scene scene = {.synth = *state};
    struct oct_view_image image = oct_scene_enface(60, SYNTH_N_LINES);
    reconstruct(&scene);
    open_stage(&scene, sizes[0]);
    for (uint32_t b = 0; b < 30; b++)
        oct_scene_enface_fill(&image, b, (float)(20 + b));
    oct_view_overlay_take(&scene.stage->model, &oct_view_overlay_enface, &image);
    scene.stage->model.settings.arrangement = OCT_ARRANGEMENT_FOUR;
    scene.stage->model.spectrum.n_samples = 100;
    scene.stage->model.spectrum.limit = 1000;
    scene.stage->model.spectrum.sample = calloc(100, sizeof(uint16_t));
    assert_non_null(scene.stage->model.spectrum.sample);
    oct_viewer_stage_draw(scene.stage);
    const struct oct_view_layout *l = oct_draw_layout(scene.stage->draw);
    struct oct_view_rect e = l->enface;
    /* Half of the volume is there: bright above, empty below. */
    assert_int_equal(oct_viewer_stage_pixel(scene.stage, e.x + e.w / 2, e.y + e.h - 4), 0x1a2028);
    assert_true((oct_viewer_stage_pixel(scene.stage, e.x + e.w / 2, e.y + e.h / 2 - e.h / 10) &
                 255) != 0x28);
    assert_true(oct_viewer_stage_count(scene.stage, l->profile, 0x7fc8a0) >
                (unsigned)l->profile.w / 2);
    assert_true(oct_viewer_stage_count(scene.stage, l->spectrum, 0x5cc8ff) >
                (unsigned)l->spectrum.w / 2);
    assert_true(oct_viewer_stage_count(scene.stage, l->spectrum, 0xf08a7c) >
                (unsigned)l->spectrum.w / 2);
    /* Over the whole panel, the middle of row 10 has the grey of 30 dB between 10 and 70. */
    scene.stage->model.settings.fit = OCT_FIT_FILL;
    oct_viewer_stage_draw(scene.stage);
    int line = e.y + (int)(e.h * 10.5 / 60);
    const int grey = (int)(oct_viewer_stage_pixel(scene.stage, e.x + e.w / 2, line) & 255);
    assert_in_range(grey, 0x54, 0x56);
    /* Another row comes, and is drawn. */
    oct_scene_enface_fill(&image, 59, 70);
    oct_view_overlay_take(&scene.stage->model, &oct_view_overlay_enface, &image);
    oct_viewer_stage_draw(scene.stage);
    assert_true(oct_viewer_stage_count(scene.stage, e, 0xffffff) > (unsigned)e.w / 4);
    /* Other limits change all of them. */
    image.header.lo = 30;
    oct_view_overlay_take(&scene.stage->model, &oct_view_overlay_enface, &image);
    oct_viewer_stage_draw(scene.stage);
    assert_int_equal(oct_viewer_stage_pixel(scene.stage, e.x + e.w / 2, line), 0x000000);
    oct_view_image_finish(&image);
    oct_viewer_stage_close(scene.stage);
    free(scene.pixels);
}

TEST_GROUP(synth_scene_make, synth_scene_drop);
