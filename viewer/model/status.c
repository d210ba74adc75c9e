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

__attribute__((format(printf, 3, 4))) static void
set(struct oct_view_phrase *phrase, enum oct_view_tone tone, const char *format, ...)
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
    set(phrase, OCT_TONE_BAD, "NOT DONE: %s", model->answer.text);
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
        set(phrase, OCT_TONE_DIM, "%s",
            model->settings.operators ? "pictures only: nothing can be recorded here"
                                      : "pictures only: no control endpoint");
    else if (model->asked == OCT_WISH_RECORD || model->asked == OCT_WISH_STOP)
        set(phrase, OCT_TONE_WARN, "asking octd to %s recording",
            model->asked == OCT_WISH_RECORD ? "start" : "stop");
    else if (!d->known && model->playback.active) /* nobody asked for one */
        set(phrase, OCT_TONE_DIM, "no octd answers");
    else if (!d->reachable)
        set(phrase, OCT_TONE_BAD, "%s",
            d->record.active ? "RECORDING? octd does not answer"
                             : "not recording: octd does not answer");
    else if (d->record.active && d->record.stopping)
        set(phrase, OCT_TONE_WARN, "closing the file");
    else if (oct_view_waits_to_record(model))
        set(phrase, OCT_TONE_WARN, "WAITING to record the next volume  %s", elapsed);
    else if (d->record.active)
        set(phrase, OCT_TONE_BAD, "RECORDING %s  volume %.0f%s, %.0f B-scans safe%s", elapsed,
            d->record.volumes_written - model->recorded.files + 1, of, d->record.bscans_in_file,
            noted_text(model, noted, sizeof(noted)));
    else if (!answered(model, phrase))
        set(phrase, OCT_TONE_DIM, "not recording%s", of);
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
        set(&lines[0], OCT_TONE_PLAIN, "opening the recording");
        set(&lines[1], OCT_TONE_DIM, "%s", "");
        return 2;
    }
    if (d->reachable && strcmp(d->state, "idle") == 0)
        set(&lines[0], OCT_TONE_WARN, "octd is idle: press Start");
    else if (model->settings.operators)
        set(&lines[0], OCT_TONE_PLAIN, "waiting for pictures");
    else
        set(&lines[0], OCT_TONE_PLAIN, "waiting for %.200s", model->endpoint);
    set(&lines[1], OCT_TONE_DIM, "%s", why_no_picture(model));
    return 2;
}

void oct_view_quality_text(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    const struct oct_view_quality *q = &model->quality;

    if (q->known)
        set(phrase, OCT_TONE_PLAIN,
            "SNR %4.1f dB  sharpness %4.1f  blinks %" PRIu64 "  motions %" PRIu64, q->snr_db,
            q->sharpness, q->n_blinks, q->n_motions);
    else
        set(phrase, OCT_TONE_DIM, "SNR ---  sharpness ---");
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
        set(phrase, OCT_TONE_PLAIN, "en face, as recorded");
    else if (p->enface_share < 1)
        set(phrase, OCT_TONE_PLAIN, "en face, mean: %.0f %% read%s", 100 * p->enface_share,
            model->daemon.reachable && model->daemon.record.active ? ", waits for the recording"
                                                                   : "");
    else
        set(phrase, OCT_TONE_PLAIN, "en face, mean");
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
        set(phrase, OCT_TONE_DIM, "no en face from this octd");
    else if (came_ns == 0)
        set(phrase, OCT_TONE_DIM, "%s", name);
    else if (enface_is_late(model, came_ns))
        set(phrase, OCT_TONE_WARN, "%s: none came for %.0f s", name,
            (double)(model->now_ns - came_ns) / (double)OCT_NS_PER_S);
    else
        set(phrase, OCT_TONE_PLAIN, "%s", name);
}

/* Three digits of it, the others 0, with commas between thousands: "65,500". */
static void density_text(double per_mm2, char *text, size_t n_bytes)
{
    double step = per_mm2 >= 1 ? pow(10, floor(log10(per_mm2)) - 2) : 1;
    uint64_t n = (uint64_t)(round(per_mm2 / fmax(step, 1)) * fmax(step, 1));

    if (n >= 1000000)
        snprintf(text, n_bytes, "%" PRIu64 ",%03" PRIu64 ",%03" PRIu64, n / 1000000,
                 n / 1000 % 1000, n % 1000);
    else if (n >= 1000)
        snprintf(text, n_bytes, "%" PRIu64 ",%03" PRIu64, n / 1000, n % 1000);
    else
        snprintf(text, n_bytes, "%" PRIu64, n);
}

void oct_view_cones_text(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    const struct oct_view_cones *c = &model->cones;
    const uint64_t volume = model->enface.volume; /* while it is scanned, the one before is meant */
    bool has_scale = model->daemon.lateral_um > 0 && model->daemon.slow_um > 0;
    char density[32], ago[40] = "";

    set(phrase, OCT_TONE_PLAIN, "%s", "");
    if (!c->known || !has_scale || !model->has_picture ||
        strcmp(c->acquisition_id, model->shown.header.acquisition_id) != 0)
        return;
    if (!c->has_ring) {
        set(phrase, OCT_TONE_DIM, "cones: no ring");
        return;
    }
    density_text(c->per_mm2, density, sizeof(density));
    if (volume > c->volume + 1)
        snprintf(ago, sizeof(ago), ", %" PRIu64 " volumes ago", volume - c->volume);
    set(phrase, ago[0] ? OCT_TONE_DIM : OCT_TONE_PLAIN, "cones %.1f um %s/mm2 (%.2f)%s",
        c->spacing_um, density, c->strength, ago);
}

void oct_view_cells_text(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    const struct oct_view_cells *c = &model->cells;

    set(phrase, OCT_TONE_PLAIN, "%s", "");
    if (!oct_view_model_has_cells(model))
        return;
    const double count = c->count >= c->n && c->count < 1e6 ? c->count : c->n;
    const double um_s = c->median_um_s;
    if (um_s > 0 && um_s < 1e9) /* three digits at least */
        set(phrase, OCT_TONE_PLAIN, "cells %.0f, median %.*f um/s", count,
            (int)fmin(fmax(2 - floor(log10(um_s)), 0), 6), um_s);
    else
        set(phrase, OCT_TONE_PLAIN, "cells %.0f", count);
}

void oct_view_layers_text(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    const double um = model->daemon.axial_um;
    double found, px;

    set(phrase, OCT_TONE_PLAIN, "%s", "");
    if (!oct_view_model_has_layers(model))
        return;
    px = oct_view_layers_thickness(&model->layers, 0, model->layers.n_lines, &found);
    if (isnan(px))
        set(phrase, OCT_TONE_DIM, "layers: none found");
    else if (found < 0.995)
        set(phrase, OCT_TONE_PLAIN, "ILM to RPE %.0f %s in %.0f %% of the A-lines",
            isfinite(um) ? px * um : px, isfinite(um) ? "\u00b5m" : "pixels", 100 * found);
    else
        set(phrase, OCT_TONE_PLAIN, "ILM to RPE %.0f %s", isfinite(um) ? px * um : px,
            isfinite(um) ? "\u00b5m" : "pixels");
}

/* ---- a mirror ---- */

static const char *const why_no_mirror[OCT_MIRROR_N_STATES] = {
    [OCT_MIRROR_WEAK] = "nothing above the noise",
    [OCT_MIRROR_AT_END] = "its peak is cut off at the end of the depth",
    [OCT_MIRROR_MANY] = "more than one reflector",
    [OCT_MIRROR_HARMONIC] = "a line two or three times as deep: is the camera saturated?",
    [OCT_MIRROR_MISSING] = "A-lines are missing",
};

static void tell_peak(const struct oct_view_rolloff *r, struct oct_view_phrase *line)
{
    if (r->state != OCT_MIRROR_FOUND)
        set(line, OCT_TONE_DIM, "no mirror: %s", why_no_mirror[r->state]);
    else if (isfinite(r->fwhm_um))
        set(line, OCT_TONE_PLAIN, "%.1f px: FWHM %.2f px, %.2f \u00b5m, SNR %.1f dB", r->depth_px,
            r->fwhm_px, r->fwhm_um, r->snr_db);
    else
        set(line, OCT_TONE_PLAIN, "%.1f px: FWHM %.2f px, SNR %.1f dB", r->depth_px, r->fwhm_px,
            r->snr_db);
}

static void tell_rolloff(const struct oct_view_rolloff *r, struct oct_view_phrase *line)
{
    char where[64] = "";
    if (isfinite(r->db_per_mm) && isfinite(r->minus_6db_um))
        snprintf(where, sizeof(where), ", -6 dB at %.2f mm", r->minus_6db_um / 1000);
    else if (isfinite(r->minus_6db_px))
        snprintf(where, sizeof(where), ", -6 dB at %.0f px", r->minus_6db_px);
    set(line, OCT_TONE_PLAIN, "%.2f dB/%s%s, %u points",
        isfinite(r->db_per_mm) ? r->db_per_mm : r->db_per_100px,
        isfinite(r->db_per_mm) ? "mm" : "100 px", where, r->n);
}

unsigned oct_view_rolloff_text(const struct oct_view_model *model, struct oct_view_phrase lines[2])
{
    const struct oct_view_rolloff *r = &model->rolloff;
    if (!oct_view_model_has_rolloff(model))
        return 0;
    tell_peak(r, &lines[0]);
    if (!isfinite(r->db_per_100px))
        return 1;
    tell_rolloff(r, &lines[1]);
    return 2;
}
