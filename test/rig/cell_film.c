#include "test/rig/cell_film.h"

#include "test/rig/engine_scene.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>

#define CONTRAST 60.0 /* grey levels */
#define TWO_PI 6.283185307179586

void cell_film_setup_default(struct cell_film_setup *setup)
{
    *setup = (struct cell_film_setup){.height = 240,
                                      .width = 320,
                                      .dy = 1,
                                      .dx = 1,
                                      .n_frames = 30,
                                      .radius = 10,
                                      .cnr = 8,
                                      .slowest = 2,
                                      .fastest = 5,
                                      .lane = 40,
                                      .distance = 90,
                                      .nearest = 12,
                                      .farthest = 20,
                                      .softness = 0.8,
                                      .seed = 1};
}

static double between(uint64_t *random, double least, double most)
{
    return least + (most - least) * oct_random_uniform(random);
}

/* ---- scenes: cells along x, or, upright, along y ---- */

static void add_cell(struct cell_film *f, double along, double across, double speed,
                     uint64_t *random)
{
    if (f->n_cells == CELL_FILM_MOST)
        return;
    struct cell_film_cell *cell = &f->cells[f->n_cells++];
    const bool is_upright = f->setup.is_upright;
    *cell = (struct cell_film_cell){.x = is_upright ? across : along,
                                    .y = is_upright ? along : across,
                                    .vx = is_upright ? 0 : speed,
                                    .vy = is_upright ? speed : 0,
                                    .swing = between(random, 0, 0.3) * f->setup.radius,
                                    .phase = between(random, 0, TWO_PI),
                                    .radius = between(random, 0.95, 1.05) * f->setup.radius};
}

/* One speed a lane, either way; cells at equal distances, as long as the film lasts. */
static void fill_lane(struct cell_film *f, double across, double length, uint64_t *random)
{
    const struct cell_film_setup *s = &f->setup;
    const double way = oct_random_uniform(random) < 0.5 ? -1 : 1;
    const double speed = way * between(random, s->slowest, s->fastest);
    const double first = between(random, 0, s->distance), run = fabs(speed) * s->n_frames;
    const double low = speed > 0 ? -run : 0, high = speed > 0 ? length : length + run;
    for (double along = low + first; along < high; along += s->distance)
        add_cell(f, along, across, speed, random);
}

/* A slow cell, and a fast one that catches up with it half way through the film. */
static void fill_pair(struct cell_film *f, double across, double length, uint64_t *random)
{
    const struct cell_film_setup *s = &f->setup;
    const double slow = between(random, s->slowest, s->slowest + 0.5);
    const double fast = between(random, s->fastest - 0.5, s->fastest);
    const double meet = length / 2, time = s->n_frames / 2.0;
    const double offset = between(random, s->nearest, s->farthest) / 2;
    add_cell(f, meet - slow * time, across - offset, slow, random);
    add_cell(f, meet - fast * time, across + offset, fast, random);
}

void cell_film_init(struct cell_film *f, const struct cell_film_setup *setup)
{
    uint64_t random = setup->seed * 7919 + 13;
    const double height = setup->height * setup->dy, width = setup->width * setup->dx;
    const double side = setup->is_upright ? width : height;
    const double length = setup->is_upright ? height : width;
    *f = (struct cell_film){.setup = *setup};
    for (double across = 3.2 * setup->radius; across < side - 3.2 * setup->radius;
         across += setup->lane) {
        if (setup->overtakes)
            fill_pair(f, across, length, &random);
        else
            fill_lane(f, across, length, &random);
    }
}

bool cell_film_place(const struct cell_film *f, unsigned i, double time, double *x, double *y)
{
    const struct cell_film_setup *s = &f->setup;
    const struct cell_film_cell *cell = &f->cells[i];
    const double across = cell->swing * sin(cell->phase + TWO_PI * time / 40);
    *x = cell->x + cell->vx * time + (s->is_upright ? across : 0);
    *y = cell->y + cell->vy * time + (s->is_upright ? 0 : across);
    return *x > -cell->radius && *y > -cell->radius && *x < s->width * s->dx + cell->radius &&
           *y < s->height * s->dy + cell->radius;
}

static double time_of_row(const struct cell_film *f, unsigned frame, double y)
{
    return frame + f->setup.scan * y / (f->setup.height * f->setup.dy);
}

bool cell_film_place_seen(const struct cell_film *f, unsigned i, unsigned frame, double *x,
                          double *y)
{
    bool is_seen = cell_film_place(f, i, frame, x, y);
    for (unsigned n = 0; n < 60 && f->setup.scan > 0; n++)
        is_seen = cell_film_place(f, i, time_of_row(f, frame, *y), x, y);
    return is_seen;
}

/* ---- pictures ---- */

#define N_WAVES 64u

/* A Gaussian random field: waves of random directions and phases, the same in every frame.
 * cos(kx x + ky y + phase) by the cosines and sines of columns and of rows. */
static void draw_texture(const struct cell_film *f, struct oct_picture *picture)
{
    const struct cell_film_setup *s = &f->setup;
    const double height = CONTRAST * s->texture * sqrt(2.0 / N_WAVES);
    float *cosines = malloc(2 * s->width * sizeof(float)), *sines = cosines + s->width;
    uint64_t random = s->seed * 104729 + 7;
    assert_non_null(cosines);
    for (unsigned w = 0; w < N_WAVES && s->texture > 0; w++) {
        const double kx = oct_random_normal(&random) / s->grain;
        const double ky = oct_random_normal(&random) / s->grain;
        const double phase = between(&random, 0, TWO_PI);
        for (uint32_t x = 0; x < s->width; x++) {
            cosines[x] = (float)cos(kx * x * s->dx);
            sines[x] = (float)sin(kx * x * s->dx);
        }
        for (uint32_t y = 0; y < s->height; y++) {
            const float c = (float)(height * cos(ky * y * s->dy + phase));
            const float d = (float)(height * sin(ky * y * s->dy + phase));
            for (uint32_t x = 0; x < s->width; x++)
                picture->pixels[(size_t)y * s->width + x] += c * cosines[x] - d * sines[x];
        }
    }
    free(cosines);
}

/* The brightest of the cells that cover the place. */
static void draw_cell(const struct cell_film *f, unsigned i, unsigned frame,
                      struct oct_picture *picture)
{
    const struct cell_film_setup *s = &f->setup;
    const double radius = f->cells[i].radius, reach = radius + 8 * s->softness;
    for (uint32_t row = 0; row < s->height; row++) {
        double x, y;
        cell_film_place(f, i, time_of_row(f, frame, row * s->dy), &x, &y);
        if (fabs(row * s->dy - y) > reach)
            continue;
        const double first = fmax(ceil((x - reach) / s->dx), 0);
        for (double column = first; column < s->width && column * s->dx < x + reach; column++) {
            float *pixel = &picture->pixels[(size_t)row * s->width + (size_t)column];
            const double d = hypot(column * s->dx - x, row * s->dy - y);
            const float value = (float)(CONTRAST / (1 + exp((d - radius) / s->softness)));
            *pixel = value > *pixel ? value : *pixel;
        }
    }
}

void cell_film_draw(const struct cell_film *f, unsigned frame, struct oct_picture *picture)
{
    const struct cell_film_setup *s = &f->setup;
    const size_t n = (size_t)s->height * s->width;
    uint64_t random = s->seed * 1000003 + frame + 1;
    const double sd = isinf(s->cnr) ? 0 : CONTRAST / s->cnr;
    for (size_t i = 0; i < n; i++)
        picture->pixels[i] = 0;
    for (unsigned i = 0; i < f->n_cells; i++)
        draw_cell(f, i, frame, picture);
    draw_texture(f, picture);
    for (uint32_t row = 0; row < s->height; row++) {
        const double y = row * s->dy, stripes = 80 + 8 * sin(y / 90), bumps = 12 * cos(y / 47);
        for (uint32_t column = 0; column < s->width; column++) {
            const double x = column * s->dx;
            picture->pixels[(size_t)row * s->width + column] +=
                (float)(stripes + bumps * sin(x / 61 + 0.4) + 0.03 * x +
                        sd * oct_random_normal(&random));
        }
    }
}
