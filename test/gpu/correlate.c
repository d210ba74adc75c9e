/* Correlation and the search for strips on a real GPU (scripts/gpu-check), beside the bare
 * transforms of cuFFT in the same run; in a program that needs none of octd's libraries.
 *
 * Exit status: 0, 1 failed or slower than the goal, 3 no GPU. */
#include "analysis/align/matcher.h"
#include "analysis/correlate/normal.h"
#include "kernels/device/cuda_device.h"
#include "pipeline/base/clock.h"
#include "test/gpu/correlate_timing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define REPEATS 5 /* the best is taken */
#define PATIENCE_MS 60000

struct shape {
    const char *what;
    unsigned n;
    enum oct_correlation_norm norm;
    bool masked;
    double most; /* of the bare pair; 0: no goal */
};

static enum oct_err make_picture(struct oct_picture *picture, uint32_t height, uint32_t width,
                                 uint32_t seed, struct oct_error *err)
{
    enum oct_err e = oct_picture_init(picture, height, width, false, err);
    for (size_t i = 0; i < (size_t)height * width && !e; i++) {
        seed = seed * 1664525u + 1013904223u;
        picture->pixels[i] = (float)(seed >> 24);
    }
    return e;
}

static double seconds(void)
{
    return (double)oct_clock_ns() * 1e-9;
}

/* ---- correlation ---- */

/* What the host does to each picture of a call before the device sees it; us a picture. */
static enum oct_err time_host(const struct oct_correlator_setup *setup, const struct oct_picture *f,
                              double *us, struct oct_error *err)
{
    const size_t pixels = (size_t)setup->height * setup->width;
    float *to = calloc(setup->n_batch * pixels, sizeof(*to));
    struct oct_normal normal;
    if (!to)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    *us = INFINITY;
    for (int k = 0; k < 1 + REPEATS; k++) { /* the first touches the memory */
        const double begun = seconds();
        for (unsigned i = 0; i < setup->n_batch; i++)
            oct_normal_take(&normal, &f[i], false, to + i * pixels);
        *us = fmin(*us, (seconds() - begun) * 1e6 / setup->n_batch);
    }
    free(to);
    return normal.usable ? OCT_OK : oct_fail(err, OCT_E_STATE, "a picture has no contrast");
}

/* Pictures in, C2D out, as a program calls it; us a picture, and those of the host's part. */
static enum oct_err time_calls(const struct oct_correlator_setup *setup, double *us,
                               double *host_us, struct oct_error *err)
{
    const struct oct_correlator_ops *ops = &oct_correlator_cuda;
    const size_t n_shifts = (2 * (size_t)setup->max_dy + 1) * (2 * (size_t)setup->max_dx + 1);
    struct oct_picture *f = calloc(setup->n_batch, sizeof(*f));
    float *c2d = calloc(setup->n_batch * n_shifts, sizeof(*c2d));
    struct oct_correlator *c = NULL;
    unsigned which;
    enum oct_err e = OCT_OK;
    if (!f || !c2d) {
        free(f);
        free(c2d);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    }
    for (unsigned i = 0; i < setup->n_batch && !e; i++)
        e = make_picture(&f[i], setup->height, setup->width, i + 1, err);
    if (!e)
        e = ops->create(&c, setup, err);
    *us = INFINITY;
    for (int i = 0; i < REPEATS && !e; i++) {
        const double begun = seconds();
        e = ops->run(c, f, setup->n_batch, c2d, &which, err);
        *us = fmin(*us, (seconds() - begun) * 1e6 / setup->n_batch);
    }
    if (!e && !(fabsf(c2d[n_shifts / 2] - 1) < 1e-5f))
        e = oct_fail(err, OCT_E_BACKEND, "C at no shift is %.7g", (double)c2d[n_shifts / 2]);
    if (!e)
        e = time_host(setup, f, host_us, err);
    ops->destroy(c);
    for (unsigned i = 0; i < setup->n_batch; i++)
        oct_picture_finish(&f[i]);
    free(f);
    free(c2d);
    return e;
}

static enum oct_err run_correlation(const struct shape *shape, bool *met, struct oct_error *err)
{
    const struct oct_correlator_setup setup = {.height = 1500,
                                               .width = 750,
                                               .g_height = 1500,
                                               .g_width = 750,
                                               .max_dy = 250,
                                               .max_dx = 250,
                                               .norm = shape->norm,
                                               .masked = shape->masked,
                                               .min_overlap = 0.3,
                                               .n_batch = shape->n,
                                               .deadline_ms = PATIENCE_MS};
    struct oct_correlate_times t;
    double call_us = INFINITY, host_us = INFINITY;
    enum oct_err e = oct_correlate_time_cuda(&setup, 0, &t, err);
    if (!e)
        e = time_calls(&setup, &call_us, &host_us, err);
    if (e)
        return e;
    const double ratio = t.kernels_us / t.pair_us;
    *met = shape->most == 0 || ratio <= shape->most;
    printf(
        "%-16s %5u %5u x %-5u %9.1f %5u x %-5u %9.1f %10.1f %6.2f %5.2f %-6s %9.1f %9.1f %9.1f\n",
        shape->what, shape->n, t.best_height, t.best_width, t.pair_us, t.height, t.width,
        t.own_pair_us, t.kernels_us, ratio, shape->most,
        shape->most == 0 ? "-"
        : *met           ? "met"
                         : "MISSED",
        t.copies_us, call_us, host_us);
    fflush(stdout);
    return OCT_OK;
}

/* ---- strips ---- */

enum { SIDE = 512, ROWS = 32, STEP = 8, N_STRIPS = (SIDE - ROWS) / STEP + 1, FRAMES = 32 };

struct strips {
    struct oct_matcher *matcher;
    struct oct_picture reference, frames[FRAMES];
    struct oct_match_window windows[FRAMES * N_STRIPS];
    struct oct_match matches[FRAMES * N_STRIPS];
};

/* From the middle outwards, as strips are sought: `each` strips of every frame in a call. */
static enum oct_err search(struct strips *s, unsigned each, uint32_t radius, struct oct_error *err)
{
    const struct oct_matcher_ops *ops = &oct_matcher_cuda;
    enum oct_err e = ops->load(s->matcher, s->frames, FRAMES, err);
    if (!e)
        e = ops->find(s->matcher, s->matches, err);
    for (unsigned first = 0; first < N_STRIPS && !e; first += each) {
        unsigned n = 0;
        for (unsigned f = 0; f < FRAMES; f++)
            for (unsigned k = first; k < first + each && k < N_STRIPS; k++)
                s->windows[n++] = (struct oct_match_window){f, k * STEP, ROWS, 0, 0, radius};
        e = ops->look(s->matcher, s->windows, n, s->matches, err);
    }
    return e;
}

static enum oct_err time_search(struct strips *s, unsigned each, uint32_t radius, double goal,
                                bool *met, struct oct_error *err)
{
    double best = INFINITY;
    enum oct_err e = search(s, each, radius, err);
    for (int i = 0; i < REPEATS && !e; i++) {
        const double begun = seconds();
        e = search(s, each, radius, err);
        best = fmin(best, seconds() - begun);
    }
    if (e)
        return e;
    const double rate = FRAMES / best;
    *met = rate >= goal;
    printf("%6d %6u %7u %12.0f %7.0f %s\n", N_STRIPS, each, radius, rate, goal,
           goal == 0 ? "-"
           : *met    ? "met"
                     : "MISSED");
    fflush(stdout);
    return OCT_OK;
}

static enum oct_err run_strips(bool *met, struct oct_error *err)
{
    const struct oct_matcher_setup setup = {.height = SIDE,
                                            .width = SIDE,
                                            .max_dy = 64,
                                            .max_dx = 64,
                                            .min_overlap = 0.3,
                                            .max_rows = ROWS,
                                            .max_radius = 64,
                                            .min_window_overlap = 0.5,
                                            .n_batch = FRAMES,
                                            .deadline_ms = PATIENCE_MS};
    struct strips *s = calloc(1, sizeof(*s));
    bool one_met = true, all_met = true;
    if (!s)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    enum oct_err e = make_picture(&s->reference, SIDE, SIDE, 1, err);
    for (unsigned i = 0; i < FRAMES && !e; i++)
        e = make_picture(&s->frames[i], SIDE, SIDE, 1, err);
    if (!e)
        e = oct_matcher_cuda.create(&s->matcher, &setup, err);
    if (!e)
        e = oct_matcher_cuda.set_reference(s->matcher, &s->reference, err);
    printf("strips a call radius     frames/s    goal\n");
    if (!e)
        e = time_search(s, N_STRIPS, 12, 1000, &all_met, err);
    if (!e)
        e = time_search(s, 2, 12, 1000, &one_met, err);
    *met = all_met && one_met;
    if (!e)
        e = time_search(s, N_STRIPS, 64, 0, &one_met, err);
    if (!e && (s->matches[0].dy != 0 || s->matches[0].dx != 0 || s->matches[0].score < 0.999f))
        e = oct_fail(err, OCT_E_BACKEND, "a frame does not match itself");
    oct_matcher_cuda.destroy(s->matcher);
    oct_picture_finish(&s->reference);
    for (unsigned i = 0; i < FRAMES; i++)
        oct_picture_finish(&s->frames[i]);
    free(s);
    return e;
}

int main(void)
{
    static const struct shape shapes[] = {
        {"overlap", 1, OCT_CORRELATION_OVERLAP, false, 1.5},
        {"overlap", 32, OCT_CORRELATION_OVERLAP, false, 1.3},
        {"zncc", 32, OCT_CORRELATION_ZNCC, false, 0},
        {"overlap, masks", 8, OCT_CORRELATION_OVERLAP, true, 0},
        {"zncc, masks", 8, OCT_CORRELATION_ZNCC, true, 0},
    };
    struct oct_error err = {.text = ""};
    char why[256];
    int status = 0;
    bool met = true;
    if (oct_cuda_count(why, sizeof(why)) == 0) {
        printf("no GPU answers: %s\n", why);
        return 3;
    }
    printf(
        "autocorrelation of 750 x 1500, shifts to 250; us a picture: bare cuFFT r2c + c2r at its "
        "best size and at\nthe engine's, the engine on the device, with copies of pinned memory, "
        "as a program calls it, and the\nhost's part of that: mean, contrast and copy\n");
    printf("%-16s %5s %13s %9s %13s %9s %10s %6s %5s %-6s %9s %9s %9s\n", "norm", "batch",
           "best size", "pair", "engine's", "pair", "engine", "ratio", "goal", "", "copies", "call",
           "host");
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        if (run_correlation(&shapes[i], &met, &err)) {
            printf("%s: %s\n", shapes[i].what, err.text);
            met = false;
        }
        status = met ? status : 1;
    }
    if (run_strips(&met, &err)) {
        printf("strips: %s\n", err.text);
        met = false;
    }
    return met ? status : 1;
}
