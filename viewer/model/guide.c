#include "viewer/model/guide.h"

#include "pipeline/base/clock.h"
#include "viewer/model/model.h"
#include "viewer/model/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the guide ---- */

#define SMOOTH_S 1.0
#define ANEW_NS (2 * OCT_NS_PER_S) /* after so long without a picture */
#define NEAR_NS OCT_NS_PER_S       /* a spectrum this far from a picture speaks of it */
#define MOTION_NS OCT_NS_PER_S

#define MOST_SATURATED 0.02
#define OF_A_JUMP 0.7

/* The number changes, and a move is asked for, by more than it takes to keep it. */
#define TO_CHANGE 0.7
#define TO_MOVE 0.03
#define TO_STAY 0.01
#define COVERED_BY_TISSUE 0.5 /* of a picture: there is some */
#define LEAST_THICKNESS 0.06  /* of the depth: a mirror has 0.03, a retina 0.2 */
#define COVERED_TO_MOVE 0.3

static double share(double x)
{
    return fmin(1, fmax(0, x));
}

bool oct_view_sight_of(const struct oct_view_picture *picture, bool log, struct oct_sight *sight)
{
    const struct oct_picture_header *h = &picture->header;
    const struct oct_sight_picture from = {picture->pixels, h->sample_type, h->n_lines, h->depth,
                                           h->lo,           h->hi,          log};
    return oct_sight_of(&from, sight);
}

/* ---- what is known of the moment of a picture ---- */

void oct_view_guide_take_spectrum(struct oct_view_guide *guide,
                                  const struct oct_view_spectrum *spectrum, uint32_t n_lines)
{
    const double n = (double)spectrum->n_samples * n_lines;
    uint16_t most = 0;
    if (guide->held || n == 0 || spectrum->limit == 0)
        return;
    for (uint32_t i = 0; i < spectrum->n_samples; i++)
        most = spectrum->sample[i] > most ? spectrum->sample[i] : most;
    const unsigned at = guide->n_light++ % OCT_VIEW_GUIDE_SPECTRA;
    guide->light[at].arrival_ns = spectrum->arrival_ns;
    guide->light[at].saturated = share((double)spectrum->n_saturated / n);
    guide->light[at].used = share((double)most / spectrum->limit);
}

static void find_light(const struct oct_view_guide *guide, uint64_t at_ns,
                       struct oct_view_guide_measures *now)
{
    uint64_t nearest_ns = NEAR_NS;
    for (unsigned i = 0; i < OCT_VIEW_GUIDE_SPECTRA && i < guide->n_light; i++) {
        const uint64_t ns = guide->light[i].arrival_ns;
        const uint64_t apart_ns = ns > at_ns ? ns - at_ns : at_ns - ns;
        if (apart_ns >= nearest_ns)
            continue;
        nearest_ns = apart_ns;
        now->saturated = guide->light[i].saturated;
        now->used = guide->light[i].used;
    }
}

static void find_motion(const struct oct_view_quality *quality, uint64_t at_ns,
                        struct oct_view_guide_measures *now)
{
    const uint64_t last = at_ns / OCT_VIEW_TIMELINE_BIN_NS;
    const uint64_t n_bins = MOTION_NS / OCT_VIEW_TIMELINE_BIN_NS;
    unsigned n = 0, n_blinks = 0, n_jumps = 0;
    for (uint64_t bin = last >= n_bins ? last - n_bins + 1 : 0; bin <= last; bin++) {
        const struct oct_view_moment *m = oct_view_quality_moment(quality, bin);
        n += m != NULL;
        n_blinks += m && m->marks & OCT_MARK_BLINK;
        n_jumps += m && m->marks & OCT_MARK_MOTION;
    }
    if (n == 0)
        return;
    now->blinks = (double)n_blinks / n;
    now->jumps = n_jumps;
}

/* Of a picture in playback the rest is not known: it is of what comes now. */
static struct oct_view_guide_measures measure(const struct oct_view_model *model, bool is_recorded)
{
    const struct oct_view_guide *guide = &model->guide;
    const uint64_t at_ns = model->shown.arrival_ns;
    struct oct_view_guide_measures now = {
        .saturated = NAN, .used = NAN, .blinks = NAN, .jumps = NAN};
    oct_view_sight_of(&model->shown, model->contrast.log, &now.sight);
    if (!is_recorded) {
        find_light(guide, at_ns, &now);
        find_motion(guide->held ? &guide->quality : &model->quality, at_ns, &now);
    }
    return now;
}

/* ---- steady ---- */

static void smooth_one(double *value, double now, double pace)
{
    *value = isnan(now) || isnan(*value) ? now : *value + pace * (now - *value);
}

static void smooth(struct oct_view_guide_measures *m, const struct oct_view_guide_measures *now,
                   double pace)
{
    m->sight.covered += pace * (now->sight.covered - m->sight.covered);
    m->sight.signal_db += pace * (now->sight.signal_db - m->sight.signal_db);
    if (now->sight.covered > 0) { /* in a blink the tissue stays where it was */
        smooth_one(&m->sight.top, now->sight.top, pace);
        smooth_one(&m->sight.bottom, now->sight.bottom, pace);
    }
    smooth_one(&m->saturated, now->saturated, pace);
    smooth_one(&m->used, now->used, pace);
    smooth_one(&m->blinks, now->blinks, pace);
    smooth_one(&m->jumps, now->jumps, pace);
}

/* ---- the parts ---- */

static void find_parts(struct oct_view_guide *g)
{
    const struct oct_view_guide_measures *m = &g->measured;
    const struct oct_sight_place place = oct_sight_place(&m->sight);
    g->upper = place.upper;
    g->lower = place.lower;
    g->off = place.off;
    g->part[OCT_GUIDE_PLACE] = place.part;
    g->part[OCT_GUIDE_SIGNAL] = oct_sight_signal(&m->sight);
    g->part[OCT_GUIDE_LIGHT] =
        isnan(m->saturated) ? NAN : share(1 - sqrt(m->saturated / MOST_SATURATED));
    g->part[OCT_GUIDE_MOTION] =
        isnan(m->blinks) ? NAN : share((1 - m->blinks) * pow(OF_A_JUMP, m->jumps));
    g->index = 10;
    for (unsigned i = 0; i < OCT_GUIDE_N_PARTS; i++)
        g->index *= isnan(g->part[i]) ? 1 : g->part[i];
}

/* ---- when ---- */

static bool is_held(enum oct_view_show show)
{
    return show == OCT_SHOW_FROZEN || show == OCT_SHOW_PLAYBACK;
}

void oct_view_guide_see(struct oct_view_model *model)
{
    struct oct_view_guide *g = &model->guide;
    const struct oct_view_picture *p = &model->shown;
    const enum oct_view_show show = oct_view_show(model);
    const bool held = is_held(show);
    /* Whether the picture has no past to be smoothed with. */
    const bool anew = !g->known || held || g->held || p->arrival_ns < g->arrival_ns ||
                      p->arrival_ns - g->arrival_ns > ANEW_NS ||
                      strcmp(p->header.acquisition_id, g->acquisition_id) != 0;
    if (!model->has_picture || (g->known && g->serial == model->serial && g->held == held))
        return;
    if (held && !g->held)
        g->quality = model->quality;
    g->held = held;
    const struct oct_view_guide_measures now = measure(model, show == OCT_SHOW_PLAYBACK);
    const double dt_s = anew ? 0 : (double)(p->arrival_ns - g->arrival_ns) / (double)OCT_NS_PER_S;
    if (anew)
        g->measured = now;
    else
        smooth(&g->measured, &now, 1 - exp(-dt_s / SMOOTH_S));
    find_parts(g);
    if (strcmp(p->header.acquisition_id, g->acquisition_id) != 0)
        g->seen_tissue = false;
    g->seen_tissue = g->seen_tissue || (now.sight.covered >= COVERED_BY_TISSUE &&
                                        now.sight.bottom - now.sight.top >= LEAST_THICKNESS);
    const double least = !anew && g->move != OCT_GUIDE_STAY ? TO_STAY : TO_MOVE;
    g->move = !(fabs(g->off) > least) || g->measured.sight.covered < COVERED_TO_MOVE
                  ? OCT_GUIDE_STAY
              : g->off > 0 ? OCT_GUIDE_CLOSER
                           : OCT_GUIDE_AWAY;
    if (anew || fabs(g->index - g->number) > TO_CHANGE)
        g->number = (int)lround(g->index);
    g->known = true;
    g->serial = model->serial;
    g->arrival_ns = p->arrival_ns;
    memcpy(g->acquisition_id, p->header.acquisition_id, sizeof(g->acquisition_id));
}

static bool is_of_an_eye(const struct oct_view_model *model)
{
    return model->guide.seen_tissue || model->settings.operators ||
           oct_view_patient_eye(model)[0] != '\0';
}

bool oct_view_guide_leads(const struct oct_view_model *model)
{
    const enum oct_view_show show = oct_view_show(model);
    return model->settings.guide && model->guide.known && is_of_an_eye(model) &&
           (show == OCT_SHOW_LIVE || show == OCT_SHOW_AVERAGED);
}

bool oct_view_guide_has_number(const struct oct_view_model *model)
{
    if (model->playback.active && model->playback.file.what[0])
        return false; /* no eye was looked at */
    return oct_view_guide_leads(model) ||
           (model->settings.guide && model->guide.known && is_of_an_eye(model) &&
            model->has_picture && is_held(oct_view_show(model)));
}

/* ---- what it says ---- */

/* The instrument moves in air: a depth pixel's spacing in the eye times the eye's index. */
#define EYES_INDEX 1.36
#define GOOD_PART 0.7 /* less asks for something */
#define LITTLE_LIGHT 0.25

void oct_view_guide_move_text(const struct oct_view_model *model,
                              char text[OCT_VIEW_GUIDE_TEXT_BYTES])
{
    const struct oct_view_guide *g = &model->guide;
    const char *word = g->move == OCT_GUIDE_CLOSER ? "closer" : "away";
    const double mm = fabs(g->off) * model->shown.header.depth *
                      oct_view_model_scale(model).axial_um * EYES_INDEX / 1000;
    text[0] = '\0';
    if (g->move != OCT_GUIDE_STAY && mm >= 0.1)
        snprintf(text, OCT_VIEW_GUIDE_TEXT_BYTES, "%s %.1f mm", word, mm);
    else if (g->move != OCT_GUIDE_STAY)
        snprintf(text, OCT_VIEW_GUIDE_TEXT_BYTES, "%s%s", isfinite(mm) ? "a little " : "", word);
}

const char *oct_view_guide_part_name(enum oct_view_guide_part part)
{
    static const char *const names[OCT_GUIDE_N_PARTS] = {
        [OCT_GUIDE_SIGNAL] = "signal",
        [OCT_GUIDE_LIGHT] = "light",
        [OCT_GUIDE_PLACE] = "place",
        [OCT_GUIDE_MOTION] = "motion",
    };
    return names[part];
}

/* What to do about a part of less than GOOD_PART; "": nothing. */
static const char *remedy_of(const struct oct_view_guide *g, enum oct_view_guide_part part)
{
    const struct oct_view_guide_measures *m = &g->measured;
    if (part == OCT_GUIDE_SIGNAL && m->sight.covered < 0.05)
        return "look for the retina: slowly closer, then away";
    if (g->part[part] >= GOOD_PART)
        return "";
    if (part == OCT_GUIDE_SIGNAL)
        return m->used < LITTLE_LIGHT   ? "more light: the camera's range is hardly used"
               : m->sight.covered < 0.8 ? "centre the pupil: part of the picture is dark"
                                        : "focus, centre the pupil, clean the lens";
    if (part == OCT_GUIDE_LIGHT)
        return "less light on the reference arm, or a shorter exposure";
    return m->blinks > 1 - pow(GOOD_PART, m->jumps) ? "let the patient blink, then keep open"
                                                    : "let the patient look at the target";
}

void oct_view_guide_part_text(const struct oct_view_model *model, enum oct_view_guide_part part,
                              char text[OCT_VIEW_GUIDE_TEXT_BYTES],
                              char remedy[OCT_VIEW_GUIDE_TEXT_BYTES])
{
    static const char *const why[OCT_GUIDE_N_PARTS] = {
        [OCT_GUIDE_SIGNAL] = "not known",
        [OCT_GUIDE_LIGHT] = "not known: no spectrum of this moment",
        [OCT_GUIDE_PLACE] = "not known: no tissue is seen",
        [OCT_GUIDE_MOTION] = "not known: octd says nothing of this moment",
    };
    const struct oct_view_guide *g = &model->guide;
    const struct oct_view_guide_measures *m = &g->measured;
    const bool is_known = g->known && !isnan(g->part[part]);
    const size_t n = OCT_VIEW_GUIDE_TEXT_BYTES;
    snprintf(remedy, n, "%s", is_known ? remedy_of(g, part) : "");
    if (!is_known)
        snprintf(text, n, "%s", why[part]);
    else if (part == OCT_GUIDE_SIGNAL && m->sight.covered < 0.05)
        snprintf(text, n, "no tissue is seen");
    else if (part == OCT_GUIDE_SIGNAL)
        snprintf(text, n, "%.0f dB above the noise", m->sight.signal_db);
    else if (part == OCT_GUIDE_LIGHT && m->saturated > 0)
        snprintf(text, n, "%.2g %% of the camera's samples at its limit", 100 * m->saturated);
    else if (part == OCT_GUIDE_LIGHT)
        snprintf(text, n, "no sample at the camera's limit");
    else if (part == OCT_GUIDE_MOTION)
        snprintf(text, n, "%.0f jump%s in a second, blinks %.0f %% of it", m->jumps,
                 lround(m->jumps) == 1 ? "" : "s", 100 * m->blinks);
    else
        snprintf(text, n, "tissue from %.0f to %.0f %% of the depth", 100 * m->sight.top,
                 100 * m->sight.bottom);
    if (is_known && part == OCT_GUIDE_PLACE)
        oct_view_guide_move_text(model, remedy);
}
