/* Cells on a real GPU (scripts/gpu-check): the times of a frame of 640 x 480 px with 48 cells, on
 * the device and as a program calls it; in a program that needs none of octd's libraries.
 *
 * Exit status: 0, 1 failed or slower than the goal, 3 no GPU. */
#include "kernels/device/cuda_device.h"
#include "pipeline/base/clock.h"
#include "test/gpu/cells_timing.h"
#include "test/rig/cell_film.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { HEIGHT = 480, WIDTH = 640, CELLS = 48, MOST = 512 };
#define RADIUS 10.0
#define REPEATS 50 /* the best is taken */
#define PATIENCE_MS 60000
#define GOAL_SCORES_US 130.0
#define GOAL_FRAME_US 1000.0

static double seconds(void)
{
    return (double)oct_clock_ns() * 1e-9;
}

/* Six lanes of eight cells, 8 times as bright as the noise. */
static enum oct_err make_frame(struct oct_picture *picture, struct oct_error *err)
{
    struct cell_film_setup setup;
    struct cell_film film;
    cell_film_setup_default(&setup);
    setup.height = HEIGHT;
    setup.width = WIDTH;
    setup.radius = RADIUS;
    setup.lane = 75;
    setup.distance = 80;
    setup.n_frames = 1;
    cell_film_init(&film, &setup);
    const enum oct_err e = oct_picture_init(picture, HEIGHT, WIDTH, false, err);
    if (!e)
        cell_film_draw(&film, 0, picture);
    return e;
}

static void make_starts(const struct oct_cell *cells, unsigned n, struct oct_cell_start *starts)
{
    for (unsigned i = 0; i < CELLS; i++) {
        starts[i] = (struct oct_cell_start){
            .x = cells[i % n].x + 1.5, .y = cells[i % n].y - 0.5, .vx = i % 2 ? 1 : -1};
        for (unsigned k = 0; k < OCT_CELLS_SNAXELS; k++)
            starts[i].radii[k] = RADIUS;
    }
}

struct frame {
    const struct oct_cells_engine_ops *ops;
    struct oct_cells_engine *engine;
    struct oct_picture picture;
    struct oct_cell cells[MOST];
    unsigned n;
    struct oct_cell_start starts[CELLS];
    struct oct_cell_end ends[CELLS];
};

/* us of a look and of a follow, as a program calls them. */
static enum oct_err time_calls(struct frame *f, double *look_us, double *follow_us,
                               double *whole_us, struct oct_error *err)
{
    *look_us = *follow_us = *whole_us = INFINITY;
    for (int i = 0; i < REPEATS; i++) {
        const double begun = seconds();
        enum oct_err e = f->ops->look(f->engine, &f->picture, f->cells, MOST, &f->n, err);
        const double looked = seconds();
        if (!e && f->n == 0)
            e = oct_fail(err, OCT_E_BACKEND, "no cell was found");
        if (e)
            return e;
        if (i == 0)
            make_starts(f->cells, f->n < MOST ? f->n : MOST, f->starts);
        const double follows = seconds();
        e = f->ops->follow(f->engine, f->starts, CELLS, f->ends, err);
        const double ended = seconds();
        if (e)
            return e;
        *look_us = fmin(*look_us, (looked - begun) * 1e6);
        *follow_us = fmin(*follow_us, (ended - follows) * 1e6);
        *whole_us = fmin(*whole_us, (looked - begun + ended - follows) * 1e6);
    }
    return OCT_OK;
}

static const char *verdict(double us, double goal)
{
    return us <= goal ? "met" : "MISSED";
}

static enum oct_err run(struct frame *f, double stop, bool *met, struct oct_error *err)
{
    struct oct_cells_engine_setup setup = {
        .height = HEIGHT, .width = WIDTH, .deadline_ms = PATIENCE_MS};
    struct oct_cells_device_times t;
    double look_us, follow_us, whole_us;
    oct_cells_params_octd(&setup.params, RADIUS);
    setup.params.stop = stop;
    f->ops = &oct_cells_cuda_engine;
    enum oct_err e = f->ops->create(&f->engine, &setup, err);
    if (!e)
        e = time_calls(f, &look_us, &follow_us, &whole_us, err);
    if (!e)
        e = oct_cells_time_cuda(&setup, 0, &f->picture, f->starts, CELLS, &t, err);
    if (e)
        return e;
    double n_field = 0, n_snake = 0;
    for (unsigned i = 0; i < CELLS; i++) {
        n_field += (double)f->ends[i].n_field / CELLS;
        n_snake += (double)f->ends[i].n_snake / CELLS;
    }
    *met = t.scores_us <= GOAL_SCORES_US && whole_us <= GOAL_FRAME_US;
    printf("%5.2f %6u %6.0f %6.0f %8.1f %8.1f %-6s %8.1f %8.1f %8.1f %9.1f %9.1f %9.1f %s\n", stop,
           f->n, n_field, n_snake, t.prepare_us, t.scores_us, verdict(t.scores_us, GOAL_SCORES_US),
           t.peaks_us, t.snakes_us, t.frame_us, look_us, follow_us, whole_us,
           verdict(whole_us, GOAL_FRAME_US));
    fflush(stdout);
    return OCT_OK;
}

int main(void)
{
    static const double stops[] = {0.1, 0.01};
    struct oct_error err = {.text = ""};
    struct frame *f = calloc(1, sizeof(*f));
    char why[256];
    int status = 0;
    if (oct_cuda_count(why, sizeof(why)) == 0) {
        printf("no GPU answers: %s\n", why);
        free(f);
        return 3;
    }
    if (!f || make_frame(&f->picture, &err))
        return 1;
    printf("cells of radius 10 px in %d x %d px, %d snakes; us a frame: on the device alone, with "
           "copies of pinned memory,\nand as a program calls it (goals: GICOV %.0f, both calls "
           "%.0f)\n",
           WIDTH, HEIGHT, CELLS, GOAL_SCORES_US, GOAL_FRAME_US);
    printf("%5s %6s %6s %6s %8s %8s %-6s %8s %8s %8s %9s %9s %9s\n", "stop", "cells", "MGVF",
           "snake", "prepare", "GICOV", "", "peaks", "snakes", "all", "look", "follow", "both");
    for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
        bool met = false;
        if (run(f, stops[i], &met, &err))
            printf("%s\n", err.text);
        f->ops->destroy(f->engine);
        status = met ? status : 1;
    }
    oct_picture_finish(&f->picture);
    free(f);
    return status;
}
