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
    {.name = "832 samples, 240 lines, dispersion by coefficients, half the depth",
     .n_samples = 832,
     .n_lines = 240,
     .crop_last = 1024,
     .dispersion = OCT_DISPERSION_COEFFICIENTS},
    {.name = "832 samples, 80 lines, cubic",
     .n_samples = 832,
     .n_lines = 80,
     .crop_last = 1024,
     .interpolation = OCT_INTERPOLATION_CUBIC},
    /* Three of the plain kernels' chunks of lines, the last of them short. */
    {.name = "1024 samples, 601 lines, k map",
     .n_samples = 1024,
     .n_lines = 601,
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
     .n_samples = 5000,
     .n_lines = 3,
     .crop_last = 256},
    {.name = "4 samples, 2 lines: the least", .n_samples = 4, .n_lines = 2},
    {.name = "5 samples, 3 lines, wavelengths fall, cubic",
     .n_samples = 5,
     .n_lines = 3,
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
    {.name = "P2 wavelengths, rising",
     .n_samples = 832,
     .n_lines = 24,
     .crop_last = 1024,
     .axis = OCT_AXIS_P2_RISING},
    {.name = "P2 wavelengths, falling, cubic",
     .n_samples = 832,
     .n_lines = 24,
     .crop_last = 1024,
     .axis = OCT_AXIS_P2_FALLING,
     .interpolation = OCT_INTERPOLATION_CUBIC},
    {.name = "k map falling, cubic, dispersion from a file",
     .n_samples = 832,
     .n_lines = 24,
     .axis = OCT_AXIS_KMAP_FALLING,
     .interpolation = OCT_INTERPOLATION_CUBIC,
     .dispersion = OCT_DISPERSION_FILE},
    {.name = "a k map of two coordinates",
     .n_samples = 832,
     .n_lines = 24,
     .crop_last = 1024,
     .axis = OCT_AXIS_KMAP_OF_TWO},
    {.name = "cropped to 17 .. 1018",
     .n_samples = 832,
     .n_lines = 24,
     .crop_first = 17,
     .crop_last = 1018,
     .dispersion = OCT_DISPERSION_COEFFICIENTS},
    {.name = "cropped to the single depth 37",
     .n_samples = 832,
     .n_lines = 24,
     .crop_first = 37,
     .crop_last = 38},
    /* Full-range noise: of reflectors the last depth shows nothing but what leaks from a peak that
     * the crop hides, 89 dB below it, and 80 dB below that lies beyond floats. */
    {.name = "cropped to the last depth",
     .n_samples = 832,
     .n_lines = 24,
     .crop_first = 2047,
     .crop_last = 2048,
     .light = OCT_LIGHT_RANDOM},
    {.name = "cropped around a sixteenth of P2, where a shorter way ends",
     .n_samples = 832,
     .n_lines = 5,
     .crop_first = 240,
     .crop_last = 257,
     .light = OCT_LIGHT_RANDOM},
    {.name = "cropped around a quarter of P2, where another ends",
     .n_samples = 832,
     .n_lines = 5,
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
     .n_samples = 832,
     .n_lines = 5,
     .crop_last = 1024,
     .dispersion = OCT_DISPERSION_SPECTRUM},
    {.name = "wavelengths fall, dispersion over the spectrum",
     .n_samples = 1001,
     .n_lines = 5,
     .crop_last = 1024,
     .axis = OCT_AXIS_FALLING,
     .dispersion = OCT_DISPERSION_SPECTRUM},
    {.name = "k map falling, dispersion over the spectrum",
     .n_samples = 1024,
     .n_lines = 5,
     .crop_last = 1024,
     .axis = OCT_AXIS_KMAP_FALLING,
     .dispersion = OCT_DISPERSION_SPECTRUM},
    {.name = "P2 wavelengths, cubic, dispersion over the spectrum",
     .n_samples = 832,
     .n_lines = 5,
     .crop_last = 1024,
     .axis = OCT_AXIS_P2_FALLING,
     .interpolation = OCT_INTERPOLATION_CUBIC,
     .dispersion = OCT_DISPERSION_SPECTRUM},
    {.name = "cropped to 15 depths, less than a vector",
     .n_samples = 832,
     .n_lines = 5,
     .crop_first = 100,
     .crop_last = 115},
    {.name = "DC from a file",
     .n_samples = 832,
     .n_lines = 24,
     .crop_last = 1024,
     .dc = OCT_DC_FILE},
    {.name = "no DC subtraction",
     .n_samples = 832,
     .n_lines = 24,
     .crop_last = 1024,
     .dc = OCT_DC_NONE},
    {.name = "missing lines count neither in the mean nor in the picture",
     .n_samples = 832,
     .n_lines = 25,
     .crop_last = 1024,
     .missing = OCT_MISSING_SOME},
    {.name = "missing lines are dark with DC from a file",
     .n_samples = 832,
     .n_lines = 9,
     .crop_last = 1024,
     .dc = OCT_DC_FILE,
     .missing = OCT_MISSING_SOME},
    {.name = "missing lines are dark without DC subtraction",
     .n_samples = 832,
     .n_lines = 9,
     .crop_last = 1024,
     .dc = OCT_DC_NONE,
     .missing = OCT_MISSING_SOME},
    {.name = "one line came and is its own mean",
     .n_samples = 832,
     .n_lines = 9,
     .crop_last = 1024,
     .missing = OCT_MISSING_ALL_BUT_ONE},
    {.name = "one line came, without DC subtraction",
     .n_samples = 832,
     .n_lines = 9,
     .crop_last = 1024,
     .dc = OCT_DC_NONE,
     .missing = OCT_MISSING_ALL_BUT_ONE},
    {.name = "no line came",
     .n_samples = 832,
     .n_lines = 9,
     .crop_last = 1024,
     .dc = OCT_DC_FILE,
     .missing = OCT_MISSING_ALL},
    {.name = "all samples zero", .n_samples = 832, .n_lines = 9, .light = OCT_LIGHT_ZERO},
    {.name = "all samples zero, without DC subtraction",
     .n_samples = 832,
     .n_lines = 9,
     .light = OCT_LIGHT_ZERO,
     .dc = OCT_DC_NONE},
    {.name = "all samples saturated, 49 lines",
     .n_samples = 832,
     .n_lines = 49,
     .crop_last = 300,
     .light = OCT_LIGHT_FULL},
    {.name = "all samples saturated, 103 lines",
     .n_samples = 832,
     .n_lines = 103,
     .crop_last = 300,
     .light = OCT_LIGHT_FULL},
    {.name = "all samples saturated, 300 lines: sums beyond 2^24",
     .n_samples = 832,
     .n_lines = 300,
     .crop_last = 10,
     .light = OCT_LIGHT_FULL},
    {.name = "all samples saturated, without DC subtraction",
     .n_samples = 832,
     .n_lines = 9,
     .light = OCT_LIGHT_FULL,
     .dc = OCT_DC_NONE},
    {.name = "random samples over the full range",
     .n_samples = 832,
     .n_lines = 33,
     .light = OCT_LIGHT_RANDOM,
     .dispersion = OCT_DISPERSION_COEFFICIENTS},
    {.name = "a single impulse",
     .n_samples = 832,
     .n_lines = 9,
     .light = OCT_LIGHT_IMPULSE,
     .dc = OCT_DC_NONE},
    {.name = "a single impulse less its mean",
     .n_samples = 832,
     .n_lines = 9,
     .light = OCT_LIGHT_IMPULSE},
    {.name = "samples that alternate between nothing and saturation",
     .n_samples = 832,
     .n_lines = 9,
     .light = OCT_LIGHT_ALTERNATING},
    {.name = "alternating samples that fill the padded line, without DC subtraction",
     .n_samples = 2048,
     .n_lines = 9,
     .light = OCT_LIGHT_ALTERNATING,
     .dc = OCT_DC_NONE},
    {.name = "832 samples, 31 lines, a running mean",
     .n_samples = 832,
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
     .n_samples = 5000,
     .n_lines = 3,
     .crop_last = 256,
     .dc = OCT_DC_RUNNING},
    {.name = "a single line and a running mean",
     .n_samples = 1024,
     .n_lines = 1,
     .crop_last = 512,
     .dc = OCT_DC_RUNNING},
    {.name = "a running mean, and no line came",
     .n_samples = 832,
     .n_lines = 5,
     .missing = OCT_MISSING_ALL,
     .dc = OCT_DC_RUNNING},
    {.name = "window hann",
     .n_samples = 832,
     .n_lines = 3,
     .crop_last = 512,
     .dispersion = OCT_DISPERSION_COEFFICIENTS,
     .shaping = {.window = OCT_WINDOW_HANN}},
    {.name = "window hamming, wavelengths fall, a background is the source",
     .n_samples = 833,
     .n_lines = 3,
     .crop_last = 512,
     .axis = OCT_AXIS_FALLING,
     .dc = OCT_DC_FILE,
     .interpolation = OCT_INTERPOLATION_CUBIC,
     .shaping = {.window = OCT_WINDOW_HAMMING}},
    {.name = "window blackman, dispersion from a file",
     .n_samples = 832,
     .n_lines = 3,
     .crop_last = 512,
     .axis = OCT_AXIS_P2_RISING,
     .dispersion = OCT_DISPERSION_FILE,
     .shaping = {.window = OCT_WINDOW_BLACKMAN}},
    {.name = "window gauss, steep k map falling",
     .n_samples = 832,
     .n_lines = 3,
     .crop_last = 512,
     .axis = OCT_AXIS_STEEP_FALLING,
     .dispersion = OCT_DISPERSION_SPECTRUM,
     .interpolation = OCT_INTERPOLATION_CUBIC,
     .shaping = {.window = OCT_WINDOW_GAUSS, .width = 0.3}},
    {.name = "window flat",
     .n_samples = 832,
     .n_lines = 3,
     .crop_last = 512,
     .shaping = {.window = OCT_WINDOW_FLAT}},
    {.name = "window flat, steps that the camera's ends lie on",
     .n_samples = 832,
     .n_lines = 3,
     .crop_last = 512,
     .axis = OCT_AXIS_KMAP_OF_TWO,
     .shaping = {.window = OCT_WINDOW_FLAT}},
    {.name = "window flattened gauss that fills the grid, k map falling",
     .n_samples = 2048,
     .n_lines = 3,
     .crop_last = 512,
     .axis = OCT_AXIS_KMAP_FALLING,
     .dispersion = OCT_DISPERSION_COEFFICIENTS,
     .interpolation = OCT_INTERPOLATION_CUBIC,
     .shaping = {.window = OCT_WINDOW_GAUSS, .flatten = true}},
};

#define N_RECIPES (sizeof(recipes) / sizeof(recipes[0]))

struct case_state {
    const struct oct_suite *suite;
    const struct oct_scene_recipe *recipe;
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

/* The same B-scan once more, now with its values: they hold the bounds of floats, and the picture
 * is as without them. */
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
    return same && holds && is_as_before(values, scene, log, slot->frame.values);
}

/* What takes its time: there a range of each kind is shown, and floats with one display a scale. */
static bool is_large(const struct oct_scene *scene)
{
    return (size_t)scene->recipe.n_lines * scene->recipe.n_samples >= 40000;
}

/* Displays of the two variants of a slow engine: each has pictures of every other display and
 * floats of one in each scale; together they have them all, and floats of a range of each kind. */
static bool shares(unsigned variant, enum oct_sample_type sample_type, size_t n)
{
    static const bool floats[2][N_DISPLAYS] = {{[2] = true, [4] = true}, {[1] = true, [7] = true}};
    return sample_type == OCT_SAMPLE_F32 ? floats[variant % 2][n] : n % 2 == variant % 2;
}

static bool shows(const struct oct_suite *suite, unsigned variant, const struct oct_scene *scene,
                  enum oct_sample_type sample_type, size_t n)
{
    if (oct_suite_is_short(suite))
        return shares(variant, sample_type, n);
    if (!is_large(scene))
        return true;
    return sample_type == OCT_SAMPLE_F32 ? n % 4 == 1 : n % 4 != 3;
}

/* A second percentile shows no more. */
static bool asks_values(const struct oct_suite *suite, unsigned variant,
                        const struct oct_scene *scene, size_t n)
{
    if (oct_suite_is_short(suite))
        return n % 4 == variant % 2;
    return is_large(scene) ? n % 4 == 1 : n % 4 != 3;
}

/* All displays (see shows) with one sample type; false when this machine cannot run the variant. */
static bool check_variant(const struct oct_suite *suite, unsigned variant,
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
        if (!shows(suite, variant, scene, sample_type, n))
            continue;
        slot.frame.info.volume = n; /* each starts its smoothing afresh */
        oct_rig_run(&rig, scene, &views[n].display, &slot);
        *n_bad += !check_picture(worst, scene, &views[n], sample_type, &slot.frame);
        if (sample_type == OCT_SAMPLE_U8 && asks_values(suite, variant, scene, n))
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
    assert_true(oct_scene_create(&scene, with->recipe, 20));
    ask_views(&scene, views);
    for (unsigned v = 0; v < with->suite->n_variants; v++) {
        const struct oct_engine_options *options = &with->suite->variants[v];
        struct oct_worst worst = {.linear_auto = 0};
        struct values values = {.of = {NULL, NULL}};
        bool ran =
            check_variant(with->suite, v, &scene, views, OCT_SAMPLE_U8, &values, &worst, &n_bad) &&
            check_variant(with->suite, v, &scene, views, OCT_SAMPLE_F32, &values, &worst, &n_bad);
        free(values.of[0]);
        free(values.of[1]);
        if (!ran)
            continue;
        n_ran++;
        printf("# %-6s %-6s lin %d, log %d off %.4f %%, other %d, f32 %.5f dB, lo hi %.5f dB: %s\n",
               with->suite->ops->name, options->simd ? options->simd : "-", worst.linear_auto,
               worst.log_manual, 100 * worst.log_manual_off, worst.other, worst.f32_db,
               worst.limits_db, scene.recipe.name);
        if (worst.accuracy > 0)
            printf("#               %.1f dB of the largest\n", 20 * log10(worst.accuracy));
    }
    oct_scene_finish(&scene);
    if (n_ran == 0)
        skip();
    assert_int_equal(n_bad, 0);
}

static int run(const struct oct_suite *suite, const char *name,
               const struct oct_scene_recipe *const *of, size_t n)
{
    struct case_state *states = calloc(n, sizeof(*states));
    struct CMUnitTest *tests = calloc(n, sizeof(*tests));
    int n_failed = 1;
    for (size_t i = 0; states && tests && i < n; i++) {
        states[i] = (struct case_state){suite, of[i]};
        tests[i] = (struct CMUnitTest){
            .name = of[i]->name, .test_func = test_case, .initial_state = &states[i]};
    }
    if (states && tests)
        n_failed = _cmocka_run_group_tests(name, tests, n, NULL, NULL);
    free(states);
    free(tests);
    return n_failed;
}

int oct_suite_run_pictures(const struct oct_suite *suite)
{
    const struct oct_scene_recipe *all[N_RECIPES];
    for (size_t i = 0; i < N_RECIPES; i++)
        all[i] = &recipes[i];
    return run(suite, "pictures against the oracle", all, N_RECIPES);
}

static const struct oct_scene_recipe *find_nufft(const char *name)
{
    for (size_t i = 0; i < oct_n_engine_recipes_nufft; i++)
        if (strcmp(oct_engine_recipes_nufft[i].name, name) == 0)
            return &oct_engine_recipes_nufft[i];
    return NULL;
}

#define MOST_NUFFT 256

int oct_suite_run_nufft(const struct oct_suite *suite)
{
    const struct oct_scene_recipe *all[MOST_NUFFT];
    for (size_t i = 0; i < oct_n_engine_recipes_nufft && i < MOST_NUFFT; i++)
        all[i] = &oct_engine_recipes_nufft[i];
    return run(suite, "pictures against the exact sum", all, oct_n_engine_recipes_nufft);
}

int oct_suite_run_nufft_of(const struct oct_suite *suite, const char *const *names)
{
    const struct oct_scene_recipe *some[MOST_NUFFT];
    size_t n = 0;
    for (; n < MOST_NUFFT && names[n]; n++)
        if (!(some[n] = find_nufft(names[n]))) {
            printf("# there is no recipe '%s'\n", names[n]);
            return 1;
        }
    return run(suite, "some pictures against the exact sum", some, n);
}
