/* The assembler against a model that works line by line and keeps everything; then single cases. */
#include "pipeline/assembler.h"
#include "pipeline/clock.h"
#include "pipeline/slots.h"
#include "test/pipeline_help.h"
#include "test/tap.h"

#include <stdlib.h>
#include <string.h>

enum { N = 6, M = 5, V = 4, MOST_LINES = 25, SLOTS = 24 };

/* The assembler with its ring and a reader. */
struct rig {
    struct oct_geometry geometry;
    struct oct_ring *ring;
    struct oct_ring_reader *reader;
    struct oct_assembler *assembler;
    struct oct_ingest_counts *counts;
};

static void open_rig(struct rig *r, uint64_t patience_us)
{
    struct oct_error err = {.text = ""};
    assert_int_equal(oct_geometry_init(&r->geometry, N, M, V, 0, 0, OCT_SAMPLE_U8, &err), OCT_OK);
    r->ring = open_ring(SLOTS, oct_raw_slot_bytes(&r->geometry));
    r->reader = add_reader(r->ring, true, 0);
    assert_int_equal(oct_assembler_create(&r->assembler, &r->geometry, r->ring, patience_us, &err),
                     OCT_OK);
    r->counts = oct_assembler_counts(r->assembler);
}

static void close_rig(struct rig *r)
{
    oct_assembler_destroy(r->assembler);
    oct_ring_destroy(r->ring);
}

/* Every sample tells which message brought it. */
static uint16_t sample_of(const struct oct_lines_header *h, uint64_t line, uint32_t i)
{
    struct dice dice = {h->epoch * 7919ull + h->sequence * 104729 + line * 131 + i};
    uint16_t value = (uint16_t)(dice_roll(&dice) | 1);
    return h->format == OCT_LINES_U8 ? value & 0xff : value;
}

static enum oct_bad send(struct rig *r, const struct oct_lines_header *h, uint64_t arrival_ns)
{
    uint8_t header[OCT_LINES_HEADER_BYTES];
    unsigned char *payload = malloc(h->n_lines * (size_t)N * 2 + 1);
    assert_non_null(payload);
    size_t n = 0;
    for (uint32_t j = 0; j < h->n_lines; j++)
        for (uint32_t i = 0; i < N; i++) {
            uint16_t value = sample_of(h, h->first_line + j, i);
            payload[n++] = (unsigned char)(value & 0xff);
            if (h->format == OCT_LINES_U16)
                payload[n++] = (unsigned char)(value >> 8);
        }
    oct_lines_encode(h, header);
    enum oct_bad bad =
        oct_assembler_take(r->assembler, header, sizeof(header), payload, n, arrival_ns);
    free(payload);
    return bad;
}

/* ---- the model ---- */

struct model_bscan {
    struct oct_bscan_info info;
    uint8_t valid[M];
    uint16_t samples[M][N];
};

struct model {
    bool running, over, from_start, has_ended;
    uint32_t epoch, acquisition, ended_epoch;
    uint64_t start, highest, next;
    uint64_t came[4096]; /* sequence numbers of this acquisition */
    unsigned n_came;
    bool open, dropping;
    uint32_t n_present;
    struct model_bscan now;
    struct model_bscan ready[SLOTS]; /* delivered, not yet read: number % SLOTS */
    uint64_t delivered, read;
    uint64_t messages, duplicate, missed, received, missing, lines_duplicate, late, lines_dropped;
    uint64_t begun, dropped, bad_epoch, ended_at;
    bool jumped;
    uint64_t jump_bscan, jump_end, jump_sequence, resynchronised;
    struct oct_lines_header astray[17]; /* in a row, for what the last jump left out */
    unsigned n_astray;
};

static void model_close(struct model *m)
{
    m->open = false;
    m->next++;
    if (m->dropping)
        return;
    m->now.info.missing_lines = M - m->n_present;
    m->missing += M - m->n_present;
    m->ready[m->delivered++ % SLOTS] = m->now;
}

static void model_end(struct model *m)
{
    if (m->open)
        model_close(m);
    m->ended_at = m->delivered + 1;
}

static void model_begin_bscan(struct model *m, const struct oct_lines_header *h, uint64_t number)
{
    if (m->open)
        model_close(m);
    if (number != m->next) {
        if (!m->jumped || h->sequence - m->jump_sequence > 16)
            m->jump_bscan = m->next;
        m->jumped = true;
        m->jump_end = number;
        m->jump_sequence = h->sequence;
        m->n_astray = 0;
    }
    m->missing += (number - m->next) * M;
    m->next = number;
    m->open = true;
    m->n_present = 0;
    m->begun++;
    m->dropping = m->delivered - m->read == SLOTS;
    m->dropped += m->dropping;
    m->now = (struct model_bscan){.info = {.id = m->delivered,
                                           .acquisition = m->acquisition,
                                           .number = number,
                                           .volume = number / V,
                                           .bscan = (uint32_t)(number % V),
                                           .time_ns = h->time_ns}};
}

static void model_line(struct model *m, const struct oct_lines_header *h, uint64_t line,
                       uint64_t arrival_ns)
{
    uint64_t number = line / M, j = line % M;
    if (number < m->next) {
        m->late++;
        return;
    }
    if (!m->open || number != m->next)
        model_begin_bscan(m, h, number);
    if (m->now.valid[j]) {
        m->lines_duplicate++;
    } else {
        if (m->dropping)
            m->lines_dropped++;
        else
            m->received++;
        m->n_present++;
        m->now.valid[j] = 1;
        for (uint32_t i = 0; i < N; i++)
            m->now.samples[j][i] = sample_of(h, line, i);
    }
    m->now.info.sequence = h->sequence;
    m->now.info.arrival_ns = arrival_ns;
    bool block_ends = line + 1 == h->first_line + h->n_lines || j + 1 == M;
    if (block_ends && m->n_present >= M)
        model_close(m);
}

static void model_begin_acquisition(struct model *m, const struct oct_lines_header *h)
{
    if (m->running)
        model_end(m);
    if (m->acquisition && m->epoch != h->epoch) {
        m->has_ended = true;
        m->ended_epoch = m->epoch;
    }
    m->running = true;
    m->over = false;
    m->from_start = h->flags & OCT_LINES_STARTS;
    m->epoch = h->epoch;
    m->acquisition++;
    m->start = h->sequence;
    m->highest = h->sequence - 1;
    m->next = m->from_start ? 0 : h->first_line / M;
    m->n_came = 0;
    m->jumped = false;
    m->n_astray = 0;
}

/* The jump was a lie when 17 messages were sent after it, wholly for what it left out, in order. */
static bool model_is_astray(struct model *m, const struct oct_lines_header *h)
{
    unsigned n_late = 0, n_left_out = 0;
    if (!m->jumped || (int64_t)(h->sequence - m->jump_sequence) <= 0)
        return false;
    for (uint32_t k = 0; k < h->n_lines; k++) {
        uint64_t number = (h->first_line + k) / M;
        n_late += number < m->next;
        n_left_out += number >= m->jump_bscan && number < m->jump_end;
    }
    if (n_late < h->n_lines)
        m->n_astray = 0;
    if (h->n_lines == 0 || n_late < h->n_lines || n_left_out < h->n_lines)
        return false;
    const struct oct_lines_header *before = m->n_astray ? &m->astray[m->n_astray - 1] : NULL;
    if (before && (h->first_line < before->first_line + before->n_lines ||
                   (int64_t)(h->sequence - before->sequence) <= 0))
        m->n_astray = 0;
    m->astray[m->n_astray++] = *h;
    return m->n_astray == 17;
}

static enum oct_bad model_take(struct model *m, const struct oct_lines_header *h,
                               uint64_t arrival_ns)
{
    bool starts = h->flags & OCT_LINES_STARTS, same = m->running && h->epoch == m->epoch;
    if (!same && m->running && !m->over && m->has_ended && h->epoch == m->ended_epoch && !starts &&
        h->sequence != 0) {
        m->bad_epoch++;
        return OCT_BAD_EPOCH;
    }
    if (!same || (starts && h->sequence != m->start))
        model_begin_acquisition(m, h);
    m->messages++;
    for (unsigned i = 0; i < m->n_came; i++)
        if (m->came[i] == h->sequence) {
            m->duplicate++;
            m->lines_duplicate += h->n_lines;
            return OCT_BAD_NONE;
        }
    assert_true(m->n_came < 4096);
    m->came[m->n_came++] = h->sequence;
    if ((int64_t)(h->sequence - m->highest) > 0) {
        m->missed += h->sequence - m->highest - 1;
        m->highest = h->sequence;
    }
    if (m->from_start && (int64_t)(h->sequence - m->start) < 0) {
        m->late += h->n_lines;
        return OCT_BAD_NONE;
    }
    if (model_is_astray(m, h)) {
        model_begin_acquisition(m, h);
        m->highest = h->sequence;
        m->came[m->n_came++] = h->sequence;
        m->resynchronised++;
    }
    for (uint64_t k = 0; k < h->n_lines; k++)
        model_line(m, h, h->first_line + k, arrival_ns);
    if (h->flags & OCT_LINES_ENDS) {
        model_end(m);
        m->over = true;
        for (uint64_t line = m->next * M; line < h->first_line + h->n_lines; line++) {
            m->missing++;
            m->next = line / M + 1;
        }
    }
    return OCT_BAD_NONE;
}

/* Reads one B-scan of the ring and compares every byte. */
static void expect_bscan(struct rig *r, struct model *m)
{
    uint64_t slot;
    assert_int_equal(oct_ring_read(r->reader, 0, &slot), OCT_OK);
    const struct oct_raw_frame *frame = oct_raw_slot(r->ring, slot, &r->geometry);
    const struct model_bscan *wanted = &m->ready[m->read++ % SLOTS];
    const struct oct_bscan_info *a = &frame->info, *b = &wanted->info;
    assert_int_equal(slot, b->id);
    assert_true(a->id == b->id && a->acquisition == b->acquisition && a->number == b->number);
    assert_true(a->volume == b->volume && a->bscan == b->bscan);
    assert_int_equal(a->sequence, b->sequence);
    assert_int_equal(a->time_ns, b->time_ns);
    assert_int_equal(a->arrival_ns, b->arrival_ns);
    assert_int_equal(a->missing_lines, b->missing_lines);
    assert_memory_equal(frame->line_valid, wanted->valid, M);
    assert_memory_equal(frame->spectra, wanted->samples, sizeof(wanted->samples));
    oct_ring_release(r->reader);
}

static void expect_counts(const struct rig *r, const struct model *m)
{
    const struct oct_ingest_counts *c = r->counts;
    assert_int_equal(c->messages, m->messages);
    assert_int_equal(c->messages_duplicate, m->duplicate);
    assert_int_equal(c->messages_missed, m->missed);
    assert_int_equal(c->messages_bad[OCT_BAD_EPOCH], m->bad_epoch);
    assert_int_equal(c->lines_received, m->received);
    assert_int_equal(c->lines_missing, m->missing);
    assert_int_equal(c->lines_duplicate, m->lines_duplicate);
    assert_int_equal(c->lines_late, m->late);
    assert_int_equal(c->lines_dropped, m->lines_dropped);
    assert_int_equal(c->bscans_begun, m->begun);
    assert_int_equal(c->bscans_delivered, m->delivered);
    assert_int_equal(c->bscans_dropped, m->dropped);
    assert_int_equal(c->acquisitions, m->acquisition);
    assert_int_equal(c->resynchronised, m->resynchronised);
    assert_int_equal(c->ended_at, m->ended_at);
    assert_true(oct_assembler_is_open(r->assembler) == m->open);
    bool in_ring = m->open && !m->dropping;
    assert_int_equal(m->begun, m->delivered + m->dropped + in_ring);
}

/* ---- a camera that misbehaves ---- */

enum { N_RECENT = 16 };

struct camera {
    struct dice dice;
    uint32_t epoch, older_epoch;
    uint64_t sequence, older_sequence, line;
    struct oct_lines_header recent[N_RECENT]; /* sent, to be sent again */
    unsigned n_recent;
};

static struct oct_lines_header next_message(struct camera *c)
{
    struct dice *d = &c->dice;
    if (c->n_recent && dice_below(d, 12) == 0) /* a duplicate, or one that was held back */
        return c->recent[dice_below(d, c->n_recent < N_RECENT ? c->n_recent : N_RECENT)];
    if (dice_below(d, 60) == 0) { /* the sender restarts */
        c->older_epoch = c->epoch;
        c->older_sequence = c->sequence;
        c->epoch += 1 + dice_below(d, 3);
        c->sequence = dice_below(d, 2) ? dice_below(d, 100) : UINT64_MAX - dice_below(d, 20);
        c->n_recent = 0;
    }
    struct oct_lines_header h = {
        .sequence = c->sequence,
        .time_ns = dice_roll(d),
        .first_line = c->line,
        .n_lines = 1 + dice_below(d, dice_below(d, 4) ? M : MOST_LINES),
        .n_samples = N,
        .format = dice_below(d, 4) ? OCT_LINES_U16 : OCT_LINES_U8,
        .epoch = c->epoch,
    };
    if (dice_below(d, 20) == 0) { /* lines lost, or sent again under a new number */
        uint64_t leap = dice_below(d, 4 * M);
        h.first_line =
            dice_below(d, 2) || h.first_line < leap ? h.first_line + leap : h.first_line - leap;
    }
    if (dice_below(d, 40) == 0) {
        h.flags |= OCT_LINES_STARTS;
        h.first_line = dice_below(d, 3) ? 0 : dice_below(d, 3 * M);
    }
    if (dice_below(d, 50) == 0) {
        h.flags |= OCT_LINES_ENDS;
        if (dice_below(d, 2))
            h.n_lines = 0;
    }
    c->line = h.first_line + h.n_lines;
    if (dice_below(d, 60) == 0) /* a wrong number, and on as if nothing had been */
        h.first_line += 1000 * M;
    c->sequence += 1 + (dice_below(d, 25) == 0 ? dice_below(d, 4) : 0);
    c->recent[c->n_recent++ % N_RECENT] = h;
    return h;
}

static void leftover(struct camera *c, struct rig *r, struct model *m)
{
    /* From before or after what was taken of it: a leftover either way. */
    struct oct_lines_header h = {.sequence = c->older_sequence + dice_below(&c->dice, 3) - 2,
                                 .first_line = c->line,
                                 .n_lines = 1,
                                 .n_samples = N,
                                 .format = OCT_LINES_U16,
                                 .epoch = c->older_epoch};
    if (c->older_epoch && c->older_epoch == m->ended_epoch && !m->over && h.sequence != 0)
        assert_int_equal(send(r, &h, 1), model_take(m, &h, 1));
}

static void run_plan(uint64_t seed, uint32_t read_one_in)
{
    struct camera camera = {.dice = {seed}, .epoch = 1, .sequence = 5};
    struct model *m = calloc(1, sizeof(*m));
    struct rig r;
    assert_non_null(m);
    open_rig(&r, 0);
    for (uint64_t step = 1; step <= 3000; step++) {
        struct oct_lines_header held, h = next_message(&camera);
        bool swaps = dice_below(&camera.dice, 15) == 0;
        if (swaps)
            held = next_message(&camera);
        if (swaps)
            assert_int_equal(send(&r, &held, step), model_take(m, &held, step));
        assert_int_equal(send(&r, &h, step), model_take(m, &h, step));
        leftover(&camera, &r, m);
        if (dice_below(&camera.dice, 40) == 0) { /* a pause */
            oct_assembler_flush(r.assembler, false);
            if (m->open)
                model_close(m);
        }
        if (dice_below(&camera.dice, 200) == 0) { /* the gate */
            oct_assembler_end(r.assembler);
            model_end(m);
            m->running = false;
        }
        expect_counts(&r, m);
        while (m->read < m->delivered && dice_below(&camera.dice, read_one_in) == 0)
            expect_bscan(&r, m);
    }
    while (m->read < m->delivered)
        expect_bscan(&r, m);
    assert_true(m->begun > 500 && m->missing > 0 && m->late > 0 && m->duplicate > 0);
    assert_true(m->lines_duplicate > 0 && m->missed > 0 && m->acquisition > 20);
    assert_true(m->resynchronised > 0);
    assert_true((read_one_in > 1) == (m->dropped > 0));
    free(m);
    close_rig(&r);
}

static void a_random_stream_gives_exactly_what_the_model_gives(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++)
        run_plan(seed, 1);
}

static void a_full_ring_drops_whole_bscans_and_counts_them(void **state)
{
    (void)state;
    for (uint64_t seed = 101; seed <= 110; seed++)
        run_plan(seed, 5);
}

/* ---- single cases ---- */

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

static enum oct_bad push(struct rig *r, uint64_t sequence, uint64_t first_line, uint32_t n_lines,
                         uint16_t flags)
{
    struct oct_lines_header h = block(sequence, first_line, n_lines, flags);
    return send(r, &h, 1);
}

static void a_message_of_many_bscans_waits_for_slots_only_once(void **state)
{
    struct rig r;
    (void)state;
    open_rig(&r, 50000);
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
    close_rig(&r);
}

static void line_numbers_that_leap_wildly_are_refused_and_change_nothing(void **state)
{
    const uint64_t wild = (uint64_t)1 << 40;
    struct rig r;
    (void)state;
    open_rig(&r, 0);
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
    close_rig(&r);
}

static void a_camera_joined_at_the_largest_line_numbers_is_counted_right(void **state)
{
    const uint64_t last = UINT64_MAX / M * M; /* the last B-scan that begins below 2^64 */
    struct rig r;
    (void)state;
    open_rig(&r, 0);
    assert_int_equal(push(&r, 0, last - M, M, 0), OCT_BAD_NONE);
    assert_int_equal(push(&r, 1, UINT64_MAX, 0, OCT_LINES_ENDS), OCT_BAD_NONE);
    assert_int_equal(r.counts->bscans_delivered, 1);
    assert_int_equal(r.counts->lines_missing, UINT64_MAX - last);
    close_rig(&r);
}

static void lines_from_before_a_start_in_the_same_epoch_are_late(void **state)
{
    struct rig r;
    (void)state;
    open_rig(&r, 0);
    push(&r, 10, 0, M, OCT_LINES_STARTS);
    push(&r, 12, 0, M, OCT_LINES_STARTS);
    push(&r, 11, 100 * M, M, OCT_LINES_ENDS); /* of the acquisition before */
    assert_int_equal(r.counts->lines_late, M);
    assert_int_equal(r.counts->lines_missing, 0);
    assert_int_equal(r.counts->acquisitions, 2);
    push(&r, 13, M, M, 0); /* the acquisition is not disturbed */
    assert_int_equal(r.counts->lines_received, 3 * M);
    assert_int_equal(r.counts->lines_missing, 0);
    close_rig(&r);
}

static void one_wrong_line_number_silences_nobody(void **state)
{
    const uint64_t wrong = ((uint64_t)1 << 32) / M; /* as far as a jump may go */
    struct rig r;
    uint64_t slot;
    (void)state;
    open_rig(&r, 0);
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
    close_rig(&r);
}

/* What a true jump overtook was sent before it; what is sent again had come. */
static void late_lines_alone_begin_no_acquisition(void **state)
{
    struct rig r;
    (void)state;
    open_rig(&r, 0);
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
    close_rig(&r);
}

static void an_end_beyond_the_lines_seen_counts_those_between_as_missing(void **state)
{
    struct rig r;
    (void)state;
    open_rig(&r, 0);
    push(&r, 0, 0, 2, OCT_LINES_STARTS);
    push(&r, 1, 4 * M + 2, 0, OCT_LINES_ENDS);
    assert_int_equal(r.counts->bscans_delivered, 1);
    assert_int_equal(r.counts->lines_missing, M - 2 + 3 * M + 2);
    assert_int_equal(r.counts->ended_at, 2);
    push(&r, 2, 4 * M + 2, 0, OCT_LINES_ENDS); /* told once more: nothing is counted twice */
    assert_int_equal(r.counts->lines_missing, M - 2 + 3 * M + 2);
    close_rig(&r);
}

static struct oct_gap explained(struct oct_loss_log *log, uint64_t from_bscan, uint64_t to_bscan)
{
    return oct_loss_log_explain(log, &(struct oct_gap){.acquisition = 1,
                                                       .first_line = from_bscan * M,
                                                       .n_lines = (to_bscan - from_bscan) * M,
                                                       .reason = OCT_LOSS_NONE});
}

static void what_is_lost_between_two_bscans_is_told_with_its_reason(void **state)
{
    struct rig r;
    struct oct_loss_log *log = oct_loss_log_create(0);
    uint64_t slot;
    (void)state;
    open_rig(&r, 0);
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
    close_rig(&r);
    oct_loss_log_destroy(log);
}

static void after_the_gate_was_closed_nothing_from_meanwhile_is_missing(void **state)
{
    struct rig r;
    uint64_t slot;
    (void)state;
    open_rig(&r, 0);
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
    close_rig(&r);
}

static void malformed_messages_are_counted_by_reason_and_change_nothing(void **state)
{
    uint8_t header[OCT_LINES_HEADER_BYTES];
    uint16_t payload[2 * N] = {7};
    struct oct_lines_header h = block(0, 0, 1, OCT_LINES_STARTS);
    struct rig r;
    (void)state;
    open_rig(&r, 0);
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
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_random_stream_gives_exactly_what_the_model_gives),
        cmocka_unit_test(a_full_ring_drops_whole_bscans_and_counts_them),
        cmocka_unit_test(a_message_of_many_bscans_waits_for_slots_only_once),
        cmocka_unit_test(line_numbers_that_leap_wildly_are_refused_and_change_nothing),
        cmocka_unit_test(a_camera_joined_at_the_largest_line_numbers_is_counted_right),
        cmocka_unit_test(lines_from_before_a_start_in_the_same_epoch_are_late),
        cmocka_unit_test(one_wrong_line_number_silences_nobody),
        cmocka_unit_test(late_lines_alone_begin_no_acquisition),
        cmocka_unit_test(an_end_beyond_the_lines_seen_counts_those_between_as_missing),
        cmocka_unit_test(what_is_lost_between_two_bscans_is_told_with_its_reason),
        cmocka_unit_test(after_the_gate_was_closed_nothing_from_meanwhile_is_missing),
        cmocka_unit_test(malformed_messages_are_counted_by_reason_and_change_nothing),
    };
    return cmocka_run_group_tests_name("assembler", tests, NULL, NULL);
}
