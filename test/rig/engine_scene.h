/* What the engine tests look at: a B-scan of spectra with its calibration, made from a short
 * recipe, and the oracle's answer to it. The same recipe and seed give the same samples. */
#ifndef OCT_TEST_RIG_ENGINE_SCENE_H
#define OCT_TEST_RIG_ENGINE_SCENE_H

#include "pipeline/plan/plan.h"
#include "test/rig/oracle.h"

enum oct_scene_axis {
    OCT_AXIS_RISING, /* N wavelengths */
    OCT_AXIS_FALLING,
    OCT_AXIS_P2_RISING, /* P2 wavelengths */
    OCT_AXIS_P2_FALLING,
    OCT_AXIS_KMAP_RISING, /* N/2 + 2 camera coordinates */
    OCT_AXIS_KMAP_FALLING,
    OCT_AXIS_KMAP_OF_TWO, /* the least there can be */
    OCT_AXIS_STEEP,       /* k map: samples four times as dense at one end as at the other */
    OCT_AXIS_STEEP_FALLING,
};
enum oct_scene_dispersion {
    OCT_DISPERSION_NONE,
    OCT_DISPERSION_COEFFICIENTS, /* over the P2 steps */
    OCT_DISPERSION_SPECTRUM,     /* coefficients over the camera's samples */
    OCT_DISPERSION_FILE
};
enum oct_scene_light {
    OCT_LIGHT_REFLECTORS, /* 12 bit: source on a pedestal, reflectors 60 dB apart, shot noise */
    OCT_LIGHT_ZERO,
    OCT_LIGHT_FULL,        /* all 65535 */
    OCT_LIGHT_RANDOM,      /* 0..65535 */
    OCT_LIGHT_IMPULSE,     /* one sample of 65535 in the whole B-scan */
    OCT_LIGHT_ALTERNATING, /* 0, 65535, 0, ...; every other line begins with 65535 */
};
enum oct_scene_missing {
    OCT_MISSING_NONE,
    OCT_MISSING_SOME, /* every third line, the first and the last */
    OCT_MISSING_ALL_BUT_ONE,
    OCT_MISSING_ALL
};

struct oct_scene_recipe {
    const char *name; /* a sentence: the test's name */
    /* 0: 832, 5, 0; the last depth, with nufft of the quarter of P2 that it has */
    uint32_t n_samples, n_lines, crop_first, crop_last;
    enum oct_scene_axis axis;
    enum oct_scene_dispersion dispersion;
    enum oct_dc dc;
    enum oct_interpolation interpolation;
    enum oct_scene_light light;
    enum oct_scene_missing missing;
    double accuracy_db;         /* nufft; 0: the standard */
    struct oct_shaping shaping; /* the camera has a background where it flattens */
};

/* dc=running: B-scans 10, 11 and 13 came before this one, which is 14. The window is that of 11 to
 * 14, so that the first is out of it and one of it is missing. */
#define OCT_SCENE_BEFORE 3u
#define OCT_SCENE_DC_BSCANS 4u

struct oct_scene {
    struct oct_scene_recipe recipe;
    struct oct_calibration cal;
    uint16_t *spectra;   /* [M][N], 64-byte aligned, zero where a line is missing */
    uint8_t *line_valid; /* [M] */
    /* dc=running: B-scans that came before this one, of which those of the window count, and the
     * line that a pipeline would lend with the job, [2][N]. Else NULL. */
    uint16_t *before;      /* [OCT_SCENE_BEFORE][M][N], zero where a line is missing */
    uint8_t *before_valid; /* [OCT_SCENE_BEFORE][M] */
    float *dc;
    size_t n_pixels;   /* M * D */
    double *b;         /* [M][D][2] the oracle's, counts */
    double *intensity; /* [M][D] its square, counts^2 */
    double *db;        /* [M][D] the same in dB */
    double brightest;  /* largest intensity */
    double uncropped;  /* nufft: the largest over all P2/2 depths; else as brightest */
    uint16_t largest;  /* largest sample of a line that came */
};

/* Makes the samples and asks the oracle. False when out of memory. */
bool oct_scene_create(struct oct_scene *scene, const struct oct_scene_recipe *recipe,
                      uint64_t seed);
void oct_scene_finish(struct oct_scene *scene);

/* What the engine must be given to compute this scene. */
enum oct_err oct_scene_plan(const struct oct_scene *scene, enum oct_sample_type sample_type,
                            struct oct_plan **plan, struct oct_error *err);

/* The display's options in the oracle's words, and what they are for: the scene's values, of the
 * first volume. */
struct oct_oracle_range oct_scene_range(const struct oct_display *display);
struct oct_oracle_values oct_scene_values(const struct oct_scene *scene, bool log);

/* 0 <= value < 1, and a normal deviate, from a state that starts with any seed. */
double oct_random_uniform(uint64_t *state);
double oct_random_normal(uint64_t *state);

#endif
