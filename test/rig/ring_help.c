#include "test/rig/ring_help.h"

#include "test/rig/tap.h"

#include <string.h>

void ring_write(struct oct_ring *ring)
{
    uint64_t slot;
    assert_int_equal(oct_ring_acquire(ring, 0, &slot), OCT_OK);
    memcpy(oct_ring_payload(ring, slot), &slot, sizeof(slot));
    oct_ring_publish(ring);
}

void ring_expect_full(struct oct_ring *ring)
{
    uint64_t slot = 77;
    assert_int_equal(oct_ring_acquire(ring, 1000, &slot), OCT_E_AGAIN);
    assert_int_equal(slot, 77);
}

void ring_expect_slot(struct oct_ring_reader *reader, uint64_t wanted)
{
    uint64_t slot, content;
    assert_int_equal(oct_ring_read(reader, 0, &slot), OCT_OK);
    assert_int_equal(slot, wanted);
    memcpy(&content, oct_ring_held(reader), sizeof(content));
    assert_int_equal(content, wanted);
}

void ring_expect_nothing(struct oct_ring_reader *reader, enum oct_err why)
{
    uint64_t slot;
    assert_int_equal(oct_ring_read(reader, 0, &slot), why);
}
