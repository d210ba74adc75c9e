#include "test/rig/engine_suite.h"

#include "test/rig/engine_bounds.h"
#include "test/rig/engine_nufft.h"
#include "test/rig/engine_rig.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct oct_scene_recipe recipes[] = {
    {.name = "832 samples, 100 lines, dispersion by coefficients, half the depth",
     .n_lines = 100,
     .crop_last = 1024,
     .dispersion = OCT_DISPERSION_COEFFICIENTS},
    {.name = "832 samples, 30 lines, cubic",
     .n_lines = 30,
     .crop_last = 1024,
     .interpolation = OCT_INTERPOLATION_CUBIC},
    /* Two of the plain kernels' chunks of lines, the second of them short. */
    {.name = "1024 samples, 301 lines, k map",
     .n_samples = 1024,
     .n_lines = 301,
     .crop_last = 512,
     .axis = OCT_AXIS_KMAP_RISING},
    {.name = "2048 samples fill the padded line; wavelengths fall, dispersion from a file",
     .n_samples = 2048,
     .n_lines = 32,
     .axis = OCT_AXIS_FALLING,
     .dispersion = OCT_DISPERSION_FILE},
    {.name = "2049 samples double the padded line", .n_samples = 2049, .n_lines = 16},
    {.name = "2049 samples, cubic, wavelengths fall",
     .n_samples = 2049,
     .n_lines = 16,
     .axis = OCT_AXIS_FALLING,
     .interpolation = OCT_INTERPOLATION_CUBIC,
     .dispersion = OCT_DISPERSION_FILE},
    {.name = "5000 samples, 3 lines, the first pixels of depth",
     .n_lines = 3,
     .n_samples = 5000,
     .crop_last = 256},
    {.name = "4 samples, 2 lines: the least", .n_samples = 4, .n_lines = 2},
    {.name = "5 samples, 3 lines, wavelengths fall, cubic",
     .n_lines = 3,
     .n_samples = 5,
     .axis = OCT_AXIS_FALLING,
     .interpolation = OCT_INTERPOLATION_CUBIC},
    {.name = "100 samples, 7 lines",
     .n_samples = 100,
     .n_lines = 7,
     .dispersion = OCT_DISPERSION_COEFFICIENTS},
    {.name = "833 samples, 31 lines, wavelengths fall",
     .n_samples = 833,
     .n_lines = 31,
     .axis = OCT_AXIS_FALLING},
    {.name = "2047 samples, a single line without DC subtraction",
     .n_samples = 2047,
     .n_lines = 1,
     .dc = OCT_DC_NONE},
    {.name = "P2 wavelengths, rising", .crop_last = 1024, .axis = OCT_AXIS_P2_RISING},
    {.name = "P2 wavelengths, falling, cubic",
     .crop_last = 1024,
     .axis = OCT_AXIS_P2_FALLING,
     .interpolation = OCT_INTERPOLATION_CUBIC},
    {.name = "k map falling, cubic, dispersion from a file",
     .axis = OCT_AXIS_KMAP_FALLING,
     .interpolation = OCT_INTERPOLATION_CUBIC,
     .dispersion = OCT_DISPERSION_FILE},
    {.name = "a k map of two coordinates", .crop_last = 1024, .axis = OCT_AXIS_KMAP_OF_TWO},
    {.name = "cropped to 17 .. 1018",
     .crop_first = 17,
     .crop_last = 1018,
     .dispersion = OCT_DISPERSION_COEFFICIENTS},
    {.name = "cropped to the single depth 37", .crop_first = 37, .crop_last = 38},
    /* Full-range noise: of reflectors the last depth shows nothing but what leaks from a peak that
     * the crop hides, 89 dB below it, and 80 dB below that lies beyond floats. */
    {.name = "cropped to the last depth",
     .crop_first = 2047,
     .crop_last = 2048,
     .light = OCT_LIGHT_RANDOM},
    {.name = "cropped around a sixteenth of P2, where a shorter way ends",
     .crop_first = 240,
     .crop_last = 257,
     .light = OCT_LIGHT_RANDOM},
    {.name = "cropped around a quarter of P2, where another ends",
     .crop_first = 1000,
     .crop_last = 1025,
     .light = OCT_LIGHT_RANDOM},
    {.name = "4096 samples, half the depth",
     .n_samples = 4096,
     .n_lines = 6,
     .crop_last = 2048,
     .light = OCT_LIGHT_RANDOM,
     .dispersion = OCT_DISPERSION_COEFFICIENTS},
    {.name = "832 samples, dispersion over the spectrum",
     .crop_last = 1024,
     .dispersion = OCT_DISPERSION_SPECTRUM},
    {.name = "wavelengths fall, dispersion over the spectrum",
     .n_samples = 1001,
     .crop_last = 1024,
     .axis = OCT_AXIS_FALLING,
     .dispersion = OCT_DISPERSION_SPECTRUM},
    {.name = "k map falling, dispersion over the spectrum",
     .n_samples = 1024,
     .crop_last = 1024,
     .axis = OCT_AXIS_KMAP_FALLING,
     .dispersion = OCT_DISPERSION_SPECTRUM},
    {.name = "P2 wavelengths, cubic, dispersion over the spectrum",
     .crop_last = 1024,
     .axis = OCT_AXIS_P2_FALLING,
     .interpolation = OCT_INTERPOLATION_CUBIC,
     .dispersion = OCT_DISPERSION_SPECTRUM},
    {.name = "cropped to 15 depths, less than a vector", .crop_first = 100, .crop_last = 115},
    {.name = "DC from a file", .crop_last = 1024, .dc = OCT_DC_FILE},
    {.name = "no DC subtraction", .crop_last = 1024, .dc = OCT_DC_NONE},
    {.name = "missing lines count neither in the mean nor in the picture",
     .n_lines = 25,
     .crop_last = 1024,
     .missing = OCT_MISSING_SOME},
    {.name = "missing lines are dark with DC from a file",
     .crop_last = 1024,
     .dc = OCT_DC_FILE,
     .missing = OCT_MISSING_SOME},
    {.name = "missing lines are dark without DC subtraction",
     .crop_last = 1024,
     .dc = OCT_DC_NONE,
     .missing = OCT_MISSING_SOME},
    {.name = "one line came and is its own mean",
     .crop_last = 1024,
     .missing = OCT_MISSING_ALL_BUT_ONE},
    {.name = "one line came, without DC subtraction",
     .crop_last = 1024,
     .dc = OCT_DC_NONE,
     .missing = OCT_MISSING_ALL_BUT_ONE},
    {.name = "no line came", .crop_last = 1024, .dc = OCT_DC_FILE, .missing = OCT_MISSING_ALL},
    {.name = "all samples zero", .light = OCT_LIGHT_ZERO},
    {.name = "all samples zero, without DC subtraction",
     .light = OCT_LIGHT_ZERO,
     .dc = OCT_DC_NONE},
    {.name = "all samples saturated, 49 lines",
     .n_lines = 49,
     .crop_last = 300,
     .light = OCT_LIGHT_FULL},
    {.name = "all samples saturated, 103 lines",
     .n_lines = 103,
     .crop_last = 300,
     .light = OCT_LIGHT_FULL},
    {.name = "all samples saturated, 300 lines: sums beyond 2^24",
     .n_lines = 300,
     .crop_last = 10,
     .light = OCT_LIGHT_FULL},
    {.name = "all samples saturated, without DC subtraction",
     .light = OCT_LIGHT_FULL,
     .dc = OCT_DC_NONE},
    {.name = "random samples over the full range",
     .n_lines = 33,
     .light = OCT_LIGHT_RANDOM,
     .dispersion = OCT_DISPERSION_COEFFICIENTS},
    {.name = "a single impulse", .light = OCT_LIGHT_IMPULSE, .dc = OCT_DC_NONE},
    {.name = "a single impulse less its mean", .light = OCT_LIGHT_IMPULSE},
    {.name = "samples that alternate between nothing and saturation",
     .light = OCT_LIGHT_ALTERNATING},
    {.name = "alternating samples that fill the padded line, without DC subtraction",
     .n_samples = 2048,
     .light = OCT_LIGHT_ALTERNATING,
     .dc = OCT_DC_NONE},
    {.name = "832 samples, 31 lines, a running mean",
     .n_lines = 31,
     .crop_last = 1024,
     .dc = OCT_DC_RUNNING},
    {.name = "a running mean where lines are missing, k map falls, cubic",
     .n_samples = 1024,
     .n_lines = 13,
     .crop_last = 512,
     .axis = OCT_AXIS_KMAP_FALLING,
     .interpolation = OCT_INTERPOLATION_CUBIC,
     .missing = OCT_MISSING_SOME,
     .dc = OCT_DC_RUNNING},
    {.name = "5000 samples, 3 lines, a running mean",
     .n_lines = 3,
     .n_samples = 5000,
     .crop_last = 256,
     .dc = OCT_DC_RUNNING},
    {.name = "a single line and a running mean",
     .n_samples = 1024,
     .n_lines = 1,
     .crop_last = 512,
     .dc = OCT_DC_RUNNING},
    {.name = "a running mean, and no line came", .missing = OCT_MISSING_ALL, .dc = OCT_DC_RUNNING},
    {.name = "window hann",
     .crop_last = 512,
     .dispersion = OCT_DISPERSION_COEFFICIENTS,
     .shaping = {.window = OCT_WINDOW_HANN}},
    {.name = "window hamming, wavelengths fall, a background is the source",
     .n_samples = 833,
     .crop_last = 512,
     .axis = OCT_AXIS_FALLING,
     .dc = OCT_DC_FILE,
     .interpolation = OCT_INTERPOLATION_CUBIC,
     .shaping = {.window = OCT_WINDOW_HAMMING}},
    {.name = "window blackman, dispersion from a file",
     .crop_last = 512,
     .axis = OCT_AXIS_P2_RISING,
     .dispersion = OCT_DISPERSION_FILE,
     .shaping = {.window = OCT_WINDOW_BLACKMAN}},
    {.name = "window gauss, steep k map falling",
     .crop_last = 512,
     .axis = OCT_AXIS_STEEP_FALLING,
     .dispersion = OCT_DISPERSION_SPECTRUM,
     .interpolation = OCT_INTERPOLATION_CUBIC,
     .shaping = {.window = OCT_WINDOW_GAUSS, .width = 0.3}},
    {.name = "window flat", .crop_last = 512, .shaping = {.window = OCT_WINDOW_FLAT}},
    {.name = "window flat, steps that the camera's ends lie on",
     .crop_last = 512,
     .axis = OCT_AXIS_KMAP_OF_TWO,
     .shaping = {.window = OCT_WINDOW_FLAT}},
    {.name = "window flattened gauss that fills the grid, k map falling",
     .n_samples = 2048,
     .crop_last = 512,
     .axis = OCT_AXIS_KMAP_FALLING,
     .dispersion = OCT_DISPERSION_COEFFICIENTS,
     .interpolation = OCT_INTERPOLATION_CUBIC,
     .shaping = {.window = OCT_WINDOW_GAUSS, .flatten = true}},
};

struct case_state {
    const struct oct_suite *suite;
    struct oct_scene_recipe recipe;
    unsigned number;
};

/* The ways a B-scan is shown; manual limits follow from the scene. */
static const struct oct_display displays[] = {
    {.range = OCT_RANGE_AUTO},
    {.range = OCT_RANGE_MANUAL},
    {.range = OCT_RANGE_PERCENTILE, .percentile_lo = 5, .percentile_hi = 99.5},
    {.range = OCT_RANGE_PERCENTILE, .percentile_lo = 0, .percentile_hi = 100},
    {.log = true, .range = OCT_RANGE_AUTO},
    {.log = true, .range = OCT_RANGE_MANUAL},
    {.log = true, .range = OCT_RANGE_PERCENTILE, .percentile_lo = 30, .percentile_hi = 99.8},
    {.log = true, .range = OCT_RANGE_PERCENTILE, .percentile_lo = 50, .percentile_hi = 100},
};

#define N_DISPLAYS (sizeof(displays) / sizeof(displays[0]))

static struct oct_display display_for(const struct oct_scene *scene, size_t n)
{
    struct oct_display display = displays[n];
    bool dark = scene->brightest == 0;
    if (display.range == OCT_RANGE_MANUAL && display.log) {
        display.hi = dark ? 60 : oct_oracle_db(scene->brightest);
        display.lo = display.hi - 60;
    } else if (display.range == OCT_RANGE_MANUAL) {
        display.lo = dark ? 1 : scene->brightest / 1000;
        display.hi = dark ? 100 : scene->brightest / 4;
    }
    return display;
}

/* A display of this scene and the oracle's limits for it. */
struct view {
    struct oct_display display;
    double lo, hi;
};

static void ask_views(const struct oct_scene *scene, struct view *views)
{
    for (size_t n = 0; n < N_DISPLAYS; n++) {
        views[n].display = display_for(scene, n);
        struct oct_oracle_range range = oct_scene_range(&views[n].display);
        struct oct_oracle_memory memory = {.begun = false};
        struct oct_oracle_values values = oct_scene_values(scene, range.log);
        assert_true(oct_oracle_limits(&range, &values, &memory, &views[n].lo, &views[n].hi));
    }
}

/* One picture against every bound that applies to it. */
static bool check_picture(struct oct_worst *worst, const struct oct_scene *scene,
                          const struct view *view, enum oct_sample_type sample_type,
                          const struct oct_image_frame *frame)
{
    const struct oct_display *display = &view->display;
    if (scene->brightest == 0)
        return oct_bound_dark(scene, sample_type, display->log, frame->pixels);
    if (display->range == OCT_RANGE_MANUAL)
        assert_true(frame->lo == display->lo && frame->hi == display->hi);
    else if (!oct_bound_limits(worst, scene, display->log, frame->lo, frame->hi, view->lo,
                               view->hi))
        return false;
    if (sample_type == OCT_SAMPLE_F32)
        return oct_bound_float(worst, scene, display->log, frame->pixels);
    if (display->range == OCT_RANGE_AUTO && !display->log)
        return oct_bound_linear_auto(worst, scene, frame->pixels, view->lo, view->hi);
    if (display->range == OCT_RANGE_MANUAL && display->log)
        return oct_bound_log_manual(worst, scene, frame->pixels, display->lo);
    bool own = display->range == OCT_RANGE_AUTO || display->percentile_lo == 0;
    return oct_bound_band(worst, scene, display->log, frame->pixels, own ? frame->lo : view->lo,
                          own ? frame->hi : view->hi);
}

/* A variant's values of a scene, [linear, log][M][D]: they depend on nothing else of a display, and
 * are what its f32 pictures show. */
struct values {
    float *of[2]; /* NULL: not seen yet */
};

static bool is_as_before(struct values *values, const struct oct_scene *scene, bool log,
                         const void *now)
{
    const size_t bytes = scene->n_pixels * sizeof(float);
    float **before = &values->of[log];
    if (*before) {
        bool same = memcmp(*before, now, bytes) == 0;
        if (!same)
            printf("# %s: %s values differ between displays or from those of f32 pictures\n",
                   scene->recipe.name, log ? "log" : "linear");
        return same;
    }
    *before = malloc(bytes);
    assert_non_null(*before);
    memcpy(*before, now, bytes);
    return true;
}

/* The same B-scan once more, now with its values and complex ones: they hold their bounds, and the
 * picture is as without them. */
static bool check_values(struct oct_worst *worst, const struct oct_scene *scene,
                         const struct view *view, struct values *values, struct oct_rig *rig,
                         struct oct_slot *slot)
{
    const bool log = view->display.log;
    const double lo = slot->frame.lo, hi = slot->frame.hi;
    uint8_t *without = malloc(slot->bytes);
    assert_non_null(without);
    memcpy(without, slot->memory, slot->bytes);
    oct_rig_run_for_values(rig, scene, &view->display, slot);
    bool same = memcmp(without, slot->memory, slot->bytes) == 0 && slot->frame.lo == lo &&
                slot->frame.hi == hi;
    if (!same)
        printf("# %s: the picture with values differs from that without\n", scene->recipe.name);
    free(without);
    bool holds = scene->brightest == 0
                     ? oct_bound_dark(scene, OCT_SAMPLE_F32, log, slot->frame.values)
                     : oct_bound_float(worst, scene, log, slot->frame.values);
    holds = oct_bound_complex(worst, scene, slot->frame.complex_values) && holds;
    return same && holds && is_as_before(values, scene, log, slot->frame.values);
}

/* What takes its time: there a range of each kind is shown, and floats with one display a scale. */
static bool is_large(const struct oct_scene *scene)
{
    return (size_t)scene->recipe.n_lines * scene->recipe.n_samples >= 40000;
}

/* Of a slow engine every variant and recipe has its turn: pictures of one kind of range in both
 * scales, one of them with its values too, and floats of another; in eight turns all. Where lines
 * are missing or all is dark, two turns have all pictures. */
static bool shares(unsigned turn, const struct oct_scene *scene, enum oct_sample_type sample_type,
                   size_t n)
{
    if (sample_type == OCT_SAMPLE_F32)
        return n == (turn + 2) % N_DISPLAYS;
    if (scene->brightest == 0 || scene->recipe.missing != OCT_MISSING_NONE)
        return n % 2 == turn % 2;
    return n % 4 == turn % 4;
}

static bool shows(const struct oct_suite *suite, unsigned turn, const struct oct_scene *scene,
                  enum oct_sample_type sample_type, size_t n)
{
    if (oct_suite_is_short(suite))
        return shares(turn, scene, sample_type, n);
    if (!is_large(scene))
        return true;
    return sample_type == OCT_SAMPLE_F32 ? n % 4 == 1 : n % 4 != 3;
}

/* A second percentile shows no more. */
static bool asks_values(const struct oct_suite *suite, unsigned turn, const struct oct_scene *scene,
                        size_t n)
{
    if (oct_suite_is_short(suite))
        return n == turn % N_DISPLAYS;
    return is_large(scene) ? n % 4 == 1 : n % 4 != 3;
}

/* All displays (see shows) with one sample type; false when this machine cannot run the variant. */
static bool check_variant(const struct oct_suite *suite, unsigned variant, unsigned turn,
                          const struct oct_scene *scene, const struct view *views,
                          enum oct_sample_type sample_type, struct values *values,
                          struct oct_worst *worst, unsigned *n_bad)
{
    const struct oct_engine_options *options = &suite->variants[variant];
    struct oct_rig rig;
    struct oct_slot slot;
    if (!oct_rig_open(&rig, suite->ops, options, scene, sample_type))
        return false;
    oct_slot_open(&slot, &rig);
    for (size_t n = 0; n < N_DISPLAYS; n++) {
        if (!shows(suite, turn, scene, sample_type, n))
            continue;
        slot.frame.info.volume = n; /* each starts its smoothing afresh */
        oct_rig_run(&rig, scene, &views[n].display, &slot);
        *n_bad += !check_picture(worst, scene, &views[n], sample_type, &slot.frame);
        if (sample_type == OCT_SAMPLE_U8 && asks_values(suite, turn, scene, n))
            *n_bad += !check_values(worst, scene, &views[n], values, &rig, &slot);
        if (sample_type == OCT_SAMPLE_F32)
            *n_bad += !is_as_before(values, scene, views[n].display.log, slot.frame.pixels);
    }
    oct_slot_close(&slot);
    oct_rig_close(&rig);
    return true;
}

static void test_case(void **state)
{
    const struct case_state *with = *state;
    struct oct_scene scene;
    struct view views[N_DISPLAYS];
    unsigned n_bad = 0, n_ran = 0;
    assert_true(oct_scene_create(&scene, &with->recipe, 20));
    ask_views(&scene, views);
    for (unsigned v = 0; v < with->suite->n_variants; v++) {
        const struct oct_engine_options *options = &with->suite->variants[v];
        struct oct_worst worst = {.linear_auto = 0};
        struct values values = {.of = {NULL, NULL}};
        bool ran = check_variant(with->suite, v, v + with->number, &scene, views, OCT_SAMPLE_U8,
                                 &values, &worst, &n_bad) &&
                   check_variant(with->suite, v, v + with->number, &scene, views, OCT_SAMPLE_F32,
                                 &values, &worst, &n_bad);
        free(values.of[0]);
        free(values.of[1]);
        if (!ran)
            continue;
        n_ran++;
        printf("# %-6s %-6s lin %d, log %d off %.4f %%, other %d, f32 %.5f dB, lo hi %.5f dB, "
               "complex %.1f dB: %s\n",
               with->suite->ops->name, options->simd ? options->simd : "-", worst.linear_auto,
               worst.log_manual, 100 * worst.log_manual_off, worst.other, worst.f32_db,
               worst.limits_db, 20 * log10(worst.complex_off), scene.recipe.name);
        if (worst.accuracy > 0)
            printf("#               %.1f dB of the largest\n", 20 * log10(worst.accuracy));
    }
    oct_scene_finish(&scene);
    if (n_ran == 0)
        skip();
    assert_int_equal(n_bad, 0);
}

static int run(const struct oct_suite *suite, const char *name, const struct oct_scene_recipe *of,
               size_t n)
{
    struct case_state *states = calloc(n, sizeof(*states));
    struct CMUnitTest *tests = calloc(n, sizeof(*tests));
    int n_failed = 1;
    for (size_t i = 0; states && tests && i < n; i++) {
        states[i] = (struct case_state){suite, of[i], (unsigned)i};
        tests[i] = (struct CMUnitTest){
            .name = of[i].name, .test_func = test_case, .initial_state = &states[i]};
    }
    if (states && tests)
        n_failed = _cmocka_run_group_tests(name, tests, n, NULL, NULL);
    free(states);
    free(tests);
    return n_failed;
}

int oct_suite_run_pictures(const struct oct_suite *suite)
{
    return run(suite, "pictures against the oracle", recipes, sizeof(recipes) / sizeof(recipes[0]));
}

#define MOST_NUFFT 256

static bool is_named(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names;
}

int oct_suite_run_nufft(const struct oct_suite *suite, const char *const *names)
{
    struct oct_scene_recipe some[MOST_NUFFT];
    size_t n = 0, n_named = 0;
    for (size_t i = 0; i < oct_n_engine_recipes_nufft && n < MOST_NUFFT; i++) {
        some[n] = oct_engine_recipe_nufft(i);
        n += !names || is_named(some[n].name, names);
    }
    while (names && names[n_named])
        n_named++;
    if (names && n_named != n) {
        printf("# %zu names, %zu recipes of them\n", n_named, n);
        return 1;
    }
    return run(suite, "pictures against the exact sum", some, n);
}
