/* What the guide says: its parts, what to do about them, and which way to move. */
#include "viewer/model/guide.h"
#include "viewer/model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The instrument moves in air: a depth pixel's spacing in the eye times the eye's index. */
#define EYES_INDEX 1.36
#define GOOD_PART 0.7 /* less asks for something */
#define LITTLE_LIGHT 0.25

static const char *move_word(enum oct_view_guide_move move)
{
    return move == OCT_GUIDE_CLOSER ? "closer" : "away";
}

void oct_view_guide_move_text(const struct oct_view_model *model,
                              char text[OCT_VIEW_GUIDE_TEXT_BYTES])
{
    const struct oct_view_guide *g = &model->guide;
    const double mm = fabs(g->off) * model->shown.header.depth *
                      oct_view_model_scale(model).axial_um * EYES_INDEX / 1000;

    text[0] = '\0';
    if (g->move == OCT_GUIDE_STAY)
        return;
    if (mm >= 0.1)
        snprintf(text, OCT_VIEW_GUIDE_TEXT_BYTES, "%s %.1f mm", move_word(g->move), mm);
    else
        snprintf(text, OCT_VIEW_GUIDE_TEXT_BYTES, "%s%s", isfinite(mm) ? "a little " : "",
                 move_word(g->move));
}

static void signal_text(const struct oct_view_guide *g, char *text, char *remedy)
{
    const struct oct_view_guide_measures *m = &g->measured;
    const char *what = "";

    snprintf(text, OCT_VIEW_GUIDE_TEXT_BYTES, "%.0f dB above the noise", m->sight.signal_db);
    if (m->sight.covered < 0.05)
        snprintf(text, OCT_VIEW_GUIDE_TEXT_BYTES, "no tissue is seen");
    if (m->sight.covered < 0.05)
        what = "look for the retina: slowly closer, then away";
    else if (g->part[OCT_GUIDE_SIGNAL] >= GOOD_PART)
        what = "";
    else if (m->used < LITTLE_LIGHT)
        what = "more light: the camera's range is hardly used";
    else if (m->sight.covered < 0.8)
        what = "centre the pupil: part of the picture is dark";
    else
        what = "focus, centre the pupil, clean the lens";
    snprintf(remedy, OCT_VIEW_GUIDE_TEXT_BYTES, "%s", what);
}

static void light_text(const struct oct_view_guide *g, char *text, char *remedy)
{
    const double percent = 100 * g->measured.saturated;

    if (percent > 0)
        snprintf(text, OCT_VIEW_GUIDE_TEXT_BYTES, "%.2g %% of the camera's samples at its limit",
                 percent);
    else
        snprintf(text, OCT_VIEW_GUIDE_TEXT_BYTES, "no sample at the camera's limit");
    snprintf(remedy, OCT_VIEW_GUIDE_TEXT_BYTES, "%s",
             g->part[OCT_GUIDE_LIGHT] < GOOD_PART
                 ? "less light on the reference arm, or a shorter exposure"
                 : "");
}

static void place_text(const struct oct_view_model *model, char *text, char *remedy)
{
    const struct oct_view_guide *g = &model->guide;

    snprintf(text, OCT_VIEW_GUIDE_TEXT_BYTES, "tissue from %.0f to %.0f %% of the depth",
             100 * g->measured.sight.top, 100 * g->measured.sight.bottom);
    oct_view_guide_move_text(model, remedy);
}

static void motion_text(const struct oct_view_guide *g, char *text, char *remedy)
{
    const struct oct_view_guide_measures *m = &g->measured;
    const char *what = "";

    snprintf(text, OCT_VIEW_GUIDE_TEXT_BYTES, "%.0f jump%s in a second, blinks %.0f %% of it",
             m->jumps, lround(m->jumps) == 1 ? "" : "s", 100 * m->blinks);
    if (g->part[OCT_GUIDE_MOTION] < GOOD_PART)
        what = m->blinks > 1 - pow(GOOD_PART, m->jumps) ? "let the patient blink, then keep open"
                                                        : "let the patient look at the target";
    snprintf(remedy, OCT_VIEW_GUIDE_TEXT_BYTES, "%s", what);
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

    remedy[0] = '\0';
    snprintf(text, OCT_VIEW_GUIDE_TEXT_BYTES, "%s", why[part]);
    if (!g->known || isnan(g->part[part]))
        return;
    if (part == OCT_GUIDE_SIGNAL)
        signal_text(g, text, remedy);
    else if (part == OCT_GUIDE_LIGHT)
        light_text(g, text, remedy);
    else if (part == OCT_GUIDE_PLACE)
        place_text(model, text, remedy);
    else
        motion_text(g, text, remedy);
}
