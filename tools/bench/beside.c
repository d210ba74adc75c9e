#include "tools/bench/beside.h"

#include "pipeline/base/clock.h"
#include "tools/bench/rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zmq.h>

#define N_ROUNDS OCT_BENCH_BESIDE_ROUNDS
#define SETTLE_NS UINT64_C(700000000)

struct way {
    double *us; /* delays of pictures, [most] */
    size_t n, most;
    double p50_us[N_ROUNDS], p99_us[N_ROUNDS];
    struct oct_bench_beside_way found;
};

struct message {
    bool is_picture;
    double number;
    uint64_t sent_ns;
};

/* Takes a message of the topic bscan or of the analysis. */
static enum oct_err take(struct oct_bench_rig *r, struct message *message, struct oct_error *err)
{
    int patience_ms = OCT_BENCH_PATIENCE_MS, more = 1;
    size_t more_bytes = sizeof(more);
    zmq_setsockopt(r->pictures, ZMQ_RCVTIMEO, &patience_ms, sizeof(patience_ms));
    for (int n = 0; more; n++) {
        zmq_msg_t part;
        zmq_msg_init(&part);
        if (zmq_msg_recv(&part, r->pictures, 0) < 0) {
            zmq_msg_close(&part);
            return oct_fail(err, OCT_E_IO, "octd has sent no picture");
        }
        if (n == 0)
            message->is_picture =
                zmq_msg_size(&part) == 5 && memcmp(zmq_msg_data(&part), "bscan", 5) == 0;
        if (n == 1) {
            cJSON *header = cJSON_ParseWithLength(zmq_msg_data(&part), zmq_msg_size(&part));
            message->number = oct_bench_number(header, NULL, "frame_num");
            message->sent_ns = (uint64_t)fmax(0, oct_bench_number(header, NULL, "time_ns"));
            cJSON_Delete(header);
        }
        zmq_msg_close(&part);
        zmq_getsockopt(r->pictures, ZMQ_RCVMORE, &more, &more_bytes);
    }
    return OCT_OK;
}

/* One round: what comes for so long. Messages of a while before are passed over. */
static enum oct_err watch(struct oct_bench_rig *r, double seconds, struct way *way, unsigned round,
                          struct oct_error *err)
{
    const uint64_t begin = oct_clock_ns() + SETTLE_NS, end = begin + (uint64_t)(seconds * 1e9);
    const size_t first = way->n;
    double newest = -1;
    uint64_t now_ns = 0;
    enum oct_err e = OCT_OK;
    while (!e && now_ns < end) {
        struct message message = {.number = -1};
        e = take(r, &message, err);
        now_ns = oct_clock_ns();
        if (e || now_ns < begin)
            continue;
        if (!message.is_picture && newest >= 0) {
            const double lag = fmax(0, newest - message.number);
            way->found.n_results++;
            way->found.n_lagging += lag > 2;
            way->found.most_lag = fmax(way->found.most_lag, lag);
        } else if (message.is_picture) {
            newest = message.number;
            if (way->us && way->n < way->most)
                way->us[way->n++] = (double)(now_ns - message.sent_ns) * 1e-3;
        }
    }
    const size_t n = way->n - first;
    way->p50_us[round] = oct_bench_median(way->us + first, n); /* sorts */
    way->p99_us[round] = n ? way->us[first + (size_t)(0.99 * (double)(n - 1))] : 0;
    return e;
}

static enum oct_err set(const struct oct_bench_rig *r, const char *key, const char *value,
                        struct oct_error *err)
{
    char request[128];
    snprintf(request, sizeof(request), "{\"cmd\":\"set\",\"key\":\"%s\",\"value\":\"%s\"}", key,
             value);
    cJSON *reply = oct_bench_rig_ask(r, request);
    bool granted = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(reply, "ok"));
    cJSON_Delete(reply);
    return granted ? OCT_OK : oct_fail(err, OCT_E_IO, "octd does not take %s = %s", key, value);
}

static enum oct_err conclude(const struct oct_bench_rig *r, struct way ways[2],
                             struct oct_bench_beside_found *found, struct oct_error *err)
{
    if (ways[0].n == 0 || ways[1].n == 0)
        return oct_fail(err, OCT_E_IO, "octd has sent no pictures");
    for (int k = 0; k < 2; k++) {
        ways[k].found.n_pictures = ways[k].n;
        ways[k].found.p50_us = oct_bench_median(ways[k].p50_us, N_ROUNDS);
        ways[k].found.p99_us = oct_bench_median(ways[k].p99_us, N_ROUNDS);
        found->ways[k] = ways[k].found;
    }
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

static enum oct_err measure(struct oct_bench_rig *r, const struct oct_bench_beside *beside,
                            double seconds, struct oct_bench_beside_found *found,
                            struct oct_error *err)
{
    struct way ways[2] = {{.n = 0}, {.n = 0}};
    const double per_s = beside->rate_hz / r->scene.plan->geometry.n_lines;
    enum oct_err e = OCT_OK;
    zmq_setsockopt(r->pictures, ZMQ_SUBSCRIBE, beside->topic, strlen(beside->topic));
    for (int k = 0; k < 2; k++) {
        ways[k].most = (size_t)(2 * N_ROUNDS * seconds * per_s) + 1000;
        ways[k].us = calloc(ways[k].most, sizeof(*ways[k].us));
        if (!ways[k].us)
            e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the delays");
    }
    if (e)
        goto fail;
    e = oct_bench_camera_start(r, err);
    for (unsigned round = 0; round < N_ROUNDS && !e; round++)
        for (int k = 0; k < 2 && !e; k++) {
            e = set(r, beside->key, beside->values[k], err);
            if (!e)
                e = watch(r, seconds, &ways[k], round, err);
        }
    if (!e)
        e = conclude(r, ways, found, err);
    oct_bench_camera_end(r);
fail:
    free(ways[0].us);
    free(ways[1].us);
    return e;
}

enum oct_err oct_bench_beside(const struct oct_config *config,
                              const struct oct_bench_beside *beside, double seconds,
                              struct oct_bench_beside_found *found, struct oct_error *err)
{
    struct oct_bench_rig r;
    *found = (struct oct_bench_beside_found){.status = NULL};
    enum oct_err e = oct_bench_rig_open(&r, config, beside->rate_hz, err);
    if (!e)
        e = oct_bench_rig_start(&r, err);
    if (!e)
        e = oct_bench_rig_await(&r, err);
    if (!e)
        e = measure(&r, beside, seconds, found, err);
    oct_bench_rig_close(&r, e != OCT_OK);
    return e;
}
