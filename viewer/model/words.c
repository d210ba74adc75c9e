#include "viewer/model/words.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/json_text.h"
#include "pipeline/base/utf8.h"
#include "viewer/model/daemon.h"
#include "viewer/model/model.h"

#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- letters ---- */

void oct_view_letters_clean(char *text)
{
    const size_t n = strlen(text);
    size_t last = n; /* where its last letter begins */
    while (last > 0 && ((unsigned char)text[last - 1] & 0xc0) == 0x80)
        last--;
    if (last > 0) {
        const unsigned char c = (unsigned char)text[--last];
        const size_t whole = c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
        if (n - last < whole)
            text[last] = '\0';
    }
    oct_utf8_make_line(text);
}

bool oct_view_letters_are(const char *text)
{
    char line[OCT_VIEW_TEXT_BYTES];
    snprintf(line, sizeof(line), "%s", text);
    oct_utf8_make_line(line);
    return strcmp(line, text) == 0;
}

void oct_view_letters_set_locale(void)
{
    static const char *const names[] = {"C.UTF-8", "C.utf8", "en_US.UTF-8"};
    bool is_utf8 = setlocale(LC_CTYPE, "") && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    for (size_t i = 0; !is_utf8 && i < sizeof(names) / sizeof(names[0]); i++)
        if (setlocale(LC_CTYPE, names[i])) {
            setenv("LC_ALL", names[i], 1);
            is_utf8 = true;
        }
    setlocale(LC_CTYPE, "C"); /* this program's own locale, on which nothing here depends */
}

/* ---- what the picture is ---- */

static const struct {
    const char *name, *word; /* of snapshots and logs, of the status line */
    enum oct_view_tone tone;
} about[OCT_N_SHOWS] = {
    [OCT_SHOW_WAITING] = {"waiting", "WAITING", OCT_TONE_WARN},
    [OCT_SHOW_LIVE] = {"live", "LIVE", OCT_TONE_GOOD},
    [OCT_SHOW_AVERAGED] = {"averaged", "LIVE, AVERAGED", OCT_TONE_GOOD},
    [OCT_SHOW_FROZEN] = {"frozen", "FROZEN", OCT_TONE_WARN},
    [OCT_SHOW_CHANGING] = {"scan changes", "SCAN CHANGES", OCT_TONE_PLAIN},
    [OCT_SHOW_NO_SIGNAL] = {"no signal", "NO SIGNAL", OCT_TONE_BAD},
    [OCT_SHOW_GONE] = {"octd gone", "OCTD IS GONE", OCT_TONE_BAD},
    [OCT_SHOW_PLAYBACK] = {"playback", "PLAYBACK", OCT_TONE_WARN},
};

/* What became of the stream, whatever the picture is: WAITING, LIVE, NO_SIGNAL or GONE. GONE: its
 * publisher does not answer, nor does its control endpoint, or there is none and pictures
 * stopped. */
static enum oct_view_show show_of_stream(const struct oct_view_model *model)
{
    static const enum oct_view_show of[] = {[OCT_SIGNAL_WAITING] = OCT_SHOW_WAITING,
                                            [OCT_SIGNAL_LIVE] = OCT_SHOW_LIVE,
                                            [OCT_SIGNAL_STALLED] = OCT_SHOW_NO_SIGNAL};
    const struct oct_view_daemon *d = &model->daemon;
    const enum oct_view_state state = oct_view_model_state(model);
    const bool is_known = model->has_control && d->known;
    if (!model->connected && (is_known ? !d->reachable : state == OCT_SIGNAL_STALLED))
        return OCT_SHOW_GONE;
    if (state == OCT_SIGNAL_STALLED && oct_view_scan_changes(model))
        return OCT_SHOW_CHANGING;
    return of[state];
}

enum oct_view_show oct_view_show(const struct oct_view_model *model)
{
    if (model->playback.active)
        return OCT_SHOW_PLAYBACK;
    if (!model->has_picture)
        return OCT_SHOW_WAITING;
    if (model->frozen)
        return OCT_SHOW_FROZEN;
    enum oct_view_show show = show_of_stream(model);
    return show == OCT_SHOW_LIVE && model->average.arrival_ns > 0 ? OCT_SHOW_AVERAGED : show;
}

/* ---- the veil ---- */

/* Seconds from the shown picture to the newest when it was frozen. */
static double back_s(const struct oct_view_model *model)
{
    const uint64_t came_ns = model->shown.arrival_ns;
    return came_ns < model->frozen_ns ? (double)(model->frozen_ns - came_ns) / (double)OCT_NS_PER_S
                                      : 0;
}

bool oct_view_show_veil(const struct oct_view_model *model, struct oct_view_veil *veil)
{
    const struct oct_view_daemon *d = &model->daemon;
    const enum oct_view_show show = oct_view_show(model), stream = show_of_stream(model);
    *veil = (struct oct_view_veil){.covers = show == OCT_SHOW_GONE || show == OCT_SHOW_NO_SIGNAL,
                                   .plays = show == OCT_SHOW_PLAYBACK};
    veil->tone = veil->plays ? OCT_TONE_PLAIN : about[show].tone;
    snprintf(veil->words, sizeof(veil->words), "%s", about[show].word);
    if (veil->covers && show == OCT_SHOW_NO_SIGNAL && d->reachable && strcmp(d->state, "idle") == 0)
        snprintf(veil->more, sizeof(veil->more), "octd is idle: press Start");
    else if (veil->covers)
        snprintf(veil->more, sizeof(veil->more), "the last picture is %.0f s old",
                 floor(oct_view_model_silence_s(model)));
    if (show != OCT_SHOW_FROZEN)
        return veil->covers || veil->plays;
    if (back_s(model) > 0)
        snprintf(veil->more, sizeof(veil->more), "%.2f s back", back_s(model));
    /* The user may want to go on, and would find nothing. */
    const size_t used = strlen(veil->more);
    if (stream == OCT_SHOW_NO_SIGNAL || stream == OCT_SHOW_GONE)
        snprintf(veil->more + used, sizeof(veil->more) - used, "%s%s", used ? ", " : "",
                 about[stream].word);
    return true;
}

/* ---- phrases ---- */

/* octd sends an en face picture with every B-scan, or ten a second. One is late after this long and
 * after four B-scans. */
#define ENFACE_LATE_S 3.0
#define ENFACE_LATE_BSCANS 4.0

void oct_view_phrase_set(struct oct_view_phrase *phrase, enum oct_view_tone tone,
                         const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(phrase->text, sizeof(phrase->text), format, args);
    va_end(args);
    phrase->tone = tone;
}

/* "1:02:03" or "02:03". */
static void duration_text(double seconds, char text[32])
{
    unsigned long s = seconds > 0 && seconds < 1e9 ? (unsigned long)seconds : 0;
    if (s >= 3600)
        snprintf(text, 32, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(text, 32, "%02lu:%02lu", s / 60, s % 60);
}

/* ---- the header ---- */

bool oct_view_waits_to_record(const struct oct_view_model *model)
{
    const struct oct_view_daemon *d = &model->daemon;
    return d->record.active && d->record.waiting_for_volume &&
           d->record.volumes_written <= model->recorded.files;
}

void oct_view_recording(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    const struct oct_view_daemon *d = &model->daemon;
    char elapsed[32], of[48], noted[48] = "";
    oct_view_volumes_add(model, d->record.active, of, sizeof(of));
    duration_text(d->record.elapsed_s, elapsed);
    if (d->record.n_lost > 0 && oct_view_recorded_news(model).n_lost == 0) /* stays in sight */
        snprintf(noted, sizeof(noted), ", %.0f NOT RECORDED", d->record.n_lost);
    if (!model->has_control)
        oct_view_phrase_set(phrase, OCT_TONE_DIM, "%s",
                            model->settings.operators
                                ? "pictures only: nothing can be recorded here"
                                : "pictures only: no control endpoint");
    else if (model->asked == OCT_WISH_RECORD || model->asked == OCT_WISH_STOP)
        oct_view_phrase_set(phrase, OCT_TONE_WARN, "asking octd to %s recording",
                            model->asked == OCT_WISH_RECORD ? "start" : "stop");
    else if (!d->known && model->playback.active) /* nobody asked for one */
        oct_view_phrase_set(phrase, OCT_TONE_DIM, "no octd answers");
    else if (!d->reachable)
        oct_view_phrase_set(phrase, OCT_TONE_BAD, "%s",
                            d->record.active ? "RECORDING? octd does not answer"
                                             : "not recording: octd does not answer");
    else if (d->record.active && d->record.stopping)
        oct_view_phrase_set(phrase, OCT_TONE_WARN, "closing the file");
    else if (oct_view_waits_to_record(model))
        oct_view_phrase_set(phrase, OCT_TONE_WARN, "WAITING to record the next volume  %s",
                            elapsed);
    else if (d->record.active)
        oct_view_phrase_set(phrase, OCT_TONE_BAD,
                            "RECORDING %s  volume %.0f%s, %.0f B-scans safe%s", elapsed,
                            d->record.volumes_written - model->recorded.files + 1, of,
                            d->record.bscans_in_file, noted);
    else if (model->answer.wish != OCT_WISH_NONE && !model->answer.ok)
        oct_view_phrase_set(phrase, OCT_TONE_BAD, "NOT DONE: %s", model->answer.text);
    else if (!oct_view_recorded_text(model, phrase))
        oct_view_phrase_set(phrase, OCT_TONE_DIM, "not recording%s", of);
}

/* ---- the rest ---- */

/* Why there is no picture yet, and what to do. */
static const char *why_no_picture(const struct oct_view_model *model)
{
    const struct oct_view_daemon *d = &model->daemon;
    if (d->reachable && strcmp(d->state, "idle") == 0)
        return model->settings.operators ? "the Start button, or the key Return"
                                         : "the Start button, the key Return, or octctl start";
    if (d->reachable && d->driver.text[0])
        return "octd cannot use what the camera sends: see above";
    if (model->connected)
        return "octd waits for the camera: is it on, does its program run?";
    return model->settings.operators ? "octd does not answer: is its computer on?"
                                     : "nothing answers there: is octd running?";
}

unsigned oct_view_notice(const struct oct_view_model *model, struct oct_view_phrase lines[2])
{
    const struct oct_view_daemon *d = &model->daemon;
    if (model->has_picture || model->playback.active)
        return 0;
    oct_view_phrase_set(&lines[1], OCT_TONE_DIM, "%s",
                        model->playback.opens ? "" : why_no_picture(model));
    if (model->playback.opens)
        oct_view_phrase_set(&lines[0], OCT_TONE_PLAIN, "opening the recording");
    else if (d->reachable && strcmp(d->state, "idle") == 0)
        oct_view_phrase_set(&lines[0], OCT_TONE_WARN, "octd is idle: press Start");
    else if (model->settings.operators)
        oct_view_phrase_set(&lines[0], OCT_TONE_PLAIN, "waiting for pictures");
    else
        oct_view_phrase_set(&lines[0], OCT_TONE_PLAIN, "waiting for %.200s", model->endpoint);
    return 2;
}

unsigned oct_view_alarms_in_turn(const struct oct_view_model *model,
                                 struct oct_view_alarm alarms[OCT_VIEW_MAX_ALARMS], unsigned *which)
{
    const unsigned n = oct_view_alarms(model, alarms);
    const uint64_t turn = (uint64_t)(OCT_VIEW_ALARM_S * (double)OCT_NS_PER_S);
    *which = n > 0 ? (unsigned)(model->now_ns / turn % n) : 0;
    return n;
}

unsigned oct_view_wrap(const char *text, unsigned n_letters, char (*lines)[OCT_VIEW_TEXT_BYTES],
                       unsigned most_lines)
{
    unsigned n = 0;
    n_letters = n_letters < OCT_VIEW_TEXT_BYTES - 1 ? n_letters : OCT_VIEW_TEXT_BYTES - 1;
    while (*text && n_letters > 0 && n < most_lines) {
        size_t length = strnlen(text, n_letters);
        if (text[length] != '\0' && text[length] != ' ')
            for (size_t i = length; i > 0; i--)
                if (text[i] == ' ') {
                    length = i;
                    break;
                }
        snprintf(lines[n++], OCT_VIEW_TEXT_BYTES, "%.*s", (int)length, text);
        text += length;
        text += strspn(text, " ");
    }
    return n;
}

void oct_view_quality_text(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    const struct oct_view_quality *q = &model->quality;
    if (q->known)
        oct_view_phrase_set(phrase, OCT_TONE_PLAIN,
                            "SNR %4.1f dB  sharpness %4.1f  blinks %" PRIu64 "  motions %" PRIu64,
                            q->snr_db, q->sharpness, q->n_blinks, q->n_motions);
    else
        oct_view_phrase_set(phrase, OCT_TONE_DIM, "SNR ---  sharpness ---");
}

void oct_view_calm_text(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    if (!model->playback.active && oct_view_scan_changes(model))
        oct_view_phrase_set(phrase, OCT_TONE_PLAIN, "another scan begins: pictures follow");
    else
        oct_view_quality_text(model, phrase);
}

/* Whether B-scans come and for a while no en face picture did. */
bool oct_view_enface_is_late(const struct oct_view_model *model, uint64_t since_ns)
{
    double rate_hz = oct_view_tally_rate_hz(&model->tally);
    double late_s = fmax(ENFACE_LATE_S, rate_hz > 0 ? ENFACE_LATE_BSCANS / rate_hz : 0);
    return oct_view_model_state(model) == OCT_SIGNAL_LIVE && model->now_ns > since_ns &&
           (double)(model->now_ns - since_ns) >= late_s * (double)OCT_NS_PER_S;
}

void oct_view_enface_text(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    static const char *const names[] = {"en face, mean", "en face, maximum", "en face, slab"};
    const struct oct_view_enface_wishes *w = &model->enface_wishes;
    const struct oct_view_playback *p = &model->playback;
    const struct oct_view_daemon *d = &model->daemon;
    const char *name = model->enface_follows_layers ? "en face, by layers"
                       : w->known                   ? names[w->octds.projection]
                                                    : "en face";
    const uint64_t came_ns = model->enface.arrival_ns;
    if (p->active && p->read.enface_recorded)
        oct_view_phrase_set(phrase, OCT_TONE_PLAIN, "en face, as recorded");
    else if (p->active && p->read.enface_share < 1)
        oct_view_phrase_set(phrase, OCT_TONE_PLAIN, "en face, mean: %.0f %% read%s",
                            100 * p->read.enface_share,
                            d->reachable && d->record.active ? ", waits for the recording" : "");
    else if (p->active)
        oct_view_phrase_set(phrase, OCT_TONE_PLAIN, "en face, mean");
    else if (model->scan.draws)
        oct_view_phrase_set(phrase, OCT_TONE_GOOD, "draw the line here: press, drag, release");
    else if (came_ns > 0 && oct_view_above_is_kept(model))
        oct_view_phrase_set(phrase, OCT_TONE_PLAIN, "%s, before this scan", name);
    else if (came_ns == 0 && model->has_picture &&
             ((d->reachable && !d->has_enface) ||
              oct_view_enface_is_late(model, model->first_picture_ns)))
        oct_view_phrase_set(phrase, OCT_TONE_DIM, "no en face from this octd");
    else if (came_ns == 0)
        oct_view_phrase_set(phrase, OCT_TONE_DIM, "%s", name);
    else if (oct_view_enface_is_late(model, came_ns))
        oct_view_phrase_set(phrase, OCT_TONE_WARN, "%s: none came for %.0f s", name,
                            (double)(model->now_ns - came_ns) / (double)OCT_NS_PER_S);
    else
        oct_view_phrase_set(phrase, OCT_TONE_PLAIN, "%s", name);
}

/* ---- the status line ---- */

/* How long a loss stays marked after the last one. */
#define ROSE_NS (10 * OCT_NS_PER_S)

static bool rose_lately(const struct oct_view_model *model, const struct oct_view_watch *watch)
{
    return watch->rose_ns != 0 && model->now_ns < watch->rose_ns + ROSE_NS;
}

struct list {
    struct oct_view_field *fields;
    unsigned n;
};

/* The next field's phrase. */
static struct oct_view_phrase *next(struct list *list, unsigned n_letters)
{
    list->fields[list->n].n_letters = n_letters;
    return &list->fields[list->n++].phrase;
}

/* 0: none come. */
static double pictures_hz(const struct oct_view_model *model)
{
    bool live = oct_view_model_state(model) == OCT_SIGNAL_LIVE;
    return live ? oct_view_tally_rate_hz(&model->tally) : 0;
}

/* Returns the line rate, and what is configured where the two contradict each other, else 0: more
 * lines come than are configured, or less than half of them (pauses while the scanner flies back
 * take some). */
static double line_rate(const struct oct_view_model *model, double *contradicted_hz)
{
    const struct oct_view_daemon *d = &model->daemon;
    double set_hz = d->reachable ? d->set_line_rate_hz : 0, pictures = pictures_hz(model);
    double rate_hz = d->reachable && model->line_rate.rate_hz > 0
                         ? model->line_rate.rate_hz
                         : pictures * model->shown.header.n_lines;
    bool wrong = set_hz > 0 && (rate_hz > 1.05 * set_hz || rate_hz < 0.5 * set_hz);
    *contradicted_hz = wrong ? set_hz : 0;
    return pictures > 0 && model->has_picture ? rate_hz : 0;
}

/* What octd lost is lost; what octd made and this window did not get is skipped here (details). */
static void add_losses(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    const struct oct_view_daemon *d = &model->daemon;
    const uint64_t n_bad = model->tally.n_bad;
    const bool warns = n_bad > 0 || rose_lately(model, &model->dropped);
    char bad[32] = "";
    if (n_bad > 0)
        snprintf(bad, sizeof(bad), "%sbad %" PRIu64, d->reachable ? ", " : "", n_bad);
    if (d->reachable)
        oct_view_phrase_set(phrase, warns ? OCT_TONE_WARN : OCT_TONE_PLAIN, "lost %.0f%s",
                            d->bscans_dropped, bad);
    else
        oct_view_phrase_set(phrase, n_bad > 0 ? OCT_TONE_WARN : OCT_TONE_DIM, "%s", bad);
}

/* is_brief: the time alone, where it is known. It is not before octd has measured the camera's line
 * rate. */
static void add_disk(const struct oct_view_model *model, bool is_brief,
                     struct oct_view_phrase *phrase)
{
    const struct oct_view_daemon *d = &model->daemon;
    const double left_s = d->record.disk_left_s, free_gb = d->disk_bytes_free / 1e9;
    const enum oct_view_tone tone =
        left_s < OCT_VIEW_DISK_OUT_S ? OCT_TONE_WARN : OCT_TONE_PLAIN; /* not for NaN */
    char text[32];
    /* "45 s", "38 min", "5.2 h": how long the disk lasts is no time of the day. */
    if (!(left_s < 3600))
        snprintf(text, sizeof(text), "%.1f h", fmin(left_s / 3600, 9999));
    else if (left_s < 120)
        snprintf(text, sizeof(text), "%.0f s", left_s);
    else
        snprintf(text, sizeof(text), "%.0f min", floor(left_s / 60));
    if (!d->reachable || isnan(d->disk_bytes_free))
        oct_view_phrase_set(phrase, OCT_TONE_DIM, "disk ---");
    else if (isnan(left_s))
        oct_view_phrase_set(phrase, OCT_TONE_PLAIN, "disk %.0f GB%s", free_gb,
                            is_brief ? "" : ", time unknown");
    else if (is_brief)
        oct_view_phrase_set(phrase, tone, "disk %s", text);
    else
        oct_view_phrase_set(phrase, tone, "disk %.0f GB, %s", free_gb, text);
}

unsigned oct_view_fields(const struct oct_view_model *model,
                         struct oct_view_field fields[OCT_VIEW_MOST_FIELDS])
{
    const enum oct_view_show show = oct_view_show(model);
    const struct oct_picture_header *h = &model->shown.header;
    const double rate_hz = pictures_hz(model);
    struct list list = {.fields = fields};
    double set_hz, lines_hz = line_rate(model, &set_hz);
    char place[64] = "";
    if (show == OCT_SHOW_FROZEN && back_s(model) > 0)
        oct_view_phrase_set(next(&list, 19), OCT_TONE_WARN, "FROZEN %.2f s back", back_s(model));
    else
        oct_view_phrase_set(next(&list, 19), about[show].tone, "%s", about[show].word);
    if (rate_hz > 0)
        oct_view_phrase_set(next(&list, 16),
                            lines_hz > 0 && set_hz > 0 ? OCT_TONE_WARN : OCT_TONE_PLAIN,
                            "%6.1f B-scans/s", rate_hz);
    else
        oct_view_phrase_set(next(&list, 16), OCT_TONE_DIM, "   --- B-scans/s");
    if (model->playback.active)
        oct_view_playback_text(model, place, sizeof(place));
    else if (model->has_picture)
        snprintf(place, sizeof(place), "volume %" PRIu64 " B-scan %3" PRIu32, h->volume, h->bscan);
    oct_view_phrase_set(next(&list, 23), place[0] ? OCT_TONE_PLAIN : OCT_TONE_DIM, "%s", place);
    add_losses(model, next(&list, 21));
    add_disk(model, true, next(&list, 14));
    if (model->lens.zoom > 1 && !model->measuring)
        oct_view_phrase_set(next(&list, 12), OCT_TONE_PLAIN, "zoom %.1f", model->lens.zoom);
    else
        oct_view_phrase_set(next(&list, 12), OCT_TONE_GOOD, "%s",
                            !model->measuring ? (model->settings.operators ? "OPERATOR" : "")
                            : model->held == OCT_HELD_MARK ? "MARKED POINT"
                                                           : "CALIPERS");
    oct_view_phrase_set(next(&list, 16), OCT_TONE_DIM, "F1 help  F2 more");
    return list.n;
}

/* ---- details ---- */

static void add_stream(const struct oct_view_model *model, struct list *list)
{
    const enum oct_view_show stream = show_of_stream(model);
    const bool comes = pictures_hz(model) > 0;
    double set_hz, lines_hz = line_rate(model, &set_hz);
    oct_view_phrase_set(next(list, 20), stream == OCT_SHOW_LIVE ? OCT_TONE_PLAIN : OCT_TONE_WARN,
                        "stream %s", about[stream].name);
    if (lines_hz > 0 && set_hz > 0)
        oct_view_phrase_set(next(list, 28), OCT_TONE_WARN, "%5.1f kHz lines, set %.1f",
                            lines_hz / 1e3, set_hz / 1e3);
    else if (lines_hz > 0)
        oct_view_phrase_set(next(list, 28), OCT_TONE_PLAIN, "%5.1f kHz lines", lines_hz / 1e3);
    else
        oct_view_phrase_set(next(list, 28), OCT_TONE_DIM, "  --- kHz lines");
    if (comes && model->screen_hz > 0)
        oct_view_phrase_set(next(list, 12), OCT_TONE_PLAIN, "screen %2.0f Hz", model->screen_hz);
    else
        oct_view_phrase_set(next(list, 12), OCT_TONE_DIM, "screen --");
    if (comes && model->daemon.reachable && model->screen_ms > 0)
        oct_view_phrase_set(next(list, 15), OCT_TONE_PLAIN, "latency %.0f ms",
                            model->daemon.latency_p50_us / 1e3 + model->screen_ms);
    else
        oct_view_phrase_set(next(list, 15), OCT_TONE_DIM, "latency ---");
    oct_view_phrase_set(next(list, 18), OCT_TONE_DIM, "skipped here %" PRIu64,
                        model->tally.n_skipped);
    oct_view_phrase_set(next(list, 18), model->tally.n_bad > 0 ? OCT_TONE_WARN : OCT_TONE_PLAIN,
                        "bad messages %" PRIu64, model->tally.n_bad);
}

static void add_picture(const struct oct_view_model *model, struct list *list)
{
    const struct oct_picture_header *h = &model->shown.header;
    const struct oct_view_scale scale = oct_view_model_scale(model);
    const double across = h->n_lines * scale.lateral_um / 1e3;
    const double deep = h->depth * scale.axial_um / 1e3;
    if (model->has_picture)
        oct_view_phrase_set(next(list, 20), OCT_TONE_PLAIN, "%" PRIu32 " x %" PRIu32 " pixels",
                            h->n_lines, h->depth);
    else
        oct_view_phrase_set(next(list, 20), OCT_TONE_DIM, "%s", "");
    if (model->has_picture && isfinite(across) && isfinite(deep))
        oct_view_phrase_set(next(list, 18), OCT_TONE_PLAIN, "%.2f x %.2f mm", across, deep);
    else
        oct_view_phrase_set(next(list, 18), OCT_TONE_DIM, "scale not known");
    if (model->has_picture)
        oct_view_phrase_set(next(list, 19), h->missing_lines > 0 ? OCT_TONE_WARN : OCT_TONE_PLAIN,
                            "missing lines %" PRIu32, h->missing_lines);
    else
        oct_view_phrase_set(next(list, 19), OCT_TONE_DIM, "missing lines ---");
}

static const char *const ranges[] = {"published", "auto", "manual"};

unsigned oct_view_details(const struct oct_view_model *model,
                          struct oct_view_field fields[OCT_VIEW_MOST_FIELDS])
{
    const struct oct_view_contrast *c = &model->contrast;
    struct list list = {.fields = fields};
    add_stream(model, &list);
    add_disk(model, false, next(&list, 27));
    add_picture(model, &list);
    if (!model->has_picture)
        oct_view_phrase_set(next(&list, 32), OCT_TONE_DIM, "%s", "");
    else if (c->log)
        oct_view_phrase_set(next(&list, 32), OCT_TONE_PLAIN, "%.1f .. %.1f dB %s", c->lo, c->hi,
                            ranges[c->range]);
    else
        oct_view_phrase_set(next(&list, 32), OCT_TONE_PLAIN, "%.4g .. %.4g %s %s", c->lo, c->hi,
                            oct_view_model_unit(model), ranges[c->range]);
    oct_view_phrase_set(next(&list, 10), OCT_TONE_PLAIN, "gamma %.2f", c->gamma);
    oct_view_phrase_set(next(&list, 9), OCT_TONE_PLAIN, "zoom %.1f", model->lens.zoom);
    oct_view_phrase_set(next(&list, 30), OCT_TONE_DIM, "%s", model->endpoint);
    return list.n;
}

/* ---- alarms ---- */

#define FRESH_SPECTRUM_NS (3 * OCT_NS_PER_S)
/* Room for less than this is none. */
#define DISK_FULL_S 2.0

struct alarms {
    const struct oct_view_model *model;
    struct oct_view_alarm *alarm;
    unsigned n;
};

/* What to do: keys of the configuration and commands are for the lab; with the operator profile on,
 * what an operator can do. labs NULL: it is for both. */
struct cure {
    const char *operators, *labs;
};

static struct cure cure_of(const char *operators, const char *labs)
{
    return (struct cure){operators, labs};
}

static const struct cure look_at_camera = {"look at the camera and its cable",
                                           "look at camera, cable and camera driver"};
static const struct cure too_slow = {
    "the computer is too slow: close other programs",
    "the computer is too slow: a lower line rate, fewer programs, a GPU"};

__attribute__((format(printf, 4, 5))) static void
complain(struct alarms *list, enum oct_view_tone tone, struct cure cure, const char *format, ...)
{
    const bool operators = list->model->settings.operators;
    va_list args;
    if (list->n == OCT_VIEW_MAX_ALARMS)
        return;
    struct oct_view_alarm *alarm = &list->alarm[list->n++];
    va_start(args, format);
    vsnprintf(alarm->what.text, sizeof(alarm->what.text), format, args);
    va_end(args);
    alarm->what.tone = tone;
    oct_view_phrase_set(&alarm->remedy, tone, "%s",
                        operators || !cure.labs ? cure.operators : cure.labs);
}
static const char *error_of(const struct oct_view_daemon *d)
{
    return d->last_error[0] ? d->last_error : "octd's log says why";
}

/* ---- stream and camera ---- */

static void judge_silence(struct alarms *list)
{
    const struct oct_view_daemon *d = &list->model->daemon;
    const double silence_s = floor(oct_view_model_silence_s(list->model));
    const char *consequence = d->reachable && d->record.active ? ": NOTHING IS RECORDED" : "";
    if (!list->model->connected)
        complain(list, OCT_TONE_BAD,
                 cure_of("is the cable in, is octd's computer on? it connects by itself", NULL),
                 "NO SIGNAL for %.0f s%s: the connection is gone", silence_s, consequence);
    else if (d->reachable && strcmp(d->state, "idle") == 0)
        complain(list, OCT_TONE_BAD,
                 cure_of("the Start button, or the key Return",
                         "the Start button, the key Return, or octctl start"),
                 "NO SIGNAL, octd is idle: press Start");
    else
        complain(list, OCT_TONE_BAD,
                 cure_of(d->driver.text[0]
                             ? "the camera sends, but octd cannot use what comes"
                             : "octd waits for the camera: is it on, does its program run?",
                         NULL),
                 "NO SIGNAL for %.0f s%s", silence_s, consequence);
}

static void judge_stream(struct alarms *list)
{
    const struct oct_view_model *model = list->model;
    const struct oct_view_daemon *d = &model->daemon;
    const bool is_deaf = model->has_control && d->known && !d->reachable;
    /* Who looks at a recording does not wait for pictures, unless another one is being made. */
    if (model->playback.active && !d->record.active)
        return;
    if (is_deaf && !model->connected && d->record.active)
        complain(list, OCT_TONE_BAD,
                 cure_of("what was recorded until then is kept; call for help",
                         "what was recorded until then is kept; start octd again: this window "
                         "connects by itself"),
                 "OCTD IS GONE, AND IT WAS RECORDING: nothing is recorded");
    else if (is_deaf && !model->connected)
        complain(list, OCT_TONE_BAD,
                 cure_of("call for help, or switch the computer of octd on: this window connects "
                         "by itself",
                         "start it again; this window connects by itself"),
                 "OCTD IS GONE: no pictures, no recording");
    else if (oct_view_model_state(model) == OCT_SIGNAL_STALLED && !oct_view_scan_changes(model))
        judge_silence(list);
    else if (is_deaf)
        complain(list, OCT_TONE_BAD,
                 cure_of(d->record.active
                             ? "pictures come; whether it still records cannot be seen"
                             : "pictures come, but a recording cannot be started or seen",
                         NULL),
                 "OCTD DOES NOT ANSWER");
}

/* ---- recording and disk ---- */

static void judge_disk(struct alarms *list)
{
    static const struct cure cure = {"make room on the disk before the next recording, or call for "
                                     "help",
                                     "move recordings away, or: octctl set record.directory "
                                     "FOLDER"};
    const struct oct_view_model *model = list->model;
    const double left_s = model->daemon.record.disk_left_s;
    char text[32];
    if (!model->daemon.reachable || !oct_view_disk_is_low(&model->disk, model->now_ns))
        return;
    duration_text(left_s, text);
    if (left_s < DISK_FULL_S)
        complain(list, OCT_TONE_BAD, cure, "DISK FULL: nothing can be recorded");
    else
        complain(list, left_s < OCT_VIEW_DISK_OUT_S ? OCT_TONE_BAD : OCT_TONE_WARN, cure,
                 "DISK LOW: room for %s of recording", text);
}

static const struct {
    const char *why, *words;
    struct cure cure;
} losses[] = {
    {"source",
     "not sent by the camera",
     {"look at the camera and its cable", "look at camera, cable and camera driver"}},
    {"ring_full",
     "computer too slow",
     {"the computer is too slow: close other programs",
      "the computer is too slow: a lower line rate, fewer programs, a GPU"}},
    {"engine",
     "not reconstructed",
     {"pictures could not be made: call for help", "the engine failed: see octd's log"}},
    {"disk_slow",
     "disk too slow",
     {"the disk is too slow: record less at a time",
      "record less, or to a faster disk: octctl set record.directory FOLDER"}},
    {"write_failed", "not written", {NULL, NULL}},
    {"paused", "while the recording waited", {NULL, NULL}},
};

const char *oct_view_loss_words(const char *why)
{
    for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++)
        if (strcmp(why, losses[i].why) == 0)
            return losses[i].words;
    return why;
}

static const char *remedy_of_loss(const struct alarms *list)
{
    const struct oct_view_daemon *d = &list->model->daemon;
    for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++)
        if (losses[i].cure.labs && strcmp(d->record.lost_why, losses[i].why) == 0)
            return list->model->settings.operators ? losses[i].cure.operators : losses[i].cure.labs;
    return error_of(d);
}

/* Reports what the running recording lost, by its own account, until the user takes note. One that
 * failed or was cut off has ended; its alarm stays until the next one begins, or the user takes
 * note. */
static void judge_recording(struct alarms *list)
{
    const struct oct_view_daemon *d = &list->model->daemon;
    const struct oct_view_news news = oct_view_recorded_news(list->model);
    const double n = d->record.n_lost;
    char remedy[OCT_VIEW_TEXT_BYTES];
    if (news.was_cut_off)
        complain(list, OCT_TONE_BAD,
                 cure_of("what was recorded until then is kept: look at the last file (F3: noted)",
                         NULL),
                 "THE RECORDING WAS CUT OFF: octd began anew meanwhile");
    if (!d->reachable)
        return;
    snprintf(remedy, sizeof(remedy), "%.340s (F3: noted)",
             news.n_lost > 0 ? remedy_of_loss(list) : error_of(d));
    if (news.failed && n > 0)
        complain(list, OCT_TONE_BAD, cure_of(remedy, NULL),
                 "RECORDING FAILED: %.0f B-scan%s NOT RECORDED", n, n > 1 ? "s" : "");
    else if (news.failed)
        complain(list, OCT_TONE_BAD, cure_of(remedy, NULL), "RECORDING FAILED");
    else if (news.n_lost > 0)
        complain(list, OCT_TONE_BAD, cure_of(remedy, NULL), "NOT RECORDED: %.0f B-scan%s (%s)", n,
                 n > 1 ? "s" : "", d->record.lost_text);
}

static void judge_daemon(struct alarms *list)
{
    static const struct cure record_less = {
        "record less at a time, or call for help",
        "record less, or to a faster disk: octctl set record.directory FOLDER"};
    const struct oct_view_model *model = list->model;
    const struct oct_view_daemon *d = &model->daemon;
    if (!d->reachable)
        return;
    if (strcmp(d->state, "error") == 0)
        complain(list, OCT_TONE_BAD, cure_of(error_of(d), NULL),
                 "OCTD HAS FAILED: press Start to try again");
    if (d->disk_slow && d->record.bscans_waiting >= 1)
        complain(list, OCT_TONE_WARN, record_less,
                 "DISK TOO SLOW: %.0f B-scans wait to be recorded", d->record.bscans_waiting);
    else if (d->disk_slow) /* nothing waits any more, and it was slow until a moment ago */
        complain(list, OCT_TONE_WARN, record_less, "DISK TOO SLOW");
    if (rose_lately(model, &model->dropped))
        complain(list, OCT_TONE_WARN, too_slow, "B-SCANS DROPPED: %.0f", d->bscans_dropped);
    if (rose_lately(model, &model->missing))
        complain(list, OCT_TONE_WARN, look_at_camera, "A-LINES MISSING: %.0f", d->lines_missing);
}

static void judge_camera(struct alarms *list)
{
    const struct oct_view_model *model = list->model;
    const struct oct_view_spectrum *s = &model->spectrum;
    if (model->playback.active && !model->daemon.record.active)
        return;
    if (s->n_saturated > 0 && model->now_ns < s->arrival_ns + FRESH_SPECTRUM_NS)
        complain(list, OCT_TONE_WARN,
                 cure_of("less light on the reference arm, or a shorter exposure", NULL),
                 "CAMERA SATURATED: %" PRIu64 " samples of a B-scan at %" PRIu32, s->n_saturated,
                 s->limit);
    if (model->daemon.reachable && model->line_rate.fell &&
        oct_view_model_state(model) == OCT_SIGNAL_LIVE)
        complain(list, OCT_TONE_WARN,
                 cure_of("look at the camera's trigger and cable",
                         "look at the camera's trigger, cable and driver"),
                 "LINE RATE FELL to %.1f kHz, it was %.1f", model->line_rate.rate_hz / 1e3,
                 model->line_rate.usual_hz / 1e3);
}

/* ---- what octd says is degraded ---- */

static void tell_failing(struct alarms *list, struct cure cure)
{
    const struct oct_view_daemon *d = &list->model->daemon;
    unsigned n = 0;
    for (unsigned i = 0; i < d->n_analyses; i++) {
        const struct oct_view_analysis *a = &d->analysis[i];
        if (!a->failing)
            continue;
        n++;
        complain(list, OCT_TONE_WARN, cure, "AN ANALYSIS FAILS: %s%s%s", a->name,
                 a->error[0] ? ": " : "", a->error);
    }
    if (n == 0)
        complain(list, OCT_TONE_WARN, cure, "AN ANALYSIS FAILS");
}

/* Which, by how much, and what it takes. */
static void tell_late(struct alarms *list, struct cure cure)
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
    complain(list, OCT_TONE_WARN, cure, "AN ANALYSIS CANNOT FOLLOW%s%s", who[0] ? ": " : "", who);
}

static void judge_troubles(struct alarms *list)
{
    static const struct {
        const char *word, *words;
        struct cure cure;
        void (*tell)(struct alarms *list, struct cure cure); /* NULL: the words */
    } known[] = {
        {"engine",
         "THE GPU HAS FAILED: the processor computes in its place",
         {"pictures and recordings go on; call for help",
          "pictures and recordings go on; see octd's log"},
         NULL},
        {"keys",
         "KEYS CANNOT BE READ: some programs may not connect",
         {"call for help", "see octd's log: the folder of allowed keys"},
         NULL},
        {"analysis",
         NULL,
         {"pictures and recordings go on; call for help",
          "pictures and recordings go on; see octd's log"},
         tell_failing},
        {"analysis_late",
         NULL,
         {"pictures and recordings lose nothing",
          "pictures and recordings lose nothing; its key enabled, or analysis.run, ends it"},
         tell_late},
    };
    const struct oct_view_daemon *d = &list->model->daemon;
    for (unsigned i = 0; i < d->n_troubles && d->reachable; i++) {
        size_t k = 0;
        while (k < sizeof(known) / sizeof(known[0]) && strcmp(known[k].word, d->trouble[i]) != 0)
            k++;
        if (k == sizeof(known) / sizeof(known[0])) /* a newer octd's word */
            complain(list, OCT_TONE_WARN, cure_of("call for help", "see octd's log"),
                     "OCTD SAYS: degraded: %s", d->trouble[i]);
        else if (known[k].tell)
            known[k].tell(list, known[k].cure);
        else
            complain(list, OCT_TONE_WARN, known[k].cure, "%s", known[k].words);
    }
}

/* ---- the archive ---- */

/* What was exported and has not arrived is nobody's to forget: until it has, or the user takes note
 * that it failed. */
static void judge_export(struct alarms *list)
{
    const struct oct_view_export *e = &list->model->exported;
    if (e->state == OCT_EXPORT_FAILED && !e->is_noted)
        complain(
            list, OCT_TONE_WARN,
            cure_of("Export it again, or call for help (F3: noted)", "Export it again (F3: noted)"),
            "NOT EXPORTED: %s", e->why);
    else if (e->state == OCT_EXPORT_WAITS && e->nobody_sends)
        complain(list, OCT_TONE_WARN,
                 cure_of("nothing is lost: call for help",
                         "nothing is lost: octctl archive run, or octd-archive@.service, sends it"),
                 "NOBODY SENDS TO THE ARCHIVE: %u wait", e->n_waiting);
    else if (e->state == OCT_EXPORT_WAITS && e->why[0])
        complain(list, OCT_TONE_WARN,
                 cure_of("nothing is lost, it is tried again; call for help where it lasts",
                         "nothing is lost, it is tried again; octctl doctor --dicom"),
                 "NOT ARCHIVED YET: %s", e->why);
}

unsigned oct_view_alarms(const struct oct_view_model *model,
                         struct oct_view_alarm alarms[OCT_VIEW_MAX_ALARMS])
{
    const struct oct_view_daemon *d = &model->daemon;
    struct alarms list = {model, alarms, 0};
    judge_recording(&list);
    /* Comes before the alarm of the silence that a wrong driver causes, because it says why. */
    if (d->reachable && d->driver.text[0])
        complain(&list, OCT_TONE_BAD,
                 cure_of("correct the camera's settings, or call whoever set it up",
                         d->driver.cure[0] ? d->driver.cure : "see octd's log"),
                 "CAMERA: %s", d->driver.plain[0] ? d->driver.plain : d->driver.text);
    judge_stream(&list);
    judge_daemon(&list);
    judge_troubles(&list);
    judge_camera(&list);
    judge_disk(&list);
    judge_export(&list);
    if (list.n == 0 && model->has_picture && model->shown.header.missing_lines > 0 &&
        !model->has_control)
        complain(&list, OCT_TONE_WARN, look_at_camera,
                 "A-LINES MISSING: %" PRIu32 " of this B-scan", model->shown.header.missing_lines);
    /* What is bad comes before what is worth a look; the order among them stays. */
    for (unsigned i = 1; i < list.n; i++)
        for (unsigned k = i; k > 0 && alarms[k].what.tone > alarms[k - 1].what.tone; k--) {
            struct oct_view_alarm other = alarms[k];
            alarms[k] = alarms[k - 1];
            alarms[k - 1] = other;
        }
    return list.n;
}

/* ---- captions of snapshots: the name ---- */

/* Returns the number of a character of `n` bytes that oct_utf8_character found. */
static uint32_t number_of(const char *text, size_t n)
{
    static const unsigned char first[] = {0xff, 0xff, 0x1f, 0x0f, 0x07};
    uint32_t c = (unsigned char)text[0] & first[n];
    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((unsigned char)text[i] & 0x3fu);
    return c;
}

static bool is_plain_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

/* Whether a character outside ASCII is seen in a name: no control, no space, nothing that turns the
 * direction of what follows, no private or unused number. */
static bool is_visible(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } hidden[] = {{0, 0xa0},        {0xad, 0xad},     {0x61c, 0x61c},     {0x1680, 0x1680},
                  {0x180e, 0x180e}, {0x2000, 0x200f}, {0x2028, 0x202f},   {0x205f, 0x206f},
                  {0x3000, 0x3000}, {0xe000, 0xf8ff}, {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
                  {0xfff0, 0xffff}, {0xfdd0, 0xfdef}, {0xe0000, 0xe0fff}, {0xf0000, 0x10ffff}};
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
        if (c >= hidden[i].first && c <= hidden[i].last)
            return false;
    return true;
}

void oct_view_caption_name_add(char *name, size_t n_bytes, const char *text)
{
    size_t at = strlen(name), left = strlen(text), n;
    if (left == 0 || at + 2 >= n_bytes)
        return;
    name[at++] = '-';
    for (; left > 0; text += n, left -= n) {
        n = oct_utf8_character(text, left);
        bool stays = n == 1 ? is_plain_letter(*text) : n > 1 && is_visible(number_of(text, n));
        n = n == 0 ? 1 : n;
        if (at + (stays ? n : 1) >= n_bytes)
            break;
        if (stays)
            memcpy(name + at, text, n);
        else
            name[at] = '_';
        at += stays ? n : 1;
    }
    name[at] = '\0';
}

/* ---- the line ---- */

static void append(char *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append(char *line, const char *format, ...)
{
    size_t n = strlen(line);
    va_list args;
    va_start(args, format);
    vsnprintf(line + n, OCT_VIEW_CAPTION_LINE_BYTES - n, format, args);
    va_end(args);
}

static const char *unit_of(const struct oct_view_model *model)
{
    const char *unit = oct_view_model_unit(model);
    return strcmp(unit, "counts\u00b2") == 0 ? "counts^2" : unit;
}

static void make_line(char *line, const struct oct_view_model *model, const char *eye,
                      const char *pseudonym)
{
    const struct oct_picture_header *h = &model->shown.header;
    struct oct_view_scale scale = oct_view_model_scale(model);
    const struct oct_view_caliper_set *set = &model->calipers.shown;
    const struct oct_view_file *file = &model->playback.file;
    char text[256];
    line[0] = '\0';
    if (!model->has_picture) {
        append(line, "no picture");
        return;
    }
    if (model->playback.active)
        append(line, "B-scan %" PRIu32 " of %" PRIu32 " of %s", model->playback.read.bscan,
               file->n_bscans, file->name);
    else
        append(line, "B-scan %" PRIu32 " of volume %" PRIu64 ", acquisition %s", h->bscan,
               h->volume, h->acquisition_id);
    oct_view_playback_volume_text(file, text, sizeof(text));
    if (model->playback.active && text[0])
        append(line, ", %s", text);
    append(line, ", %s", about[oct_view_show(model)].name);
    if (eye[0])
        append(line, "; %s", eye);
    if (pseudonym[0])
        append(line, "; %s", pseudonym);
    if (oct_view_proportion_known(scale.lateral_um, scale.axial_um))
        append(line, "; %.4g x %.4g \u00b5m a pixel", scale.lateral_um, scale.axial_um);
    append(line, "; black %.4g, white %.4g %s, gamma %.3g", model->contrast.lo, model->contrast.hi,
           unit_of(model), model->contrast.gamma);
    for (unsigned i = 0; i < OCT_VIEW_MOST_CALIPERS; i++) {
        const struct oct_view_caliper *c = &set->caliper[i];
        if (!c->is_set)
            continue;
        oct_view_distance_text(c->end[0], c->end[1], scale, text, sizeof(text));
        append(line, "; %u: %s", i + 1, text);
    }
}

/* ---- the JSON text ---- */

static void add_pair(struct oct_json_text *t, const char *key, double a, double b)
{
    oct_json_key(t, key);
    oct_json_raw(t, "[");
    oct_json_double(t, a);
    oct_json_raw(t, ",");
    oct_json_double(t, b);
    oct_json_raw(t, "]");
}

static void caption_add_picture(struct oct_json_text *t, const struct oct_view_model *model)
{
    const struct oct_picture_header *h = &model->shown.header;
    const struct oct_view_contrast *c = &model->contrast;
    const struct oct_view_scale scale = oct_view_model_scale(model);
    if (model->playback.active) {
        oct_json_member_string(t, "file", model->playback.file.name);
        oct_json_member_u64(t, "bscan", model->playback.read.bscan);
    } else {
        oct_json_member_string(t, "acquisition", h->acquisition_id);
        oct_json_member_u64(t, "volume", h->volume);
        oct_json_member_u64(t, "bscan", h->bscan);
        oct_json_member_u64(t, "frame_num", h->frame_num);
    }
    oct_json_member_u64(t, "time_ns", h->time_ns);
    oct_json_member_u64(t, "n_lines", h->n_lines);
    oct_json_member_u64(t, "depth", h->depth);
    oct_json_member_u64(t, "missing_lines", h->missing_lines);
    if (model->average.arrival_ns > 0)
        oct_json_member_double(t, "averaged", model->average.averaged);
    oct_json_key(t, "spacing_um");
    oct_json_raw(t, "{");
    oct_json_member_double(t, "line", scale.lateral_um);
    oct_json_member_double(t, "depth", scale.axial_um);
    oct_json_member_double(t, "bscan", oct_view_model_slow_um(model));
    oct_json_raw(t, "}");
    oct_json_member_string(t, "unit", unit_of(model));
    add_pair(t, "published", h->lo, h->hi);
    oct_json_key(t, "contrast");
    oct_json_raw(t, "{");
    oct_json_member_string(t, "range", ranges[c->range]);
    oct_json_member_double(t, "black", c->lo);
    oct_json_member_double(t, "white", c->hi);
    oct_json_member_double(t, "gamma", c->gamma);
    oct_json_member_string(t, "palette", oct_view_palette_names[c->palette]);
    oct_json_raw(t, "}");
}

static void add_caliper(struct oct_json_text *t, unsigned number, const struct oct_view_caliper *c,
                        struct oct_view_scale scale)
{
    struct oct_view_point a = c->end[0], b = c->end[1];
    oct_json_separate(t);
    oct_json_raw(t, "{");
    oct_json_member_u64(t, "number", number);
    add_pair(t, "from", a.line, a.depth);
    add_pair(t, "to", b.line, b.depth);
    oct_json_member_double(t, "um", oct_view_distance_um(a, b, scale));
    oct_json_member_double(t, "across_um", fabs(b.line - a.line) * scale.lateral_um);
    oct_json_member_double(t, "deep_um", fabs(b.depth - a.depth) * scale.axial_um);
    oct_json_raw(t, "}");
}

static void add_measures(struct oct_json_text *t, const struct oct_view_model *model)
{
    oct_json_key(t, "calipers");
    oct_json_raw(t, "[");
    for (unsigned i = 0; i < OCT_VIEW_MOST_CALIPERS; i++)
        if (model->calipers.shown.caliper[i].is_set)
            add_caliper(t, i + 1, &model->calipers.shown.caliper[i], oct_view_model_scale(model));
    oct_json_raw(t, "]");
    if (!model->has_mark)
        return;
    oct_json_key(t, "mark");
    oct_json_raw(t, "{");
    add_pair(t, "at", model->mark.line, model->mark.depth);
    oct_json_member_double(t, "value", oct_view_model_mark_value(model));
    oct_json_raw(t, "}");
}

void oct_view_caption_make(struct oct_view_caption *caption, const struct oct_view_model *model,
                           bool has_pseudonym, const char *shows)
{
    const struct oct_view_file *file = model->playback.active ? &model->playback.file : NULL;
    const char *eye = file ? file->eye : model->daemon.record.eye;
    const char *pseudonym = !has_pseudonym ? ""
                            : file         ? file->pseudonym
                                           : model->daemon.record.pseudonym;
    struct oct_json_text t;
    memset(caption, 0, sizeof(*caption));
    oct_view_caption_name_add(caption->name, sizeof(caption->name), eye);
    oct_view_caption_name_add(caption->name, sizeof(caption->name), pseudonym);
    make_line(caption->line, model, eye, pseudonym);
    oct_json_begin(&t, caption->json, sizeof(caption->json));
    oct_json_raw(&t, "{");
    oct_json_member_string(&t, "shows", shows);
    oct_json_member_string(&t, "state", about[oct_view_show(model)].name);
    oct_json_member_string(&t, "eye", eye);
    if (has_pseudonym)
        oct_json_member_string(&t, "pseudonym", pseudonym);
    if (model->has_picture) {
        caption_add_picture(&t, model);
        add_measures(&t, model);
    }
    oct_json_raw(&t, "}");
    oct_json_end(&t);
}

/* ---- the help ---- */

#define KEY_LETTERS 15
#define GAP_LETTERS 3   /* two between keys and meaning, one after it */
#define LEAST_COLUMN 48 /* letters of one whose lines are broken */
#define MOST_COLUMNS 3u
#define MOST_ROWS 96

struct row {
    char keys[64];
    const char *meaning;
};

struct columns {
    struct row row[MOST_ROWS];
    unsigned n_rows;
    unsigned n_columns, n_lines; /* of a column, at most */
    unsigned letters, longest;   /* of a line of a meaning; of the longest meaning */
    bool wraps;                  /* else a long line is cut */
};

/* Returns how many bytes of the text make its first line: whole words, as far as they fit. */
static size_t line_bytes(const char *text, unsigned letters)
{
    size_t n = strlen(text), end = 0;
    if (n <= letters)
        return n;
    for (size_t i = 1; i <= letters; i++)
        end = text[i] == ' ' ? i : end;
    return end > 0 ? end : letters;
}

static unsigned count_lines(const char *text, unsigned letters)
{
    unsigned n = 0;
    for (size_t used; *text; n++, text += used + (text[used] == ' '))
        used = line_bytes(text, letters);
    return n;
}

static unsigned row_lines(const struct columns *c, unsigned i)
{
    unsigned keys = count_lines(c->row[i].keys, KEY_LETTERS);
    unsigned meaning = count_lines(c->row[i].meaning, c->letters);
    return !c->wraps ? 1 : keys > meaning ? keys : meaning;
}

/* Adds a text from a place on, in as many lines as it has. */
static void help_add(struct oct_view_help *help, const struct columns *c, const char *text,
                     unsigned letters, bool is_key, unsigned column, unsigned line)
{
    size_t used;
    do {
        if (help->n == OCT_VIEW_MOST_HELP)
            return;
        struct oct_view_help_text *t = &help->text[help->n++];
        used = line_bytes(text, c->wraps || strlen(text) <= letters ? letters : letters - 1);
        bool cut = !c->wraps && text[used];
        snprintf(t->text, sizeof(t->text), "%.*s%s", (int)used, text, cut ? "\u2026" : "");
        t->column = column;
        t->line = line++;
        t->is_key = is_key;
        help->is_cut |= cut;
        text += used + (text[used] == ' ');
    } while (c->wraps && *text);
}

/* Puts the rows into columns, of which none but the last may have more than `most` lines; and,
 * where there is a help, into its n_lines. Returns the lines of the longest column. */
static unsigned lay_out(const struct columns *c, unsigned most, struct oct_view_help *help,
                        unsigned n_lines)
{
    const unsigned width = KEY_LETTERS + GAP_LETTERS + c->letters;
    unsigned line = 0, column = 0, longest = 0;
    for (unsigned i = 0; i < c->n_rows; i++) {
        const unsigned n = row_lines(c, i);
        if (line + n > most && column + 1 < c->n_columns) {
            column++;
            line = 0;
        }
        if (help && line + n > n_lines) { /* not even so */
            help->is_cut = true;
            break;
        }
        if (help) {
            help_add(help, c, c->row[i].keys, KEY_LETTERS, true, column * width, line);
            help_add(help, c, c->row[i].meaning, c->letters, false,
                     column * width + KEY_LETTERS + 2, line);
        }
        line += n;
        longest = line > longest ? line : longest;
    }
    return longest;
}

/* Tries so many columns, all about as long. False: they do not fit into the window's lines. */
static bool try_columns(struct columns *c, unsigned n_columns, unsigned n_letters, unsigned n_lines)
{
    unsigned all = 0, width = n_letters / n_columns;
    c->n_columns = n_columns;
    c->letters = width > KEY_LETTERS + GAP_LETTERS + 8 ? width - KEY_LETTERS - GAP_LETTERS : 8;
    c->letters = c->letters < c->longest ? c->letters : c->longest;
    for (unsigned i = 0; i < c->n_rows; i++)
        all += row_lines(c, i);
    for (c->n_lines = (all + n_columns - 1) / n_columns; c->n_lines <= n_lines; c->n_lines++)
        if (lay_out(c, c->n_lines, NULL, 0) <= c->n_lines)
            return true;
    c->n_lines = n_lines;
    return false;
}

static void choose_columns(struct columns *c, unsigned n_letters, unsigned n_lines)
{
    c->wraps = true;
    for (unsigned n = MOST_COLUMNS; n > 0; n--)
        if (n_letters / n >= KEY_LETTERS + GAP_LETTERS + c->longest &&
            try_columns(c, n, n_letters, n_lines))
            return;
    for (unsigned n = 2; n <= MOST_COLUMNS; n++)
        if (n_letters / n > LEAST_COLUMN && try_columns(c, n, n_letters, n_lines))
            return;
    c->wraps = false;
    try_columns(c, n_letters > LEAST_COLUMN ? 2 : 1, n_letters, n_lines);
}

void oct_view_help_arrange(struct oct_view_help *help, const struct oct_view_model *model,
                           unsigned n_letters, unsigned n_lines)
{
    struct columns c = {.n_rows = 0};
    for (size_t i = 0; i < oct_view_n_keys && c.n_rows < MOST_ROWS; i++) {
        struct row *row = &c.row[c.n_rows];
        if ((model->settings.operators && !oct_view_action_is_operators(oct_view_keys[i].action)) ||
            !oct_view_key_help(i, row->keys, sizeof(row->keys)))
            continue;
        row->meaning = oct_view_keys[i].meaning;
        unsigned n = (unsigned)strlen(row->meaning);
        c.longest = n > c.longest ? n : c.longest;
        c.n_rows++;
    }
    choose_columns(&c, n_letters, n_lines);
    help->n = 0;
    help->is_cut = false;
    lay_out(&c, c.n_lines, help, n_lines);
    help->n_letters = c.n_columns * (KEY_LETTERS + GAP_LETTERS + c.letters);
    help->n_lines = c.n_lines;
}
