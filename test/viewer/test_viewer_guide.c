/* The guide's index: that each fault of known size lowers it and that nothing but the picture
 * raises it. No zmq, no SDL. */
#include "test/rig/guide_scene.h"
#include "test/rig/tap.h"
#include "test/rig/viewer_scene.h"
#include "viewer/model/clock.h"
#include "viewer/model/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void the_retina_is_where_the_truth_has_it(void **state)
{
    static const double shifts[] = {-0.1, 0, 0.1, 0.3};

    for (size_t i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
        const struct oct_view_guide g =
            guide_of(scene, &(struct guide_fault){.shift = shifts[i], .noise = 1});
        const struct oct_view_sight *s = &g.measured.sight;
        assert_true(s->covered == 1);
        if (fabs(s->top - scene->ilm - shifts[i]) > 0.02 ||
            s->bottom < scene->bruch + shifts[i] - 0.01 ||
            s->bottom > scene->bruch + shifts[i] + 0.03)
            fail_msg("shift %g: tissue from %.3f to %.3f, the truth's ILM %.3f, Bruch's %.3f",
                     shifts[i], s->top, s->bottom, scene->ilm + shifts[i],
                     scene->bruch + shifts[i]);
    }
}

static void noise_lowers_it(void **state)
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

static void dark_lines_lower_it(void **state)
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

static void a_shift_lowers_it_and_says_which_way(void **state)
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

static void the_move_is_said_in_millimetres(void **state)
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
    struct oct_error err = {0};

    snprintf(json, sizeof(json), header, saturated * 100 * scene->n_lines);
    if (oct_view_spectrum_set(&spectrum, json, strlen(json), samples, sizeof(samples), &err))
        fail_msg("%s", err.text);
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
static void a_saturated_camera_lowers_it(void **state)
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

static void motion_lowers_it(void **state)
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

static void nothing_but_the_picture_raises_it(void **state)
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
static void what_is_no_tissue_has_no_points(void **state)
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
        struct oct_view_sight sight;
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
static void bright_bands_apart_from_the_tissue_do_not_move_it(void **state)
{
    static const uint32_t bands[][2] = {{0, 30}, {900, 930}};
    const struct guide_fault fault = {.noise = 1, .shift = 0.1};
    const struct oct_view_guide plain = guide_of(scene, &fault);

    for (size_t i = 0; i < sizeof(bands) / sizeof(bands[0]); i++) {
        struct oct_view_picture picture = guide_scene_picture(scene, &fault);
        struct oct_view_sight sight;
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
static void a_choroid_that_is_cut_off_is_no_fault_of_the_retina(void **state)
{
    const uint32_t depth = (uint32_t)((scene->bruch + 0.1) * scene->depth);
    struct oct_view_picture picture = guide_scene_picture(scene, &(struct guide_fault){.noise = 1});
    struct oct_view_sight sight;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_retina_is_where_the_truth_has_it),
        cmocka_unit_test(noise_lowers_it),
        cmocka_unit_test(dark_lines_lower_it),
        cmocka_unit_test(a_shift_lowers_it_and_says_which_way),
        cmocka_unit_test(the_move_is_said_in_millimetres),
        cmocka_unit_test(a_saturated_camera_lowers_it),
        cmocka_unit_test(motion_lowers_it),
        cmocka_unit_test(nothing_but_the_picture_raises_it),
        cmocka_unit_test(what_is_no_tissue_has_no_points),
        cmocka_unit_test(a_choroid_that_is_cut_off_is_no_fault_of_the_retina),
        cmocka_unit_test(bright_bands_apart_from_the_tissue_do_not_move_it),
    };
    return cmocka_run_group_tests_name("viewer guide", tests, open_scene, close_scene);
}
