#include "analysis/cells/score.h"

#include "analysis/cells/track.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Which found track a true track was last paired with; 0: none. */
struct tie {
    uint64_t track, found;
};

/* A frame's cells are first .. end - 1 of each list, in order of track. */
struct judge {
    struct oct_score_cell *truth, *found;
    size_t n_true, n_found, first_true, end_true, first_found, end_found;
    double distance;
    struct tie *ties; /* one a true track, in order of number */
    size_t n_ties;
    bool *is_true_paired, *is_found_paired; /* [n_true], [n_found] */
    struct oct_link_track *links;           /* what is left of a frame */
    struct oct_cell *link_cells;
    size_t *true_of, *found_of;
    int32_t *pair;
    double squares;
    struct oct_cells_score *score;
};

static int compare_tracks(const void *a, const void *b)
{
    const struct oct_score_cell *p = a, *q = b;
    return (p->track > q->track) - (p->track < q->track);
}

static int compare_cells(const void *a, const void *b)
{
    const struct oct_score_cell *p = a, *q = b;
    if (p->frame != q->frame)
        return p->frame < q->frame ? -1 : 1;
    if (p->track != q->track)
        return p->track < q->track ? -1 : 1;
    return p->y != q->y ? p->y < q->y ? -1 : 1 : (p->x > q->x) - (p->x < q->x);
}

static enum oct_err sort_cells(struct oct_score_cell *cells, size_t n, const char *what,
                               struct oct_error *err)
{
    if (n > 0)
        qsort(cells, n, sizeof *cells, compare_cells);
    for (size_t i = 1; i < n; i++)
        if (cells[i].track != 0 && cells[i].track == cells[i - 1].track &&
            cells[i].frame == cells[i - 1].frame)
            return oct_fail(err, OCT_E_FORMAT, "%s: track %llu is twice in frame %llu", what,
                            (unsigned long long)cells[i].track, (unsigned long long)cells[i].frame);
    return OCT_OK;
}

/* ---- ties ---- */

static int compare_ties(const void *a, const void *b)
{
    const struct tie *p = a, *q = b;
    return (p->track > q->track) - (p->track < q->track);
}

static void list_ties(struct judge *j)
{
    for (size_t i = 0; i < j->n_true; i++)
        j->ties[i] = (struct tie){.track = j->truth[i].track};
    qsort(j->ties, j->n_true, sizeof *j->ties, compare_ties);
    for (size_t i = 0; i < j->n_true; i++)
        if (j->n_ties == 0 || j->ties[j->n_ties - 1].track != j->ties[i].track)
            j->ties[j->n_ties++] = j->ties[i];
}

static struct tie *tie_of(const struct judge *j, uint64_t track)
{
    const struct tie key = {.track = track};
    return bsearch(&key, j->ties, j->n_ties, sizeof *j->ties, compare_ties);
}

/* ---- one frame ---- */

static double squared_distance(const struct judge *j, size_t t, size_t f)
{
    const double dx = j->truth[t].x - j->found[f].x, dy = j->truth[t].y - j->found[f].y;
    return dx * dx + dy * dy;
}

static void match(struct judge *j, size_t t, size_t f)
{
    const uint64_t track = j->truth[t].track, found = j->found[f].track;
    j->is_true_paired[t] = j->is_found_paired[f] = true;
    j->squares += squared_distance(j, t, f);
    j->score->n_matches++;
    if (track == 0 || found == 0)
        return;
    struct tie *tie = tie_of(j, track);
    j->score->n_switches += tie->found != 0 && tie->found != found;
    tie->found = found;
}

static void keep_pairs(struct judge *j)
{
    for (size_t t = j->first_true; t < j->end_true; t++) {
        const struct tie *tie = tie_of(j, j->truth[t].track);
        const struct oct_score_cell key = {.track = tie->found};
        const struct oct_score_cell *cell =
            tie->track == 0 || tie->found == 0
                ? NULL
                : bsearch(&key, j->found + j->first_found, j->end_found - j->first_found,
                          sizeof *cell, compare_tracks);
        const size_t f = cell ? (size_t)(cell - j->found) : 0;
        if (cell && !j->is_found_paired[f] &&
            squared_distance(j, t, f) <= j->distance * j->distance)
            match(j, t, f);
    }
}

static enum oct_err pair_others(struct judge *j, struct oct_error *err)
{
    unsigned n = 0, m = 0;
    for (size_t t = j->first_true; t < j->end_true; t++)
        if (!j->is_true_paired[t]) {
            j->links[n] = (struct oct_link_track){j->truth[t].x, j->truth[t].y, j->distance, 1};
            j->true_of[n++] = t;
        }
    for (size_t f = j->first_found; f < j->end_found; f++)
        if (!j->is_found_paired[f]) {
            j->link_cells[m] = (struct oct_cell){.x = j->found[f].x, .y = j->found[f].y};
            j->found_of[m++] = f;
        }
    const enum oct_err e = oct_cells_link(j->links, n, j->link_cells, m, j->pair, err);
    for (unsigned i = 0; i < n && !e; i++)
        if (j->pair[i] >= 0)
            match(j, j->true_of[i], j->found_of[j->pair[i]]);
    return e;
}

static enum oct_err judge_frames(struct judge *j, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    while (!e && (j->end_true < j->n_true || j->end_found < j->n_found)) {
        uint64_t frame = UINT64_MAX;
        j->first_true = j->end_true;
        j->first_found = j->end_found;
        if (j->first_true < j->n_true)
            frame = j->truth[j->first_true].frame;
        if (j->first_found < j->n_found && j->found[j->first_found].frame < frame)
            frame = j->found[j->first_found].frame;
        while (j->end_true < j->n_true && j->truth[j->end_true].frame == frame)
            j->end_true++;
        while (j->end_found < j->n_found && j->found[j->end_found].frame == frame)
            j->end_found++;
        keep_pairs(j);
        e = pair_others(j, err);
    }
    return e;
}

/* ---- all frames ---- */

static double ratio(double a, uint64_t b)
{
    return b > 0 ? a / (double)b : NAN;
}

static void sum_up(const struct judge *j, struct oct_cells_score *s)
{
    s->n_true = j->n_true;
    s->n_found = j->n_found;
    s->n_misses = s->n_true - s->n_matches;
    s->n_false = s->n_found - s->n_matches;
    s->precision = ratio((double)s->n_matches, s->n_found);
    s->recall = ratio((double)s->n_matches, s->n_true);
    s->mota = 1 - ratio((double)(s->n_misses + s->n_false + s->n_switches), s->n_true);
    s->rmse = sqrt(ratio(j->squares, s->n_matches));
}

enum oct_err oct_cells_score(struct oct_score_cell *truth, size_t n_true,
                             struct oct_score_cell *found, size_t n_found, double distance,
                             struct oct_cells_score *score, struct oct_error *err)
{
    struct judge j = {.truth = truth,
                      .found = found,
                      .n_true = n_true,
                      .n_found = n_found,
                      .distance = distance,
                      .score = score};
    *score = (struct oct_cells_score){0};
    if (!(distance > 0) || isinf(distance))
        return oct_fail(err, OCT_E_ARG,
                        "cells are matched within a distance of %g: must be above 0", distance);
    enum oct_err e = sort_cells(truth, n_true, "the truth", err);
    if (!e)
        e = sort_cells(found, n_found, "the tracks found", err);
    const size_t n = n_true + 1, m = n_found + 1;
    j.ties = malloc(n * sizeof *j.ties);
    j.is_true_paired = calloc(n, sizeof *j.is_true_paired);
    j.is_found_paired = calloc(m, sizeof *j.is_found_paired);
    j.links = malloc(n * sizeof *j.links);
    j.link_cells = malloc(m * sizeof *j.link_cells);
    j.true_of = malloc(n * sizeof *j.true_of);
    j.found_of = malloc(m * sizeof *j.found_of);
    j.pair = malloc(n * sizeof *j.pair);
    if (!e && !(j.ties && j.is_true_paired && j.is_found_paired && j.links && j.link_cells &&
                j.true_of && j.found_of && j.pair))
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory to compare %zu cells with %zu", n_found,
                     n_true);
    if (!e) {
        list_ties(&j);
        e = judge_frames(&j, err);
    }
    if (!e)
        sum_up(&j, score);
    free(j.ties);
    free(j.is_true_paired);
    free(j.is_found_paired);
    free(j.links);
    free(j.link_cells);
    free(j.true_of);
    free(j.found_of);
    free(j.pair);
    return e;
}
