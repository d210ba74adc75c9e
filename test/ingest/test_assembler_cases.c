#define _GNU_SOURCE /* RTLD_NEXT */
/* The assembler: single cases beside the random streams of test_assembler. */
#include "pipeline/base/clock.h"
#include "pipeline/base/crc32c.h"
#include "pipeline/flow/slots.h"
#include "pipeline/ingest/assembler.h"
#include "test/rig/assembler_rig.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct oct_lines_header block(uint64_t sequence, uint64_t first_line, uint32_t n_lines,
                                     uint16_t flags)
{
    return (struct oct_lines_header){.sequence = sequence,
                                     .first_line = first_line,
                                     .n_lines = n_lines,
                                     .n_samples = N,
                                     .format = OCT_LINES_U16,
                                     .flags = flags,
                                     .epoch = 1};
}

static enum oct_bad push(struct assembler_rig *r, uint64_t sequence, uint64_t first_line,
                         uint32_t n_lines, uint16_t flags)
{
    struct oct_lines_header h = block(sequence, first_line, n_lines, flags);
    return send_message(r, &h, 1);
}

TEST(a_message_of_many_bscans_waits_for_slots_only_once)
{
    struct assembler_rig r;
    open_assembler(&r, 50000);
    uint64_t begin_ns = oct_clock_ns();
    assert_int_equal(push(&r, 0, 0, (SLOTS + 40) * M, OCT_LINES_STARTS), OCT_BAD_NONE);
    uint64_t took_ns = oct_clock_ns() - begin_ns;
    assert_true(took_ns >= 50000000 && took_ns < 40 * UINT64_C(50000000));
    assert_int_equal(r.counts->bscans_delivered, SLOTS);
    assert_int_equal(r.counts->bscans_dropped, 40);
    assert_int_equal(r.counts->lines_dropped, 40 * M);
    begin_ns = oct_clock_ns(); /* the next message may wait again */
    assert_int_equal(push(&r, 1, (SLOTS + 40) * M, 1, 0), OCT_BAD_NONE);
    assert_true(oct_clock_ns() - begin_ns >= 50000000);
    close_assembler(&r);
}

/* The clock by which pauses are seen: what a test adds at a look, and whose slot is free then. */
static uint64_t paused_ns;
static unsigned n_looks;
static struct oct_ring_reader *frees;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, now);
    if (clock != CLOCK_BOOTTIME || !frees)
        return failed;
    if (++n_looks == 2) { /* after the wait */
        paused_ns += UINT64_C(5000000000);
        oct_ring_release(frees);
    }
    now->tv_sec += (time_t)(paused_ns / 1000000000u);
    return failed;
}

TEST(a_wait_within_which_the_program_paused_is_no_wait)
{
    struct assembler_rig r;
    uint64_t slot;
    open_assembler(&r, 20000);
    push(&r, 0, 0, SLOTS * M, OCT_LINES_STARTS);
    assert_int_equal(oct_ring_read(r.reader, 0, &slot), OCT_OK);
    frees = r.reader; /* as soon as whoever holds it runs again */
    push(&r, 1, SLOTS * M, M, 0);
    frees = NULL;
    assert_int_equal(r.counts->bscans_delivered, SLOTS + 1);
    assert_int_equal(r.counts->bscans_dropped, 0);
    push(&r, 2, (SLOTS + 1) * M, M, 0); /* and one without a pause waits as long as ever */
    assert_int_equal(r.counts->bscans_dropped, 1);
    close_assembler(&r);
}

TEST(line_numbers_that_leap_wildly_are_refused_and_change_nothing)
{
    const uint64_t wild = (uint64_t)1 << 40;
    struct assembler_rig r;
    open_assembler(&r, 0);
    assert_int_equal(push(&r, 0, wild, 1, OCT_LINES_STARTS), OCT_BAD_LINES);
    assert_int_equal(push(&r, 0, UINT64_MAX - 1, 1, OCT_LINES_STARTS), OCT_BAD_LINES);
    assert_int_equal(r.counts->acquisitions, 0);
    assert_int_equal(push(&r, 0, 0, M, OCT_LINES_STARTS), OCT_BAD_NONE);
    assert_int_equal(push(&r, 1, wild, 1, 0), OCT_BAD_LINES);
    assert_int_equal(push(&r, 1, wild, 0, OCT_LINES_ENDS), OCT_BAD_LINES);
    assert_int_equal(push(&r, 1, wild, 1, OCT_LINES_STARTS), OCT_BAD_LINES);
    assert_int_equal(push(&r, 1, M, M, 0), OCT_BAD_NONE);
    assert_int_equal(r.counts->lines_missing, 0);
    assert_int_equal(r.counts->messages, 2);
    assert_int_equal(r.counts->messages_bad[OCT_BAD_LINES], 5);
    assert_int_equal(r.counts->bscans_delivered, 2);
    close_assembler(&r);
}

TEST(a_camera_joined_at_the_largest_line_numbers_is_counted_right)
{
    const uint64_t last = UINT64_MAX / M * M; /* the last B-scan that begins below 2^64 */
    struct assembler_rig r;
    open_assembler(&r, 0);
    assert_int_equal(push(&r, 0, last - M, M, 0), OCT_BAD_NONE);
    assert_int_equal(push(&r, 1, UINT64_MAX, 0, OCT_LINES_ENDS), OCT_BAD_NONE);
    assert_int_equal(r.counts->bscans_delivered, 1);
    assert_int_equal(r.counts->lines_missing, UINT64_MAX - last);
    close_assembler(&r);
}

TEST(lines_from_before_a_start_in_the_same_epoch_are_late)
{
    struct assembler_rig r;
    open_assembler(&r, 0);
    push(&r, 10, 0, M, OCT_LINES_STARTS);
    push(&r, 12, 0, M, OCT_LINES_STARTS);
    push(&r, 11, 100 * M, M, OCT_LINES_ENDS); /* of the acquisition before */
    assert_int_equal(r.counts->lines_late, M);
    assert_int_equal(r.counts->lines_missing, 0);
    assert_int_equal(r.counts->acquisitions, 2);
    push(&r, 13, M, M, 0); /* the acquisition is not disturbed */
    assert_int_equal(r.counts->lines_received, 3 * M);
    assert_int_equal(r.counts->lines_missing, 0);
    close_assembler(&r);
}

/* Neither is after the other: each counts as sent before. */
TEST(sequence_numbers_half_their_range_apart_are_counted_and_go_on)
{
    const uint64_t half = (uint64_t)1 << 63, starts[] = {0, 1, 5, half - 1, half, UINT64_MAX};
    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
        const uint64_t s = starts[i];
        struct assembler_rig r;
        open_assembler(&r, 0);
        push(&r, s, 0, M, 0);
        push(&r, s + half, M, M, 0);    /* taken: too old to tell whether it came before */
        push(&r, s + 1, 200 * M, M, 0); /* a jump, and half the range from it */
        push(&r, s + 1 + half, 2 * M, M, 0);
        for (uint64_t k = 0; k < 20; k++)
            push(&r, s + 2 + k % 2 * half, (3 + k) * M, M, 0);
        assert_int_equal(r.counts->messages, 24);
        assert_int_equal(r.counts->messages_missed, 0);
        assert_int_equal(r.counts->messages_reordered, 0);
        assert_int_equal(r.counts->lines_received, 3 * M);
        assert_int_equal(r.counts->resynchronised, 0);
        close_assembler(&r);

        open_assembler(&r, 0);
        push(&r, s, 0, M, OCT_LINES_STARTS);
        push(&r, s + half, M, M, 0); /* of the acquisition before */
        push(&r, s + 1, M, M, 0);
        assert_int_equal(r.counts->lines_late, M);
        assert_int_equal(r.counts->lines_received, 2 * M);
        assert_int_equal(r.counts->messages_missed, 0);
        close_assembler(&r);
    }
}

/* Formats change with the acquisition. A message of another in its middle costs its own lines. */
TEST(another_format_in_an_acquisition_is_refused_and_costs_no_other_block)
{
    struct assembler_rig r;
    uint64_t slot;
    open_assembler(&r, 0);
    for (uint16_t k = 0; k < 6; k++) {
        struct oct_lines_header h = block(k, k * M, M, 0);
        h.format = k == 2 ? OCT_LINES_U16 : OCT_LINES_12P;
        if (k == 5) {
            h.format = OCT_LINES_U8;
            h.flags = OCT_LINES_STARTS;
            h.first_line = 0;
        }
        assert_int_equal(send_message(&r, &h, k), k == 2 ? OCT_BAD_FORMAT : OCT_BAD_NONE);
    }
    assert_int_equal(r.counts->messages_bad[OCT_BAD_FORMAT], 1);
    assert_int_equal(r.counts->bscans_delivered, 5);
    assert_int_equal(r.counts->lines_missing, M);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(oct_ring_read(r.reader, 0, &slot), OCT_OK);
        const struct oct_raw_frame *frame = oct_raw_slot(r.ring, slot, &r.geometry);
        assert_int_equal(frame->format, i < 4 ? OCT_LINES_12P : OCT_LINES_U8);
        assert_int_equal(frame->info.missing_lines, 0);
        oct_ring_release(r.reader);
    }
    close_assembler(&r);
}

TEST(an_odd_number_of_samples_cannot_be_packed)
{
    struct oct_geometry g;
    struct oct_assembler *assembler;
    uint8_t bytes[OCT_LINES_HEADER_BYTES], payload[2 * 7 * M] = {0};
    must(oct_geometry_init(&g, 7, M, V, 0, 0, OCT_SAMPLE_U8, &failure));
    struct oct_ring *ring = open_ring(SLOTS, oct_raw_slot_bytes(&g));
    must(oct_assembler_create(&assembler, &g, ring, 0, &failure));
    for (uint16_t format = OCT_LINES_U8; format <= OCT_LINES_12P; format++) {
        struct oct_lines_header h = block(0, 0, M, OCT_LINES_STARTS);
        h.n_samples = 7;
        h.format = format;
        h.epoch = format;
        oct_lines_encode(&h, bytes);
        assert_int_equal(oct_assembler_take(assembler, bytes, sizeof(bytes), payload,
                                            (size_t)oct_lines_payload_bytes(&h), 1),
                         format == OCT_LINES_12P ? OCT_BAD_FORMAT : OCT_BAD_NONE);
    }
    oct_assembler_destroy(assembler);
    oct_ring_destroy(ring);
}

TEST(one_wrong_line_number_silences_nobody)
{
    const uint64_t wrong = ((uint64_t)1 << 32) / M; /* as far as a jump may go */
    struct assembler_rig r;
    uint64_t slot;
    open_assembler(&r, 0);
    push(&r, 0, 0, M, OCT_LINES_STARTS);
    push(&r, 1, wrong * M, M, 0);
    for (uint64_t i = 1; i <= 16; i++)
        push(&r, 1 + i, i * M, M, 0);
    assert_int_equal(r.counts->lines_late, 16 * M);
    assert_int_equal(r.counts->acquisitions, 1);
    for (uint64_t i = 17; i <= 20; i++)
        push(&r, 1 + i, i * M, M, 0);
    assert_int_equal(r.counts->lines_late, 16 * M);
    assert_int_equal(r.counts->acquisitions, 2);
    assert_int_equal(r.counts->resynchronised, 1);
    assert_int_equal(r.counts->messages_missed, 0);
    assert_int_equal(r.counts->lines_missing, (wrong - 1) * M);
    assert_int_equal(r.counts->next_line, 21 * M);
    for (uint64_t i = 0; i < 6; i++) {
        assert_int_equal(oct_ring_read(r.reader, 0, &slot), OCT_OK);
        const struct oct_raw_frame *frame = oct_raw_slot(r.ring, slot, &r.geometry);
        assert_int_equal(frame->info.number, i == 0 ? 0 : i == 1 ? wrong : 15 + i);
        assert_int_equal(frame->info.acquisition, i < 2 ? 1 : 2);
        oct_ring_release(r.reader);
    }
    assert_int_equal(oct_ring_read(r.reader, 0, &slot), OCT_E_AGAIN);
    close_assembler(&r);
}

/* What a true jump overtook was sent before it; what is sent again had come. */
TEST(late_lines_alone_begin_no_acquisition)
{
    struct assembler_rig r;
    open_assembler(&r, 0);
    push(&r, 0, 0, M, OCT_LINES_STARTS);
    push(&r, 100, 100 * M, M, 0);
    for (uint64_t i = 1; i < 100; i++) /* overtaken */
        push(&r, i, i * M, M, 0);
    assert_int_equal(r.counts->lines_late, 99 * M);
    for (uint64_t i = 101; i < 150; i++) /* a camera that lost lines, then one line too late */
        push(&r, i, i == 120 ? 50 * M : i * M, M, 0);
    assert_int_equal(r.counts->lines_late, 100 * M);
    for (uint64_t i = 0; i < 40; i++) /* sent again under new numbers */
        push(&r, 150 + i, (101 + i) * M, M, 0);
    assert_int_equal(r.counts->resynchronised, 0);
    assert_int_equal(r.counts->acquisitions, 1);
    close_assembler(&r);
}

TEST(an_end_beyond_the_lines_seen_counts_those_between_as_missing)
{
    struct assembler_rig r;
    open_assembler(&r, 0);
    push(&r, 0, 0, 2, OCT_LINES_STARTS);
    push(&r, 1, 4 * M + 2, 0, OCT_LINES_ENDS);
    assert_int_equal(r.counts->bscans_delivered, 1);
    assert_int_equal(r.counts->lines_missing, M - 2 + 3 * M + 2);
    assert_int_equal(r.counts->ended_at, 2);
    push(&r, 2, 4 * M + 2, 0, OCT_LINES_ENDS); /* told once more: nothing is counted twice */
    assert_int_equal(r.counts->lines_missing, M - 2 + 3 * M + 2);
    close_assembler(&r);
}

static struct oct_gap explained(struct oct_loss_log *log, uint64_t from_bscan, uint64_t to_bscan)
{
    return oct_loss_log_explain(log, &(struct oct_gap){.acquisition = 1,
                                                       .first_line = from_bscan * M,
                                                       .n_lines = (to_bscan - from_bscan) * M,
                                                       .reason = OCT_LOSS_NONE});
}

TEST(what_is_lost_between_two_bscans_is_told_with_its_reason)
{
    struct assembler_rig r;
    struct oct_loss_log *log = oct_loss_log_create(0);
    uint64_t slot;
    open_assembler(&r, 0);
    oct_assembler_set_losses(r.assembler, log);
    push(&r, 1, 0, M, OCT_LINES_STARTS);
    push(&r, 2, 3 * M, (SLOTS - 1 + 4) * M, 0); /* 1, 2 never came; four more than there is room */
    for (unsigned i = 0; i < SLOTS; i++) {
        assert_int_equal(oct_ring_read(r.reader, 0, &slot), OCT_OK);
        const struct oct_raw_frame *f = oct_raw_slot(r.ring, slot, &r.geometry);
        assert_int_equal(f->info.lost_before, i == 1 ? 2 : 0);
        oct_ring_release(r.reader);
    }
    uint64_t full = 3 + SLOTS - 1; /* the first that found no room */
    push(&r, 3, (full + 6) * M, M, 0);
    assert_int_equal(oct_ring_read(r.reader, 0, &slot), OCT_OK);
    assert_int_equal(oct_raw_slot(r.ring, slot, &r.geometry)->info.lost_before, 6);
    struct oct_gap piece = explained(log, full, full + 6);
    assert_true(piece.n_lines == 4 * M && piece.reason == OCT_LOSS_RING_FULL);
    piece = explained(log, full + 4, full + 6); /* the source's: nobody has to tell */
    assert_true(piece.n_lines == 2 * M && piece.reason == OCT_LOSS_NONE);
    push(&r, 4, (full + 9) * M + 1, 0, OCT_LINES_ENDS); /* but at the end there is no next */
    piece = explained(log, full + 7, full + 12);
    assert_true(piece.n_lines == 3 * M && piece.reason == OCT_LOSS_SOURCE);
    close_assembler(&r);
    oct_loss_log_destroy(log);
}

TEST(after_the_gate_was_closed_nothing_from_meanwhile_is_missing)
{
    struct assembler_rig r;
    uint64_t slot;
    open_assembler(&r, 0);
    push(&r, 0, 0, M + 2, OCT_LINES_STARTS);
    oct_assembler_end(r.assembler);
    assert_int_equal(r.counts->lines_missing, M - 2);
    assert_int_equal(r.counts->ended_at, 3);
    push(&r, 50, 20 * M, M, 0); /* the same sender, much later */
    assert_int_equal(r.counts->lines_missing, M - 2);
    assert_int_equal(r.counts->messages_missed, 0);
    assert_int_equal(r.counts->acquisitions, 2);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(oct_ring_read(r.reader, 0, &slot), OCT_OK);
    assert_int_equal(oct_raw_slot(r.ring, slot, &r.geometry)->info.number, 20);
    assert_int_equal(oct_raw_slot(r.ring, slot, &r.geometry)->info.acquisition, 2);
    close_assembler(&r);
}

/* A gap of the camera's is missing; what a stop and a start cut off is missing too, but no loss. */
TEST(what_a_stop_and_a_start_cut_off_is_told_apart)
{
    struct assembler_rig r;
    open_assembler(&r, 0);
    push(&r, 0, 7 * M + 3, 1, 0); /* joins a running camera: 3 lines before, 1 lost in the middle */
    push(&r, 1, 7 * M + 4, 1, 0);
    push(&r, 2, 8 * M, 1, 0);
    push(&r, 4, 8 * M + 2, 1, 0); /* M + 1 is lost */
    assert_int_equal(r.counts->lines_missing, 3);
    assert_int_equal(r.counts->lines_cut, 3);
    oct_assembler_end(r.assembler);
    assert_int_equal(r.counts->lines_missing, 3 + M - 2);
    assert_int_equal(r.counts->lines_cut, 3 + M - 3);
    push(&r, 50, 20 * M + 4, M, 0); /* started again, amid a B-scan */
    push(&r, 51, 21 * M + 4, 1, 0);
    push(&r, 60, 30 * M + 2, M, 0); /* and the camera leaps */
    push(&r, 61, 31 * M + 2, M - 2, 0);
    assert_int_equal(r.counts->lines_cut, 3 + M - 3 + 4);
    assert_int_equal(r.counts->lines_missing, 3 + M - 2 + 4 + 8 * M + 2);
    push(&r, 0, 0, 1, OCT_LINES_STARTS); /* begins a new acquisition itself */
    push(&r, 1, M - 1, 1, 0);
    push(&r, 2, M, M, 0);
    assert_int_equal(r.counts->lines_cut, 3 + M - 3 + 4);
    close_assembler(&r);
}

TEST(malformed_messages_are_counted_by_reason_and_change_nothing)
{
    uint8_t header[OCT_LINES_HEADER_BYTES];
    uint16_t payload[2 * N] = {7};
    struct oct_lines_header h = block(0, 0, 1, OCT_LINES_STARTS);
    struct assembler_rig r;
    open_assembler(&r, 0);
    oct_lines_encode(&h, header);
    assert_int_equal(oct_assembler_take(r.assembler, header, 63, payload, N * 2, 1),
                     OCT_BAD_HEADER_SIZE);
    assert_int_equal(oct_assembler_take(r.assembler, header, 64, payload, N * 2 - 1, 1),
                     OCT_BAD_PAYLOAD_SIZE);
    h.n_samples = N + 1;
    oct_lines_encode(&h, header);
    assert_int_equal(oct_assembler_take(r.assembler, header, 64, payload, N * 2 + 2, 1),
                     OCT_BAD_SAMPLES);
    h.n_samples = N;
    h.crc32c = oct_crc32c(payload, N * 2) ^ 1;
    oct_lines_encode(&h, header);
    assert_int_equal(oct_assembler_take(r.assembler, header, 64, payload, N * 2, 1), OCT_BAD_CRC);
    oct_assembler_count_bad(r.assembler, OCT_BAD_PARTS);
    for (unsigned b = 1; b < OCT_N_BAD; b++)
        assert_int_equal(r.counts->messages_bad[b],
                         b == OCT_BAD_HEADER_SIZE || b == OCT_BAD_PAYLOAD_SIZE ||
                             b == OCT_BAD_SAMPLES || b == OCT_BAD_CRC || b == OCT_BAD_PARTS);
    assert_int_equal(r.counts->messages, 0);
    assert_int_equal(r.counts->acquisitions, 0);
    h.crc32c ^= 1;
    oct_lines_encode(&h, header);
    assert_int_equal(oct_assembler_take(r.assembler, header, 64, payload, N * 2, 1), OCT_BAD_NONE);
    assert_int_equal(r.counts->lines_received, 1);
    close_assembler(&r);
}
