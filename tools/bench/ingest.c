/* Lines in: the ingest thread and the raw ring, behind it a reader that lets go of each B-scan at
 * once. Over ZeroMQ beside a bare receive loop into one buffer, through shared memory beside a
 * memcpy of the same bytes into a memory as large as the ring. */
#define _GNU_SOURCE /* mallopt */
#include "pipeline/ingest/ingest.h"
#include "octd/client.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/thread.h"
#include "pipeline/flow/slots.h"
#include "tools/bench/part.h"
#include "tools/bench/scene.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#define N_TURNS 11
#define PATIENCE_NS UINT64_C(20000000000)

/* A camera that waits only for room. */
struct camera {
    const struct oct_bench_scene *scene;
    char endpoint[OCT_CONFIG_STRING_BYTES];
    bool borrow;
    uint64_t n_bscans;
    bool failed;
    pthread_t thread;
};

static bool send_bscan(struct oct_client *client, const struct camera *c, uint64_t b)
{
    const struct oct_geometry *g = &c->scene->plan->geometry;
    uint16_t *from = c->scene->in[b % OCT_BENCH_FRAMES].spectra, *to;
    if (!c->borrow)
        return oct_client_send_owned(client, from, g->n_lines, b, NULL, NULL) == OCT_CLIENT_OK;
    if (oct_client_borrow(client, g->n_lines, &to))
        return false;
    memcpy(to, from, oct_geometry_spectra_bytes(g));
    return oct_client_send_borrowed(client, g->n_lines, b) == OCT_CLIENT_OK;
}

static void *run_camera(void *argument)
{
    struct camera *c = argument;
    const struct oct_client_options options = {.wait_ms = 10000, .linger_ms = 10000};
    struct oct_client *client;
    c->failed = oct_client_connect(&client, c->endpoint, c->scene->plan->geometry.n_samples,
                                   &options, NULL, 0) != OCT_CLIENT_OK;
    if (c->failed)
        return NULL;
    oct_client_start(client);
    for (uint64_t b = 0; b < c->n_bscans && !c->failed; b++)
        c->failed = !send_bscan(client, c, b);
    oct_client_close(client);
    return NULL;
}

/* ---- the daemon's end ---- */

struct rig {
    struct oct_bench_scene scene;
    void *context;
    struct oct_ring *ring;
    struct oct_ingest *ingest;
    struct camera camera;
};

static void close_rig(struct rig *r)
{
    oct_ingest_destroy(r->ingest);
    oct_ring_destroy(r->ring);
    if (r->context)
        zmq_ctx_term(r->context);
    oct_bench_scene_finish(&r->scene);
}

static enum oct_err open_rig(struct rig *r, const struct oct_config *config, const char *endpoint,
                             struct oct_error *err)
{
    /* Sets the process up as octd does (daemon/main.c); the bare loop becomes faster by it too. */
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    *r = (struct rig){.context = zmq_ctx_new()};
    enum oct_err e = oct_bench_scene_init(&r->scene, config, 0, err);
    if (e)
        return e;
    const struct oct_geometry *g = &r->scene.plan->geometry;
    const struct oct_ingest_options options = {
        .endpoint = endpoint,
        .queue_messages = config->ingest.queue_messages,
        .max_message_bytes = (uint64_t)config->ingest.max_message_mb << 20,
        .lend = true, /* as octd does before an engine that needs no pinned memory */
        .open = true,
    };
    e = oct_ring_create(&r->ring, config->pipeline.ring_bscans, oct_raw_slot_bytes(g), NULL, NULL,
                        err);
    if (e == OCT_OK)
        e = oct_ingest_create(&r->ingest, r->context, g, r->ring, &options, err);
    if (e)
        return e;
    r->camera = (struct camera){.scene = &r->scene, .borrow = strncmp(endpoint, "shm", 3) == 0};
    snprintf(r->camera.endpoint, sizeof(r->camera.endpoint), "%s", oct_ingest_endpoint(r->ingest));
    return OCT_OK;
}

static enum oct_err start_camera(struct rig *r, uint64_t n_bscans, struct oct_error *err)
{
    r->camera.n_bscans = n_bscans;
    return oct_thread_start(&r->camera.thread, NULL, run_camera, &r->camera, "camera thread", err);
}

static enum oct_err end_camera(struct rig *r, struct oct_error *err)
{
    pthread_join(r->camera.thread, NULL);
    return r->camera.failed ? oct_fail(err, OCT_E_IO, "the camera could not send") : OCT_OK;
}

/* Seconds from the first B-scan in the ring to the last. */
static enum oct_err time_ingest(struct rig *r, uint64_t n, double *seconds, struct oct_error *err)
{
    struct oct_ring_reader *reader = oct_ring_reader_create(r->ring, true, 0);
    uint64_t begin = 0, slot, missing = 0;
    enum oct_err e = reader ? start_camera(r, n, err) : oct_fail(err, OCT_E_NO_MEMORY, "no reader");
    if (e)
        return e;
    for (uint64_t b = 0; b < n && !e; b++) {
        e = oct_ring_read(reader, PATIENCE_NS / 1000, &slot);
        if (e)
            break;
        missing += oct_raw_slot(r->ring, slot, &r->scene.plan->geometry)->info.missing_lines;
        oct_ring_release(reader);
        begin = begin ? begin : oct_clock_ns();
    }
    *seconds = (double)(oct_clock_ns() - begin) * 1e-9;
    oct_ring_reader_destroy(reader);
    enum oct_err ended = end_camera(r, err);
    if (!ended && (e || missing))
        ended = oct_fail(err, OCT_E_IO, "lines were lost on the way in");
    return ended;
}

/* ---- the limits ---- */

/* The same messages into one buffer. */
static enum oct_err time_bare_receive(struct rig *r, const struct oct_config *config, uint64_t n,
                                      double *seconds, struct oct_error *err)
{
    size_t bytes = oct_geometry_spectra_bytes(&r->scene.plan->geometry);
    size_t endpoint_bytes = sizeof(r->camera.endpoint);
    int queue = (int)config->ingest.queue_messages, patience_ms = 20000;
    void *socket = zmq_socket(r->context, ZMQ_PULL);
    struct camera ours = r->camera;
    char header[64], *buffer = malloc(bytes);
    uint64_t begin = 0;
    bool whole =
        buffer && zmq_setsockopt(socket, ZMQ_RCVHWM, &queue, sizeof(queue)) == 0 &&
        zmq_setsockopt(socket, ZMQ_RCVTIMEO, &patience_ms, sizeof(patience_ms)) == 0 &&
        zmq_bind(socket, "tcp://127.0.0.1:*") == 0 &&
        zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, r->camera.endpoint, &endpoint_bytes) == 0;
    enum oct_err e = whole ? start_camera(r, n, err) : oct_fail(err, OCT_E_IO, "no bare socket");
    for (uint64_t b = 0; b < n && whole && !e; b++) {
        whole = zmq_recv(socket, header, sizeof(header), 0) == (int)sizeof(header) &&
                zmq_recv(socket, buffer, bytes, 0) == (int)bytes;
        begin = begin ? begin : oct_clock_ns();
    }
    *seconds = (double)(oct_clock_ns() - begin) * 1e-9;
    e = e ? e : end_camera(r, err);
    if (!e && !whole)
        e = oct_fail(err, OCT_E_IO, "the bare receive loop lost messages");
    memcpy(r->camera.endpoint, ours.endpoint, sizeof(ours.endpoint));
    zmq_close(socket);
    free(buffer);
    return e;
}

static enum oct_err time_memcpy(struct rig *r, const struct oct_config *config, uint64_t n,
                                double *seconds, struct oct_error *err)
{
    (void)config;
    size_t bytes = oct_geometry_spectra_bytes(&r->scene.plan->geometry);
    uint64_t n_slots = oct_ring_n_slots(r->ring);
    char *memory = malloc(n_slots * bytes);
    if (!memory)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the memcpy");
    memset(memory, 1, n_slots * bytes);
    uint64_t begin = oct_clock_ns();
    for (uint64_t b = 0; b < n; b++)
        memcpy(memory + b % n_slots * bytes, r->scene.in[b % OCT_BENCH_FRAMES].spectra, bytes);
    *seconds = (double)(oct_clock_ns() - begin) * 1e-9;
    bool right = memcmp(memory, r->scene.in[0].spectra, 2) == 0 || n >= n_slots;
    free(memory);
    return right ? OCT_OK : oct_fail(err, OCT_E_FORMAT, "memcpy did not copy");
}

/* ---- the parts ---- */

typedef enum oct_err time_limit(struct rig *r, const struct oct_config *config, uint64_t n,
                                double *seconds, struct oct_error *err);

static enum oct_err measure(const struct oct_config *config,
                            const struct oct_bench_options *options, const char *endpoint,
                            time_limit *limit, struct oct_bench_row *row, struct oct_error *err)
{
    struct rig r;
    double took = 1, ours[N_TURNS], limits[N_TURNS];
    enum oct_err e = open_rig(&r, config, endpoint, err);
    e = e ? e : time_ingest(&r, 200, &took, err);
    double per_turn = options->seconds / (2 * N_TURNS);
    uint64_t n = 200 + (uint64_t)(200 * per_turn / took);
    /* Measures both in turn, so that what else runs on the machine slows both. */
    for (int i = 0; i < N_TURNS && !e; i++) {
        e = limit(&r, config, n, &limits[i], err);
        e = e ? e : time_ingest(&r, n, &ours[i], err);
    }
    if (!e) {
        /* Takes the median, not the best: where several threads share few cores, a lucky schedule
         * makes a turn shorter than it is as a rule. */
        double ours_s = oct_bench_median(ours, N_TURNS);
        double limit_s = oct_bench_median(limits, N_TURNS);
        double gb = (double)n * (double)oct_geometry_spectra_bytes(&r.scene.plan->geometry) * 1e-9;
        row->value = gb / ours_s;
        row->limit = gb / limit_s;
        snprintf(row->note, sizeof(row->note), "%.0f A-lines/s",
                 (double)n * r.scene.plan->geometry.n_lines / ours_s);
        snprintf(row->what, sizeof(row->what), "%u-line blocks into the ring",
                 r.scene.plan->geometry.n_lines);
    }
    close_rig(&r);
    return e;
}

enum oct_err oct_bench_ingest_rate(const struct oct_config *config, const char *endpoint,
                                   double seconds, double *hz, struct oct_error *err)
{
    enum { FIRST = 200 };
    struct rig r;
    double took = 1;
    enum oct_err e = open_rig(&r, config, endpoint, err);
    e = e ? e : time_ingest(&r, FIRST, &took, err);
    const uint64_t n = FIRST + (uint64_t)(FIRST * seconds / took);
    e = e ? e : time_ingest(&r, n, &took, err);
    *hz = e ? 0 : (double)n * r.scene.plan->geometry.n_lines / took;
    close_rig(&r);
    return e;
}

enum oct_err oct_bench_ingest(const struct oct_config *config,
                              const struct oct_bench_options *options, struct oct_bench_rows *rows,
                              struct oct_error *err)
{
    return measure(config, options, "tcp://127.0.0.1:*", time_bare_receive,
                   oct_bench_add(rows, "ingest", "bare zmq_recv loop", "GB/s", 0.9), err);
}

enum oct_err oct_bench_shm(const struct oct_config *config, const struct oct_bench_options *options,
                           struct oct_bench_rows *rows, struct oct_error *err)
{
    char endpoint[64];
    snprintf(endpoint, sizeof(endpoint), "shm://bench-%d", (int)getpid());
    return measure(config, options, endpoint, time_memcpy,
                   oct_bench_add(rows, "shm", "memcpy of the same bytes", "GB/s", 0.8), err);
}
