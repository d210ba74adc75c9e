/* The CUDA engine: a worker (kernels/device/cuda_task.h) whose tasks are pieces of a registration,
 * each far shorter than the deadline. Between the copies of the volumes and of the result, one
 * struct comes back a step. */
#include "analysis/warp/cuda_warp_device.cuh"
#include "kernels/device/cuda_task.h"
extern "C" {
#include "pipeline/base/clock.h"
}

#include <functional>
#include <new>

using namespace oct_warp;

#define DEADLINE_MS 10000u
#define BATCH_VOXELS 1e8 /* of a level, times steps queued at once: some 5 ms */

/* What a task queues. It is copied to the worker, and captures by value. */
using work = std::function<enum oct_err(struct device *device, struct oct_error *err)>;

struct task {
    work queue;
    const void *from; /* to the stage before */
    void *to;         /* from the stage afterwards */
    size_t bytes;     /* of these */
    bool accepts;     /* the trial is the displacement from here on */
    uint32_t n;       /* results; at most OCT_WARP_BATCH */
    struct result *results;
};

struct context {
    struct device device;
    struct task task;
};

struct oct_warp_engine {
    struct oct_cuda_tasks *tasks;
    struct oct_warp_setup setup;
    size_t n, stage_bytes; /* voxels; of one copy */
    struct result results[OCT_WARP_BATCH];
    uint32_t n_results, n_used; /* of trials */
    bool accepts;               /* the next task does */

    /* Of a level. */
    double n_level, bytes;
    struct oct_warp_energy now, trial; /* of the displacement and of the last trial */
    struct course course;              /* to the displacement */
    uint32_t most_steps;
    bool is_fresh; /* the velocity is of the displacement */
    double scale;  /* of the velocity: the next step's, and of how many behind it, if taken */
    uint32_t n_alike;
};

/* ---- a task ---- */

static void task_take(void *argument, const void *from)
{
    struct context *c = (struct context *)argument;
    c->task = *(const struct task *)from;
    if (c->task.from)
        memcpy(c->device.h_stage, c->task.from, c->task.bytes);
}

static enum oct_err task_begin(void *argument, struct oct_error *err)
{
    struct context *c = (struct context *)argument;
    if (c->task.accepts)
        std::swap(c->device.u, c->device.trial);
    return c->task.queue(&c->device, err);
}

static void task_give(void *argument, void *to)
{
    const struct context *c = (const struct context *)argument;
    struct task *task = (struct task *)to;
    memcpy(task->results, c->device.h_results, task->n * sizeof(*task->results));
    if (task->to)
        memcpy(task->to, c->device.h_stage, task->bytes);
}

static void task_unmake(void *argument)
{
    delete (struct context *)argument;
}

static enum oct_err task_make(void **out, struct oct_cuda_stream *stream, const void *setup,
                              struct oct_error *err)
{
    *out = NULL;
    struct context *c = new (std::nothrow) context();
    if (!c)
        return oct_fail(err, OCT_E_NO_MEMORY, "warp: out of memory for an engine");
    c->device.stream = stream;
    const enum oct_err e = make(&c->device, (const struct oct_warp_setup *)setup, err);
    oct_cuda_stream_drain(stream);
    if (e)
        task_unmake(c);
    else
        *out = c;
    return e;
}

static const struct oct_cuda_task_ops task_ops = {
    "registration of volumes", task_make, task_take, task_begin, task_give, task_unmake};

/* ---- life ---- */

static void engine_destroy(struct oct_warp_engine *w)
{
    if (!w)
        return;
    oct_cuda_tasks_destroy(w->tasks);
    delete w;
}

static enum oct_err engine_create(struct oct_warp_engine **out, const struct oct_warp_setup *setup,
                                  struct oct_error *err)
{
    *out = NULL;
    enum oct_err e = oct_warp_params_check(&setup->params, &setup->grid, err);
    if (!e && setup->params.profile == OCT_WARP_PAPER)
        e = oct_fail(err, OCT_E_ARG, "warp: the paper's steps are the CPU's alone");
    if (e)
        return e;
    struct oct_warp_engine *w = new (std::nothrow) oct_warp_engine();
    if (!w)
        return oct_fail(err, OCT_E_NO_MEMORY, "warp: out of memory for an engine");
    w->setup = *setup;
    w->n = oct_warp_n_voxels(&setup->grid);
    w->stage_bytes = std::min(w->n * sizeof(float), OCT_WARP_STAGE_BYTES);
    e = oct_cuda_tasks_create(&w->tasks, &task_ops, setup->gpus,
                              setup->deadline_ms ? setup->deadline_ms : DEADLINE_MS, setup,
                              sizeof(*setup), err);
    if (e)
        engine_destroy(w);
    else
        *out = w;
    return e;
}

/* ---- tasks of a call ---- */

static enum oct_err run_task(struct oct_warp_engine *w, struct task *task, struct oct_error *err)
{
    task->accepts = w->accepts;
    task->results = w->results;
    w->accepts = false;
    w->n_results = w->n_used = 0;
    return oct_cuda_tasks_do(w->tasks, task, err);
}

static enum oct_err run(struct oct_warp_engine *w, const work &queue, struct oct_error *err,
                        uint32_t n_results = 1)
{
    struct task task = {};
    task.queue = queue;
    task.n = n_results;
    return run_task(w, &task, err);
}

/* All of it, in pieces: one of from and to. */
template <class T>
static enum oct_err copy(struct oct_warp_engine *w, T *device::*room, const T *from, T *to,
                         size_t n, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (size_t at = 0; at < n * sizeof(T) && !e; at += w->stage_bytes) {
        const size_t bytes = std::min(w->stage_bytes, n * sizeof(T) - at);
        struct task task = {};
        task.queue = [room, at, bytes, to](struct device *d, struct oct_error *why) {
            uint8_t *there = (uint8_t *)(d->*room) + at;
            return to ? oct_cuda_stream_download(d->stream, d->h_stage, there, bytes, why)
                      : oct_cuda_stream_upload(d->stream, there, d->h_stage, bytes, why);
        };
        task.from = from ? (const uint8_t *)from + at : NULL;
        task.to = to ? (uint8_t *)to + at : NULL;
        task.bytes = bytes;
        task.n = 1;
        e = run_task(w, &task, err);
    }
    return e;
}

using volume = float *device::*;

static enum oct_err send(struct oct_warp_engine *w, volume room, const float *from,
                         size_t n_volumes, struct oct_error *err)
{
    return copy(w, room, from, (float *)NULL, n_volumes * w->n, err);
}

static enum oct_err fetch(struct oct_warp_engine *w, volume room, float *to, size_t n_volumes,
                          struct oct_error *err)
{
    return copy(w, room, (const float *)NULL, to, n_volumes * w->n, err);
}

/* What is computed is that of finite values. */
static enum oct_err send_checked(struct oct_warp_engine *w, volume room, const float *from,
                                 const char *name, struct oct_error *err)
{
    enum oct_err e = send(w, room, from, 1, err);
    const auto check = [room](struct device *d, struct oct_error *why) {
        return queue_check(d, d->*room, why);
    };
    e = e ? e : run(w, check, err);
    if (!e && w->results[0].sums.n_bad > 0)
        e = oct_fail(err, OCT_E_ARG, "warp: %u values of the %s volume are not finite",
                     w->results[0].sums.n_bad, name);
    return e;
}

/* ---- descent ---- */

static void count(struct oct_warp_engine *w, double floats)
{
    w->bytes += floats * w->n_level * sizeof(float);
}

static struct oct_warp_energy energy_of(const struct result *result)
{
    return {result->energy, result->sums.ssd, (double)result->sums.least, result->sums.change};
}

/* Trials from here on, as many as are likely to be taken and are of one scale. */
static enum oct_err run_steps(struct oct_warp_engine *w, struct oct_error *err)
{
    const struct course course = w->course;
    const bool is_fresh = w->is_fresh;
    const double scale = w->scale, most = std::min(BATCH_VOXELS / w->n_level, OCT_WARP_BATCH * 1.0);
    const uint32_t left = w->most_steps - std::min(w->most_steps, course.number);
    const uint32_t n = std::max(1u, std::min({(uint32_t)most, left, w->n_alike}));
    const auto steps = [course, n, scale, is_fresh](struct device *d, struct oct_error *why) {
        return queue_steps(d, course, n, scale, is_fresh, why);
    };
    const enum oct_err e = run(w, steps, err, n);
    w->n_results = e ? 0 : n;
    return e;
}

/* What is known of the displacement is not computed again after a trial that was refused; its
 * velocity is still there. Volumes of a step are counted, each read or written once: the force
 * reads T(h), its pressure and R and writes v, which is read and written once more for the A-lines,
 * and read by the step with u to write the trial; the energy reads that, T and R and writes T(h)
 * and the pressure. */
static enum oct_err evaluate(void *context, bool trial, struct oct_warp_energy *energy,
                             struct oct_error *err)
{
    struct oct_warp_engine *w = (struct oct_warp_engine *)context;
    enum oct_err e = OCT_OK;
    if (!trial) {
        *energy = w->now;
        return OCT_OK;
    }
    if (w->n_used == w->n_results)
        e = run_steps(w, err);
    if (e)
        return e;
    const struct result *result = &w->results[w->n_used++];
    count(w, (w->is_fresh ? 0 : (3 + 3) + 6) + 9 + 7);
    w->is_fresh = true;
    w->trial = *energy = energy_of(result);
    if (w->n_used < w->n_results && !w->results[w->n_used].is_there)
        w->n_results = w->n_used;
    return OCT_OK;
}

static enum oct_err step(void *context, double scale, unsigned n_alike, struct oct_error *)
{
    struct oct_warp_engine *w = (struct oct_warp_engine *)context;
    w->scale = scale;
    w->n_alike = n_alike;
    return OCT_OK;
}

/* As decide_trial has it. */
static void accept(void *context)
{
    struct oct_warp_engine *w = (struct oct_warp_engine *)context;
    struct course *c = &w->course;
    w->now = w->trial;
    c->energy = c->fallen[++c->number % OCT_WARP_FALL_STEPS] = w->now.energy;
    c->least = (float)w->now.least;
    w->is_fresh = false;
    w->accepts = !w->accepts;
}

/* The steps begin with the displacement whose energy has come. */
static void begin_course(struct oct_warp_engine *w)
{
    w->now = energy_of(w->results);
    w->course = {};
    w->course.energy = w->course.fallen[0] = w->now.energy;
    w->course.least = (float)w->now.least;
}

static enum oct_err soften(void *context, struct oct_error *err)
{
    struct oct_warp_engine *w = (struct oct_warp_engine *)context;
    const auto softer = [](struct device *d, struct oct_error *why) {
        queue_soften(d);
        return queue_energy(d, why);
    };
    const enum oct_err e = run(w, softer, err);
    if (e)
        return e;
    count(w, 6 + 5);
    begin_course(w);
    return OCT_OK;
}

static const struct oct_warp_descent_ops descent_ops = {evaluate, step, accept, NULL, soften};

/* ---- solve ---- */

static enum oct_err begin_level(struct oct_warp_engine *w, unsigned index, bool has_mask,
                                struct oct_error *err)
{
    const unsigned factor = w->setup.params.factor[index];
    const auto level = [=](struct device *d, struct oct_error *why) {
        const enum oct_err e = queue_level(d, factor, index == 0, has_mask, why);
        return e ? e : queue_energy(d, why);
    };
    const enum oct_err e = run(w, level, err);
    if (e)
        return e;
    const double n = (double)w->n, k = factor;
    w->n_level = (double)box_of(w->setup.grid, factor).n;
    /* The volumes, axis after axis, or with the mask alone; the displacement; the energy. */
    if (factor > 1)
        w->bytes = sizeof(float) * (has_mask ? 3 : 2) * n * (1 + 2 / k + 2 / k / k + 1 / k / k / k);
    else
        w->bytes = has_mask ? n * (1 + sizeof(float)) : 0;
    count(w, 3 + 7 + (has_mask && factor > 1 ? 3 : 0));
    begin_course(w);
    w->most_steps = w->setup.params.iterations[index];
    w->is_fresh = false;
    return OCT_OK;
}

static enum oct_err run_level(struct oct_warp_engine *w, unsigned index, bool has_mask,
                              const struct oct_warp_progress *progress,
                              struct oct_warp_level *level, struct oct_error *err)
{
    const uint64_t begun_ns = oct_clock_ns();
    enum oct_err e = begin_level(w, index, has_mask, err);
    e = e ? e : oct_warp_descend(&descent_ops, w, &w->setup.params, index, progress, level, err);
    level->bytes = w->bytes;
    level->seconds = (double)(oct_clock_ns() - begun_ns) * 1e-9;
    return e;
}

static enum oct_err spread_to_finest(struct device *d, struct oct_error *)
{
    queue_spread(d, 1);
    return OCT_OK;
}

static enum oct_err engine_solve(struct oct_warp_engine *w, const float *fixed, const float *moving,
                                 const uint8_t *mask, float *displacement,
                                 struct oct_warp_report *report,
                                 const struct oct_warp_progress *progress, struct oct_error *err)
{
    const uint64_t begun_ns = oct_clock_ns();
    const struct oct_warp_params *p = &w->setup.params;
    struct oct_warp_report found = {};
    found.n_levels = p->n_levels;
    enum oct_err e = send_checked(w, &device::whole_fixed, fixed, "fixed", err);
    e = e ? e : send_checked(w, &device::whole_moving, moving, "moving", err);
    if (!e && mask)
        e = copy(w, &device::mask, mask, (uint8_t *)NULL, w->n, err);
    for (unsigned i = 0; i < p->n_levels && !e; i++)
        e = run_level(w, i, mask != NULL, progress, &found.level[i], err);
    if (!e && p->factor[p->n_levels - 1] > 1)
        e = run(w, spread_to_finest, err);
    e = e ? e : fetch(w, &device::u, displacement, 3, err);
    found.seconds = (double)(oct_clock_ns() - begun_ns) * 1e-9;
    if (!e && report)
        *report = found;
    return e;
}

/* ---- alone: of the finest volume, as it is ---- */

/* The sums and fields of the displacement, and J in place of the trial. */
static enum oct_err queue_fields(struct device *d, struct oct_error *err)
{
    set_box(d, 1);
    queue_sums(d, d->u, NULL, 0, d->trial);
    queue_force(d);
    return queue_results(d, 1, err);
}

static enum oct_err engine_warp(struct oct_warp_engine *w, const float *moving,
                                const float *displacement, float *warped, struct oct_error *err)
{
    enum oct_err e = send(w, &device::whole_moving, moving, 1, err);
    e = e ? e : send(w, &device::u, displacement, 3, err);
    e = e ? e : run(w, queue_fields, err);
    return e ? e : fetch(w, &device::warped, warped, 1, err);
}

static enum oct_err engine_jacobian(struct oct_warp_engine *w, const float *displacement,
                                    float *jacobian, struct oct_error *err)
{
    enum oct_err e = send(w, &device::u, displacement, 3, err);
    e = e ? e : run(w, queue_fields, err);
    return e ? e : fetch(w, &device::trial, jacobian, 1, err);
}

static enum oct_err engine_force(struct oct_warp_engine *w, const float *fixed, const float *moving,
                                 const float *displacement, double *energy, float *force,
                                 struct oct_error *err)
{
    enum oct_err e = send(w, &device::whole_fixed, fixed, 1, err);
    e = e ? e : send(w, &device::whole_moving, moving, 1, err);
    e = e ? e : send(w, &device::u, displacement, 3, err);
    e = e ? e : run(w, queue_fields, err);
    energy[0] = w->results[0].energy;
    energy[1] = w->results[0].sums.ssd / 2;
    energy[2] = w->results[0].sums.change;
    return e ? e : fetch(w, &device::v, force, 3, err);
}

extern "C" const struct oct_warp_ops oct_warp_cuda = {"cuda",       device_bytes, engine_create,
                                                      engine_solve, engine_warp,  engine_jacobian,
                                                      engine_force, NULL,         engine_destroy};
