#include "pipeline/flow/loss.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define LEAST_RANGES 1024u

const char *const oct_loss_names[OCT_N_LOSSES] = {
    [OCT_LOSS_NONE] = "none",
    [OCT_LOSS_SOURCE] = "source",
    [OCT_LOSS_RING_FULL] = "ring_full",
    [OCT_LOSS_ENGINE] = "engine",
    [OCT_LOSS_DISK_SLOW] = "disk_slow",
    [OCT_LOSS_WRITE_FAILED] = "write_failed",
    [OCT_LOSS_NOT_RECORDED] = "not_recorded",
    [OCT_LOSS_MORE] = "more",
    [OCT_LOSS_PAUSED] = "paused",
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t oct_gap_lines_within(const struct oct_gap *gap, uint64_t first_line, uint64_t n_lines)
{
    uint64_t into = first_line - gap->first_line, ahead = gap->first_line - first_line;
    if (into < gap->n_lines) /* they begin in the gap */
        return least(n_lines, gap->n_lines - into);
    return ahead < n_lines ? least(gap->n_lines, n_lines - ahead) : 0;
}

/* What one reason took: ranges in order, the newest `capacity` of them. */
struct tale {
    struct oct_gap *ranges; /* range i lies at i % capacity */
    uint64_t n_told;
};

struct oct_loss_log {
    pthread_mutex_t lock;
    uint64_t capacity;
    struct tale tales[OCT_N_LOSSES];
    struct oct_gap ranges[]; /* [OCT_N_LOSSES][capacity] */
};

struct oct_loss_log *oct_loss_log_create(uint64_t n_bscans)
{
    uint64_t capacity = n_bscans > LEAST_RANGES ? n_bscans : LEAST_RANGES;
    if (capacity > SIZE_MAX / 2 / OCT_N_LOSSES / sizeof(struct oct_gap))
        return NULL;
    struct oct_loss_log *log =
        calloc(1, sizeof(*log) + OCT_N_LOSSES * (size_t)capacity * sizeof(struct oct_gap));
    if (!log)
        return NULL;
    log->capacity = capacity;
    for (int r = 0; r < OCT_N_LOSSES; r++)
        log->tales[r].ranges = log->ranges + (uint64_t)r * capacity;
    pthread_mutex_init(&log->lock, NULL);
    return log;
}

void oct_loss_log_destroy(struct oct_loss_log *log)
{
    if (!log)
        return;
    pthread_mutex_destroy(&log->lock);
    free(log);
}

void oct_loss_log_add(struct oct_loss_log *log, const struct oct_gap *gap)
{
    if (!log || gap->n_lines == 0)
        return;
    pthread_mutex_lock(&log->lock);
    struct tale *tale = &log->tales[gap->reason];
    struct oct_gap *last = &tale->ranges[(tale->n_told - 1) % log->capacity];
    if (tale->n_told > 0 && last->acquisition == gap->acquisition &&
        last->first_line + last->n_lines == gap->first_line)
        last->n_lines += gap->n_lines;
    else
        tale->ranges[tale->n_told++ % log->capacity] = *gap;
    pthread_mutex_unlock(&log->lock);
}

/* Whether `range` ends before the piece begins. */
static bool is_before(const struct oct_gap *range, const struct oct_gap *piece)
{
    if (range->acquisition != piece->acquisition)
        return range->acquisition < piece->acquisition;
    uint64_t ahead = piece->first_line - range->first_line;
    return ahead < (uint64_t)1 << 63 && ahead >= range->n_lines;
}

/* The first range that ends after the piece begins; NULL: none does. */
static const struct oct_gap *find(const struct oct_loss_log *log, const struct tale *tale,
                                  const struct oct_gap *piece)
{
    uint64_t oldest = tale->n_told > log->capacity ? tale->n_told - log->capacity : 0;
    uint64_t low = oldest, high = tale->n_told;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (is_before(&tale->ranges[middle % log->capacity], piece))
            low = middle + 1;
        else
            high = middle;
    }
    return low < tale->n_told ? &tale->ranges[low % log->capacity] : NULL;
}

/* Whether ranges were forgotten that may have ended after the piece begins. */
static bool has_forgotten(const struct oct_loss_log *log, const struct tale *tale,
                          const struct oct_gap *piece)
{
    return tale->n_told > log->capacity &&
           !is_before(&tale->ranges[tale->n_told % log->capacity], piece);
}

/* Cuts `piece` to what lies before or within `range`; true: it lies within. */
static bool cut(struct oct_gap *piece, const struct oct_gap *range)
{
    uint64_t within = oct_gap_lines_within(range, piece->first_line, piece->n_lines);
    if (range->acquisition != piece->acquisition || within == 0)
        return false;
    if (piece->first_line - range->first_line >= range->n_lines) { /* it begins before */
        piece->n_lines = range->first_line - piece->first_line;
        return false;
    }
    piece->reason = range->reason;
    piece->n_lines = within;
    return true;
}

struct oct_gap oct_loss_log_explain(struct oct_loss_log *log, const struct oct_gap *gap)
{
    struct oct_gap piece = *gap;
    if (!log)
        return piece;
    enum oct_loss blamed = piece.reason;
    bool known = false;
    pthread_mutex_lock(&log->lock);
    for (int r = 0; r < OCT_N_LOSSES; r++) {
        const struct oct_gap *range = find(log, &log->tales[r], gap);
        if (range && cut(&piece, range))
            known = true;
        if (gap->reason == OCT_LOSS_SOURCE && has_forgotten(log, &log->tales[r], gap))
            blamed = (enum oct_loss)r;
    }
    pthread_mutex_unlock(&log->lock);
    if (!known)
        piece.reason = blamed;
    return piece;
}
