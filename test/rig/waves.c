#include "test/rig/waves.h"

#include "test/rig/engine_scene.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>

#define PI 3.14159265358979323846

void oct_waves_init(struct oct_waves *waves, uint64_t seed, double shortest, double longest)
{
    uint64_t random = seed;
    for (unsigned i = 0; i < OCT_WAVES; i++) {
        /* Uniform in frequency: as much of the short as of the long. */
        double lowest = 1 / longest, highest = 1 / shortest;
        double k = 2 * PI * (lowest + (highest - lowest) * oct_random_uniform(&random));
        double angle = 2 * PI * oct_random_uniform(&random);
        waves->k_y[i] = k * sin(angle);
        waves->k_x[i] = k * cos(angle);
        waves->phase[i] = 2 * PI * oct_random_uniform(&random);
    }
}

/* Adds a row of a wave: cos(first + k x) by turning, which is exact to 1e-12 over a row. */
static void add_wave(double *row, uint32_t width, double first, double k)
{
    double re = cos(first), im = sin(first), turn_re = cos(k), turn_im = sin(k);
    for (uint32_t x = 0; x < width; x++) {
        row[x] += re;
        double next = re * turn_re - im * turn_im;
        im = re * turn_im + im * turn_re;
        re = next;
    }
}

void oct_waves_draw(const struct oct_waves *waves, const double *dy, const double *dx,
                    struct oct_picture *picture)
{
    double scale = sqrt(2.0 / OCT_WAVES), *row = calloc(picture->width, sizeof(double));
    assert_non_null(row);
    for (uint32_t y = 0; y < picture->height; y++) {
        double at_y = y + (dy ? dy[y] : 0), at_x = dx ? dx[y] : 0;
        for (uint32_t x = 0; x < picture->width; x++)
            row[x] = 0;
        for (unsigned i = 0; i < OCT_WAVES; i++)
            add_wave(row, picture->width,
                     waves->phase[i] + waves->k_y[i] * at_y + waves->k_x[i] * at_x, waves->k_x[i]);
        for (uint32_t x = 0; x < picture->width; x++)
            picture->pixels[(size_t)y * picture->width + x] = (float)(scale * row[x]);
    }
    free(row);
}

void oct_waves_add_noise(struct oct_picture *picture, double sd, uint64_t *random)
{
    size_t n = (size_t)picture->height * picture->width;
    for (size_t i = 0; i < n && sd > 0; i++)
        picture->pixels[i] += (float)(sd * oct_random_normal(random));
}

struct oct_picture oct_waves_picture(const struct oct_waves *waves, uint32_t height, uint32_t width,
                                     double dy, double dx, double noise, uint64_t *random)
{
    struct oct_picture picture;
    double *by_y = calloc(height, sizeof(double)), *by_x = calloc(height, sizeof(double));
    assert_true(by_y && by_x);
    must(oct_picture_init(&picture, height, width, false, &failure));
    for (uint32_t y = 0; y < height; y++) {
        by_y[y] = dy;
        by_x[y] = dx;
    }
    oct_waves_draw(waves, by_y, by_x, &picture);
    oct_waves_add_noise(&picture, noise, random);
    free(by_y);
    free(by_x);
    return picture;
}
