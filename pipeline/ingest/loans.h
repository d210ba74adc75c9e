/* Blocks of lines that are not copied: a slot of the raw ring may borrow the memory of a message,
 * or a slot of shared memory. It is given back when the raw slot has no readers any more.
 *
 * One thread calls everything (the ingest thread once it runs); others read the memory meanwhile,
 * through the raw ring. */
#ifndef OCT_PIPELINE_INGEST_LOANS_H
#define OCT_PIPELINE_INGEST_LOANS_H

#include "pipeline/ingest/shm_store.h"

#include <stdint.h>

#include <zmq.h>

struct oct_loans;

/* For a ring of n_slots. NULL when out of memory. */
struct oct_loans *oct_loans_create(unsigned n_slots);

/* Gives everything back: the raw ring must have no readers any more. NULL is fine. */
void oct_loans_destroy(struct oct_loans *loans);

/* Lets the raw slot, which must borrow nothing now, borrow the message or the block. The message is
 * moved and empty afterwards; the block stays taken, and must not be released, until it is given
 * back. */
void oct_loans_add_message(struct oct_loans *loans, uint64_t slot, zmq_msg_t *payload);
void oct_loans_add_shared(struct oct_loans *loans, uint64_t slot, struct oct_shm_store *store,
                          const struct oct_shm_block *block);

/* Gives back what the raw slot borrows; it has no readers any more. Fine for one that borrows
 * nothing. */
void oct_loans_give_back(struct oct_loans *loans, uint64_t slot);

#endif
