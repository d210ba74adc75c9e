#include "pipeline/record/recorder.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"
#include "pipeline/base/thread.h"
#include "pipeline/record/bscan.h"
#include "pipeline/record/status.h"
#include "pipeline/volume/closer.h"
#include "pipeline/volume/volume.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define POLL_US 100000u
#define POLL_RESULTS_US 5000u /* while a file waits for results */
#define MOST_WAITING 4u       /* files that wait for results */
#define AWAIT_MS 60000u       /* for an analysis of which it is not known yet how long it takes */

struct oct_recorder {
    struct oct_recorder_options options;
    struct oct_keeper *keeper;
    struct oct_record_history *history;
    struct oct_record_results *results;
    struct oct_volume_closer *closer;
    pthread_t thread;

    /* The thread's own. */
    struct oct_record_file open; /* its writer is NULL between two; the rest is of the last one */
    struct oct_record_file waiting[MOST_WAITING]; /* for results, the oldest first */
    unsigned n_waiting;
    uint64_t consumed; /* slots read so far */
    uint64_t next_id;  /* B-scans below have passed */
    /* B-scans of this recording, or of the last one: for results that come too late. */
    uint64_t recorded_first, recorded_end;
    uint64_t accounted; /* of the acquisition of `open`: B-scans before it are booked */

    struct oct_recorder_shared shared; /* with other threads, and the lock that guards it */
};

/* ---- the end of a recording ---- */

/* B-scans from the returned one on were not to be recorded. */
static uint64_t find_end(struct oct_recorder *rec)
{
    const uint64_t stop_at = atomic_load(&rec->shared.order.stop_at);
    return stop_at < rec->next_id ? stop_at : rec->next_id;
}

static void set_inactive(struct oct_recorder *rec)
{
    rec->recorded_end = find_end(rec);
    pthread_mutex_lock(&rec->shared.lock);
    rec->shared.status.active = rec->shared.status.stopping = false;
    oct_keeper_want(rec->keeper, false);
    pthread_mutex_unlock(&rec->shared.lock);
}

static void fail(struct oct_recorder *rec, const struct oct_error *why)
{
    oct_log(OCT_LOG_ERROR, "recording stopped: %s", why->text);
    rec->recorded_end = find_end(rec);
    oct_recorder_status_log(&rec->shared);
    pthread_mutex_lock(&rec->shared.lock);
    rec->shared.status.failure = *why;
    rec->shared.status.active = rec->shared.status.stopping = false;
    oct_keeper_want(rec->keeper, false);
    pthread_mutex_unlock(&rec->shared.lock);
}

/* ---- the open file, and the one before it ---- */

/* Hands a file to the closer, which closes it while the next is written. Waits until the file
 * before it is closed. */
static void leave(struct oct_recorder *rec, struct oct_record_file *file)
{
    oct_volume_closer_wait(rec->closer);
    oct_recorder_status_progress(&rec->shared, file, oct_volume_written(file->writer),
                                 oct_volume_bytes(file->writer));
    oct_recorder_status_left(&rec->shared, file);
    oct_volume_closer_put(rec->closer, file->writer);
    file->writer = NULL;
}

/* All files, with what they have. */
static void leave_all(struct oct_recorder *rec)
{
    for (unsigned i = 0; i < rec->n_waiting; i++)
        leave(rec, &rec->waiting[i]);
    rec->n_waiting = 0;
    if (rec->open.writer)
        leave(rec, &rec->open);
}

/* In the closer's thread. */
static void on_synced(void *owner, uint64_t n_written, uint64_t n_bytes)
{
    struct oct_recorder *rec = owner;
    oct_recorder_status_synced(&rec->shared, n_written, n_bytes);
}

/* In the closer's thread. The recorder's thread reacts to a failure, so this wakes it. */
static void on_closed(void *owner, const struct oct_error *why)
{
    struct oct_recorder *rec = owner;
    oct_recorder_status_closed(&rec->shared, why);
    if (why)
        oct_keeper_wake(rec->keeper);
}

/* Ends a recording that has failed. It closes the files before it sets the status, since another
 * recording may be started as soon as the status says so. */
static void end_failed(struct oct_recorder *rec, const struct oct_error *why)
{
    struct oct_error next;
    leave_all(rec);
    oct_volume_closer_wait(rec->closer);
    while (oct_recorder_status_take_failure(&rec->shared, &next))
        oct_log(OCT_LOG_ERROR, "the file after it failed too: %s", next.text);
    fail(rec, why);
}

/* Making a file, or writing into one, has failed. When one before it has failed too, that is the
 * reason in the status. */
static void give_up(struct oct_recorder *rec, const struct oct_error *why)
{
    struct oct_error older, again;
    oct_volume_closer_wait(rec->closer);
    bool older_failed = oct_recorder_status_take_failure(&rec->shared, &older);
    if (older_failed)
        oct_log(OCT_LOG_ERROR, "the file after it failed too: %s", why->text);
    leave_all(rec);
    oct_volume_closer_wait(rec->closer);
    while (oct_recorder_status_take_failure(&rec->shared, &again))
        ; /* of the same disk as `why` */
    fail(rec, older_failed ? &older : why);
}

/* Books B-scans from .. to - 1, which were not recorded. The reason is the one in the loss log,
 * else `reason`. They go into the gap map of the open file, of which no row may lie before them,
 * and into the account unless they were not to be recorded. `to` has wrapped where the last volume
 * reaches beyond 2^64. */
static enum oct_err lose(struct oct_recorder *rec, uint32_t acquisition, uint64_t from, uint64_t to,
                         enum oct_loss reason, struct oct_error *err)
{
    const struct oct_geometry *g = &rec->options.plan->geometry;
    enum oct_err e = OCT_OK;
    while (from != to && to - from <= INT64_MAX) {
        struct oct_gap piece =
            oct_loss_log_explain(rec->options.losses, &(struct oct_gap){
                                                          .acquisition = acquisition,
                                                          .first_line = from * g->n_lines,
                                                          .n_lines = (to - from) * g->n_lines,
                                                          .reason = reason,
                                                      });
        uint64_t n = piece.n_lines / g->n_lines;
        if (rec->open.writer && e == OCT_OK)
            e = oct_volume_write_gap(rec->open.writer, &piece, err);
        if (piece.reason != OCT_LOSS_NOT_RECORDED) {
            oct_recorder_status_dropped(&rec->shared, n, piece.reason, true);
            rec->accounted = from + n;
        }
        from += n;
    }
    return e;
}

/* Books the rest of the open file's volume as not recorded. */
static enum oct_err lose_rest(struct oct_recorder *rec, struct oct_error *err)
{
    uint64_t end = (rec->open.volume + 1) * rec->options.plan->geometry.n_bscans;
    return lose(rec, rec->open.acquisition, rec->accounted, end, OCT_LOSS_NOT_RECORDED, err);
}

/* ---- results of analyses ---- */

static bool has_backlog(struct oct_recorder *rec)
{
    struct oct_keeper_status keeper;
    oct_keeper_get_status(rec->keeper, &keeper);
    return keeper.n_waiting > 0;
}

static enum oct_err take_results(struct oct_recorder *rec, struct oct_error *err)
{
    const uint64_t stop_at = atomic_load(&rec->shared.order.stop_at);
    const struct oct_record_position at = {
        .open = &rec->open,
        .waiting = rec->waiting,
        .n_waiting = rec->n_waiting,
        .next = rec->next_id,
        .first = rec->recorded_first,
        .end = stop_at < rec->recorded_end ? stop_at : rec->recorded_end,
        .stop_at = &rec->shared.order.stop_at,
        .keeps_up = oct_record_results_wait_long(rec->results) && !has_backlog(rec),
    };
    return oct_record_results_poll(rec->results, &at, err);
}

/* Takes results, and leaves the files that wait for no more; at the recorder's end (`hurry`) that
 * is sooner. False: a write failed; the failure is then in the status. */
static bool leave_ready(struct oct_recorder *rec, bool hurry)
{
    bool waits[MOST_WAITING] = {false};
    const uint64_t least_ns = (uint64_t)rec->options.await_ms * 1000000 / (hurry ? 30 : 1);
    struct oct_error err;
    unsigned n = 0;
    for (unsigned i = 0; i < rec->n_waiting; i++)
        waits[i] = oct_record_results_await(rec->results, &rec->waiting[i], least_ns);
    if (take_results(rec, &err)) {
        give_up(rec, &err);
        return false;
    }
    for (unsigned i = 0; i < rec->n_waiting; i++)
        if (waits[i])
            rec->waiting[n++] = rec->waiting[i];
        else
            leave(rec, &rec->waiting[i]);
    rec->n_waiting = n;
    return true;
}

/* The open file has all its B-scans: the next may be filled meanwhile. When too many wait, the
 * newest makes room: the analysis that the oldest waits for skips most of what comes after it. */
static void set_aside(struct oct_recorder *rec)
{
    if (rec->n_waiting == MOST_WAITING)
        leave(rec, &rec->waiting[--rec->n_waiting]);
    rec->open.ended_ns = oct_clock_ns();
    rec->waiting[rec->n_waiting++] = rec->open;
    rec->open.writer = NULL;
}

/* Counts the volume of the open file, which has got all that it will get, if it is whole. */
static void count_whole(struct oct_recorder *rec)
{
    pthread_mutex_lock(&rec->shared.lock);
    rec->shared.order.n_whole +=
        rec->open.accepted - rec->open.engine_lost == rec->options.plan->geometry.n_bscans;
    pthread_mutex_unlock(&rec->shared.lock);
}

/* Between two files: a recording that has its whole volumes ends before slot `next`, as if it had
 * been stopped there. */
static void heed_volumes(struct oct_recorder *rec, uint64_t next)
{
    struct oct_recorder_order *order = &rec->shared.order;
    struct oct_recorder_status *status = &rec->shared.status;
    if (rec->open.writer)
        return;
    pthread_mutex_lock(&rec->shared.lock);
    if (status->active && status->volumes > 0 && order->n_whole >= status->volumes) {
        status->stopping = true;
        if (next < order->stop_at)
            order->stop_at = next;
    }
    pthread_mutex_unlock(&rec->shared.lock);
}

/* Returns false when that failed; the failure is then in the status. */
static bool end_file(struct oct_recorder *rec, bool is_cut)
{
    struct oct_error err;
    if (!rec->open.writer)
        return true;
    if (lose_rest(rec, &err)) {
        give_up(rec, &err);
        return false;
    }
    count_whole(rec);
    rec->open.is_cut = is_cut;
    set_aside(rec);
    return leave_ready(rec, false);
}

/* Ends the recording, and the open file with what it has, if the file before could not be closed.
 * Returns false in that case; the failure is then in the status. */
static bool heed_closed(struct oct_recorder *rec)
{
    struct oct_error why;
    if (!oct_recorder_status_take_failure(&rec->shared, &why))
        return true;
    if (rec->open.writer)
        lose_rest(rec, NULL);
    end_failed(rec, &why);
    return false;
}

/* Closes all files; `block`: waits for those that wait for results. Returns false when some still
 * do, when nothing was being recorded, or when closing failed; the failure is then in the status,
 * and the status may already belong to the next recording. */
static bool settle(struct oct_recorder *rec, bool block)
{
    pthread_mutex_lock(&rec->shared.lock);
    bool active = rec->shared.status.active;
    pthread_mutex_unlock(&rec->shared.lock);
    bool ended = end_file(rec, !block); /* with the rings' end the analyses give what they have */
    while (block && rec->n_waiting > 0 && (ended = leave_ready(rec, true)))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (rec->n_waiting > 0)
        return false;
    oct_volume_closer_wait(rec->closer);
    bool closed = heed_closed(rec);
    return active && ended && closed;
}

static enum oct_err open_file(struct oct_recorder *rec, const struct oct_raw_frame *raw,
                              struct oct_error *err)
{
    const struct oct_record_settings *s = &rec->shared.order.settings.settings;
    const struct oct_bscan_info *info = &raw->info;
    struct oct_volume_about about = oct_record_about(s, raw->format, rec->options.engine);
    char path[sizeof(rec->shared.status.file)], ending[32];
    about.counted = true;
    about.first_bscan = info->volume * rec->options.plan->geometry.n_bscans;
    oct_record_results_describe(rec->results, &about);
    snprintf(ending, sizeof(ending), "v%04" PRIu64, info->volume);
    oct_record_path(s, ending, path, sizeof(path));
    /* Another acquisition in the same millisecond? */
    if (strcmp(path, rec->shared.status.file) == 0) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        oct_record_path(s, ending, path, sizeof(path));
    }
    rec->open = (struct oct_record_file){.acquisition = info->acquisition,
                                         .volume = info->volume,
                                         .n_bscans = rec->options.plan->geometry.n_bscans,
                                         .synced_ns = oct_clock_ns()};
    enum oct_err e = oct_volume_create(&rec->open.writer, path, rec->options.plan, &about,
                                       s->spectra, s->bscans, err);
    if (e == OCT_OK)
        oct_recorder_status_opened(&rec->shared, &rec->open, path);
    return e;
}

static uint64_t sync_interval_ns(const struct oct_recorder *rec)
{
    return (uint64_t)(rec->shared.order.settings.settings.sync_interval_s * 1e9);
}

/* False: that failed; the failure is then in the status. */
static bool sync_file(struct oct_recorder *rec, struct oct_record_file *file)
{
    struct oct_error err;
    const uint64_t now_ns = oct_clock_ns();
    if (!file->writer || now_ns - file->synced_ns < sync_interval_ns(rec))
        return true;
    file->synced_ns = now_ns;
    enum oct_err e = oct_volume_sync(file->writer, &err);
    oct_recorder_status_progress(&rec->shared, file, oct_volume_written(file->writer),
                                 oct_volume_bytes(file->writer));
    if (e)
        give_up(rec, &err);
    return e == OCT_OK;
}

static void sync_when_due(struct oct_recorder *rec)
{
    for (unsigned i = 0; i < rec->n_waiting; i++)
        if (!sync_file(rec, &rec->waiting[i]))
            return;
    sync_file(rec, &rec->open);
}

/* ---- the stream ---- */

/* Returns whether this B-scan is to be recorded: a recording is active and did not start within
 * this volume. Sets `seen` to this B-scan, so that a recording that starts next skips the rest of
 * its volume; *before is the value until then. */
static bool is_wanted(struct oct_recorder *rec, const struct oct_kept *kept,
                      struct oct_recorder_seen *before)
{
    const struct oct_bscan_info *info = &kept->raw.info;
    struct oct_recorder_order *order = &rec->shared.order;
    pthread_mutex_lock(&rec->shared.lock);
    *before = order->seen;
    order->seen = (struct oct_recorder_seen){true, info->acquisition, info->volume, info->number};
    if (rec->shared.status.active && !kept->has_payload) { /* it passed before recording started */
        order->skip = true;
        order->skip_acquisition = info->acquisition;
        order->skip_volume = info->volume;
    }
    bool begun_before = order->skip && info->acquisition == order->skip_acquisition &&
                        info->volume == order->skip_volume;
    bool wanted = rec->shared.status.active && !begun_before && kept->slot < order->stop_at;
    pthread_mutex_unlock(&rec->shared.lock);
    return wanted;
}

/* Returns the first B-scan number that this recording has to account for and has not booked yet. */
static uint64_t first_missed(struct oct_recorder *rec, const struct oct_bscan_info *info,
                             const struct oct_recorder_seen *before)
{
    uint64_t volume_first = info->volume * rec->options.plan->geometry.n_bscans;
    bool same = before->any && before->acquisition == info->acquisition;
    uint64_t first = same ? before->number + 1 : info->number - info->lost_before;
    pthread_mutex_lock(&rec->shared.lock);
    bool fresh = rec->shared.order.fresh;
    rec->shared.order.fresh = false;
    pthread_mutex_unlock(&rec->shared.lock);
    if (fresh && first < volume_first)
        first = volume_first;
    if (fresh) {
        rec->recorded_first = info->id;
        rec->recorded_end = UINT64_MAX;
    }
    if (!fresh && info->acquisition == rec->open.acquisition && first < rec->accounted)
        first = rec->accounted;
    return first < info->number ? first : info->number;
}

/* Opens the file of this B-scan's volume and books what was lost before it in the gap map. That
 * includes volumes of which no B-scan came, since they have no file of their own. */
static enum oct_err begin_file(struct oct_recorder *rec, const struct oct_raw_frame *raw,
                               uint64_t missed, struct oct_error *err)
{
    const struct oct_geometry *g = &rec->options.plan->geometry;
    const struct oct_bscan_info *info = &raw->info;
    uint64_t volume_first = info->volume * g->n_bscans;
    enum oct_err e = open_file(rec, raw, err);
    enum oct_err l = OCT_OK;
    if (missed < volume_first)
        l = lose(rec, info->acquisition, missed, volume_first, OCT_LOSS_SOURCE, e ? NULL : err);
    if (e || l)
        return e ? e : l;
    uint64_t from = missed > volume_first ? missed : volume_first;
    e = oct_volume_write_gap(rec->open.writer,
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
    const struct oct_record_settings *s = &rec->shared.order.settings.settings;
    const struct oct_bscan_info *info = &kept->raw.info;
    bool lost = s->bscans && kept->image.status != OCT_OK;
    rec->open.accepted++;
    rec->open.engine_lost += lost;
    rec->open.last_slot = kept->slot;
    rec->open.last_id = info->id;
    rec->accounted = info->number + 1;
    pthread_mutex_lock(&rec->shared.lock);
    rec->shared.status.account.offered++;
    rec->shared.status.account.dropped[OCT_LOSS_ENGINE] += lost;
    pthread_mutex_unlock(&rec->shared.lock);
    return oct_record_bscan(rec->open.writer, kept, info->bscan, &rec->options.plan->geometry,
                            s->spectra, s->bscans, err);
}

/* Ends the open file if this B-scan is of another volume; B-scans between the two may be missing.
 */
static void leave_file(struct oct_recorder *rec, const struct oct_bscan_info *info)
{
    uint64_t end = (rec->open.volume + 1) * rec->options.plan->geometry.n_bscans;
    if (!rec->open.writer ||
        (info->acquisition == rec->open.acquisition && info->volume == rec->open.volume))
        return;
    if (info->acquisition == rec->open.acquisition)
        lose(rec, info->acquisition, rec->accounted, info->number < end ? info->number : end,
             OCT_LOSS_SOURCE, NULL);
    end_file(rec, false);
}

static void record(struct oct_recorder *rec, const struct oct_kept *kept)
{
    const struct oct_bscan_info *info = &kept->raw.info;
    struct oct_recorder_seen before;
    struct oct_error err;

    leave_file(rec, info);
    heed_closed(rec);
    heed_volumes(rec, kept->slot);
    if (!is_wanted(rec, kept, &before))
        return;
    uint64_t missed = first_missed(rec, info, &before);
    enum oct_err e = rec->open.writer
                         ? lose(rec, info->acquisition, missed, info->number, OCT_LOSS_SOURCE, &err)
                         : begin_file(rec, &kept->raw, missed, &err);
    if (e == OCT_OK)
        e = accept(rec, kept, &err);
    else
        oct_recorder_status_dropped(&rec->shared, 1, OCT_LOSS_WRITE_FAILED, true);
    if (e)
        give_up(rec, &err);
    else if (info->bscan + 1 == rec->options.plan->geometry.n_bscans)
        end_file(rec, false);
}

/* Counts n B-scans; all slots before next_slot have passed. */
static void note_passed(struct oct_recorder *rec, uint64_t next_slot, unsigned n)
{
    if (next_slot > rec->consumed)
        rec->consumed = next_slot;
    pthread_mutex_lock(&rec->shared.lock);
    rec->shared.status.next_slot = rec->consumed;
    rec->shared.status.bscans_passed += n;
    pthread_mutex_unlock(&rec->shared.lock);
}

/* Takes results, and ends files and recordings that must end although no further B-scan comes. */
static void look_around(struct oct_recorder *rec)
{
    leave_ready(rec, false);
    uint64_t ended_at = rec->options.ended_at ? atomic_load(rec->options.ended_at) : 0;
    if (rec->open.writer && ended_at && rec->consumed + 1 >= ended_at &&
        rec->open.last_slot + 1 < ended_at)
        end_file(rec, true);
    heed_closed(rec);
    heed_volumes(rec, rec->consumed);
    pthread_mutex_lock(&rec->shared.lock);
    bool stop = rec->shared.status.active && rec->consumed >= rec->shared.order.stop_at;
    pthread_mutex_unlock(&rec->shared.lock);
    if (stop && settle(rec, false)) {
        oct_recorder_status_log(&rec->shared);
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
        enum oct_err e = oct_keeper_read(rec->keeper, rec->n_waiting ? POLL_RESULTS_US : POLL_US,
                                         &kept, &passed);
        if (e == OCT_E_CLOSED)
            break;
        if (e == OCT_OK) {
            const uint64_t slot = kept->slot;
            record(rec, kept);
            rec->next_id = kept->raw.info.id + 1;
            /* Before next_slot grows, so that no B-scan counts as waiting that is not queued. */
            oct_keeper_release(rec->keeper);
            note_passed(rec, slot + 1, 1);
        } else {
            note_passed(rec, passed, 0); /* dropped */
        }
        look_around(rec);
    }
    if (settle(rec, true))
        oct_recorder_status_log(&rec->shared);
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
        .complex_of = o->complex_of,
    };
    enum oct_err e = oct_keeper_create(&rec->keeper, &keeper, err);
    if (e)
        return e;
    rec->consumed = rec->shared.status.next_slot = oct_keeper_first_slot(rec->keeper);
    const struct oct_volume_closer_calls calls = {
        .synced = on_synced, .closed = on_closed, .owner = rec};
    e = oct_volume_closer_create(&rec->closer, &calls, err);
    if (e)
        return e;
    const struct oct_record_history_options history = {
        .plan = o->plan, .keeper = rec->keeper, .losses = o->losses, .engine = o->engine};
    e = oct_record_results_create(&rec->results, o->sources, o->n_sources, err);
    return e ? e : oct_record_history_create(&rec->history, &history, err);
}

enum oct_err oct_recorder_create(struct oct_recorder **out,
                                 const struct oct_recorder_options *options, struct oct_error *err)
{
    *out = NULL;
    struct oct_recorder *rec = calloc(1, sizeof(*rec));
    if (!rec)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the recorder");
    rec->options = *options;
    if (rec->options.await_ms == 0)
        rec->options.await_ms = AWAIT_MS;
    rec->shared.order.stop_at = UINT64_MAX;
    oct_recorder_status_init(&rec->shared);
    enum oct_err e = create_parts(rec, err);
    e = e ? e : oct_thread_start(&rec->thread, "octd-recorder", run, rec, "recorder thread", err);
    if (e) {
        /* The keeper's thread ends when the image ring is closed, so it is closed here. */
        oct_record_history_destroy(rec->history);
        oct_record_results_destroy(rec->results);
        oct_volume_closer_destroy(rec->closer);
        if (rec->keeper)
            oct_ring_close(options->images);
        oct_keeper_destroy(rec->keeper);
        oct_recorder_status_finish(&rec->shared);
        free(rec);
        return e;
    }
    *out = rec;
    return OCT_OK;
}

enum oct_err oct_recorder_check(const struct oct_recorder *rec,
                                const struct oct_record_settings *settings, double *free_bytes,
                                struct oct_error *err)
{
    const struct oct_geometry *g = &rec->options.plan->geometry;
    return oct_record_settings_check(settings, g, g->n_bscans,
                                     oct_record_results_bytes(rec->results, g->n_bscans),
                                     free_bytes, err);
}

/* Logs how much the folder has room for. */
static void log_forecast(const struct oct_recorder *rec, const struct oct_record_settings *from,
                         double free_bytes)
{
    const struct oct_geometry *g = &rec->options.plan->geometry;
    const double results = oct_record_results_bytes(rec->results, g->n_bscans);
    const double bytes = oct_record_bscan_bytes(from, g, results);
    oct_log(OCT_LOG_INFO, "recording into %s: %.1f GB free, room for %.0f volumes", from->directory,
            free_bytes * 1e-9, free_bytes / (bytes * g->n_bscans));
}

static void begin(struct oct_recorder *rec)
{
    struct oct_recorder_order *order = &rec->shared.order;
    order->skip = order->seen.any;
    order->skip_acquisition = order->seen.acquisition;
    order->skip_volume = order->seen.volume;
    order->stop_at = UINT64_MAX;
    order->fresh = true;
    order->n_whole = 0;
    oct_recorder_status_begin(&rec->shared);
    rec->shared.status.volumes = order->settings.settings.volumes;
    oct_keeper_want(rec->keeper, true);
}

enum oct_err oct_recorder_start(struct oct_recorder *rec, const struct oct_record_settings *from,
                                struct oct_error *err)
{
    struct oct_record_settings_copy settings = {0};
    double free_bytes;
    enum oct_err e = oct_recorder_check(rec, from, &free_bytes, err);
    e = e ? e : oct_record_settings_copy(&settings, from, err);
    e = e ? e : oct_record_settings_resolve(&settings, err);
    if (e) {
        oct_record_settings_free(&settings);
        return e;
    }
    /* No system call touches the disk while the lock is held: status waits for it. */
    pthread_mutex_lock(&rec->shared.lock);
    if (rec->shared.status.active) {
        e = oct_fail(err, OCT_E_STATE,
                     rec->shared.status.stopping ? "the recording before is still being closed"
                                                 : "a recording is under way already");
    } else {
        const struct oct_record_settings_copy before = rec->shared.order.settings;
        rec->shared.order.settings = settings;
        settings = before;
        begin(rec);
    }
    pthread_mutex_unlock(&rec->shared.lock);
    oct_record_settings_free(&settings);
    if (e == OCT_OK)
        log_forecast(rec, from, free_bytes);
    return e;
}

enum oct_err oct_recorder_save_history(struct oct_recorder *rec,
                                       const struct oct_record_settings *from, const char *name,
                                       struct oct_error *err)
{
    return oct_record_history_start(rec->history, from, name, err);
}

void oct_recorder_drain(struct oct_recorder *rec)
{
    oct_keeper_drain(rec->keeper);
}

void oct_recorder_stop(struct oct_recorder *rec)
{
    pthread_mutex_lock(&rec->shared.lock);
    if (rec->shared.status.active && !rec->shared.status.stopping) {
        rec->shared.order.stop_at = oct_ring_published(rec->options.raw);
        rec->shared.status.stopping = true;
    }
    pthread_mutex_unlock(&rec->shared.lock);
    oct_keeper_wake(rec->keeper);
}

void oct_recorder_set_volumes(struct oct_recorder *rec, uint32_t volumes)
{
    pthread_mutex_lock(&rec->shared.lock);
    if (rec->shared.status.active)
        rec->shared.status.volumes = volumes;
    pthread_mutex_unlock(&rec->shared.lock);
    oct_keeper_wake(rec->keeper);
}

void oct_recorder_get_status(struct oct_recorder *rec, struct oct_recorder_status *status)
{
    pthread_mutex_lock(&rec->shared.lock);
    *status = rec->shared.status;
    status->account = oct_recorder_status_account(&rec->shared);
    status->total = oct_recorder_status_total(&rec->shared);
    const uint64_t *dropped = status->total.dropped;
    status->bscans_unsaved = dropped[OCT_LOSS_ENGINE] + dropped[OCT_LOSS_DISK_SLOW] +
                             dropped[OCT_LOSS_WRITE_FAILED] + dropped[OCT_LOSS_PAUSED];
    oct_recorder_status_files(&rec->shared, &status->files, &status->files_incomplete);
    pthread_mutex_unlock(&rec->shared.lock);
    oct_keeper_get_status(rec->keeper, &status->keeper);
    oct_record_history_get_status(rec->history, &status->history);
    status->n_results = oct_record_results_n(rec->results);
    for (unsigned i = 0; i < status->n_results; i++)
        status->results[i] = oct_record_results_count(rec->results, i);
}

void oct_recorder_destroy(struct oct_recorder *rec)
{
    if (!rec)
        return;
    pthread_join(rec->thread, NULL);
    oct_volume_closer_destroy(rec->closer);
    oct_record_results_destroy(rec->results);
    oct_record_history_destroy(rec->history);
    oct_keeper_destroy(rec->keeper);
    oct_record_settings_free(&rec->shared.order.settings);
    oct_recorder_status_finish(&rec->shared);
    free(rec);
}
