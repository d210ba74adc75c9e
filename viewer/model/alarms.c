/* What is wrong with stream, camera, daemon or disk, and what to do. */
#include "viewer/model/clock.h"
#include "viewer/model/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* How long the banner shows a count after it rose. */
#define ROSE_NS (10 * OCT_NS_PER_S)
#define FRESH_SPECTRUM_NS (3 * OCT_NS_PER_S)
/* Room for less than this is none. */
#define DISK_FULL_S 2.0

struct alarms {
    const struct oct_view_model *model;
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

/* What to do: keys of the configuration and commands are for the lab; with the operator profile on,
 * what an operator can do. */
static const char *cure(const struct alarms *list, const char *operators, const char *labs)
{
    return list->model->settings.operators ? operators : labs;
}

static const char *error_of(const struct oct_view_daemon *d)
{
    return d->last_error[0] ? d->last_error : "octd's log says why";
}

/* ---- stream and camera ---- */

static void judge_absent(struct alarms *list)
{
    const struct oct_view_daemon *d = &list->model->daemon;

    if (d->record.active)
        complain(list, OCT_TONE_BAD,
                 cure(list, "what was recorded until then is kept; call for help",
                      "what was recorded until then is kept; start octd again: this window "
                      "connects by itself"),
                 "OCTD IS GONE, AND IT WAS RECORDING: nothing is recorded");
    else
        complain(list, OCT_TONE_BAD,
                 cure(list,
                      "call for help, or switch the computer of octd on: this window connects "
                      "by itself",
                      "start it again; this window connects by itself"),
                 "OCTD IS GONE: no pictures, no recording");
}

static void judge_silence(struct alarms *list)
{
    const struct oct_view_daemon *d = &list->model->daemon;
    const double silence_s = floor(oct_view_model_silence_s(list->model));
    const char *consequence = d->reachable && d->record.active ? ": NOTHING IS RECORDED" : "";

    if (!list->model->connected)
        complain(list, OCT_TONE_BAD,
                 "is the cable in, is octd's computer on? it connects by itself",
                 "NO SIGNAL for %.0f s%s: the connection is gone", silence_s, consequence);
    else if (d->reachable && strcmp(d->state, "idle") == 0)
        complain(list, OCT_TONE_BAD,
                 cure(list, "the Start button, or the key Return",
                      "the Start button, the key Return, or octctl start"),
                 "NO SIGNAL, octd is idle: press Start");
    else
        complain(list, OCT_TONE_BAD,
                 d->driver.text[0] ? "the camera sends, but octd cannot use what comes"
                                   : "octd waits for the camera: is it on, does its program run?",
                 "NO SIGNAL for %.0f s%s", silence_s, consequence);
}

static void judge_stream(struct alarms *list)
{
    const struct oct_view_model *model = list->model;
    const bool is_deaf = model->has_control && model->daemon.known && !model->daemon.reachable;

    /* Who looks at a recording does not wait for pictures, unless another one is being made. */
    if (model->playback.active && !model->daemon.record.active)
        return;
    if (is_deaf && !model->connected)
        judge_absent(list);
    else if (oct_view_model_state(model) == OCT_SIGNAL_STALLED)
        judge_silence(list);
    else if (is_deaf)
        complain(list, OCT_TONE_BAD,
                 model->daemon.record.active
                     ? "pictures come; whether it still records cannot be seen"
                     : "pictures come, but a recording cannot be started or seen",
                 "OCTD DOES NOT ANSWER");
}

/* Comes before the alarm of the silence that a wrong driver causes, because it says why. */
static void judge_driver(struct alarms *list)
{
    const struct oct_view_daemon *d = &list->model->daemon;

    if (d->reachable && d->driver.text[0])
        complain(list, OCT_TONE_BAD,
                 cure(list, "correct the camera's settings, or call whoever set it up",
                      d->driver.cure[0] ? d->driver.cure : "see octd's log"),
                 "CAMERA: %s", d->driver.plain[0] ? d->driver.plain : d->driver.text);
}

/* ---- recording and disk ---- */

static void judge_disk(struct alarms *list)
{
    const struct oct_view_model *model = list->model;
    const struct oct_view_daemon *d = &model->daemon;
    double left_s = d->record.disk_left_s;
    char text[32];

    if (!d->reachable || !oct_view_disk_is_low(&model->disk, model->now_ns))
        return;
    const char *remedy =
        cure(list, "make room on the disk before the next recording, or call for help",
             "move recordings away, or: octctl set record.directory FOLDER");
    oct_view_duration_text(left_s, text, sizeof(text));
    if (left_s < DISK_FULL_S)
        complain(list, OCT_TONE_BAD, remedy, "DISK FULL: nothing can be recorded");
    else
        complain(list, left_s < OCT_VIEW_DISK_OUT_S ? OCT_TONE_BAD : OCT_TONE_WARN, remedy,
                 "DISK LOW: room for %s of recording", text);
}

static bool fresh(const struct oct_view_model *model, const struct oct_view_watch *watch)
{
    return watch->rose_ns != 0 && model->now_ns < watch->rose_ns + ROSE_NS;
}

static const char *remedy_of_loss(const struct alarms *list)
{
    static const struct {
        const char *why, *operators, *labs;
    } known[] = {
        {"source", "look at the camera and its cable", "look at camera, cable and camera driver"},
        {"ring_full", "the computer is too slow: close other programs",
         "the computer is too slow: a lower line rate, fewer programs, a GPU"},
        {"engine", "pictures could not be made: call for help",
         "the engine failed: see octd's log"},
        {"disk_slow", "the disk is too slow: record less at a time",
         "record less, or to a faster disk: octctl set record.directory FOLDER"},
    };
    const struct oct_view_daemon *d = &list->model->daemon;

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(d->record.lost_why, known[i].why) == 0)
            return cure(list, known[i].operators, known[i].labs);
    return error_of(d);
}

/* Reports what the running recording lost, by its own account, until the user takes note. One that
 * failed or was cut off has ended; its alarm stays until the next one begins, or the user takes
 * note. */
static void judge_recording(struct alarms *list)
{
    const struct oct_view_daemon *d = &list->model->daemon;
    const double n_lost = oct_view_recorded_lost(list->model);
    char remedy[OCT_VIEW_TEXT_BYTES];

    if (oct_view_recorded_was_cut_off(list->model))
        complain(list, OCT_TONE_BAD,
                 "what was recorded until then is kept: look at the last file (F3: noted)",
                 "THE RECORDING WAS CUT OFF: octd began anew meanwhile");
    if (!d->reachable)
        return;
    snprintf(remedy, sizeof(remedy), "%.340s (F3: noted)",
             n_lost > 0 ? remedy_of_loss(list) : error_of(d));
    if (oct_view_recorded_failed(list->model) && d->record.n_lost > 0)
        complain(list, OCT_TONE_BAD, remedy, "RECORDING FAILED: %.0f B-scan%s NOT RECORDED",
                 d->record.n_lost, d->record.n_lost > 1 ? "s" : "");
    else if (oct_view_recorded_failed(list->model))
        complain(list, OCT_TONE_BAD, remedy, "RECORDING FAILED");
    else if (n_lost > 0)
        complain(list, OCT_TONE_BAD, remedy, "NOT RECORDED: %.0f B-scan%s (%s)", n_lost,
                 n_lost > 1 ? "s" : "", d->record.lost_text);
}

/* Nothing waits any more, and it was slow until a moment ago: then it has no number. */
static void judge_slow_disk(const struct oct_view_daemon *d, struct alarms *list)
{
    const char *remedy =
        cure(list, "record less at a time, or call for help",
             "record less, or to a faster disk: octctl set record.directory FOLDER");

    if (d->record.bscans_waiting >= 1)
        complain(list, OCT_TONE_WARN, remedy, "DISK TOO SLOW: %.0f B-scans wait to be recorded",
                 d->record.bscans_waiting);
    else
        complain(list, OCT_TONE_WARN, remedy, "DISK TOO SLOW");
}

static void judge_daemon(struct alarms *list)
{
    const struct oct_view_model *model = list->model;
    const struct oct_view_daemon *d = &model->daemon;

    if (!d->reachable)
        return;
    if (strcmp(d->state, "error") == 0)
        complain(list, OCT_TONE_BAD, error_of(d), "OCTD HAS FAILED: press Start to try again");
    if (d->disk_slow)
        judge_slow_disk(d, list);
    if (fresh(model, &model->dropped))
        complain(list, OCT_TONE_WARN,
                 cure(list, "the computer is too slow: close other programs",
                      "the computer is too slow: a lower line rate, fewer programs, a GPU"),
                 "B-SCANS DROPPED: %.0f", d->bscans_dropped);
    if (fresh(model, &model->missing))
        complain(list, OCT_TONE_WARN,
                 cure(list, "look at the camera and its cable",
                      "look at camera, cable and camera driver"),
                 "A-LINES MISSING: %.0f", d->lines_missing);
}

static void judge_camera(struct alarms *list)
{
    const struct oct_view_model *model = list->model;
    const struct oct_view_spectrum *s = &model->spectrum;

    if (model->playback.active && !model->daemon.record.active)
        return;
    if (s->n_saturated > 0 && model->now_ns < s->arrival_ns + FRESH_SPECTRUM_NS)
        complain(list, OCT_TONE_WARN, "less light on the reference arm, or a shorter exposure",
                 "CAMERA SATURATED: %" PRIu64 " samples of a B-scan at %" PRIu32, s->n_saturated,
                 s->limit);
    if (model->daemon.reachable && model->line_rate.fell &&
        oct_view_model_state(model) == OCT_SIGNAL_LIVE)
        complain(list, OCT_TONE_WARN,
                 cure(list, "look at the camera's trigger and cable",
                      "look at the camera's trigger, cable and driver"),
                 "LINE RATE FELL to %.1f kHz, it was %.1f", model->line_rate.rate_hz / 1e3,
                 model->line_rate.usual_hz / 1e3);
}

/* ---- what octd says is degraded ---- */

static void tell_failing(struct alarms *list, const char *remedy)
{
    const struct oct_view_daemon *d = &list->model->daemon;
    unsigned n = 0;

    for (unsigned i = 0; i < d->n_analyses; i++) {
        const struct oct_view_analysis *a = &d->analysis[i];
        if (!a->failing)
            continue;
        n++;
        complain(list, OCT_TONE_WARN, remedy, "AN ANALYSIS FAILS: %s%s%s", a->name,
                 a->error[0] ? ": " : "", a->error);
    }
    if (n == 0)
        complain(list, OCT_TONE_WARN, remedy, "AN ANALYSIS FAILS");
}

/* Which, by how much, and what it takes. */
static void tell_late(struct alarms *list, const char *remedy)
{
    const struct oct_view_daemon *d = &list->model->daemon;
    char who[192] = "";
    size_t used = 0;

    for (unsigned i = 0; i < d->n_analyses; i++) {
        const struct oct_view_analysis *a = &d->analysis[i];
        if (!a->late || !(a->late_share >= 0 && a->late_share <= 1) || used >= sizeof(who))
            continue;
        used +=
            (size_t)snprintf(who + used, sizeof(who) - used, "%s%s skips %.0f %% of the B-scans",
                             used ? ", " : "", a->name, 100 * a->late_share);
        if (used < sizeof(who) && a->bscan_ms > 0 && a->bscan_ms < 1e6)
            used +=
                (size_t)snprintf(who + used, sizeof(who) - used, " (%.0f ms each)", a->bscan_ms);
    }
    complain(list, OCT_TONE_WARN, remedy, "AN ANALYSIS CANNOT FOLLOW%s%s", who[0] ? ": " : "", who);
}

static void judge_troubles(struct alarms *list)
{
    static const struct {
        const char *word, *words, *operators, *labs;
        void (*tell)(struct alarms *list, const char *remedy); /* NULL: the words */
    } known[] = {
        {"engine", "THE GPU HAS FAILED: the processor computes in its place",
         "pictures and recordings go on; call for help",
         "pictures and recordings go on; see octd's log", NULL},
        {"keys", "KEYS CANNOT BE READ: some programs may not connect", "call for help",
         "see octd's log: the folder of allowed keys", NULL},
        {"analysis", NULL, "pictures and recordings go on; call for help",
         "pictures and recordings go on; see octd's log", tell_failing},
        {"analysis_late", NULL, "pictures and recordings lose nothing",
         "pictures and recordings lose nothing; its key enabled, or analysis.run, ends it",
         tell_late},
    };
    const struct oct_view_daemon *d = &list->model->daemon;

    for (unsigned i = 0; i < d->n_troubles && d->reachable; i++) {
        size_t k = 0;
        while (k < sizeof(known) / sizeof(known[0]) && strcmp(known[k].word, d->trouble[i]) != 0)
            k++;
        if (k == sizeof(known) / sizeof(known[0])) /* a newer octd's word */
            complain(list, OCT_TONE_WARN, cure(list, "call for help", "see octd's log"),
                     "OCTD SAYS: degraded: %s", d->trouble[i]);
        else if (known[k].tell)
            known[k].tell(list, cure(list, known[k].operators, known[k].labs));
        else
            complain(list, OCT_TONE_WARN, cure(list, known[k].operators, known[k].labs), "%s",
                     known[k].words);
    }
}

/* Puts what is bad before what is worth a look; the order among them stays. */
static void sort(struct alarms *list)
{
    for (unsigned i = 1; i < list->n; i++)
        for (unsigned k = i; k > 0 && list->alarm[k].what.tone > list->alarm[k - 1].what.tone;
             k--) {
            struct oct_view_alarm other = list->alarm[k];
            list->alarm[k] = list->alarm[k - 1];
            list->alarm[k - 1] = other;
        }
}

unsigned oct_view_alarms(const struct oct_view_model *model,
                         struct oct_view_alarm alarms[OCT_VIEW_MAX_ALARMS])
{
    struct alarms list = {model, alarms, 0};

    judge_recording(&list);
    judge_driver(&list);
    judge_stream(&list);
    judge_daemon(&list);
    judge_troubles(&list);
    judge_camera(&list);
    judge_disk(&list);
    if (list.n == 0 && model->has_picture && model->shown.header.missing_lines > 0 &&
        !model->has_control)
        complain(&list, OCT_TONE_WARN,
                 cure(&list, "look at the camera and its cable",
                      "look at camera, cable and camera driver"),
                 "A-LINES MISSING: %" PRIu32 " of this B-scan", model->shown.header.missing_lines);
    sort(&list);
    return list.n;
}
