/* The CUDA engine: a worker (kernels/device/cuda_task.h) whose tasks are pieces of a registration,
 * each far shorter than the deadline. Between the copies of the volumes and of the result, one
 * struct comes back a step. */
#include "analysis/warp/cuda_warp_device.cuh"
#include "kernels/device/cuda_task.h"
extern "C" {
#include "pipeline/base/clock.h"
}

#include <new>

#define DEADLINE_MS 10000u
#define BATCH_VOXELS 1e8 /* of a level, times steps queued at once: some 5 ms */

/* Rooms of the two fields that change places. */
#define DISPLACEMENT OCT_WARP_FIELD
#define VELOCITY (OCT_WARP_FIELD + 1)

struct task {
    enum oct_err (*queue)(struct oct_warp_device *device, const struct task *task,
                          struct oct_error *err);
    int room;         /* of a copy or a check */
    const void *from; /* to the device */
    void *to;         /* from the device */
    size_t at, bytes; /* of a copy */
    bool accepts;     /* the trial is the displacement from here on */
    bool is_first, has_mask;
    bool is_fresh; /* the velocity is of the displacement already */
    unsigned factor;
    double scale; /* of the velocity */
    uint32_t n;   /* trials; at most OCT_WARP_BATCH */
    struct oct_warp_course course;
    struct oct_warp_result *results; /* [n], or [1] */
};

struct context {
    struct oct_warp_device device;
    struct task task;
};

struct oct_warp_engine {
    struct oct_cuda_tasks *tasks;
    struct oct_warp_setup setup;
    size_t n, stage_bytes; /* voxels; of one copy */
    struct oct_warp_result results[OCT_WARP_BATCH];
    uint32_t n_results, n_used; /* of trials */
    bool accepts;               /* the next task does */

    /* Of a level. */
    double n_level, bytes;
    struct oct_warp_energy now, trial; /* of the displacement and of the last trial */
    struct oct_warp_course course;     /* to the displacement */
    uint32_t most_steps;
    bool is_fresh; /* the velocity is of the displacement */
    double scale;  /* of the velocity: the next step's */
};

/* ---- what is queued ---- */

static uint8_t *place_of(const struct oct_warp_device *d, int room)
{
    return (uint8_t *)(room == DISPLACEMENT ? d->u : room == VELOCITY ? d->v : d->d_rooms[room]);
}

static enum oct_err queue_copy(struct oct_warp_device *d, const struct task *task,
                               struct oct_error *err)
{
    uint8_t *there = place_of(d, task->room) + task->at;
    return task->to ? oct_cuda_stream_download(d->stream, d->h_stage, there, task->bytes, err)
                    : oct_cuda_stream_upload(d->stream, there, d->h_stage, task->bytes, err);
}

static enum oct_err queue_check(struct oct_warp_device *d, const struct task *task,
                                struct oct_error *err)
{
    return oct_warp_queue_check(d, (const float *)place_of(d, task->room), err);
}

static enum oct_err queue_level(struct oct_warp_device *d, const struct task *task,
                                struct oct_error *err)
{
    const enum oct_err e =
        oct_warp_queue_level(d, task->factor, task->is_first, task->has_mask, err);
    return e ? e : oct_warp_queue_energy(d, err);
}

static enum oct_err queue_steps(struct oct_warp_device *d, const struct task *task,
                                struct oct_error *err)
{
    return oct_warp_queue_steps(d, task->course, task->n, task->scale, task->is_fresh, err);
}

static enum oct_err queue_soften(struct oct_warp_device *d, const struct task *,
                                 struct oct_error *err)
{
    oct_warp_queue_soften(d);
    return oct_warp_queue_energy(d, err);
}

static enum oct_err queue_spread(struct oct_warp_device *d, const struct task *, struct oct_error *)
{
    oct_warp_queue_spread(d, 1);
    return OCT_OK;
}

/* Of the finest volume, as it is; so are the next two. */
static enum oct_err queue_warp(struct oct_warp_device *d, const struct task *, struct oct_error *)
{
    oct_warp_set_box(d, 1);
    oct_warp_queue_warp(d);
    return OCT_OK;
}

static enum oct_err queue_jacobian(struct oct_warp_device *d, const struct task *,
                                   struct oct_error *)
{
    oct_warp_set_box(d, 1);
    oct_warp_queue_volume(d);
    return OCT_OK;
}

static enum oct_err queue_force(struct oct_warp_device *d, const struct task *,
                                struct oct_error *err)
{
    oct_warp_set_box(d, 1);
    const enum oct_err e = oct_warp_queue_energy(d, err);
    oct_warp_queue_force(d);
    return e;
}

/* ---- a task ---- */

static void take(void *argument, const void *from)
{
    struct context *c = (struct context *)argument;
    c->task = *(const struct task *)from;
    if (c->task.from)
        memcpy(c->device.h_stage, c->task.from, c->task.bytes);
}

static enum oct_err begin(void *argument, struct oct_error *err)
{
    struct context *c = (struct context *)argument;
    if (c->task.accepts)
        std::swap(c->device.u, c->device.trial);
    return c->task.queue(&c->device, &c->task, err);
}

static void give(void *argument, void *to)
{
    const struct context *c = (const struct context *)argument;
    struct task *task = (struct task *)to;
    memcpy(task->results, c->device.h_results,
           (task->n > 0 ? task->n : 1) * sizeof(*task->results));
    if (task->to)
        memcpy(task->to, c->device.h_stage, task->bytes);
}

static void unmake(void *argument)
{
    delete (struct context *)argument;
}

static enum oct_err make(void **out, struct oct_cuda_stream *stream, const void *setup,
                         struct oct_error *err)
{
    *out = NULL;
    struct context *c = new (std::nothrow) context();
    if (!c)
        return oct_fail(err, OCT_E_NO_MEMORY, "warp: out of memory for an engine");
    c->device.stream = stream;
    const enum oct_err e = oct_warp_make(&c->device, (const struct oct_warp_setup *)setup, err);
    oct_cuda_stream_drain(stream);
    if (e)
        unmake(c);
    else
        *out = c;
    return e;
}

static const struct oct_cuda_task_ops task_ops = {
    "registration of volumes", make, take, begin, give, unmake};

/* ---- life ---- */

static void engine_destroy(struct oct_warp_engine *w)
{
    if (!w)
        return;
    oct_cuda_tasks_destroy(w->tasks);
    delete w;
}

static uint64_t engine_bytes(const struct oct_warp_setup *setup)
{
    size_t bytes[OCT_WARP_ROOMS];
    uint64_t sum = 0;
    oct_warp_room_bytes(setup, bytes);
    for (const size_t of_room : bytes)
        sum += of_room;
    return sum;
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

static enum oct_err run(struct oct_warp_engine *w, struct task *task, struct oct_error *err)
{
    task->accepts = w->accepts;
    task->results = w->results;
    w->accepts = false;
    w->n_results = w->n_used = 0;
    return oct_cuda_tasks_do(w->tasks, task, err);
}

static enum oct_err run_one(struct oct_warp_engine *w, decltype(task::queue) queue,
                            struct oct_error *err)
{
    struct task task = {};
    task.queue = queue;
    return run(w, &task, err);
}

/* All of it, in pieces: one of from and to. */
static enum oct_err copy(struct oct_warp_engine *w, int room, const void *from, void *to,
                         size_t bytes, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (size_t at = 0; at < bytes && !e; at += w->stage_bytes) {
        struct task task = {};
        task.queue = queue_copy;
        task.room = room;
        task.from = from ? (const uint8_t *)from + at : NULL;
        task.to = from ? NULL : (uint8_t *)to + at;
        task.at = at;
        task.bytes = std::min(w->stage_bytes, bytes - at);
        e = run(w, &task, err);
    }
    return e;
}

static enum oct_err send(struct oct_warp_engine *w, int room, const float *from, size_t n_volumes,
                         struct oct_error *err)
{
    return copy(w, room, from, NULL, n_volumes * w->n * sizeof(*from), err);
}

static enum oct_err fetch(struct oct_warp_engine *w, int room, float *to, size_t n_volumes,
                          struct oct_error *err)
{
    return copy(w, room, NULL, to, n_volumes * w->n * sizeof(*to), err);
}

/* What is computed is that of finite values. */
static enum oct_err send_checked(struct oct_warp_engine *w, int room, const float *from,
                                 struct oct_error *err)
{
    struct task task = {};
    enum oct_err e = send(w, room, from, 1, err);
    task.queue = queue_check;
    task.room = room;
    e = e ? e : run(w, &task, err);
    if (!e && w->results[0].sums.n_bad > 0)
        e = oct_fail(err, OCT_E_ARG, "warp: %u values of the %s volume are not finite",
                     w->results[0].sums.n_bad, room == OCT_WARP_FIXED ? "fixed" : "moving");
    return e;
}

/* ---- descent ---- */

static void count(struct oct_warp_engine *w, double floats)
{
    w->bytes += floats * w->n_level * sizeof(float);
}

static struct oct_warp_energy energy_of(const struct oct_warp_result *result)
{
    return {result->energy, result->sums.ssd, (double)result->sums.least, result->sums.change};
}

/* Trials from here on, as many as are likely to be taken: one of a part of the velocity. */
static enum oct_err run_steps(struct oct_warp_engine *w, struct oct_error *err)
{
    struct task task = {};
    task.queue = queue_steps;
    task.is_fresh = w->is_fresh;
    task.scale = w->scale;
    task.course = w->course;
    task.n = 1;
    if (w->scale == 1) {
        const double most = std::min(BATCH_VOXELS / w->n_level, (double)OCT_WARP_BATCH);
        const uint32_t left = w->most_steps - std::min(w->most_steps, w->course.number);
        task.n = std::max(1u, std::min((uint32_t)most, left));
    }
    const enum oct_err e = run(w, &task, err);
    w->n_results = e ? 0 : task.n;
    return e;
}

/* What is known of the displacement is not computed again after a trial that was refused; its
 * velocity is still there. Volumes of a step are counted, each read or written once: the force
 * reads T(h), J + log J and R and writes v, which is read and written once more for the A-lines,
 * and read by the step with u to write the trial; the energy reads that, T and R and writes T(h)
 * and J + log J. */
static enum oct_err evaluate(void *context, bool trial, struct oct_warp_energy *energy,
                             struct oct_error *err)
{
    struct oct_warp_engine *w = (struct oct_warp_engine *)context;
    enum oct_err e = OCT_OK;
    if (!trial) {
        *energy = w->now;
        return OCT_OK;
    }
    if (w->n_used == w->n_results || w->scale != 1)
        e = run_steps(w, err);
    if (e)
        return e;
    const struct oct_warp_result *result = &w->results[w->n_used++];
    const bool again = (double)result->sums.longest > w->setup.params.most_step;
    count(w, (w->is_fresh ? 0 : (3 + 3) + 6) + (again ? 18 : 9) + 7);
    w->is_fresh = true;
    w->trial = *energy = energy_of(result);
    if (w->n_used < w->n_results && !w->results[w->n_used].is_there)
        w->n_results = w->n_used;
    return OCT_OK;
}

static enum oct_err step(void *context, double scale, struct oct_error *)
{
    ((struct oct_warp_engine *)context)->scale = scale;
    return OCT_OK;
}

/* As oct_warp_decide has it. */
static void accept(void *context)
{
    struct oct_warp_engine *w = (struct oct_warp_engine *)context;
    struct oct_warp_course *c = &w->course;
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
    const enum oct_err e = run_one(w, queue_soften, err);
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
    struct task task = {};
    task.queue = queue_level;
    task.factor = w->setup.params.factor[index];
    task.is_first = index == 0;
    task.has_mask = has_mask;
    const enum oct_err e = run(w, &task, err);
    if (e)
        return e;
    const double n = (double)w->n, k = task.factor;
    w->n_level = (double)oct_warp_box_of(w->setup.grid, task.factor).n;
    /* The volumes, axis after axis, or with the mask alone; the displacement; the energy. */
    if (task.factor > 1)
        w->bytes = sizeof(float) * (has_mask ? 3 : 2) * n * (1 + 2 / k + 2 / k / k + 1 / k / k / k);
    else
        w->bytes = has_mask ? n * (1 + sizeof(float)) : 0;
    count(w, 3 + 7 + (has_mask && task.factor > 1 ? 3 : 0));
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

static enum oct_err engine_solve(struct oct_warp_engine *w, const float *fixed, const float *moving,
                                 const uint8_t *mask, float *displacement,
                                 struct oct_warp_report *report,
                                 const struct oct_warp_progress *progress, struct oct_error *err)
{
    const uint64_t begun_ns = oct_clock_ns();
    const struct oct_warp_params *p = &w->setup.params;
    struct oct_warp_report found = {};
    found.n_levels = p->n_levels;
    enum oct_err e = send_checked(w, OCT_WARP_FIXED, fixed, err);
    e = e ? e : send_checked(w, OCT_WARP_MOVING, moving, err);
    if (!e && mask)
        e = copy(w, OCT_WARP_MASK, mask, NULL, w->n, err);
    for (unsigned i = 0; i < p->n_levels && !e; i++)
        e = run_level(w, i, mask != NULL, progress, &found.level[i], err);
    if (!e && p->factor[p->n_levels - 1] > 1)
        e = run_one(w, queue_spread, err);
    e = e ? e : fetch(w, DISPLACEMENT, displacement, 3, err);
    found.seconds = (double)(oct_clock_ns() - begun_ns) * 1e-9;
    if (!e && report)
        *report = found;
    return e;
}

/* ---- alone ---- */

static enum oct_err engine_warp(struct oct_warp_engine *w, const float *moving,
                                const float *displacement, float *warped, struct oct_error *err)
{
    enum oct_err e = send(w, OCT_WARP_MOVING, moving, 1, err);
    e = e ? e : send(w, DISPLACEMENT, displacement, 3, err);
    e = e ? e : run_one(w, queue_warp, err);
    return e ? e : fetch(w, OCT_WARP_WARPED, warped, 1, err);
}

static enum oct_err engine_jacobian(struct oct_warp_engine *w, const float *displacement,
                                    float *jacobian, struct oct_error *err)
{
    enum oct_err e = send(w, DISPLACEMENT, displacement, 3, err);
    e = e ? e : run_one(w, queue_jacobian, err);
    return e ? e : fetch(w, OCT_WARP_WARPED, jacobian, 1, err);
}

static enum oct_err engine_force(struct oct_warp_engine *w, const float *fixed, const float *moving,
                                 const float *displacement, double *energy, float *force,
                                 struct oct_error *err)
{
    enum oct_err e = send(w, OCT_WARP_FIXED, fixed, 1, err);
    e = e ? e : send(w, OCT_WARP_MOVING, moving, 1, err);
    e = e ? e : send(w, DISPLACEMENT, displacement, 3, err);
    e = e ? e : run_one(w, queue_force, err);
    energy[0] = w->results[0].energy;
    energy[1] = w->results[0].sums.ssd / 2;
    energy[2] = w->setup.params.lambda * w->results[0].sums.change;
    return e ? e : fetch(w, VELOCITY, force, 3, err);
}

extern "C" const struct oct_warp_ops oct_warp_cuda = {"cuda",       engine_bytes, engine_create,
                                                      engine_solve, engine_warp,  engine_jacobian,
                                                      engine_force, NULL,         engine_destroy};
