/* A ring of slots with owners: one writer, several readers, no slot overwritten under anyone.
 *
 *      next slot to acquire                     released by all guaranteed readers
 *              v                                        v
 *     [ n+3 ][ .... ][ n-2 ][ n-1 ][  n  ][ n+1 ][ n+2 ]
 *                      |read by     |published    |acquired, being filled
 *                      |a reader    |, unread     |by the writer
 *
 * Slot s lies at s % n_slots and lives  acquire -> (fill) -> publish -> read ... release  by each
 * reader. Numbers rise for ever (64 bits) and are the ring's own: 0, 1, 2, ...
 *
 * A *guaranteed* reader sees every slot: the writer waits for it (acquire times out, the writer
 * counts that). A *lossy* reader that falls more than `most_behind` slots behind skips to the
 * newest; what it skipped is counted and charged to it alone. It holds one slot at a time, which is
 * never overwritten, and for which nobody waits: a lossy reader brings a spare buffer, and the
 * writer lays its slot there when it comes round to one that is held.
 *
 *     place of s   [ buffer ] <- s + n_slots         the reader of s has none in the ring any more;
 *     spare        [ buffer ]    [held by a reader]  what it held is the spare one when it lets go
 *
 * Who waits for whom: acquire waits for guaranteed readers, read for who publishes, and nothing
 * else waits. No lock is held in any function that a stream calls: a reader or a writer that is
 * stopped in the middle of one, or has no processor, holds up nobody but those who wait for its
 * slots. So a thread that yields to others may be a lossy reader of any ring and the writer of its
 * own. Creating and destroying readers, and oct_ring_reader_wakes, take a lock: threads that yield
 * to others do not call them while others may.
 *
 * Threads: one writer thread acquires, one (the same or another) publishes, in order; each reader
 * is used by one thread at a time. Readers are added and removed by any thread. Payload memory
 * comes from the engine's memory ops, so that a GPU reads it in place. */
#ifndef OCT_PIPELINE_FLOW_RING_H
#define OCT_PIPELINE_FLOW_RING_H

#include "pipeline/base/err.h"
#include "pipeline/flow/engine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oct_ring;
struct oct_ring_reader;

#define OCT_RING_MOST_READERS 64u /* at the same time */

/* n_slots (>= 3) of slot_bytes each, every slot page-aligned and pinned (mlock) as far as the
 * system allows; *pinned (may be NULL) tells. memory NULL: plain memory. */
enum oct_err oct_ring_create(struct oct_ring **ring, unsigned n_slots, size_t slot_bytes,
                             const struct oct_memory_ops *memory, bool *pinned,
                             struct oct_error *err);

/* No thread may be inside any other function. NULL is fine. Who still reads a slot that it held
 * has called oct_ring_hold before: its memory goes when each of these has called destroy too, or
 * oct_ring_let_go of a reader. */
void oct_ring_destroy(struct oct_ring *ring);
void oct_ring_hold(struct oct_ring *ring);
void oct_ring_let_go(struct oct_ring_reader *reader);

/* Memory beside the payload that is released with it: OCT_RING_MOST_OWNED of such. Any thread. */
#define OCT_RING_MOST_OWNED 4u
void oct_ring_own(struct oct_ring *ring, void *memory, size_t bytes,
                  void (*release)(void *memory, size_t bytes));

unsigned oct_ring_n_slots(const struct oct_ring *ring);
size_t oct_ring_slot_bytes(const struct oct_ring *ring); /* in whole pages */

/* Payload of a slot the caller owns: acquired, or held by its guaranteed reader. */
void *oct_ring_payload(struct oct_ring *ring, uint64_t slot);

/* Payload of the slot that the reader read last and holds. */
void *oct_ring_held(const struct oct_ring_reader *reader);

/* The same as a number below oct_ring_most_buffers, for who keeps something beside the payload. The
 * buffer is the slot's until every reader has released it. */
unsigned oct_ring_buffer(const struct oct_ring *ring, uint64_t slot);
unsigned oct_ring_most_buffers(const struct oct_ring *ring);

/* Waits until the next slot is free. OCT_E_AGAIN: a guaranteed reader still holds it after
 * timeout_us; OCT_E_CLOSED: the ring was closed. */
enum oct_err oct_ring_acquire(struct oct_ring *ring, uint64_t timeout_us, uint64_t *slot);

/* Hands the oldest acquired slot to the readers. */
void oct_ring_publish(struct oct_ring *ring);

/* No more will be published (after what is published was read, readers get OCT_E_CLOSED). Wakes
 * everybody. */
void oct_ring_close(struct oct_ring *ring);

/* A closed ring begins anew with slot 0. No other thread uses it, every reader that is left has
 * read and released all, and a slot that was acquired and never published is the ring's again. */
void oct_ring_reopen(struct oct_ring *ring);

/* Adds a reader that starts at the next slot published. NULL: out of memory, or there are
 * OCT_RING_MOST_READERS. */
struct oct_ring_reader *oct_ring_reader_create(struct oct_ring *ring, bool guaranteed,
                                               unsigned most_behind);

/* Releases all slots that it holds. NULL is fine. */
void oct_ring_reader_destroy(struct oct_ring_reader *reader);

/* Waits for the reader's next slot and gives it to the caller, who must release it. A guaranteed
 * reader may hold several slots; they are released in order. OCT_E_AGAIN: nothing within
 * timeout_us; OCT_E_CLOSED: closed and everything read. */
enum oct_err oct_ring_read(struct oct_ring_reader *reader, uint64_t timeout_us, uint64_t *slot);
void oct_ring_release(struct oct_ring_reader *reader);

/* A lossy reader that never reads, and so wakes for nothing, may hold in another's place what
 * that holds too: the slot's memory stays as it is until both have released it. `keeper` holds
 * nothing now and was made after `reader`, in whose order the writer looks; any thread may
 * release it. Whether it holds something: any thread. */
void oct_ring_keep(const struct oct_ring_reader *reader, struct oct_ring_reader *keeper);
bool oct_ring_keeps(const struct oct_ring_reader *keeper);

/* Makes a reader that waits in oct_ring_read return OCT_E_AGAIN now (or its next call). */
void oct_ring_wake(struct oct_ring_reader *reader);

/* From now on, whatever is published into the reader's ring, or its end, wakes `other` too, a
 * reader of another ring: a thread that waits for that one alone misses nothing of this one. In
 * place of whom it woke before. Either reader, and either ring, may be destroyed first, by any
 * thread. False: out of memory. */
bool oct_ring_reader_wakes(struct oct_ring_reader *reader, struct oct_ring_reader *other);

/* The slot that the reader gets next, if it skips none. */
uint64_t oct_ring_next(const struct oct_ring_reader *reader);

/* Slots published and not yet read by this reader; skipped so far (lossy). Any thread. */
uint64_t oct_ring_behind(const struct oct_ring_reader *reader);
uint64_t oct_ring_skipped(const struct oct_ring_reader *reader);

/* No reader holds or will get a slot below the returned number, not even a reader added later. Any
 * thread; the number only rises. */
uint64_t oct_ring_done_below(struct oct_ring *ring);

/* Number of slots published so far. */
uint64_t oct_ring_published(const struct oct_ring *ring);

#endif
