#include "test/rig/surface_scene.h"

#include <math.h>
#include <stdlib.h>

#define MIDDLE 60.0

static double uniform(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(uint64_t *state)
{
    const double r = sqrt(-2 * log(uniform(state)));
    return r * cos(2 * 3.14159265358979323846 * uniform(state));
}

/* A druse about every four widths in either direction, of half to the whole height. */
static double drusen(const struct oct_surface_scene *s, double b, double j)
{
    const double area = (double)s->n_b * s->n_j / (16 * s->width * s->width);
    uint64_t state = s->seed * UINT64_C(77) + 5;
    double sum = 0;
    for (unsigned i = 0; i < (unsigned)area + 1; i++) {
        const double cb = uniform(&state) * s->n_b, cj = uniform(&state) * s->n_j;
        const double height = s->height * (0.5 + 0.5 * uniform(&state));
        const double sigma = s->width * (0.7 + 0.6 * uniform(&state));
        const double r2 = (b - cb) * (b - cb) + (j - cj) * (j - cj);
        sum = fmax(sum, height * exp(-r2 / (2 * sigma * sigma)));
    }
    return MIDDLE - sum;
}

static double height_at(const struct oct_surface_scene *s, double b, double j)
{
    const double wave = 2 * 3.14159265358979323846 / s->width;
    const double db = b - 0.5 * s->n_b, dj = j - 0.5 * s->n_j;
    switch (s->kind) {
    case OCT_SURFACE_SHEET:
        return MIDDLE + s->height * sin(wave * j) * cos(0.5 * wave * b);
    case OCT_SURFACE_PIT:
        return MIDDLE - 0.5 * s->height +
               s->height * exp(-(db * db + dj * dj) / (2 * s->width * s->width));
    default:
        return drusen(s, b, j);
    }
}

void oct_surface_scene_draw(const struct oct_surface_scene *scene, float *truth, float *noisy)
{
    uint64_t state = scene->seed + UINT64_C(0x9e3779b97f4a7c15);
    for (uint32_t b = 0; b < scene->n_b; b++)
        for (uint32_t j = 0; j < scene->n_j; j++) {
            const uint64_t at = (uint64_t)b * scene->n_j + j;
            const double height = height_at(scene, b, j), noise = scene->noise * normal(&state);
            const double far = 6 + 14 * uniform(&state), side = uniform(&state) < 0.5 ? -1 : 1;
            const double out = uniform(&state) < scene->outliers ? side * far : 0;
            if (truth)
                truth[at] = (float)height;
            if (noisy)
                noisy[at] = (float)(height + noise + out);
        }
}

double oct_surface_rms(const float *a, const float *b, uint64_t n)
{
    double sum = 0;
    uint64_t known = 0;
    for (uint64_t i = 0; i < n; i++)
        if (isfinite(a[i]) && isfinite(b[i])) {
            const double d = (double)a[i] - (double)b[i];
            sum += d * d;
            known++;
        }
    return known > 0 ? sqrt(sum / (double)known) : INFINITY;
}
