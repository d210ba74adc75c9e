#include "pipeline/loss.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#define N_RANGES 1024u

const char *const oct_loss_names[OCT_N_LOSSES] = {
    [OCT_LOSS_NONE] = "none",
    [OCT_LOSS_SOURCE] = "source",
    [OCT_LOSS_RING_FULL] = "ring_full",
    [OCT_LOSS_ENGINE] = "engine",
    [OCT_LOSS_DISK_SLOW] = "disk_slow",
    [OCT_LOSS_WRITE_FAILED] = "write_failed",
    [OCT_LOSS_NOT_RECORDED] = "not_recorded",
    [OCT_LOSS_MORE] = "more",
};

struct oct_loss_log {
    pthread_mutex_t lock;
    struct oct_gap ranges[N_RANGES]; /* range i lies at i % N_RANGES */
    uint64_t n_added;
};

struct oct_loss_log *oct_loss_log_create(void)
{
    struct oct_loss_log *log = calloc(1, sizeof(*log));
    if (log)
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
    struct oct_gap *last = &log->ranges[(log->n_added - 1) % N_RANGES];
    if (log->n_added > 0 && last->acquisition == gap->acquisition && last->reason == gap->reason &&
        last->first_line + last->n_lines == gap->first_line)
        last->n_lines += gap->n_lines;
    else
        log->ranges[log->n_added++ % N_RANGES] = *gap;
    pthread_mutex_unlock(&log->lock);
}

/* Cuts `piece` to what lies before or within `range`. */
static void cut(struct oct_gap *piece, const struct oct_gap *range)
{
    uint64_t end = piece->first_line + piece->n_lines,
             range_end = range->first_line + range->n_lines;
    if (range->acquisition != piece->acquisition || range_end <= piece->first_line ||
        range->first_line >= end)
        return;
    if (range->first_line > piece->first_line) {
        piece->n_lines = range->first_line - piece->first_line;
        return;
    }
    piece->reason = range->reason;
    if (range_end < end)
        piece->n_lines = range_end - piece->first_line;
}

struct oct_gap oct_loss_log_explain(struct oct_loss_log *log, const struct oct_gap *gap)
{
    struct oct_gap piece = *gap;
    if (!log)
        return piece;
    pthread_mutex_lock(&log->lock);
    uint64_t n = log->n_added < N_RANGES ? log->n_added : N_RANGES;
    for (uint64_t i = 0; i < n; i++)
        cut(&piece, &log->ranges[i]);
    pthread_mutex_unlock(&log->lock);
    return piece;
}
