#include "viewer/model/guide.h"

#include "viewer/model/clock.h"
#include "viewer/model/model.h"
#include "viewer/model/words.h"

#include <math.h>
#include <string.h>

#define SMOOTH_S 1.0
#define ANEW_NS (2 * OCT_NS_PER_S) /* after so long without a picture */
#define NEAR_NS OCT_NS_PER_S       /* a spectrum this far from a picture speaks of it */
#define MOTION_NS OCT_NS_PER_S

/* signal: none at the first, all from the second on. */
#define NO_SIGNAL_DB 2.0
#define FULL_SIGNAL_DB 22.0
#define MOST_SATURATED 0.02
#define OF_A_JUMP 0.7
#define OF_ROOM 0.85    /* of the way from a line to the edge: further, the tissue may be cut off */
#define LEAST_ROOM 0.02 /* of the depth */
#define LEAST_COVERED 0.10 /* with less tissue, its place is not known */

/* The number changes, and a move is asked for, by more than it takes to keep it. */
#define TO_CHANGE 0.7
#define TO_MOVE 0.03
#define TO_STAY 0.01
#define COVERED_TO_MOVE 0.3

static double share(double x)
{
    return fmin(1, fmax(0, x));
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

static struct oct_view_guide_measures measure(const struct oct_view_model *model,
                                              enum oct_view_show show)
{
    const struct oct_view_guide *guide = &model->guide;
    const uint64_t at_ns = model->shown.arrival_ns;
    struct oct_view_guide_measures now = {
        .saturated = NAN, .used = NAN, .blinks = NAN, .jumps = NAN};

    oct_view_sight_of(&model->shown, model->contrast.log, &now.sight);
    if (show == OCT_SHOW_PLAYBACK) /* the rest is of what comes now */
        return now;
    find_light(guide, at_ns, &now);
    find_motion(guide->held ? &guide->quality : &model->quality, at_ns, &now);
    return now;
}

/* ---- steady ---- */

static void follow(double *value, double now, double pace)
{
    *value = isnan(now) || isnan(*value) ? now : *value + pace * (now - *value);
}

static void smooth(struct oct_view_guide_measures *m, const struct oct_view_guide_measures *now,
                   double pace)
{
    m->sight.covered += pace * (now->sight.covered - m->sight.covered);
    m->sight.signal_db += pace * (now->sight.signal_db - m->sight.signal_db);
    if (now->sight.covered > 0) { /* in a blink the tissue stays where it was */
        follow(&m->sight.top, now->sight.top, pace);
        follow(&m->sight.bottom, now->sight.bottom, pace);
    }
    follow(&m->saturated, now->saturated, pace);
    follow(&m->used, now->used, pace);
    follow(&m->blinks, now->blinks, pace);
    follow(&m->jumps, now->jumps, pace);
}

/* ---- the parts ---- */

/* The lines, further apart for tissue that needs more room, and how far it lies off them. */
static void find_place(struct oct_view_guide *g)
{
    const struct oct_view_sight *s = &g->measured.sight;
    const double band = OCT_VIEW_GUIDE_LOWER - OCT_VIEW_GUIDE_UPPER, thick = s->bottom - s->top;

    g->upper = OCT_VIEW_GUIDE_UPPER;
    g->lower = OCT_VIEW_GUIDE_LOWER;
    g->off = NAN;
    g->part[OCT_GUIDE_PLACE] = NAN;
    if (isnan(thick) || s->covered < LEAST_COVERED)
        return;
    if (thick > band) {
        g->upper *= (1 - thick) / (1 - band);
        g->lower = g->upper + thick;
    }
    g->off = s->top < g->upper ? s->top - g->upper : fmax(0, s->bottom - g->lower);
    const double room = g->off < 0 ? g->upper : 1 - g->lower;
    g->part[OCT_GUIDE_PLACE] = share(1 - fabs(g->off) / fmax(OF_ROOM * room, LEAST_ROOM));
}

static void find_parts(struct oct_view_guide *g)
{
    const struct oct_view_guide_measures *m = &g->measured;

    find_place(g);
    g->part[OCT_GUIDE_SIGNAL] =
        share((m->sight.signal_db - NO_SIGNAL_DB) / (FULL_SIGNAL_DB - NO_SIGNAL_DB));
    g->part[OCT_GUIDE_LIGHT] =
        isnan(m->saturated) ? NAN : share(1 - sqrt(m->saturated / MOST_SATURATED));
    g->part[OCT_GUIDE_MOTION] =
        isnan(m->blinks) ? NAN : share((1 - m->blinks) * pow(OF_A_JUMP, m->jumps));
    g->index = 10;
    for (unsigned i = 0; i < OCT_GUIDE_N_PARTS; i++)
        g->index *= isnan(g->part[i]) ? 1 : g->part[i];
}

static void find_move(struct oct_view_guide *g, bool anew)
{
    const double least = !anew && g->move != OCT_GUIDE_STAY ? TO_STAY : TO_MOVE;

    if (!(fabs(g->off) > least) || g->measured.sight.covered < COVERED_TO_MOVE)
        g->move = OCT_GUIDE_STAY;
    else
        g->move = g->off > 0 ? OCT_GUIDE_CLOSER : OCT_GUIDE_AWAY;
}

/* ---- when ---- */

static bool is_held(enum oct_view_show show)
{
    return show == OCT_SHOW_FROZEN || show == OCT_SHOW_PLAYBACK;
}

/* Whether the picture has no past to be smoothed with. */
static bool begins(const struct oct_view_model *model, bool held)
{
    const struct oct_view_guide *g = &model->guide;
    const struct oct_view_picture *p = &model->shown;

    return !g->known || held || g->held || p->arrival_ns < g->arrival_ns ||
           p->arrival_ns - g->arrival_ns > ANEW_NS ||
           strcmp(p->header.acquisition_id, g->acquisition_id) != 0;
}

void oct_view_guide_see(struct oct_view_model *model)
{
    struct oct_view_guide *g = &model->guide;
    const struct oct_view_picture *p = &model->shown;
    const enum oct_view_show show = oct_view_show(model);
    const bool held = is_held(show), anew = begins(model, held);

    if (!model->has_picture || (g->known && g->serial == model->serial && g->held == held))
        return;
    if (held && !g->held)
        g->quality = model->quality;
    g->held = held;
    const struct oct_view_guide_measures now = measure(model, show);
    const double dt_s = anew ? 0 : (double)(p->arrival_ns - g->arrival_ns) / (double)OCT_NS_PER_S;
    if (anew)
        g->measured = now;
    else
        smooth(&g->measured, &now, 1 - exp(-dt_s / SMOOTH_S));
    find_parts(g);
    find_move(g, anew);
    if (anew || fabs(g->index - g->number) > TO_CHANGE)
        g->number = (int)lround(g->index);
    g->known = true;
    g->serial = model->serial;
    g->arrival_ns = p->arrival_ns;
    memcpy(g->acquisition_id, p->header.acquisition_id, sizeof(g->acquisition_id));
}

bool oct_view_guide_leads(const struct oct_view_model *model)
{
    const enum oct_view_show show = oct_view_show(model);

    return model->settings.guide && model->guide.known &&
           (show == OCT_SHOW_LIVE || show == OCT_SHOW_AVERAGED);
}

bool oct_view_guide_has_number(const struct oct_view_model *model)
{
    if (model->playback.active && model->playback.file.what[0])
        return false; /* no eye was looked at */
    return oct_view_guide_leads(model) || (model->settings.guide && model->guide.known &&
                                           model->has_picture && is_held(oct_view_show(model)));
}
