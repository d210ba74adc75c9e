#include "test/rig/engine_scene.h"

#include "pipeline/flow/running_dc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double two_pi = 6.283185307179586;

double oct_random_uniform(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

double oct_random_normal(uint64_t *state)
{
    double r = sqrt(-2 * log(1 - oct_random_uniform(state)));
    return r * cos(two_pi * oct_random_uniform(state));
}

static void reverse(double *values, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        double swap = values[i];
        values[i] = values[n - 1 - i];
        values[n - 1 - i] = swap;
    }
}

/* About 0.1 nm a pixel, bent: over the padded line it stays far from zero for any N. */
static bool make_wavelengths(struct oct_calibration *cal, size_t n, double span_nm)
{
    cal->wavelengths_nm = malloc(n * sizeof(double));
    if (!cal->wavelengths_nm)
        return false;
    cal->n_wavelengths = n;
    for (size_t i = 0; i < n; i++) {
        double t = (double)i / (double)(n - 1);
        cal->wavelengths_nm[i] = 790 + span_nm * (t + 0.08 * t * (1 - t));
    }
    return true;
}

static bool make_kmap(struct oct_calibration *cal, size_t n, double n_samples, double bend)
{
    cal->kmap_px = malloc(n * sizeof(double));
    if (!cal->kmap_px)
        return false;
    cal->n_kmap = n;
    for (size_t i = 0; i < n; i++) {
        double t = (double)i / (double)(n - 1);
        cal->kmap_px[i] = (n_samples - 1) * (t + bend * t * (1 - t)) + 0.3;
    }
    return true;
}

static bool make_axis(struct oct_scene *scene, size_t p2)
{
    struct oct_calibration *cal = &scene->cal;
    double n = scene->recipe.n_samples;
    bool made = false;
    switch (scene->recipe.axis) {
    case OCT_AXIS_RISING:
    case OCT_AXIS_FALLING:
        made = make_wavelengths(cal, scene->recipe.n_samples, fmin(100, 0.1 * n));
        break;
    case OCT_AXIS_P2_RISING:
    case OCT_AXIS_P2_FALLING:
        made = make_wavelengths(cal, p2, 220);
        break;
    case OCT_AXIS_KMAP_RISING:
    case OCT_AXIS_KMAP_FALLING:
        made = make_kmap(cal, scene->recipe.n_samples / 2 + 2, n, 0.1);
        break;
    case OCT_AXIS_KMAP_OF_TWO:
        made = make_kmap(cal, 2, n, 0.1);
        break;
    case OCT_AXIS_STEEP:
    case OCT_AXIS_STEEP_FALLING:
        made = make_kmap(cal, scene->recipe.n_samples / 2 + 2, n, 0.6);
        break;
    }
    if (!made)
        return false;
    if (scene->recipe.axis == OCT_AXIS_FALLING || scene->recipe.axis == OCT_AXIS_P2_FALLING)
        reverse(cal->wavelengths_nm, cal->n_wavelengths);
    if (scene->recipe.axis == OCT_AXIS_KMAP_FALLING || scene->recipe.axis == OCT_AXIS_STEEP_FALLING)
        reverse(cal->kmap_px, cal->n_kmap);
    return true;
}

static bool make_dispersion(struct oct_scene *scene, size_t p2)
{
    struct oct_calibration *cal = &scene->cal;
    if (scene->recipe.dispersion == OCT_DISPERSION_SPECTRUM)
        cal->dispersion_over = OCT_DISPERSION_OVER_SPECTRUM;
    if (scene->recipe.dispersion == OCT_DISPERSION_COEFFICIENTS ||
        scene->recipe.dispersion == OCT_DISPERSION_SPECTRUM) {
        cal->coefficient[2] = 37.5;
        cal->coefficient[3] = -11.25;
        cal->coefficient[4] = 2.5;
        cal->coefficient[5] = 0.75;
    }
    if (scene->recipe.dispersion != OCT_DISPERSION_FILE)
        return true;
    cal->dispersion = malloc(2 * p2 * sizeof(double));
    if (!cal->dispersion)
        return false;
    cal->n_dispersion = p2;
    for (size_t q = 0; q < p2; q++) { /* with a window, as labs fold one into the file */
        double t = 2 * (double)q / (double)(p2 - 1) - 1;
        double window = exp(-t * t), theta = 60 * t * t + 9 * t * t * t;
        cal->dispersion[2 * q] = window * cos(theta);
        cal->dispersion[2 * q + 1] = -window * sin(theta);
    }
    return true;
}

/* A Gaussian source on a pedestal, the camera's own pattern on top. */
static double source_at(double t)
{
    double from_middle = (t - 0.5) / 0.22;
    return 300 + 2700 * exp(-from_middle * from_middle) + 20 * sin(97 * t * t);
}

static bool make_background(struct oct_scene *scene)
{
    if (scene->recipe.dc != OCT_DC_FILE && !oct_shaping_flattens(&scene->recipe.shaping))
        return true;
    size_t n = scene->recipe.n_samples;
    scene->cal.background = malloc(n * sizeof(double));
    if (!scene->cal.background)
        return false;
    scene->cal.n_background = n;
    for (size_t i = 0; i < n; i++)
        scene->cal.background[i] = source_at((double)i / (double)n);
    return true;
}

static uint16_t digitise(double counts, double most)
{
    return (uint16_t)fmin(fmax(round(counts), 0), most);
}

/* Reflectors whose fringes are straight in a bent k, with a phase of their own on every line, as
 * speckle has; strongest to weakest 60 dB. */
static void fill_reflectors(struct oct_scene *scene, uint64_t *random)
{
    static const double cycles_px[] = {0.021, 0.083, 0.14, 0.27, 0.41};
    static const double strength[] = {0.3, 0.03, 0.004, 0.001, 0.0003};
    size_t n = scene->recipe.n_samples;
    for (size_t j = 0; j < scene->recipe.n_lines; j++) {
        double phase[5];
        for (int r = 0; r < 5; r++)
            phase[r] = two_pi * oct_random_uniform(random);
        for (size_t i = 0; i < n; i++) {
            double t = (double)i / (double)n, k = t - 0.06 * t * (1 - t), fringe = 0;
            for (int r = 0; r < 5; r++)
                fringe += strength[r] * cos(two_pi * cycles_px[r] * k * (double)n + phase[r]);
            double counts = source_at(t) * (1 + fringe);
            double noise = sqrt(counts / 5) * oct_random_normal(random); /* 5 electrons a count */
            scene->spectra[j * n + i] = digitise(counts + noise, 4095);
        }
    }
}

static void fill_light(struct oct_scene *scene, uint64_t *random)
{
    size_t n = scene->recipe.n_samples, total = n * scene->recipe.n_lines;
    switch (scene->recipe.light) {
    case OCT_LIGHT_REFLECTORS:
        fill_reflectors(scene, random);
        break;
    case OCT_LIGHT_ZERO:
        break;
    case OCT_LIGHT_FULL:
        memset(scene->spectra, 0xff, total * sizeof(uint16_t));
        break;
    case OCT_LIGHT_RANDOM:
        for (size_t i = 0; i < total; i++)
            scene->spectra[i] = digitise(oct_random_uniform(random) * 65536 - 0.5, 65535);
        break;
    case OCT_LIGHT_IMPULSE:
        scene->spectra[total / 2 + n / 3] = 65535;
        break;
    case OCT_LIGHT_ALTERNATING:
        for (size_t i = 0; i < total; i++)
            scene->spectra[i] = (i % n + i / n) % 2 ? 65535 : 0;
        break;
    }
}

static void lose_lines(struct oct_scene *scene)
{
    size_t n = scene->recipe.n_samples, n_lines = scene->recipe.n_lines;
    for (size_t j = 0; j < n_lines; j++) {
        bool came = true;
        if (scene->recipe.missing == OCT_MISSING_SOME)
            came = j % 3 != 0 && j != n_lines - 1;
        else if (scene->recipe.missing == OCT_MISSING_ALL_BUT_ONE)
            came = j == n_lines / 2;
        else if (scene->recipe.missing == OCT_MISSING_ALL)
            came = false;
        scene->line_valid[j] = came;
        if (!came)
            memset(scene->spectra + j * n, 0, n * sizeof(uint16_t));
        for (size_t i = 0; came && i < n; i++)
            if (scene->spectra[j * n + i] > scene->largest)
                scene->largest = scene->spectra[j * n + i];
    }
}

static void set_window(struct oct_oracle_setup *setup, const struct oct_shaping *shaping)
{
    static const enum oct_oracle_window windows[] = {
        [OCT_WINDOW_NONE] = OCT_ORACLE_NO_WINDOW,    [OCT_WINDOW_HANN] = OCT_ORACLE_HANN,
        [OCT_WINDOW_HAMMING] = OCT_ORACLE_HAMMING,   [OCT_WINDOW_GAUSS] = OCT_ORACLE_GAUSS,
        [OCT_WINDOW_BLACKMAN] = OCT_ORACLE_BLACKMAN, [OCT_WINDOW_FLAT] = OCT_ORACLE_NO_WINDOW,
    };
    setup->window = windows[shaping->window];
    setup->window_width = shaping->width > 0 ? shaping->width : 0.5;
    setup->flatten = shaping->flatten || shaping->window == OCT_WINDOW_FLAT;
}

static struct oct_oracle_setup oracle_setup(const struct oct_scene *scene)
{
    const struct oct_scene_recipe *recipe = &scene->recipe;
    struct oct_oracle_setup setup = {
        .n_samples = recipe->n_samples,
        .n_lines = recipe->n_lines,
        .crop_first = recipe->crop_first,
        .crop_last = recipe->crop_last,
        .dc = recipe->dc == OCT_DC_BSCAN     ? OCT_ORACLE_DC_BSCAN
              : recipe->dc == OCT_DC_FILE    ? OCT_ORACLE_DC_FILE
              : recipe->dc == OCT_DC_RUNNING ? OCT_ORACLE_DC_RUNNING
                                             : OCT_ORACLE_DC_NONE,
        .background = scene->cal.background,
        .wavelengths_nm = scene->cal.wavelengths_nm,
        .n_wavelengths = scene->cal.n_wavelengths,
        .kmap_px = scene->cal.kmap_px,
        .n_kmap = scene->cal.n_kmap,
        .dispersion = scene->cal.dispersion,
        .over_spectrum = scene->cal.dispersion_over == OCT_DISPERSION_OVER_SPECTRUM,
        .cubic = recipe->interpolation == OCT_INTERPOLATION_CUBIC,
        .nufft = recipe->interpolation == OCT_INTERPOLATION_NUFFT,
        .by_word = getenv("OCT_LONG") != NULL,
    };
    if (scene->before) { /* the first of them has left the window */
        setup.before = scene->before + (size_t)recipe->n_lines * recipe->n_samples;
        setup.before_valid = scene->before_valid + recipe->n_lines;
        setup.n_before = OCT_SCENE_BEFORE - 1;
    }
    set_window(&setup, &recipe->shaping);
    for (int m = 2; m <= OCT_MAX_DISPERSION_ORDER; m++)
        setup.coefficient[m] = scene->cal.coefficient[m];
    return setup;
}

static double square(const double *z)
{
    return z[0] * z[0] + z[1] * z[1];
}

/* The exact sum once, over all depths: what the largest is relative to, and what the crop shows. */
static bool ask_uncropped(struct oct_scene *scene, const struct oct_oracle_setup *setup)
{
    struct oct_oracle_setup whole = *setup;
    whole.crop_first = whole.crop_last = 0;
    const size_t shown = oct_oracle_depth(setup), depth = oct_oracle_depth(&whole);
    const size_t n = whole.n_lines * depth;
    double *b = malloc(2 * n * sizeof(double));
    bool done = b && oct_oracle_complex(&whole, scene->spectra, scene->line_valid, b);
    for (size_t i = 0; done && i < n; i++)
        scene->uncropped = fmax(scene->uncropped, square(b + 2 * i));
    for (size_t j = 0; done && j < whole.n_lines; j++)
        memcpy(scene->b + 2 * j * shown, b + 2 * (j * depth + setup->crop_first),
               2 * shown * sizeof(double));
    free(b);
    return done;
}

static bool ask_oracle(struct oct_scene *scene, const struct oct_oracle_setup *setup)
{
    scene->n_pixels = setup->n_lines * oct_oracle_depth(setup);
    scene->b = malloc(2 * scene->n_pixels * sizeof(double));
    scene->intensity = malloc(scene->n_pixels * sizeof(double));
    scene->db = malloc(scene->n_pixels * sizeof(double));
    if (!scene->b || !scene->intensity || !scene->db)
        return false;
    if (setup->nufft ? !ask_uncropped(scene, setup)
                     : !oct_oracle_complex(setup, scene->spectra, scene->line_valid, scene->b))
        return false;
    for (size_t i = 0; i < scene->n_pixels; i++) {
        scene->intensity[i] = square(scene->b + 2 * i);
        scene->db[i] = oct_oracle_db(scene->intensity[i]);
        scene->brightest = fmax(scene->brightest, scene->intensity[i]);
    }
    if (!setup->nufft)
        scene->uncropped = scene->brightest;
    return true;
}

/* Darker B-scans with noise of their own, one line missing in each. */
static bool make_before(struct oct_scene *scene, uint64_t *random)
{
    const size_t n = scene->recipe.n_samples, n_lines = scene->recipe.n_lines;
    if (scene->recipe.dc != OCT_DC_RUNNING)
        return true;
    scene->before = calloc(OCT_SCENE_BEFORE * n_lines * n, sizeof(uint16_t));
    scene->before_valid = malloc(OCT_SCENE_BEFORE * n_lines);
    if (!scene->before || !scene->before_valid)
        return false;
    for (size_t b = 0; b < OCT_SCENE_BEFORE; b++)
        for (size_t j = 0; j < n_lines; j++) {
            uint16_t *line = scene->before + (b * n_lines + j) * n;
            scene->before_valid[b * n_lines + j] = j != b;
            for (size_t i = 0; j != b && i < n; i++)
                line[i] = digitise((0.9 - 0.1 * (double)b) * source_at((double)i / (double)n) +
                                       20 * oct_random_normal(random),
                                   4095);
        }
    return true;
}

/* What the feeding thread of a pipeline would compute. */
static bool make_dc(struct oct_scene *scene)
{
    static const uint32_t number[OCT_SCENE_BEFORE] = {10, 11, 13};
    const size_t bscan = (size_t)scene->recipe.n_lines * scene->recipe.n_samples;
    struct oct_plan *plan;
    struct oct_running_dc *dc = NULL;
    struct oct_raw_frame frame = {.info = {.number = 0}};
    if (!scene->before)
        return true;
    if (oct_scene_plan(scene, OCT_SAMPLE_F32, &plan, NULL))
        return false;
    scene->dc = malloc(2 * scene->recipe.n_samples * sizeof(float));
    bool made = scene->dc && oct_running_dc_create(&dc, plan, NULL) == OCT_OK;
    for (unsigned b = 0; made && b < OCT_SCENE_BEFORE; b++) {
        frame.info.number = number[b];
        frame.spectra = scene->before + b * bscan;
        frame.line_valid = scene->before_valid + (size_t)b * scene->recipe.n_lines;
        oct_running_dc_push(dc, &frame, scene->dc);
    }
    frame = (struct oct_raw_frame){
        .info = {.number = 14}, .spectra = scene->spectra, .line_valid = scene->line_valid};
    if (made)
        oct_running_dc_push(dc, &frame, scene->dc);
    oct_running_dc_destroy(dc);
    oct_plan_destroy(plan);
    return made;
}

bool oct_scene_create(struct oct_scene *scene, const struct oct_scene_recipe *recipe, uint64_t seed)
{
    *scene = (struct oct_scene){.recipe = *recipe};
    scene->recipe.n_samples = recipe->n_samples ? recipe->n_samples : 832;
    scene->recipe.n_lines = recipe->n_lines ? recipe->n_lines : 5;
    struct oct_oracle_setup size = {.n_samples = scene->recipe.n_samples};
    size_t p2 = oct_oracle_upsampled(&size), n_lines = scene->recipe.n_lines;
    size_t bytes = n_lines * scene->recipe.n_samples * sizeof(uint16_t);
    if (recipe->interpolation == OCT_INTERPOLATION_NUFFT && !recipe->crop_last)
        scene->recipe.crop_last = (uint32_t)(p2 / 4);
    scene->spectra = aligned_alloc(64, (bytes + 63) / 64 * 64);
    scene->line_valid = malloc(n_lines);
    if (!scene->spectra || !scene->line_valid || !make_axis(scene, p2) ||
        !make_dispersion(scene, p2) || !make_background(scene)) {
        oct_scene_finish(scene);
        return false;
    }
    memset(scene->spectra, 0, bytes);
    fill_light(scene, &seed);
    lose_lines(scene);
    bool made = make_before(scene, &seed) && make_dc(scene);
    struct oct_oracle_setup setup = oracle_setup(scene);
    if (!made || !ask_oracle(scene, &setup)) {
        oct_scene_finish(scene);
        return false;
    }
    return true;
}

void oct_scene_finish(struct oct_scene *scene)
{
    free(scene->cal.wavelengths_nm);
    free(scene->cal.kmap_px);
    free(scene->cal.dispersion);
    free(scene->cal.background);
    free(scene->spectra);
    free(scene->line_valid);
    free(scene->before);
    free(scene->before_valid);
    free(scene->dc);
    free(scene->b);
    free(scene->intensity);
    free(scene->db);
    *scene = (struct oct_scene){.n_pixels = 0};
}

enum oct_err oct_scene_plan(const struct oct_scene *scene, enum oct_sample_type sample_type,
                            struct oct_plan **plan, struct oct_error *err)
{
    const struct oct_scene_recipe *recipe = &scene->recipe;
    const struct oct_chain chain = {
        .dc = recipe->dc,
        .interpolation = recipe->interpolation,
        .accuracy_db = recipe->accuracy_db,
        .dc_bscans = OCT_SCENE_DC_BSCANS,
        .shaping = recipe->shaping,
    };
    struct oct_geometry geometry;
    *plan = NULL;
    enum oct_err e = oct_geometry_init(&geometry, recipe->n_samples, recipe->n_lines, 4,
                                       recipe->crop_first, recipe->crop_last, sample_type, err);
    return e ? e : oct_plan_create(plan, &geometry, &scene->cal, &chain, err);
}

struct oct_oracle_range oct_scene_range(const struct oct_display *display)
{
    return (struct oct_oracle_range){
        .log = display->log,
        .mode = display->range == OCT_RANGE_AUTO     ? OCT_ORACLE_AUTO
                : display->range == OCT_RANGE_MANUAL ? OCT_ORACLE_MANUAL
                                                     : OCT_ORACLE_PERCENTILE,
        .lo = display->lo,
        .hi = display->hi,
        .percentile_lo = display->percentile_lo,
        .percentile_hi = display->percentile_hi,
        .smoothing_bscans = display->smoothing_bscans,
    };
}

struct oct_oracle_values oct_scene_values(const struct oct_scene *scene, bool log)
{
    return (struct oct_oracle_values){
        .values = log ? scene->db : scene->intensity,
        .line_valid = scene->line_valid,
        .n_lines = scene->recipe.n_lines,
        .depth = scene->n_pixels / scene->recipe.n_lines,
    };
}
