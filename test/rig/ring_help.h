/* A ring of which each slot holds its number: for the tests of rings. All of it fails the cmocka
 * test unless it works. */
#ifndef OCT_TEST_RIG_RING_HELP_H
#define OCT_TEST_RIG_RING_HELP_H

#include "pipeline/flow/ring.h"

#include <stdint.h>

void ring_write(struct oct_ring *ring); /* the next slot, at once */
void ring_expect_full(struct oct_ring *ring);
void ring_expect_slot(struct oct_ring_reader *reader, uint64_t wanted);
void ring_expect_nothing(struct oct_ring_reader *reader, enum oct_err why);

#endif
