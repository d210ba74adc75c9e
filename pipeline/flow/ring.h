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
 * newest; what it skipped is counted and charged to it alone. The slots it is reading are never
 * overwritten: the writer waits for them too, and it skips only while it holds none.
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

/* n_slots (>= 3) of slot_bytes each, every slot page-aligned and pinned (mlock) as far as the
 * system allows; *pinned (may be NULL) tells. memory NULL: plain memory. */
enum oct_err oct_ring_create(struct oct_ring **ring, unsigned n_slots, size_t slot_bytes,
                             const struct oct_memory_ops *memory, bool *pinned,
                             struct oct_error *err);

/* No thread may be inside any other function. NULL is fine. */
void oct_ring_destroy(struct oct_ring *ring);

unsigned oct_ring_n_slots(const struct oct_ring *ring);

/* Payload of a slot the caller owns (acquired or being read). */
void *oct_ring_payload(struct oct_ring *ring, uint64_t slot);

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

/* Adds a reader that starts at the next slot published. NULL when out of memory. */
struct oct_ring_reader *oct_ring_reader_create(struct oct_ring *ring, bool guaranteed,
                                               unsigned most_behind);

/* Releases all slots that it holds. NULL is fine. */
void oct_ring_reader_destroy(struct oct_ring_reader *reader);

/* Waits for the reader's next slot and gives it to the caller, who must release it. A reader may
 * hold several slots; they are released in order. OCT_E_AGAIN: nothing within timeout_us;
 * OCT_E_CLOSED: closed and everything read. */
enum oct_err oct_ring_read(struct oct_ring_reader *reader, uint64_t timeout_us, uint64_t *slot);
void oct_ring_release(struct oct_ring_reader *reader);

/* Makes a reader that waits in oct_ring_read return OCT_E_AGAIN now (or its next call). */
void oct_ring_wake(struct oct_ring_reader *reader);

/* From now on, whatever is published into the reader's ring, or its end, wakes `other` too, a
 * reader of another ring: a thread that waits for that one alone misses nothing of this one. In
 * place of whom it woke before. Either reader may be destroyed first, by any thread. False: out of
 * memory. Publishing takes the other ring's lock: rings that wake each other's readers in a circle
 * block each other. */
bool oct_ring_reader_wakes(struct oct_ring_reader *reader, struct oct_ring_reader *other);

/* The slot that a guaranteed reader gets next. */
uint64_t oct_ring_next(const struct oct_ring_reader *reader);

/* Slots published and not yet read by this reader; skipped so far (lossy). Any thread. */
uint64_t oct_ring_behind(const struct oct_ring_reader *reader);
uint64_t oct_ring_skipped(const struct oct_ring_reader *reader);

/* No reader holds or will get a slot below the returned number, not even a reader added later. Any
 * thread; the number only rises. */
uint64_t oct_ring_done_below(const struct oct_ring *ring);

/* Number of slots published so far. */
uint64_t oct_ring_published(const struct oct_ring *ring);

#endif
