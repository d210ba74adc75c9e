/* What the tests of the pipeline's parts share. */
#ifndef OCT_TEST_RIG_PIPELINE_HELP_H
#define OCT_TEST_RIG_PIPELINE_HELP_H

#include "pipeline/flow/ring.h"
#include "test/rig/volume_cases.h"

#include <stdbool.h>
#include <stdint.h>

/* A small generator with a seed of its own (SplitMix64), so that every run is the same. */
struct dice {
    uint64_t state;
};
uint64_t dice_roll(struct dice *dice);
/* 0 .. n - 1 */
uint32_t dice_below(struct dice *dice, uint32_t n);

void sleep_us(uint64_t us);

/* Fails the cmocka test unless it works. */
struct oct_ring *open_ring(unsigned n_slots, size_t slot_bytes);
struct oct_ring_reader *add_reader(struct oct_ring *ring, bool guaranteed, unsigned most_behind);

/* What a folder holds, . and .. too. */
unsigned count_entries(const char *folder);

#endif
