/* The work of octctl register-volumes: whether its inputs fit, and then pair by pair. */
#include "tools/analyse/register_volumes.h"

#include "kernels/device/cuda_choice.h"
#include "kernels/device/workers.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/thread.h"
#include "tools/alloc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIB 1073741824.0
#define PROGRAM_BYTES ((uint64_t)64 << 20) /* of the program and of pictures */
#define SHOW_NS 50000000u

/* What works on one pair after another: one, or one a GPU. */
struct lane {
    struct oct_volumes *v;
    unsigned number;
    char gpu[8]; /* "": as the command says */
    unsigned pair;
    uint64_t shown_ns;
    pthread_t thread;
};

/* ---- inputs ---- */

static enum oct_err look_at(const struct oct_volumes *v, const char *path,
                            struct oct_volume_info *info, struct oct_error *err)
{
    enum oct_err e = oct_job_go_on(&v->job, err);
    e = e ? e : oct_volume_look(path, info, err);
    if (e)
        return e;
    for (unsigned i = 0; i < 3; i++) {
        if (v->settings.um[i] > 0)
            info->um[i] = v->settings.um[i];
        if (info->dims[i] < OCT_WARP_LEAST_SIDE)
            return oct_fail(err, OCT_E_FORMAT,
                            "%s: %u x %u x %u voxels: a volume has %u along each side at least",
                            path, info->dims[0], info->dims[1], info->dims[2], OCT_WARP_LEAST_SIDE);
    }
    if ((uint64_t)info->dims[0] * info->dims[1] > OCT_WARP_MOST_VOXELS / info->dims[2])
        return oct_fail(err, OCT_E_FORMAT, "%s: %u x %u x %u voxels: more than %.3g", path,
                        info->dims[0], info->dims[1], info->dims[2], (double)OCT_WARP_MOST_VOXELS);
    return OCT_OK;
}

static enum oct_err look_at_all(struct oct_volumes *v, struct oct_error *err)
{
    struct oct_volume_info *fixed = &v->fixed_info;
    const char *fixed_path = v->job.inputs[0];
    enum oct_err e = look_at(v, fixed_path, fixed, err);
    for (unsigned i = 0; i < v->n_moving && !e; i++) {
        struct oct_volumes_pair *pair = &v->pairs[i];
        pair->path = v->job.inputs[1 + i];
        pair->inverse_left = NAN;
        e = look_at(v, pair->path, &pair->info, err);
        if (!e)
            e = oct_volumes_place(fixed_path, fixed, pair->path, &pair->info, &pair->placing, err);
        pair->is_resampled = !pair->placing.is_same;
        pair->n_bscans = fixed->dims[0];
    }
    v->grid.in_um = oct_volumes_knows_um(fixed->um);
    for (unsigned i = 0; i < 3; i++) {
        v->grid.dims[i] = fixed->dims[i];
        v->grid.spacing[i] = v->grid.in_um ? fixed->um[i] : 1;
    }
    return e;
}

static enum oct_err look_at_mask(const struct oct_volumes *v, struct oct_volume_info *info,
                                 struct oct_error *err)
{
    const uint32_t *dims = v->grid.dims;
    const enum oct_err e = oct_volume_look(v->given.mask, info, err);
    if (!e && memcmp(info->dims, dims, sizeof(info->dims)) != 0)
        return oct_fail(err, OCT_E_FORMAT, "%s has %u x %u x %u voxels, %s %u x %u x %u",
                        v->given.mask, info->dims[0], info->dims[1], info->dims[2],
                        v->job.inputs[0], dims[0], dims[1], dims[2]);
    return e;
}

/* ---- how much it takes ---- */

/* GPUs that pairs can be on side by side. */
static unsigned count_gpus(const struct oct_volumes *v)
{
    struct oct_cuda_choice choice;
    const char *gpus = v->job.gpus;
    if (v->given.group || v->n_moving < 2 || !gpus || !strchr(gpus, ',') ||
        strcmp(v->job.backend, "cpu") == 0 || v->settings.model == OCT_WARP_BSCANS)
        return 1;
    if (oct_cuda_choose(&choice, gpus, NULL, NULL, NULL) != OCT_OK)
        return 1; /* who computes says what is wrong */
    return choice.n_gpus < v->n_moving ? choice.n_gpus : v->n_moving;
}

static uint64_t forecast(const struct oct_volumes *v)
{
    const uint64_t n = oct_warp_n_voxels(&v->grid), volume = n * sizeof(float);
    /* For all pairs: FIXED, which --group needs no more once it has become the average, the average
     * and the mask. */
    const uint64_t kept =
        volume * (v->given.average && !v->given.group ? 2 : 1) + (v->given.mask ? n : 0);
    /* Of each: first the moving volume put onto the grid, then the registration (which counts FIXED
     * too), then its result with the inverse. */
    uint64_t most = oct_warp_pair_bytes(&v->setup) - volume;
    const uint64_t after = volume * (v->given.inverse ? 9 : 6);
    most = after > most ? after : most;
    for (unsigned i = 0; i < v->n_moving; i++) {
        const struct oct_volumes_pair *pair = &v->pairs[i];
        const uint64_t before =
            pair->is_resampled ? oct_volumes_resample_bytes(pair->info.dims, v->grid.dims) : volume;
        most = before > most ? before : most;
    }
    return PROGRAM_BYTES + kept + most * v->n_lanes;
}

static enum oct_err check_memory(struct oct_volumes *v, struct oct_error *err)
{
    const char *limit;
    const double there = oct_memory_available_bytes(&limit);
    v->need_bytes = forecast(v);
    if ((double)v->need_bytes <= there)
        return OCT_OK;
    return oct_fail(err, OCT_E_NO_MEMORY,
                    "%s: %u x %u x %u voxels need %.2f GiB, %.2f GiB %s are free; crop the "
                    "volumes or end other programs",
                    v->job.inputs[0], v->grid.dims[0], v->grid.dims[1], v->grid.dims[2],
                    (double)v->need_bytes / GIB, there / GIB, limit);
}

/* ---- the beginning ---- */

/* Of the field alone, which --model both tries too: one number of iterations a level is of the
 * levels of `both`, fewer than it has itself. */
static enum oct_err set_up_still(struct oct_volumes *v, struct oct_error *err)
{
    struct oct_volumes_settings s = v->settings;
    struct oct_warp_params *still = &v->setup.still;
    const struct oct_warp_params *both = &v->setup.solver.params;

    if (s.n_levels == 0 && s.n_iterations > 1)
        s.n_iterations = 0;
    const enum oct_err e = oct_volumes_params(v, &s, OCT_WARP_NONLINEAR, still, err);
    for (unsigned i = 0; i < still->n_levels && !e; i++)
        for (unsigned k = 0; k < both->n_levels && s.n_iterations == 0; k++)
            if (still->factor[i] == both->factor[k])
                still->iterations[i] = both->iterations[k];
    return e;
}

static enum oct_err set_up(struct oct_volumes *v, struct oct_error *err)
{
    const struct oct_volumes_settings *s = &v->settings;
    struct oct_warp_pair_setup *to = &v->setup;
    *to = (struct oct_warp_pair_setup){.model = s->model, .backend = v->job.backend};
    to->solver.grid = v->grid;
    to->solver.workers = v->job.workers;
    to->solver.gpus = v->job.gpus;
    to->reach.reach_bscans = s->reach_px[0];
    to->reach.reach_lines = s->reach_px[1];
    to->reach.reach_depth = s->reach_px[2];
    to->reach.jump_price = isnan(s->jump_price) ? 0 : s->jump_price;
    const enum oct_err e = oct_volumes_params(v, s, s->model, &to->solver.params, err);
    return e || s->model != OCT_WARP_BOTH ? e : set_up_still(v, err);
}

enum oct_err oct_volumes_begin(struct oct_volumes *volumes, struct oct_error *err)
{
    struct oct_volumes *v = volumes;
    struct oct_volume_info mask;
    v->pairs = oct_alloc(v->n_moving, sizeof(*v->pairs));
    enum oct_err e = look_at_all(v, err);
    if (!e && v->given.mask)
        e = look_at_mask(v, &mask, err);
    e = e ? e : set_up(v, err);
    e = e ? e : oct_volumes_read_points(v, err);
    if (e)
        return e;
    if (v->n_lanes == 0)
        v->n_lanes = count_gpus(v);
    v->shares = oct_alloc(v->n_lanes, sizeof(*v->shares));
    return check_memory(v, err);
}

/* ---- loading ---- */

/* *values: the caller frees it, after an error too. Counts^2 become dB. */
static enum oct_err load(const struct oct_volumes *v, const char *path,
                         const struct oct_volume_info *info, float **values, struct oct_error *err)
{
    const size_t n = (size_t)info->dims[0] * info->dims[1] * info->dims[2];
    float *to = *values = oct_alloc(n, sizeof(float));
    enum oct_err e = oct_job_go_on(&v->job, err);
    e = e ? e : oct_volume_load(path, info, to, err);
    float least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < n && !e; i++) {
        if (info->is_linear)
            to[i] = to[i] > 0 ? 10 * log10f(to[i]) : NAN;
        if (isfinite(to[i])) {
            least = to[i] < least ? to[i] : least;
            most = to[i] > most ? to[i] : most;
        }
    }
    if (!e && !(least <= most))
        e = oct_fail(err, OCT_E_FORMAT, "%s: is empty: no value is finite", path);
    else if (!e && !(least < most))
        e = oct_fail(err, OCT_E_FORMAT, "%s: is constant: all values are %g", path, (double)least);
    return e;
}

/* What is not 0 is compared. */
static enum oct_err load_mask(struct oct_volumes *v, struct oct_error *err)
{
    const char *path = v->given.mask;
    const size_t n = oct_warp_n_voxels(&v->grid);
    struct oct_volume_info info;
    size_t n_compared = 0;
    if (!path)
        return OCT_OK;
    enum oct_err e = look_at_mask(v, &info, err);
    float *values = oct_alloc(n, sizeof(*values));
    v->mask = oct_alloc(n, 1);
    e = e ? e : oct_volume_load(path, &info, values, err);
    for (size_t i = 0; i < n && !e; i++) {
        v->mask[i] = isfinite(values[i]) && values[i] != 0;
        n_compared += v->mask[i];
    }
    free(values);
    if (!e && n_compared == 0)
        e = oct_fail(err, OCT_E_FORMAT, "%s: is 0 everywhere: nothing would be compared", path);
    return e;
}

/* ---- the average ---- */

static void begin_average(struct oct_volumes *v)
{
    const size_t n = oct_warp_n_voxels(&v->grid);
    v->n_averaged = 1;
    if (v->given.group)
        v->average = v->fixed; /* onto which the next one is registered */
    else if (v->given.average)
        v->average = memcpy(oct_alloc(n, sizeof(float)), v->fixed, n * sizeof(float));
}

/* The n-th of a mean has the weight 1 / n. */
static void add_to_average(struct oct_volumes *v, const float *warped)
{
    const size_t n = oct_warp_n_voxels(&v->grid);
    float *average = v->average;
    v->n_averaged++;
    const float part = 1.0F / (float)v->n_averaged;
    for (size_t i = 0; average && i < n; i++)
        if (!isfinite(average[i]))
            average[i] = warped[i];
        else if (isfinite(warped[i]))
            average[i] += part * (warped[i] - average[i]);
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
    struct oct_volumes *v = lane->v;
    double done = v->n_done, seconds = oct_progress_seconds(&v->job.progress);
    char text[192];
    int n = 0;
    v->shares[lane->number] = share;
    for (unsigned i = 0; i < v->n_lanes; i++)
        done += v->shares[i];
    done /= v->n_moving;
    if (oct_clock_ns() - lane->shown_ns < SHOW_NS)
        return;
    lane->shown_ns = oct_clock_ns();
    if (v->n_moving > 1)
        n = snprintf(text, sizeof(text), "%u of %u: ", lane->pair + 1, v->n_moving);
    n += snprintf(text + n, sizeof(text) - (size_t)n, "%s", what);
    if (done > 0)
        snprintf(text + n, sizeof(text) - (size_t)n, ", %.0f s left at most",
                 ceil(seconds * (1 - done) / done));
    oct_progress_say(&v->job.progress, done, text);
}

/* Whether to stop. */
static bool on_iteration(void *context, unsigned level, unsigned factor, unsigned iteration,
                         unsigned iterations, double energy)
{
    struct lane *lane = context;
    struct oct_volumes *v = lane->v;
    const struct oct_warp_params *p = &v->setup.solver.params;
    unsigned number = 0;
    char what[96];
    (void)level;
    while (number + 1 < p->n_levels && p->factor[number] > factor)
        number++;
    snprintf(what, sizeof(what), "level %u of %u (1/%u), iteration %u, E %.5g", number + 1,
             p->n_levels, factor, iteration, energy);
    pthread_mutex_lock(&v->lock);
    show(lane, share_of(p, factor, iteration, iterations), what);
    const bool stops = *v->job.cancel || v->failure.code;
    pthread_mutex_unlock(&v->lock);
    return stops;
}

/* ---- a pair ---- */

static void measure_lengths(const struct oct_volumes *v, const float *u,
                            struct oct_volumes_pair *pair)
{
    const size_t n = oct_warp_n_voxels(&v->grid);
    double sum[2] = {0, 0}, most[2] = {0, 0};
    const double *s = v->grid.spacing;
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
        const bool is_known = k == 0 || v->grid.in_um;
        pair->mean_length[k] = is_known ? sum[k] / (double)n : NAN;
        pair->most_length[k] = is_known ? sqrt(most[k]) : NAN;
    }
}

static void keep_numbers(const struct oct_volumes *v, const struct oct_warp_pair *made,
                         struct oct_volumes_pair *pair)
{
    pair->running = strcmp(made->running, "cuda") == 0 ? "cuda" : "cpu";
    memcpy(pair->range, made->range, sizeof(pair->range));
    pair->kept = made->is_still   ? OCT_WARP_NONLINEAR
                 : made->is_rigid ? OCT_WARP_BSCANS
                                  : v->settings.model;
    pair->report = made->report;
    pair->before = made->before;
    pair->after = made->after;
    pair->change = made->change;
    pair->n_lost = pair->kept == OCT_WARP_NONLINEAR ? NAN : 0;
    for (uint32_t b = 0; made->bscans && b < v->grid.dims[0]; b++)
        pair->n_lost += isnan(made->bscans[b].score) ? 1 : 0;
    measure_lengths(v, made->displacement, pair);
}

static enum oct_err load_moving(const struct lane *lane, float **moving, struct oct_error *err)
{
    const struct oct_volumes *v = lane->v;
    const struct oct_volumes_pair *pair = &v->pairs[lane->pair];
    const enum oct_err e = load(v, pair->path, &pair->info, moving, err);
    if (!e && pair->is_resampled)
        oct_volumes_resample(moving, pair->info.dims, v->grid.dims, &pair->placing, v->job.workers);
    return e;
}

static enum oct_err register_one(struct lane *lane, const float *moving, struct oct_warp_pair *made,
                                 struct oct_error *err)
{
    const struct oct_volumes *v = lane->v;
    struct oct_warp_pair_setup setup = v->setup;
    struct oct_error why = {.code = OCT_OK};
    setup.progress = (struct oct_warp_progress){on_iteration, lane};
    if (lane->gpu[0])
        setup.solver.gpus = lane->gpu;
    const enum oct_err e = oct_warp_pair_register(&setup, v->fixed, moving, v->mask, made, &why);
    if (e && *v->job.cancel)
        return oct_job_go_on(&v->job, err);
    if (e)
        return oct_fail(err, e, "%s onto %s: %s", v->pairs[lane->pair].path, v->job.inputs[0],
                        why.text);
    return OCT_OK;
}

static enum oct_err invert(struct lane *lane, const struct oct_warp_pair *made, float **inverse,
                           struct oct_error *err)
{
    struct oct_volumes *v = lane->v;
    const enum oct_err e = oct_job_go_on(&v->job, err);
    if (e || !v->given.inverse)
        return e;
    *inverse = oct_alloc(3 * oct_warp_n_voxels(&v->grid), sizeof(float));
    return oct_warp_invert(&v->grid, made->displacement, v->job.workers, *inverse,
                           &v->pairs[lane->pair].inverse_left, err);
}

/* Waits until all before it are taken. False: another pair has failed. */
static bool wait_for_turn(const struct lane *lane)
{
    struct oct_volumes *v = lane->v;
    pthread_mutex_lock(&v->lock);
    while (v->next_to_take < lane->pair && !v->failure.code)
        pthread_cond_wait(&v->turn, &v->lock);
    const bool is_mine = !v->failure.code;
    pthread_mutex_unlock(&v->lock);
    return is_mine;
}

static void map_points(struct oct_volumes *v, struct oct_volumes_pair *pair,
                       const float *displacement)
{
    pair->points = oct_alloc(v->n_points, sizeof(*pair->points));
    for (size_t p = 0; p < v->n_points; p++) {
        oct_warp_point(&v->grid, displacement, v->points[p], pair->points[p]);
        for (unsigned k = 0; k < 3; k++)
            pair->points[p][k] =
                pair->placing.origin[k] + pair->placing.scale[k] * pair->points[p][k];
    }
}

/* The turn of the next. The first failure is the one that is said. */
static void end_turn(struct lane *lane, enum oct_err e, const struct oct_error *err)
{
    struct oct_volumes *v = lane->v;
    pthread_mutex_lock(&v->lock);
    if (e && !v->failure.code)
        v->failure = *err;
    v->next_to_take++;
    v->n_done++;
    v->shares[lane->number] = 0;
    pthread_cond_broadcast(&v->turn);
    pthread_mutex_unlock(&v->lock);
}

static enum oct_err do_pair(struct lane *lane, struct oct_error *err)
{
    struct oct_volumes *v = lane->v;
    struct oct_volumes_pair *pair = &v->pairs[lane->pair];
    struct oct_warp_pair made = {0};
    float *moving = NULL, *inverse = NULL;
    const uint64_t began_ns = oct_clock_ns();
    enum oct_err e = load_moving(lane, &moving, err);
    e = e ? e : register_one(lane, moving, &made, err);
    e = e ? e : invert(lane, &made, &inverse, err);
    if (!e) {
        keep_numbers(v, &made, pair);
        pair->seconds = (double)(oct_clock_ns() - began_ns) * 1e-9;
    }
    if (!e && wait_for_turn(lane)) {
        v->hand = (struct oct_volumes_hand){lane->pair, v->fixed, moving, &made, inverse};
        map_points(v, pair, made.displacement);
        e = v->take(v, err);
        if (!e)
            add_to_average(v, made.warped);
    }
    end_turn(lane, e, err);
    free(moving);
    free(inverse);
    oct_warp_pair_finish(&made);
    return e;
}

/* ---- all of them ---- */

static void *work_in_lane(void *context)
{
    struct lane *lane = context;
    struct oct_volumes *v = lane->v;
    struct oct_error err = {.code = OCT_OK};
    enum oct_err e = OCT_OK;
    while (!e) {
        pthread_mutex_lock(&v->lock);
        lane->pair = v->next;
        const bool is_last = v->failure.code || v->next == v->n_moving;
        v->next += !is_last;
        pthread_mutex_unlock(&v->lock);
        if (is_last)
            break;
        e = do_pair(lane, &err);
    }
    return NULL;
}

/* Each lane to a GPU of its own. */
static void set_gpus(const struct oct_volumes *v, struct lane *lanes)
{
    struct oct_cuda_choice choice;
    if (v->n_lanes < 2 || strcmp(v->job.backend, "cpu") == 0 ||
        oct_cuda_choose(&choice, v->job.gpus, NULL, NULL, NULL) != OCT_OK)
        return;
    for (unsigned i = 0; i < v->n_lanes; i++)
        snprintf(lanes[i].gpu, sizeof(lanes[i].gpu), "%u", choice.devices[i % choice.n_gpus]);
}

/* One lane works on this thread; of several those that could be started do all pairs. */
static enum oct_err work_in_lanes(struct oct_volumes *v, struct oct_error *err)
{
    struct lane *lanes = oct_alloc(v->n_lanes, sizeof(*lanes));
    unsigned n = 0;
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < v->n_lanes; i++)
        lanes[i] = (struct lane){.v = v, .number = i};
    set_gpus(v, lanes);
    if (v->n_lanes == 1)
        work_in_lane(&lanes[0]);
    while (v->n_lanes > 1 && n < v->n_lanes && !e) {
        e = oct_thread_start(&lanes[n].thread, "octd-pair", work_in_lane, &lanes[n],
                             "register-volumes", err);
        n += !e;
    }
    for (unsigned i = 0; i < n; i++)
        pthread_join(lanes[i].thread, NULL);
    free(lanes);
    if (e && n == 0)
        return e;
    if (v->failure.code)
        *err = v->failure;
    return v->failure.code;
}

enum oct_err oct_volumes_run(struct oct_volumes *volumes, struct oct_error *err)
{
    struct oct_volumes *v = volumes;
    enum oct_err e = load(v, v->job.inputs[0], &v->fixed_info, &v->fixed, err);
    e = e ? e : load_mask(v, err);
    if (e)
        return e;
    begin_average(v);
    pthread_mutex_init(&v->lock, NULL);
    pthread_cond_init(&v->turn, NULL);
    e = work_in_lanes(v, err);
    pthread_mutex_destroy(&v->lock);
    pthread_cond_destroy(&v->turn);
    oct_progress_clear(&v->job.progress);
    return e;
}
