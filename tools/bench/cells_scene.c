#include "tools/bench/cells_scene.h"

#include "analysis/cells/engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEIGHT = OCT_BENCH_CELLS_HEIGHT,
    WIDTH = OCT_BENCH_CELLS_WIDTH,
    ACROSS = 8,
    N_FRAMES = OCT_BENCH_CELLS_FRAMES
};
#define R OCT_BENCH_CELLS_RADIUS
#define PI 3.14159265358979323846
#define N_PIXELS ((size_t)HEIGHT * WIDTH)
#define MOST_FOUND 256u

/* ---- the film ---- */

/* Cell i of a frame goes to and fro by 12 px, 3.8 px a frame at most. */
void oct_bench_cells_place(unsigned i, unsigned frame, double *x, double *y)
{
    const double angle = 2 * PI * ((double)(frame % N_FRAMES) / N_FRAMES + 0.37 * i);
    *x = 62 + 73.5 * (i % ACROSS) + 12 * sin(angle);
    *y = 50.3 + 75.7 * (double)(i / ACROSS);
}

static double uniform(uint32_t *random)
{
    *random = *random * 1664525u + 1013904223u;
    return (*random >> 8) / 16777216.0;
}

/* Disks of 60 grey levels with soft edges over a slope, with noise of a standard deviation of 8. */
static void draw(struct oct_picture *picture, unsigned frame)
{
    uint32_t random = 11 + frame;
    for (unsigned i = 0; i < N_PIXELS; i++) {
        double noise = 0;
        for (unsigned k = 0; k < 12; k++)
            noise += uniform(&random) - 0.5;
        picture->pixels[i] = (float)(80 + 0.03 * (i % WIDTH) + 8 * noise);
    }
    for (unsigned i = 0; i < OCT_BENCH_CELLS; i++) {
        double x, y;
        oct_bench_cells_place(i, frame, &x, &y);
        for (int row = (int)(y - 20); row <= (int)(y + 20); row++)
            for (int column = (int)(x - 20); column <= (int)(x + 20); column++)
                picture->pixels[row * WIDTH + column] +=
                    (float)(60 / (1 + exp((hypot(column - x, row - y) - R) / 0.8)));
    }
    for (size_t i = 0; i < N_PIXELS; i++)
        picture->pixels[i] = floorf(picture->pixels[i] + 0.5F);
}

enum oct_err oct_bench_cells_film_init(struct oct_bench_cells_film *film, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    *film = (struct oct_bench_cells_film){0};
    for (unsigned t = 0; t < N_FRAMES && !e; t++) {
        e = oct_picture_init(&film->frames[t], HEIGHT, WIDTH, false, err);
        if (!e)
            draw(&film->frames[t], t);
    }
    return e;
}

void oct_bench_cells_film_finish(struct oct_bench_cells_film *film)
{
    for (unsigned t = 0; t < N_FRAMES; t++)
        oct_picture_finish(&film->frames[t]);
}

/* ---- by definition ---- */

static double pixel(const struct oct_picture *p, int x, int y)
{
    return (double)p->pixels[y * WIDTH + x];
}

/* S of (x, y) by the sum over all samples, profile boyer, away from the border. */
static double direct_score(const struct oct_picture *p, int x, int y)
{
    double best = 0, score = 0;
    for (unsigned k = 0; k < 7; k++) {
        const double rho = R * (0.8 + 0.2 * k);
        double g[OCT_CELLS_SAMPLES], mean = 0, variance = 0;
        for (unsigned i = 0; i < OCT_CELLS_SAMPLES; i++) {
            const double t = 2 * PI * i / OCT_CELLS_SAMPLES;
            const int at_x = x + (int)(rho * cos(t)), at_y = y + (int)(rho * sin(t));
            g[i] = (pixel(p, at_x + 1, at_y) - pixel(p, at_x - 1, at_y)) / 2 * cos(t) +
                   (pixel(p, at_x, at_y + 1) - pixel(p, at_x, at_y - 1)) / 2 * sin(t);
            mean += g[i] / OCT_CELLS_SAMPLES;
        }
        for (unsigned i = 0; i < OCT_CELLS_SAMPLES; i++)
            variance += (g[i] - mean) * (g[i] - mean) / (OCT_CELLS_SAMPLES - 1);
        if (mean * mean / variance > best) {
            best = mean * mean / variance;
            score = mean / sqrt(variance);
        }
    }
    return score;
}

/* The edge map of a window, [rows][columns]. */
static void direct_edges(const struct oct_picture *p, const struct oct_cell_window *w, double *f)
{
    double least = HUGE_VAL, most = 0;
    size_t n = 0;
    for (int y = w->v1; y <= w->v2; y++)
        for (int x = w->u1; x <= w->u2; x++) {
            const int left = x > w->u1 ? x - 1 : x, right = x < w->u2 ? x + 1 : x;
            const int up = y > w->v1 ? y - 1 : y, down = y < w->v2 ? y + 1 : y;
            const double gx = (pixel(p, right, y) - pixel(p, left, y)) / (right - left);
            const double gy = (pixel(p, x, down) - pixel(p, x, up)) / (down - up);
            f[n] = sqrt(gx * gx + gy * gy);
            least = fmin(least, f[n]);
            most = fmax(most, f[n++]);
        }
    for (size_t i = 0; i < n; i++)
        f[i] = (f[i] - least) / (most - least + 0x1p-52);
}

/* One iteration along (1, 1) with the arctangent; returns the mean change. */
static double direct_sweep(double *to, const double *from, const double *f, int rows, int columns)
{
    double sum = 0;
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < columns; x++) {
            const int at = y * columns + x;
            double spread = 0;
            for (int e = 0; e < 9; e++) {
                const int ex = e % 3 - 1, ey = e / 3 - 1;
                const int nx = x + ex < 0 ? 0 : x + ex >= columns ? columns - 1 : x + ex;
                const int ny = y + ey < 0 ? 0 : y + ey >= rows ? rows - 1 : y + ey;
                const double d = from[ny * columns + nx] - from[at];
                spread += (atan(d * (ex + ey) / 1e-10) / PI + 0.5) * d;
            }
            const double w = from[at] + 0.1 * spread;
            to[at] = w - 0.2 * f[at] * (w - f[at]);
            sum += fabs(to[at] - from[at]);
        }
    return sum / ((double)rows * columns);
}

/* ---- verified ---- */

static enum oct_err verify_scores(struct oct_cells_engine *engine, const struct oct_picture *p,
                                  double *worst, struct oct_error *err)
{
    struct oct_cell cells[MOST_FOUND];
    unsigned n;
    float *score = malloc(N_PIXELS * sizeof(float));
    uint8_t *best = malloc(N_PIXELS);
    enum oct_err e = oct_cells_cpu_engine.look(engine, p, cells, MOST_FOUND, &n, err);
    if (!e)
        e = score && best ? oct_cells_cpu_engine.map(engine, score, best, err)
                          : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for scores");
    *worst = 0;
    /* In cells, at their edges, between them. */
    for (unsigned i = 0; i < 4 * OCT_BENCH_CELLS && score && !e; i++) {
        double x, y;
        oct_bench_cells_place(i % OCT_BENCH_CELLS, 0, &x, &y);
        const int at_x = (int)x + (int)(7 * (i / OCT_BENCH_CELLS)), at_y = (int)y;
        const double wanted = direct_score(p, at_x, at_y);
        const double error = fabs((double)score[at_y * WIDTH + at_x] - wanted);
        *worst = fmax(*worst, error);
        if (!(error <= 1e-4 * fmax(1, fabs(wanted) / 10)))
            e = oct_fail(err, OCT_E_STATE, "S at (%d, %d) is %.3g off the direct sum", at_x, at_y,
                         error);
    }
    free(score);
    free(best);
    return e;
}

static enum oct_err verify_field(struct oct_cells_engine *engine, const struct oct_picture *p,
                                 double *worst, struct oct_error *err)
{
    struct oct_cell_start start = {.vx = 1, .vy = 1};
    struct oct_cell_end end;
    struct oct_cell_window w = {0};
    enum { MOST = 100 * 100 };
    float *field = calloc(MOST, sizeof(float));
    double *f = calloc(MOST, sizeof(double)), *a = calloc(MOST, sizeof(double));
    double *b = calloc(MOST, sizeof(double));
    oct_bench_cells_place(19, 0, &start.x, &start.y);
    for (unsigned i = 0; i < OCT_CELLS_SNAXELS; i++)
        start.radii[i] = R;
    enum oct_err e = field && f && a && b ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "no memory");
    if (!e)
        e = oct_cells_cpu_engine.follow(engine, &start, 1, &end, err);
    if (!e)
        e = oct_cells_cpu_engine.field(engine, 0, &w, field, err);
    const int rows = w.v2 - w.v1 + 1, columns = w.u2 - w.u1 + 1;
    if (!e) {
        direct_edges(p, &w, f);
        memcpy(a, f, (size_t)rows * (size_t)columns * sizeof(double));
    }
    for (unsigned n = 0; n < 500 && !e; n++) {
        const double change = direct_sweep(b, a, f, rows, columns);
        double *swap = a;
        a = b;
        b = swap;
        if (change <= 1e-5)
            break;
    }
    *worst = 0;
    for (int i = 0; i < rows * columns && !e; i++)
        *worst = fmax(*worst, fabs((double)field[i] - a[i]));
    if (!e && !(*worst <= 1e-6))
        e = oct_fail(err, OCT_E_STATE, "MGVF is %.3g off its definition in doubles", *worst);
    free(field);
    free(f);
    free(a);
    free(b);
    return e;
}

enum oct_err oct_bench_cells_verify(const struct oct_bench_cells_film *film, double *score_error,
                                    double *field_error, struct oct_error *err)
{
    struct oct_cells_engine_setup setup = {
        .height = HEIGHT, .width = WIDTH, .keeps_fields = true, .gpus = ""};
    struct oct_cells_engine *engine = NULL;
    oct_cells_params_boyer(&setup.params, R);
    enum oct_err e = oct_cells_cpu_engine.create(&engine, &setup, err);
    if (!e)
        e = verify_scores(engine, &film->frames[0], score_error, err);
    if (!e)
        e = verify_field(engine, &film->frames[0], field_error, err);
    oct_cells_cpu_engine.destroy(engine);
    return e;
}
