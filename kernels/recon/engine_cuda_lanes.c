/* What the threads of the CUDA engine do, and what happens when a device fails (engine_cuda.c). */
#include "kernels/recon/engine_cuda_lanes.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#define SPIN_US 30u /* a lane looks this long before it sleeps between looks */
#define NAP_US 15u
#define LONGEST_NAP_US 1000u
#define LONGEST_LOOK_NS 200000000u /* more than that between two looks was the machine's doing */

/* ---- faults; all with the lock held ---- */

void oct_lanes_leave(struct oct_engine *engine)
{
    for (unsigned i = 0; i < engine->n_lanes; i++)
        oct_cuda_signs_give_up(&engine->lanes[i].signs);
    if (!engine->holds_memory && engine->n_threads > 0)
        oct_cuda_memory_hold();
    engine->holds_memory = engine->n_threads > 0;
}

/* The engine ends here: everything that is not done is lost. A hanging device may still write into
 * the pictures of lost jobs; they are marked so that nobody reads them. */
void oct_lanes_give_up(struct oct_engine *engine, const struct oct_error *why)
{
    unsigned n_lost = 0;
    uint64_t first_lost = 0, last_lost = 0;

    if (engine->dead)
        return;
    engine->dead = true;
    engine->why = *why;
    oct_lanes_leave(engine);
    for (uint64_t s = engine->first; s < engine->last; s++) {
        struct oct_lane_submission *sub = oct_lanes_submission(engine, s);
        if (sub->progress == FINISHED)
            continue;
        for (unsigned k = 0; k < sub->n; k++) {
            struct oct_image_frame *out = sub->jobs[k].out;
            out->status = OCT_E_BACKEND;
            last_lost = out->info.number;
            first_lost = n_lost++ == 0 ? last_lost : first_lost;
        }
        sub->progress = FINISHED;
    }
    if (n_lost == 0)
        oct_log(OCT_LOG_ERROR, "CUDA engine given up: %s; no B-scan was in flight", why->text);
    else
        oct_log(OCT_LOG_ERROR,
                "CUDA engine given up: %s; it had not finished %u B-scan%s: %llu to %llu",
                why->text, n_lost, n_lost == 1 ? "" : "s", (unsigned long long)first_lost,
                (unsigned long long)last_lost);
    pthread_cond_broadcast(&engine->work);
    pthread_cond_broadcast(&engine->finished);
}

/* Nanoseconds since the last look, and looks. */
static uint64_t since_look(uint64_t *looked_ns)
{
    uint64_t now = oct_clock_ns(), passed_ns = now - *looked_ns;
    *looked_ns = now;
    return passed_ns < LONGEST_LOOK_NS ? passed_ns : LONGEST_LOOK_NS;
}

static void set_busy(struct oct_lane *lane, bool busy)
{
    lane->busy = busy;
    lane->silent_ns = 0;
}

void oct_lanes_look(struct oct_engine *engine)
{
    uint64_t passed_ns = since_look(&engine->looked_ns);
    for (unsigned i = 0; i < engine->n_started; i++) {
        struct oct_lane *lane = &engine->lanes[i];
        uint32_t n_calls = oct_cuda_signs_n_calls(&lane->signs);
        bool moves = !lane->busy || n_calls != lane->n_calls;
        lane->n_calls = n_calls;
        lane->silent_ns = moves ? 0 : lane->silent_ns + passed_ns;
        if (lane->silent_ns <= engine->deadline_us * 1000)
            continue;
        struct oct_error why;
        oct_fail(&why, OCT_E_BACKEND, "GPU %u has not answered for %.1f s",
                 engine->choice.devices[lane->gpu], (double)lane->silent_ns * 1e-9);
        oct_lanes_give_up(engine, &why);
        return;
    }
}

static uint64_t count_moves(const struct oct_engine *engine)
{
    uint64_t n_moves = 0;
    for (unsigned i = 0; i < engine->n_lanes; i++)
        n_moves += oct_cuda_signs_n_calls(&engine->lanes[i].signs);
    return n_moves - engine->n_threads;
}

struct oct_lanes_patience oct_lanes_begin_patience(const struct oct_engine *engine)
{
    return (struct oct_lanes_patience){.looked_ns = oct_clock_ns(), .n_moves = count_moves(engine)};
}

bool oct_lanes_lose_patience(struct oct_lanes_patience *patience, const struct oct_engine *engine,
                             uint64_t limit_us)
{
    uint64_t passed_ns = since_look(&patience->looked_ns), n_moves = count_moves(engine);
    patience->silent_ns = n_moves == patience->n_moves ? patience->silent_ns + passed_ns : 0;
    patience->n_moves = n_moves;
    return patience->silent_ns > limit_us * 1000;
}

/* ---- a lane ---- */

/* The oldest submission for the lane's GPU that nobody works at. Lock held. */
static struct oct_lane_submission *take(struct oct_lane *lane, uint64_t *number)
{
    struct oct_engine *engine = lane->engine;
    for (uint64_t s = engine->first; s < engine->last; s++) {
        struct oct_lane_submission *sub = oct_lanes_submission(engine, s);
        if (sub->progress == WAITING && sub->gpu == lane->gpu) {
            *number = s;
            return sub;
        }
    }
    return NULL;
}

/* Whether the engine still wants this lane to go on; starts its clock again. */
static bool show_progress(struct oct_lane *lane)
{
    struct oct_engine *engine = lane->engine;
    pthread_mutex_lock(&engine->lock);
    set_busy(lane, true);
    bool go_on = !engine->dead;
    pthread_mutex_unlock(&engine->lock);
    return go_on;
}

/* Polls, because the driver's own waits have no deadline. */
static enum oct_err wait_for_device(struct oct_lane *lane, struct oct_error *err)
{
    uint64_t looked_ns = oct_clock_ns(), waited_ns = 0;
    for (;;) {
        enum oct_err e = oct_cuda_lane_poll(lane->device, err);
        if (e != OCT_E_AGAIN)
            return e;
        waited_ns += since_look(&looked_ns);
        const uint64_t waited_us = waited_ns / 1000;
        if (waited_us > lane->engine->deadline_us)
            return oct_fail(err, OCT_E_BACKEND, "GPU %u has not finished a batch in %.1f s",
                            lane->engine->choice.devices[lane->gpu], (double)waited_us * 1e-6);
        if (waited_us < SPIN_US)
            continue;
        /* An eighth late at most, and little to do for a core while a large batch runs. */
        uint64_t nap_us = waited_us / 8 < NAP_US ? NAP_US : waited_us / 8;
        nap_us = nap_us > LONGEST_NAP_US ? LONGEST_NAP_US : nap_us;
        nanosleep(&(struct timespec){.tv_nsec = (long)nap_us * 1000}, NULL);
    }
}

/* Nobody waits for what is in flight: lanes whose turn would come first may have gone. */
static bool is_over(const struct oct_engine *engine)
{
    return engine->dead || engine->stopping;
}

/* Waits until every earlier submission knows its limits, then smooths this one's. */
static bool smooth_in_turn(struct oct_lane *lane, uint64_t number, struct oct_lane_submission *sub,
                           double *lo, double *hi)
{
    struct oct_engine *engine = lane->engine;
    pthread_mutex_lock(&engine->lock);
    set_busy(lane, false); /* the lanes before it have clocks of their own */
    for (uint64_t s = engine->first; s < number && !is_over(engine); s++)
        while (!is_over(engine) && s >= engine->first &&
               !oct_lanes_submission(engine, s)->limits_known)
            pthread_cond_wait(&engine->work, &engine->lock);
    bool go_on = !is_over(engine);
    for (unsigned k = 0; go_on && k < sub->n; k++) {
        const struct oct_engine_job *job = &sub->jobs[k];
        oct_cuda_lane_limits(lane->device, k, &lo[k], &hi[k]);
        if (job->display.range == OCT_RANGE_PERCENTILE)
            oct_smoothed_range_update(&engine->smoothed, job->out->info.acquisition,
                                      job->out->info.volume, job->display.smoothing_bscans, &lo[k],
                                      &hi[k]);
    }
    sub->limits_known = true;
    set_busy(lane, true);
    pthread_cond_broadcast(&engine->work);
    pthread_mutex_unlock(&engine->lock);
    return go_on;
}

static enum oct_err process(struct oct_lane *lane, uint64_t number, struct oct_lane_submission *sub,
                            double *lo, double *hi, struct oct_error *err)
{
    bool needs_end;
    enum oct_err e = oct_cuda_lane_begin(lane->device, &needs_end, err);
    if (!e)
        e = wait_for_device(lane, err);
    if (e || !needs_end) {
        for (unsigned k = 0; !e && k < sub->n; k++)
            oct_cuda_lane_limits(lane->device, k, &lo[k], &hi[k]);
        return e;
    }
    if (!smooth_in_turn(lane, number, sub, lo, hi))
        return oct_fail(err, OCT_E_BACKEND, "the engine was given up meanwhile");
    e = oct_cuda_lane_end(lane->device, lo, hi, err);
    return e || !show_progress(lane) ? e : wait_for_device(lane, err);
}

static void finish(struct oct_lane *lane, struct oct_lane_submission *sub, enum oct_err e,
                   const double *lo, const double *hi, const struct oct_error *err)
{
    struct oct_engine *engine = lane->engine;
    pthread_mutex_lock(&engine->lock);
    set_busy(lane, false);
    if (engine->dead) /* the jobs were handed back; the slots are not ours any more */
        goto out;
    if (e && engine->stopping)
        goto out;
    if (e) {
        oct_lanes_give_up(engine, err);
        goto out;
    }
    for (unsigned k = 0; k < sub->n; k++) {
        struct oct_image_frame *out = sub->jobs[k].out;
        out->lo = lo[k];
        out->hi = hi[k];
        out->status = OCT_OK;
    }
    sub->progress = FINISHED;
    if (sub == oct_lanes_submission(engine, engine->first))
        pthread_cond_broadcast(&engine->finished);
out:
    pthread_mutex_unlock(&engine->lock);
}

static void serve(struct oct_lane *lane)
{
    struct oct_engine *engine = lane->engine;
    double lo[OCT_CUDA_MAX_BATCH] = {0}, hi[OCT_CUDA_MAX_BATCH] = {0};
    struct oct_error err;

    pthread_mutex_lock(&engine->lock);
    while (!engine->stopping && !engine->dead) {
        uint64_t number;
        struct oct_lane_submission *sub = take(lane, &number);
        if (!sub) {
            pthread_cond_wait(&engine->work, &engine->lock);
            continue;
        }
        sub->progress = AT_WORK;
        oct_cuda_lane_take(lane->device, sub->jobs, sub->n); /* now: they are still ours */
        set_busy(lane, true);
        pthread_mutex_unlock(&engine->lock);
        enum oct_err e = process(lane, number, sub, lo, hi, &err);
        finish(lane, sub, e, lo, hi, &err);
        pthread_mutex_lock(&engine->lock);
    }
    pthread_mutex_unlock(&engine->lock);
}

void oct_lanes_free(struct oct_engine *engine)
{
    pthread_cond_destroy(&engine->work);
    pthread_cond_destroy(&engine->finished);
    pthread_mutex_destroy(&engine->lock);
    oct_plan_destroy(engine->plan);
    free(engine->jobs);
    free(engine->submissions);
    free(engine);
}

/* The last act of a thread; of the last one, when destroy has gone without it. */
void oct_lanes_end_thread(struct oct_engine *engine)
{
    pthread_mutex_lock(&engine->lock);
    bool is_last = --engine->n_threads == 0 && engine->abandoned;
    if (engine->n_threads == 0 && engine->holds_memory)
        oct_cuda_memory_let_go();
    pthread_cond_broadcast(&engine->finished);
    pthread_mutex_unlock(&engine->lock);
    if (is_last)
        oct_lanes_free(engine);
}

/* The engine cannot start. */
void oct_lanes_refuse(struct oct_engine *engine, const struct oct_error *why)
{
    pthread_mutex_lock(&engine->lock);
    if (!engine->dead) {
        engine->dead = true;
        engine->why = *why;
    }
    pthread_cond_broadcast(&engine->finished);
    pthread_mutex_unlock(&engine->lock);
}

void *oct_lanes_run(void *argument)
{
    struct oct_lane *lane = argument;
    struct oct_engine *engine = lane->engine;
    struct oct_error err;

    prctl(PR_SET_NAME, "octd-cuda");
    prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul); /* naps of 15 us, not of 65 */
    enum oct_err e =
        oct_cuda_lane_create(&lane->device, engine->choice.devices[lane->gpu], engine->plan,
                             engine->choice.kernels, engine->max_batch, &lane->signs, &err);
    if (e) {
        oct_lanes_refuse(engine, &err);
    } else {
        pthread_mutex_lock(&engine->lock);
        lane->ready = true;
        pthread_cond_broadcast(&engine->finished);
        pthread_mutex_unlock(&engine->lock);
        serve(lane);
    }
    oct_cuda_lane_destroy(lane->device);
    oct_lanes_end_thread(engine);
    return NULL;
}
