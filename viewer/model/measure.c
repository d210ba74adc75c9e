#include "viewer/model/measure.h"

#include "pipeline/wire/wire.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool oct_view_proportion_known(double across_um, double down_um)
{
    double ratio = across_um / down_um;
    return isfinite(ratio) && ratio > 0;
}

double oct_view_proportion(uint32_t n_across, double across_um, uint32_t n_down, double down_um)
{
    double pixels = n_down ? (double)n_across / n_down : 1;
    return oct_view_proportion_known(across_um, down_um) ? pixels * (across_um / down_um) : pixels;
}

double oct_view_distance_um(struct oct_view_point a, struct oct_view_point b,
                            struct oct_view_scale scale)
{
    double lines = b.line - a.line, depth = b.depth - a.depth;
    /* A length straight down needs no lateral spacing, and the other way round. */
    double across = lines == 0 ? 0 : lines * scale.lateral_um;
    double deep = depth == 0 ? 0 : depth * scale.axial_um;
    return hypot(across, deep);
}

void oct_view_distance_text(struct oct_view_point a, struct oct_view_point b,
                            struct oct_view_scale scale, char *text, size_t n_bytes)
{
    double um = oct_view_distance_um(a, b, scale);
    double lines = fabs(b.line - a.line), depth = fabs(b.depth - a.depth);
    if (isfinite(um))
        snprintf(text, n_bytes, "%.1f \u00b5m (across %.1f, deep %.1f)", um,
                 lines == 0 ? 0 : lines * scale.lateral_um,
                 depth == 0 ? 0 : depth * scale.axial_um);
    else if (isfinite(scale.axial_um))
        snprintf(text, n_bytes, "across %.1f A-lines, deep %.1f \u00b5m", lines,
                 depth * scale.axial_um);
    else
        snprintf(text, n_bytes, "across %.1f A-lines, deep %.1f pixels", lines, depth);
}

double oct_view_scale_bar_um(double most_um)
{
    if (!isfinite(most_um) || most_um < 1e-6)
        return 0;
    double power = pow(10, floor(log10(most_um) + 1e-12));
    return power * (most_um >= 5 * power ? 5 : most_um >= 2 * power ? 2 : 1);
}

void oct_view_length_text(double um, char *text, size_t n_bytes)
{
    if (um >= 1000)
        snprintf(text, n_bytes, "%g mm", um / 1000);
    else
        snprintf(text, n_bytes, "%g \u00b5m", um);
}

/* ---- calipers ---- */

unsigned oct_view_calipers_count(const struct oct_view_calipers *calipers)
{
    unsigned n = 0;
    for (unsigned i = 0; i < OCT_VIEW_MOST_CALIPERS; i++)
        n += calipers->shown.caliper[i].is_set;
    return n;
}

const struct oct_view_caliper *oct_view_calipers_held(const struct oct_view_calipers *calipers)
{
    const struct oct_view_caliper *held = &calipers->shown.caliper[calipers->shown.held];
    return held->is_set ? held : NULL;
}

bool oct_view_calipers_add(struct oct_view_calipers *calipers, struct oct_view_point from,
                           struct oct_view_point to)
{
    struct oct_view_caliper_set *set = &calipers->shown;
    for (unsigned i = 0; i < OCT_VIEW_MOST_CALIPERS; i++)
        if (!set->caliper[i].is_set) {
            set->caliper[i] = (struct oct_view_caliper){true, {from, to}};
            set->held = i;
            return true;
        }
    return false;
}

void oct_view_calipers_move(struct oct_view_calipers *calipers, struct oct_view_point from,
                            struct oct_view_point to)
{
    if (oct_view_calipers_held(calipers))
        calipers->shown.caliper[calipers->shown.held] = (struct oct_view_caliper){true, {from, to}};
    else
        oct_view_calipers_add(calipers, from, to);
}

bool oct_view_calipers_hold_next(struct oct_view_calipers *calipers)
{
    struct oct_view_caliper_set *set = &calipers->shown;
    for (unsigned k = 1; k <= OCT_VIEW_MOST_CALIPERS; k++) {
        const unsigned i = (set->held + k) % OCT_VIEW_MOST_CALIPERS;
        if (set->caliper[i].is_set) {
            const bool is_after = i > set->held;
            set->held = i;
            return is_after;
        }
    }
    set->held = 0;
    return false;
}

void oct_view_calipers_remove(struct oct_view_calipers *calipers)
{
    calipers->shown.caliper[calipers->shown.held].is_set = false;
    oct_view_calipers_hold_next(calipers);
}

void oct_view_calipers_clear(struct oct_view_calipers *calipers)
{
    memset(&calipers->shown, 0, sizeof(calipers->shown));
}

/* ---- whose they are ---- */

static bool is_same_picture(const struct oct_view_calipers_of *a,
                            const struct oct_view_calipers_of *b)
{
    return a->n_lines == b->n_lines && a->depth == b->depth && a->frame_num == b->frame_num &&
           strcmp(a->source, b->source) == 0;
}

/* Whether one set belongs to both. */
static bool share_a_set(const struct oct_view_calipers_of *a, const struct oct_view_calipers_of *b)
{
    if (a->stands || b->stands)
        return a->stands && b->stands && is_same_picture(a, b);
    return a->n_lines == b->n_lines && a->depth == b->depth;
}

static struct oct_view_kept_calipers *find_kept(struct oct_view_calipers *calipers,
                                                const struct oct_view_calipers_of *of)
{
    for (unsigned i = 0; i < OCT_VIEW_KEPT_CALIPERS; i++)
        if (calipers->kept[i].turn > 0 && share_a_set(&calipers->kept[i].of, of))
            return &calipers->kept[i];
    return NULL;
}

/* A free place; else that of the standing picture kept the longest, so that the live ones stay. */
static struct oct_view_kept_calipers *make_room(struct oct_view_calipers *calipers)
{
    struct oct_view_kept_calipers *oldest = NULL;
    for (unsigned i = 0; i < OCT_VIEW_KEPT_CALIPERS; i++) {
        struct oct_view_kept_calipers *k = &calipers->kept[i];
        if (k->turn == 0)
            return k;
        if (k->of.stands && (!oldest || k->turn < oldest->turn))
            oldest = k;
    }
    return oldest ? oldest : &calipers->kept[0];
}

static void keep_shown(struct oct_view_calipers *calipers)
{
    struct oct_view_kept_calipers *place = find_kept(calipers, &calipers->of);
    if (oct_view_calipers_count(calipers) > 0)
        *(place ? place : make_room(calipers)) =
            (struct oct_view_kept_calipers){calipers->of, calipers->shown, ++calipers->turn};
    else if (place)
        place->turn = 0;
}

void oct_view_calipers_show(struct oct_view_calipers *calipers,
                            const struct oct_picture_header *picture, bool stands,
                            const char *source)
{
    struct oct_view_calipers_of of = {.stands = stands,
                                      .frame_num = picture->frame_num,
                                      .n_lines = picture->n_lines,
                                      .depth = picture->depth};
    snprintf(of.source, sizeof(of.source), "%s", source);
    if (!share_a_set(&calipers->of, &of)) {
        bool freezes = stands && !calipers->of.stands && is_same_picture(&calipers->of, &of);
        keep_shown(calipers);
        const struct oct_view_kept_calipers *place = find_kept(calipers, &of);
        if (place)
            calipers->shown = place->set;
        else if (!freezes)
            oct_view_calipers_clear(calipers);
    }
    calipers->of = of;
}
