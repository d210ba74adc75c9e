#include "pipeline/record/books.h"

#include "pipeline/base/log.h"

#include <inttypes.h>
#include <stdio.h>

void oct_recorder_books_init(struct oct_recorder_books *books)
{
    *books = (struct oct_recorder_books){.has_open = false};
    pthread_mutex_init(&books->lock, NULL);
}

void oct_recorder_books_finish(struct oct_recorder_books *books)
{
    pthread_mutex_destroy(&books->lock);
}

struct oct_recorder_account oct_recorder_books_account(const struct oct_recorder_books *books)
{
    struct oct_recorder_account a = books->status.account;
    oct_record_account_close(&a, books->status.bscans_written - books->written_before);
    return a;
}

struct oct_recorder_account oct_recorder_books_total(const struct oct_recorder_books *books)
{
    struct oct_recorder_account a = books->status.total;
    oct_record_account_add(&a, &books->status.account);
    oct_record_account_close(&a, books->status.bscans_written);
    return a;
}

void oct_recorder_books_begin(struct oct_recorder_books *books)
{
    books->status.active = true;
    books->status.failure = (struct oct_error){0};
    books->status.total = oct_recorder_books_total(books);
    books->status.account = (struct oct_recorder_account){0};
    books->written_before = books->status.bscans_written;
    books->volumes_before = books->status.volumes_written;
    books->incomplete_before = books->status.volumes_incomplete;
}

void oct_recorder_books_dropped(struct oct_recorder_books *books, uint64_t n, enum oct_loss reason,
                                bool offered)
{
    pthread_mutex_lock(&books->lock);
    books->status.account.offered += offered ? n : 0;
    books->status.account.dropped[reason] += n;
    if (reason == OCT_LOSS_WRITE_FAILED || reason == OCT_LOSS_DISK_SLOW ||
        reason == OCT_LOSS_PAUSED)
        books->status.bscans_unsaved += n;
    pthread_mutex_unlock(&books->lock);
}

/* ---- files ---- */

/* Lock held. */
static void add_up(struct oct_recorder_books *books)
{
    books->status.bscans_written = books->others_written + books->open_written;
    books->status.bytes_written = books->others_bytes + books->open_bytes;
    books->status.file_open = books->has_open || books->is_closing;
}

void oct_recorder_books_opened(struct oct_recorder_books *books, const char *path)
{
    pthread_mutex_lock(&books->lock);
    snprintf(books->status.file, sizeof(books->status.file), "%s", path);
    books->status.bscans_in_file = 0;
    books->has_open = true;
    add_up(books);
    pthread_mutex_unlock(&books->lock);
}

void oct_recorder_books_progress(struct oct_recorder_books *books, uint64_t written, uint64_t bytes)
{
    pthread_mutex_lock(&books->lock);
    books->open_written = written;
    books->open_bytes = bytes;
    books->status.bscans_in_file = (uint32_t)written;
    add_up(books);
    pthread_mutex_unlock(&books->lock);
}

/* What of the file being closed has become safe. Lock held. */
static void advance(struct oct_recorder_books *books, uint64_t written, uint64_t bytes)
{
    books->others_written += written - books->closing.written;
    books->others_bytes += bytes - books->closing.bytes;
    books->closing.written = written;
    books->closing.bytes = bytes;
    if (!books->has_open)
        books->status.bscans_in_file = (uint32_t)written;
}

void oct_recorder_books_left(struct oct_recorder_books *books, const struct oct_recorder_file *file)
{
    pthread_mutex_lock(&books->lock);
    books->closing = (struct oct_recorder_file){
        .n_bscans = file->n_bscans, .accepted = file->accepted, .engine_lost = file->engine_lost};
    books->is_closing = true;
    books->has_open = false;
    books->open_written = books->open_bytes = 0;
    advance(books, file->written, file->bytes);
    add_up(books);
    pthread_mutex_unlock(&books->lock);
}

void oct_recorder_books_synced(struct oct_recorder_books *books, uint64_t written, uint64_t bytes)
{
    pthread_mutex_lock(&books->lock);
    const struct oct_recorder_file *file = &books->closing;
    advance(books, written, bytes);
    books->status.bscans_unsaved += file->accepted - written;
    books->status.account.dropped[OCT_LOSS_WRITE_FAILED] +=
        file->accepted - file->engine_lost - written;
    add_up(books);
    pthread_mutex_unlock(&books->lock);
}

void oct_recorder_books_closed(struct oct_recorder_books *books, const struct oct_error *why)
{
    pthread_mutex_lock(&books->lock);
    books->is_closing = false;
    if (!why) {
        books->status.volumes_written++;
        books->status.volumes_incomplete += books->closing.written < books->closing.n_bscans;
    } else if (books->n_close_failures < OCT_RECORDER_FAILURES) {
        books->close_failure[books->n_close_failures++] = *why;
    }
    add_up(books);
    pthread_mutex_unlock(&books->lock);
}

bool oct_recorder_books_take_failure(struct oct_recorder_books *books, struct oct_error *why)
{
    pthread_mutex_lock(&books->lock);
    bool any = books->n_close_failures > 0;
    *why = books->close_failure[0];
    books->close_failure[0] = books->close_failure[1];
    books->n_close_failures -= any;
    pthread_mutex_unlock(&books->lock);
    return any;
}

/* ---- telling ---- */

void oct_recorder_books_log(struct oct_recorder_books *books)
{
    char reasons[200];
    pthread_mutex_lock(&books->lock);
    struct oct_recorder_account a = oct_recorder_books_account(books);
    uint64_t n_files = books->status.volumes_written - books->volumes_before;
    uint64_t n_incomplete = books->status.volumes_incomplete - books->incomplete_before;
    pthread_mutex_unlock(&books->lock);
    uint64_t dropped = oct_record_account_dropped(&a, reasons, sizeof(reasons));
    oct_log(dropped ? OCT_LOG_WARNING : OCT_LOG_INFO,
            "recording ended: %" PRIu64 " B-scans offered = %" PRIu64 " written + %" PRIu64
            " dropped%s; %" PRIu64 " files, %" PRIu64 " of them not whole",
            a.offered, a.written, dropped, reasons, n_files, n_incomplete);
}
