/* The assembler against a model that works line by line and keeps everything. */
#include "pipeline/base/clock.h"
#include "pipeline/flow/slots.h"
#include "pipeline/ingest/assembler.h"
#include "test/rig/assembler_rig.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t MS = 1000000;

/* ---- the model ---- */

struct model_bscan {
    struct oct_bscan_info info;
    uint8_t valid[M];
    uint16_t samples[M][N];
};

struct model {
    bool running, over, from_start;
    uint32_t epoch, acquisition;
    uint16_t format;       /* of the acquisition's lines; 0: none has come */
    uint64_t others[4096]; /* arrivals of others' messages since the running sender's last */
    unsigned n_others;
    uint64_t start, highest, next;
    uint64_t came[4096]; /* sequence numbers of this acquisition */
    unsigned n_came;
    bool open, dropping;
    uint32_t n_present;
    struct model_bscan now;
    struct model_bscan ready[SLOTS]; /* delivered, not yet read: number % SLOTS */
    uint64_t delivered, read;
    uint64_t messages, duplicate, missed, received, missing, lines_duplicate, late, lines_dropped;
    uint64_t begun, dropped, bad_epoch, bad_format, ended_at;
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
            m->now.samples[j][i] = assembler_sample(h, line, i);
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
    m->n_others = 0;
    m->running = true;
    m->over = false;
    m->from_start = h->flags & OCT_LINES_STARTS;
    m->epoch = h->epoch;
    m->acquisition++;
    m->start = h->sequence;
    m->highest = h->sequence - 1;
    m->next = m->from_start ? 0 : h->first_line / M;
    m->n_came = 0;
    m->format = 0;
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
    if (same)
        m->n_others = 0;
    if (!same && m->running && !m->over && !starts && h->sequence != 0) {
        assert_true(m->n_others < 4096);
        m->others[m->n_others++] = arrival_ns;
        if (m->n_others < 3 || arrival_ns - m->others[0] < 200000000) {
            m->bad_epoch++;
            return OCT_BAD_EPOCH;
        }
    }
    if (!same || (starts && h->sequence != m->start))
        model_begin_acquisition(m, h);
    if (h->n_lines && m->format && m->format != h->format) {
        m->bad_format++;
        return OCT_BAD_FORMAT;
    }
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
    m->format = h->n_lines ? h->format : m->format;
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
static void expect_bscan(struct assembler_rig *r, struct model *m)
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
    for (uint32_t j = 0; j < M; j++) {
        uint16_t room[N];
        assert_memory_equal(oct_raw_line(frame, &r->geometry, j, 0, N, room), wanted->samples[j],
                            sizeof(room));
    }
    oct_ring_release(r->reader);
}

static void expect_counts(const struct assembler_rig *r, const struct model *m)
{
    const struct oct_ingest_counts *c = r->counts;
    assert_int_equal(c->messages, m->messages);
    assert_int_equal(c->messages_duplicate, m->duplicate);
    assert_int_equal(c->messages_missed, m->missed);
    assert_int_equal(c->messages_bad[OCT_BAD_EPOCH], m->bad_epoch);
    assert_int_equal(c->messages_bad[OCT_BAD_FORMAT], m->bad_format);
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
    uint16_t format;
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
        c->format = (uint16_t)(1 + dice_below(d, 3));
    }
    struct oct_lines_header h = {
        .sequence = c->sequence,
        .time_ns = dice_roll(d),
        .first_line = c->line,
        .n_lines = 1 + dice_below(d, dice_below(d, 4) ? M : MOST_LINES),
        .n_samples = N,
        .format = dice_below(d, 100) ? c->format : (uint16_t)(1 + dice_below(d, 3)),
        .epoch = c->epoch,
    };
    if (dice_below(d, 20) == 0) { /* lines lost, or sent again under a new number */
        uint64_t leap = dice_below(d, 4 * M);
        h.first_line =
            dice_below(d, 2) || h.first_line < leap ? h.first_line + leap : h.first_line - leap;
    }
    if (dice_below(d, 40) == 0) {
        h.flags |= OCT_LINES_STARTS;
        h.format = c->format = (uint16_t)(1 + dice_below(d, 3));
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

static void leftover(struct camera *c, struct assembler_rig *r, struct model *m, uint64_t now_ns)
{
    /* From before or after what was taken of it: a leftover either way. */
    struct oct_lines_header h = {.sequence = c->older_sequence + dice_below(&c->dice, 3) - 2,
                                 .first_line = c->line,
                                 .n_lines = 1,
                                 .n_samples = N,
                                 .format = OCT_LINES_U16,
                                 .epoch = c->older_epoch};
    for (uint64_t n = dice_below(&c->dice, 10) ? 0 : 1 + dice_below(&c->dice, 10);
         c->older_epoch && n > 0; n--)
        assert_int_equal(send_message(r, &h, now_ns), model_take(m, &h, now_ns));
}

static void run_plan(uint64_t seed, uint32_t read_one_in)
{
    struct camera camera = {.dice = {seed}, .epoch = 1, .sequence = 5, .format = OCT_LINES_12P};
    struct model *m = calloc(1, sizeof(*m));
    struct assembler_rig r;
    assert_non_null(m);
    open_assembler(&r, 0);
    for (uint64_t step = 1, now_ns = 1; step <= 3000; step++) {
        now_ns += dice_below(&camera.dice, 20) ? dice_below(&camera.dice, 40) * MS : 150 * MS;
        struct oct_lines_header held, h = next_message(&camera);
        bool swaps = dice_below(&camera.dice, 15) == 0;
        if (swaps)
            held = next_message(&camera);
        if (swaps)
            assert_int_equal(send_message(&r, &held, now_ns), model_take(m, &held, now_ns));
        assert_int_equal(send_message(&r, &h, now_ns), model_take(m, &h, now_ns));
        leftover(&camera, &r, m, now_ns);
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
    assert_true(m->resynchronised > 0 && m->bad_epoch > 100 && m->bad_format > 20);
    assert_true((read_one_in > 1) == (m->dropped > 0));
    free(m);
    close_assembler(&r);
}

TEST(a_random_stream_gives_exactly_what_the_model_gives)
{
    for (uint64_t seed = 1; seed <= 10; seed++)
        run_plan(seed, 1);
}

TEST(a_full_ring_drops_whole_bscans_and_counts_them)
{
    for (uint64_t seed = 101; seed <= 110; seed++)
        run_plan(seed, 5);
}
