#define _GNU_SOURCE /* pthread_setname_np, strdup */
#include "pipeline/recorder.h"

#include "pipeline/clock.h"
#include "pipeline/log.h"
#include "pipeline/slots.h"
#include "pipeline/volume.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define POLL_US 100000u

/* Owned copy of the caller's settings. */
struct settings {
    char *directory, *config_text, *eye, *pseudonym;
    bool spectra, bscans;
    uint64_t sync_interval_ns;
    double width_um, height_um, refractive_index;
};

struct oct_recorder {
    struct oct_recorder_options options;
    struct oct_ring_reader *raw_reader, *image_reader;
    uint64_t first_slot; /* both readers have all slots from here on */
    pthread_t thread;

    /* The thread's own. */
    struct oct_volume_writer *writer;
    uint64_t last_sync_ns;
    uint64_t consumed;  /* slots read so far */
    uint64_t last_slot; /* last slot written into the open file */
    uint32_t accepted;  /* B-scans given to the open file */
    uint32_t seen_acquisition, file_acquisition;
    uint64_t seen_volume, file_volume; /* of the last B-scan that passed */
    bool has_seen;

    pthread_mutex_t lock; /* guards what follows */
    struct settings settings;
    struct oct_recorder_status status;
    uint64_t stop_at; /* end after this many slots; UINT64_MAX: go on */
    bool failing;     /* a recording failed and nobody has stopped or started since */
    bool skip;        /* the volume under way when recording started is not recorded */
    uint32_t skip_acquisition;
    uint64_t skip_volume;
    uint64_t bytes_closed, bscans_closed; /* of closed files */
};

static void settings_finish(struct settings *s)
{
    free(s->directory);
    free(s->config_text);
    free(s->eye);
    free(s->pseudonym);
    *s = (struct settings){0};
}

static enum oct_err settings_init(struct settings *s, const struct oct_recorder_settings *from)
{
    *s = (struct settings){
        .directory = realpath(from->directory, NULL), /* the status names files by it */
        .config_text = strdup(from->config_text),
        .eye = strdup(from->eye),
        .pseudonym = strdup(from->pseudonym),
        .spectra = from->spectra,
        .bscans = from->bscans,
        .sync_interval_ns = (uint64_t)(from->sync_interval_s * 1e9),
        .width_um = from->width_um,
        .height_um = from->height_um,
        .refractive_index = from->refractive_index,
    };
    if (s->directory && s->config_text && s->eye && s->pseudonym)
        return OCT_OK;
    settings_finish(s);
    return OCT_E_NO_MEMORY;
}

/* ---- the open file ---- */

/* Appends text to a file name, only what can do no harm there, and a '_'. */
static void append_word(char *name, size_t bytes, const char *text)
{
    size_t n = strlen(name);
    for (; *text && n + 2 < bytes; text++)
        name[n++] = (char)(isalnum((unsigned char)*text) || *text == '-' ? *text : '-');
    name[n++] = '_';
    name[n] = '\0';
}

/* directory/[pseudonym_][eye_]YYYYMMDDTHHMMSSmmmZ_vNNNN.h5 */
static void make_path(const struct settings *s, uint64_t volume, char *path, size_t bytes)
{
    char words[256] = "", stamp[32];
    struct timespec now;
    struct tm utc;

    if (*s->pseudonym)
        append_word(words, sizeof(words) - 8, s->pseudonym);
    if (*s->eye)
        append_word(words, sizeof(words), s->eye);
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%S", &utc);
    snprintf(path, bytes, "%s/%s%s%03ldZ_v%04llu.h5", s->directory, words, stamp,
             now.tv_nsec / 1000000, (unsigned long long)volume);
}

/* Puts the writer's progress into the status. Lock held. */
static void book_progress(struct oct_recorder *rec)
{
    uint64_t written = rec->writer ? oct_volume_written(rec->writer) : 0;
    rec->status.bscans_in_file = (uint32_t)written;
    rec->status.bscans_written = rec->bscans_closed + written;
    rec->status.bytes_written =
        rec->bytes_closed + (rec->writer ? oct_volume_bytes(rec->writer) : 0);
}

static void fail(struct oct_recorder *rec, const struct oct_error *why)
{
    pthread_mutex_lock(&rec->lock);
    rec->status.failure = *why;
    rec->failing = true;
    rec->status.active = rec->status.stopping = false;
    pthread_mutex_unlock(&rec->lock);
    oct_log(OCT_LOG_ERROR, "recording stopped: %s", why->text);
}

static enum oct_err close_file(struct oct_recorder *rec, struct oct_error *err)
{
    if (!rec->writer)
        return OCT_OK;
    enum oct_err e = oct_volume_sync(rec->writer, err);
    uint64_t written = oct_volume_written(rec->writer);

    pthread_mutex_lock(&rec->lock);
    book_progress(rec);
    rec->bscans_closed += written;
    rec->bytes_closed += oct_volume_bytes(rec->writer);
    rec->status.bscans_unsaved += rec->accepted - written;
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

static void end_file(struct oct_recorder *rec)
{
    struct oct_error err;
    if (close_file(rec, &err))
        fail(rec, &err);
}

static enum oct_err open_file(struct oct_recorder *rec, const struct oct_bscan_info *info,
                              struct oct_error *err)
{
    const struct settings *s = &rec->settings; /* only start changes them, while inactive */
    const struct oct_volume_about about = {
        .config_text = s->config_text,
        .eye = s->eye,
        .pseudonym = s->pseudonym,
        .engine = rec->options.engine,
        .width_um = s->width_um,
        .height_um = s->height_um,
        .refractive_index = s->refractive_index,
    };
    char path[sizeof(rec->status.file)];
    make_path(s, info->volume, path, sizeof(path));
    if (strcmp(path, rec->status.file) == 0) { /* another acquisition in the same millisecond */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        make_path(s, info->volume, path, sizeof(path));
    }
    enum oct_err e = oct_volume_create(&rec->writer, path, rec->options.plan, &about, s->spectra,
                                       s->bscans, err);
    if (e)
        return e;
    rec->file_acquisition = info->acquisition;
    rec->file_volume = info->volume;
    rec->last_sync_ns = oct_clock_ns();
    rec->accepted = 0;
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

static enum oct_err write_bscan(struct oct_recorder *rec, const struct oct_raw_frame *raw,
                                const struct oct_image_frame *image, struct oct_error *err)
{
    const struct settings *s = &rec->settings;
    enum oct_err e = OCT_OK;
    if (s->spectra)
        e = oct_volume_write_spectra(rec->writer, raw, err);
    if (e == OCT_OK)
        e = s->bscans ? oct_volume_write_image(rec->writer, image, err)
                      : oct_volume_write_row(rec->writer, &raw->info, err);
    return e;
}

/* ---- the stream ---- */

/* Whether this B-scan is to be recorded: recording is on, its volume was not under way before. */
static bool is_wanted(struct oct_recorder *rec, const struct oct_bscan_info *info)
{
    pthread_mutex_lock(&rec->lock);
    bool begun_before =
        rec->skip && info->acquisition == rec->skip_acquisition && info->volume == rec->skip_volume;
    bool wanted = rec->status.active && !begun_before && info->id < rec->stop_at;
    if (rec->failing) /* who asked for a recording still wants it */
        rec->status.bscans_unsaved++;
    pthread_mutex_unlock(&rec->lock);
    return wanted;
}

static void record(struct oct_recorder *rec, const struct oct_raw_frame *raw,
                   const struct oct_image_frame *image)
{
    const struct oct_bscan_info *info = &raw->info;
    struct oct_error err;

    if (rec->writer &&
        (info->acquisition != rec->file_acquisition || info->volume != rec->file_volume))
        end_file(rec);
    if (!is_wanted(rec, info))
        return;
    enum oct_err e = rec->writer ? OCT_OK : open_file(rec, info, &err);
    if (e == OCT_OK) {
        rec->accepted++;
        rec->last_slot = info->id;
        e = write_bscan(rec, raw, image, &err);
    } else {
        pthread_mutex_lock(&rec->lock);
        rec->status.bscans_unsaved++;
        pthread_mutex_unlock(&rec->lock);
    }
    if (e)
        give_up(rec, &err);
    else if (info->bscan + 1 == rec->options.plan->geometry.n_bscans)
        end_file(rec);
}

static void note_seen(struct oct_recorder *rec, const struct oct_bscan_info *info)
{
    pthread_mutex_lock(&rec->lock);
    rec->has_seen = true;
    rec->status.bscans_passed++;
    rec->seen_acquisition = info->acquisition;
    rec->seen_volume = info->volume;
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
        rec->status.active = rec->status.stopping = false;
        pthread_mutex_unlock(&rec->lock);
    }
    sync_when_due(rec);
}

/* Takes the spectra of a picture; published before it, so they are there. */
static const struct oct_raw_frame *read_raw(struct oct_recorder *rec, uint64_t slot)
{
    for (;;) {
        uint64_t raw_slot;
        while (oct_ring_read(rec->raw_reader, POLL_US, &raw_slot) == OCT_E_AGAIN)
            ;
        if (raw_slot == slot)
            return oct_raw_slot(rec->options.raw, slot, &rec->options.plan->geometry);
        oct_ring_release(rec->raw_reader); /* its picture went before we were there */
    }
}

static void take(struct oct_recorder *rec, uint64_t slot)
{
    const struct oct_image_frame *image = oct_image_slot(rec->options.images, slot);
    if (slot >= rec->first_slot) {
        record(rec, read_raw(rec, slot), image);
        rec->consumed = slot + 1;
        oct_ring_release(rec->raw_reader);
    }
    note_seen(rec, &image->info);
}

static void *run(void *argument)
{
    struct oct_recorder *rec = argument;
    for (;;) {
        uint64_t slot;
        enum oct_err e = oct_ring_read(rec->image_reader, POLL_US, &slot);
        if (e == OCT_E_CLOSED)
            break;
        if (e == OCT_OK) {
            take(rec, slot);
            oct_ring_release(rec->image_reader);
        }
        look_around(rec);
    }
    end_file(rec);
    pthread_mutex_lock(&rec->lock);
    rec->status.active = rec->status.stopping = false;
    pthread_mutex_unlock(&rec->lock);
    return NULL;
}

/* ---- from outside ---- */

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
    rec->raw_reader = oct_ring_reader_create(options->raw, true, 0);
    rec->image_reader = oct_ring_reader_create(options->images, true, 0);
    int status = ENOMEM;
    if (rec->raw_reader && rec->image_reader) {
        uint64_t raw = oct_ring_next(rec->raw_reader), image = oct_ring_next(rec->image_reader);
        rec->first_slot = raw > image ? raw : image;
        rec->consumed = rec->first_slot;
        status = pthread_create(&rec->thread, NULL, run, rec);
    }
    if (status) {
        oct_ring_reader_destroy(rec->raw_reader);
        oct_ring_reader_destroy(rec->image_reader);
        pthread_mutex_destroy(&rec->lock);
        free(rec);
        return oct_fail_errno(err, OCT_E_IO, status, "recorder thread");
    }
    pthread_setname_np(rec->thread, "octd-recorder");
    *out = rec;
    return OCT_OK;
}

static enum oct_err check_directory(const char *directory, struct oct_error *err)
{
    struct stat st;
    if (mkdir(directory, 0777) != 0 && errno != EEXIST)
        return oct_fail_errno(err, OCT_E_IO, errno, "record.directory: %s cannot be made",
                              directory);
    if (stat(directory, &st) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "record.directory: %s", directory);
    if (!S_ISDIR(st.st_mode))
        return oct_fail(err, OCT_E_IO, "record.directory: %s is not a folder", directory);
    if (access(directory, W_OK | X_OK) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "record.directory: %s cannot be written",
                              directory);
    return OCT_OK;
}

/* Whether at least one volume fits. */
static enum oct_err check_space(const struct oct_recorder *rec,
                                const struct oct_recorder_settings *from, struct oct_error *err)
{
    const struct oct_geometry *g = &rec->options.plan->geometry;
    struct statvfs fs;
    double free_bytes, volume_bytes = 0;

    if (statvfs(from->directory, &fs) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "record.directory: %s", from->directory);
    free_bytes = (double)fs.f_bavail * (double)fs.f_frsize;
    if (from->spectra)
        volume_bytes += (double)oct_geometry_spectra_bytes(g) * g->n_bscans;
    if (from->bscans)
        volume_bytes += (double)oct_geometry_image_bytes(g) * g->n_bscans;
    if (free_bytes < volume_bytes)
        return oct_fail(err, OCT_E_NO_SPACE,
                        "record.directory: %s has %.1f MB free, but a volume takes %.1f MB",
                        from->directory, free_bytes * 1e-6, volume_bytes * 1e-6);
    return OCT_OK;
}

enum oct_err oct_recorder_start(struct oct_recorder *rec, const struct oct_recorder_settings *from,
                                struct oct_error *err)
{
    enum oct_err e = check_directory(from->directory, err);
    if (e || (e = check_space(rec, from, err)))
        return e;
    pthread_mutex_lock(&rec->lock);
    if (rec->status.active) {
        e = oct_fail(err, OCT_E_STATE,
                     rec->status.stopping ? "the recording before is still being closed"
                                          : "a recording is under way already");
    } else {
        settings_finish(&rec->settings);
        e = settings_init(&rec->settings, from);
        if (e)
            oct_fail(err, e, "out of memory for a recording");
    }
    if (e == OCT_OK) {
        rec->skip = rec->has_seen;
        rec->skip_acquisition = rec->seen_acquisition;
        rec->skip_volume = rec->seen_volume;
        rec->stop_at = UINT64_MAX;
        rec->status.active = true;
        rec->status.failure = (struct oct_error){0};
        rec->failing = false;
    }
    pthread_mutex_unlock(&rec->lock);
    return e;
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
    oct_ring_wake(rec->image_reader);
}

void oct_recorder_get_status(struct oct_recorder *rec, struct oct_recorder_status *status)
{
    pthread_mutex_lock(&rec->lock);
    *status = rec->status;
    pthread_mutex_unlock(&rec->lock);
}

void oct_recorder_destroy(struct oct_recorder *rec)
{
    if (!rec)
        return;
    pthread_join(rec->thread, NULL);
    oct_ring_reader_destroy(rec->raw_reader);
    oct_ring_reader_destroy(rec->image_reader);
    settings_finish(&rec->settings);
    pthread_mutex_destroy(&rec->lock);
    free(rec);
}
