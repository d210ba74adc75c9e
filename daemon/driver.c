#include "daemon/driver.h"

#include "daemon/driver_plain.h"
#include "pipeline/base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SLICE_NS UINT64_C(150000000)
#define MALFORMED 3              /* messages in the window */
#define GOES_ON 5                /* at least so many slices between the first and the last */
#define SLICES_APART 4           /* at least so many with messages: two bursts are no sender */
#define SELDOM_NS (8 * SLICE_NS) /* for three messages: the window may miss one of them */
#define LONG_AGO_NS (30 * TELL_NS)
#define TELL_NS UINT64_C(1000000000)
#define HOLD_NS (5 * TELL_NS)
#define MOST_QUIET_NS (64 * TELL_NS)

/* ---- the window ---- */

static void forget(struct oct_driver *d, struct oct_driver_watch *watch, uint64_t now_ns)
{
    *d = (struct oct_driver){.watch = watch,
                             .slice_ns = now_ns,
                             .told_ns = d->told_ns,
                             .told_knocks_ns = d->told_knocks_ns};
    for (unsigned f = 0; f < OCT_N_DRIVER_FAULTS; f++)
        d->seen[f] = watch->n[f];
}

/* Whether the fault is of messages that were taken: contradicting numbers, wrong samples; the
 * others are refusals, or no messages. */
static bool was_taken(unsigned fault)
{
    return fault >= OCT_N_BAD && fault != OCT_DRIVER_NO_PUSH;
}

/* Adds the messages since the last look, if their numbers could be judged. */
static void note_last(struct oct_driver *d, const uint64_t *came, uint64_t now_ns)
{
    unsigned most = OCT_DRIVER_RIGHT;
    for (unsigned f = 0; f < OCT_N_DRIVER_FAULTS; f++)
        if (was_taken(f) && came[f] > came[most])
            most = f;
    if (came[most] == 0)
        return;
    memmove(d->last + 1, d->last, sizeof(d->last) - sizeof(d->last[0]));
    d->last[0] = (struct oct_driver_last){now_ns, most};
}

static void count(struct oct_driver *d, const struct oct_driver_watch *watch, uint64_t now_ns)
{
    uint64_t came[OCT_N_DRIVER_FAULTS];
    for (unsigned n = 0; now_ns - d->slice_ns >= SLICE_NS; n++) {
        uint64_t behind = (now_ns - d->slice_ns) / SLICE_NS;
        d->slice_ns += n < OCT_DRIVER_SLICES ? SLICE_NS : behind * SLICE_NS;
        d->newest = (d->newest + 1) % OCT_DRIVER_SLICES;
        d->slices[d->newest] = (struct oct_driver_slice){0};
    }
    for (unsigned f = 0; f < OCT_N_DRIVER_FAULTS; f++) {
        came[f] = watch->n[f] - d->seen[f];
        d->slices[d->newest].n[f] += (uint32_t)came[f];
        if (d->fault != OCT_DRIVER_RIGHT && f == (unsigned)d->fault)
            d->n_messages += came[f];
        d->seen[f] += came[f];
    }
    note_last(d, came, now_ns);
}

/* n: in the window; n_newest: in the newer half of it; first, last: slices ago; n_slices: that hold
 * any. */
struct sum {
    uint64_t n, n_newest;
    unsigned first, last, n_slices;
};

static struct sum sum_of(const struct oct_driver *d, unsigned fault)
{
    struct sum sum = {0};
    for (unsigned ago = OCT_DRIVER_SLICES; ago-- > 0;) {
        unsigned slice = (d->newest + OCT_DRIVER_SLICES - ago) % OCT_DRIVER_SLICES;
        uint32_t n = d->slices[slice].n[fault];
        if (n && !sum.n)
            sum.first = ago;
        if (n)
            sum.last = ago;
        sum.n += n;
        sum.n_slices += n > 0;
        sum.n_newest += ago < OCT_DRIVER_SLICES / 2 ? n : 0;
    }
    return sum;
}

/* Whether wrong messages outnumber right ones, in the newer half of the window unless that is
 * empty. */
static bool prevails(const struct sum *wrong, const struct sum *right)
{
    if (wrong->n_newest + right->n_newest > 0)
        return wrong->n_newest > right->n_newest;
    return wrong->n > right->n;
}

static bool is_fault(unsigned fault, const struct sum *sum, const struct sum *right)
{
    if (fault == OCT_BAD_EPOCH || fault == OCT_BAD_SLOT || fault == OCT_BAD_SCAN)
        return sum->n_slices >= SLICES_APART && sum->first - sum->last >= GOES_ON;
    if (fault == OCT_DRIVER_NO_PUSH) /* while messages arrive, failed connections are another
                                        program's */
        return right->n == 0;
    if (fault < OCT_N_BAD)
        return sum->n >= MALFORMED || (sum->n > 0 && right->n == 0);
    /* A restart is counted twice: by its first message, and by the first leftover of the sender
     * before. */
    return sum->n > (fault == OCT_DRIVER_STARTS_AGAIN ? 2 : 1) && prevails(sum, right);
}

/* Returns the fault that most messages show. */
static unsigned most_shown_fault(const struct oct_driver *d, uint64_t *n)
{
    struct sum right = sum_of(d, OCT_DRIVER_RIGHT);
    unsigned worst = OCT_DRIVER_RIGHT;
    *n = 0;
    for (unsigned f = OCT_DRIVER_RIGHT + 1; f < OCT_N_DRIVER_FAULTS; f++) {
        struct sum sum = sum_of(d, f);
        if (sum.n > *n && is_fault(f, &sum, &right)) {
            worst = f;
            *n = sum.n;
        }
    }
    return worst;
}

/* Whether the driver still sends at its earlier slow pace. */
static bool goes_on(const struct oct_driver *d, uint64_t now_ns)
{
    uint64_t longest_ns = 0;
    for (unsigned i = 0; i + 1 < OCT_DRIVER_LAST && d->last[i + 1].time_ns; i++)
        if (d->last[i].time_ns - d->last[i + 1].time_ns > longest_ns)
            longest_ns = d->last[i].time_ns - d->last[i + 1].time_ns;
    return now_ns - d->last[0].time_ns <= 2 * longest_ns;
}

/* Returns the fault that three of the last four messages show, for a driver that sends too seldom
 * for the window. */
static unsigned judge_last(const struct oct_driver *d, uint64_t now_ns, uint64_t *n)
{
    for (unsigned first = 0; first < 2; first++) {
        unsigned fault = d->last[first].fault, n_same = 0, oldest = first;
        for (unsigned i = first; i < OCT_DRIVER_LAST; i++)
            if (d->last[i].time_ns && d->last[i].fault == fault &&
                now_ns - d->last[i].time_ns <= LONG_AGO_NS) {
                n_same++;
                oldest = i;
            }
        if (n_same < 3 || d->last[first].time_ns - d->last[oldest].time_ns < SELDOM_NS)
            continue;
        *n = n_same;
        return goes_on(d, now_ns) ? fault : OCT_DRIVER_RIGHT;
    }
    return OCT_DRIVER_RIGHT;
}

/* A PUB socket connects once, is refused, and its driver then sends into nothing. So this fault
 * stays until a message arrives, or for some seconds. */
static unsigned keep_refused_push(struct oct_driver *d, unsigned fault, uint64_t now_ns)
{
    if (fault == OCT_DRIVER_NO_PUSH)
        d->hold_until_ns = now_ns + HOLD_NS;
    else if (fault != OCT_DRIVER_RIGHT || sum_of(d, OCT_DRIVER_RIGHT).n > 0)
        d->hold_until_ns = 0;
    return now_ns < d->hold_until_ns ? OCT_DRIVER_NO_PUSH : fault;
}

/* ---- the words ---- */

#define WHAT(d, ...) snprintf((d)->what, sizeof((d)->what), __VA_ARGS__)
#define CURE(d, ...) snprintf((d)->cure, sizeof((d)->cure), __VA_ARGS__)
#define BIG_ENDIAN_CURE "write all numbers of the header little-endian (struct.pack \"<...\")"
#define LAYOUT_CURE "pack it as docs/camera-drivers.md says: \"<4sHHQQQIIHHII12x\", 64 bytes"

static uint32_t turned(uint32_t x)
{
    return x >> 24 | (x >> 8 & 0xff00) | (x << 8 & 0xff0000) | x << 24;
}

static unsigned half(const struct oct_driver_message *m, unsigned at)
{
    return m->start[at] | (unsigned)m->start[at + 1] << 8;
}

static void explain_parts(struct oct_driver *d, const struct oct_driver_message *m)
{
    WHAT(d, "%u part%s a message come%s, two are wanted", m->n_parts, m->n_parts == 1 ? "" : "s",
         m->n_parts == 1 ? "s" : "");
    CURE(d, "send the 64-byte header with ZMQ_SNDMORE, then the lines (Python: "
            "send_multipart([header, lines]))");
    if (m->n_parts == 1 && memcmp(m->start, "OCTL", 4) != 0)
        CURE(d, "it does not begin with OCTL: send header and lines as two parts of a ZeroMQ "
                "message (ZMQ_SNDMORE)");
}

static void explain_layout(struct oct_driver *d, unsigned fault, const struct oct_driver_message *m)
{
    char begins[9] = "";
    for (unsigned i = 0; i < 4; i++)
        snprintf(begins + 2 * i, 3, "%02x", m->start[i]);
    CURE(d, LAYOUT_CURE);
    if (fault == OCT_BAD_MAGIC)
        WHAT(d, "a header begins with %s, \"OCTL\" is 4f43544c", begins);
    else if (fault == OCT_BAD_VERSION)
        WHAT(d, "the header says version %u, 1 is known", half(m, 4));
    else if (m->header_bytes != OCT_LINES_HEADER_BYTES)
        WHAT(d, "headers of %" PRIu64 " bytes come, 64 are wanted", m->header_bytes);
    else
        WHAT(d, "the header says that it has %u bytes, it has 64", half(m, 6));
    if (memcmp(m->start, "LTCO", 4) == 0 || (fault == OCT_BAD_VERSION && half(m, 4) == 0x0100))
        CURE(d, BIG_ENDIAN_CURE);
}

/* An unknown one, lines of it that are no whole bytes, or not that of the acquisition. */
static void explain_format(struct oct_driver *d, const struct oct_driver_message *m)
{
    const struct oct_lines_header *h = &m->header;
    if (h->format < OCT_LINES_U8 || h->format > OCT_LINES_12P) {
        WHAT(d, "sample format %u comes, known are 1 (u8), 2 (u16) and 3 (12 bits packed)",
             h->format);
        CURE(d, "convert the samples (floats too) to unsigned 16 bit and say 2");
    } else if (!oct_samples_fit(h->format, h->n_samples)) {
        WHAT(d, "lines of %" PRIu32 " samples come, 12 bits packed (format 3) are pairs",
             h->n_samples);
        CURE(d, "send an even number of samples a line, or unsigned 16 bit (format 2)");
    } else {
        WHAT(d, "sample format %u comes, the acquisition has %u", h->format, m->format);
        CURE(d, "set flag 1 (starts) with the first lines of another format");
    }
}

static void explain_fields(struct oct_driver *d, unsigned fault, const struct oct_driver_message *m)
{
    const struct oct_lines_header *h = &m->header;
    CURE(d, LAYOUT_CURE);
    if (fault == OCT_BAD_RESERVED && h->flags & ~OCT_LINES_ALL_FLAGS) {
        WHAT(d, "the header has flags %u, known are 1 (starts), 2 (ends) and 4 (follows)",
             h->flags);
        CURE(d, "set the flags to 0, 1, 2 or 3, and 4 more in a driver that follows octd's scan");
    } else if (fault == OCT_BAD_RESERVED) {
        WHAT(d, "the last 12 bytes of the header are not zero");
    } else if (fault == OCT_BAD_FORMAT) {
        explain_format(d, m);
    } else if (h->n_lines == 0) {
        WHAT(d, "messages without lines come (n_lines is 0)");
        CURE(d, "write the number of lines of the message at offset 32 of the header");
    } else {
        WHAT(d, "first_line %" PRIu64 " comes, far beyond the lines before", h->first_line);
        CURE(d, "first_line counts A-lines since the acquisition began: 0, n, 2n, ...");
    }
}

static void explain_samples(struct oct_driver *d, const struct oct_driver_message *m,
                            const struct oct_config *config)
{
    uint32_t n = m->header.n_samples, wanted = config->camera.samples;
    WHAT(d, "%" PRIu32 " samples a line come, camera.samples is %" PRIu32 "%s", n, wanted,
         oct_config_is_set(config, "camera.samples") ? "" : " (not set, built in)");
    if (turned(n) == wanted)
        CURE(d, BIG_ENDIAN_CURE);
    else if (n >= 4 && n <= OCT_MAX_SAMPLES)
        CURE(d, "set camera.samples=%" PRIu32 " in octd's configuration, or correct the driver", n);
    else
        CURE(d, "write the samples of a line at offset 36 of the header");
}

static void explain_payload(struct oct_driver *d, const struct oct_driver_message *m)
{
    const struct oct_lines_header *h = &m->header;
    uint64_t samples = (uint64_t)h->n_lines * h->n_samples, bytes = m->payload_bytes;
    const double said = oct_samples_bits(h->format) / 8.0;
    const double each = samples ? (double)bytes / (double)samples : 0;
    const unsigned format = each == 1     ? OCT_LINES_U8
                            : each == 2   ? OCT_LINES_U16
                            : each == 1.5 ? OCT_LINES_12P
                                          : 0;
    if (!format && each != 4 && each != 8) {
        WHAT(d,
             "%" PRIu64 " bytes of lines come, %" PRIu32 " lines of %" PRIu32
             " samples are %" PRIu64,
             bytes, h->n_lines, h->n_samples, oct_lines_payload_bytes(h));
        CURE(d, "the second part is n_lines * n_samples samples, nothing before or behind them");
        return;
    }
    WHAT(d, "%g byte%s a sample come%s, format %u says %g", each, each == 1 ? "" : "s",
         each == 1 ? "s" : "", h->format, said);
    if (!format)
        CURE(d, "convert floats or 32-bit samples to unsigned 16 bit (Python: .astype(\"<u2\"))");
    else
        CURE(d, "say format %u, or send samples of %g byte%s", format, said, said == 1 ? "" : "s");
}

static void explain_numbers(struct oct_driver *d, unsigned fault,
                            const struct oct_driver_message *m)
{
    const struct oct_lines_header *h = &m->header;
    CURE(d, "first_line counts A-lines: 0, n, 2n, ... for n lines a message");
    if (fault == OCT_DRIVER_RESENT) {
        WHAT(d, "sequence %" PRIu64 " and first_line %" PRIu64 " come again and again", h->sequence,
             h->first_line);
        CURE(d, "count on: sequence by 1 a message, first_line by the lines of each message");
    } else if (fault == OCT_DRIVER_SEQUENCE_STUCK) {
        WHAT(d, "sequence stays %" PRIu64 " while first_line goes on", h->sequence);
        CURE(d, "raise sequence by 1 with each message");
    } else if (fault == OCT_DRIVER_SEQUENCE_JUMPS) {
        WHAT(d, "sequence rises by %" PRIu64 " a message (%" PRIu64 " after %" PRIu64 ")",
             h->sequence - m->before_sequence, h->sequence, m->before_sequence);
        CURE(d, "raise sequence by 1 with each message; first_line counts lines");
    } else if (fault == OCT_DRIVER_STARTS_AGAIN) {
        bool flag = h->flags & OCT_LINES_STARTS;
        WHAT(d, flag ? "each message starts an acquisition (flag 1)"
                     : "each message has another epoch, and so starts an acquisition");
        CURE(d, flag ? "set flag 1 in the first message of an acquisition only"
                     : "choose the epoch once, when the driver starts");
    } else if (fault == OCT_DRIVER_LINE_STUCK) {
        WHAT(d, "first_line stays %" PRIu64 " while sequence goes on", h->first_line);
    } else {
        WHAT(d, "first_line rises by %" PRIu64 " a message, each brings %" PRIu32 " lines",
             h->first_line - m->before_line, m->before_n_lines);
        if (h->first_line - m->before_line == 1)
            CURE(d,
                 "count A-lines, not B-scans or messages: first_line is 0, %" PRIu32 ", %" PRIu32
                 ", ...",
                 h->n_lines, 2 * h->n_lines);
        else if (fault == OCT_DRIVER_LINE_COUNTS_SAMPLES)
            CURE(d,
                 "count A-lines, not samples or bytes: first_line is 0, %" PRIu32 ", %" PRIu32
                 ", ...",
                 h->n_lines, 2 * h->n_lines);
    }
}

static void explain_late(struct oct_driver *d, unsigned fault, const struct oct_driver_message *m)
{
    const struct oct_lines_header *h = &m->header;
    if (fault == OCT_BAD_EPOCH) {
        WHAT(d, "epoch %" PRIu32 " comes, epoch %" PRIu32 " is being received", h->epoch, m->epoch);
        CURE(d,
             "stop one of the two senders, or give each start of the driver an epoch of its own");
    } else if (fault == OCT_DRIVER_EPOCH_AGAIN) {
        WHAT(d, "epoch %" PRIu32 " is used again: sequence %" PRIu64 " after %" PRIu64, h->epoch,
             h->sequence, m->before_sequence);
        CURE(d, "take another epoch at each start (the time in seconds), or set flag 1 (starts)");
    } else {
        WHAT(d, "first_line began again: line %" PRIu64 " after %" PRIu64, h->first_line,
             m->before_line);
        CURE(d, "count first_line on until the acquisition ends, or set flag 1 (starts)");
    }
}

static void explain_scan(struct oct_driver *d, const struct oct_driver_message *m)
{
    WHAT(d, "lines of another scan than octd's come%s",
         m->header.flags & OCT_LINES_FOLLOWS ? "" : ", or their driver does not say of which");
    CURE(d, "let the driver follow the topic scan (docs/camera-drivers.md), or send stop and "
            "start, after which octd takes lines of any driver as of its scan");
}

static void explain_samples_form(struct oct_driver *d, unsigned fault,
                                 const struct oct_driver_message *m)
{
    const bool is_12p = m->header.format == OCT_LINES_12P;
    WHAT(d, fault == OCT_DRIVER_FLOAT ? "samples are halves of floats, the header says 16 bit"
            : is_12p ? "the 12 bits of the samples lie as in Mono12Packed, not as in Mono12p"
                     : "the two bytes of each sample come the wrong way round (big-endian)");
    CURE(d, is_12p ? "set the camera's PixelFormat=Mono12p, or send unsigned 16 bit"
                   : "send unsigned 16 bit, little-endian (Python: .astype(\"<u2\"))");
}

void oct_driver_explain(struct oct_driver *d, unsigned fault, const struct oct_driver_message *m,
                        const struct oct_config *config)
{
    switch (fault) {
    case OCT_BAD_PARTS:
        explain_parts(d, m);
        break;
    case OCT_BAD_HEADER_SIZE:
    case OCT_BAD_MAGIC:
    case OCT_BAD_VERSION:
        explain_layout(d, fault, m);
        break;
    case OCT_BAD_RESERVED:
    case OCT_BAD_FORMAT:
    case OCT_BAD_LINES:
        explain_fields(d, fault, m);
        break;
    case OCT_BAD_SAMPLES:
        explain_samples(d, m, config);
        break;
    case OCT_BAD_PAYLOAD_SIZE:
        explain_payload(d, m);
        break;
    case OCT_BAD_CRC:
        WHAT(d, "the check sum does not match the lines");
        CURE(d, "it is CRC-32C (Castagnoli, not zlib's) of the second part; 0: none");
        break;
    case OCT_BAD_SLOT:
        WHAT(d, "slots of shared memory are named that do not hold the message");
        CURE(d, "open the memory anew when the daemon has gone, write the tag before the message");
        break;
    case OCT_BAD_SCAN:
        explain_scan(d, m);
        break;
    case OCT_BAD_EPOCH:
    case OCT_DRIVER_EPOCH_AGAIN:
    case OCT_DRIVER_LINE_WENT_BACK:
        explain_late(d, fault, m);
        break;
    case OCT_DRIVER_BYTE_SWAPPED:
    case OCT_DRIVER_FLOAT:
        explain_samples_form(d, fault, m);
        break;
    case OCT_DRIVER_NO_PUSH:
        WHAT(d, "what connects to ingest.endpoint is no ZeroMQ PUSH socket");
        CURE(d, "a driver connects a PUSH socket (not PUB, REQ, plain TCP); viewers connect to "
                "publish.endpoint");
        break;
    default:
        explain_numbers(d, fault, m);
    }
}

/* The consequence of the fault: with some faults all B-scans are still made, or some of them. */
static const char *fate(unsigned fault)
{
    if (fault == OCT_DRIVER_NO_PUSH || fault < OCT_N_BAD)
        return "refused";
    if (fault == OCT_DRIVER_STARTS_AGAIN)
        return "marked as a start";
    if (fault == OCT_DRIVER_BYTE_SWAPPED || fault == OCT_DRIVER_FLOAT)
        return "with wrong samples";
    bool is_used = fault == OCT_DRIVER_SEQUENCE_JUMPS || fault == OCT_DRIVER_LINE_OVERLAPS ||
                   fault == OCT_DRIVER_LINE_COUNTS_SAMPLES;
    return is_used ? "numbered wrong" : "of no use";
}

void oct_driver_text(const struct oct_driver *d, char *text, size_t n_bytes)
{
    text[0] = '\0';
    if (d->fault != OCT_DRIVER_RIGHT)
        snprintf(text, n_bytes, "%" PRIu64 " %s%s %s: %s", d->n_messages,
                 d->fault == OCT_DRIVER_NO_PUSH ? "connection" : "message",
                 d->n_messages == 1 ? "" : "s", fate(d->fault), d->what);
}

/* ---- the log ---- */

static void log_fault(struct oct_driver *d, uint64_t now_ns)
{
    char text[OCT_ERROR_TEXT_BYTES];
    bool other = d->fault != d->told;
    bool knocks = d->fault == OCT_DRIVER_NO_PUSH; /* a port scanner or monitor connects for ever */
    if (knocks && d->told_knocks_ns && now_ns - d->told_knocks_ns < MOST_QUIET_NS)
        return;
    if (d->told_ns && now_ns - d->told_ns < (other ? TELL_NS : d->quiet_ns))
        return;
    oct_driver_text(d, text, sizeof(text));
    if (d->fault != OCT_DRIVER_RIGHT)
        oct_log(OCT_LOG_WARNING, "camera driver: %s: %s", text, d->cure);
    else if (other)
        oct_log(OCT_LOG_INFO, "camera driver: nothing is wrong any more");
    else
        return;
    d->quiet_ns = other ? TELL_NS : d->quiet_ns < MOST_QUIET_NS ? 2 * d->quiet_ns : MOST_QUIET_NS;
    d->told = d->fault;
    d->told_ns = now_ns;
    if (knocks)
        d->told_knocks_ns = now_ns;
}

void oct_driver_look(struct oct_driver *d, struct oct_driver_watch *watch,
                     const struct oct_config *config, uint64_t now_ns)
{
    struct oct_driver_message message;
    uint64_t n;
    if (d->watch != watch)
        forget(d, watch, now_ns);
    count(d, watch, now_ns);
    unsigned fault = most_shown_fault(d, &n);
    if (fault == OCT_DRIVER_RIGHT)
        fault = judge_last(d, now_ns, &n);
    fault = keep_refused_push(d, fault, now_ns);
    if (fault != d->fault)
        d->n_messages = n;
    d->fault = fault;
    if (fault != OCT_DRIVER_RIGHT && oct_driver_watch_newest(watch, fault, &message)) {
        oct_driver_explain(d, fault, &message, config);
        oct_driver_plain(fault, &message, config, d->plain, sizeof(d->plain));
    }
    log_fault(d, now_ns);
}
