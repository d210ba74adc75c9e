/* The assembler where lines of the flyback come too, mirrors lag, and B-scans come from both
 * sides. */
#include "pipeline/flow/slots.h"
#include "test/rig/assembler_rig.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

enum { BACK = 3, LAG = 2, SENT = M + BACK, N_BSCANS = 8 };

static void open_scan(struct assembler_rig *r)
{
    const struct oct_scan scan = {.pattern = OCT_SCAN_RASTER_BOTH,
                                  .n_lines = M,
                                  .n_bscans = V,
                                  .flyback_lines = BACK,
                                  .delay_lines = LAG};
    open_assembler(r, 0);
    oct_assembler_set_scan(r->assembler, &scan);
}

/* Sends lines first .. end - 1 in one message. */
static void send_lines(struct assembler_rig *r, uint64_t sequence, uint64_t first, uint64_t end,
                       uint16_t flags)
{
    const struct oct_lines_header h = {.sequence = sequence,
                                       .first_line = first,
                                       .n_lines = (uint32_t)(end - first),
                                       .n_samples = N,
                                       .format = OCT_LINES_U16,
                                       .flags = flags,
                                       .epoch = 1};
    assert_int_equal(send_message(r, &h, 1), OCT_BAD_NONE);
}

/* That A-line j of the next B-scan is the line that was sent for it, by a message of this
 * number. */
static void check_bscan(struct assembler_rig *r, uint64_t number, const uint64_t *sequence_of)
{
    uint64_t slot;
    assert_int_equal(oct_ring_read(r->reader, 0, &slot), OCT_OK);
    const struct oct_raw_frame *frame = oct_raw_slot(r->ring, slot, &r->geometry);
    assert_int_equal(frame->info.number, number);
    assert_int_equal(frame->info.bscan, number % V);
    for (uint32_t j = 0; j < M; j++) {
        const uint64_t line = number * SENT + LAG + (number % V % 2 ? M - 1 - j : j);
        const struct oct_lines_header h = {
            .sequence = sequence_of[line], .epoch = 1, .format = OCT_LINES_U16};
        assert_true(frame->line_valid[j]);
        for (uint32_t i = 0; i < N; i++)
            assert_int_equal(frame->spectra[j * N + i], assembler_sample(&h, line, i));
    }
    oct_ring_release(r->reader);
}

TEST(blocks_of_any_size_give_the_same_bscans_and_every_line_is_counted)
{
    for (unsigned block = 1; block <= MOST_LINES; block++) {
        struct assembler_rig r;
        uint64_t sequence = 0, sequence_of[N_BSCANS * SENT];
        open_scan(&r);
        for (uint64_t line = 0; line < N_BSCANS * SENT; line += block, sequence++) {
            const uint64_t end = line + block < N_BSCANS * SENT ? line + block : N_BSCANS * SENT;
            for (uint64_t i = line; i < end; i++)
                sequence_of[i] = sequence;
            send_lines(&r, sequence, line, end, line == 0 ? OCT_LINES_STARTS : 0);
        }
        for (uint64_t b = 0; b < N_BSCANS; b++)
            check_bscan(&r, b, sequence_of);
        assert_int_equal(r.counts->lines_received, N_BSCANS * M);
        assert_int_equal(r.counts->lines_flyback, N_BSCANS * BACK);
        assert_int_equal(r.counts->lines_late, 0);
        assert_int_equal(r.counts->lines_missing, 0);
        assert_int_equal(r.counts->bscans_delivered, N_BSCANS);
        close_assembler(&r);
    }
}

TEST(missing_are_lines_of_bscans_not_those_of_the_flyback)
{
    struct assembler_rig r;
    uint64_t slot;
    open_scan(&r);
    send_lines(&r, 0, 0, SENT, OCT_LINES_STARTS);
    /* The whole second B-scan is missing, of the third its first A-line, of the end a flyback. */
    send_lines(&r, 1, 2 * SENT + LAG + 1, 4 * SENT - 1, OCT_LINES_ENDS);
    assert_int_equal(r.counts->lines_missing, M + 1);
    assert_int_equal(r.counts->bscans_delivered, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(oct_ring_read(r.reader, 0, &slot), OCT_OK);
        const struct oct_raw_frame *frame = oct_raw_slot(r.ring, slot, &r.geometry);
        assert_int_equal(frame->info.missing_lines, i == 1);
        assert_int_equal(frame->line_valid[0], i != 1);
        oct_ring_release(r.reader);
    }
    close_assembler(&r);
}

TEST(who_joins_in_a_flyback_misses_nothing)
{
    for (uint64_t first = LAG + M; first <= SENT + LAG; first++) {
        struct assembler_rig r;
        uint64_t slot;
        open_scan(&r);
        send_lines(&r, 7, first, 2 * SENT, 0);
        assert_int_equal(oct_ring_read(r.reader, 0, &slot), OCT_OK);
        const struct oct_raw_frame *frame = oct_raw_slot(r.ring, slot, &r.geometry);
        assert_int_equal(frame->info.number, 1);
        assert_int_equal(frame->info.lost_before, 0);
        assert_int_equal(r.counts->lines_missing, 0);
        oct_ring_release(r.reader);
        close_assembler(&r);
    }
}

TEST(of_a_turned_bscan_the_line_that_is_missing_is_the_one_at_its_place)
{
    struct assembler_rig r;
    uint64_t slot;
    open_scan(&r);
    send_lines(&r, 0, 0, SENT + LAG + M - 1, OCT_LINES_STARTS); /* the turned one lacks its last */
    send_lines(&r, 1, SENT + LAG + M, 2 * SENT + LAG + 1, 0);
    assert_int_equal(oct_ring_read(r.reader, 0, &slot), OCT_OK);
    oct_ring_release(r.reader);
    assert_int_equal(oct_ring_read(r.reader, 0, &slot), OCT_OK);
    const struct oct_raw_frame *frame = oct_raw_slot(r.ring, slot, &r.geometry);
    for (uint32_t j = 0; j < M; j++)
        assert_int_equal(frame->line_valid[j], j > 0);
    assert_int_equal(r.counts->lines_missing, 1);
    oct_ring_release(r.reader);
    close_assembler(&r);
}

/* One whole B-scan of a sender with these flags and this epoch. */
static enum oct_bad send_bscan(struct assembler_rig *r, uint64_t number, uint16_t flags,
                               uint32_t epoch)
{
    const struct oct_lines_header h = {.sequence = number,
                                       .first_line = number * M,
                                       .n_lines = M,
                                       .n_samples = N,
                                       .format = OCT_LINES_U16,
                                       .flags = flags,
                                       .epoch = epoch};
    uint64_t slot;
    const enum oct_bad bad = send_message(r, &h, 1);
    if (oct_ring_read(r->reader, 0, &slot) == OCT_OK)
        oct_ring_release(r->reader);
    return bad;
}

TEST(lines_of_another_scan_are_refused)
{
    const uint16_t starts = OCT_LINES_STARTS, follows = OCT_LINES_FOLLOWS;
    for (int only = 0; only < 2; only++) {
        struct assembler_rig r;
        open_assembler(&r, 0);
        assert_int_equal(send_bscan(&r, 0, starts | follows, UINT32_MAX), OCT_BAD_NONE);
        close_assembler(&r);
        open_assembler(&r, 0);
        oct_assembler_set_epochs(
            r.assembler, &(struct oct_epochs){.first = 10, .last = 19, .only_followers = only});
        /* A driver that does not say of which scan its lines are. */
        assert_int_equal(send_bscan(&r, 0, starts, 15), only ? OCT_BAD_SCAN : OCT_BAD_NONE);
        /* Leftovers of the scan before neither count nor end what runs. */
        assert_int_equal(send_bscan(&r, 0, starts | follows, 10), OCT_BAD_NONE);
        assert_int_equal(send_bscan(&r, 9, starts | follows, 9), OCT_BAD_SCAN);
        assert_int_equal(send_bscan(&r, 1, follows | OCT_LINES_ENDS, 20), OCT_BAD_SCAN);
        assert_int_equal(send_bscan(&r, 1, follows, 10), OCT_BAD_NONE);
        assert_int_equal(send_bscan(&r, 0, starts | follows, 19), OCT_BAD_NONE);
        assert_int_equal(r.counts->messages_bad[OCT_BAD_SCAN], 2 + only);
        assert_int_equal(r.counts->bscans_delivered, 4 - only);
        assert_int_equal(r.counts->lines_missing, 0);
        close_assembler(&r);
    }
}
