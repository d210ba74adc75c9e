/* What is wrong with stream, camera, daemon or disk, and what to do. */
#include "viewer/model/clock.h"
#include "viewer/model/status.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* How long the banner shows a count after it rose. */
#define ROSE_NS (10 * OCT_NS_PER_S)
#define FRESH_SPECTRUM_NS (3 * OCT_NS_PER_S)
/* How long the disk must have been too small before the banner says so: longer than a camera's
 * burst lasts. */
#define DISK_LOW_NS (5 * OCT_NS_PER_S)

struct alarms {
    struct oct_view_alarm *alarm;
    unsigned n;
};

__attribute__((format(printf, 4, 5))) static void
complain(struct alarms *list, enum oct_view_tone tone, const char *remedy, const char *format, ...)
{
    if (list->n == OCT_VIEW_MAX_ALARMS)
        return;
    struct oct_view_alarm *alarm = &list->alarm[list->n++];
    va_list args;
    va_start(args, format);
    vsnprintf(alarm->what.text, sizeof(alarm->what.text), format, args);
    va_end(args);
    snprintf(alarm->remedy.text, sizeof(alarm->remedy.text), "%s", remedy);
    alarm->what.tone = alarm->remedy.tone = tone;
}

static void judge_stream(const struct oct_view_model *model, struct alarms *list)
{
    bool stalled = oct_view_model_state(model) == OCT_SIGNAL_STALLED;
    double silence_s = floor(oct_view_model_silence_s(model));

    if (model->has_control && model->daemon.known && !model->daemon.reachable && !model->connected)
        complain(list, OCT_TONE_BAD, "start it again; this window connects by itself",
                 "OCTD IS GONE: no pictures, no recording");
    else if (stalled && !model->connected)
        complain(list, OCT_TONE_BAD,
                 "waiting for octd to come back: is it running, is the cable in?",
                 "NO SIGNAL for %.0f s: the connection is gone", silence_s);
    else if (stalled && model->daemon.reachable && strcmp(model->daemon.state, "idle") == 0)
        complain(list, OCT_TONE_BAD, "start it: octctl start", "NO SIGNAL: octd is stopped");
    else if (stalled)
        complain(list, OCT_TONE_BAD,
                 model->daemon.driver.text[0]
                     ? "octd answers and the camera sends, but octd cannot use what comes"
                     : "octd answers, but no B-scan comes: is the camera sending?",
                 "NO SIGNAL for %.0f s", silence_s);
    else if (model->has_control && model->daemon.known && !model->daemon.reachable)
        complain(list, OCT_TONE_BAD, "pictures come, but recording cannot be started or seen",
                 "OCTD DOES NOT ANSWER");
}

/* Comes before the alarm of the silence that a wrong driver causes, because it says why. */
static void judge_driver(const struct oct_view_model *model, struct alarms *list)
{
    const struct oct_view_daemon *d = &model->daemon;

    if (d->reachable && d->driver.text[0])
        complain(list, OCT_TONE_BAD, d->driver.cure[0] ? d->driver.cure : "see octd's log",
                 "CAMERA DRIVER: %s", d->driver.text);
}

static void judge_disk(const struct oct_view_model *model, struct alarms *list)
{
    const struct oct_view_daemon *d = &model->daemon;
    double left_s = d->record.disk_left_s;
    char text[32];

    if (!d->reachable || model->disk_low_ns == 0 ||
        model->now_ns < model->disk_low_ns + DISK_LOW_NS)
        return;
    oct_view_duration_text(left_s, text, sizeof(text));
    complain(list, left_s < OCT_VIEW_DISK_OUT_S ? OCT_TONE_BAD : OCT_TONE_WARN,
             "move recordings away, or record to another folder (record.directory)",
             "DISK LOW: room for %s of recording", text);
}

static bool fresh(const struct oct_view_model *model, const struct oct_view_watch *watch)
{
    return watch->rose_ns != 0 && model->now_ns < watch->rose_ns + ROSE_NS;
}

static const char *remedy_of_loss(const struct oct_view_daemon *d)
{
    static const struct {
        const char *why, *remedy;
    } known[] = {
        {"source", "look at camera, cable and camera driver"},
        {"ring_full", "the computer is too slow: a lower line rate, fewer programs, a GPU"},
        {"engine", "the engine failed: see octd's log"},
        {"disk_slow", "record less, or to another folder on a faster disk (record.directory)"},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(d->record.lost_why, known[i].why) == 0)
            return known[i].remedy;
    return d->last_error[0] ? d->last_error : "see octd's log";
}

/* Reports what the running recording lost, by its own account. A recording that failed has ended;
 * its alarm stays until the next one begins. */
static void judge_recording(const struct oct_view_daemon *d, struct alarms *list)
{
    const char *error = d->last_error[0] ? d->last_error : "see octd's log";

    if (d->record.failed && d->record.n_lost > 0)
        complain(list, OCT_TONE_BAD, error, "RECORDING FAILED: %.0f B-scan%s NOT RECORDED",
                 d->record.n_lost, d->record.n_lost > 1 ? "s" : "");
    else if (d->record.failed)
        complain(list, OCT_TONE_BAD, error, "RECORDING FAILED");
    else if (d->record.active && d->record.n_lost > 0)
        complain(list, OCT_TONE_BAD, remedy_of_loss(d),
                 "NOT RECORDED: %.0f B-scan%s of this recording (%s)", d->record.n_lost,
                 d->record.n_lost > 1 ? "s" : "", d->record.lost_text);
}

static void judge_daemon(const struct oct_view_model *model, struct alarms *list)
{
    const struct oct_view_daemon *d = &model->daemon;

    if (!d->reachable)
        return;
    if (strcmp(d->state, "error") == 0)
        complain(list, OCT_TONE_BAD, d->last_error[0] ? d->last_error : "see its log",
                 "OCTD HAS FAILED");
    judge_recording(d, list);
    if (d->disk_slow)
        complain(list, OCT_TONE_WARN,
                 "record less, or to another folder on a faster disk (record.directory)",
                 "DISK TOO SLOW: %.0f B-scans wait to be recorded", d->record.bscans_waiting);
    if (fresh(model, &model->dropped))
        complain(list, OCT_TONE_WARN,
                 "the computer is too slow: a lower line rate, fewer programs, a GPU",
                 "B-SCANS DROPPED: %.0f", d->bscans_dropped);
    if (fresh(model, &model->missing))
        complain(list, OCT_TONE_WARN, "look at camera, cable and camera driver",
                 "A-LINES MISSING: %.0f", d->lines_missing);
}

static void judge_camera(const struct oct_view_model *model, struct alarms *list)
{
    const struct oct_view_spectrum *s = &model->spectrum;

    if (s->n_saturated > 0 && model->now_ns < s->arrival_ns + FRESH_SPECTRUM_NS)
        complain(list, OCT_TONE_WARN, "less light on the reference arm, or a shorter exposure",
                 "CAMERA SATURATED: %" PRIu64 " samples of a B-scan at %" PRIu32, s->n_saturated,
                 s->limit);
    if (model->daemon.reachable && model->line_rate.fell &&
        oct_view_model_state(model) == OCT_SIGNAL_LIVE)
        complain(list, OCT_TONE_WARN, "look at the camera's trigger, cable and driver",
                 "LINE RATE FELL to %.1f kHz, it was %.1f", model->line_rate.rate_hz / 1e3,
                 model->line_rate.usual_hz / 1e3);
}

unsigned oct_view_alarms(const struct oct_view_model *model,
                         struct oct_view_alarm alarms[OCT_VIEW_MAX_ALARMS])
{
    struct alarms list = {.alarm = alarms};

    judge_driver(model, &list);
    judge_stream(model, &list);
    judge_daemon(model, &list);
    judge_camera(model, &list);
    judge_disk(model, &list);
    if (list.n == 0 && model->has_picture && model->shown.header.missing_lines > 0 &&
        !model->has_control)
        complain(&list, OCT_TONE_WARN, "look at camera, cable and camera driver",
                 "A-LINES MISSING: %" PRIu32 " of this B-scan", model->shown.header.missing_lines);
    return list.n;
}
