#include "synth/cells.h"

#include "kernels/device/workers.h"
#include "synth/random.h"

#include <math.h>
#include <stdlib.h>

#define MOST_CONTRAST 60.0  /* grey levels */
#define MOST_NOISE 20.0     /* at 255 - 60 - 120 nothing is cut off but one pixel in 10^4 */
#define ROUNDING (1.0 / 12) /* variance of whole grey levels */
#define BACKGROUND 90.0     /* its middle */
#define LEAST_SOFTNESS 0.5  /* px: finer edges alias */

struct oct_cell_film {
    struct oct_cell_film_setup setup;
    struct oct_cell_paths paths;
    struct oct_workers *workers;
    double dy, dx; /* of a pixel; the finer one is 1 */
    double softness, contrast, noise;
    float *background; /* [height][width] */
};

struct job {
    const struct oct_cell_film *film;
    unsigned first;
    uint8_t *pictures;
};

/* ---- the background ---- */

static double background_at(const struct oct_cell_film *f, double x, double y)
{
    const struct oct_cell_paths_setup *s = &f->paths.setup;
    const double r = s->radius, from_x = x - s->width / 2, from_y = y - s->height / 2;
    const double across = from_y * f->paths.cosine - from_x * f->paths.sine;
    /* The walls lie 2.4 R beside the outermost paths. */
    const double half = f->paths.usable / 2 + 2.4 * r,
                 from_wall = (fabs(across) - half) / (0.5 * r);
    const double vessel = fabs(across) < half ? 10 * (1 - pow(across / half, 2)) : 0;
    const double wall = -12 * exp(-0.5 * from_wall * from_wall);
    const double texture = 7 * (double)oct_noise2(s->seed, 1000, x / (6 * r), y / (6 * r)) +
                           3 * (double)oct_noise2(s->seed, 1001, x / (3 * r), y / (3 * r));
    const double slope = 8 * (from_x / (s->width + 1) - from_y / (s->height + 1));
    return BACKGROUND + vessel + wall + texture + slope;
}

static void paint_row(void *context, unsigned y, unsigned worker)
{
    const struct oct_cell_film *f = context;
    (void)worker;
    for (uint32_t x = 0; x < f->setup.width; x++)
        f->background[(size_t)y * f->setup.width + x] =
            (float)background_at(f, x * f->dx, y * f->dy);
}

/* ---- contrast ---- */

/* The mean of a cell's profile over its disk. */
static double mean_profile(double radius, double softness)
{
    enum { N = 4096 };
    double sum = 0;
    for (unsigned i = 0; i < N; i++) {
        const double d = (i + 0.5) * radius / N;
        sum += d * oct_cell_profile(d, radius, softness);
    }
    return sum * 2 / (radius * N);
}

static void set_contrast(struct oct_cell_film *f)
{
    const double sd = fmin(MOST_CONTRAST / f->setup.cnr, MOST_NOISE);
    const double contrast = isinf(f->setup.cnr) ? MOST_CONTRAST : f->setup.cnr * sd;
    f->softness = fmax(0.08 * f->paths.setup.radius, LEAST_SOFTNESS);
    f->contrast = contrast / mean_profile(f->paths.setup.radius, f->softness);
    f->noise = sqrt(fmax(sd * sd - ROUNDING, 0));
}

/* ---- the film ---- */

static enum oct_err set_scene(struct oct_cell_film *f, struct oct_error *err)
{
    const struct oct_cell_film_setup *s = &f->setup;
    struct oct_cell_paths_setup paths = s->paths;
    const bool known = s->um[0] > 0 && s->um[1] > 0;
    const double finest = known ? fmin(s->um[0], s->um[1]) : 1;
    if (s->height == 0 || s->width == 0 || s->height > OCT_CELL_FILM_MOST_SIDE ||
        s->width > OCT_CELL_FILM_MOST_SIDE)
        return oct_fail(err, OCT_E_ARG, "a film of %u x %u pixels: a side has 1 to %u", s->width,
                        s->height, OCT_CELL_FILM_MOST_SIDE);
    f->dy = known ? s->um[0] / finest : 1;
    f->dx = known ? s->um[1] / finest : 1;
    paths.width = (s->width - 1) * f->dx;
    paths.height = (s->height - 1) * f->dy;
    paths.n_frames = s->n_frames;
    return oct_cell_paths_init(&f->paths, &paths, err);
}

enum oct_err oct_cell_film_create(struct oct_cell_film **film,
                                  const struct oct_cell_film_setup *setup, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    *film = NULL;
    struct oct_cell_film *f = calloc(1, sizeof(*f));
    if (!f)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a film");
    f->setup = *setup;
    e = set_scene(f, err);
    if (!e && setup->n_threads != 1) /* the caller takes pieces too */
        e = oct_workers_create(&f->workers, setup->n_threads ? setup->n_threads - 1 : 0, err);
    if (!e) {
        f->background = malloc((size_t)setup->height * setup->width * sizeof(float));
        if (!f->background)
            e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %u x %u pixels", setup->width,
                         setup->height);
    }
    if (e) {
        oct_cell_film_destroy(f);
        return e;
    }
    set_contrast(f);
    oct_workers_run(f->workers, setup->height, paint_row, f);
    *film = f;
    return OCT_OK;
}

void oct_cell_film_destroy(struct oct_cell_film *f)
{
    if (!f)
        return;
    oct_workers_destroy(f->workers);
    free(f->background);
    free(f);
}

/* ---- a picture ---- */

static double time_of_row(const struct oct_cell_film *f, unsigned frame, uint32_t row)
{
    const double height = f->paths.setup.height;
    return frame + (height > 0 ? f->setup.scan * row * f->dy / height : 0);
}

/* Raises brightness [width] to the cell's where it is brighter. */
static void draw_cell(const struct oct_cell_film *f, const struct oct_cell_place *cell,
                      uint32_t row, float *brightness)
{
    const double from_y = row * f->dy - cell->y, reach = cell->radius + 12 * f->softness;
    if (fabs(from_y) > reach)
        return;
    const double first = fmax(ceil((cell->x - reach) / f->dx), 0);
    const double last = fmin(floor((cell->x + reach) / f->dx), f->setup.width - 1.0);
    for (double x = first; x <= last; x++) {
        const double distance = hypot(x * f->dx - cell->x, from_y);
        float *pixel = &brightness[(size_t)x];
        *pixel = fmaxf(
            *pixel, (float)(f->contrast * oct_cell_profile(distance, cell->radius, f->softness)));
    }
}

static void render_row(const struct oct_cell_film *f, unsigned frame, uint32_t row, uint8_t *pixels)
{
    const uint32_t width = f->setup.width;
    const float *background = f->background + (size_t)row * width;
    const double time = time_of_row(f, frame, row);
    float brightness[OCT_CELL_FILM_MOST_SIDE];
    for (uint32_t x = 0; x < width; x++)
        brightness[x] = 0;
    for (unsigned i = 0; i < f->paths.setup.n_cells; i++) {
        const struct oct_cell_place cell = oct_cell_paths_at(&f->paths, i, time);
        draw_cell(f, &cell, row, brightness);
    }
    for (uint32_t x = 0; x < width; x++) {
        double value = (double)background[x] + (double)brightness[x];
        if (f->noise > 0)
            value += f->noise * oct_normal(oct_hash(f->paths.setup.seed, OCT_STREAM_CELL_FILM,
                                                    frame, (int64_t)row * width + x));
        pixels[x] = (uint8_t)lrint(fmin(fmax(value, 0), 255));
    }
}

static void render_picture(void *context, unsigned piece, unsigned worker)
{
    const struct job *job = context;
    const struct oct_cell_film *f = job->film;
    uint8_t *pixels = job->pictures + (size_t)piece * f->setup.height * f->setup.width;
    (void)worker;
    for (uint32_t y = 0; y < f->setup.height; y++)
        render_row(f, job->first + piece, y, pixels + (size_t)y * f->setup.width);
}

void oct_cell_film_render(struct oct_cell_film *f, unsigned first, unsigned n, uint8_t *pictures)
{
    struct job job = {.film = f, .first = first, .pictures = pictures};
    oct_workers_run(f->workers, n, render_picture, &job);
}

unsigned oct_cell_film_truth(const struct oct_cell_film *f, unsigned frame,
                             struct oct_cell_truth *truth)
{
    unsigned n = 0;
    for (unsigned i = 0; i < f->paths.setup.n_cells; i++) {
        const struct oct_cell_place cell =
            oct_cell_paths_scanned(&f->paths, i, frame, f->setup.scan);
        const double x = cell.x / f->dx, y = cell.y / f->dy;
        if (x >= 0 && y >= 0 && x <= f->setup.width - 1.0 && y <= f->setup.height - 1.0)
            truth[n++] = (struct oct_cell_truth){.track = cell.track,
                                                 .time_s = cell.time / f->setup.fps,
                                                 .x_px = x,
                                                 .y_px = y,
                                                 .radius_px = cell.radius};
    }
    return n;
}
