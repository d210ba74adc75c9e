/* Which frames were lost, from ids that turn over, begin anew or come late, and from the clock. */
#include "test/rig/tap.h"
#include "tools/genicam/numbering.h"

#include <stdlib.h>

#define PERIOD_NS 1000000u
#define BEGAN_NS UINT64_C(1795452849640904000)

/* Camera frame f (0, 1, ...) as an id of 16 bits, the first one first_id. */
static uint64_t id16(uint64_t first_id, uint64_t f)
{
    return (first_id - 1 + f) % 65535 + 1;
}

static uint64_t at(uint64_t f)
{
    return BEGAN_NS + f * PERIOD_NS;
}

static void next_is(struct oct_numbering *n, uint64_t id, uint64_t time_ns,
                    enum oct_numbering_verdict verdict, uint64_t n_lost)
{
    uint64_t lost;
    assert_int_equal(oct_numbering_next(n, id, time_ns, &lost), verdict);
    assert_int_equal(lost, n_lost);
}

/* Frames first .. end - 1, all of them. */
static void feed(struct oct_numbering *n, uint64_t first_id, uint64_t first, uint64_t end)
{
    for (uint64_t f = first; f < end; f++)
        next_is(n, id16(first_id, f), at(f), OCT_FRAME_NEXT, 0);
}

TEST(sixteen_bits_turn_over)
{
    struct oct_numbering n;
    oct_numbering_init(&n, false);
    feed(&n, 65400, 0, 300); /* over 65535, of which the next is 1 */
    assert_int_equal(n.n_lost, 0);
    next_is(&n, id16(65400, 303), at(303), OCT_FRAME_NEXT, 3);
    oct_numbering_init(&n, false);
    next_is(&n, 65534, at(0), OCT_FRAME_NEXT, 0);
    next_is(&n, 1, at(2), OCT_FRAME_NEXT, 1); /* 65535 was lost */
    next_is(&n, 3, at(4), OCT_FRAME_NEXT, 1);
    assert_int_equal(n.n_lost, 2);
}

/* Losses at random over several turns: the sum of all steps is where the camera is. */
TEST(gaps_add_up)
{
    struct oct_numbering n;
    uint64_t f = 0, line = 0;
    srand(7);
    oct_numbering_init(&n, false);
    next_is(&n, 1, at(0), OCT_FRAME_NEXT, 0);
    for (int i = 0; i < 40000; i++) {
        uint64_t lost;
        f += rand() % 10 ? 1 : (uint64_t)(rand() % 200 + 1);
        assert_int_equal(oct_numbering_next(&n, id16(1, f), at(f), &lost), OCT_FRAME_NEXT);
        line += lost + 1;
        assert_int_equal(line, f);
    }
    assert_true(f > 4 * 65535);
    assert_int_equal(n.n_lost, f - 40000);
}

TEST(wide_ids_are_recognised)
{
    struct oct_numbering n;
    oct_numbering_init(&n, false);
    next_is(&n, 65534, at(0), OCT_FRAME_NEXT, 0);
    next_is(&n, 65535, at(1), OCT_FRAME_NEXT, 0);
    next_is(&n, 65536, at(2), OCT_FRAME_NEXT, 0);
    next_is(&n, 65540, at(6), OCT_FRAME_NEXT, 3);
    next_is(&n, 65540 + 200000, at(200006), OCT_FRAME_NEXT, 199999);
    oct_numbering_init(&n, true); /* USB3 Vision begins with 0 */
    next_is(&n, 0, at(0), OCT_FRAME_NEXT, 0);
    next_is(&n, 1, at(1), OCT_FRAME_NEXT, 0);
    next_is(&n, 65535, at(65535), OCT_FRAME_NEXT, 65533);
}

/* 0 is no id of GigE Vision, but some cameras count over it. */
TEST(a_camera_that_counts_over_zero)
{
    struct oct_numbering n;
    oct_numbering_init(&n, false);
    next_is(&n, 65535, at(0), OCT_FRAME_NEXT, 0);
    next_is(&n, 0, at(1), OCT_FRAME_NEXT, 0);
    next_is(&n, 1, at(2), OCT_FRAME_NEXT, 0);
}

TEST(whole_turns_are_of_the_clock)
{
    struct oct_numbering n;
    oct_numbering_init(&n, false);
    feed(&n, 1, 0, 1000);
    next_is(&n, id16(1, 999 + 65535 + 5), at(999 + 65535 + 5), OCT_FRAME_NEXT, 65535 + 4);
    oct_numbering_init(&n, false);
    feed(&n, 1, 0, 1000); /* two turns to the frame: the same id again */
    next_is(&n, id16(1, 999), at(999 + 2 * 65535), OCT_FRAME_NEXT, 2 * 65535 - 1);
}

/* The scanner's trigger pauses: the camera counts no frames meanwhile. */
TEST(a_pause_is_no_loss)
{
    static const uint64_t pauses[] = {100, 30000, 60000, 66000, 100000, 1000000};
    for (unsigned i = 0; i < sizeof(pauses) / sizeof(*pauses); i++) {
        struct oct_numbering n;
        oct_numbering_init(&n, false);
        feed(&n, 1, 0, 1000);
        next_is(&n, id16(1, 1000), at(1000 + pauses[i]), OCT_FRAME_NEXT, 0);
        next_is(&n, id16(1, 1001), at(1001 + pauses[i]), OCT_FRAME_NEXT, 0);
        next_is(&n, id16(1, 1003), at(1003 + pauses[i]), OCT_FRAME_NEXT, 1);
    }
}

TEST(late_frames_are_left_out)
{
    struct oct_numbering n;
    oct_numbering_init(&n, false);
    feed(&n, 1, 0, 200);
    next_is(&n, id16(1, 203), at(203), OCT_FRAME_NEXT, 3);
    next_is(&n, id16(1, 201), at(201), OCT_FRAME_LATE, 0);
    next_is(&n, id16(1, 203), at(203), OCT_FRAME_LATE, 0);
    next_is(&n, id16(1, 204), at(204), OCT_FRAME_NEXT, 0);
    assert_true(n.n_late == 2 && n.n_lost == 3);
    oct_numbering_init(&n, false); /* a camera without a clock */
    next_is(&n, 500, 0, OCT_FRAME_NEXT, 0);
    next_is(&n, 499, 0, OCT_FRAME_LATE, 0);
    next_is(&n, 502, 0, OCT_FRAME_NEXT, 1);
}

TEST(a_camera_that_counts_anew)
{
    for (int is_wide = 0; is_wide < 2; is_wide++) {
        struct oct_numbering n;
        oct_numbering_init(&n, is_wide);
        feed(&n, 1, 0, 1000);
        next_is(&n, 1, at(1000 + 42), OCT_FRAME_ANEW, 42);
        next_is(&n, 2, at(1001 + 42), OCT_FRAME_NEXT, 0);
        assert_true(n.n_anew == 1 && n.n_lost == 42);
        oct_numbering_init(&n, is_wide); /* without a pace nothing is known */
        feed(&n, 30, 0, 5);
        next_is(&n, 1, at(10), OCT_FRAME_ANEW, 0);
    }
}

/* Ids and clock begin anew: the first hundred frames look late, are left out and count as lost. */
TEST(a_camera_whose_clock_begins_anew)
{
    struct oct_numbering n;
    oct_numbering_init(&n, false);
    feed(&n, 1, 0, 1000);
    for (uint64_t f = 0; f < 100; f++)
        next_is(&n, f + 1, 5 + f * PERIOD_NS, OCT_FRAME_LATE, 0);
    next_is(&n, 101, 5 + 100 * PERIOD_NS, OCT_FRAME_ANEW, 100);
    next_is(&n, 102, 5 + 101 * PERIOD_NS, OCT_FRAME_NEXT, 0);
    assert_true(n.n_late == 100 && n.n_lost == 100 && n.n_anew == 1);
}

/* More than half a turn is lost and the clock says so: no new beginning. */
TEST(long_losses_fit_the_clock)
{
    struct oct_numbering n;
    oct_numbering_init(&n, false);
    feed(&n, 1, 0, 1000);
    next_is(&n, id16(1, 999 + 50000), at(999 + 50000), OCT_FRAME_NEXT, 49999);
}

TEST(the_period_is_the_clocks)
{
    struct oct_numbering n;
    oct_numbering_init(&n, false);
    assert_true(oct_numbering_period_ns(&n) == 0);
    feed(&n, 1, 0, 500);
    next_is(&n, id16(1, 510), at(510), OCT_FRAME_NEXT, 10);
    assert_true(oct_numbering_period_ns(&n) == PERIOD_NS);
}
