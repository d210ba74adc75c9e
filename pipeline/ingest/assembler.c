#include "pipeline/ingest/assembler.h"

#include "pipeline/base/crc32c.h"
#include "pipeline/base/pause.h"
#include "pipeline/flow/slots.h"

#include <stdlib.h>
#include <string.h>

/* A first_line this far beyond what was seen is a broken header, not a gap: at a million A-lines a
 * second it would be more than an hour. */
#define LEAP_LINES ((uint64_t)1 << 32)

/* This many messages in a row for B-scans that a jump skipped prove the jump wrong. */
#define ASTRAY_MESSAGES 16

/* The last jump over whole B-scans, and the messages that arrived for those after all. One wrong
 * first_line closes all B-scans up to it; the sender's correct lines would then be late for
 * hours. */
struct jump {
    bool there;
    uint64_t first_bscan, end_bscan; /* what it skipped */
    uint64_t sequence;               /* of the message that jumped */
    /* Messages sent after it, wholly for what it skipped, each beyond the one before: */
    unsigned n_messages;
    uint64_t last_sequence, next_line;
};

/* An acquisition, as the sender numbers it. */
struct acquisition {
    bool running;
    bool over;       /* its sender ended it: another may begin at once */
    bool from_start; /* began with the flag "starts": earlier messages are not part of it */
    uint32_t epoch;
    uint16_t format;                 /* of its samples; 0: no line has come */
    uint32_t number;                 /* ours: 1, 2, ... */
    uint64_t start_sequence;         /* of the message that began it */
    uint64_t last_sequence;          /* highest */
    uint64_t seen;                   /* bit i: last_sequence - i has come */
    uint64_t next_bscan;             /* all lower numbers are closed */
    uint64_t next_line;              /* one past the highest line seen */
    uint64_t next_delivered;         /* one past the last B-scan delivered */
    uint64_t heard_first, heard_end; /* lines sent while the gate was open: others were cut off */
    struct jump jump;
};

struct oct_assembler {
    struct oct_geometry geometry;
    uint32_t period, lag; /* lines sent a B-scan, and of these before its first A-line */
    struct oct_scan scan; /* what turns B-scans; n_lines 0: nothing does */
    struct oct_epochs epochs;
    struct oct_ring *ring;
    struct oct_loss_log *losses;            /* NULL: losses are not logged */
    uint64_t patience_us, patience_left_us; /* of a message, and what is left of it for this one */
    struct oct_lender lender;               /* all NULL: lines are copied */
    uint64_t given_back;                    /* slots below this borrow nothing any more */
    struct oct_ingest_counts counts;
    struct oct_driver_watch driver;
    struct acquisition now;
    struct rivals { /* messages of other epochs, refused since the running sender's last message */
        uint64_t n, since_ns; /* arrival of the first */
    } rivals;

    uint8_t *dropped_valid;      /* [M] the mask of a B-scan that got no slot */
    bool open;                   /* a B-scan has begun: number now.next_bscan */
    struct oct_raw_frame *frame; /* where it is assembled; NULL: no slot was free, its lines are
                                    dropped */
    uint32_t n_present;
};

/* Release: a reader that sees a B-scan dropped also sees it begun. */
static void add_count(atomic_uint_fast64_t *count, uint64_t n)
{
    atomic_fetch_add_explicit(count, n, memory_order_release);
}

enum oct_err oct_assembler_create(struct oct_assembler **out, const struct oct_geometry *geometry,
                                  struct oct_ring *ring, uint64_t patience_us,
                                  struct oct_error *err)
{
    struct oct_assembler *a = calloc(1, sizeof(*a));
    *out = a;
    if (!a)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the assembler");
    a->geometry = *geometry;
    a->period = geometry->n_lines;
    a->ring = ring;
    a->patience_us = patience_us;
    a->epochs.last = UINT32_MAX;
    a->dropped_valid = malloc(geometry->n_lines);
    if (!a->dropped_valid) {
        free(a);
        *out = NULL;
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the assembler");
    }
    oct_driver_watch_init(&a->driver);
    return OCT_OK;
}

void oct_assembler_destroy(struct oct_assembler *a)
{
    if (!a)
        return;
    oct_driver_watch_finish(&a->driver);
    free(a->dropped_valid);
    free(a);
}

void oct_assembler_set_scan(struct oct_assembler *a, const struct oct_scan *scan)
{
    a->scan = *scan;
    a->period = oct_scan_sent_lines(scan);
    a->lag = oct_scan_lag(scan);
}

void oct_assembler_set_epochs(struct oct_assembler *a, const struct oct_epochs *epochs)
{
    a->epochs = *epochs;
}

void oct_assembler_set_patience(struct oct_assembler *a, uint64_t patience_us)
{
    a->patience_us = patience_us;
}

void oct_assembler_set_losses(struct oct_assembler *a, struct oct_loss_log *losses)
{
    a->losses = losses;
}

void oct_assembler_set_lender(struct oct_assembler *a, const struct oct_lender *lender)
{
    a->lender = *lender;
}

static void give_back_below(struct oct_assembler *a, uint64_t end)
{
    for (; a->given_back < end; a->given_back++)
        a->lender.give_back(a->lender.owner, a->given_back);
}

void oct_assembler_give_back(struct oct_assembler *a)
{
    if (a->lender.lend)
        give_back_below(a, oct_ring_done_below(a->ring));
}

struct oct_ingest_counts *oct_assembler_counts(struct oct_assembler *a)
{
    return &a->counts;
}

struct oct_driver_watch *oct_assembler_driver(struct oct_assembler *a)
{
    return &a->driver;
}

bool oct_assembler_is_open(const struct oct_assembler *a)
{
    return a->open;
}

void oct_assembler_count_bad(struct oct_assembler *a, enum oct_bad reason)
{
    add_count(&a->counts.messages_bad[reason], 1);
}

void oct_assembler_refuse(struct oct_assembler *a, enum oct_bad reason, unsigned n_parts,
                          const void *first, size_t first_bytes)
{
    oct_assembler_count_bad(a, reason);
    oct_driver_watch_refuse(
        &a->driver, reason,
        &(struct oct_driver_refusal){
            .first = first, .first_bytes = first_bytes, .n_parts = n_parts, .epoch = a->now.epoch});
}

/* ---- B-scans ---- */

/* A-lines of B-scans among the lines below this number. */
static uint64_t count_alines(const struct oct_assembler *a, uint64_t line)
{
    const uint64_t n_lines = a->geometry.n_lines, sent = line % a->period;
    const uint64_t of_last = sent < a->lag ? 0 : sent - a->lag;
    return line / a->period * n_lines + (of_last < n_lines ? of_last : n_lines);
}

static bool is_turned(const struct oct_assembler *a, uint64_t number)
{
    return a->scan.n_lines &&
           oct_scan_is_turned(&a->scan, (uint32_t)(number % a->geometry.n_bscans));
}

/* B-scans first .. end - 1 of this acquisition will not be delivered. */
static void tell_lost(struct oct_assembler *a, uint64_t first, uint64_t end, enum oct_loss reason)
{
    uint64_t n_lines = a->geometry.n_lines;
    oct_loss_log_add(a->losses, &(struct oct_gap){
                                    .acquisition = a->now.number,
                                    .first_line = first * n_lines,
                                    .n_lines = (end - first) * n_lines,
                                    .reason = reason,
                                });
}

/* While the whole program stood still (pause.h) nobody could free a slot: that wait does not
 * count. */
static enum oct_err acquire(struct oct_assembler *a, uint64_t *slot)
{
    const uint64_t paused_ns = a->patience_left_us * 1000 + OCT_PAUSE_LEAST_NS;
    uint64_t begun_ns;
    enum oct_err e;
    do {
        begun_ns = oct_pause_clock_ns();
        e = oct_ring_acquire(a->ring, a->patience_left_us, slot);
    } while (e == OCT_E_AGAIN && oct_pause_clock_ns() - begun_ns >= paused_ns);
    return e;
}

static void begin_bscan(struct oct_assembler *a, uint64_t number, const struct oct_lines_header *h)
{
    const struct oct_geometry *g = &a->geometry;
    uint64_t slot;

    a->open = true;
    a->n_present = 0;
    a->frame = NULL;
    a->now.next_bscan = number;
    add_count(&a->counts.bscans_begun, 1);
    if (acquire(a, &slot)) {
        a->patience_left_us = 0; /* a message of many B-scans waits once, not for each of them */
        add_count(&a->counts.bscans_dropped, 1);
        tell_lost(a, number, number + 1, OCT_LOSS_RING_FULL);
        memset(a->dropped_valid, 0, g->n_lines);
        return;
    }
    if (a->lender.lend && slot >= oct_ring_n_slots(a->ring))
        give_back_below(a, slot - oct_ring_n_slots(a->ring) + 1); /* the slot that this one
                                                                     replaces */
    a->frame = oct_raw_slot(a->ring, slot, g);
    a->frame->spectra = oct_raw_slot_spectra(a->ring, slot, g);
    a->frame->format = h->format;
    a->frame->info = (struct oct_bscan_info){
        .id = slot,
        .acquisition = a->now.number,
        .number = number,
        .volume = number / g->n_bscans,
        .bscan = (uint32_t)(number % g->n_bscans),
        .time_ns = h->time_ns,
        .lost_before = number - a->now.next_delivered,
    };
    memset(a->frame->line_valid, 0, g->n_lines);
}

/* Line j of the open B-scan, in the ring's memory. */
static unsigned char *slot_line(struct oct_assembler *a, uint32_t j)
{
    return (unsigned char *)a->frame->spectra +
           j * oct_samples_bytes(a->frame->format, a->geometry.n_samples);
}

/* Missing lines are zero in the ring and in the file. */
static void clear_missing(struct oct_assembler *a)
{
    const struct oct_geometry *g = &a->geometry;
    for (uint32_t j = 0; j < g->n_lines; j++)
        if (!a->frame->line_valid[j])
            memset(slot_line(a, j), 0, (size_t)oct_samples_bytes(a->frame->format, g->n_samples));
}

/* Lines of the open B-scan that are missing because the gate was closed. */
static uint32_t count_cut(const struct oct_assembler *a)
{
    const uint32_t n_lines = a->geometry.n_lines;
    const bool turned = is_turned(a, a->now.next_bscan);
    const uint64_t first = a->now.next_bscan * a->period + a->lag;
    uint32_t n_cut = 0;
    for (uint32_t j = 0; j < n_lines; j++) {
        const uint64_t line = first + (turned ? n_lines - 1 - j : j);
        n_cut +=
            !a->frame->line_valid[j] && (line < a->now.heard_first || line >= a->now.heard_end);
    }
    return n_cut;
}

static void deliver_bscan(struct oct_assembler *a)
{
    uint32_t missing = a->geometry.n_lines - a->n_present;
    uint32_t n_cut = missing && a->frame ? count_cut(a) : 0;

    a->open = false;
    a->now.next_bscan++;
    if (!a->frame)
        return;
    if (missing)
        clear_missing(a);
    a->frame->info.missing_lines = missing;
    a->now.next_delivered = a->now.next_bscan;
    add_count(&a->counts.lines_missing, missing);
    add_count(&a->counts.lines_cut, n_cut);
    add_count(&a->counts.bscans_delivered, 1);
    oct_ring_publish(a->ring);
    a->frame = NULL;
}

/* ---- acquisitions ---- */

void oct_assembler_flush(struct oct_assembler *a, bool ended)
{
    if (a->open)
        deliver_bscan(a);
    if (ended)
        atomic_store(&a->counts.ended_at, oct_ring_published(a->ring) + 1);
}

void oct_assembler_end(struct oct_assembler *a)
{
    a->now.heard_end = a->now.next_line;
    oct_assembler_flush(a, true);
    a->now.running = false;
    atomic_store(&a->counts.over, true);
}

static void begin_acquisition(struct oct_assembler *a, const struct oct_lines_header *h)
{
    if (a->now.running)
        oct_assembler_flush(a, true);
    a->rivals.n = 0;
    bool from_start = h->flags & OCT_LINES_STARTS, goes_on = a->now.running;
    a->now = (struct acquisition){
        .running = true,
        .from_start = from_start,
        .epoch = h->epoch,
        .number = a->now.number + 1,
        .start_sequence = h->sequence,
        .last_sequence = h->sequence - 1,
        /* Lines sent before octd joined a running camera are not missing, nor is a B-scan of which
         * nothing but the flyback is still to come. */
        .next_bscan = from_start ? 0 : count_alines(a, h->first_line) / a->geometry.n_lines,
        .next_line = from_start ? 0 : h->first_line,
        .heard_first = from_start || goes_on ? 0 : h->first_line,
        .heard_end = UINT64_MAX,
    };
    a->now.next_delivered = a->now.next_bscan;
    atomic_store(&a->counts.epoch, h->epoch);
    atomic_store(&a->counts.over, false);
    atomic_store(&a->counts.next_line, a->now.next_line);
    add_count(&a->counts.acquisitions, 1);
}

/* Whether the running sender fell silent while others went on sending; called with one more message
 * of theirs. Both the time and the count are needed: a queue that a stall has filled is emptied
 * within moments, and of slow senders two messages in a row prove nothing. */
static bool is_outlasted(struct rivals *rivals, uint64_t arrival_ns)
{
    if (rivals->n++ == 0)
        rivals->since_ns = arrival_ns;
    return rivals->n >= OCT_TAKEOVER_MESSAGES && arrival_ns - rivals->since_ns >= OCT_TAKEOVER_NS;
}

/* Decides whether the message begins an acquisition; OCT_BAD_EPOCH: another sender's is running.
 * Only the running epoch is remembered: which others there were does not tell which sender goes
 * on. */
static enum oct_bad follow_epoch(struct oct_assembler *a, const struct oct_lines_header *h,
                                 uint64_t arrival_ns)
{
    bool starts = h->flags & OCT_LINES_STARTS;
    if (a->now.running && h->epoch == a->now.epoch) {
        a->rivals.n = 0;
        if (starts && h->sequence != a->now.start_sequence)
            begin_acquisition(a, h);
        return OCT_BAD_NONE;
    }
    bool at_once = !a->now.running || a->now.over || starts || h->sequence == 0;
    if (!at_once && !is_outlasted(&a->rivals, arrival_ns))
        return OCT_BAD_EPOCH;
    begin_acquisition(a, h);
    return OCT_BAD_NONE;
}

/* Whether the lines are of another scan than runs, or may be. */
static bool is_of_other_scan(const struct oct_assembler *a, const struct oct_lines_header *h)
{
    if (h->flags & OCT_LINES_FOLLOWS)
        return h->epoch < a->epochs.first || h->epoch > a->epochs.last;
    return a->epochs.only_followers;
}

/* Whether number a was sent after number b; numbers wrap at 2^64. At a distance of half the range
 * neither was. */
static bool is_after(uint64_t a, uint64_t b)
{
    return a != b && a - b < (uint64_t)1 << 63;
}

/* Records the sequence number; false when it has arrived before. */
static bool is_new_sequence(struct oct_assembler *a, uint64_t sequence)
{
    struct acquisition *now = &a->now;
    if (is_after(sequence, now->last_sequence)) {
        uint64_t ahead = sequence - now->last_sequence;
        now->seen = ahead < 64 ? now->seen << ahead : 0;
        now->seen |= 1;
        now->last_sequence = sequence;
        add_count(&a->counts.messages_missed, ahead - 1);
        return true;
    }
    uint64_t age = now->last_sequence - sequence;
    if (age >= 64)
        return true; /* older than the window: its lines are judged instead */
    bool fresh = !(now->seen >> age & 1);
    now->seen |= (uint64_t)1 << age;
    if (fresh && is_after(sequence, now->start_sequence))
        add_count(&a->counts.messages_reordered, 1);
    return fresh;
}

/* ---- lines ---- */

/* Lends the open B-scan its `count` lines, if that is all of it, and in the form that readers
 * take. The lent lines are not written to: the B-scan is complete and is delivered at once. */
static bool borrow(struct oct_assembler *a, const struct oct_lines_header *h, const void *lines,
                   uint32_t count)
{
    const uint32_t n_lines = a->geometry.n_lines;
    if (!a->lender.lend || !a->frame || a->n_present > 0 || count != n_lines ||
        is_turned(a, a->now.next_bscan) ||
        n_lines * oct_samples_bytes(h->format, h->n_samples) < OCT_LEND_BYTES ||
        (h->format == OCT_LINES_U16 && (uintptr_t)lines % 2 != 0) ||
        !a->lender.lend(a->lender.owner, a->frame->info.id))
        return false;
    memcpy(&a->frame->spectra, &lines, sizeof(lines));
    memset(a->frame->line_valid, 1, n_lines);
    return true;
}

/* Copies those of the `count` lines that have not arrived before, the last to A-line j and the
 * others behind it; returns how many. */
static uint32_t copy_turned(struct oct_assembler *a, const void *lines, uint64_t line_bytes,
                            uint32_t j, uint32_t count)
{
    uint8_t *valid = a->frame ? a->frame->line_valid : a->dropped_valid;
    uint32_t placed = 0;
    for (uint32_t k = 0; k < count; k++) {
        if (valid[j + k])
            continue;
        valid[j + k] = 1;
        placed++;
        if (a->frame)
            memcpy(slot_line(a, j + k), (const unsigned char *)lines + (count - 1 - k) * line_bytes,
                   line_bytes);
    }
    return placed;
}

/* Copies those of the `count` lines that have not arrived before; returns how many. */
static uint32_t copy_lines(struct oct_assembler *a, const struct oct_lines_header *h,
                           const void *payload, uint64_t from, uint32_t count)
{
    const uint64_t line_bytes = oct_samples_bytes(h->format, h->n_samples);
    uint32_t j = (uint32_t)((h->first_line + from) % a->period) - a->lag, placed = 0;
    uint8_t *valid = a->frame ? a->frame->line_valid : a->dropped_valid;
    if (is_turned(a, a->now.next_bscan))
        return copy_turned(a, (const unsigned char *)payload + from * line_bytes, line_bytes,
                           a->geometry.n_lines - j - count, count);
    for (uint32_t k = 0; k < count;) {
        uint32_t run = 0; /* lines of one copy */
        while (k + run < count && !valid[j + k + run])
            run++;
        if (a->frame && run)
            memcpy(slot_line(a, j + k), (const unsigned char *)payload + (from + k) * line_bytes,
                   run * line_bytes);
        memset(valid + j + k, 1, run);
        placed += run;
        k += run ? run : 1;
    }
    return placed;
}

/* Places `count` lines, the payload's `from`-th on, all of the open B-scan. */
static void place_lines(struct oct_assembler *a, const struct oct_lines_header *h,
                        const void *payload, uint64_t from, uint32_t count, uint64_t arrival_ns)
{
    uint32_t placed = count;
    if (!borrow(a, h,
                (const unsigned char *)payload + from * oct_samples_bytes(h->format, h->n_samples),
                count))
        placed = copy_lines(a, h, payload, from, count);
    a->n_present += placed;
    add_count(&a->counts.lines_duplicate, count - placed);
    add_count(a->frame ? &a->counts.lines_received : &a->counts.lines_dropped, placed);
    if (a->frame) {
        a->frame->info.sequence = h->sequence;
        a->frame->info.arrival_ns = arrival_ns;
    }
    if (a->n_present >= a->geometry.n_lines)
        deliver_bscan(a);
}

/* Consecutive wrong jumps count as one. */
static void note_jump(struct acquisition *now, uint64_t to_bscan, uint64_t sequence)
{
    struct jump *jump = &now->jump;
    if (!jump->there || sequence - jump->sequence > ASTRAY_MESSAGES)
        jump->first_bscan = now->next_bscan;
    jump->there = true;
    jump->end_bscan = to_bscan;
    jump->sequence = sequence;
    jump->n_messages = 0;
}

/* Moves on to B-scan `number`: closes the open one, counts those skipped whole. */
static void move_to(struct oct_assembler *a, uint64_t number, const struct oct_lines_header *h)
{
    if (a->open)
        deliver_bscan(a);
    if (number > a->now.next_bscan) {
        add_count(&a->counts.lines_missing, (number - a->now.next_bscan) * a->geometry.n_lines);
        note_jump(&a->now, number, h->sequence);
    }
    begin_bscan(a, number, h);
}

/* Whether this message is the last one needed to prove the last jump wrong. Messages that the jump
 * overtook do not count, as they were sent before it; nor do lines sent again, as those had
 * arrived. */
static bool is_astray(struct oct_assembler *a, const struct oct_lines_header *h)
{
    struct jump *jump = &a->now.jump;
    if (!jump->there || h->n_lines == 0 || !is_after(h->sequence, jump->sequence))
        return false;
    uint64_t first = h->first_line / a->period;
    uint64_t last = (h->first_line + h->n_lines - 1) / a->period;
    if (last >= a->now.next_bscan) {
        jump->n_messages = 0; /* lines in time: the jump was right */
        return false;
    }
    if (first < jump->first_bscan || last >= jump->end_bscan)
        return false;
    bool goes_on = jump->n_messages > 0 && is_after(h->sequence, jump->last_sequence) &&
                   h->first_line >= jump->next_line;
    jump->n_messages = goes_on ? jump->n_messages + 1 : 1;
    jump->last_sequence = h->sequence;
    jump->next_line = h->first_line + h->n_lines;
    return jump->n_messages > ASTRAY_MESSAGES;
}

/* Lines from this one on that belong to one B-scan, or to none. */
static uint64_t count_alike(const struct oct_assembler *a, uint64_t line, bool *is_flyback)
{
    const uint64_t sent = line % a->period, end = a->lag + a->geometry.n_lines;
    *is_flyback = sent < a->lag || sent >= end;
    return (sent < a->lag ? a->lag : sent < end ? end : a->period) - sent;
}

static void take_lines(struct oct_assembler *a, const struct oct_lines_header *h,
                       const void *payload, uint64_t arrival_ns)
{
    bool is_flyback;
    a->now.format = h->n_lines ? h->format : a->now.format;
    for (uint64_t from = 0; from < h->n_lines;) {
        uint64_t line = h->first_line + from, number = line / a->period;
        uint64_t count = count_alike(a, line, &is_flyback);
        if (count > h->n_lines - from)
            count = h->n_lines - from;
        if (is_flyback) {
            add_count(&a->counts.lines_flyback, count);
        } else if (number < a->now.next_bscan) {
            add_count(&a->counts.lines_late, count);
        } else {
            if (!a->open || number != a->now.next_bscan)
                move_to(a, number, h);
            place_lines(a, h, payload, from, (uint32_t)count, arrival_ns);
        }
        from += count;
    }
    if (h->first_line + h->n_lines > a->now.next_line)
        a->now.next_line = h->first_line + h->n_lines;
    atomic_store_explicit(&a->counts.next_line, a->now.next_line, memory_order_relaxed);
}

static enum oct_bad check_message(const struct oct_assembler *a, struct oct_lines_header *h,
                                  const void *header, size_t header_bytes, const void *payload,
                                  size_t payload_bytes)
{
    enum oct_bad bad = oct_lines_decode(h, header, header_bytes);
    if (bad)
        return bad;
    if (h->n_samples != a->geometry.n_samples)
        return OCT_BAD_SAMPLES;
    if (!oct_samples_fit(h->format, h->n_samples))
        return OCT_BAD_FORMAT;
    if (oct_lines_payload_bytes(h) != payload_bytes)
        return OCT_BAD_PAYLOAD_SIZE;
    if (h->crc32c && oct_crc32c(payload, payload_bytes) != h->crc32c)
        return OCT_BAD_CRC;
    bool same = a->now.running && h->epoch == a->now.epoch;
    bool starts = h->flags & OCT_LINES_STARTS;
    uint64_t expected = starts ? 0 : same ? a->now.next_line : h->first_line;
    if (h->first_line > expected && h->first_line - expected > LEAP_LINES)
        return OCT_BAD_LINES;
    return OCT_BAD_NONE;
}

/* The acquisition ends after h: whole B-scans that should have come before are missing. */
static void take_end(struct oct_assembler *a, const struct oct_lines_header *h)
{
    uint64_t n_lines = a->geometry.n_lines, end = count_alines(a, h->first_line + h->n_lines);
    oct_assembler_flush(a, false);
    uint64_t next_bscan = end / n_lines + (end % n_lines != 0);
    if (end / n_lines >= a->now.next_bscan) {
        add_count(&a->counts.lines_missing, end - a->now.next_bscan * n_lines);
        if (next_bscan > a->now.next_bscan) /* logged before the end is published: the recorder
                                               then asks */
            tell_lost(a, a->now.next_bscan, next_bscan, OCT_LOSS_SOURCE);
        a->now.next_bscan = next_bscan;
    }
    oct_assembler_flush(a, true);
    a->now.over = true;
    atomic_store(&a->counts.over, true);
}

/* Notes a message that was taken in the driver watch. */
static void note_taken(struct oct_assembler *a, const struct oct_lines_header *h,
                       const void *payload, uint64_t arrival_ns, bool is_useless)
{
    uint64_t behind = a->now.last_sequence - h->sequence; /* modulo 2^64, as everywhere */
    oct_driver_watch_take(&a->driver, &(struct oct_driver_take){
                                          .header = h,
                                          .payload = payload,
                                          .arrival_ns = arrival_ns,
                                          .bscan_lines = a->period,
                                          .is_useless = is_useless,
                                          .is_behind = behind > 0 && behind <= INT64_MAX,
                                      });
}

enum oct_bad oct_assembler_take(struct oct_assembler *a, const void *header, size_t header_bytes,
                                const void *payload, size_t payload_bytes, uint64_t arrival_ns)
{
    struct oct_lines_header h;
    enum oct_bad bad = check_message(a, &h, header, header_bytes, payload, payload_bytes);
    if (!bad && is_of_other_scan(a, &h))
        bad = OCT_BAD_SCAN;
    if (!bad)
        bad = follow_epoch(a, &h, arrival_ns);
    if (!bad && h.n_lines && a->now.format && h.format != a->now.format)
        bad = OCT_BAD_FORMAT;
    if (bad) {
        oct_assembler_count_bad(a, bad);
        oct_driver_watch_refuse(&a->driver, bad,
                                &(struct oct_driver_refusal){.header = &h,
                                                             .first = header,
                                                             .first_bytes = header_bytes,
                                                             .payload_bytes = payload_bytes,
                                                             .n_parts = 2,
                                                             .epoch = a->now.epoch,
                                                             .format = a->now.format});
        return bad;
    }
    add_count(&a->counts.messages, 1);
    if (!is_new_sequence(a, h.sequence)) {
        note_taken(a, &h, payload, arrival_ns, true);
        add_count(&a->counts.messages_duplicate, 1);
        add_count(&a->counts.lines_duplicate, h.n_lines);
        return OCT_BAD_NONE;
    }
    bool first = h.sequence == a->now.start_sequence;
    if (a->now.from_start && !first && !is_after(h.sequence, a->now.start_sequence)) {
        add_count(&a->counts.lines_late,
                  h.n_lines); /* of the acquisition before, in the same epoch */
        note_taken(a, &h, payload, arrival_ns, true);
        return OCT_BAD_NONE;
    }
    if (is_astray(a, &h)) {
        begin_acquisition(a, &h);
        is_new_sequence(a, h.sequence);
        add_count(&a->counts.resynchronised, 1);
    }
    const uint64_t begin = count_alines(a, h.first_line);
    const uint64_t end = count_alines(a, h.first_line + h.n_lines);
    note_taken(a, &h, payload, arrival_ns,
               end > begin && (end - 1) / a->geometry.n_lines < a->now.next_bscan);
    a->patience_left_us = a->patience_us;
    oct_assembler_give_back(a);
    take_lines(a, &h, payload, arrival_ns);
    if (h.flags & OCT_LINES_ENDS)
        take_end(a, &h);
    return OCT_BAD_NONE;
}
