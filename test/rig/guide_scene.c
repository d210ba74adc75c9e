#include "test/rig/guide_scene.h"

#include "numeric/order.h"
#include "test/rig/synth_scene.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP 2u /* of the A-lines */
#define INDEX 1.36
#define DEPTH 1024u /* as octd publishes it */
#define TURN 6.283185307179586

/* ---- the retina ---- */

static void brighten(struct synth_scene *s, double gain, struct guide_scene *scene)
{
    const size_t n = (size_t)SYNTH_N_LINES * SYNTH_N_SAMPLES;
    size_t n_saturated = 0;
    for (size_t i = 0; i < n; i++) {
        const double v = floor(s->spectra[i] * gain + 0.5);
        s->spectra[i] = (uint16_t)fmin(v, s->facts->full_scale);
        n_saturated += s->spectra[i] == (uint16_t)s->facts->full_scale;
    }
    scene->saturated = (double)n_saturated / (double)n;
}

/* Where a share of the A-lines has the surface higher. */
static double surface_at(const struct synth_scene *s, enum oct_surface which, double share)
{
    double depth[SYNTH_N_LINES];
    for (uint32_t j = 0; j < SYNTH_N_LINES; j++)
        depth[j] = synth_surface(s, which, 0, j);
    oct_doubles_sort(depth, SYNTH_N_LINES);
    return depth[(size_t)(share * SYNTH_N_LINES)];
}

/* The median of exponential noise is its mean times log 2; before the ILM there is noise alone. */
static double noise_of(const struct guide_scene *scene)
{
    const uint32_t n = scene->n_filled / 10;
    float *part = malloc((size_t)scene->n_lines * n * sizeof(*part));
    assert_non_null(part);
    for (uint32_t j = 0; j < scene->n_lines; j++)
        memcpy(part + (size_t)j * n, scene->intensity + (size_t)j * scene->n_filled,
               n * sizeof(*part));
    oct_floats_sort(part, (size_t)scene->n_lines * n);
    const double floor = (double)part[(size_t)scene->n_lines * n / 2] / log(2);
    free(part);
    return floor;
}

struct guide_scene *guide_scene_open(double gain)
{
    const struct oct_retina_params params =
        synth_params(SYNTH_N_SAMPLES, SYNTH_N_LINES, SYNTH_N_BSCANS, 5);
    struct synth_scene *s = synth_scene_open(&params, SYNTH_FIRST_BSCAN, 1);
    struct guide_scene *scene = calloc(1, sizeof(*scene));
    float mean[SYNTH_N_SAMPLES];
    assert_non_null(scene);
    scene->n_lines = SYNTH_N_LINES / STEP;
    scene->depth = DEPTH;
    scene->n_filled = SYNTH_DEPTH;
    scene->axial_um = s->facts->axial_um / INDEX;
    scene->intensity = malloc((size_t)scene->n_lines * scene->n_filled * sizeof(float));
    assert_non_null(scene->intensity);
    brighten(s, gain, scene);
    synth_bscan_mean(s, 0, mean);
    for (uint32_t j = 0; j < scene->n_lines; j++)
        synth_reconstruct(s, 0, j * STEP, mean, 0, scene->n_filled,
                          scene->intensity + (size_t)j * scene->n_filled);
    scene->ilm = surface_at(s, OCT_SURFACE_ILM, 0.2) / scene->depth;
    scene->bruch = surface_at(s, OCT_SURFACE_BRUCH, 0.8) / scene->depth;
    scene->floor = noise_of(scene);
    synth_scene_close(s);
    return scene;
}

void guide_scene_close(struct guide_scene *scene)
{
    if (scene)
        free(scene->intensity);
    free(scene);
}

/* ---- pictures ---- */

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

/* The intensity of an amplitude with noise of this mean intensity. */
static double with_noise(double intensity, double noise, uint64_t *random)
{
    const double r = sqrt(-noise * log(uniform(random))), phase = TURN * uniform(random);
    const double re = sqrt(intensity) + r * cos(phase), im = r * sin(phase);
    return re * re + im * im;
}

static double pixel_of(const struct guide_scene *scene, const struct guide_fault *f, uint32_t j,
                       uint32_t d, uint64_t *random)
{
    const double from = d - round(f->shift * scene->depth);
    const bool is_noise =
        j < f->dark * scene->n_lines || from < 0 || from > (double)scene->n_filled - 1;
    const unsigned n = f->averaged > 1 ? f->averaged : 1;
    double sum = 0;
    for (unsigned i = 0; i < n; i++) {
        const double own =
            is_noise ? 0 : (double)scene->intensity[(size_t)j * scene->n_filled + (size_t)from];
        const double noise = f->noise + (is_noise ? 1 : 0);
        sum += with_noise(own, noise * scene->floor, random);
    }
    return sum / n;
}

struct oct_view_picture guide_scene_picture(const struct guide_scene *scene,
                                            const struct guide_fault *fault)
{
    const struct oct_picture_header header = {.acquisition_id = "a",
                                              .sample_type = OCT_SAMPLE_F32,
                                              .n_lines = scene->n_lines,
                                              .depth = scene->depth,
                                              .lo = -10,
                                              .hi = 40};
    const size_t n = (size_t)scene->n_lines * scene->depth;
    uint64_t random = 12345 + fault->seed;
    struct oct_view_picture picture = {0};
    float *pixels = malloc(n * sizeof(*pixels));
    assert_non_null(pixels);
    for (size_t i = 0; i < n; i++) {
        const double v = pixel_of(scene, fault, (uint32_t)(i / scene->depth),
                                  (uint32_t)(i % scene->depth), &random);
        pixels[i] = (float)(fault->linear ? v : 10 * log10(fmax(v, 1e-12)));
    }
    assert_int_equal(oct_view_picture_set(&picture, &header, pixels, n * sizeof(*pixels), NULL),
                     OCT_OK);
    free(pixels);
    return picture;
}

struct oct_view_picture guide_scene_in_bytes(const struct oct_view_picture *picture, double lo,
                                             double hi)
{
    struct oct_picture_header header = picture->header;
    const size_t n = (size_t)header.n_lines * header.depth;
    struct oct_view_picture bytes = {0};
    uint8_t *pixels = malloc(n);
    assert_non_null(pixels);
    header.sample_type = OCT_SAMPLE_U8;
    header.lo = lo;
    header.hi = hi;
    for (size_t i = 0; i < n; i++) {
        const double grey = ((double)((const float *)picture->pixels)[i] - lo) / (hi - lo) * 255;
        pixels[i] = (uint8_t)(fmin(255, fmax(0, grey)) + 0.5);
    }
    assert_int_equal(oct_view_picture_set(&bytes, &header, pixels, n, NULL), OCT_OK);
    free(pixels);
    return bytes;
}
