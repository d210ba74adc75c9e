/* The live source: a thread that takes messages from a ZeroMQ PULL socket and gives them to the
 * assembler, which writes the raw ring. With the endpoint shm://NAME the messages only name the
 * place of the lines in shared memory (shm_layout.h). B-scans that are whole in a block may
 * stay in the memory they arrived in, to which slots of the raw ring then point; other
 * lines are copied once.
 *
 * The gate: while it is closed, messages are received, counted and dropped, so that a start never
 * begins with old lines. Closing the gate first takes what has already arrived. */
#ifndef OCT_PIPELINE_INGEST_INGEST_H
#define OCT_PIPELINE_INGEST_INGEST_H

#include "pipeline/flow/ring.h"
#include "pipeline/ingest/assembler.h"
#include "pipeline/net/door.h"
#include "pipeline/plan/geometry.h"

struct oct_ingest;

struct oct_ingest_options {
    const char *endpoint;    /* tcp://127.0.0.1:5701 (a port of * takes a free one), shm://NAME */
    const char *shm_group;   /* whose members may be drivers too; NULL or "": none */
    unsigned queue_messages; /* shm://: B-scans that slots have room for, plus as many as the ring
                                has if lines are lent */
    unsigned slot_bscans;    /* of a slot of shared memory; 0: one */
    bool lend; /* the ring's readers read other memory; else all lines go into its own */
    const struct oct_memory_ops *memory; /* lend: they read shared memory that this has adopted;
                                            NULL: any */
    uint64_t max_message_bytes;
    double idle_s;               /* an unfinished B-scan is delivered after this pause; 0: never */
    bool open;                   /* the gate at the start */
    const struct oct_scan *scan; /* read by create; NULL: see oct_assembler_set_scan */
    const struct oct_epochs *epochs; /* likewise; NULL: all */
    struct oct_loss_log *losses;     /* see assembler.h; may be NULL */
    struct oct_door *door;           /* borrowed; NULL: anyone on this machine may send */
};

/* Binds the socket and starts the thread. zmq_context is a ZeroMQ context, borrowed. OCT_E_IO: the
 * endpoint is in use or not allowed; names it. */
enum oct_err oct_ingest_create(struct oct_ingest **ingest, void *zmq_context,
                               const struct oct_geometry *geometry, struct oct_ring *raw,
                               const struct oct_ingest_options *options, struct oct_error *err);

/* Opens or closes the gate. Closing returns once what had arrived has been taken and the B-scan
 * begun has been delivered (at most about two seconds). Any thread but the ingest's. */
void oct_ingest_set_gate(struct oct_ingest *ingest, bool open);

/* The same without waiting: oct_ingest_gate_is_open tells when it has happened. Any thread. */
void oct_ingest_ask_gate(struct oct_ingest *ingest, bool open);
bool oct_ingest_gate_is_open(const struct oct_ingest *ingest);

/* Closes the gate as above, ends the thread, closes the socket. Does not close the ring; when lines
 * were lent to it, it must have no readers any more. NULL is fine. */
void oct_ingest_destroy(struct oct_ingest *ingest);

/* Read-only for the caller; valid until destroy. */
const struct oct_ingest_counts *oct_ingest_counts(const struct oct_ingest *ingest);

/* Returns the judged messages (driver_watch.h); valid until destroy. Any thread. */
struct oct_driver_watch *oct_ingest_driver(const struct oct_ingest *ingest);

/* Slots of shared memory taken back from drivers that died. */
uint64_t oct_ingest_reclaimed(const struct oct_ingest *ingest);

/* How often others removed, replaced, cut or overwrote shared memory or its socket, and it was
 * repaired. */
uint64_t oct_ingest_mended(const struct oct_ingest *ingest);

/* How often the thread has looked for messages: every few milliseconds, except while it waits for
 * room in the ring. Any thread. */
uint64_t oct_ingest_looks(const struct oct_ingest *ingest);

/* Messages thrown away while the gate was closed. */
uint64_t oct_ingest_ignored(const struct oct_ingest *ingest);

/* The endpoint as bound, or shm://NAME (with the port that the system chose). */
const char *oct_ingest_endpoint(const struct oct_ingest *ingest);

#endif
