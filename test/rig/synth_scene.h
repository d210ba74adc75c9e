/* What the tests of the synthetic retina share: a part of a volume of the usual size, its truth,
 * and a reconstruction by direct sums over camera pixels, written from the contract and sharing
 * nothing with the engines or the model. */
#ifndef OCT_TEST_RIG_SYNTH_SCENE_H
#define OCT_TEST_RIG_SYNTH_SCENE_H

#include "synth/retina.h"

#include <complex.h>
#include <stdint.h>

#define SYNTH_N_SAMPLES 832u
#define SYNTH_N_LINES 240u
#define SYNTH_N_BSCANS 240u
#define SYNTH_DEPTH 640u      /* depth pixels that hold the retina */
#define SYNTH_FIRST_BSCAN 60u /* the B-scans that are rendered, from here on */
#define SYNTH_N_RENDERED 40u

struct synth_scene {
    struct oct_retina *retina;
    const struct oct_retina_facts *facts;
    struct oct_retina_truth truth;
    uint16_t *spectra;     /* [N_RENDERED, or n][N_LINES][N_SAMPLES] */
    float complex *kernel; /* [DEPTH][N_SAMPLES] with the dispersion phase */
    double *q, *theta;     /* [N_SAMPLES] position on the contract's k axis, dispersion phase */
    uint64_t n_saturated;
};

/* B-scans first .. first + n - 1 of a volume of 240 x 240 A-lines of 832 samples, and its truth. */
struct synth_scene *synth_scene_open(const struct oct_retina_params *params, uint32_t first,
                                     uint32_t n);
void synth_scene_close(struct synth_scene *scene);

/* cmocka's group set-up and teardown. */
int synth_scene_make(void **state);
int synth_scene_drop(void **state);

struct oct_retina_params synth_params(uint32_t n_samples, uint32_t n_lines, uint32_t n_bscans,
                                      uint64_t seed);
struct oct_retina *synth_retina(const struct oct_retina_params *params);

/* Contract step 4: the wavelength of the upsampled position p of the padded line. */
double synth_padded_wavelength(const double *nm, uint32_t n, double p);

/* A term of a depth pixel: steps 5 and 6 at a camera pixel, with its share of k; `sign` of the
 * dispersion phase is 1 in the contract. */
float complex synth_kernel_at(const struct synth_scene *s, uint32_t i, double depth, double sign);

/* mean[N_SAMPLES] over the A-lines of a rendered B-scan (0 .. N_RENDERED - 1). */
void synth_bscan_mean(const struct synth_scene *s, uint32_t bscan, float *mean);
float synth_intensity(const float *line, const float complex *kernel);

/* Depth pixels first .. first + n - 1 of an A-line into out. */
void synth_reconstruct(const struct synth_scene *s, uint32_t bscan, uint32_t j, const float *mean,
                       uint32_t first, uint32_t n, float *out);

/* The truth of an A-line of a rendered B-scan. */
double synth_surface(const struct synth_scene *s, enum oct_surface which, uint32_t bscan,
                     uint32_t j);
double synth_vessel(const struct synth_scene *s, uint32_t bscan, uint32_t j);

#endif
