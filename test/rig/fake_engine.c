#include "test/rig/fake_engine.h"

#include "pipeline/base/clock.h"
#include "pipeline/flow/running_dc.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64

struct fake_job {
    struct oct_engine_job job;
    uint64_t ready_ns, sum; /* of the input and the DC line: they must not change while lent */
    enum oct_err status;
};

struct oct_engine {
    struct fake_script script;
    struct fake_watch *watch;
    struct oct_running_dc *dc; /* dc=running: what the lines of the jobs must be */
    float *dc_line;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct fake_job jobs[MOST]; /* a queue: begin .. end - 1, modulo MOST */
    uint64_t begin, end, last_ready_ns;
};

uint8_t fake_pixel(uint16_t first_sample, double lo)
{
    return (uint8_t)((first_sample + (unsigned)lo) % 251);
}

float fake_value(uint16_t first_sample, double lo, size_t i)
{
    return (float)fake_pixel(first_sample, lo) / 2 + (float)i * 1000;
}

static uint64_t sum_of(const struct oct_engine *e, const struct oct_engine_job *job)
{
    const struct oct_geometry *g = &e->script.plan->geometry;
    uint64_t sum = job->in->info.id;
    for (size_t i = 0; i < (size_t)g->n_lines * g->n_samples; i++)
        sum = sum * 31 + job->in->spectra[i];
    for (size_t i = 0; e->dc && job->dc && i < 2 * (size_t)g->n_samples; i++)
        sum = sum * 31 + (uint64_t)(job->dc[i] * 4096);
    return sum;
}

/* The line is that of this B-scan after those that were submitted before it. */
static bool has_its_line(struct oct_engine *e, const struct oct_engine_job *job)
{
    const size_t n = 2 * (size_t)e->script.plan->geometry.n_samples;
    if (!e->dc)
        return job->dc == NULL;
    oct_running_dc_push(e->dc, job->in, e->dc_line);
    return job->dc && memcmp(e->dc_line, job->dc, n * sizeof(float)) == 0;
}

struct oct_engine *fake_engine_create(const struct fake_script *script, struct fake_watch *watch)
{
    struct oct_engine *e = calloc(1, sizeof(*e));
    if (!e)
        return NULL;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    e->script = *script;
    e->watch = watch;
    if (script->plan->chain.dc != OCT_DC_RUNNING)
        return e;
    e->dc_line = calloc(2 * (size_t)script->plan->geometry.n_samples, sizeof(float));
    if (e->dc_line && oct_running_dc_create(&e->dc, script->plan, NULL) == OCT_OK)
        return e;
    fake_engine.destroy(e);
    return NULL;
}

static const char *fake_describe(const struct oct_engine *engine)
{
    (void)engine;
    return "an engine of the tests";
}

static unsigned fake_depth(const struct oct_engine *e)
{
    return e->script.depth;
}

static unsigned fake_max_batch(const struct oct_engine *e)
{
    return e->script.max_batch;
}

static void queue_job(struct oct_engine *e, const struct oct_engine_job *job)
{
    uint64_t number = ++e->watch->n_submitted, now = oct_clock_ns();
    struct fake_job *f = &e->jobs[e->end++ % MOST];
    e->watch->display = job->display;
    if (e->last_ready_ns < now)
        e->last_ready_ns = now;
    e->last_ready_ns += e->script.job_us * 1000;
    bool fails = e->script.fail_one_in && number % e->script.fail_one_in == 0;
    *f = (struct fake_job){.job = *job,
                           .ready_ns = e->last_ready_ns,
                           .sum = sum_of(e, job),
                           .status = fails ? OCT_E_BACKEND : OCT_OK};
    e->watch->n_wrong += !has_its_line(e, job);
    e->watch->n_wrong += memcmp(&job->in->info, &job->out->info, sizeof(job->in->info)) != 0;
}

static enum oct_err fake_submit(struct oct_engine *e, const struct oct_engine_job *jobs, unsigned n)
{
    enum oct_err result = OCT_OK;
    pthread_mutex_lock(&e->lock);
    uint64_t in_flight = e->end - e->begin;
    if (e->script.dies_at && e->watch->n_submitted + n >= e->script.dies_at) {
        result = OCT_E_BACKEND;
        for (uint64_t k = e->begin; k < e->end; k++)
            e->jobs[k % MOST].status = OCT_E_BACKEND; /* the device is gone, and they with it */
    } else if (n == 0 || n > e->script.max_batch || in_flight + n > e->script.depth) {
        e->watch->n_wrong++;
        result = OCT_E_AGAIN;
    } else {
        for (unsigned k = 0; k < n; k++)
            queue_job(e, &jobs[k]);
        e->watch->n_batches++;
        if (in_flight + n > e->watch->most_in_flight)
            e->watch->most_in_flight = in_flight + n;
    }
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
    return result;
}

static void finish(struct oct_engine *e, const struct fake_job *f)
{
    const struct oct_geometry *g = &e->script.plan->geometry;
    struct oct_image_frame *out = f->job.out;
    e->watch->n_wrong += sum_of(e, &f->job) != f->sum;
    out->status = f->status;
    out->lo = f->job.display.lo;
    out->hi = f->job.display.hi;
    if (f->status != OCT_OK)
        return;
    uint8_t pixel = fake_pixel(f->job.in->spectra[0], out->lo);
    memset(out->pixels, pixel, oct_geometry_image_bytes(g));
    for (size_t i = 0; out->values && i < (size_t)g->n_lines * g->depth; i++)
        out->values[i] = fake_value(f->job.in->spectra[0], out->lo, i);
    e->watch->n_with_values += out->values != NULL;
    for (size_t i = 0; out->complex_values && i < 2 * (size_t)g->n_lines * g->depth; i++)
        out->complex_values[i] = fake_value(f->job.in->spectra[0], out->lo, i) + 0.25f;
    e->watch->n_with_complex += out->complex_values != NULL;
}

static enum oct_err fake_collect(struct oct_engine *e, uint64_t timeout_us,
                                 struct oct_image_frame **done)
{
    uint64_t until_ns = oct_clock_ns() + timeout_us * 1000;
    enum oct_err result = OCT_E_AGAIN;
    pthread_mutex_lock(&e->lock);
    for (;;) {
        struct fake_job *f = &e->jobs[e->begin % MOST];
        uint64_t now = oct_clock_ns(), wake_ns = until_ns;
        if (e->begin < e->end && f->ready_ns <= now) {
            finish(e, f);
            *done = f->job.out;
            e->begin++;
            result = OCT_OK;
            break;
        }
        if (now >= until_ns)
            break;
        if (e->begin < e->end && f->ready_ns < wake_ns)
            wake_ns = f->ready_ns;
        struct timespec at = oct_clock_deadline((wake_ns - now) / 1000 + 1);
        pthread_cond_timedwait(&e->changed, &e->lock, &at);
    }
    pthread_mutex_unlock(&e->lock);
    return result;
}

static void fake_destroy(struct oct_engine *e)
{
    if (!e)
        return;
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->lock);
    oct_running_dc_destroy(e->dc);
    free(e->dc_line);
    free(e);
}

const struct oct_engine_ops fake_engine = {
    .name = "fake",
    .describe = fake_describe,
    .depth = fake_depth,
    .max_batch = fake_max_batch,
    .submit = fake_submit,
    .collect = fake_collect,
    .destroy = fake_destroy,
};
