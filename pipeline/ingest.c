#define _GNU_SOURCE /* pthread_setname_np */
#include "pipeline/ingest.h"

#include "pipeline/clock.h"
#include "pipeline/zsocket.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <zmq.h>

#define POLL_MS 10           /* a stop is noticed within this, and its reply has 100 ms in all */
#define PATIENCE_US 1000000u /* a B-scan waits a second for a slot; the sender's queue fills */
#define DRAIN_NS 1000000000u /* a sender that never pauses cannot keep us from stopping */

/* What the owner wants and what the thread has done; both only ever grow. */
struct oct_ingest {
    void *socket; /* the thread's own once it runs */
    struct oct_assembler *assembler;
    struct oct_door *door;
    uint64_t idle_ns;
    char endpoint[OCT_ENDPOINT_BYTES];
    pthread_t thread;
    atomic_uint_fast64_t ignored;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool want_open, is_open, want_end;
};

/* Takes one message of any number of parts, waiting not at all. false: nothing there. */
static bool take_message(struct oct_ingest *in, bool accept)
{
    zmq_msg_t parts[2], rest;
    int n = 0, more = 0;

    zmq_msg_init(&parts[0]);
    zmq_msg_init(&parts[1]);
    zmq_msg_init(&rest);
    do {
        zmq_msg_t *part = n < 2 ? &parts[n] : &rest;
        int status;
        do
            status = zmq_msg_recv(part, in->socket, n ? 0 : ZMQ_DONTWAIT);
        while (status < 0 && errno == EINTR);
        if (status < 0)
            break;
        more = zmq_msg_more(part);
        n++;
    } while (more);
    bool admitted = n && oct_door_admits(in->door, &parts[0]);
    if (admitted && !accept)
        atomic_fetch_add_explicit(&in->ignored, 1, memory_order_relaxed);
    else if (admitted && n == 2)
        oct_assembler_take(in->assembler, zmq_msg_data(&parts[0]), zmq_msg_size(&parts[0]),
                           zmq_msg_data(&parts[1]), zmq_msg_size(&parts[1]), oct_clock_ns());
    else if (admitted)
        oct_assembler_count_bad(in->assembler, OCT_BAD_PARTS);
    zmq_msg_close(&parts[0]);
    zmq_msg_close(&parts[1]);
    zmq_msg_close(&rest);
    return n > 0;
}

/* What has arrived by now is taken; then what is unfinished is delivered. */
static void close_gate(struct oct_ingest *in)
{
    uint64_t until = oct_clock_ns() + DRAIN_NS;
    zmq_pollitem_t item = {.socket = in->socket, .events = ZMQ_POLLIN};
    while (oct_clock_ns() < until) {
        /* A pause of 20 ms tells that nothing more is on its way through ZeroMQ's own thread; a
         * signal tells nothing. */
        int ready = zmq_poll(&item, 1, 20);
        if (ready == 0 || (ready < 0 && errno != EINTR))
            break;
        while (oct_clock_ns() < until && take_message(in, true))
            ;
    }
    oct_assembler_end(in->assembler);
}

/* Follows the owner's wishes; false when the thread shall end. */
static bool follow_wishes(struct oct_ingest *in)
{
    pthread_mutex_lock(&in->lock);
    bool open = in->want_open, was_open = in->is_open, end = in->want_end;
    pthread_mutex_unlock(&in->lock);
    if (was_open && (!open || end))
        close_gate(in);
    pthread_mutex_lock(&in->lock);
    in->is_open = open && !end;
    pthread_cond_broadcast(&in->changed);
    pthread_mutex_unlock(&in->lock);
    return !end;
}

static void *run(void *argument)
{
    struct oct_ingest *in = argument;
    zmq_pollitem_t item = {.socket = in->socket, .events = ZMQ_POLLIN};
    uint64_t last_ns = oct_clock_ns(), last_lines = 0;

    while (follow_wishes(in)) {
        bool open = in->is_open; /* only this thread writes it */
        if (zmq_poll(&item, 1, POLL_MS) > 0) {
            /* A burst is taken at one go, but wishes are looked at between. */
            for (int n = 0; n < 64 && take_message(in, open); n++)
                ;
        }
        /* Only lines count as life: junk must not hold a B-scan back. */
        uint64_t lines = oct_assembler_counts(in->assembler)->lines_received;
        if (lines != last_lines) {
            last_lines = lines;
            last_ns = oct_clock_ns();
        } else if (in->idle_ns && oct_assembler_is_open(in->assembler) &&
                   oct_clock_ns() - last_ns > in->idle_ns) {
            oct_assembler_flush(in->assembler, false);
        }
    }
    return NULL;
}

static enum oct_err start(struct oct_ingest *in, void *context,
                          const struct oct_ingest_options *options, struct oct_error *err)
{
    in->socket = oct_zsocket_bind(context, ZMQ_PULL, options->endpoint, "ingest.endpoint",
                                  (int)options->queue_messages, (int64_t)options->max_message_bytes,
                                  options->door, in->endpoint, err);
    if (!in->socket)
        return err ? err->code : OCT_E_IO;
    int status = pthread_create(&in->thread, NULL, run, in);
    if (status) {
        zmq_close(in->socket);
        return oct_fail_errno(err, OCT_E_IO, status, "ingest thread");
    }
    pthread_setname_np(in->thread, "octd-ingest");
    return OCT_OK;
}

enum oct_err oct_ingest_create(struct oct_ingest **out, void *zmq_context,
                               const struct oct_geometry *geometry, struct oct_ring *raw,
                               const struct oct_ingest_options *options, struct oct_error *err)
{
    *out = NULL;
    struct oct_ingest *in = calloc(1, sizeof(*in));
    if (!in)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the ingest");
    in->idle_ns = (uint64_t)(options->idle_s * 1e9);
    in->door = options->door;
    in->want_open = in->is_open = options->open;
    pthread_mutex_init(&in->lock, NULL);
    pthread_cond_init(&in->changed, NULL);
    enum oct_err e = oct_assembler_create(&in->assembler, geometry, raw, PATIENCE_US, err);
    if (e == OCT_OK) {
        oct_assembler_set_losses(in->assembler, options->losses);
        e = start(in, zmq_context, options, err);
    }
    if (e) {
        oct_assembler_destroy(in->assembler);
        pthread_cond_destroy(&in->changed);
        pthread_mutex_destroy(&in->lock);
        free(in);
        return e;
    }
    *out = in;
    return OCT_OK;
}

void oct_ingest_set_gate(struct oct_ingest *in, bool open)
{
    pthread_mutex_lock(&in->lock);
    in->want_open = open;
    while (in->is_open != open && !in->want_end)
        pthread_cond_wait(&in->changed, &in->lock);
    pthread_mutex_unlock(&in->lock);
}

void oct_ingest_ask_gate(struct oct_ingest *in, bool open)
{
    pthread_mutex_lock(&in->lock);
    in->want_open = open;
    pthread_mutex_unlock(&in->lock);
}

bool oct_ingest_gate_is_open(const struct oct_ingest *in)
{
    struct oct_ingest *writable = (struct oct_ingest *)in; /* the lock alone */
    pthread_mutex_lock(&writable->lock);
    bool open = in->is_open;
    pthread_mutex_unlock(&writable->lock);
    return open;
}

void oct_ingest_destroy(struct oct_ingest *in)
{
    if (!in)
        return;
    pthread_mutex_lock(&in->lock);
    in->want_end = true;
    pthread_mutex_unlock(&in->lock);
    pthread_join(in->thread, NULL);
    zmq_close(in->socket);
    oct_assembler_destroy(in->assembler);
    pthread_cond_destroy(&in->changed);
    pthread_mutex_destroy(&in->lock);
    free(in);
}

const struct oct_ingest_counts *oct_ingest_counts(const struct oct_ingest *in)
{
    return oct_assembler_counts(in->assembler);
}

uint64_t oct_ingest_ignored(const struct oct_ingest *in)
{
    return atomic_load_explicit(&in->ignored, memory_order_relaxed);
}

const char *oct_ingest_endpoint(const struct oct_ingest *in)
{
    return in->endpoint;
}
