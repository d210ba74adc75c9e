#include "analysis/cells/link.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NONE (-1)

/* A cell on the front of a search, at a distance from its start. */
struct front {
    double distance;
    int32_t cell;
};

/* What the innermost loop reads, side by side. dual: cost - dual of the track - dual of the cell
 * is at least 0, and 0 for pairs; 0 for cells without a track. */
struct node {
    double x, y, dual;
    double distance; /* of the search; INFINITY: not reached */
};

/* "None" of track t is column n_cells + t, whose dual is 0 always. */
struct linker {
    const struct oct_link_track *tracks;
    unsigned n_tracks, n_cells;
    struct node *nodes; /* [n_cells] */
    double *duals;      /* [n_tracks] */
    size_t *first;      /* [n_tracks + 1] */
    size_t n_pairs;     /* that are possible, as far as they are counted */
    int32_t
        *near; /* cells within the gate of track t: near[first[t] .. first[t + 1] - 1], rising */
    int32_t *pair;    /* [n_tracks] */
    int32_t *owner;   /* [n_cells]: its track, or NONE */
    int32_t *from;    /* [n_cells + n_tracks]: the track from which a column was reached */
    int32_t *reached; /* [n_cells + n_tracks]: what to clear afterwards */
    struct front *heap;
    size_t n_reached, n_heap;
};

static double squared(double dx, double dy)
{
    return dx * dx + dy * dy;
}

static double cost_of(const struct linker *l, int32_t track, int32_t cell)
{
    const struct oct_link_track *t = &l->tracks[track];
    return t->weight * squared(t->x - l->nodes[cell].x, t->y - l->nodes[cell].y);
}

static double cost_of_none(const struct linker *l, int32_t track)
{
    return l->tracks[track].weight * (l->tracks[track].gate * l->tracks[track].gate);
}

/* What a pair costs beyond the duals; below 0 by rounding alone. */
static double slack_of(const struct linker *l, int32_t track, int32_t cell)
{
    return fmax(cost_of(l, track, cell) - l->duals[track] - l->nodes[cell].dual, 0);
}

static double slack_of_none(const struct linker *l, int32_t track)
{
    return fmax(cost_of_none(l, track) - l->duals[track], 0);
}

/* ---- who is near whom ---- */

struct place {
    double along;
    int32_t track;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *p = a, *q = b;
    if (p->along != q->along)
        return p->along < q->along ? -1 : 1;
    return (p->track > q->track) - (p->track < q->track);
}

/* Tracks sorted along the longer side of the box about them. */
static struct place *sort_tracks(const struct linker *l, bool *along_y)
{
    struct place *places = malloc(l->n_tracks * sizeof *places);
    if (!places)
        return NULL;
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (unsigned t = 0; t < l->n_tracks; t++) {
        const double at[2] = {l->tracks[t].x, l->tracks[t].y};
        for (unsigned k = 0; k < 2; k++) {
            low[k] = fmin(low[k], at[k]);
            high[k] = fmax(high[k], at[k]);
        }
    }
    *along_y = high[1] - low[1] > high[0] - low[0];
    for (unsigned t = 0; t < l->n_tracks; t++)
        places[t] = (struct place){*along_y ? l->tracks[t].y : l->tracks[t].x, (int32_t)t};
    qsort(places, l->n_tracks, sizeof *places, compare_places);
    return places;
}

/* The first place that does not lie before `least`. */
static unsigned find_place(const struct place *places, unsigned n, double least)
{
    unsigned low = 0;
    while (n) {
        const unsigned half = n / 2;
        if (places[low + half].along < least) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low;
}

/* near NULL: counts possible pairs into first[t + 1] until they are too many. Else writes them,
 * cell by cell, and moves first[t] to the end of its list. */
static void visit_pairs(struct linker *l, const struct place *places, bool along_y, double widest,
                        int32_t *near)
{
    for (unsigned c = 0; c < l->n_cells && l->n_pairs <= OCT_CELLS_MOST_PAIRS; c++) {
        const double at = along_y ? l->nodes[c].y : l->nodes[c].x;
        for (unsigned i = find_place(places, l->n_tracks, at - widest);
             i < l->n_tracks && places[i].along <= at + widest; i++) {
            const int32_t t = places[i].track;
            if (cost_of(l, t, (int32_t)c) > cost_of_none(l, t))
                continue;
            if (near) {
                near[l->first[t]++] = (int32_t)c;
            } else {
                l->first[t + 1]++;
                l->n_pairs++;
            }
        }
    }
}

static enum oct_err no_memory(const struct linker *l, struct oct_error *err)
{
    return oct_fail(err, OCT_E_NO_MEMORY, "out of memory to pair %u tracks with %u cells",
                    l->n_tracks, l->n_cells);
}

static enum oct_err list_pairs(struct linker *l, const struct place *places, bool along_y,
                               struct oct_error *err)
{
    double widest = 0;
    for (unsigned t = 0; t < l->n_tracks; t++)
        widest = fmax(widest, l->tracks[t].gate);
    widest *= 1 + 1e-9; /* the distance along an axis is rounded otherwise than the square */
    visit_pairs(l, places, along_y, widest, NULL);
    if (l->n_pairs > OCT_CELLS_MOST_PAIRS)
        return oct_fail(err, OCT_E_ARG,
                        "cells: %u tracks and %u cells make more than %u pairs within the largest "
                        "speed: lower it, or raise the threshold",
                        l->n_tracks, l->n_cells, OCT_CELLS_MOST_PAIRS);
    for (unsigned t = 0; t < l->n_tracks; t++)
        l->first[t + 1] += l->first[t];
    l->near = calloc(l->n_pairs + 1, sizeof *l->near);
    l->heap = malloc((l->n_pairs + 1) * sizeof *l->heap);
    if (!l->near || !l->heap)
        return no_memory(l, err);
    visit_pairs(l, places, along_y, widest, l->near);
    memmove(l->first + 1, l->first, l->n_tracks * sizeof *l->first);
    l->first[0] = 0;
    return OCT_OK;
}

static enum oct_err find_pairs(struct linker *l, struct oct_error *err)
{
    bool along_y;
    struct place *places = sort_tracks(l, &along_y);
    if (!places)
        return no_memory(l, err);
    const enum oct_err e = list_pairs(l, places, along_y, err);
    free(places);
    return e;
}

/* ---- the front: a heap; of equal distances the lower cell comes first ---- */

static bool is_before(struct front a, struct front b)
{
    return a.distance < b.distance || (a.distance == b.distance && a.cell < b.cell);
}

static void push(struct linker *l, struct front front)
{
    size_t i = l->n_heap++;
    for (; i > 0 && is_before(front, l->heap[(i - 1) / 2]); i = (i - 1) / 2)
        l->heap[i] = l->heap[(i - 1) / 2];
    l->heap[i] = front;
}

static struct front pop(struct linker *l)
{
    const struct front top = l->heap[0], last = l->heap[--l->n_heap];
    size_t i = 0;
    for (size_t child = 1; child < l->n_heap; child = 2 * i + 1) {
        if (child + 1 < l->n_heap && is_before(l->heap[child + 1], l->heap[child]))
            child++;
        if (!is_before(l->heap[child], last))
            break;
        l->heap[i] = l->heap[child];
        i = child;
    }
    l->heap[i] = last;
    return top;
}

/* ---- one more track is paired ---- */

/* The nearest end of a path so far: a cell without a track, or NONE: `track` gets no cell. */
struct end {
    double distance;
    int32_t cell, track;
};

static void reach(struct linker *l, int32_t track, double so_far, struct end *end)
{
    const double x = l->tracks[track].x, y = l->tracks[track].y, base = so_far - l->duals[track];
    const double weight = l->tracks[track].weight;
    for (size_t i = l->first[track]; i < l->first[track + 1]; i++) {
        struct node *node = &l->nodes[l->near[i]];
        double distance = base - node->dual + weight * squared(x - node->x, y - node->y);
        distance = distance < so_far ? so_far : distance; /* by rounding alone */
        if (distance >= node->distance || distance >= end->distance)
            continue;
        const int32_t cell = l->near[i];
        if (node->distance == (double)INFINITY)
            l->reached[l->n_reached++] = cell;
        node->distance = distance;
        l->from[cell] = track;
        if (l->owner[cell] == NONE)
            *end = (struct end){distance, cell, track};
        else
            push(l, (struct front){distance, cell});
    }
    const double none = so_far + slack_of_none(l, track);
    if (none < end->distance)
        *end = (struct end){none, NONE, track};
}

/* Hands cells on along the path that leads from `start` to the end. */
static void hand_on(struct linker *l, int32_t start, struct end end)
{
    int32_t cell = end.cell, track = end.track;
    for (;;) {
        const int32_t given_up = l->pair[track];
        l->pair[track] = cell;
        if (cell != NONE)
            l->owner[cell] = track;
        if (track == start)
            return;
        cell = given_up;
        track = l->from[cell];
    }
}

static void pair_track(struct linker *l, int32_t start)
{
    struct end end = {INFINITY, NONE, start};
    l->n_heap = 0;
    l->duals[start] = 0;
    reach(l, start, 0, &end);
    while (l->n_heap > 0 && l->heap[0].distance < end.distance) {
        const struct front front = pop(l);
        if (front.distance == l->nodes[front.cell].distance)
            reach(l, l->owner[front.cell], front.distance, &end);
    }
    l->duals[start] += end.distance;
    for (size_t i = 0; i < l->n_reached; i++) {
        struct node *node = &l->nodes[l->reached[i]];
        const int32_t owner = l->owner[l->reached[i]];
        const double nearer = end.distance - node->distance;
        if (nearer > 0 && owner != NONE) {
            node->dual -= nearer;
            l->duals[owner] += nearer;
        }
        node->distance = INFINITY;
    }
    l->n_reached = 0;
    hand_on(l, start, end);
}

/* ---- among equal costs ----
 *
 * Pairings of least cost consist of pairs without slack, and the cells that they leave have dual 0
 * (complementary slackness). Any two of them differ by cycles in which tracks hand on columns; all
 * columns that no track has belong to one owner more, NOBODY, who may take any column of dual 0. */

struct exchange {
    int32_t start, old, wanted; /* the track, its column, the cell that it shall have */
    int32_t by_nobody;          /* the column through which NOBODY was reached, or NONE */
};

static int32_t nobody(const struct linker *l)
{
    return (int32_t)l->n_tracks;
}

static int32_t column_of(const struct linker *l, int32_t track)
{
    return l->pair[track] == NONE ? (int32_t)l->n_cells + track : l->pair[track];
}

static int32_t owner_of(const struct linker *l, int32_t column)
{
    const int32_t n_cells = (int32_t)l->n_cells;
    if (column < n_cells)
        return l->owner[column] == NONE ? nobody(l) : l->owner[column];
    return l->pair[column - n_cells] == NONE ? column - n_cells : nobody(l);
}

static void visit(struct linker *l, int32_t column, int32_t from)
{
    if (l->from[column] != NONE)
        return;
    l->from[column] = from;
    l->reached[l->n_reached++] = column;
}

/* The columns that an owner may take instead of the one through which it was reached. */
static void visit_next(struct linker *l, struct exchange *x, int32_t column)
{
    const int32_t owner = owner_of(l, column), n_cells = (int32_t)l->n_cells;
    if (owner < nobody(l)) {
        if (owner <= x->start)
            return; /* earlier tracks keep what they have */
        for (size_t i = l->first[owner]; i < l->first[owner + 1]; i++)
            if (slack_of(l, owner, l->near[i]) == 0)
                visit(l, l->near[i], owner);
        if (slack_of_none(l, owner) == 0)
            visit(l, n_cells + owner, owner);
    } else if (x->by_nobody == NONE) {
        x->by_nobody = column;
        for (int32_t c = 0; c < n_cells; c++)
            if (l->nodes[c].dual == 0)
                visit(l, c, owner);
        for (int32_t t = x->start; t < nobody(l); t++)
            if (l->pair[t] == NONE)
                visit(l, n_cells + t, owner);
    }
}

/* Hands on the columns of the cycle that the search closed. */
static void make_exchange(struct linker *l, const struct exchange *x)
{
    int32_t column = x->old, owner;
    do {
        owner = l->from[column];
        const int32_t given_up = owner == nobody(l) ? x->by_nobody : column_of(l, owner);
        const bool is_cell = column < (int32_t)l->n_cells;
        if (owner < nobody(l))
            l->pair[owner] = is_cell ? column : NONE;
        if (is_cell)
            l->owner[column] = owner < nobody(l) ? owner : NONE;
        column = given_up;
    } while (owner != x->start);
}

/* Whether `start` got the cell `wanted`, at no cost. */
static bool try_exchange(struct linker *l, int32_t start, int32_t wanted)
{
    struct exchange x = {start, column_of(l, start), wanted, NONE};
    l->n_reached = 0;
    visit(l, wanted, start);
    for (size_t i = 0; i < l->n_reached && l->from[x.old] == NONE; i++)
        visit_next(l, &x, l->reached[i]);
    const bool found = l->from[x.old] != NONE;
    if (found)
        make_exchange(l, &x);
    for (size_t i = 0; i < l->n_reached; i++)
        l->from[l->reached[i]] = NONE;
    return found;
}

/* The first of the pairings of least cost. */
static void settle_ties(struct linker *l)
{
    for (size_t c = 0; c < (size_t)l->n_cells + l->n_tracks; c++)
        l->from[c] = NONE;
    for (int32_t t = 0; t < (int32_t)l->n_tracks; t++) {
        const int32_t had = column_of(l, t);
        for (size_t i = l->first[t]; i < l->first[t + 1] && l->near[i] < had; i++)
            if (slack_of(l, t, l->near[i]) == 0 && try_exchange(l, t, l->near[i]))
                break;
    }
}

static enum oct_err open_linker(struct linker *l, const struct oct_link_cell *cells,
                                struct oct_error *err)
{
    const size_t n_tracks = l->n_tracks, n_cells = l->n_cells, n_columns = n_tracks + n_cells;
    l->nodes = malloc(n_cells * sizeof *l->nodes);
    l->duals = calloc(n_tracks, sizeof *l->duals);
    l->first = calloc(n_tracks + 1, sizeof *l->first);
    l->owner = malloc(n_cells * sizeof *l->owner);
    l->from = calloc(n_columns, sizeof *l->from);
    l->reached = malloc(n_columns * sizeof *l->reached);
    if (!l->nodes || !l->duals || !l->first || !l->owner || !l->from || !l->reached)
        return no_memory(l, err);
    for (size_t c = 0; c < n_cells; c++) {
        l->nodes[c] = (struct node){cells[c].x, cells[c].y, 0, INFINITY};
        l->owner[c] = NONE;
    }
    return find_pairs(l, err);
}

static void close_linker(struct linker *l)
{
    free(l->nodes);
    free(l->duals);
    free(l->first);
    free(l->near);
    free(l->owner);
    free(l->from);
    free(l->reached);
    free(l->heap);
}

enum oct_err oct_cells_link(const struct oct_link_track *tracks, unsigned n_tracks,
                            const struct oct_link_cell *cells, unsigned n_cells, int32_t *pair,
                            struct oct_error *err)
{
    struct linker l = {.tracks = tracks, .n_tracks = n_tracks, .n_cells = n_cells, .pair = pair};
    for (unsigned t = 0; t < n_tracks; t++)
        pair[t] = NONE;
    if (n_tracks == 0 || n_cells == 0)
        return OCT_OK;
    const enum oct_err e = open_linker(&l, cells, err);
    for (unsigned t = 0; !e && t < n_tracks; t++)
        pair_track(&l, (int32_t)t);
    if (!e)
        settle_ties(&l);
    close_linker(&l);
    return e;
}
