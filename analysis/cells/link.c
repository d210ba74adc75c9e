#include "analysis/cells/track.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NONE (-1)

/* ---- places ---- */

enum oct_err oct_crowd_reset(struct oct_crowd *crowd, double distance, size_t n_most,
                             struct oct_error *err)
{
    if (!crowd->table || n_most > crowd->n_most) {
        size_t n_table = 64;
        while (n_table < 2 * n_most)
            n_table *= 2;
        oct_crowd_finish(crowd);
        crowd->places = malloc(n_table / 2 * sizeof *crowd->places);
        crowd->table = malloc(n_table * sizeof *crowd->table);
        crowd->n_table = n_table;
        crowd->n_most = n_table / 2;
    }
    if (!crowd->places || !crowd->table) {
        oct_crowd_finish(crowd);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %zu cells", n_most);
    }
    crowd->distance = distance;
    crowd->n = 0;
    memset(crowd->table, -1, crowd->n_table * sizeof *crowd->table);
    return OCT_OK;
}

void oct_crowd_finish(struct oct_crowd *crowd)
{
    free(crowd->places);
    free(crowd->table);
    *crowd = (struct oct_crowd){0};
}

/* Places beyond any picture share a square. */
static int64_t square_of(const struct oct_crowd *crowd, double at)
{
    return (int64_t)fmax(fmin(floor(at / crowd->distance), 1e15), -1e15);
}

static size_t entry_of(const struct oct_crowd *crowd, int64_t ix, int64_t iy)
{
    uint64_t hash = (uint64_t)ix * 0x9e3779b97f4a7c15u ^ (uint64_t)iy * 0xc2b2ae3d27d4eb4fu;
    hash ^= hash >> 32;
    return (size_t)hash & (crowd->n_table - 1);
}

void oct_crowd_add(struct oct_crowd *crowd, double x, double y)
{
    const size_t entry = entry_of(crowd, square_of(crowd, x), square_of(crowd, y));
    crowd->places[crowd->n] = (struct oct_crowd_place){x, y, crowd->table[entry]};
    crowd->table[entry] = (int32_t)crowd->n++;
}

int32_t oct_crowd_next(const struct oct_crowd *crowd, double x, double y,
                       struct oct_crowd_walk *walk)
{
    const int64_t left = square_of(crowd, x) - 1, top = square_of(crowd, y) - 1;
    for (;;) {
        while (walk->next > 0) { /* of an entry, some are of other squares */
            const int32_t i = walk->next - 1, k = walk->square - 1;
            const struct oct_crowd_place *place = &crowd->places[i];
            walk->next = place->next + 1;
            if (square_of(crowd, place->x) == left + k % 3 &&
                square_of(crowd, place->y) == top + k / 3)
                return i;
        }
        if (walk->square == 9)
            return NONE;
        const int32_t k = walk->square++;
        walk->next = crowd->table[entry_of(crowd, left + k % 3, top + k / 3)] + 1;
    }
}

static double squared(double dx, double dy)
{
    return dx * dx + dy * dy;
}

bool oct_crowd_is_near(const struct oct_crowd *crowd, double x, double y)
{
    struct oct_crowd_walk walk = {0};
    int32_t i;
    while ((i = oct_crowd_next(crowd, x, y, &walk)) >= 0)
        if (squared(crowd->places[i].x - x, crowd->places[i].y - y) <=
            crowd->distance * crowd->distance)
            return true;
    return false;
}

/* ---- pairs ----
 *
 * Columns are what tracks can have: cells, and behind them a "none" of each track, at the cost of
 * its gate. */

#define NOBODY ((int32_t)l->n_tracks) /* owns the columns that no track has */

/* A cell on the front of a search, at a distance from its start. */
struct front {
    double distance;
    int32_t cell;
};

/* What the innermost loop reads, side by side. dual: cost - dual of the track - dual of the cell
 * is at least 0, and 0 for pairs; 0 for cells without a track, and for every "none". */
struct node {
    double x, y, dual;
    double distance; /* of the search; INFINITY: not reached */
};

struct linker {
    const struct oct_link_track *tracks;
    unsigned n_tracks, n_cells;
    struct node *nodes; /* [n_cells] */
    double *duals;      /* [n_tracks] */
    size_t *first;      /* [n_tracks + 1] */
    int32_t *near;      /* cells within the gate of track t: near[first[t] .. first[t + 1] - 1] */
    size_t n_near;
    int32_t *held;    /* [n_tracks]: its column */
    int32_t *owner;   /* [n_cells + n_tracks]: whose it is */
    int32_t *from;    /* [n_cells + n_tracks]: the owner from which a column was reached */
    int32_t *reached; /* [n_cells + n_tracks]: what to clear afterwards */
    struct front *heap;
    size_t n_reached, n_heap;
};

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

static void assign(struct linker *l, int32_t column, int32_t owner)
{
    l->owner[column] = owner;
    if (owner != NOBODY)
        l->held[owner] = column;
}

static enum oct_err no_memory(const struct linker *l, struct oct_error *err)
{
    return oct_fail(err, OCT_E_NO_MEMORY, "out of memory to pair %u tracks with %u cells",
                    l->n_tracks, l->n_cells);
}

/* ---- who is near whom ---- */

static enum oct_err list_near(struct linker *l, const struct oct_crowd *cells, int32_t track,
                              struct oct_error *err)
{
    struct oct_crowd_walk walk = {0};
    const struct oct_link_track *t = &l->tracks[track];
    int32_t c;
    l->first[track] = l->n_near;
    while ((c = oct_crowd_next(cells, t->x, t->y, &walk)) >= 0) {
        if (cost_of(l, track, c) > cost_of_none(l, track))
            continue;
        if (l->n_near == OCT_CELLS_MOST_PAIRS)
            return oct_fail(err, OCT_E_ARG,
                            "cells: %u tracks and %u cells make more than %u pairs within the "
                            "largest speed: lower it, or raise the threshold",
                            l->n_tracks, l->n_cells, OCT_CELLS_MOST_PAIRS);
        if ((l->n_near & (l->n_near + 1)) == 0) { /* doubled at 0, 1, 3, 7 .. */
            int32_t *larger = realloc(l->near, 2 * (l->n_near + 1) * sizeof *larger);
            if (!larger)
                return no_memory(l, err);
            l->near = larger;
        }
        l->near[l->n_near++] = c;
    }
    l->first[track + 1] = l->n_near;
    return OCT_OK;
}

static enum oct_err find_near(struct linker *l, struct oct_error *err)
{
    struct oct_crowd cells = {0};
    double widest = 0;
    for (unsigned t = 0; t < l->n_tracks; t++)
        widest = fmax(widest, l->tracks[t].gate);
    widest *= 1 + 1e-9; /* a place in squares is rounded otherwise than a distance */
    enum oct_err e = oct_crowd_reset(&cells, widest, l->n_cells, err);
    for (unsigned c = 0; !e && c < l->n_cells; c++)
        oct_crowd_add(&cells, l->nodes[c].x, l->nodes[c].y);
    for (unsigned t = 0; !e && t < l->n_tracks; t++)
        e = list_near(l, &cells, (int32_t)t, err);
    oct_crowd_finish(&cells);
    l->heap = malloc((l->n_near + 1) * sizeof *l->heap);
    return e || l->heap ? e : no_memory(l, err);
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

/* The nearest end of a path so far: a column of nobody's, reached by `track`. */
struct end {
    double distance;
    int32_t column, track;
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
        if (l->owner[cell] == NOBODY)
            *end = (struct end){distance, cell, track};
        else
            push(l, (struct front){distance, cell});
    }
    const double none = so_far + slack_of_none(l, track);
    if (none < end->distance)
        *end = (struct end){none, (int32_t)l->n_cells + track, track};
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
        if (nearer > 0 && owner != NOBODY) {
            node->dual -= nearer;
            l->duals[owner] += nearer;
        }
        node->distance = INFINITY;
    }
    l->n_reached = 0;
    /* Columns are handed on along the path that leads from `start` to the end. */
    for (int32_t column = end.column, track = end.track;; track = l->from[column]) {
        const int32_t given_up = l->held[track];
        assign(l, column, track);
        if (track == start)
            return;
        column = given_up;
    }
}

/* ---- among equal costs ----
 *
 * Pairings of least cost consist of pairs without slack, and the columns that they leave have dual
 * 0 (complementary slackness). Any two of them differ by cycles in which owners hand on columns;
 * NOBODY may take any column of dual 0. */

static void visit(struct linker *l, int32_t column, int32_t from)
{
    if (l->from[column] != NONE)
        return;
    l->from[column] = from;
    l->reached[l->n_reached++] = column;
}

/* What an owner may take instead of a column. Tracks up to `start` keep what they have. */
static void visit_all(struct linker *l, int32_t owner, int32_t start)
{
    const int32_t n_cells = (int32_t)l->n_cells;
    if (owner != NOBODY) {
        for (size_t i = l->first[owner]; i < l->first[owner + 1]; i++)
            if (slack_of(l, owner, l->near[i]) == 0)
                visit(l, l->near[i], owner);
        if (slack_of_none(l, owner) == 0)
            visit(l, n_cells + owner, owner);
        return;
    }
    for (int32_t c = 0; c < n_cells; c++)
        if (l->nodes[c].dual == 0)
            visit(l, c, owner);
    for (int32_t t = start; t < NOBODY; t++)
        visit(l, n_cells + t, owner);
}

/* Whether `start` got the cell `wanted`, at no cost. */
static bool try_exchange(struct linker *l, int32_t start, int32_t wanted)
{
    const int32_t old = l->held[start];
    int32_t by_nobody = NONE; /* the column through which NOBODY was reached */
    l->n_reached = 0;
    visit(l, wanted, start);
    for (size_t i = 0; i < l->n_reached && l->from[old] == NONE; i++) {
        const int32_t owner = l->owner[l->reached[i]];
        if (owner == NOBODY ? by_nobody != NONE : owner <= start)
            continue;
        by_nobody = owner == NOBODY ? l->reached[i] : by_nobody;
        visit_all(l, owner, start);
    }
    const bool found = l->from[old] != NONE;
    for (int32_t column = old, owner = NONE; found && owner != start;) {
        owner = l->from[column];
        const int32_t given_up = owner == NOBODY ? by_nobody : l->held[owner];
        assign(l, column, owner);
        column = given_up;
    }
    for (size_t i = 0; i < l->n_reached; i++)
        l->from[l->reached[i]] = NONE;
    return found;
}

/* The lowest cell above `cell`, and below what the track has, that it could have at no cost. */
static int32_t next_wanted(const struct linker *l, int32_t track, int32_t cell)
{
    int32_t next = l->held[track];
    for (size_t i = l->first[track]; i < l->first[track + 1]; i++)
        if (l->near[i] > cell && l->near[i] < next && slack_of(l, track, l->near[i]) == 0)
            next = l->near[i];
    return next;
}

/* The first of the pairings of least cost. */
static void settle_ties(struct linker *l)
{
    for (size_t c = 0; c < (size_t)l->n_cells + l->n_tracks; c++)
        l->from[c] = NONE;
    for (int32_t t = 0; t < NOBODY; t++) {
        const int32_t had = l->held[t];
        int32_t wanted = next_wanted(l, t, NONE);
        while (wanted != had && !try_exchange(l, t, wanted))
            wanted = next_wanted(l, t, wanted);
    }
}

/* ---- all of it ---- */

static enum oct_err open_linker(struct linker *l, const struct oct_cell *cells,
                                struct oct_error *err)
{
    const size_t n_tracks = l->n_tracks, n_cells = l->n_cells, n_columns = n_tracks + n_cells;
    l->nodes = malloc(n_cells * sizeof *l->nodes);
    l->duals = calloc(n_tracks, sizeof *l->duals);
    l->first = calloc(n_tracks + 1, sizeof *l->first);
    l->owner = malloc(n_columns * sizeof *l->owner);
    l->from = calloc(n_columns, sizeof *l->from);
    l->reached = malloc(n_columns * sizeof *l->reached);
    if (!l->nodes || !l->duals || !l->first || !l->owner || !l->from || !l->reached)
        return no_memory(l, err);
    for (size_t c = 0; c < n_cells; c++)
        l->nodes[c] = (struct node){cells[c].x, cells[c].y, 0, INFINITY};
    for (size_t c = 0; c < n_columns; c++)
        l->owner[c] = NOBODY;
    return find_near(l, err);
}

enum oct_err oct_cells_link(const struct oct_link_track *tracks, unsigned n_tracks,
                            const struct oct_cell *cells, unsigned n_cells, int32_t *pair,
                            struct oct_error *err)
{
    struct linker l = {.tracks = tracks, .n_tracks = n_tracks, .n_cells = n_cells, .held = pair};
    for (unsigned t = 0; t < n_tracks; t++)
        pair[t] = NONE;
    if (n_tracks == 0 || n_cells == 0)
        return OCT_OK;
    const enum oct_err e = open_linker(&l, cells, err);
    for (unsigned t = 0; !e && t < n_tracks; t++)
        pair_track(&l, (int32_t)t);
    if (!e)
        settle_ties(&l);
    for (unsigned t = 0; t < n_tracks; t++)
        pair[t] = pair[t] < (int32_t)n_cells ? pair[t] : NONE;
    free(l.nodes);
    free(l.duals);
    free(l.first);
    free(l.near);
    free(l.owner);
    free(l.from);
    free(l.reached);
    free(l.heap);
    return e;
}
