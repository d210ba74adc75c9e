#include "viewer/model/words.h"

#include "viewer/model/clock.h"
#include "viewer/model/daemon.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

void oct_view_duration_text(double seconds, char *text, size_t n_bytes)
{
    unsigned long s = seconds > 0 && seconds < 1e9 ? (unsigned long)seconds : 0;

    if (s >= 3600)
        snprintf(text, n_bytes, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(text, n_bytes, "%02lu:%02lu", s / 60, s % 60);
}

/* ---- the header ---- */

static bool answered(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    if (model->answer.wish == OCT_WISH_NONE || model->answer.ok)
        return oct_view_recorded_text(model, phrase);
    oct_view_phrase_set(phrase, OCT_TONE_BAD, "NOT DONE: %s", model->answer.text);
    return true;
}

/* What the user took note of stays in sight. */
static const char *noted_text(const struct oct_view_model *model, char *text, size_t n_bytes)
{
    const double n_lost = model->daemon.record.n_lost;

    text[0] = '\0';
    if (n_lost > 0 && oct_view_recorded_lost(model) == 0)
        snprintf(text, n_bytes, ", %.0f NOT RECORDED", n_lost);
    return text;
}

bool oct_view_waits_to_record(const struct oct_view_model *model)
{
    const struct oct_view_daemon *d = &model->daemon;

    return d->record.active && d->record.waiting_for_volume &&
           d->record.volumes_written <= model->recorded.files;
}

void oct_view_recording(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    const struct oct_view_daemon *d = &model->daemon;
    char elapsed[32], of[48], noted[48];

    oct_view_volumes_add(model, d->record.active, of, sizeof(of));
    oct_view_duration_text(d->record.elapsed_s, elapsed, sizeof(elapsed));
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
                            d->record.bscans_in_file, noted_text(model, noted, sizeof(noted)));
    else if (!answered(model, phrase))
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
    if (model->playback.opens) {
        oct_view_phrase_set(&lines[0], OCT_TONE_PLAIN, "opening the recording");
        oct_view_phrase_set(&lines[1], OCT_TONE_DIM, "%s", "");
        return 2;
    }
    if (d->reachable && strcmp(d->state, "idle") == 0)
        oct_view_phrase_set(&lines[0], OCT_TONE_WARN, "octd is idle: press Start");
    else if (model->settings.operators)
        oct_view_phrase_set(&lines[0], OCT_TONE_PLAIN, "waiting for pictures");
    else
        oct_view_phrase_set(&lines[0], OCT_TONE_PLAIN, "waiting for %.200s", model->endpoint);
    oct_view_phrase_set(&lines[1], OCT_TONE_DIM, "%s", why_no_picture(model));
    return 2;
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

/* Whether B-scans come and for a while no en face picture did. */
static bool enface_is_late(const struct oct_view_model *model, uint64_t since_ns)
{
    double rate_hz = oct_view_tally_rate_hz(&model->tally);
    double late_s = fmax(ENFACE_LATE_S, rate_hz > 0 ? ENFACE_LATE_BSCANS / rate_hz : 0);

    return oct_view_model_state(model) == OCT_SIGNAL_LIVE && model->now_ns > since_ns &&
           (double)(model->now_ns - since_ns) >= late_s * (double)OCT_NS_PER_S;
}

static void recorded_enface_text(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    const struct oct_view_playback *p = &model->playback;

    if (p->enface_recorded)
        oct_view_phrase_set(phrase, OCT_TONE_PLAIN, "en face, as recorded");
    else if (p->enface_share < 1)
        oct_view_phrase_set(
            phrase, OCT_TONE_PLAIN, "en face, mean: %.0f %% read%s", 100 * p->enface_share,
            model->daemon.reachable && model->daemon.record.active ? ", waits for the recording"
                                                                   : "");
    else
        oct_view_phrase_set(phrase, OCT_TONE_PLAIN, "en face, mean");
}

void oct_view_enface_text(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    static const char *const names[] = {"en face, mean", "en face, maximum", "en face, slab"};
    const struct oct_view_enface_wishes *w = &model->enface_wishes;
    const char *name = model->enface_follows_layers ? "en face, by layers"
                       : w->known                   ? names[w->octds.projection]
                                                    : "en face";
    uint64_t came_ns = model->enface.arrival_ns;
    bool has_none = model->daemon.reachable && !model->daemon.has_enface;

    if (model->playback.active) {
        recorded_enface_text(model, phrase);
        return;
    }
    if (came_ns == 0 && model->has_picture &&
        (has_none || enface_is_late(model, model->first_picture_ns)))
        oct_view_phrase_set(phrase, OCT_TONE_DIM, "no en face from this octd");
    else if (came_ns == 0)
        oct_view_phrase_set(phrase, OCT_TONE_DIM, "%s", name);
    else if (enface_is_late(model, came_ns))
        oct_view_phrase_set(phrase, OCT_TONE_WARN, "%s: none came for %.0f s", name,
                            (double)(model->now_ns - came_ns) / (double)OCT_NS_PER_S);
    else
        oct_view_phrase_set(phrase, OCT_TONE_PLAIN, "%s", name);
}
