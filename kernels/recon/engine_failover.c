/* The CUDA engine until it dies, then the CPU engine: itself an engine, so that nothing around it
 * needs to know.
 *
 *     ON GPU --(submit or collect meets a dead GPU)--> DRAINING --(GPU engine gone)--> ON CPU
 *
 * Every job is kept here until it is collected. Spectra stay in their slots until then, so whatever
 * the GPU had and was not collected is computed again on the CPU: a GPU that dies costs time, no
 * B-scan. Depth and batch stay as the GPU engine gave them, because rings were sized by them; what
 * is beyond the CPU engine's depth waits here. The CPU engine is created by the collecting
 * thread, which the failure has stopped anyway. Percentile limits start afresh on the CPU. */
#include "kernels/device/cuda_device.h"
#include "kernels/recon/tables.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 4096

enum state { ON_GPU, DRAINING, ON_CPU, ALL_DEAD };

struct oct_engine {
    const struct oct_plan *plan;
    struct oct_engine_options options; /* for the CPU engine; strings are copies below */
    char wisdom_dir[PATH_BYTES];
    char simd[16];
    unsigned depth, max_batch;
    struct oct_engine *gpu, *cpu;

    /* Guards what follows. Never held across a call into an engine, except submit and create. */
    pthread_mutex_t lock;
    pthread_cond_t arrived; /* a job, while no engine is there */
    enum state state;
    struct oct_engine_job *jobs; /* [depth] submitted and not collected, at % depth */
    uint64_t first, last;
    uint64_t fed; /* the first that the CPU engine does not have yet */

    char on_gpu[320], on_cpu[320];
    _Atomic(const char *) description; /* one of them; read by any thread */
};

static void keep(struct oct_engine *engine, const struct oct_engine_job *jobs, unsigned n)
{
    for (unsigned k = 0; k < n; k++)
        engine->jobs[engine->last++ % engine->depth] = jobs[k];
    pthread_cond_signal(&engine->arrived);
}

/* Gives the CPU engine as much as it takes. Lock held. */
static void feed_cpu(struct oct_engine *engine)
{
    unsigned most = oct_engine_cpu.depth(engine->cpu);
    while (engine->fed != engine->last && engine->fed - engine->first < most &&
           oct_engine_cpu.submit(engine->cpu, &engine->jobs[engine->fed % engine->depth], 1) ==
               OCT_OK)
        engine->fed++;
}

/* Never freed: what a hanging device may write to must last. NULL: out of memory. */
static void *new_place(size_t bytes)
{
    return aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
}

static enum oct_err move_picture(struct oct_image_frame *out, const struct oct_geometry *g)
{
    const bool has_own_values = out->values && g->sample_type != OCT_SAMPLE_F32;
    void *pixels = new_place(oct_geometry_image_bytes(g));
    float *values =
        has_own_values ? new_place((size_t)g->n_lines * g->depth * sizeof(float)) : pixels;
    if (!pixels || !values)
        return OCT_E_NO_MEMORY;
    out->pixels = pixels;
    if (has_own_values)
        out->values_room = values;
    if (out->values)
        out->values = values;
    return OCT_OK;
}

/* A device that hangs may still write into the pictures and values it was given: they move. Lock
 * held. */
static enum oct_err move_pictures(struct oct_engine *engine)
{
    enum oct_err e = OCT_OK;
    for (uint64_t i = engine->first; i < engine->last && !e; i++)
        e = move_picture(engine->jobs[i % engine->depth].out, &engine->plan->geometry);
    return e;
}

/* The GPU engine is dead. Lock held, released while engines come and go; what comes meanwhile is
 * kept and was never the GPU's. */
static void change_engines(struct oct_engine *engine)
{
    struct oct_engine *cpu = NULL, *gpu = engine->gpu;
    struct oct_error why = {.text = ""};

    engine->gpu = NULL;
    pthread_mutex_unlock(&engine->lock);
    oct_engine_cuda.destroy(gpu);
    enum oct_err e = oct_engine_cpu.create(&cpu, engine->plan, &engine->options, &why);
    pthread_mutex_lock(&engine->lock);
    if (!e && oct_engine_left_hanging() && (e = move_pictures(engine))) {
        oct_fail(&why, e, "out of memory for the pictures that a hanging GPU may still write");
        oct_engine_cpu.destroy(cpu);
        cpu = NULL;
    }
    engine->cpu = cpu;
    if (e) {
        engine->state = ALL_DEAD;
        oct_log(OCT_LOG_ERROR, "the GPU has failed and the CPU engine does not start: %s",
                why.text);
        return;
    }
    engine->state = ON_CPU;
    snprintf(engine->on_cpu, sizeof(engine->on_cpu), "CPU since the GPU failed: %s",
             oct_engine_cpu.describe(cpu));
    atomic_store(&engine->description, engine->on_cpu);
    oct_log(OCT_LOG_WARNING,
            "going on with the CPU engine (%s), which computes what the GPU had: %llu B-scans",
            oct_engine_cpu.describe(cpu), (unsigned long long)(engine->last - engine->first));
    engine->fed = engine->first;
    feed_cpu(engine);
}

static enum oct_err failover_submit(struct oct_engine *engine, const struct oct_engine_job *jobs,
                                    unsigned n)
{
    enum oct_err e = OCT_OK;
    pthread_mutex_lock(&engine->lock);
    if (engine->state == ALL_DEAD) {
        e = OCT_E_BACKEND;
    } else if (engine->last - engine->first + n > engine->depth) {
        e = OCT_E_AGAIN;
    } else {
        if (engine->state == ON_GPU) {
            e = oct_engine_cuda.submit(engine->gpu, jobs, n);
            if (e == OCT_E_BACKEND) {
                engine->state = DRAINING;
                e = OCT_OK;
            }
        }
        if (e == OCT_OK)
            keep(engine, jobs, n);
        if (engine->state == ON_CPU)
            feed_cpu(engine);
    }
    pthread_mutex_unlock(&engine->lock);
    return e;
}

/* Both engines are gone: what waits is lost, in order. Lock held. */
static enum oct_err lose_one(struct oct_engine *engine, struct oct_image_frame **done)
{
    if (engine->first == engine->last)
        return OCT_E_AGAIN;
    *done = engine->jobs[engine->first++ % engine->depth].out;
    (*done)->status = OCT_E_BACKEND;
    return OCT_OK;
}

static void wait_for_arrival(struct oct_engine *engine, uint64_t until_ns)
{
    uint64_t now = oct_clock_ns();
    struct timespec until = oct_clock_deadline(until_ns > now ? (until_ns - now) / 1000 : 0);
    pthread_cond_timedwait(&engine->arrived, &engine->lock, &until);
}

/* One look at the engine in charge, for at most slice_us. Lock held, released while waiting. */
static enum oct_err look(struct oct_engine *engine, uint64_t slice_us,
                         struct oct_image_frame **done)
{
    if (engine->state == DRAINING)
        change_engines(engine);
    if (engine->state == ALL_DEAD)
        return lose_one(engine, done);
    bool on_gpu = engine->gpu != NULL;
    struct oct_engine *now = on_gpu ? engine->gpu : engine->cpu;
    const struct oct_engine_ops *ops = on_gpu ? &oct_engine_cuda : &oct_engine_cpu;
    pthread_mutex_unlock(&engine->lock);
    enum oct_err e = ops->collect(now, slice_us, done);
    pthread_mutex_lock(&engine->lock);
    if (e)
        return e;
    if (on_gpu && (*done)->status == OCT_E_BACKEND) {
        engine->state = DRAINING; /* this one is computed again, too */
        return OCT_E_AGAIN;
    }
    engine->first++;
    if (!on_gpu)
        feed_cpu(engine);
    return OCT_OK;
}

#define SLICE_US 20000u /* another thread may change the state meanwhile */

static enum oct_err failover_collect(struct oct_engine *engine, uint64_t timeout_us,
                                     struct oct_image_frame **done)
{
    uint64_t until_ns = oct_clock_ns() + timeout_us * 1000;
    pthread_mutex_lock(&engine->lock);
    enum oct_err e;
    for (;;) {
        uint64_t now = oct_clock_ns(), left_us = until_ns > now ? (until_ns - now) / 1000 : 0;
        e = look(engine, left_us < SLICE_US ? left_us : SLICE_US, done);
        if (e == OCT_OK || (oct_clock_ns() >= until_ns && engine->state != DRAINING))
            break;
        if (engine->state == ALL_DEAD)
            wait_for_arrival(engine, until_ns);
    }
    pthread_mutex_unlock(&engine->lock);
    return e;
}

static void failover_destroy(struct oct_engine *engine)
{
    if (!engine)
        return;
    oct_engine_cuda.destroy(engine->gpu);
    oct_engine_cpu.destroy(engine->cpu);
    pthread_cond_destroy(&engine->arrived);
    pthread_mutex_destroy(&engine->lock);
    free(engine->jobs);
    free(engine);
}

static void copy_options(struct oct_engine *engine, const struct oct_engine_options *options)
{
    engine->options = *options;
    engine->options.gpus = engine->options.cuda = NULL;
    snprintf(engine->simd, sizeof(engine->simd), "%s", options->simd ? options->simd : "auto");
    engine->options.simd = engine->simd;
    engine->options.wisdom_dir = NULL;
    if (options->wisdom_dir && strlen(options->wisdom_dir) < sizeof(engine->wisdom_dir)) {
        snprintf(engine->wisdom_dir, sizeof(engine->wisdom_dir), "%s", options->wisdom_dir);
        engine->options.wisdom_dir = engine->wisdom_dir;
    }
}

static enum oct_err failover_create(struct oct_engine **out, const struct oct_plan *plan,
                                    const struct oct_engine_options *options, struct oct_error *err)
{
    *out = NULL;
    struct oct_engine *engine = calloc(1, sizeof(*engine));
    if (!engine)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the engine");
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&engine->lock, NULL);
    pthread_cond_init(&engine->arrived, &monotonic);
    pthread_condattr_destroy(&monotonic);
    engine->plan = plan;
    copy_options(engine, options);
    enum oct_err e = oct_engine_cuda.create(&engine->gpu, plan, options, err);
    if (e) {
        failover_destroy(engine);
        return e;
    }
    engine->depth = oct_engine_cuda.depth(engine->gpu);
    engine->max_batch = oct_engine_cuda.max_batch(engine->gpu);
    snprintf(engine->on_gpu, sizeof(engine->on_gpu), "%s", oct_engine_cuda.describe(engine->gpu));
    atomic_store(&engine->description, engine->on_gpu);
    engine->jobs = calloc(engine->depth, sizeof(*engine->jobs));
    if (!engine->jobs) {
        failover_destroy(engine);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the engine's queue");
    }
    *out = engine;
    return OCT_OK;
}

/* May change once, from the GPU's to the CPU's. */
static const char *failover_describe(const struct oct_engine *engine)
{
    return atomic_load(&engine->description);
}

static const char *failover_running(const struct oct_engine *engine)
{
    return atomic_load(&engine->description) == engine->on_gpu ? "cuda" : "cpu";
}

static unsigned failover_depth(const struct oct_engine *engine)
{
    return engine->depth;
}

static unsigned failover_max_batch(const struct oct_engine *engine)
{
    return engine->max_batch;
}

const struct oct_engine_ops oct_engine_failover = {
    .name = "cuda",
    .create = failover_create,
    .describe = failover_describe,
    .running = failover_running,
    .depth = failover_depth,
    .max_batch = failover_max_batch,
    .submit = failover_submit,
    .collect = failover_collect,
    .destroy = failover_destroy,
    .memory = &oct_cuda_memory,
};
