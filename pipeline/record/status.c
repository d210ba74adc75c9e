#include "pipeline/record/status.h"

#include "pipeline/base/log.h"

#include <inttypes.h>
#include <stdio.h>

void oct_recorder_status_init(struct oct_recorder_shared *shared)
{
    *shared = (struct oct_recorder_shared){.n_opened = 0};
    pthread_mutex_init(&shared->lock, NULL);
}

void oct_recorder_status_finish(struct oct_recorder_shared *shared)
{
    pthread_mutex_destroy(&shared->lock);
}

struct oct_recorder_account oct_recorder_status_account(const struct oct_recorder_shared *shared)
{
    struct oct_recorder_account a = shared->status.account;
    oct_record_account_close(&a, shared->status.bscans_written - shared->written_before);
    return a;
}

struct oct_recorder_account oct_recorder_status_total(const struct oct_recorder_shared *shared)
{
    struct oct_recorder_account a = shared->status.total;
    oct_record_account_add(&a, &shared->status.account);
    oct_record_account_close(&a, shared->status.bscans_written);
    return a;
}

void oct_recorder_status_files(const struct oct_recorder_shared *shared, uint64_t *n_files,
                               uint64_t *n_incomplete)
{
    *n_files = shared->status.volumes_written - shared->volumes_before;
    *n_incomplete = shared->status.volumes_incomplete - shared->incomplete_before;
}

void oct_recorder_status_begin(struct oct_recorder_shared *shared)
{
    shared->status.active = true;
    shared->status.failure = (struct oct_error){0};
    shared->status.total = oct_recorder_status_total(shared);
    shared->status.account = (struct oct_recorder_account){0};
    shared->written_before = shared->status.bscans_written;
    shared->volumes_before = shared->status.volumes_written;
    shared->incomplete_before = shared->status.volumes_incomplete;
}

void oct_recorder_status_dropped(struct oct_recorder_shared *shared, uint64_t n,
                                 enum oct_loss reason, bool offered)
{
    pthread_mutex_lock(&shared->lock);
    shared->status.account.offered += offered ? n : 0;
    shared->status.account.dropped[reason] += n;
    pthread_mutex_unlock(&shared->lock);
}

/* ---- files ---- */

void oct_recorder_status_opened(struct oct_recorder_shared *shared, struct oct_record_file *file,
                                const char *path)
{
    pthread_mutex_lock(&shared->lock);
    snprintf(shared->status.file, sizeof(shared->status.file), "%s", path);
    shared->status.bscans_in_file = 0;
    shared->status.file_open = true;
    file->number = ++shared->n_opened;
    pthread_mutex_unlock(&shared->lock);
}

/* Adds what has become safe in the file. Lock held. */
static void advance(struct oct_recorder_shared *shared, struct oct_record_file *file,
                    uint64_t written, uint64_t bytes)
{
    shared->status.bscans_written += written - file->written;
    shared->status.bytes_written += bytes - file->bytes;
    file->written = written;
    file->bytes = bytes;
    if (file->number == shared->n_opened)
        shared->status.bscans_in_file = (uint32_t)written;
}

void oct_recorder_status_progress(struct oct_recorder_shared *shared, struct oct_record_file *file,
                                  uint64_t written, uint64_t bytes)
{
    pthread_mutex_lock(&shared->lock);
    advance(shared, file, written, bytes);
    pthread_mutex_unlock(&shared->lock);
}

void oct_recorder_status_left(struct oct_recorder_shared *shared,
                              const struct oct_record_file *file)
{
    pthread_mutex_lock(&shared->lock);
    shared->closing = *file;
    pthread_mutex_unlock(&shared->lock);
}

void oct_recorder_status_synced(struct oct_recorder_shared *shared, uint64_t written,
                                uint64_t bytes)
{
    pthread_mutex_lock(&shared->lock);
    struct oct_record_file *file = &shared->closing;
    advance(shared, file, written, bytes);
    shared->status.account.dropped[OCT_LOSS_WRITE_FAILED] +=
        file->accepted - file->engine_lost - written;
    pthread_mutex_unlock(&shared->lock);
}

void oct_recorder_status_closed(struct oct_recorder_shared *shared, const struct oct_error *why)
{
    pthread_mutex_lock(&shared->lock);
    shared->status.file_open = ++shared->n_closed < shared->n_opened;
    if (!why) {
        shared->status.volumes_written++;
        shared->status.volumes_incomplete += shared->closing.written < shared->closing.n_bscans;
    } else if (shared->n_close_failures < OCT_RECORDER_FAILURES) {
        shared->close_failure[shared->n_close_failures++] = *why;
    }
    pthread_mutex_unlock(&shared->lock);
}

bool oct_recorder_status_take_failure(struct oct_recorder_shared *shared, struct oct_error *why)
{
    pthread_mutex_lock(&shared->lock);
    bool any = shared->n_close_failures > 0;
    *why = shared->close_failure[0];
    shared->close_failure[0] = shared->close_failure[1];
    shared->n_close_failures -= any;
    pthread_mutex_unlock(&shared->lock);
    return any;
}

/* ---- telling ---- */

void oct_recorder_status_log(struct oct_recorder_shared *shared)
{
    char reasons[200];
    pthread_mutex_lock(&shared->lock);
    struct oct_recorder_account a = oct_recorder_status_account(shared);
    uint64_t n_files, n_incomplete;
    oct_recorder_status_files(shared, &n_files, &n_incomplete);
    pthread_mutex_unlock(&shared->lock);
    uint64_t dropped = oct_record_account_dropped(&a, reasons, sizeof(reasons));
    oct_log(dropped ? OCT_LOG_WARNING : OCT_LOG_INFO,
            "recording ended: %" PRIu64 " B-scans offered = %" PRIu64 " written + %" PRIu64
            " dropped%s; %" PRIu64 " files, %" PRIu64 " of them not whole",
            a.offered, a.written, dropped, reasons, n_files, n_incomplete);
}
