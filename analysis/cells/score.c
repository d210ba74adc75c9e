#include "analysis/cells/score.h"

#include "analysis/cells/link.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Which found track a true track was last paired with. */
struct tie {
    uint64_t track, found;
    bool is_tied;
};

struct judge {
    struct oct_score_cell *truth, *found;
    size_t n_true, n_found;
    double distance;
    struct tie *ties; /* one a true track, in order of number */
    size_t n_ties;
    bool *is_true_paired, *is_found_paired; /* [n_true], [n_found] */
    struct oct_link_track *links;           /* what is left of a frame */
    struct oct_link_cell *link_cells;
    size_t *true_of, *found_of;
    int32_t *pair;
    double squares;
    struct oct_cells_score *score;
};

/* The cells of one frame. */
struct scene {
    size_t first_true, end_true, first_found, end_found;
};

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_cells(const void *a, const void *b)
{
    const struct oct_score_cell *p = a, *q = b;
    int order = compare_numbers(p->frame, q->frame);
    if (order == 0)
        order = compare_numbers(p->track, q->track);
    if (order == 0 && p->y != q->y)
        order = p->y < q->y ? -1 : 1;
    if (order == 0 && p->x != q->x)
        order = p->x < q->x ? -1 : 1;
    return order;
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
    return compare_numbers(((const struct tie *)a)->track, ((const struct tie *)b)->track);
}

static void list_ties(struct judge *j)
{
    for (size_t i = 0; i < j->n_true; i++)
        j->ties[i] = (struct tie){.track = j->truth[i].track};
    if (j->n_true > 0)
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
    j->score->n_switches += tie->is_tied && tie->found != found;
    *tie = (struct tie){track, found, true};
}

static int compare_tracks(const void *a, const void *b)
{
    return compare_numbers(((const struct oct_score_cell *)a)->track,
                           ((const struct oct_score_cell *)b)->track);
}

static void keep_pairs(struct judge *j, const struct scene *s)
{
    for (size_t t = s->first_true; t < s->end_true; t++) {
        const struct tie *tie = j->truth[t].track ? tie_of(j, j->truth[t].track) : NULL;
        if (!tie || !tie->is_tied)
            continue;
        /* Found cells of a frame are in order of track. */
        const struct oct_score_cell key = {.track = tie->found};
        const struct oct_score_cell *cell =
            bsearch(&key, j->found + s->first_found, s->end_found - s->first_found, sizeof *cell,
                    compare_tracks);
        const size_t f = cell ? (size_t)(cell - j->found) : 0;
        if (cell && !j->is_found_paired[f] &&
            squared_distance(j, t, f) <= j->distance * j->distance)
            match(j, t, f);
    }
}

static enum oct_err pair_others(struct judge *j, const struct scene *s, struct oct_error *err)
{
    unsigned n = 0, m = 0;
    for (size_t t = s->first_true; t < s->end_true; t++)
        if (!j->is_true_paired[t]) {
            j->links[n] = (struct oct_link_track){j->truth[t].x, j->truth[t].y, j->distance, 1};
            j->true_of[n++] = t;
        }
    for (size_t f = s->first_found; f < s->end_found; f++)
        if (!j->is_found_paired[f]) {
            j->link_cells[m] = (struct oct_link_cell){j->found[f].x, j->found[f].y};
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
    struct scene s = {0};
    while (s.end_true < j->n_true || s.end_found < j->n_found) {
        uint64_t frame = UINT64_MAX;
        s.first_true = s.end_true;
        s.first_found = s.end_found;
        if (s.first_true < j->n_true)
            frame = j->truth[s.first_true].frame;
        if (s.first_found < j->n_found && j->found[s.first_found].frame < frame)
            frame = j->found[s.first_found].frame;
        while (s.end_true < j->n_true && j->truth[s.end_true].frame == frame)
            s.end_true++;
        while (s.end_found < j->n_found && j->found[s.end_found].frame == frame)
            s.end_found++;
        keep_pairs(j, &s);
        const enum oct_err e = pair_others(j, &s, err);
        if (e)
            return e;
    }
    return OCT_OK;
}

/* ---- all frames ---- */

static bool open_judge(struct judge *j)
{
    const size_t n = j->n_true + 1, m = j->n_found + 1;
    j->ties = malloc(n * sizeof *j->ties);
    j->is_true_paired = calloc(n, sizeof *j->is_true_paired);
    j->is_found_paired = calloc(m, sizeof *j->is_found_paired);
    j->links = malloc(n * sizeof *j->links);
    j->link_cells = malloc(m * sizeof *j->link_cells);
    j->true_of = malloc(n * sizeof *j->true_of);
    j->found_of = malloc(m * sizeof *j->found_of);
    j->pair = malloc(n * sizeof *j->pair);
    return j->ties && j->is_true_paired && j->is_found_paired && j->links && j->link_cells &&
           j->true_of && j->found_of && j->pair;
}

static void close_judge(struct judge *j)
{
    free(j->ties);
    free(j->is_true_paired);
    free(j->is_found_paired);
    free(j->links);
    free(j->link_cells);
    free(j->true_of);
    free(j->found_of);
    free(j->pair);
}

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
    if (!e && !open_judge(&j))
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory to compare %zu cells with %zu", n_found,
                     n_true);
    if (!e) {
        list_ties(&j);
        e = judge_frames(&j, err);
    }
    if (!e)
        sum_up(&j, score);
    close_judge(&j);
    return e;
}
