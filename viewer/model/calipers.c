#include "viewer/model/measure.h"

#include "pipeline/wire/wire.h"

#include <stdio.h>
#include <string.h>

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
    struct oct_view_caliper *held = &calipers->shown.caliper[calipers->shown.held];

    if (!held->is_set)
        oct_view_calipers_add(calipers, from, to);
    else
        *held = (struct oct_view_caliper){true, {from, to}};
}

bool oct_view_calipers_hold_next(struct oct_view_calipers *calipers)
{
    struct oct_view_caliper_set *set = &calipers->shown;

    for (unsigned i = set->held + 1; i < OCT_VIEW_MOST_CALIPERS; i++)
        if (set->caliper[i].is_set) {
            set->held = i;
            return true;
        }
    set->held = 0;
    for (unsigned i = 0; i < OCT_VIEW_MOST_CALIPERS; i++)
        if (set->caliper[i].is_set) {
            set->held = i;
            break;
        }
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

static struct oct_view_kept_calipers *find(struct oct_view_calipers *calipers,
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

static void keep(struct oct_view_calipers *calipers)
{
    struct oct_view_kept_calipers *place = find(calipers, &calipers->of);

    if (oct_view_calipers_count(calipers) == 0) {
        if (place)
            place->turn = 0;
        return;
    }
    if (!place)
        place = make_room(calipers);
    *place = (struct oct_view_kept_calipers){calipers->of, calipers->shown, ++calipers->turn};
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
        keep(calipers);
        const struct oct_view_kept_calipers *place = find(calipers, &of);
        if (place)
            calipers->shown = place->set;
        else if (!freezes)
            oct_view_calipers_clear(calipers);
    }
    calipers->of = of;
}
