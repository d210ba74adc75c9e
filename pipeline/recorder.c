#define _GNU_SOURCE /* pthread_setname_np */
#include "pipeline/recorder.h"

#include "pipeline/clock.h"
#include "pipeline/log.h"
#include "pipeline/record_bscan.h"
#include "pipeline/volume.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define POLL_US 100000u

/* The last B-scan that was looked at. */
struct seen {
    bool any;
    uint32_t acquisition;
    uint64_t volume, number;
};

struct oct_recorder {
    struct oct_recorder_options options;
    struct oct_keeper *keeper;
    struct oct_last *last;
    pthread_t thread;

    /* The thread's own. */
    struct oct_volume_writer *writer;
    uint64_t last_sync_ns;
    uint64_t consumed;    /* slots read so far */
    uint64_t last_slot;   /* last slot written into the open file */
    uint32_t accepted;    /* B-scans given to the open file */
    uint32_t engine_lost; /* of those, without a picture */
    uint32_t file_acquisition;
    uint64_t file_volume;
    uint64_t accounted; /* of the acquisition file_acquisition: B-scans before it are booked */

    pthread_mutex_t lock; /* guards what follows */
    struct oct_record_settings settings;
    struct oct_recorder_status status;
    uint64_t stop_at; /* end after this many slots; UINT64_MAX: go on */
    bool failing;     /* a recording failed and nobody has stopped or started since */
    bool fresh;       /* no B-scan of this recording has been accepted */
    struct seen seen;
    bool skip; /* the volume under way when recording started is not recorded */
    uint32_t skip_acquisition;
    uint64_t skip_volume;
    uint64_t bytes_closed, bscans_closed;                       /* of closed files */
    uint64_t written_before, volumes_before, incomplete_before; /* this recording */
};

/* ---- accounting ---- */

/* Puts the writer's progress into the status. Lock held. */
static void book_progress(struct oct_recorder *rec)
{
    uint64_t written = rec->writer ? oct_volume_written(rec->writer) : 0;
    rec->status.bscans_in_file = (uint32_t)written;
    rec->status.bscans_written = rec->bscans_closed + written;
    rec->status.bytes_written =
        rec->bytes_closed + (rec->writer ? oct_volume_bytes(rec->writer) : 0);
}

/* Lock held. */
static struct oct_recorder_account account_of(const struct oct_recorder *rec)
{
    struct oct_recorder_account a = rec->status.account;
    oct_record_account_close(&a, rec->status.bscans_written - rec->written_before);
    return a;
}

/* Of the recordings before and this one. Lock held. */
static struct oct_recorder_account total_of(const struct oct_recorder *rec)
{
    struct oct_recorder_account a = rec->status.total;
    oct_record_account_add(&a, &rec->status.account);
    oct_record_account_close(&a, rec->status.bscans_written);
    return a;
}

static void book_dropped(struct oct_recorder *rec, uint64_t n, enum oct_loss reason, bool offered)
{
    pthread_mutex_lock(&rec->lock);
    rec->status.account.offered += offered ? n : 0;
    rec->status.account.dropped[reason] += n;
    if (reason == OCT_LOSS_WRITE_FAILED || reason == OCT_LOSS_DISK_SLOW)
        rec->status.bscans_unsaved += n;
    pthread_mutex_unlock(&rec->lock);
}

/* The sum at the end of a recording, in one line. */
static void log_account(struct oct_recorder *rec)
{
    char reasons[200];
    pthread_mutex_lock(&rec->lock);
    struct oct_recorder_account a = account_of(rec);
    uint64_t n_files = rec->status.volumes_written - rec->volumes_before;
    uint64_t n_incomplete = rec->status.volumes_incomplete - rec->incomplete_before;
    pthread_mutex_unlock(&rec->lock);
    uint64_t dropped = oct_record_account_dropped(&a, reasons, sizeof(reasons));
    oct_log(dropped ? OCT_LOG_WARNING : OCT_LOG_INFO,
            "recording ended: %" PRIu64 " B-scans offered = %" PRIu64 " written + %" PRIu64
            " dropped%s; %" PRIu64 " files, %" PRIu64 " of them not whole",
            a.offered, a.written, dropped, reasons, n_files, n_incomplete);
}

static void set_inactive(struct oct_recorder *rec)
{
    pthread_mutex_lock(&rec->lock);
    rec->status.active = rec->status.stopping = false;
    oct_keeper_want(rec->keeper, false);
    pthread_mutex_unlock(&rec->lock);
}

static void fail(struct oct_recorder *rec, const struct oct_error *why)
{
    oct_log(OCT_LOG_ERROR, "recording stopped: %s", why->text);
    log_account(rec);
    pthread_mutex_lock(&rec->lock);
    rec->status.failure = *why;
    rec->failing = true;
    rec->status.active = rec->status.stopping = false;
    oct_keeper_want(rec->keeper, false);
    pthread_mutex_unlock(&rec->lock);
}

/* ---- the open file ---- */

static enum oct_err close_file(struct oct_recorder *rec, struct oct_error *err)
{
    if (!rec->writer)
        return OCT_OK;
    enum oct_err e = oct_volume_sync(rec->writer, err);
    uint64_t written = oct_volume_written(rec->writer);
    uint64_t n_failed = rec->accepted - rec->engine_lost - written;

    pthread_mutex_lock(&rec->lock);
    book_progress(rec);
    rec->bscans_closed += written;
    rec->bytes_closed += oct_volume_bytes(rec->writer);
    rec->status.bscans_unsaved += rec->accepted - written;
    rec->status.account.dropped[OCT_LOSS_WRITE_FAILED] += n_failed;
    pthread_mutex_unlock(&rec->lock);
    enum oct_err c = oct_volume_close(rec->writer, e ? NULL : err);
    rec->writer = NULL;
    pthread_mutex_lock(&rec->lock);
    rec->status.file_open = false;
    if (!c) {
        rec->status.volumes_written++;
        if (written < rec->options.plan->geometry.n_bscans)
            rec->status.volumes_incomplete++;
    }
    pthread_mutex_unlock(&rec->lock);
    return e ? e : c;
}

/* The file first, then the news: from then on another recording may be started. */
static void give_up(struct oct_recorder *rec, const struct oct_error *why)
{
    close_file(rec, NULL);
    fail(rec, why);
}

/* B-scans from .. to - 1 were not recorded: why, says the log, else `reason`. Into the gap map as
 * far as they belong to the open file, and into the account unless nobody wanted them. */
static enum oct_err lose(struct oct_recorder *rec, uint32_t acquisition, uint64_t from, uint64_t to,
                         enum oct_loss reason, struct oct_error *err)
{
    const struct oct_geometry *g = &rec->options.plan->geometry;
    uint64_t file_end = (rec->file_volume + 1) * g->n_bscans;
    enum oct_err e = OCT_OK;
    while (from < to) {
        bool in_file = rec->writer && from < file_end;
        uint64_t end = in_file && to > file_end ? file_end : to;
        struct oct_gap piece =
            oct_loss_log_explain(rec->options.losses, &(struct oct_gap){
                                                          .acquisition = acquisition,
                                                          .first_line = from * g->n_lines,
                                                          .n_lines = (end - from) * g->n_lines,
                                                          .reason = reason,
                                                      });
        uint64_t n = piece.n_lines / g->n_lines;
        if (in_file && e == OCT_OK)
            e = oct_volume_write_gap(rec->writer, &piece, err);
        if (piece.reason != OCT_LOSS_NOT_RECORDED) {
            book_dropped(rec, n, piece.reason, true);
            rec->accounted = from + n;
        }
        from += n;
    }
    return e;
}

static void end_file(struct oct_recorder *rec)
{
    struct oct_error err;
    if (!rec->writer)
        return;
    uint64_t end = (rec->file_volume + 1) * rec->options.plan->geometry.n_bscans;
    enum oct_err e =
        lose(rec, rec->file_acquisition, rec->accounted, end, OCT_LOSS_NOT_RECORDED, &err);
    enum oct_err c = close_file(rec, e ? NULL : &err);
    if (e || c)
        fail(rec, &err);
}

static enum oct_err open_file(struct oct_recorder *rec, const struct oct_bscan_info *info,
                              struct oct_error *err)
{
    const struct oct_record_settings *s = &rec->settings; /* only start changes them */
    struct oct_volume_about about = oct_record_about(s, rec->options.engine);
    char path[sizeof(rec->status.file)], ending[32];
    about.counted = true;
    about.first_bscan = info->volume * rec->options.plan->geometry.n_bscans;
    snprintf(ending, sizeof(ending), "v%04" PRIu64, info->volume);
    oct_record_path(s, ending, path, sizeof(path));
    if (strcmp(path, rec->status.file) == 0) { /* another acquisition in the same millisecond */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        oct_record_path(s, ending, path, sizeof(path));
    }
    enum oct_err e = oct_volume_create(&rec->writer, path, rec->options.plan, &about, s->spectra,
                                       s->bscans, err);
    if (e)
        return e;
    rec->file_acquisition = info->acquisition;
    rec->file_volume = info->volume;
    rec->last_sync_ns = oct_clock_ns();
    rec->accepted = rec->engine_lost = 0;
    pthread_mutex_lock(&rec->lock);
    memcpy(rec->status.file, path, sizeof(path));
    rec->status.file_open = true;
    pthread_mutex_unlock(&rec->lock);
    return OCT_OK;
}

static void sync_when_due(struct oct_recorder *rec)
{
    struct oct_error err;
    if (!rec->writer || oct_clock_ns() - rec->last_sync_ns < rec->settings.sync_interval_ns)
        return;
    rec->last_sync_ns = oct_clock_ns();
    enum oct_err e = oct_volume_sync(rec->writer, &err);
    pthread_mutex_lock(&rec->lock);
    book_progress(rec);
    pthread_mutex_unlock(&rec->lock);
    if (e)
        give_up(rec, &err);
}

/* ---- the stream ---- */

/* Whether this B-scan is to be recorded: recording is on, its volume was not under way before. Seen
 * from then on, so that a recording that starts now knows its volume to be under way; `before` is
 * what was seen until then. */
static bool is_wanted(struct oct_recorder *rec, const struct oct_kept *kept, struct seen *before)
{
    const struct oct_bscan_info *info = &kept->raw.info;
    pthread_mutex_lock(&rec->lock);
    *before = rec->seen;
    rec->seen = (struct seen){true, info->acquisition, info->volume, info->number};
    if (rec->status.active && !kept->has_payload) { /* it passed before recording started */
        rec->skip = true;
        rec->skip_acquisition = info->acquisition;
        rec->skip_volume = info->volume;
    }
    bool begun_before =
        rec->skip && info->acquisition == rec->skip_acquisition && info->volume == rec->skip_volume;
    bool wanted = rec->status.active && !begun_before && kept->slot < rec->stop_at;
    bool failing = rec->failing;
    pthread_mutex_unlock(&rec->lock);
    if (failing) /* who asked for a recording still wants it */
        book_dropped(rec, 1, OCT_LOSS_WRITE_FAILED, true);
    return wanted;
}

/* The first number not booked yet that this B-scan's recording answers for. */
static uint64_t first_missed(struct oct_recorder *rec, const struct oct_bscan_info *info,
                             const struct seen *before)
{
    uint64_t volume_first = info->volume * rec->options.plan->geometry.n_bscans;
    bool same = before->any && before->acquisition == info->acquisition;
    uint64_t first = same ? before->number + 1 : info->number - info->lost_before;
    pthread_mutex_lock(&rec->lock);
    bool fresh = rec->fresh;
    rec->fresh = false;
    pthread_mutex_unlock(&rec->lock);
    if (fresh && first < volume_first)
        first = volume_first;
    if (!fresh && info->acquisition == rec->file_acquisition && first < rec->accounted)
        first = rec->accounted;
    return first < info->number ? first : info->number;
}

/* Opens the file of this B-scan's volume, with all that was lost before it in the gap map: of
 * volumes of which nothing came too, which have no file of their own to say so. */
static enum oct_err begin_file(struct oct_recorder *rec, const struct oct_bscan_info *info,
                               uint64_t missed, struct oct_error *err)
{
    const struct oct_geometry *g = &rec->options.plan->geometry;
    uint64_t volume_first = info->volume * g->n_bscans;
    enum oct_err e = open_file(rec, info, err);
    enum oct_err l = OCT_OK;
    if (missed < volume_first)
        l = lose(rec, info->acquisition, missed, volume_first, OCT_LOSS_SOURCE, e ? NULL : err);
    if (e || l)
        return e ? e : l;
    uint64_t from = missed > volume_first ? missed : volume_first;
    e = oct_volume_write_gap(rec->writer,
                             &(struct oct_gap){
                                 .acquisition = info->acquisition,
                                 .first_line = volume_first * g->n_lines,
                                 .n_lines = (from - volume_first) * g->n_lines,
                                 .reason = OCT_LOSS_NOT_RECORDED,
                             },
                             err);
    return e ? e : lose(rec, info->acquisition, from, info->number, OCT_LOSS_SOURCE, err);
}

static enum oct_err accept(struct oct_recorder *rec, const struct oct_kept *kept,
                           struct oct_error *err)
{
    const struct oct_record_settings *s = &rec->settings;
    const struct oct_bscan_info *info = &kept->raw.info;
    bool lost = s->bscans && kept->image.status != OCT_OK;
    rec->accepted++;
    rec->engine_lost += lost;
    rec->last_slot = kept->slot;
    rec->accounted = info->number + 1;
    pthread_mutex_lock(&rec->lock);
    rec->status.account.offered++;
    rec->status.account.dropped[OCT_LOSS_ENGINE] += lost;
    pthread_mutex_unlock(&rec->lock);
    return oct_record_bscan(rec->writer, kept, info->bscan, &rec->options.plan->geometry,
                            s->spectra, s->bscans, err);
}

/* A B-scan of another volume ends the open file; between the two some may be missing. */
static void leave_file(struct oct_recorder *rec, const struct oct_bscan_info *info)
{
    uint64_t end = (rec->file_volume + 1) * rec->options.plan->geometry.n_bscans;
    if (!rec->writer ||
        (info->acquisition == rec->file_acquisition && info->volume == rec->file_volume))
        return;
    if (info->acquisition == rec->file_acquisition)
        lose(rec, info->acquisition, rec->accounted, info->number < end ? info->number : end,
             OCT_LOSS_SOURCE, NULL);
    end_file(rec);
}

static void record(struct oct_recorder *rec, const struct oct_kept *kept)
{
    const struct oct_bscan_info *info = &kept->raw.info;
    struct seen before;
    struct oct_error err;

    leave_file(rec, info);
    if (!is_wanted(rec, kept, &before))
        return;
    uint64_t missed = first_missed(rec, info, &before);
    enum oct_err e = rec->writer
                         ? lose(rec, info->acquisition, missed, info->number, OCT_LOSS_SOURCE, &err)
                         : begin_file(rec, info, missed, &err);
    if (e == OCT_OK)
        e = accept(rec, kept, &err);
    else
        book_dropped(rec, 1, OCT_LOSS_WRITE_FAILED, true);
    if (e)
        give_up(rec, &err);
    else if (info->bscan + 1 == rec->options.plan->geometry.n_bscans)
        end_file(rec);
}

/* n B-scans, the last of all those before `next_slot`. */
static void note_passed(struct oct_recorder *rec, uint64_t next_slot, unsigned n)
{
    if (next_slot > rec->consumed)
        rec->consumed = next_slot;
    pthread_mutex_lock(&rec->lock);
    rec->status.next_slot = rec->consumed;
    rec->status.bscans_passed += n;
    pthread_mutex_unlock(&rec->lock);
}

/* Ends what has to end when no further B-scan says so. */
static void look_around(struct oct_recorder *rec)
{
    uint64_t ended_at = rec->options.ended_at ? atomic_load(rec->options.ended_at) : 0;
    if (rec->writer && ended_at && rec->consumed + 1 >= ended_at && rec->last_slot + 1 < ended_at)
        end_file(rec);
    pthread_mutex_lock(&rec->lock);
    bool stop = rec->status.active && rec->consumed >= rec->stop_at;
    pthread_mutex_unlock(&rec->lock);
    if (stop) {
        end_file(rec);
        pthread_mutex_lock(&rec->lock);
        stop = rec->status.active; /* else closing failed, and that was told */
        pthread_mutex_unlock(&rec->lock);
    }
    if (stop) {
        log_account(rec);
        set_inactive(rec);
    }
    sync_when_due(rec);
}

static void *run(void *argument)
{
    struct oct_recorder *rec = argument;
    for (;;) {
        const struct oct_kept *kept;
        uint64_t passed;
        enum oct_err e = oct_keeper_read(rec->keeper, POLL_US, &kept, &passed);
        if (e == OCT_E_CLOSED)
            break;
        if (e == OCT_OK) {
            const uint64_t slot = kept->slot;
            record(rec, kept);
            oct_keeper_release(rec->keeper); /* first: none waits that is not queued */
            note_passed(rec, slot + 1, 1);
        } else {
            note_passed(rec, passed, 0); /* dropped */
        }
        look_around(rec);
    }
    end_file(rec);
    pthread_mutex_lock(&rec->lock);
    bool active = rec->status.active;
    pthread_mutex_unlock(&rec->lock);
    if (active)
        log_account(rec);
    set_inactive(rec);
    return NULL;
}

/* ---- from outside ---- */

static enum oct_err create_parts(struct oct_recorder *rec, struct oct_error *err)
{
    const struct oct_recorder_options *o = &rec->options;
    const struct oct_keeper_options keeper = {
        .plan = o->plan,
        .raw = o->raw,
        .images = o->images,
        .losses = o->losses,
        .buffer_bscans = o->buffer_bscans,
        .history_bscans = o->history_bscans,
    };
    enum oct_err e = oct_keeper_create(&rec->keeper, &keeper, err);
    if (e)
        return e;
    rec->consumed = rec->status.next_slot = oct_keeper_first_slot(rec->keeper);
    const struct oct_last_options last = {
        .plan = o->plan, .keeper = rec->keeper, .losses = o->losses, .engine = o->engine};
    return oct_last_create(&rec->last, &last, err);
}

enum oct_err oct_recorder_create(struct oct_recorder **out,
                                 const struct oct_recorder_options *options, struct oct_error *err)
{
    *out = NULL;
    struct oct_recorder *rec = calloc(1, sizeof(*rec));
    if (!rec)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the recorder");
    rec->options = *options;
    rec->stop_at = UINT64_MAX;
    pthread_mutex_init(&rec->lock, NULL);
    enum oct_err e = create_parts(rec, err);
    int status = e ? 0 : pthread_create(&rec->thread, NULL, run, rec);
    if (status)
        e = oct_fail_errno(err, OCT_E_IO, status, "recorder thread");
    if (e) {
        /* The keeper's thread ends with the image ring: whoever made the rings closes them. */
        oct_last_destroy(rec->last);
        if (rec->keeper)
            oct_ring_close(options->images);
        oct_keeper_destroy(rec->keeper);
        pthread_mutex_destroy(&rec->lock);
        free(rec);
        return e;
    }
    pthread_setname_np(rec->thread, "octd-recorder");
    *out = rec;
    return OCT_OK;
}

/* What the folder has room for, told before it is needed. */
static void log_forecast(const struct oct_recorder *rec, const struct oct_recorder_settings *from,
                         double free_bytes)
{
    const struct oct_geometry *g = &rec->options.plan->geometry;
    double bytes = oct_record_bscan_bytes(from, g);
    if (from->line_rate_hz > 0)
        oct_log(OCT_LOG_INFO, "recording into %s: %.1f GB free, room for %.0f volumes or %.0f s",
                from->directory, free_bytes * 1e-9, free_bytes / (bytes * g->n_bscans),
                free_bytes / (bytes * from->line_rate_hz / g->n_lines));
}

static void begin(struct oct_recorder *rec)
{
    rec->skip = rec->seen.any;
    rec->skip_acquisition = rec->seen.acquisition;
    rec->skip_volume = rec->seen.volume;
    rec->stop_at = UINT64_MAX;
    rec->fresh = true;
    rec->status.active = true;
    rec->status.failure = (struct oct_error){0};
    rec->status.total = total_of(rec);
    rec->status.account = (struct oct_recorder_account){0};
    rec->written_before = rec->status.bscans_written;
    rec->volumes_before = rec->status.volumes_written;
    rec->incomplete_before = rec->status.volumes_incomplete;
    rec->failing = false;
    oct_keeper_want(rec->keeper, true);
}

enum oct_err oct_recorder_start(struct oct_recorder *rec, const struct oct_recorder_settings *from,
                                struct oct_error *err)
{
    const struct oct_geometry *g = &rec->options.plan->geometry;
    struct oct_record_settings settings = {0};
    double free_bytes;
    enum oct_err e = oct_record_settings_check(from, g, g->n_bscans, &free_bytes, err);
    if (e == OCT_OK)
        e = oct_record_settings_init(&settings, from, err);
    if (e == OCT_OK)
        e = oct_record_settings_resolve(&settings, err);
    if (e) {
        oct_record_settings_finish(&settings);
        return e;
    }
    /* No disk is looked at from here on: who asks for the status waits for the lock. */
    pthread_mutex_lock(&rec->lock);
    if (rec->status.active) {
        e = oct_fail(err, OCT_E_STATE,
                     rec->status.stopping ? "the recording before is still being closed"
                                          : "a recording is under way already");
    } else {
        const struct oct_record_settings before = rec->settings;
        rec->settings = settings;
        settings = before;
        begin(rec);
    }
    pthread_mutex_unlock(&rec->lock);
    oct_record_settings_finish(&settings);
    if (e == OCT_OK)
        log_forecast(rec, from, free_bytes);
    return e;
}

enum oct_err oct_recorder_last(struct oct_recorder *rec, const struct oct_recorder_settings *from,
                               const char *name, struct oct_error *err)
{
    return oct_last_start(rec->last, from, name, err);
}

void oct_recorder_drain(struct oct_recorder *rec)
{
    oct_keeper_drain(rec->keeper);
}

void oct_recorder_stop(struct oct_recorder *rec)
{
    uint64_t published = oct_ring_published(rec->options.raw);
    pthread_mutex_lock(&rec->lock);
    rec->failing = false;
    if (rec->status.active && !rec->status.stopping) {
        rec->stop_at = published;
        rec->status.stopping = true;
    }
    pthread_mutex_unlock(&rec->lock);
    oct_keeper_wake(rec->keeper);
}

void oct_recorder_get_status(struct oct_recorder *rec, struct oct_recorder_status *status)
{
    pthread_mutex_lock(&rec->lock);
    *status = rec->status;
    status->account = account_of(rec);
    status->total = total_of(rec);
    pthread_mutex_unlock(&rec->lock);
    oct_keeper_get_status(rec->keeper, &status->keeper);
    oct_last_get_status(rec->last, &status->last);
}

void oct_recorder_destroy(struct oct_recorder *rec)
{
    if (!rec)
        return;
    pthread_join(rec->thread, NULL);
    oct_last_destroy(rec->last);
    oct_keeper_destroy(rec->keeper);
    oct_record_settings_finish(&rec->settings);
    pthread_mutex_destroy(&rec->lock);
    free(rec);
}
