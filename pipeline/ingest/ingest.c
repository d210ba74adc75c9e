#include "pipeline/ingest/ingest.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"
#include "pipeline/base/thread.h"
#include "pipeline/ingest/peers.h"
#include "pipeline/ingest/shm_source.h"
#include "pipeline/ingest/shm_store.h"
#include "pipeline/net/connections.h"
#include "pipeline/net/zsocket.h"
#include "pipeline/wire/shm_layout.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

/* Blocks of lines that are not copied: a slot of the raw ring may borrow the memory of a message,
 * or a slot of shared memory. It is given back when the raw slot has no readers any more.
 *
 * One thread calls everything (the ingest thread once it runs); others read the memory meanwhile,
 * through the raw ring. */

struct loan {
    enum { NOTHING, A_MESSAGE, A_SHARED_SLOT } what;
    zmq_msg_t message;
    struct oct_shm_store *store;
    uint32_t shared_slot;
};

struct oct_loans {
    unsigned n_slots;
    struct loan loans[];
};

/* Gives back what the raw slot borrows; it has no readers any more. Fine for one that borrows
 * nothing. */
static void loans_give_back(struct oct_loans *l, uint64_t slot)
{
    struct loan *loan = &l->loans[slot % l->n_slots];
    if (loan->what == A_MESSAGE)
        zmq_msg_close(&loan->message);
    else if (loan->what == A_SHARED_SLOT)
        oct_shm_store_give_back(loan->store, loan->shared_slot);
    loan->what = NOTHING;
}

/* For a ring of n_slots. NULL when out of memory. */
static struct oct_loans *loans_create(unsigned n_slots)
{
    struct oct_loans *l = calloc(1, sizeof(*l) + n_slots * sizeof(l->loans[0]));
    if (l)
        l->n_slots = n_slots;
    return l;
}

/* Gives everything back: the raw ring must have no readers any more. NULL is fine. */
static void loans_destroy(struct oct_loans *l)
{
    for (unsigned k = 0; l && k < l->n_slots; k++)
        loans_give_back(l, k);
    free(l);
}

/* Lets the raw slot, which must borrow nothing now, borrow the message or the block, as several
 * may; the block stays taken, and must not be released, until all have given it back. */
static void loans_add_message(struct oct_loans *l, uint64_t slot, zmq_msg_t *payload)
{
    struct loan *loan = &l->loans[slot % l->n_slots];
    loan->what = A_MESSAGE;
    zmq_msg_init(&loan->message);
    zmq_msg_copy(&loan->message, payload); /* the same memory */
}

static void loans_add_shared(struct oct_loans *l, uint64_t slot, struct oct_shm_store *store,
                             const struct oct_shm_block *block)
{
    struct loan *loan = &l->loans[slot % l->n_slots];
    loan->what = A_SHARED_SLOT;
    loan->store = store;
    loan->shared_slot = block->slot;
    oct_shm_store_keep(store, block);
}

#define POLL_MS 10           /* a stop is noticed within this; its reply may take 100 ms in all */
#define PATIENCE_US 1000000u /* of a B-scan for a slot; the sender's queue fills meanwhile */
#define DRAIN_NS 1000000000u /* a sender that never pauses cannot prevent a stop */
#define PARTS_AT_ONCE 4096   /* dropped before the gate and the ring get their turn */
#define LEAST_SLOTS 3        /* one is filled, one waits, one is read */
#define LEAST_SLOT_BYTES (UINT64_C(256) << 10) /* a block holds several short B-scans */

/* Requests of the owner and what the thread has done of them; both numbers only grow. */
struct oct_ingest {
    void *socket; /* the thread's own once it runs */
    struct oct_assembler *assembler;
    struct oct_door *door;
    struct oct_peers *peers;       /* the thread's own; NULL: failed connections are not observed */
    struct oct_shm_source *shared; /* NULL: lines come through the socket */
    struct oct_loans *loans;       /* NULL: lines are copied */
    unsigned n_ring_slots;
    struct taking {
        zmq_msg_t *payload;          /* of the message that is being taken */
        struct oct_shm_block *block; /* or the block of shared memory that it names */
        bool lent;                   /* the block */
    } taking;
    uint64_t idle_ns;
    bool in_rest;   /* dropping the rest of a message with too many parts */
    uint64_t n_cut; /* connections, of those counted: see connections.h */
    char endpoint[OCT_ENDPOINT_BYTES];
    pthread_t thread;
    atomic_uint_fast64_t ignored, looks;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool want_open, is_open, want_end;
};

/* ---- lines that are not copied ---- */

/* Of a block's B-scans the first may be given back before the last has a slot, but never all: a
 * loan lasts until its place in the ring is needed again. */
static bool lend(void *owner, uint64_t slot)
{
    struct oct_ingest *in = owner;
    struct oct_shm_store *store = in->shared ? oct_shm_source_store(in->shared) : NULL;
    if (!in->taking.block) {
        loans_add_message(in->loans, slot, in->taking.payload);
        return true;
    }
    if (!oct_shm_store_is_adopted(store))
        return false;
    in->taking.lent = true;
    loans_add_shared(in->loans, slot, store, in->taking.block);
    return true;
}

static void give_back(void *owner, uint64_t slot)
{
    struct oct_ingest *in = owner;
    loans_give_back(in->loans, slot);
}

static enum oct_err create_loans(struct oct_ingest *in, unsigned n_slots, struct oct_error *err)
{
    const struct oct_lender lender = {.owner = in, .lend = lend, .give_back = give_back};
    in->n_ring_slots = n_slots;
    in->loans = loans_create(n_slots);
    if (!in->loans)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the ingest");
    oct_assembler_set_lender(in->assembler, &lender);
    return OCT_OK;
}

static void stop_lending(struct oct_ingest *in)
{
    oct_assembler_set_lender(in->assembler, &(struct oct_lender){0});
    loans_destroy(in->loans);
    in->loans = NULL;
}

/* ---- shared memory ---- */

/* While there is no memory, messages that name lines in it are refused. */
static enum oct_bad find_block(struct oct_shm_store *store, zmq_msg_t parts[2],
                               struct oct_shm_block *block)
{
    if (store)
        return oct_shm_store_look(store, zmq_msg_data(&parts[0]), zmq_msg_size(&parts[0]),
                                  zmq_msg_data(&parts[1]), zmq_msg_size(&parts[1]), block);
    *block = (struct oct_shm_block){.payload = ""};
    return zmq_msg_size(&parts[1]) ? OCT_BAD_SLOT : OCT_BAD_NONE;
}

/* The slot is given back whether the lines are wanted or not. */
static void take_shared(struct oct_ingest *in, bool accept, zmq_msg_t parts[2])
{
    struct oct_shm_block block;
    struct oct_shm_store *store = oct_shm_source_store(in->shared);
    enum oct_bad bad = find_block(store, parts, &block);
    if (bad && accept)
        oct_assembler_refuse(in->assembler, bad, 2, zmq_msg_data(&parts[0]),
                             zmq_msg_size(&parts[0]));
    in->taking = (struct taking){.block = &block};
    if (!bad && accept)
        oct_assembler_take(in->assembler, zmq_msg_data(&parts[0]), zmq_msg_size(&parts[0]),
                           block.payload, block.bytes, oct_clock_ns());
    if (store && !in->taking.lent)
        oct_shm_store_release(store, &block);
    oct_shm_source_check(in->shared);
}

/* ---- messages ---- */

static void take_parts(struct oct_ingest *in, bool accept, zmq_msg_t parts[2], int n)
{
    if (!accept)
        atomic_fetch_add_explicit(&in->ignored, 1, memory_order_relaxed);
    if (n == 2 && in->shared)
        take_shared(in, accept, parts);
    else if (n == 2 && accept) {
        in->taking = (struct taking){.payload = &parts[1]};
        oct_assembler_take(in->assembler, zmq_msg_data(&parts[0]), zmq_msg_size(&parts[0]),
                           zmq_msg_data(&parts[1]), zmq_msg_size(&parts[1]), oct_clock_ns());
    } else if (accept)
        oct_assembler_refuse(in->assembler, OCT_BAD_PARTS, (unsigned)n, zmq_msg_data(&parts[0]),
                             zmq_msg_size(&parts[0]));
}

/* Does not wait. False: nothing has arrived. */
static bool receive(struct oct_ingest *in, zmq_msg_t *part)
{
    int status;
    do
        status = zmq_msg_recv(part, in->socket, ZMQ_DONTWAIT);
    while (status < 0 && errno == EINTR);
    return status >= 0;
}

/* Drops what follows the second part: a message with more parts holds no lines. */
static void drop_rest(struct oct_ingest *in)
{
    zmq_msg_t part;
    zmq_msg_init(&part);
    for (int n = 0; in->in_rest && n < PARTS_AT_ONCE; n++)
        in->in_rest = receive(in, &part) && zmq_msg_more(&part);
    zmq_msg_close(&part);
}

/* Takes one message, or goes on dropping one of many parts. False: nothing has arrived. */
static bool take_message(struct oct_ingest *in, bool accept)
{
    zmq_msg_t parts[2];
    int n = 0;

    if (in->in_rest) {
        drop_rest(in);
        return true;
    }
    zmq_msg_init(&parts[0]);
    zmq_msg_init(&parts[1]);
    while (n < 2 && receive(in, &parts[n]) && zmq_msg_more(&parts[n++]))
        ;
    in->in_rest = n == 2 && zmq_msg_more(&parts[1]);
    if (n && oct_door_admits(in->door, &parts[0]))
        take_parts(in, accept, parts, in->in_rest ? 3 : n);
    zmq_msg_close(&parts[0]);
    zmq_msg_close(&parts[1]);
    return n > 0;
}

/* Such connections are cut before the last part has arrived. */
static void count_cut(struct oct_ingest *in)
{
    for (uint64_t n = oct_connections_flooded(OCT_CALLERS_CAMERA); in->n_cut < n; in->n_cut++)
        if (in->is_open)
            oct_assembler_count_bad(in->assembler, OCT_BAD_PARTS);
}

/* Takes one message, which waits for room in the ring until then at most. */
static bool take_before(struct oct_ingest *in, uint64_t until_ns)
{
    uint64_t now_ns = oct_clock_ns();
    if (now_ns >= until_ns)
        return false;
    oct_assembler_set_patience(in->assembler, (until_ns - now_ns) / 1000);
    return take_message(in, true);
}

/* Takes what has arrived, then delivers the unfinished B-scan. */
static void close_gate(struct oct_ingest *in)
{
    uint64_t until = oct_clock_ns() + DRAIN_NS;
    zmq_pollitem_t item = {.socket = in->socket, .events = ZMQ_POLLIN};
    while (oct_clock_ns() < until) {
        /* A pause of 20 ms shows that nothing more is on its way through ZeroMQ's own thread; a
         * poll ended by a signal shows nothing. */
        int ready = zmq_poll(&item, 1, 20);
        if (ready == 0 || (ready < 0 && errno != EINTR))
            break;
        while (take_before(in, until))
            ;
    }
    oct_assembler_set_patience(in->assembler, PATIENCE_US);
    oct_assembler_end(in->assembler);
}

static bool has_new_wishes(struct oct_ingest *in)
{
    pthread_mutex_lock(&in->lock);
    bool new = in->want_end || in->want_open != in->is_open;
    pthread_mutex_unlock(&in->lock);
    return new;
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

/* Takes a burst in one go, but looks at the owner's requests between messages, as each may wait
 * long for room in the ring. Returns whether all that had arrived was taken. */
static bool take_burst(struct oct_ingest *in)
{
    bool open = in->is_open; /* only this thread writes is_open */
    for (int n = 0; n < 64 && !has_new_wishes(in) && !(n > 0 && in->in_rest); n++)
        if (!take_message(in, open))
            return true;
    return false;
}

static void *run_ingest(void *argument)
{
    struct oct_ingest *in = argument;
    zmq_pollitem_t item = {.socket = in->socket, .events = ZMQ_POLLIN};
    uint64_t last_ns = oct_clock_ns(), last_lines = 0;

    while (follow_wishes(in)) {
        bool drained = zmq_poll(&item, 1, POLL_MS) <= 0 || take_burst(in);
        count_cut(in);
        oct_assembler_give_back(in->assembler);
        oct_peers_look(in->peers, oct_assembler_driver(in->assembler));
        if (in->shared)
            oct_shm_source_look_after(in->shared, drained);
        atomic_fetch_add_explicit(&in->looks, 1, memory_order_relaxed);
        /* Only lines reset the idle time: junk must not delay a B-scan. */
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

/* Lines that the ring borrows occupy slots: drivers get room for as many B-scans more as the ring
 * has. Where /dev/shm has no room for so many, lines are copied. */
static enum oct_err create_shared(struct oct_ingest *in, struct oct_shm_options *shm,
                                  unsigned slot_bscans, struct oct_error *err)
{
    const unsigned n_slots = shm->n_slots;
    shm->n_slots += in->loans ? (in->n_ring_slots + slot_bscans - 1) / slot_bscans : 0;
    enum oct_err e = oct_shm_source_create(&in->shared, shm, err);
    if (e != OCT_E_NO_MEMORY || !in->loans)
        return e;
    stop_lending(in);
    shm->memory = NULL;
    oct_log(OCT_LOG_INFO,
            "ingest.endpoint: /dev/shm has no room for the ring's %u B-scans: lines "
            "are copied out of shared memory",
            in->n_ring_slots);
    shm->n_slots = n_slots;
    return oct_shm_source_create(&in->shared, shm, err);
}

/* Makes the memory first: a driver that finds the socket then finds the memory too. */
static enum oct_err open_shm(struct oct_ingest *in, void *context,
                             const struct oct_ingest_options *options, const struct oct_geometry *g,
                             struct oct_error *err)
{
    const char *name = options->endpoint + strlen(OCT_SHM_SCHEME);
    const char *bad = oct_shm_bad_name(name);
    const unsigned slot_bscans = options->slot_bscans ? options->slot_bscans : 1;
    const uint64_t slot_bytes = oct_geometry_spectra_bytes(g) * slot_bscans;
    const unsigned n_slots = (options->queue_messages + slot_bscans - 1) / slot_bscans;
    if (bad)
        return oct_fail_key(err, OCT_E_CONFIG, "ingest.endpoint", "ingest.endpoint: '%s' %s",
                            options->endpoint, bad);
    struct oct_shm_options shm = {
        .name = name,
        .group = options->shm_group ? options->shm_group : "",
        .n_slots = n_slots > LEAST_SLOTS || slot_bscans == 1 ? n_slots : LEAST_SLOTS,
        .n_samples = g->n_samples,
        .slot_bytes = slot_bytes > LEAST_SLOT_BYTES ? slot_bytes : LEAST_SLOT_BYTES,
        .memory = in->loans ? options->memory : NULL,
    };
    snprintf(in->endpoint, sizeof(in->endpoint), "%s", options->endpoint);
    enum oct_err e = create_shared(in, &shm, slot_bscans, err);
    if (!e && shm.memory && !oct_shm_store_is_adopted(oct_shm_source_store(in->shared)))
        oct_log(OCT_LOG_INFO,
                "%s: the GPU's driver does not pin the shared memory: lines are "
                "copied out of it",
                in->endpoint);
    return e ? e : oct_shm_source_bind(in->shared, context, options->door, &in->socket, err);
}

static enum oct_err start_thread(struct oct_ingest *in, void *context,
                                 const struct oct_ingest_options *options,
                                 const struct oct_geometry *g, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    if (oct_shm_is_endpoint(options->endpoint))
        e = open_shm(in, context, options, g, err);
    else
        in->socket = oct_zsocket_bind(
            context, ZMQ_PULL, options->endpoint, "ingest.endpoint", (int)options->queue_messages,
            (int64_t)options->max_message_bytes, options->door, in->endpoint, err);
    if (e || !in->socket)
        return e ? e : OCT_E_IO;
    if (!options->door) /* a door monitors the socket's events itself, and a socket has one
                           monitor */
        in->peers = oct_peers_watch(context, in->socket);
    return oct_thread_start(&in->thread, "octd-ingest", run_ingest, in, "ingest thread", err);
}

/* Frees what was made; the thread has ended or was never started. */
static void release(struct oct_ingest *in)
{
    oct_peers_end(in->peers);
    if (in->socket)
        zmq_close(in->socket);
    loans_destroy(in->loans);
    oct_shm_source_destroy(in->shared);
    oct_assembler_destroy(in->assembler);
    pthread_cond_destroy(&in->changed);
    pthread_mutex_destroy(&in->lock);
    free(in);
}

/* Memory that is not the ring's is read if it is adopted: shared memory alone can be. */
static bool may_lend(const struct oct_ingest_options *options)
{
    return options->lend &&
           (!options->memory || (oct_shm_is_endpoint(options->endpoint) && options->memory->adopt));
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
    in->n_cut = oct_connections_flooded(OCT_CALLERS_CAMERA);
    in->want_open = in->is_open = options->open;
    pthread_mutex_init(&in->lock, NULL);
    pthread_cond_init(&in->changed, NULL);
    enum oct_err e = oct_assembler_create(&in->assembler, geometry, raw, PATIENCE_US, err);
    if (e == OCT_OK) {
        oct_assembler_set_losses(in->assembler, options->losses);
        if (options->scan)
            oct_assembler_set_scan(in->assembler, options->scan);
        if (options->epochs)
            oct_assembler_set_epochs(in->assembler, options->epochs);
        if (may_lend(options))
            e = create_loans(in, oct_ring_n_slots(raw), err);
    }
    if (e == OCT_OK) {
        e = start_thread(in, zmq_context, options, geometry, err);
    }
    if (e) {
        release(in);
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
    release(in);
}

const struct oct_ingest_counts *oct_ingest_counts(const struct oct_ingest *in)
{
    return oct_assembler_counts(in->assembler);
}

struct oct_driver_watch *oct_ingest_driver(const struct oct_ingest *in)
{
    return oct_assembler_driver(in->assembler);
}

uint64_t oct_ingest_ignored(const struct oct_ingest *in)
{
    return atomic_load_explicit(&in->ignored, memory_order_relaxed);
}

uint64_t oct_ingest_looks(const struct oct_ingest *in)
{
    return atomic_load_explicit(&in->looks, memory_order_relaxed);
}

uint64_t oct_ingest_reclaimed(const struct oct_ingest *in)
{
    return in->shared ? oct_shm_source_reclaimed(in->shared) : 0;
}

uint64_t oct_ingest_mended(const struct oct_ingest *in)
{
    return in->shared ? oct_shm_source_mended(in->shared) : 0;
}

const char *oct_ingest_endpoint(const struct oct_ingest *in)
{
    return in->endpoint;
}
