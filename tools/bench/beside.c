#include "tools/bench/beside.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/thread.h"
#include "pipeline/net/control_client.h"
#include "tools/bench/part.h"
#include "tools/bench/rig.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <zmq.h>

#define N_ROUNDS OCT_BENCH_BESIDE_ROUNDS
#define SETTLE_NS UINT64_C(700000000)
#define ASK_EVERY_NS 10000000
#define SLOW_REPLY_US 1e5
#define MOST_BUSY 256u

/* Delays, of a round each from `first` on. */
struct delays {
    double *us; /* [most] */
    size_t n, first, most;
};

struct way {
    struct delays pictures, replies;
    double p50_us[N_ROUNDS], p99_us[N_ROUNDS], reply_p99_us[N_ROUNDS];
    struct oct_bench_beside_way found;
};

/* ---- programs beside octd ---- */

struct busy {
    pid_t pids[MOST_BUSY];
    unsigned n;
};

/* They stand still until they are let go, and are forked before this program asks for slices that
 * others do not. */
static enum oct_err start_busy(struct busy *busy, unsigned n, struct oct_error *err)
{
    for (busy->n = 0; busy->n < n && busy->n < MOST_BUSY; busy->n++) {
        pid_t pid = fork();
        if (pid < 0)
            return oct_fail(err, OCT_E_IO, "a busy program does not start");
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            raise(SIGSTOP);
            for (volatile unsigned i = 0;; i++)
                ;
        }
        busy->pids[busy->n] = pid;
    }
    return OCT_OK;
}

static void let_busy_go(const struct busy *busy)
{
    for (unsigned i = 0; i < busy->n; i++)
        kill(busy->pids[i], SIGCONT);
}

static void end_busy(const struct busy *busy)
{
    for (unsigned i = 0; i < busy->n; i++) {
        kill(busy->pids[i], SIGKILL);
        waitpid(busy->pids[i], NULL, 0);
    }
}

/* ---- replies ---- */

struct asker {
    const struct oct_bench_rig *rig;
    struct delays *replies;
    atomic_bool ends;
    pthread_t thread;
};

static void *ask_again_and_again(void *argument)
{
    struct asker *a = argument;
    char endpoint[128];
    const struct oct_control_client_setup setup = {.endpoint = endpoint};
    struct oct_control_client *client;
    snprintf(endpoint, sizeof(endpoint), "ipc://%s/control", a->rig->folder);
    if (oct_control_client_create(&client, &setup, NULL))
        return NULL;
    while (!atomic_load(&a->ends)) {
        char *reply = NULL;
        const uint64_t begin_ns = oct_clock_ns();
        /* An answer of the same length both ways: a status has more to say with analyses. */
        oct_control_client_ask(client, "{\"cmd\":\"get\",\"key\":\"scan.lines\"}",
                               OCT_BENCH_PATIENCE_MS, &reply, NULL, NULL);
        free(reply);
        struct delays *d = a->replies;
        if (d->n < d->most)
            d->us[d->n++] = (double)(oct_clock_ns() - begin_ns) * 1e-3;
        nanosleep(&(struct timespec){.tv_nsec = ASK_EVERY_NS}, NULL);
    }
    oct_control_client_destroy(client);
    return NULL;
}

static void note_result(struct oct_bench_beside_way *found, double lag)
{
    found->n_results++;
    found->n_lagging += lag > 2;
    found->most_lag = fmax(found->most_lag, lag);
}

/* What comes until then. Messages of a while before are passed over. */
static enum oct_err watch(struct oct_bench_rig *r, double seconds, struct way *way,
                          struct oct_error *err)
{
    const uint64_t begin = oct_clock_ns() + SETTLE_NS, end = begin + (uint64_t)(seconds * 1e9);
    struct delays *d = &way->pictures;
    double newest = -1;
    uint64_t now_ns = 0;
    enum oct_err e = OCT_OK;
    while (!e && now_ns < end) {
        struct oct_bench_message message = {.number = -1};
        e = oct_bench_message_take(r, &message, err);
        now_ns = oct_clock_ns();
        if (e || now_ns < begin)
            continue;
        if (!message.is_picture && newest >= 0) {
            note_result(&way->found, fmax(0, newest - message.number));
        } else if (message.is_picture) {
            if (newest >= 0)
                way->found.n_missing += (uint64_t)fmax(0, message.number - newest - 1);
            newest = message.number;
            if (d->n < d->most)
                d->us[d->n++] = (double)(now_ns - message.sent_ns) * 1e-3;
        }
    }
    return e;
}

/* p99 of the newest round, which is sorted; the next begins. */
static double end_round(struct delays *d, double *p50_us)
{
    const size_t n = d->n - d->first;
    double *us = d->us + d->first;
    *p50_us = oct_bench_median(us, n); /* sorts */
    d->first = d->n;
    return n ? us[(size_t)(0.99 * (double)(n - 1))] : 0;
}

static enum oct_err watch_round(struct oct_bench_rig *r, double seconds, struct way *way,
                                unsigned round, struct oct_error *err)
{
    struct asker asker = {.rig = r, .replies = &way->replies};
    double reply_p50_us;
    enum oct_err e =
        oct_thread_start(&asker.thread, "asker", ask_again_and_again, &asker, "asker", err);
    if (e)
        return e;
    e = watch(r, seconds, way, err);
    atomic_store(&asker.ends, true);
    pthread_join(asker.thread, NULL);
    way->p99_us[round] = end_round(&way->pictures, &way->p50_us[round]);
    way->reply_p99_us[round] = end_round(&way->replies, &reply_p50_us);
    return e;
}

static bool is_idle(const cJSON *status, double than)
{
    (void)than;
    return oct_bench_phase_is(status, "idle");
}

/* And waits until the stream has ended. */
static enum oct_err stop(const struct oct_bench_rig *r, struct oct_error *err)
{
    bool came;
    const enum oct_err e = oct_bench_rig_command(r, "{\"cmd\":\"stop\"}", err);
    if (e)
        return e;
    cJSON_Delete(oct_bench_rig_until(r, is_idle, 0, &came));
    return came ? OCT_OK : oct_fail(err, OCT_E_IO, "octd does not stop");
}

/* Which of the values: 0 or 1. */
static enum oct_err change(const struct oct_bench_rig *r, const struct oct_bench_beside *beside,
                           int which, struct oct_error *err)
{
    char request[160];
    enum oct_err e = beside->restarts ? stop(r, err) : OCT_OK;
    for (const struct oct_bench_setting *s = beside->settings; s->key && !e; s++) {
        snprintf(request, sizeof(request), "{\"cmd\":\"set\",\"key\":\"%s\",\"value\":\"%s\"}",
                 s->key, s->values[which]);
        e = oct_bench_rig_command(r, request, err);
    }
    if (!e && beside->restarts)
        e = oct_bench_rig_command(r, "{\"cmd\":\"start\"}", err);
    return e || !beside->restarts ? e : oct_bench_rig_await(r, err);
}

static void conclude_way(struct way *way, struct oct_bench_beside_way *found)
{
    const struct delays *replies = &way->replies;
    *found = way->found;
    found->n_pictures = way->pictures.n;
    found->n_replies = replies->n;
    for (size_t i = 0; i < replies->n; i++) {
        found->n_slow_replies += replies->us[i] > SLOW_REPLY_US;
        found->reply_most_us = fmax(found->reply_most_us, replies->us[i]);
    }
    found->p50_us = oct_bench_median(way->p50_us, N_ROUNDS);
    found->p99_us = oct_bench_median(way->p99_us, N_ROUNDS);
    found->reply_p99_us = oct_bench_median(way->reply_p99_us, N_ROUNDS);
}

static enum oct_err conclude(const struct oct_bench_rig *r, struct way ways[2],
                             struct oct_bench_beside_found *found, struct oct_error *err)
{
    if (ways[0].replies.n == 0 || ways[1].replies.n == 0)
        return oct_fail(err, OCT_E_IO, "octd has answered no question");
    if (ways[0].pictures.n == 0 || ways[1].pictures.n == 0)
        return oct_fail(err, OCT_E_IO, "octd has sent no pictures");
    for (int k = 0; k < 2; k++)
        conclude_way(&ways[k], &found->ways[k]);
    found->status = oct_bench_rig_status(r);
    const double ring_full = oct_bench_number(found->status, "bscans_dropped", "ring_full");
    const double engine = oct_bench_number(found->status, "bscans_dropped", "engine");
    if (ring_full < 0 || engine < 0) {
        cJSON_Delete(found->status);
        found->status = NULL;
        return oct_fail(err, OCT_E_IO, "octd does not say how many B-scans it dropped");
    }
    found->n_dropped = ring_full + engine;
    return OCT_OK;
}

static bool alloc_delays(struct delays *d, double per_s, double seconds)
{
    d->most = (size_t)(2 * N_ROUNDS * (seconds + 2) * per_s) + 1000;
    d->us = calloc(d->most, sizeof(*d->us));
    return d->us != NULL;
}

static enum oct_err measure(struct oct_bench_rig *r, const struct oct_bench_beside *beside,
                            const struct busy *busy, double seconds,
                            struct oct_bench_beside_found *found, struct oct_error *err)
{
    struct way ways[2] = {{.found = {0}}, {.found = {0}}};
    const double per_s = beside->rate_hz / r->scene.plan->geometry.n_lines;
    enum oct_err e = OCT_OK;
    zmq_setsockopt(r->pictures, ZMQ_SUBSCRIBE, beside->topic, strlen(beside->topic));
    for (int k = 0; k < 2; k++)
        if (!alloc_delays(&ways[k].pictures, per_s, seconds) ||
            !alloc_delays(&ways[k].replies, 1e9 / ASK_EVERY_NS, seconds))
            e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the delays");
    let_busy_go(busy);
    e = e ? e : oct_bench_camera_start(r, err);
    for (unsigned round = 0; round < N_ROUNDS && !e; round++)
        for (int k = 0; k < 2 && !e; k++) {
            e = change(r, beside, k, err);
            e = e ? e : watch_round(r, seconds, &ways[k], round, err);
        }
    e = e ? e : conclude(r, ways, found, err);
    oct_bench_camera_end(r);
    for (int k = 0; k < 2; k++) {
        free(ways[k].pictures.us);
        free(ways[k].replies.us);
    }
    return e;
}

enum oct_err oct_bench_beside(const struct oct_config *config,
                              const struct oct_bench_beside *beside, double seconds,
                              struct oct_bench_beside_found *found, struct oct_error *err)
{
    struct oct_bench_rig r;
    struct busy busy = {.n = 0};
    *found = (struct oct_bench_beside_found){.status = NULL};
    enum oct_err e = start_busy(&busy, beside->n_busy, err);
    if (e) {
        end_busy(&busy);
        return e;
    }
    /* Camera, viewer, their sockets: what is measured is octd. A camera that came late would bring
     * several B-scans at once, which wait for one another. */
    const uint32_t priority = config->daemon.realtime_priority;
    if (priority == 0 || oct_threads_ask_realtime(priority, NULL))
        oct_threads_ask_short_slices();
    e = oct_bench_rig_open(&r, config, beside->rate_hz, err);
    e = e ? e : oct_bench_rig_run(&r, err);
    e = e ? e : measure(&r, beside, &busy, seconds, found, err);
    end_busy(&busy);
    oct_bench_rig_close(&r, e != OCT_OK);
    return e;
}
