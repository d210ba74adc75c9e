#include "test/rig/engine_bounds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Of the largest amplitude: 132 dB below it, two units of single precision. What is left where
 * everything cancels is of that size and depends on the order of operations. */
#define GRANTED_AMPLITUDE 2.4e-7
#define NOTHING 1e-6 /* counts: step 8's floor, what limits of darkness may differ by */

/* What holds for the way a scene is resampled. */
struct tolerance {
    double float_db; /* where I > maximum - 80 dB */
    double share;    /* of a dB picture's pixels that differ at all */
    double accuracy; /* of the uncropped largest amplitude; 0: floats decide */
    bool coarse;     /* the accuracy alone is promised */
};

static struct tolerance tolerance_of(const struct oct_scene *scene)
{
    const struct oct_scene_recipe *recipe = &scene->recipe;
    double asked_db = recipe->accuracy_db < 0 ? recipe->accuracy_db : OCT_STANDARD_ACCURACY_DB;
    unsigned n_taps = oct_spread_taps(asked_db);
    struct tolerance t = {.float_db = 0.01, .share = 0.001};
    if (recipe->interpolation != OCT_INTERPOLATION_NUFFT)
        return t;
    t.coarse = n_taps < oct_spread_taps(OCT_STANDARD_ACCURACY_DB);
    t.accuracy = pow(10, (t.coarse ? asked_db : oct_spread_error_db(n_taps)) / 20);
    return t;
}

/* What an amplitude may differ by. */
static double granted_amplitude(const struct oct_scene *scene)
{
    struct tolerance t = tolerance_of(scene);
    return GRANTED_AMPLITUDE * sqrt(scene->brightest) + t.accuracy * sqrt(scene->uncropped);
}

static double db_of(double intensity)
{
    return 10 * log10(intensity);
}

static bool say(bool holds, const struct oct_scene *scene, const char *bound, size_t pixel,
                double got, double wanted)
{
    if (!holds)
        printf("# %s: %s, line %zu depth %zu: %.9g, the oracle has %.9g\n", scene->recipe.name,
               bound, pixel / (scene->n_pixels / scene->recipe.n_lines),
               pixel % (scene->n_pixels / scene->recipe.n_lines), got, wanted);
    return holds;
}

/* Largest difference in levels, where, and how many pixels differ at all. */
struct difference {
    int most;
    size_t at, n_off;
    double wanted;
};

static struct difference compare(const struct oct_scene *scene, bool log, const uint8_t *pixels,
                                 double lo, double hi)
{
    const double *values = log ? scene->db : scene->intensity;
    struct difference found = {.most = 0};
    for (size_t i = 0; i < scene->n_pixels; i++) {
        double wanted = oct_oracle_pixel(values[i], lo, hi);
        int off = abs((int)lround(wanted) - pixels[i]);
        found.n_off += off != 0;
        if (off > found.most) {
            found.most = off;
            found.at = i;
            found.wanted = wanted;
        }
    }
    return found;
}

bool oct_bound_linear_auto(struct oct_worst *worst, const struct oct_scene *scene,
                           const uint8_t *pixels, double lo, double hi)
{
    struct difference found = compare(scene, false, pixels, lo, hi);
    if (found.most > worst->linear_auto)
        worst->linear_auto = found.most;
    return say(found.most <= 1, scene, "linear auto, level", found.at, pixels[found.at],
               found.wanted);
}

bool oct_bound_log_manual(struct oct_worst *worst, const struct oct_scene *scene,
                          const uint8_t *pixels, double lo)
{
    struct tolerance t = tolerance_of(scene);
    if (t.coarse)
        return oct_bound_band(worst, scene, true, pixels, lo, lo + 60);
    struct difference found = compare(scene, true, pixels, lo, lo + 60);
    double off = (double)found.n_off / (double)scene->n_pixels;
    if (found.most > worst->log_manual)
        worst->log_manual = found.most;
    worst->log_manual_off = fmax(worst->log_manual_off, off);
    bool few = off <= t.share;
    if (!few)
        printf("# %s: log manual, %zu of %zu pixels off\n", scene->recipe.name, found.n_off,
               scene->n_pixels);
    return say(found.most <= 1, scene, "log manual, level", found.at, pixels[found.at],
               found.wanted) &&
           few;
}

/* nufft's own promise. */
static bool accuracy_holds(struct oct_worst *worst, const struct oct_scene *scene, double accuracy,
                           bool log, const float *pixels)
{
    for (size_t i = 0; i < scene->n_pixels; i++) {
        double got = log ? pow(10, (double)pixels[i] / 10) : (double)pixels[i];
        double off = fabs(sqrt(got) - sqrt(scene->intensity[i])) / sqrt(scene->uncropped);
        worst->accuracy = fmax(worst->accuracy, off);
        if (!(off <= accuracy))
            return say(false, scene, "f32, accuracy", i, got, scene->intensity[i]);
    }
    return true;
}

bool oct_bound_float(struct oct_worst *worst, const struct oct_scene *scene, bool log,
                     const float *pixels)
{
    struct tolerance t = tolerance_of(scene);
    double floor_intensity = scene->uncropped * 1e-8;
    for (size_t i = 0; i < scene->n_pixels; i++) {
        if (!isfinite(pixels[i]) || (!log && pixels[i] < 0))
            return say(false, scene, "f32, not an intensity", i, (double)pixels[i],
                       scene->intensity[i]);
        if (t.coarse || !(scene->intensity[i] > floor_intensity))
            continue;
        double db = log ? (double)pixels[i] : db_of((double)pixels[i]);
        double off = fabs(db - scene->db[i]);
        worst->f32_db = fmax(worst->f32_db, off);
        if (!(off <= t.float_db))
            return say(false, scene, "f32, dB", i, db, scene->db[i]);
    }
    return t.accuracy == 0 || accuracy_holds(worst, scene, t.accuracy, log, pixels);
}

bool oct_bound_complex(struct oct_worst *worst, const struct oct_scene *scene, const float *z)
{
    const struct tolerance t = tolerance_of(scene);
    const size_t depth = scene->n_pixels / scene->recipe.n_lines;
    const double largest = sqrt(scene->uncropped), nothing = 1e-7 * scene->largest;
    const double granted = fmax(t.accuracy > 0 ? t.accuracy : 1e-5, GRANTED_AMPLITUDE);
    for (size_t i = 0; i < scene->n_pixels; i++) {
        const double re = (double)z[2 * i], im = (double)z[2 * i + 1];
        if (!scene->line_valid[i / depth]) {
            if (!isnan(re) || !isnan(im))
                return say(false, scene, "complex, of a missing line", i, re, NAN);
            continue;
        }
        const double off = hypot(re - scene->b[2 * i], im - scene->b[2 * i + 1]);
        if (largest > 0)
            worst->complex_off = fmax(worst->complex_off, off / largest);
        if (!(off <= fmax(granted * largest, nothing)))
            return say(false, scene, "complex, off", i, off, 0);
    }
    return true;
}

static bool limit_holds(struct oct_worst *worst, const struct oct_scene *scene, bool log,
                        double got, double wanted)
{
    double got_amplitude = sqrt(log ? pow(10, got / 10) : got);
    double wanted_amplitude = sqrt(log ? pow(10, wanted / 10) : wanted);
    double off = fabs(20 * log10(got_amplitude / wanted_amplitude));
    if (fabs(got_amplitude - wanted_amplitude) <= fmax(granted_amplitude(scene), NOTHING))
        return true;
    worst->limits_db = fmax(worst->limits_db, off);
    return off <= 0.02;
}

bool oct_bound_limits(struct oct_worst *worst, const struct oct_scene *scene, bool log, double lo,
                      double hi, double oracle_lo, double oracle_hi)
{
    bool holds = limit_holds(worst, scene, log, lo, oracle_lo) &&
                 limit_holds(worst, scene, log, hi, oracle_hi);
    if (!holds)
        printf("# %s: limits %.9g .. %.9g, the oracle has %.9g .. %.9g %s\n", scene->recipe.name,
               lo, hi, oracle_lo, oracle_hi, log ? "dB" : "counts^2");
    return holds;
}

/* The level the oracle would show for its amplitude plus `more`. */
static double level(double intensity, double more, bool log, double lo, double hi)
{
    double amplitude = fmax(sqrt(intensity) + more, 0);
    double changed = amplitude * amplitude;
    return oct_oracle_pixel(log ? oct_oracle_db(changed) : changed, lo, hi);
}

bool oct_bound_band(struct oct_worst *worst, const struct oct_scene *scene, bool log,
                    const uint8_t *pixels, double lo, double hi)
{
    double granted = granted_amplitude(scene);
    for (size_t i = 0; i < scene->n_pixels; i++) {
        int least = (int)lround(level(scene->intensity[i], -granted, log, lo, hi));
        int most = (int)lround(level(scene->intensity[i], granted, log, lo, hi));
        int off = pixels[i] < least ? least - pixels[i] : pixels[i] - most;
        if (off > worst->other)
            worst->other = off;
        if (off > 1)
            return say(false, scene, log ? "log, level" : "linear, level", i, pixels[i],
                       level(scene->intensity[i], 0, log, lo, hi));
    }
    return true;
}

bool oct_bound_dark(const struct oct_scene *scene, enum oct_sample_type sample_type, bool log,
                    const void *pixels)
{
    double granted = 1e-14 * scene->largest * scene->largest;
    for (size_t i = 0; i < scene->n_pixels; i++) {
        double got;
        if (sample_type == OCT_SAMPLE_U8) {
            got = ((const uint8_t *)pixels)[i];
            if (got != 0)
                return say(false, scene, "dark, level", i, got, 0);
        } else {
            got = (double)((const float *)pixels)[i];
            double most = log ? oct_oracle_db(granted) : granted;
            /* the floor of the log is 1e-12 in float as well */
            if (!(got <= most + 1e-3 * log))
                return say(false, scene, "dark, f32", i, got, scene->intensity[i]);
        }
    }
    return true;
}
