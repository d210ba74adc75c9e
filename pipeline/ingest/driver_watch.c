#include "pipeline/ingest/driver_watch.h"

#include <string.h>

#define LOOK_EVERY_NS UINT64_C(100000000)

const char *oct_driver_fault_name(unsigned fault)
{
    static const char *const names[OCT_N_DRIVER_FAULTS - OCT_N_BAD] = {
        [OCT_DRIVER_RESENT - OCT_N_BAD] = "resent",
        [OCT_DRIVER_SEQUENCE_STUCK - OCT_N_BAD] = "sequence_stuck",
        [OCT_DRIVER_SEQUENCE_JUMPS - OCT_N_BAD] = "sequence_jumps",
        [OCT_DRIVER_LINE_STUCK - OCT_N_BAD] = "first_line_stuck",
        [OCT_DRIVER_LINE_OVERLAPS - OCT_N_BAD] = "first_line_overlaps",
        [OCT_DRIVER_LINE_COUNTS_SAMPLES - OCT_N_BAD] = "first_line_counts_samples",
        [OCT_DRIVER_STARTS_AGAIN - OCT_N_BAD] = "starts_again",
        [OCT_DRIVER_LINE_WENT_BACK - OCT_N_BAD] = "first_line_went_back",
        [OCT_DRIVER_EPOCH_AGAIN - OCT_N_BAD] = "epoch_again",
        [OCT_DRIVER_BYTE_SWAPPED - OCT_N_BAD] = "byte_swapped",
        [OCT_DRIVER_FLOAT - OCT_N_BAD] = "float",
        [OCT_DRIVER_NO_PUSH - OCT_N_BAD] = "no_push",
    };
    if (fault == OCT_DRIVER_RIGHT)
        return "";
    return fault < OCT_N_BAD ? oct_bad_names[fault] : names[fault - OCT_N_BAD];
}

void oct_driver_watch_init(struct oct_driver_watch *w)
{
    pthread_mutex_init(&w->lock, NULL);
}

void oct_driver_watch_finish(struct oct_driver_watch *w)
{
    pthread_mutex_destroy(&w->lock);
}

static void count(struct oct_driver_watch *w, unsigned fault)
{
    atomic_fetch_add_explicit(&w->n[fault], 1, memory_order_relaxed);
}

/* A reader holds the lock while it copies some hundred bytes. A message that finds it taken is not
 * kept, as the next one serves as well; the first of a kind waits, as there may be no second. */
static void keep_fault(struct oct_driver_watch *w, unsigned fault,
                       const struct oct_driver_message *message)
{
    bool first = atomic_load_explicit(&w->n[fault], memory_order_relaxed) == 0;
    if (first ? pthread_mutex_lock(&w->lock) == 0 : pthread_mutex_trylock(&w->lock) == 0) {
        w->newest[fault] = *message;
        pthread_mutex_unlock(&w->lock);
    }
    count(w, fault);
}

static bool is_new_epoch(struct oct_driver_watch *w, uint32_t epoch)
{
    for (unsigned i = 0; i < w->n_epochs && i < OCT_DRIVER_EPOCHS; i++)
        if (w->epochs[i] == epoch)
            return false;
    w->epochs[w->n_epochs++ % OCT_DRIVER_EPOCHS] = epoch;
    if (w->n_epochs == 2 * OCT_DRIVER_EPOCHS)
        w->n_epochs = OCT_DRIVER_EPOCHS;
    return true;
}

void oct_driver_watch_refuse(struct oct_driver_watch *w, enum oct_bad bad,
                             const struct oct_driver_refusal *r)
{
    struct oct_driver_message message = {
        .header_bytes = r->first_bytes,
        .payload_bytes = r->payload_bytes,
        .n_parts = r->n_parts,
        .epoch = r->epoch,
        .format = r->format,
    };
    if (r->header)
        message.header = *r->header;
    if (r->first_bytes >= sizeof(message.start))
        memcpy(message.start, r->first, sizeof(message.start));
    bool starts = bad == OCT_BAD_EPOCH && is_new_epoch(w, message.header.epoch);
    keep_fault(w, starts ? OCT_DRIVER_STARTS_AGAIN : (unsigned)bad, &message);
}

/* Judges the numbers of two messages of one epoch. Where messages were lost or overtook each other
 * on the way, sequence and first_line step alike, and that is no fault. */
static unsigned judge_step(const struct oct_lines_header *before, const struct oct_lines_header *h)
{
    uint64_t step = h->sequence - before->sequence, lines = h->first_line - before->first_line;
    uint64_t n = before->n_lines, samples = n * before->n_samples;
    if (n == 0 || h->n_lines == 0)
        return OCT_DRIVER_RIGHT;
    if (step == 0)
        return lines == 0 ? OCT_DRIVER_RESENT : OCT_DRIVER_SEQUENCE_STUCK;
    if (step > 1)
        return lines == n && step <= UINT64_MAX / 2 ? OCT_DRIVER_SEQUENCE_JUMPS : OCT_DRIVER_RIGHT;
    if (lines == 0)
        return OCT_DRIVER_LINE_STUCK;
    if (lines < n)
        return OCT_DRIVER_LINE_OVERLAPS;
    if (lines > n && (lines == samples || lines == 2 * samples))
        return OCT_DRIVER_LINE_COUNTS_SAMPLES;
    return OCT_DRIVER_RIGHT;
}

/* Whether the acquisition that begins with h cuts nothing off: the one before was ended by its
 * sender, or whole B-scans had arrived, and whole ones follow. */
static bool follows_whole(const struct oct_lines_header *before, const struct oct_driver_take *take)
{
    if (before->flags & OCT_LINES_ENDS)
        return true;
    return take->header->first_line == 0 &&
           (before->first_line + before->n_lines) % take->bscan_lines == 0;
}

static unsigned judge_take(struct oct_driver_watch *w, const struct oct_driver_take *take)
{
    const struct oct_lines_header *h = take->header, *before = &w->before;
    unsigned fault = OCT_DRIVER_RIGHT;
    bool begins = before->epoch != h->epoch || h->flags & OCT_LINES_STARTS;
    if (w->has_before && begins) {
        fault = follows_whole(before, take) ? OCT_DRIVER_RIGHT : OCT_DRIVER_STARTS_AGAIN;
    } else if (w->has_before) {
        fault = judge_step(before, h);
        if (h->first_line < before->first_line) {
            w->back_sequence = before->sequence;
            w->back_line = before->first_line + before->n_lines - (before->n_lines > 0);
        }
    }
    if (fault == OCT_DRIVER_RIGHT && take->is_useless && h->n_lines)
        fault = take->is_behind ? OCT_DRIVER_EPOCH_AGAIN : OCT_DRIVER_LINE_WENT_BACK;
    return fault;
}

/* A single odd line is no fault: two looks in a row agree. */
static void judge_samples(struct oct_driver_watch *w, enum oct_sample_fault fault)
{
    unsigned look = fault == OCT_SAMPLES_SWAPPED ? OCT_DRIVER_BYTE_SWAPPED
                    : fault == OCT_SAMPLES_FLOAT ? OCT_DRIVER_FLOAT
                                                 : OCT_DRIVER_RIGHT;
    w->samples_fault = look == w->last_look ? look : OCT_DRIVER_RIGHT;
    w->last_look = look;
}

static void look_at(struct oct_driver_watch *w, const struct oct_driver_take *take)
{
    const struct oct_lines_header *h = take->header;
    if (take->arrival_ns - w->looked_ns < LOOK_EVERY_NS || h->n_lines == 0 ||
        pthread_mutex_trylock(&w->lock))
        return;
    size_t line_bytes = (size_t)oct_samples_bytes(h->format, h->n_samples);
    const unsigned char *line = (const unsigned char *)take->payload + h->n_lines / 2 * line_bytes;
    w->looked_ns = take->arrival_ns;
    w->look = (struct oct_driver_look){
        .number = w->look.number + 1,
        .arrival_ns = take->arrival_ns,
        .header = *h,
        .samples = oct_samples_look(line, h->n_samples, h->format),
    };
    pthread_mutex_unlock(&w->lock);
    judge_samples(w, w->look.samples.fault);
}

void oct_driver_watch_take(struct oct_driver_watch *w, const struct oct_driver_take *take)
{
    unsigned fault = judge_take(w, take);
    if (fault == OCT_DRIVER_RIGHT) {
        look_at(w, take);
        fault = take->header->n_lines ? w->samples_fault : OCT_DRIVER_RIGHT;
    }
    if (fault == OCT_DRIVER_RIGHT) {
        count(w, fault);
    } else {
        bool late = fault == OCT_DRIVER_EPOCH_AGAIN || fault == OCT_DRIVER_LINE_WENT_BACK;
        keep_fault(w, fault,
                   &(struct oct_driver_message){
                       .header = *take->header,
                       .before_sequence = late ? w->back_sequence : w->before.sequence,
                       .before_line = late ? w->back_line : w->before.first_line,
                       .before_n_lines = w->before.n_lines,
                       .epoch = take->header->epoch,
                   });
    }
    w->before = *take->header;
    w->has_before = true;
}

void oct_driver_watch_connection(struct oct_driver_watch *w)
{
    count(w, OCT_DRIVER_NO_PUSH);
}

bool oct_driver_watch_newest(struct oct_driver_watch *w, unsigned fault,
                             struct oct_driver_message *message)
{
    pthread_mutex_lock(&w->lock);
    *message = w->newest[fault];
    pthread_mutex_unlock(&w->lock);
    return atomic_load_explicit(&w->n[fault], memory_order_relaxed) > 0;
}

bool oct_driver_watch_look(struct oct_driver_watch *w, struct oct_driver_look *look)
{
    pthread_mutex_lock(&w->lock);
    *look = w->look;
    pthread_mutex_unlock(&w->lock);
    return look->number > 0;
}
