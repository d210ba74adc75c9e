/* The ring: order, owners, loss, closing. */
#include "pipeline/base/clock.h"
#include "pipeline/flow/ring.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/ring_help.h"
#include "test/rig/tap.h"

#include <stdlib.h>
#include <string.h>

static void slots_come_in_order_and_a_guaranteed_reader_is_never_overtaken(void **state)
{
    struct oct_ring *ring = open_ring(4, 8);
    struct oct_ring_reader *reader = add_reader(ring, true, 0);
    ring_expect_nothing(reader, OCT_E_AGAIN);
    for (uint64_t lap = 0; lap < 5; lap++) {
        for (int i = 0; i < 4; i++)
            ring_write(ring);
        ring_expect_full(ring);
        assert_int_equal(oct_ring_behind(reader), 4);
        for (uint64_t i = 0; i < 4; i++) {
            assert_int_equal(oct_ring_next(reader), lap * 4 + i);
            ring_expect_slot(reader, lap * 4 + i);
            if (i == 0)
                ring_expect_full(ring); /* read is not yet released */
            oct_ring_release(reader);
        }
        ring_expect_nothing(reader, OCT_E_AGAIN);
    }
    assert_int_equal(oct_ring_published(ring), 20);
    assert_int_equal(oct_ring_skipped(reader), 0);
    assert_int_equal(oct_ring_n_slots(ring), 4);
    oct_ring_reader_destroy(reader);
    oct_ring_destroy(ring);
}

static void a_full_ring_lets_the_writer_wait_its_time(void **state)
{
    struct oct_ring *ring = open_ring(3, 8);
    uint64_t slot;
    add_reader(ring, true, 0);
    for (int i = 0; i < 3; i++)
        ring_write(ring);
    uint64_t begin_ns = oct_clock_ns();
    assert_int_equal(oct_ring_acquire(ring, 20000, &slot), OCT_E_AGAIN);
    assert_true(oct_clock_ns() - begin_ns >= 20000000);
    oct_ring_destroy(ring); /* the reader goes with it */
}

static void a_lossy_reader_skips_to_the_newest_and_is_charged(void **state)
{
    struct oct_ring *ring = open_ring(8, 8);
    struct oct_ring_reader *near = add_reader(ring, false, 3), *far = add_reader(ring, false, 100);
    for (int i = 0; i < 3; i++)
        ring_write(ring);
    ring_expect_slot(near, 0); /* three behind is not more than three */
    oct_ring_release(near);
    for (int i = 0; i < 2; i++)
        ring_write(ring);
    ring_expect_slot(near, 4); /* four behind is */
    oct_ring_release(near);
    assert_int_equal(oct_ring_skipped(near), 3);
    ring_expect_slot(far, 0); /* may be far behind, as long as the slot is there */
    oct_ring_release(far);
    for (int i = 0; i < 4; i++)
        ring_write(ring); /* the ninth takes the place of slot 0 */
    ring_expect_slot(far, 1);
    oct_ring_release(far);
    for (int i = 0; i < 2; i++)
        ring_write(ring); /* the eleventh that of slot 2: gone */
    assert_int_equal(oct_ring_published(ring), 11);
    ring_expect_slot(far, 10);
    oct_ring_release(far);
    assert_int_equal(oct_ring_skipped(far), 8);
    assert_int_equal(oct_ring_behind(far), 0);
    oct_ring_destroy(ring);
}

static uint64_t content_of(const struct oct_ring_reader *reader)
{
    uint64_t content;
    memcpy(&content, oct_ring_held(reader), sizeof(content));
    return content;
}

static void what_a_lossy_reader_holds_is_never_overwritten_and_nobody_waits_for_it(void **state)
{
    struct oct_ring *ring = open_ring(5, 8);
    struct oct_ring_reader *held[4], *other = add_reader(ring, false, 1);
    for (unsigned i = 0; i < 4; i++)
        held[i] = add_reader(ring, false, 0);
    for (uint64_t lap = 0; lap < 50; lap++) {
        /* Two readers hold one slot, the others one each, while the ring goes round twice. */
        const uint64_t first = oct_ring_published(ring);
        for (unsigned i = 0; i < 4; i++) {
            if (i < 3)
                ring_write(ring);
            ring_expect_slot(held[i], first + (i < 3 ? i : 2));
        }
        for (int i = 0; i < 10; i++) {
            ring_write(ring);
            ring_expect_slot(other, oct_ring_published(ring) - 1);
            oct_ring_release(other);
        }
        for (unsigned i = 0; i < 4; i++) {
            assert_int_equal(content_of(held[i]), first + (i < 3 ? i : 2));
            oct_ring_release(held[i]);
            ring_expect_slot(held[i], first + 12); /* it skips to the newest */
            oct_ring_release(held[i]);
        }
        assert_int_equal(oct_ring_skipped(held[0]), (lap + 1) * 11);
    }
    oct_ring_reader_destroy(held[0]); /* its buffer is another's later */
    for (int i = 0; i < 20; i++) {
        ring_expect_nothing(other, OCT_E_AGAIN);
        ring_write(ring);
        held[0] = add_reader(ring, false, 9);
        ring_write(ring);
        ring_expect_slot(held[0], oct_ring_published(ring) - 1);
        for (int k = 0; k < 6; k++)
            ring_write(ring);
        assert_int_equal(content_of(held[0]), oct_ring_published(ring) - 7);
        oct_ring_reader_destroy(held[0]);
        ring_expect_slot(other, oct_ring_published(ring) - 1);
        oct_ring_release(other);
    }
    oct_ring_destroy(ring);
}

/* The reader goes on, other threads let go, and the ring's owner may have gone before. */
static void what_is_kept_stays_until_all_have_let_go(void **state)
{
    struct oct_ring *ring = open_ring(3, 8);
    struct oct_ring_reader *reader = add_reader(ring, false, 1);
    struct oct_ring_reader *keepers[2] = {add_reader(ring, false, 0), add_reader(ring, false, 0)};
    const uint64_t *kept[2];
    for (int k = 0; k < 2; k++) {
        ring_write(ring);
        ring_expect_slot(reader, (uint64_t)k);
        assert_false(oct_ring_keeps(keepers[k]));
        oct_ring_keep(reader, keepers[k]);
        kept[k] = oct_ring_held(reader);
        assert_int_equal(*kept[k], k);
        oct_ring_release(reader);
        assert_true(oct_ring_keeps(keepers[k]));
    }
    for (int i = 0; i < 20; i++) { /* nobody waits for them */
        ring_write(ring);
        assert_int_equal(*kept[0], 0);
        assert_int_equal(*kept[1], 1);
    }
    oct_ring_release(keepers[0]);
    ring_expect_slot(reader, 21);
    oct_ring_keep(reader, keepers[0]); /* for which the writer lays the memory of slot 0 */
    oct_ring_release(reader);
    for (int i = 0; i < 20; i++)
        ring_write(ring);
    assert_int_not_equal(*kept[0], 0);
    assert_int_equal(*kept[1], 1);
    oct_ring_hold(ring);
    oct_ring_destroy(ring);
    assert_int_equal(*kept[1], 1);
    oct_ring_release(keepers[1]);
    oct_ring_let_go(keepers[1]);
}

static void there_are_so_many_readers_and_no_more(void **state)
{
    struct oct_ring *ring = open_ring(3, 8);
    struct oct_ring_reader *readers[OCT_RING_MOST_READERS];
    for (unsigned i = 0; i < OCT_RING_MOST_READERS; i++)
        readers[i] = add_reader(ring, i % 2, 1);
    assert_null(oct_ring_reader_create(ring, false, 1));
    oct_ring_reader_destroy(readers[5]);
    ring_write(ring);
    readers[5] =
        add_reader(ring, true, 0); /* of the place of one that has gone: with nothing of it */
    ring_write(ring);
    ring_expect_slot(readers[5], 1);
    ring_expect_slot(readers[4], 1);
    assert_int_equal(oct_ring_skipped(readers[4]), 1);
    oct_ring_destroy(ring);
}

static void without_readers_the_writer_goes_on_and_the_newest_stays(void **state)
{
    struct oct_ring *ring = open_ring(3, 8);
    for (int i = 0; i < 10; i++)
        ring_write(ring);
    uint64_t slot, newest;
    /* Acquired slots never reach the newest published one: someone may just be taking it. */
    assert_int_equal(oct_ring_acquire(ring, 0, &slot), OCT_OK);
    assert_int_equal(oct_ring_acquire(ring, 0, &slot), OCT_OK);
    ring_expect_full(ring);
    memcpy(&newest, oct_ring_payload(ring, 9), sizeof(newest));
    assert_int_equal(newest, 9);
    oct_ring_destroy(ring);
}

static void several_acquired_slots_are_published_in_their_order(void **state)
{
    struct oct_ring *ring = open_ring(3, 8);
    struct oct_ring_reader *reader = add_reader(ring, true, 0);
    for (uint64_t lap = 0; lap < 20; lap++) {
        uint64_t slots[3];
        /* The first lap may take all; later the newest slot stays readable. */
        unsigned n = lap ? 2 : 3;
        for (unsigned i = 0; i < n; i++)
            assert_int_equal(oct_ring_acquire(ring, 0, &slots[i]), OCT_OK);
        ring_expect_full(ring);
        for (unsigned i = n; i-- > 0;) /* filled in any order */
            memcpy(oct_ring_payload(ring, slots[i]), &slots[i], sizeof(slots[i]));
        for (unsigned i = 0; i < n; i++) {
            ring_expect_nothing(reader, OCT_E_AGAIN);
            oct_ring_publish(ring);
            ring_expect_slot(reader, slots[i]);
            oct_ring_release(reader);
        }
    }
    oct_ring_destroy(ring);
}

/* Whatever readers do: slots below are held by none, and none gets one later. */
static void what_no_reader_can_get_any_more_is_done(void **state)
{
    struct oct_ring *ring = open_ring(8, 8);
    struct oct_ring_reader *readers[3] = {add_reader(ring, true, 0), add_reader(ring, false, 1),
                                          add_reader(ring, false, 5)};
    uint64_t held[3][64] = {{0}}, below = 0, slot;
    unsigned n_held[3] = {0}, n_done = 0;
    struct dice dice = {11};
    assert_int_equal(oct_ring_done_below(ring), 0);
    for (int step = 0; step < 20000; step++) {
        unsigned who = dice_below(&dice, 3), what = dice_below(&dice, 4);
        if (what < 2) {
            if (oct_ring_acquire(ring, 0, &slot) == OCT_OK)
                oct_ring_publish(ring);
        } else if (what == 2 && (who == 0 || !n_held[who]) &&
                   oct_ring_read(readers[who], 0, &slot) == OCT_OK) {
            assert_true(slot >= below);
            held[who][n_held[who]++] = slot;
        } else if (what == 3 && n_held[who]) {
            oct_ring_release(readers[who]);
            memmove(held[who], held[who] + 1, --n_held[who] * sizeof(slot));
        }
        uint64_t now = oct_ring_done_below(ring);
        assert_true(now >= below && now <= oct_ring_published(ring));
        for (unsigned k = 0; k < 3; k++)
            assert_true(n_held[k] == 0 || now <= held[k][0]);
        n_done += now > below;
        below = now;
    }
    assert_true(n_done > 100);
    for (unsigned k = 0; k < 3; k++)
        oct_ring_reader_destroy(readers[k]);
    assert_int_equal(oct_ring_done_below(ring), oct_ring_published(ring));
    oct_ring_destroy(ring);
}

static void a_closed_ring_is_read_to_the_end(void **state)
{
    struct oct_ring *ring = open_ring(4, 8);
    struct oct_ring_reader *sure = add_reader(ring, true, 0), *lossy = add_reader(ring, false, 9);
    uint64_t slot;
    ring_write(ring);
    ring_write(ring);
    oct_ring_close(ring);
    assert_int_equal(oct_ring_acquire(ring, 1000000, &slot), OCT_E_CLOSED);
    for (uint64_t i = 0; i < 2; i++) {
        ring_expect_slot(sure, i);
        oct_ring_release(sure);
        ring_expect_slot(lossy, i);
        oct_ring_release(lossy);
    }
    ring_expect_nothing(sure, OCT_E_CLOSED);
    ring_expect_nothing(lossy, OCT_E_CLOSED);
    oct_ring_wake(sure);
    ring_expect_nothing(sure, OCT_E_CLOSED);
    oct_ring_close(ring); /* again: fine */
    struct oct_ring_reader *late = add_reader(ring, true, 0);
    ring_expect_nothing(late, OCT_E_CLOSED);
    oct_ring_destroy(ring);
}

static void a_reader_begins_with_what_is_published_next(void **state)
{
    struct oct_ring *ring = open_ring(4, 8);
    uint64_t slot;
    ring_write(ring);
    assert_int_equal(oct_ring_acquire(ring, 0, &slot), OCT_OK); /* being filled: it will see it */
    struct oct_ring_reader *reader = add_reader(ring, true, 0);
    assert_int_equal(oct_ring_next(reader), 1);
    memcpy(oct_ring_payload(ring, slot), &slot, sizeof(slot));
    oct_ring_publish(ring);
    ring_expect_slot(reader, 1);
    ring_write(ring);
    ring_write(ring);
    ring_write(ring);
    ring_expect_full(ring); /* it still holds slot 1 */
    oct_ring_reader_destroy(reader);
    ring_write(ring); /* what it held is free when it goes */
    oct_ring_reader_destroy(NULL);
    oct_ring_destroy(ring);
    oct_ring_destroy(NULL);
}

static void numbers_beyond_32_bits_find_their_slot(void **state)
{
    struct oct_ring *ring = open_ring(7, 5000);
    for (uint64_t base = UINT32_MAX - 8ull; base < UINT32_MAX + 8ull; base++)
        assert_ptr_equal(oct_ring_payload(ring, base), oct_ring_payload(ring, base % 7));
    for (uint64_t i = 0; i < 7; i++) {
        uintptr_t at = (uintptr_t)oct_ring_payload(ring, i);
        assert_int_equal(at % 4096, 0);
        memset(oct_ring_payload(ring, i), 1, 5000);
    }
    oct_ring_destroy(ring);
}

static void a_reopened_ring_begins_anew(void **state)
{
    struct oct_ring *ring = open_ring(4, 8);
    struct oct_ring_reader *reader = add_reader(ring, true, 0);
    uint64_t slot;
    for (unsigned run = 0; run < 3; run++) {
        for (uint64_t i = 0; i < 6; i++) {
            ring_write(ring);
            ring_expect_slot(reader, i);
            oct_ring_release(reader);
        }
        assert_int_equal(oct_ring_acquire(ring, 0, &slot), OCT_OK); /* and never published */
        oct_ring_wake(reader);
        oct_ring_close(ring);
        ring_expect_nothing(reader, OCT_E_CLOSED);
        assert_int_equal(oct_ring_acquire(ring, 0, &slot), OCT_E_CLOSED);
        oct_ring_reopen(ring);
        assert_int_equal(oct_ring_published(ring), 0);
        assert_int_equal(oct_ring_done_below(ring), 0);
        assert_int_equal(oct_ring_next(reader), 0);
        ring_expect_nothing(reader, OCT_E_AGAIN);
    }
    for (unsigned i = 0; i < 4; i++)
        ring_write(ring);
    ring_expect_full(ring); /* all slots are there, and the reader holds them */
    oct_ring_destroy(ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_come_in_order_and_a_guaranteed_reader_is_never_overtaken),
        cmocka_unit_test(a_full_ring_lets_the_writer_wait_its_time),
        cmocka_unit_test(a_lossy_reader_skips_to_the_newest_and_is_charged),
        cmocka_unit_test(what_a_lossy_reader_holds_is_never_overwritten_and_nobody_waits_for_it),
        cmocka_unit_test(what_is_kept_stays_until_all_have_let_go),
        cmocka_unit_test(there_are_so_many_readers_and_no_more),
        cmocka_unit_test(without_readers_the_writer_goes_on_and_the_newest_stays),
        cmocka_unit_test(several_acquired_slots_are_published_in_their_order),
        cmocka_unit_test(a_closed_ring_is_read_to_the_end),
        cmocka_unit_test(a_reopened_ring_begins_anew),
        cmocka_unit_test(what_no_reader_can_get_any_more_is_done),
        cmocka_unit_test(a_reader_begins_with_what_is_published_next),
        cmocka_unit_test(numbers_beyond_32_bits_find_their_slot),
    };
    return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
