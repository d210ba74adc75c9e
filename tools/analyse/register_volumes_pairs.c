/* The work of octctl register-volumes, pair by pair. */
#include "tools/analyse/register_volumes_run.h"

#include "kernels/device/cuda_choice.h"
#include "kernels/device/workers.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/thread.h"
#include "tools/analyse/register_volumes_points.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_PIECES 256u

/* What works on one pair after another: one, or one a GPU. */
struct lane {
    struct oct_volumes_run *run;
    unsigned number;
    char gpu[8]; /* "": as the run says */
    unsigned pair;
    uint64_t shown_ns;
    pthread_t thread;
};

static enum oct_err interrupted(struct oct_error *err)
{
    return oct_fail(err, OCT_E_STATE, "interrupted; nothing was written");
}

/* ---- loading ---- */

struct values {
    float *values;
    size_t n;
    float least[N_PIECES], most[N_PIECES];
    bool is_linear;
};

/* Counts^2 become dB; limits of what is finite. */
static void prepare_piece(void *context, unsigned piece, unsigned worker)
{
    struct values *v = context;
    const size_t first = v->n / N_PIECES * piece;
    const size_t end = piece + 1 < N_PIECES ? first + v->n / N_PIECES : v->n;
    float least = INFINITY, most = -INFINITY;
    (void)worker;
    for (size_t i = first; i < end; i++) {
        float value = v->values[i];
        if (v->is_linear)
            v->values[i] = value = value > 0 ? 10 * log10f(value) : NAN;
        if (isfinite(value)) {
            least = value < least ? value : least;
            most = value > most ? value : most;
        }
    }
    v->least[piece] = least;
    v->most[piece] = most;
}

static enum oct_err check_values(const char *path, const struct values *v, struct oct_error *err)
{
    float least = INFINITY, most = -INFINITY;
    for (unsigned i = 0; i < N_PIECES; i++) {
        least = fminf(least, v->least[i]);
        most = fmaxf(most, v->most[i]);
    }
    if (!(least <= most))
        return oct_fail(err, OCT_E_FORMAT, "%s: is empty: no value is finite", path);
    if (!(least < most))
        return oct_fail(err, OCT_E_FORMAT, "%s: is constant: all values are %g", path,
                        (double)least);
    return OCT_OK;
}

/* *values: malloc'd; NULL on error. */
static enum oct_err load(const struct oct_volumes_run *run, const char *path,
                         const struct oct_volume_info *info, float **values, struct oct_error *err)
{
    struct values v = {.n = (size_t)info->dims[0] * info->dims[1] * info->dims[2],
                       .is_linear = info->is_linear};
    *values = v.values = malloc(v.n * sizeof(float));
    if (!v.values)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory for %zu voxels", path, v.n);
    enum oct_err e = oct_volume_load(path, info, v.values, err);
    if (!e) {
        oct_workers_run(run->workers, N_PIECES, prepare_piece, &v);
        e = check_values(path, &v, err);
    }
    if (e) {
        free(v.values);
        *values = NULL;
    }
    return e;
}

/* What is not 0 is compared. */
static enum oct_err load_mask(struct oct_volumes_run *run, struct oct_error *err)
{
    const char *path = run->given->mask;
    const size_t n = oct_warp_n_voxels(&run->grid);
    struct oct_volume_info info;
    size_t n_compared = 0;
    if (!path)
        return OCT_OK;
    float *values = malloc(n * sizeof(*values));
    run->mask = malloc(n);
    if (!values || !run->mask) {
        free(values);
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    }
    enum oct_err e = oct_volume_look(path, &info, err);
    if (!e && memcmp(info.dims, run->grid.dims, sizeof(info.dims)) != 0)
        e = oct_fail(err, OCT_E_FORMAT, "%s: has changed since it was looked at", path);
    e = e ? e : oct_volume_load(path, &info, values, err);
    for (size_t i = 0; i < n && !e; i++) {
        run->mask[i] = isfinite(values[i]) && values[i] != 0;
        n_compared += run->mask[i];
    }
    free(values);
    if (!e && n_compared == 0)
        e = oct_fail(err, OCT_E_FORMAT, "%s: is 0 everywhere: nothing would be compared", path);
    return e;
}

/* ---- the average ---- */

static enum oct_err begin_average(struct oct_volumes_run *run, struct oct_error *err)
{
    const size_t bytes = oct_warp_n_voxels(&run->grid) * sizeof(float);
    run->n_averaged = 1;
    if (run->given->group)
        run->average = run->fixed; /* onto which the next one is registered */
    else if (run->given->average && !(run->average = malloc(bytes)))
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the average");
    else if (run->average)
        memcpy(run->average, run->fixed, bytes);
    return OCT_OK;
}

struct addition {
    float *average;
    const float *values;
    size_t n;
    float part;
};

static void add_piece(void *context, unsigned piece, unsigned worker)
{
    const struct addition *a = context;
    const size_t first = a->n / N_PIECES * piece;
    const size_t end = piece + 1 < N_PIECES ? first + a->n / N_PIECES : a->n;
    (void)worker;
    for (size_t i = first; i < end; i++)
        if (!isfinite(a->average[i]))
            a->average[i] = a->values[i];
        else if (isfinite(a->values[i]))
            a->average[i] += a->part * (a->values[i] - a->average[i]);
}

/* The n-th of a mean has the weight 1 / n. */
static void add_to_average(struct oct_volumes_run *run, const float *warped)
{
    struct addition a = {run->average, warped, oct_warp_n_voxels(&run->grid), 0};
    run->n_averaged++;
    a.part = 1.0F / (float)run->n_averaged;
    if (run->average)
        oct_workers_run(run->workers, N_PIECES, add_piece, &a);
}

/* ---- progress ---- */

/* The share of a pair that is done, by voxels times iterations; levels may end early. */
static double share_of(const struct oct_warp_params *p, unsigned factor, unsigned iteration,
                       unsigned iterations)
{
    double done = 0, all = 0;
    for (unsigned i = 0; i < p->n_levels; i++) {
        const double work = p->iterations[i] / pow(p->factor[i], 3);
        all += work;
        if (p->factor[i] > factor)
            done += work;
        else if (p->factor[i] == factor)
            done += work * fmin(1, (double)iteration / iterations);
    }
    return done / all;
}

/* Under the lock. */
static void show(struct lane *lane, double share, const char *what)
{
    struct oct_volumes_run *run = lane->run;
    double done = run->n_done, seconds = oct_progress_seconds(&run->progress);
    char text[192];
    int n = 0;
    run->shares[lane->number] = share;
    for (unsigned i = 0; i < run->n_lanes; i++)
        done += run->shares[i];
    done /= run->n_moving;
    if (oct_clock_ns() - lane->shown_ns < 50000000)
        return;
    lane->shown_ns = oct_clock_ns();
    if (run->n_moving > 1)
        n = snprintf(text, sizeof(text), "%u of %u: ", lane->pair + 1, run->n_moving);
    n += snprintf(text + n, sizeof(text) - (size_t)n, "%s", what);
    if (done > 0)
        snprintf(text + n, sizeof(text) - (size_t)n, ", %.0f s left at most",
                 ceil(seconds * (1 - done) / done));
    oct_progress_say(&run->progress, done, text);
}

/* Whether to stop. */
static bool on_iteration(void *context, unsigned level, unsigned factor, unsigned iteration,
                         unsigned iterations, double energy)
{
    struct lane *lane = context;
    struct oct_volumes_run *run = lane->run;
    const struct oct_warp_params *p = &run->setup.solver.params;
    unsigned number = 0;
    char what[96];
    (void)level;
    while (number + 1 < p->n_levels && p->factor[number] > factor)
        number++;
    snprintf(what, sizeof(what), "level %u of %u (1/%u), iteration %u, E %.5g", number + 1,
             p->n_levels, factor, iteration, energy);
    pthread_mutex_lock(&run->lock);
    show(lane, share_of(p, factor, iteration, iterations), what);
    const bool stops = *run->cancel || run->failure.code;
    pthread_mutex_unlock(&run->lock);
    return stops;
}

/* ---- a pair ---- */

static void measure_lengths(const struct oct_volumes_run *run, const float *u,
                            struct oct_volumes_pair *pair)
{
    const size_t n = oct_warp_n_voxels(&run->grid);
    double sum[2] = {0, 0}, most[2] = {0, 0};
    const double *s = run->grid.spacing;
    for (size_t i = 0; i < n; i++) {
        const double b = u[i], j = u[n + i], d = u[2 * n + i];
        const double length[2] = {
            b * b + j * j + d * d,
            b * b * s[0] * s[0] + j * j * s[1] * s[1] + d * d * s[2] * s[2],
        };
        for (unsigned k = 0; k < 2; k++) {
            sum[k] += sqrt(length[k]);
            most[k] = length[k] > most[k] ? length[k] : most[k];
        }
    }
    for (unsigned k = 0; k < 2; k++) {
        const bool is_known = k == 0 || run->grid.in_um;
        pair->mean_length[k] = is_known ? sum[k] / (double)n : NAN;
        pair->most_length[k] = is_known ? sqrt(most[k]) : NAN;
    }
}

static void keep_numbers(const struct oct_volumes_run *run, const struct oct_warp_pair *made,
                         struct oct_volumes_pair *pair)
{
    memcpy(pair->running, made->running, sizeof(pair->running));
    memcpy(pair->range, made->range, sizeof(pair->range));
    pair->kept = made->is_still   ? OCT_WARP_NONLINEAR
                 : made->is_rigid ? OCT_WARP_BSCANS
                                  : run->given->model;
    pair->report = made->report;
    pair->before = made->before;
    pair->after = made->after;
    pair->change = made->change;
    for (uint32_t b = 0; made->bscans && b < run->grid.dims[0]; b++)
        pair->n_lost += isnan(made->bscans[b].score) ? 1 : 0;
    measure_lengths(run, made->displacement, pair);
}

static enum oct_err load_moving(const struct lane *lane, float **moving, struct oct_error *err)
{
    const struct oct_volumes_run *run = lane->run;
    const struct oct_volumes_pair *pair = &run->pairs[lane->pair];
    if (*run->cancel)
        return interrupted(err);
    const enum oct_err e = load(run, pair->path, &pair->info, moving, err);
    if (e || pair->placing.is_same)
        return e;
    return oct_volumes_resample(moving, pair->info.dims, run->grid.dims, &pair->placing,
                                run->workers, err);
}

static enum oct_err register_one(struct lane *lane, const float *moving, struct oct_warp_pair *made,
                                 struct oct_error *err)
{
    const struct oct_volumes_run *run = lane->run;
    struct oct_warp_pair_setup setup = run->setup;
    struct oct_error why = {.code = OCT_OK};
    setup.progress = (struct oct_warp_progress){on_iteration, lane};
    if (lane->gpu[0])
        setup.solver.gpus = lane->gpu;
    const enum oct_err e =
        oct_warp_pair_register(&setup, run->fixed, moving, run->mask, made, &why);
    if (e == OCT_E_CLOSED || (e && *run->cancel))
        return interrupted(err);
    if (e)
        return oct_fail(err, e, "%s onto %s: %s", run->pairs[lane->pair].path, run->fixed_path,
                        why.text);
    return OCT_OK;
}

static enum oct_err invert(struct lane *lane, const struct oct_warp_pair *made, float **inverse,
                           struct oct_error *err)
{
    struct oct_volumes_run *run = lane->run;
    if (!run->given->inverse)
        return OCT_OK;
    if (*run->cancel)
        return interrupted(err);
    *inverse = malloc(3 * oct_warp_n_voxels(&run->grid) * sizeof(float));
    if (!*inverse)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the inverse map");
    return oct_warp_invert(&run->grid, made->displacement, run->workers, *inverse,
                           &run->pairs[lane->pair].inverse_left, err);
}

/* Waits until all before it are taken. False: another pair has failed. */
static bool wait_for_turn(const struct lane *lane)
{
    struct oct_volumes_run *run = lane->run;
    pthread_mutex_lock(&run->lock);
    while (run->next_to_take < lane->pair && !run->failure.code)
        pthread_cond_wait(&run->turn, &run->lock);
    const bool is_mine = !run->failure.code;
    pthread_mutex_unlock(&run->lock);
    return is_mine;
}

static enum oct_err take(struct lane *lane, const float *moving, const struct oct_warp_pair *made,
                         const float *inverse, struct oct_error *err)
{
    struct oct_volumes_run *run = lane->run;
    const struct oct_volumes_result result = {run->fixed, moving, made, inverse};
    enum oct_err e = oct_volumes_map_points(run, lane->pair, made->displacement, err);
    e = e ? e : run->take(run->context, lane->pair, &result, err);
    if (!e)
        add_to_average(run, made->warped);
    return e;
}

/* The turn of the next. The first failure is the one that is said. */
static void end_turn(struct lane *lane, enum oct_err e, const struct oct_error *err)
{
    struct oct_volumes_run *run = lane->run;
    pthread_mutex_lock(&run->lock);
    if (e && !run->failure.code)
        run->failure = *err;
    run->next_to_take++;
    run->n_done++;
    run->shares[lane->number] = 0;
    pthread_cond_broadcast(&run->turn);
    pthread_mutex_unlock(&run->lock);
}

static enum oct_err do_pair(struct lane *lane, struct oct_error *err)
{
    struct oct_volumes_run *run = lane->run;
    struct oct_volumes_pair *pair = &run->pairs[lane->pair];
    struct oct_warp_pair made = {0};
    float *moving = NULL, *inverse = NULL;
    const uint64_t began_ns = oct_clock_ns();
    enum oct_err e = load_moving(lane, &moving, err);
    e = e ? e : register_one(lane, moving, &made, err);
    e = e ? e : invert(lane, &made, &inverse, err);
    if (!e) {
        keep_numbers(run, &made, pair);
        pair->seconds = (double)(oct_clock_ns() - began_ns) * 1e-9;
    }
    if (!e && wait_for_turn(lane))
        e = take(lane, moving, &made, inverse, err);
    end_turn(lane, e, err);
    free(moving);
    free(inverse);
    oct_warp_pair_finish(&made);
    return e;
}

/* ---- all of them ---- */

static void *work(void *context)
{
    struct lane *lane = context;
    struct oct_volumes_run *run = lane->run;
    struct oct_error err = {.code = OCT_OK};
    enum oct_err e = OCT_OK;
    while (!e) {
        pthread_mutex_lock(&run->lock);
        lane->pair = run->next;
        const bool is_last = run->failure.code || run->next == run->n_moving;
        run->next += !is_last;
        pthread_mutex_unlock(&run->lock);
        if (is_last)
            break;
        e = do_pair(lane, &err);
    }
    return NULL;
}

/* Each lane to a GPU of its own. */
static void set_gpus(const struct oct_volumes_run *run, struct lane *lanes)
{
    struct oct_cuda_choice choice;
    if (run->n_lanes < 2 || strcmp(run->backend, "cpu") == 0 ||
        oct_cuda_choose(&choice, run->gpus, NULL, NULL, NULL) != OCT_OK)
        return;
    for (unsigned i = 0; i < run->n_lanes; i++)
        snprintf(lanes[i].gpu, sizeof(lanes[i].gpu), "%u", choice.devices[i % choice.n_gpus]);
}

static enum oct_err work_in_lanes(struct oct_volumes_run *run, struct oct_error *err)
{
    struct lane *lanes = calloc(run->n_lanes, sizeof(*lanes));
    unsigned n = 0;
    enum oct_err e = OCT_OK;
    if (!lanes)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    for (unsigned i = 0; i < run->n_lanes; i++)
        lanes[i] = (struct lane){.run = run, .number = i};
    set_gpus(run, lanes);
    if (run->n_lanes == 1)
        work(&lanes[0]);
    for (; run->n_lanes > 1 && n < run->n_lanes && !e; n++)
        e = oct_thread_start(&lanes[n].thread, "octd-pair", work, &lanes[n], "register-volumes",
                             err);
    if (e) { /* those that run do all pairs */
        n--;
        e = n > 0 ? OCT_OK : e;
    }
    for (unsigned i = 0; i < n; i++)
        pthread_join(lanes[i].thread, NULL);
    free(lanes);
    if (!e && run->failure.code) {
        *err = run->failure;
        e = run->failure.code;
    }
    return e;
}

enum oct_err oct_volumes_run_all(struct oct_volumes_run *run, struct oct_error *err)
{
    if (*run->cancel)
        return interrupted(err);
    enum oct_err e = load(run, run->fixed_path, &run->fixed_info, &run->fixed, err);
    e = e ? e : load_mask(run, err);
    e = e ? e : begin_average(run, err);
    if (e)
        return e;
    pthread_mutex_init(&run->lock, NULL);
    pthread_cond_init(&run->turn, NULL);
    e = work_in_lanes(run, err);
    pthread_mutex_destroy(&run->lock);
    pthread_cond_destroy(&run->turn);
    oct_progress_clear(&run->progress);
    run->seconds = oct_progress_seconds(&run->progress);
    return e;
}
