/* The guide: where the tissue lies, how good a picture is, and which way to move. */
#include "pipeline/base/clock.h"
#include "test/rig/guide_scene.h"
#include "test/rig/tap.h"
#include "test/rig/viewer_daemon.h"
#include "test/rig/viewer_scene.h"
#include "test/rig/viewer_stage.h"
#include "viewer/draw/draw.h"
#include "viewer/input.h"
#include "viewer/model/daemon.h"
#include "viewer/model/model.h"
#include "viewer/model/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one picture ---- */

#define S OCT_NS_PER_S
#define MS OCT_NS_PER_MS

static struct guide_scene *scene; /* of all tests; they do not change it */

static void begin(struct oct_view_model *model)
{
    oct_view_model_init(model, "x", true);
    model->daemon.axial_um = scene->axial_um;
    oct_view_model_tick(model, 100 * S);
}

/* A picture that comes at a moment of a live stream; the model owns what it takes. */
static void come(struct oct_view_model *model, struct oct_view_picture *picture, uint64_t ns)
{
    struct oct_view_tally tally = model->tally;
    picture->arrival_ns = ns;
    picture->header.frame_num = tally.n_received;
    oct_view_tally_add(&tally, &picture->header, ns);
    oct_view_model_tick(model, ns);
    oct_view_model_report(model, &tally, true);
    oct_view_model_offer(model, picture);
}

/* The same picture, again and again. */
static void show_for(struct oct_view_model *model, const struct oct_view_picture *picture,
                     uint64_t from_ns, unsigned n, uint64_t every_ns)
{
    struct oct_view_picture copy = {0};
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(oct_view_picture_set(&copy, &picture->header, picture->pixels,
                                              oct_view_picture_bytes(&picture->header), NULL),
                         OCT_OK);
        come(model, &copy, from_ns + i * every_ns);
    }
    oct_view_picture_finish(&copy);
}

static struct oct_view_guide guide_of(const struct guide_scene *of, const struct guide_fault *fault)
{
    struct oct_view_model *model = calloc(1, sizeof(*model));
    struct oct_view_picture picture = guide_scene_picture(of, fault);
    struct oct_view_guide guide;
    assert_non_null(model);
    begin(model);
    model->contrast.log = !fault->linear;
    come(model, &picture, 100 * S);
    guide = model->guide;
    oct_view_picture_finish(&picture);
    oct_view_model_finish(model);
    free(model);
    return guide;
}

TEST(the_retina_is_where_the_truth_has_it)
{
    static const double shifts[] = {-0.1, 0, 0.1, 0.3};
    for (size_t i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
        const struct oct_view_guide g =
            guide_of(scene, &(struct guide_fault){.shift = shifts[i], .noise = 1});
        const struct oct_sight *s = &g.measured.sight;
        assert_true(s->covered == 1);
        if (fabs(s->top - scene->ilm - shifts[i]) > 0.02 ||
            s->bottom < scene->bruch + shifts[i] - 0.01 ||
            s->bottom > scene->bruch + shifts[i] + 0.03)
            fail_msg("shift %g: tissue from %.3f to %.3f, the truth's ILM %.3f, Bruch's %.3f",
                     shifts[i], s->top, s->bottom, scene->ilm + shifts[i],
                     scene->bruch + shifts[i]);
    }
}

TEST(noise_lowers_it)
{
    double before = 10.5, first = 0, last = 0;
    for (unsigned i = 0; i <= 12; i++) {
        const double noise = i ? pow(10, (3.0 * i - 3) / 10) : 0;
        const struct oct_view_guide g = guide_of(scene, &(struct guide_fault){.noise = noise});
        if (!(g.index < before) && !(g.index == before && (before == 0 || before == 10)))
            fail_msg("noise x %.1f: index %.2f, before it was %.2f", noise, g.index, before);
        first = i ? first : g.index;
        before = last = g.index;
    }
    print_message("# without noise %.2f, 33 dB more %.2f\n", first, last);
    assert_true(first > 9 && last == 0);
}

TEST(dark_lines_lower_it)
{
    double before = 10.5;
    for (double dark = 0; dark < 0.95; dark += 0.125) {
        const struct oct_view_guide g =
            guide_of(scene, &(struct guide_fault){.noise = 20, .dark = dark});
        if (!(g.index < before))
            fail_msg("%.0f %% dark: index %.2f, before it was %.2f", 100 * dark, g.index, before);
        before = g.index;
    }
    assert_true(guide_of(scene, &(struct guide_fault){.dark = 1}).index == 0);
}

TEST(a_shift_lowers_it_and_says_which_way)
{
    double before = 10.5;
    for (double shift = 0.05; shift < 0.85; shift += 0.05) { /* the retina goes out below */
        const struct oct_view_guide g =
            guide_of(scene, &(struct guide_fault){.noise = 1, .shift = shift});
        if (g.index > before + 0.02 || (scene->bruch + shift > 1 && g.index > 0))
            fail_msg("%.2f down: index %.2f, before it was %.2f", shift, g.index, before);
        if (g.off > 0.03)
            assert_int_equal(g.move, OCT_GUIDE_CLOSER);
        else if (g.measured.sight.covered > 0.3)
            assert_int_equal(g.move, OCT_GUIDE_STAY);
        before = g.index;
    }
    assert_true(before == 0);
    before = 10.5;
    for (double shift = 0; shift > -0.75; shift -= 0.04) { /* above */
        const struct oct_view_guide g =
            guide_of(scene, &(struct guide_fault){.noise = 1, .shift = shift});
        if (g.index > before + 0.02)
            fail_msg("%.2f up: index %.2f, before it was %.2f", -shift, g.index, before);
        if (g.off < -0.03 && g.measured.sight.covered > 0.3)
            assert_int_equal(g.move, OCT_GUIDE_AWAY);
        before = g.index;
    }
    assert_true(before < 0.5);
}

TEST(the_move_is_said_in_millimetres)
{
    struct oct_view_model *model = calloc(1, sizeof(*model));
    struct oct_view_picture picture =
        guide_scene_picture(scene, &(struct guide_fault){.noise = 1, .shift = 0.3});
    char text[OCT_VIEW_GUIDE_TEXT_BYTES], wanted[64];
    assert_non_null(model);
    begin(model);
    come(model, &picture, 100 * S);
    /* In air: optical path, what a depth pixel is before it is divided by the eye's index. */
    const double mm = model->guide.off * scene->depth * scene->axial_um * 1.36 / 1000;
    assert_true(mm > 0.1 && mm < 2);
    snprintf(wanted, sizeof(wanted), "closer %.1f mm", mm);
    oct_view_guide_move_text(model, text);
    assert_string_equal(text, wanted);
    model->daemon.axial_um = NAN;
    oct_view_guide_move_text(model, text);
    assert_string_equal(text, "closer");
    oct_view_picture_finish(&picture);
    oct_view_model_finish(model);
    free(model);
}

/* A camera of so many lines says how much of the B-scan was at its limit. */
static void tell_light(struct oct_view_model *model, double saturated, uint64_t ns)
{
    static const char header[] =
        "{\"frame_num\":1,\"acquisition_id\":\"a\",\"dtype\":\"uint16\",\"shape\":[\"100\"],"
        "\"dsize\":200,\"dataset\":\"spectra\",\"compression\":\"none\",\"line\":1,"
        "\"limit\":4095,\"saturated\":%.0f}";
    struct oct_view_spectrum spectrum = {0};
    uint16_t samples[100] = {2000, 3000};
    char json[512];
    snprintf(json, sizeof(json), header, saturated * 100 * scene->n_lines);
    must(oct_view_spectrum_set(&spectrum, json, strlen(json), samples, sizeof(samples), &failure));
    spectrum.arrival_ns = ns;
    oct_view_model_offer_spectrum(model, &spectrum);
    oct_view_spectrum_finish(&spectrum);
}

static void tell_quality(struct oct_view_model *model, uint64_t ns, bool blink, bool motion)
{
    struct oct_view_image row = oct_scene_quality();
    row.arrival_ns = ns;
    oct_scene_quality_put(&row, "blink", blink);
    oct_scene_quality_put(&row, "motion", motion);
    oct_view_quality_add(&model->quality, &row);
    oct_view_image_finish(&row);
}

/* The whole way: light that is too much, spectra cut off by the camera, their reconstruction, and
 * the number of samples that octd counts. */
TEST(a_saturated_camera_lowers_it)
{
    static const double gains[] = {1, 1.5, 1.6, 1.65, 1.7, 1.8, 2.2};
    double before = 10.5, saturated = -1;
    for (size_t i = 0; i < sizeof(gains) / sizeof(gains[0]); i++) {
        struct guide_scene *bright = guide_scene_open(gains[i]);
        struct oct_view_model *model = calloc(1, sizeof(*model));
        struct oct_view_picture picture =
            guide_scene_picture(bright, &(struct guide_fault){.noise = 0});
        assert_non_null(model);
        begin(model);
        model->shown.header.n_lines = bright->n_lines;
        tell_light(model, bright->saturated, 100 * S);
        come(model, &picture, 100 * S + 50 * MS);
        print_message("# light x %.1f: %.3f %% saturated, index %.2f\n", gains[i],
                      100 * bright->saturated, model->guide.index);
        assert_true(bright->saturated >= saturated);
        assert_true(model->guide.part[OCT_GUIDE_LIGHT] <= 1);
        if (i > 0 && bright->saturated > saturated && !(model->guide.index < before) && before > 0)
            fail_msg("light x %g: index %.2f, before it was %.2f", gains[i], model->guide.index,
                     before);
        before = model->guide.index;
        saturated = bright->saturated;
        oct_view_picture_finish(&picture);
        oct_view_model_finish(model);
        free(model);
        guide_scene_close(bright);
    }
    assert_true(saturated > 0.005 && before < 5);
}

TEST(motion_lowers_it)
{
    struct oct_view_picture picture = guide_scene_picture(scene, &(struct guide_fault){.noise = 1});
    double before = 10.5;
    for (unsigned n_jumps = 0; n_jumps <= 8; n_jumps++) {
        struct oct_view_model *model = calloc(1, sizeof(*model));
        assert_non_null(model);
        begin(model);
        for (unsigned i = 0; i < 50; i++) /* one B-scan each 20 ms */
            tell_quality(model, 99 * S + (20 + i * 20) * MS, i >= 40 && n_jumps == 8,
                         i % 6 == 0 && i / 6 < n_jumps);
        show_for(model, &picture, 100 * S, 1, 0);
        if (!(model->guide.index < before))
            fail_msg("%u jumps: index %.2f, before it was %.2f", n_jumps, model->guide.index,
                     before);
        assert_true(fabs(model->guide.measured.jumps - n_jumps) < 1e-9);
        assert_true(fabs(model->guide.measured.blinks - (n_jumps == 8 ? 0.2 : 0)) < 1e-9);
        before = model->guide.index;
        oct_view_model_finish(model);
        free(model);
    }
    oct_view_picture_finish(&picture);
}

TEST(nothing_but_the_picture_raises_it)
{
    const struct guide_fault poor = {.noise = 100};
    const double index = guide_of(scene, &poor).index;
    struct oct_view_model *model = calloc(1, sizeof(*model));
    struct oct_view_picture picture = guide_scene_picture(scene, &poor);
    assert_non_null(model);
    assert_true(index > 1 && index < 6);
    /* Averages look better, and are of the same light. */
    for (unsigned n = 2; n <= 32; n *= 4) {
        const double of_average =
            guide_of(scene, &(struct guide_fault){.noise = 100, .averaged = n}).index;
        if (fabs(of_average - index) > 0.3)
            fail_msg("an average of %u: index %.2f, one B-scan %.2f", n, of_average, index);
    }
    assert_true(fabs(guide_of(scene, &(struct guide_fault){.noise = 100, .linear = true}).index -
                     index) < 0.01);
    /* Limits of 8 bits that cut off lower it. */
    const double limits[][2] = {{-20, 60}, {15, 60}, {-20, 25}};
    for (size_t i = 0; i < 3; i++) {
        struct oct_view_picture bytes = guide_scene_in_bytes(&picture, limits[i][0], limits[i][1]);
        begin(model);
        come(model, &bytes, 100 * S);
        if (model->guide.index > index + 0.1)
            fail_msg("8 bits of %g to %g dB: index %.2f, it was %.2f", limits[i][0], limits[i][1],
                     model->guide.index, index);
        oct_view_picture_finish(&bytes);
        oct_view_model_finish(model);
    }
    /* Nor do contrast, zoom and colours. */
    begin(model);
    show_for(model, &picture, 100 * S, 1, 0);
    for (int action = OCT_ACTION_AUTO_CONTRAST; action <= OCT_ACTION_PALETTE; action++)
        oct_view_model_apply(model, (enum oct_view_action)action, 3);
    oct_view_model_apply(model, OCT_ACTION_ZOOM_IN, 4);
    show_for(model, &picture, 200 * S, 1, 0);
    assert_true(model->guide.index == index);
    oct_view_picture_finish(&picture);
    oct_view_model_finish(model);
    free(model);
}

/* Bright lines, and what is bright everywhere, are no tissue. */
TEST(what_is_no_tissue_has_no_points)
{
    enum { LINES = 120, DEPTH = 640, KINDS = 4 };
    const struct oct_picture_header header = {.acquisition_id = "a",
                                              .sample_type = OCT_SAMPLE_U8,
                                              .n_lines = LINES,
                                              .depth = DEPTH,
                                              .lo = 0,
                                              .hi = 60};
    uint8_t *pixels = calloc(LINES, DEPTH);
    unsigned random = 1;
    assert_non_null(pixels);
    for (unsigned kind = 0; kind < KINDS; kind++) {
        struct oct_view_picture picture = {0};
        struct oct_sight sight;
        for (unsigned i = 0; i < LINES * DEPTH; i++) {
            const unsigned d = i % DEPTH, noise = (random = random * 1103515245u + 12345u) >> 27;
            pixels[i] = (uint8_t)(kind == 0   ? 40 + noise
                                  : kind == 1 ? d / 4 == 60 ? 250 : 40 + noise /* a mirror */
                                  : kind == 2 ? 200
                                              : 0);
        }
        assert_int_equal(oct_view_picture_set(&picture, &header, pixels, LINES * DEPTH, NULL),
                         OCT_OK);
        assert_true(oct_view_sight_of(&picture, true, &sight));
        if (sight.covered != 0 || sight.signal_db != 0 || !isnan(sight.top))
            fail_msg("kind %u: %.2f covered, %.1f dB", kind, sight.covered, sight.signal_db);
        oct_view_picture_finish(&picture);
    }
    free(pixels);
}

/* What is left of the source at zero delay, and what floats before the retina. */
TEST(bright_bands_apart_from_the_tissue_do_not_move_it)
{
    static const uint32_t bands[][2] = {{0, 30}, {900, 930}};
    const struct guide_fault fault = {.noise = 1, .shift = 0.1};
    const struct oct_view_guide plain = guide_of(scene, &fault);
    for (size_t i = 0; i < sizeof(bands) / sizeof(bands[0]); i++) {
        struct oct_view_picture picture = guide_scene_picture(scene, &fault);
        struct oct_sight sight;
        for (uint32_t j = 0; j < scene->n_lines; j++)
            for (uint32_t d = bands[i][0]; d < bands[i][1]; d++)
                ((float *)picture.pixels)[(size_t)j * scene->depth + d] += 12;
        assert_true(oct_view_sight_of(&picture, true, &sight));
        if (fabs(sight.top - plain.measured.sight.top) > 0.01 ||
            fabs(sight.bottom - plain.measured.sight.bottom) > 0.01)
            fail_msg("band %zu: tissue from %.3f to %.3f, without it %.3f to %.3f", i, sight.top,
                     sight.bottom, plain.measured.sight.top, plain.measured.sight.bottom);
        oct_view_picture_finish(&picture);
    }
}

/* octd can be told to keep few depths: the choroid then goes on to the picture's edge. */
TEST(a_choroid_that_is_cut_off_is_no_fault_of_the_retina)
{
    const uint32_t depth = (uint32_t)((scene->bruch + 0.1) * scene->depth);
    struct oct_view_picture picture = guide_scene_picture(scene, &(struct guide_fault){.noise = 1});
    struct oct_sight sight;
    float *pixels = picture.pixels;
    for (uint32_t j = 0; j < scene->n_lines; j++)
        memmove(pixels + (size_t)j * depth, pixels + (size_t)j * scene->depth,
                depth * sizeof(*pixels));
    picture.header.depth = depth;
    assert_true(oct_view_sight_of(&picture, true, &sight));
    const double scale = (double)scene->depth / depth;
    if (sight.covered < 1 || fabs(sight.top - scene->ilm * scale) > 0.04 ||
        fabs(sight.bottom - scene->bruch * scale) > 0.06)
        fail_msg("%.2f covered, from %.3f to %.3f, the truth %.3f to %.3f", sight.covered,
                 sight.top, sight.bottom, scene->ilm * scale, scene->bruch * scale);
    oct_view_picture_finish(&picture);
}

static int open_scene(void **state)
{
    scene = guide_scene_open(1);
    return 0;
}

static int close_scene(void **state)
{
    guide_scene_close(scene);
    return 0;
}

/* ---- live pictures ---- */

#define GOOD 0x7fc8a0u
#define WARN 0xe6b866u
#define BAD 0xf08a7cu

/* One of a live stream; what the fault is lies in it. */
static void live_come(struct oct_view_model *model, const struct guide_fault *fault, uint64_t ns)
{
    struct oct_view_picture picture = guide_scene_picture(scene, fault);
    struct oct_view_tally tally = model->tally;
    picture.arrival_ns = ns;
    picture.header.frame_num = tally.n_received;
    oct_view_tally_add(&tally, &picture.header, ns);
    oct_view_model_tick(model, ns);
    oct_view_model_report(model, &tally, true);
    oct_view_model_offer(model, &picture);
    oct_view_picture_finish(&picture);
}

static struct oct_view_model *live_begin(void)
{
    struct oct_view_model *model = calloc(1, sizeof(*model));
    assert_non_null(model);
    oct_view_model_init(model, "x", true);
    model->daemon.axial_um = scene->axial_um;
    oct_view_model_tick(model, 100 * S);
    return model;
}

static void end(struct oct_view_model *model)
{
    oct_view_model_finish(model);
    free(model);
}

static void live_tell_quality(struct oct_view_model *model, uint64_t ns, bool motion)
{
    struct oct_view_image row = oct_scene_quality();
    row.arrival_ns = ns;
    oct_scene_quality_put(&row, "motion", motion);
    oct_view_quality_add(&model->quality, &row);
    oct_view_image_finish(&row);
}

static void live_tell_light(struct oct_view_model *model, uint64_t n_saturated, uint64_t ns)
{
    uint16_t samples[100] = {2000, 3000};
    struct oct_view_spectrum spectrum = {.sample = samples,
                                         .n_samples = 100,
                                         .limit = 4095,
                                         .n_saturated = n_saturated,
                                         .arrival_ns = ns};
    oct_view_model_offer_spectrum(model, &spectrum);
    model->spectrum = (struct oct_view_spectrum){.n_samples = 0};
}

TEST(a_change_takes_a_second)
{
    struct oct_view_model *model = live_begin();
    const struct guide_fault good = {.noise = 1}, poor = {.noise = 100};
    uint64_t ns = 100 * S;
    live_come(model, &good, ns);
    const double first = model->guide.index;
    for (unsigned i = 0; i < 10; i++)
        live_come(model, &poor, ns += 100 * MS);
    const double after_1_s = model->guide.index;
    for (unsigned i = 0; i < 40; i++)
        live_come(model, &poor, ns += 100 * MS);
    const double last = model->guide.index;
    /* The decibels go to 1 - 1/e of the way; the index of both is cut off at 10 alone. */
    assert_true(first > 9.9 && last < 5);
    if (!(after_1_s < first - 1) || !(after_1_s > last + 1))
        fail_msg("%.2f, after a second %.2f, at last %.2f", first, after_1_s, last);
    /* After a pause it begins anew, and so it does with another acquisition. */
    live_come(model, &good, ns += 3 * S);
    assert_true(model->guide.index > 9.9);
    snprintf(model->guide.acquisition_id, sizeof(model->guide.acquisition_id), "before");
    live_come(model, &poor, ns += 100 * MS);
    assert_true(fabs(model->guide.index - last) < 0.2);
    end(model);
}

/* Noise that lets the index cross a half of a number again and again: the number stays. */
TEST(the_number_does_not_flicker)
{
    struct oct_view_model *model = live_begin();
    double least = 10, most = 0;
    uint64_t ns = 100 * S;
    unsigned n_changes = 0, n_crossed = 0;
    for (unsigned i = 0; i < 200; i++) {
        const int before = model->guide.number;
        const bool above = model->guide.index > 4.5;
        const struct guide_fault fault = {.noise = i / 25 % 2 ? 72 : 94, .seed = i};
        live_come(model, &fault, ns += 50 * MS);
        if (i < 60)
            continue;
        n_changes += model->guide.number != before;
        n_crossed += above != (model->guide.index > 4.5);
        least = fmin(least, model->guide.index);
        most = fmax(most, model->guide.index);
    }
    print_message("# index %.2f to %.2f, 4.5 crossed %u times, number changed %u times\n", least,
                  most, n_crossed, n_changes);
    assert_true(n_crossed >= 2 && least < 4.5 && most > 4.5 && most - least < 1);
    assert_int_equal(n_changes, 0);
    end(model);
}

TEST(what_is_not_known_does_not_count)
{
    struct oct_view_model *model = live_begin();
    char text[OCT_VIEW_GUIDE_TEXT_BYTES], remedy[OCT_VIEW_GUIDE_TEXT_BYTES];
    const struct guide_fault fault = {.noise = 60};
    live_come(model, &fault, 100 * S);
    const double alone = model->guide.index;
    assert_true(isnan(model->guide.part[OCT_GUIDE_LIGHT]));
    assert_true(isnan(model->guide.part[OCT_GUIDE_MOTION]));
    assert_true(fabs(alone - 10 * model->guide.part[OCT_GUIDE_SIGNAL] *
                                 model->guide.part[OCT_GUIDE_PLACE]) < 1e-9);
    oct_view_guide_part_text(model, OCT_GUIDE_LIGHT, text, remedy);
    assert_true(strncmp(text, "not known", 9) == 0 && remedy[0] == '\0');
    oct_view_guide_part_text(model, OCT_GUIDE_MOTION, text, remedy);
    assert_true(strncmp(text, "not known", 9) == 0 && remedy[0] == '\0');
    /* What is known and without fault changes nothing either. */
    live_tell_light(model, 0, 103 * S);
    live_tell_quality(model, 103 * S, false);
    live_come(model, &fault, 103 * S);
    assert_true(model->guide.part[OCT_GUIDE_LIGHT] == 1 &&
                model->guide.part[OCT_GUIDE_MOTION] == 1);
    assert_true(model->guide.index == alone);
    oct_view_guide_part_text(model, OCT_GUIDE_LIGHT, text, remedy);
    assert_string_equal(text, "no sample at the camera's limit");
    /* Half a percent at the limit, two jumps. */
    live_tell_light(model, scene->n_lines / 2, 106 * S);
    live_tell_quality(model, 106 * S, true);
    live_tell_quality(model, 106 * S + 40 * MS, true);
    live_come(model, &fault, 106 * S + 50 * MS);
    assert_true(fabs(model->guide.part[OCT_GUIDE_LIGHT] - 0.5) < 1e-6);
    assert_true(fabs(model->guide.part[OCT_GUIDE_MOTION] - 0.49) < 1e-6);
    assert_true(fabs(model->guide.index - alone * 0.5 * 0.49) < 1e-6);
    oct_view_guide_part_text(model, OCT_GUIDE_LIGHT, text, remedy);
    assert_string_equal(text, "0.5 % of the camera's samples at its limit");
    assert_true(strstr(remedy, "less light") != NULL);
    oct_view_guide_part_text(model, OCT_GUIDE_MOTION, text, remedy);
    assert_string_equal(text, "2 jumps in a second, blinks 0 % of it");
    assert_true(remedy[0] != '\0');
    /* Spectra and rows of long ago say nothing of this picture. */
    live_come(model, &fault, 109 * S);
    assert_true(isnan(model->guide.part[OCT_GUIDE_LIGHT]) &&
                isnan(model->guide.part[OCT_GUIDE_MOTION]));
    end(model);
}

TEST(a_frozen_picture_has_its_own)
{
    struct oct_view_model *model = live_begin();
    const struct guide_fault good = {.noise = 1}, poor = {.noise = 150, .shift = 0.3};
    live_come(model, &good, 100 * S);
    live_tell_light(model, scene->n_lines / 2, 100 * S);
    live_tell_quality(model, 100 * S, true);
    live_come(model, &poor, 100 * S + 500 * MS);
    const double smoothed = model->guide.index;
    oct_view_model_apply(model, OCT_ACTION_FREEZE, 1);
    oct_view_model_tick(model, 101 * S);
    const struct oct_view_guide frozen = model->guide;
    assert_true(frozen.index < smoothed - 1); /* of this picture alone */
    assert_true(fabs(frozen.part[OCT_GUIDE_LIGHT] - 0.5) < 1e-6);
    assert_true(oct_view_guide_has_number(model) && !oct_view_guide_leads(model));
    /* What comes meanwhile is not of it, however much comes. */
    for (unsigned i = 0; i < 80; i++) {
        live_tell_light(model, 0, 101 * S + i * 250 * MS);
        live_tell_quality(model, 101 * S + i * 250 * MS, false);
        live_come(model, &good, 101 * S + i * 250 * MS);
    }
    assert_true(model->guide.index == frozen.index && model->guide.number == frozen.number);
    assert_true(model->guide.part[OCT_GUIDE_MOTION] == frozen.part[OCT_GUIDE_MOTION]);
    model->serial++; /* it is looked at again, as after steps back and on */
    oct_view_model_tick(model, 121 * S);
    assert_true(model->guide.index == frozen.index);
    oct_view_model_apply(model, OCT_ACTION_FREEZE, 1);
    assert_true(model->guide.index > 9); /* the newest, at once */
    assert_true(oct_view_guide_leads(model));
    end(model);
}

TEST(without_a_stream_there_is_no_number)
{
    struct oct_view_model *model = live_begin();
    assert_false(oct_view_guide_has_number(model) || oct_view_guide_leads(model));
    live_come(model, &(struct guide_fault){.noise = 1}, 100 * S);
    assert_true(oct_view_guide_has_number(model) && oct_view_guide_leads(model));
    oct_view_model_tick(model, 130 * S); /* it stalled */
    assert_false(oct_view_guide_has_number(model) || oct_view_guide_leads(model));
    live_come(model, &(struct guide_fault){.noise = 1}, 131 * S);
    oct_view_model_apply(model, OCT_ACTION_GUIDE, 1);
    assert_false(oct_view_guide_has_number(model) || oct_view_guide_leads(model));
    end(model);
}

/* A newcomer's mirror carries no alarm; an eye that is not seen yet does, once somebody says
 * that it is one; and a retina says so itself, to the end of its acquisition. */
TEST(a_mirror_is_judged_by_nobodys_retina)
{
    struct oct_view_model *model = live_begin();
    for (unsigned i = 0; i < 4; i++) {
        struct oct_view_picture mirror =
            guide_scene_picture(scene, &(struct guide_fault){.noise = 1});
        for (size_t k = 0; k < (size_t)scene->n_lines * scene->depth; k++)
            ((float *)mirror.pixels)[k] = /* a dozen pixels thick, on noise */
                labs((long)(k % scene->depth) - 200) <= 6 ? 40
                                                          : 3 + (float)(k * 2654435761u >> 30 & 3);
        const uint64_t ns = (100 + i) * S;
        struct oct_view_tally tally = model->tally;
        snprintf(model->daemon.record.eye, sizeof(model->daemon.record.eye), "%s",
                 i == 1 ? "OD" : "");
        model->settings.operators = i == 2;
        mirror.arrival_ns = ns;
        mirror.header.frame_num = tally.n_received;
        oct_view_tally_add(&tally, &mirror.header, ns);
        oct_view_model_tick(model, ns);
        oct_view_model_report(model, &tally, true);
        oct_view_model_offer(model, &mirror);
        oct_view_picture_finish(&mirror);
        assert_int_equal(oct_view_guide_leads(model), i == 1 || i == 2);
        assert_int_equal(oct_view_guide_has_number(model), i == 1 || i == 2);
    }
    live_come(model, &(struct guide_fault){.noise = 1}, 105 * S);
    assert_true(oct_view_guide_has_number(model));
    end(model);
}

/* No bytes of a picture lead to a number beyond 0 to 10. */
TEST(hostile_pictures_have_numbers_too)
{
    static const float wild[] = {NAN, INFINITY, -INFINITY, 3e38F, -3e38F, 1e-40F, 0, -1};
    static const uint32_t sizes[][2] = {{1, 1}, {15, 400}, {16, 16}, {17, 40}, {200, 130}};
    float *pixels = malloc(200 * 130 * sizeof(*pixels));
    assert_non_null(pixels);
    for (unsigned k = 0; k < 400; k++) {
        const uint32_t *size = sizes[k % 5];
        const struct oct_picture_header header = {.acquisition_id = "a",
                                                  .sample_type = OCT_SAMPLE_F32,
                                                  .n_lines = size[0],
                                                  .depth = size[1],
                                                  .lo = -1e300,
                                                  .hi = 1e300};
        struct oct_view_model *model = live_begin();
        struct oct_view_picture picture = {0};
        char text[OCT_VIEW_GUIDE_TEXT_BYTES], remedy[OCT_VIEW_GUIDE_TEXT_BYTES];
        for (uint32_t i = 0; i < size[0] * size[1]; i++)
            pixels[i] = k % 3 ? wild[(i * (k + 1) + i / 7 * k) % 8] : wild[k / 3 % 8];
        assert_int_equal(oct_view_picture_set(&picture, &header, pixels,
                                              (size_t)size[0] * size[1] * sizeof(*pixels), NULL),
                         OCT_OK);
        model->contrast.log = k & 1;
        model->daemon.axial_um = k % 7 ? 1e6 : 1e-6;
        oct_view_model_offer(model, &picture);
        const struct oct_view_guide *g = &model->guide;
        assert_true(g->known && g->index >= 0 && g->index <= 10);
        assert_true(g->number >= 0 && g->number <= 10);
        assert_true(g->upper >= 0 && g->lower <= 1 && g->upper < g->lower);
        for (int part = 0; part < OCT_GUIDE_N_PARTS; part++)
            oct_view_guide_part_text(model, (enum oct_view_guide_part)part, text, remedy);
        oct_view_picture_finish(&picture);
        end(model);
    }
    free(pixels);
}

/* ---- drawn ---- */

TEST(the_colour_is_the_numbers_and_the_arrow_stands_off_the_tissue)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    static const struct {
        struct guide_fault fault;
        uint32_t rgb;
        enum oct_view_guide_move move;
    } cases[] = {{{.noise = 1}, GOOD, OCT_GUIDE_STAY},
                 {{.noise = 80}, WARN, OCT_GUIDE_STAY},
                 {{.noise = 5, .shift = 0.48}, BAD, OCT_GUIDE_CLOSER},
                 {{.noise = 5, .shift = -0.11}, BAD, OCT_GUIDE_AWAY},
                 {{.dark = 1}, BAD, OCT_GUIDE_STAY}};
    uint64_t ns = 100 * S;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        live_come(&s->model, &cases[i].fault, ns += 10 * S);
        oct_viewer_stage_draw(s);
        const struct oct_view_rect r = oct_draw_layout(s->draw)->guide;
        const struct oct_view_guide *g = &s->model.guide;
        assert_true(r.w > 0 && r.h > 0);
        assert_int_equal(g->move, cases[i].move);
        /* The number is at least a fiftieth of the window high: solid strokes of its colour. */
        if (oct_viewer_stage_count(s, r, cases[i].rgb) < 300)
            fail_msg("case %zu (number %d): %u pixels of the colour", i, g->number,
                     oct_viewer_stage_count(s, r, cases[i].rgb));
        const struct oct_view_rectf place = oct_draw_layout(s->draw)->place;
        struct oct_view_rect p = oct_draw_layout(s->draw)->picture;
        if (cases[i].move == OCT_GUIDE_STAY) {
            assert_true(oct_viewer_stage_count(s, p, WARN) == 0);
            continue;
        }
        const int top = (int)(place.y + g->measured.sight.top * place.h);
        const int bottom = (int)(place.y + g->measured.sight.bottom * place.h);
        const struct oct_view_rect on = {p.x, top, p.w, bottom - top};
        const struct oct_view_rect above = {p.x, p.y, p.w, top - p.y};
        const struct oct_view_rect below = {p.x, bottom, p.w, p.y + p.h - bottom};
        const bool closer = cases[i].move == OCT_GUIDE_CLOSER;
        /* The arrow begins with its tip where it points up, with its shaft where down. */
        struct oct_view_rect row = {p.x, closer ? above.y : below.y, p.w, 1};
        while (oct_viewer_stage_count(s, row, WARN) == 0)
            row.y++;
        assert_true(oct_viewer_stage_count(s, row, WARN) < 4 || !closer);
        assert_true(oct_viewer_stage_count(s, row, WARN) > 10 || closer);
        assert_true(oct_viewer_stage_count(s, closer ? above : below, WARN) > 1000);
        assert_true(oct_viewer_stage_count(s, on, WARN) == 0 &&
                    oct_viewer_stage_count(s, closer ? below : above, WARN) == 0);
    }
    /* Frozen, neither lines nor arrow lie over what is looked at. */
    live_come(&s->model, &cases[2].fault, ns += 10 * S);
    oct_viewer_stage_draw(s);
    const struct oct_view_rect p = oct_draw_layout(s->draw)->picture;
    const struct oct_view_rect middle = {p.x + p.w / 2 - 50, p.y + p.h / 8, 100, p.h / 4};
    assert_true(oct_viewer_stage_count(s, middle, WARN) > 500);
    oct_view_model_apply(&s->model, OCT_ACTION_FREEZE, 1);
    oct_view_model_tick(&s->model, ns);
    oct_viewer_stage_draw(s);
    assert_true(oct_viewer_stage_count(s, oct_draw_layout(s->draw)->guide, BAD) > 300);
    assert_true(oct_viewer_stage_count(s, middle, WARN) == 0);
    oct_viewer_stage_close(s);
}

TEST(the_pointer_opens_the_parts)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_input input;
    SDL_Event event = {.type = SDL_MOUSEMOTION};
    oct_view_input_init(&input);
    live_come(&s->model, &(struct guide_fault){.noise = 80, .shift = 0.3}, 100 * S);
    oct_viewer_stage_draw(s);
    const struct oct_view_rect r = oct_draw_layout(s->draw)->guide;
    const struct oct_view_rect beside = {r.x - 200, r.y + 4, 190, 100};
    const unsigned before = oct_viewer_stage_count(s, beside, 0x222a34);
    event.motion.x = r.x + r.w / 2;
    event.motion.y = r.y + r.h / 2;
    assert_true(oct_view_input_take(&input, &event, &s->model, s->draw, 1));
    assert_true(s->model.guide.pointed);
    oct_viewer_stage_draw(s);
    assert_true(oct_viewer_stage_count(s, beside, 0x222a34) > before + 5000);
    event.motion.x = r.x - 300;
    assert_true(oct_view_input_take(&input, &event, &s->model, s->draw, 1));
    assert_false(s->model.guide.pointed);
    oct_viewer_stage_draw(s);
    assert_true(oct_viewer_stage_count(s, beside, 0x222a34) == before);
    oct_viewer_stage_close(s);
}

/* ---- volumes of a recording ---- */

TEST(volumes_are_stepped_through_and_shown)
{
    static const double now[] = {0, 1, 2, 3, 4, 8, 100};
    static const char *const next[] = {"1", "2", "4", "4", "8", "0", "0"};
    struct oct_view_model *model = live_begin();
    struct oct_view_daemon daemon = {.known = true, .reachable = true, .answer_ns = 1};
    struct oct_view_phrase phrase;
    char text[OCT_VIEW_LABEL_BYTES];
    for (size_t i = 0; i < sizeof(now) / sizeof(now[0]); i++) {
        daemon.record.volumes = now[i];
        daemon.answer_ns++;
        oct_scene_hear(model, &daemon, OCT_WISH_NONE, true, "");
        oct_view_model_apply(model, OCT_ACTION_VOLUMES, 1);
        assert_int_equal(oct_view_model_take_wish(model, text), OCT_WISH_VOLUMES);
        assert_string_equal(text, next[i]);
        oct_scene_hear(model, &daemon, OCT_WISH_VOLUMES, true, text);
        assert_true(strstr(model->message, "octd confirms") != NULL);
    }
    daemon.record.volumes = 4;
    daemon.answer_ns++;
    oct_scene_hear(model, &daemon, OCT_WISH_NONE, true, "");
    oct_view_recording(model, &phrase);
    assert_string_equal(phrase.text, "not recording  (4 volumes each)");
    daemon.record.active = true;
    daemon.answer_ns++;
    oct_scene_hear(model, &daemon, OCT_WISH_NONE, true, "");
    oct_view_recording(model, &phrase);
    assert_true(strstr(phrase.text, "volume 1 of 4") != NULL);
    daemon.record.volumes = 0;
    daemon.answer_ns++;
    oct_scene_hear(model, &daemon, OCT_WISH_NONE, true, "");
    oct_view_recording(model, &phrase);
    assert_true(strstr(phrase.text, "volume 1,") != NULL);
    /* An octd that does not tell has no such setting. */
    daemon.record.volumes = NAN;
    daemon.answer_ns++;
    oct_scene_hear(model, &daemon, OCT_WISH_NONE, true, "");
    oct_view_model_apply(model, OCT_ACTION_VOLUMES, 1);
    assert_int_equal(oct_view_model_take_wish(model, text), OCT_WISH_NONE);
    end(model);
}

TEST_GROUP(open_scene, close_scene);
