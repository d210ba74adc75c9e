#include "pipeline/record/history.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"
#include "pipeline/base/thread.h"
#include "pipeline/record/bscan.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SYNC_INTERVAL_NS 1000000000u

struct oct_record_history {
    struct oct_record_history_options options;
    pthread_t thread;
    bool has_thread;

    /* Set by start; then used by the thread alone. */
    struct oct_record_settings_copy settings;
    char name[128];              /* "": one is made */
    struct oct_bscan_info *held; /* [history_bscans], the first n_held */
    uint32_t n_held;
    uint16_t format; /* of their samples */

    pthread_mutex_t lock; /* guards what follows */
    struct oct_record_history_status status;
};

/* ---- the thread ---- */

/* Allocates the frame that B-scans are copied into. */
static enum oct_err get_frame(struct oct_kept *kept, const struct oct_geometry *g, bool has_complex,
                              struct oct_error *err)
{
    *kept = (struct oct_kept){0};
    kept->raw.spectra = malloc(oct_geometry_spectra_bytes(g));
    kept->raw.line_valid = malloc(g->n_lines);
    kept->image.pixels = malloc(oct_geometry_image_bytes(g));
    if (has_complex)
        kept->image.complex_values = malloc(oct_geometry_complex_bytes(g));
    if (kept->raw.spectra && kept->raw.line_valid && kept->image.pixels &&
        (kept->image.complex_values || !has_complex))
        return OCT_OK;
    return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for saving the last seconds");
}

static void free_frame(struct oct_kept *kept)
{
    free(kept->raw.spectra);
    free(kept->raw.line_valid);
    free(kept->image.pixels);
    free(kept->image.complex_values);
}

/* When the first B-scan came, UTC. */
static void write_start_time(uint64_t arrival_ns, char *text, size_t bytes)
{
    uint64_t now_ns = oct_clock_ns();
    time_t then =
        time(NULL) - (time_t)((now_ns > arrival_ns ? now_ns - arrival_ns : 0) / 1000000000u);
    struct tm utc;
    gmtime_r(&then, &utc);
    strftime(text, bytes, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

/* Checks the folder and makes the path of the file; the disk may still refuse it later. */
static enum oct_err find_place(struct oct_record_history *history, char *path, size_t bytes,
                               struct oct_error *err)
{
    const struct oct_record_settings *s = &history->settings.settings;
    enum oct_err e = oct_record_settings_check(s, &history->options.plan->geometry, history->n_held,
                                               0, NULL, err);
    e = e ? e : oct_record_settings_resolve(&history->settings, err);
    if (e)
        return e;
    if (*history->name)
        oct_record_path_named(s, history->name, path, bytes);
    else
        oct_record_path(s, "last", path, bytes);
    if (access(path, F_OK) == 0)
        return oct_fail(err, OCT_E_IO, "%s: exists already and is never overwritten", path);
    return OCT_OK;
}

/* Rows may begin and end anywhere in a volume. Where some are missing in between, the file does not
 * say where A-lines lie. */
static void place_rows(const struct oct_record_history *history, struct oct_plan *plan)
{
    const struct oct_bscan_info *first = &history->held[0];
    const struct oct_bscan_info *last = &history->held[history->n_held - 1];
    plan->scan.first_bscan = first->bscan;
    if (last->acquisition != first->acquisition ||
        last->number - first->number != history->n_held - 1) {
        plan->scan.width_um = 0;
        plan->scan.file = NULL;
    }
    plan->geometry.n_bscans = history->n_held;
}

static enum oct_err open_file(struct oct_record_history *history, struct oct_volume_writer **writer,
                              struct oct_error *err)
{
    const struct oct_record_settings *s = &history->settings.settings;
    struct oct_plan plan = *history->options.plan; /* n_bscans becomes this file's number of rows */
    char path[sizeof(history->status.file)], start_time[40];
    enum oct_err e = find_place(history, path, sizeof(path), err);
    if (e)
        return e;
    struct oct_volume_about about = oct_record_about(s, history->format, history->options.engine);
    write_start_time(history->held[0].arrival_ns, start_time, sizeof(start_time));
    about.start_time = start_time;
    about.field_bscans = plan.geometry.n_bscans;
    place_rows(history, &plan);
    e = oct_volume_create(writer, path, &plan, &about, s->spectra, s->bscans, err);
    if (e)
        return e;
    pthread_mutex_lock(&history->lock);
    memcpy(history->status.file, path, sizeof(path));
    history->status.opening = false;
    pthread_mutex_unlock(&history->lock);
    return OCT_OK;
}

/* Writes into the gap map what is missing between two B-scans of one acquisition, and why. */
static enum oct_err write_between(struct oct_record_history *history,
                                  struct oct_volume_writer *writer,
                                  const struct oct_bscan_info *before,
                                  const struct oct_bscan_info *info, struct oct_error *err)
{
    uint64_t n_lines = history->options.plan->geometry.n_lines;
    enum oct_err e = OCT_OK;
    struct oct_gap rest = {
        .acquisition = info->acquisition,
        .first_line = (before->number + 1) * n_lines,
        .reason = OCT_LOSS_SOURCE,
    };
    if (before->acquisition != info->acquisition || info->number <= before->number)
        return OCT_OK;
    rest.n_lines = info->number * n_lines - rest.first_line;
    while (e == OCT_OK && rest.n_lines > 0) {
        struct oct_gap piece = oct_loss_log_explain(history->options.losses, &rest);
        e = oct_volume_write_gap(writer, &piece, err);
        rest.first_line += piece.n_lines;
        rest.n_lines -= piece.n_lines;
    }
    return e;
}

static void book_progress(struct oct_record_history *history,
                          const struct oct_volume_writer *writer)
{
    pthread_mutex_lock(&history->lock);
    history->status.n_saved = (uint32_t)oct_volume_written(writer);
    pthread_mutex_unlock(&history->lock);
}

/* Writes into the gap map that the keeper gave up the held B-scans from .. to - 1 for newer ones.
 */
static enum oct_err write_given_up(struct oct_record_history *history,
                                   struct oct_volume_writer *writer, uint32_t from, uint32_t to,
                                   struct oct_error *err)
{
    uint64_t n_lines = history->options.plan->geometry.n_lines;
    struct oct_keeper_status kept;
    enum oct_err e = OCT_OK;
    oct_keeper_get_status(history->options.keeper, &kept);
    pthread_mutex_lock(&history->lock);
    history->status.n_lost += to - from;
    pthread_mutex_unlock(&history->lock);
    for (uint32_t i = from; e == OCT_OK && i < to; i++) {
        if (i > 0)
            e = write_between(history, writer, &history->held[i - 1], &history->held[i], err);
        if (e == OCT_OK)
            e = oct_volume_write_gap(
                writer,
                &(struct oct_gap){
                    .acquisition = history->held[i].acquisition,
                    .first_line = history->held[i].number * n_lines,
                    .n_lines = n_lines,
                    .reason = kept.catches_up ? OCT_LOSS_PAUSED : OCT_LOSS_DISK_SLOW,
                },
                err);
    }
    return e;
}

static enum oct_err write_one(struct oct_record_history *history, struct oct_volume_writer *writer,
                              const struct oct_kept *kept, uint32_t index, uint32_t row,
                              struct oct_error *err)
{
    const struct oct_record_settings *s = &history->settings.settings;
    enum oct_err e = OCT_OK;
    if (index > 0)
        e = write_between(history, writer, &history->held[index - 1], &history->held[index], err);
    return e ? e
             : oct_record_bscan(writer, kept, row, &history->options.plan->geometry, s->spectra,
                                s->bscans, err);
}

/* Copies the first B-scan before it touches a disk: opening a file may take long, and the keeper
 * gives up held B-scans when it needs their memory for newer ones. */
static enum oct_err write_all(struct oct_record_history *history, struct oct_volume_writer **writer,
                              struct oct_kept *kept, struct oct_error *err)
{
    uint64_t synced_ns = oct_clock_ns();
    enum oct_err e = OCT_OK;
    uint32_t index, next = 0; /* all before next are in the file or its gap map */
    for (uint32_t row = 0; e == OCT_OK; row++) {
        bool more = oct_keeper_copy(history->options.keeper, kept, &index) == OCT_OK;
        if (!*writer && (e = open_file(history, writer, err)))
            break;
        e = write_given_up(history, *writer, next, index, err);
        if (!more)
            break;
        e = e ? e : write_one(history, *writer, kept, index, row, err);
        next = index + 1;
        if (e != OCT_OK || oct_clock_ns() - synced_ns < SYNC_INTERVAL_NS)
            continue;
        e = oct_volume_sync(*writer, err);
        book_progress(history, *writer);
        synced_ns = oct_clock_ns();
    }
    return e;
}

/* Logs the end and sets the status. why: the reason for a failure; NULL: the file was saved. */
static void tell(struct oct_record_history *history, const struct oct_error *why)
{
    pthread_mutex_lock(&history->lock);
    if (why && *history->status.file)
        history->status.n_lost = history->n_held - history->status.n_saved;
    struct oct_record_history_status s = history->status;
    pthread_mutex_unlock(&history->lock);
    if (why)
        oct_log(OCT_LOG_ERROR, "the last seconds were not saved: %s", why->text);
    else if (s.n_lost)
        oct_log(OCT_LOG_WARNING,
                "saved %u of the last %u B-scans as %s: the disk was too slow for the other %u",
                s.n_saved, history->n_held, s.file, s.n_lost);
    else
        oct_log(OCT_LOG_INFO, "saved the last %u B-scans as %s", s.n_saved, s.file);
    pthread_mutex_lock(&history->lock);
    history->status.saving = history->status.opening = false;
    if (why)
        history->status.failure = *why;
    else
        history->status.n_files++;
    pthread_mutex_unlock(&history->lock);
}

static void *run(void *argument)
{
    struct oct_record_history *history = argument;
    struct oct_volume_writer *writer = NULL;
    struct oct_kept kept;
    struct oct_error err;
    enum oct_err e = get_frame(&kept, &history->options.plan->geometry,
                               history->settings.settings.has_complex, &err);
    e = e ? e : write_all(history, &writer, &kept, &err);
    oct_keeper_let_go(history->options.keeper);
    free_frame(&kept);
    e = e ? e : oct_volume_sync(writer, &err);
    if (writer)
        book_progress(history, writer);
    bool none = e == OCT_OK && oct_volume_written(writer) == 0;
    enum oct_err c = oct_volume_close(writer, e ? NULL : &err);
    if (none && !c)
        c = oct_fail(&err, OCT_E_IO, "%s: the disk was too slow: nothing was left of %u B-scans",
                     history->status.file, history->n_held);
    tell(history, e || c ? &err : NULL);
    return NULL;
}

/* ---- from outside ---- */

enum oct_err oct_record_history_create(struct oct_record_history **out,
                                       const struct oct_record_history_options *options,
                                       struct oct_error *err)
{
    struct oct_record_history *history = calloc(1, sizeof(*history));
    *out = history;
    if (!history)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the recorder");
    history->options = *options;
    pthread_mutex_init(&history->lock, NULL);
    return OCT_OK;
}

static enum oct_err may_start(struct oct_record_history *history, const char *name,
                              struct oct_error *err)
{
    struct oct_keeper_status kept;
    struct oct_record_history_status status;
    oct_keeper_get_status(history->options.keeper, &kept);
    oct_record_history_get_status(history, &status);
    if (kept.history_bscans == 0)
        return oct_fail(err, OCT_E_STATE,
                        "nothing is kept: record.last_s is 0 (stop, set it, start)");
    if (status.saving)
        return oct_fail(err, OCT_E_STATE, "the last seconds are being saved already%s%s",
                        *status.file ? ", as " : "", status.file);
    if (kept.n_history == 0)
        return oct_fail(err, OCT_E_STATE, "nothing is kept yet: no B-scan has come");
    if (name && *name && !oct_record_name_is_safe(name))
        return oct_fail(
            err, OCT_E_ARG,
            "the name '%.40s' must be at most 100 letters, digits, '.', '_' and '-' and "
            "not begin with '.' or '-'",
            name);
    return OCT_OK;
}

/* Joins the thread of the save before, which has set its status already. */
static enum oct_err prepare(struct oct_record_history *history,
                            const struct oct_record_settings *from, const char *name,
                            struct oct_error *err)
{
    struct oct_keeper_status kept;
    if (history->has_thread)
        pthread_join(history->thread, NULL);
    history->has_thread = false;
    oct_keeper_get_status(history->options.keeper, &kept);
    if (!history->held)
        history->held = calloc(kept.history_bscans, sizeof(*history->held));
    if (!history->held)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for saving the last seconds");
    snprintf(history->name, sizeof(history->name), "%s", name ? name : "");
    oct_record_settings_free(&history->settings);
    return oct_record_settings_copy(&history->settings, from, err);
}

enum oct_err oct_record_history_start(struct oct_record_history *history,
                                      const struct oct_record_settings *from, const char *name,
                                      struct oct_error *err)
{
    enum oct_err e = may_start(history, name, err);
    e = e ? e : prepare(history, from, name, err);
    if (e)
        return e;
    pthread_mutex_lock(&history->lock);
    history->status = (struct oct_record_history_status){
        .saving = true, .opening = true, .n_files = history->status.n_files};
    pthread_mutex_unlock(&history->lock);
    history->n_held = oct_keeper_hold(history->options.keeper, history->held,
                                      &history->format); /* there are: may_start */
    e = oct_thread_start(&history->thread, "octd-last", run, history,
                         "thread for saving the last seconds", err);
    history->has_thread = e == OCT_OK;
    if (!e)
        return OCT_OK;
    oct_keeper_let_go(history->options.keeper);
    pthread_mutex_lock(&history->lock);
    history->status.saving = history->status.opening = false;
    pthread_mutex_unlock(&history->lock);
    return e;
}

void oct_record_history_get_status(struct oct_record_history *history,
                                   struct oct_record_history_status *status)
{
    pthread_mutex_lock(&history->lock);
    *status = history->status;
    pthread_mutex_unlock(&history->lock);
}

void oct_record_history_destroy(struct oct_record_history *history)
{
    if (!history)
        return;
    if (history->has_thread)
        pthread_join(history->thread, NULL);
    oct_record_settings_free(&history->settings);
    free(history->held);
    pthread_mutex_destroy(&history->lock);
    free(history);
}
