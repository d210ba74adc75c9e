#include "tools/analyse/cells_rows.h"

#include <math.h>
#include <stdlib.h>

#define LEAST_ROOM 1024u

struct oct_cells_rows_track {
    uint64_t newest;     /* the newest frame in which it was alive */
    uint64_t seen_frame; /* where and when it was last seen; n_seen 0: never */
    double seen_x, seen_y;
    uint32_t n_seen;
};

void oct_cells_rows_init(struct oct_cells_rows *rows, unsigned min_frames)
{
    *rows = (struct oct_cells_rows){.min_frames = min_frames};
}

void oct_cells_rows_finish(struct oct_cells_rows *rows)
{
    free(rows->rows);
    free(rows->tracks);
    *rows = (struct oct_cells_rows){.n = 0};
}

/* Memory for `needed` of them, grown by halves; false: there is none, *memory stays. */
static bool make_room(void **memory, size_t *room, size_t needed, size_t bytes)
{
    if (needed <= *room)
        return true;
    const size_t n = needed + needed / 2 + LEAST_ROOM;
    void *grown = n < SIZE_MAX / bytes ? realloc(*memory, n * bytes) : NULL;
    if (!grown)
        return false;
    *memory = grown;
    *room = n;
    return true;
}

/* Drops what is decided: rows of ended tracks that are none, or that were not seen again. Those of
 * tracks alive stay, unless all have ended. */
static void prune(struct oct_cells_rows *r, bool all_ended)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct oct_cells_row *row = &r->rows[i];
        const struct oct_cells_rows_track *t = row->track ? &r->tracks[row->track - 1] : NULL;
        const bool has_ended = t && (all_ended || t->newest < r->frame);
        if (!has_ended || (t->n_seen >= r->min_frames && row->frame <= t->seen_frame))
            r->rows[n++] = *row;
    }
    r->n = r->n_pruned = n;
}

static enum oct_err add_tracks(struct oct_cells_rows *r, const struct oct_cells_found *found,
                               unsigned n, struct oct_error *err)
{
    size_t most = r->n_tracks;
    for (unsigned i = 0; i < n; i++)
        most = found[i].track > most ? (size_t)found[i].track : most;
    void *memory = r->tracks;
    if (!make_room(&memory, &r->tracks_room, most, sizeof(*r->tracks)))
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %zu tracks", most);
    r->tracks = memory;
    for (; r->n_tracks < most; r->n_tracks++)
        r->tracks[r->n_tracks] = (struct oct_cells_rows_track){.n_seen = 0};
    return OCT_OK;
}

/* The row of a cell; its track takes note of where it was seen. */
static struct oct_cells_row take(struct oct_cells_rows *r, const struct oct_cells_found *f)
{
    struct oct_cells_rows_track *t = f->track ? &r->tracks[f->track - 1] : NULL;
    struct oct_cells_row row = {.frame = r->frame,
                                .track = f->track,
                                .time_s = f->time_s,
                                .x_px = f->x_px,
                                .y_px = f->y_px,
                                .radius_px = f->radius_px,
                                .speed_um_s = f->speed_um_s,
                                .speed_px = NAN,
                                .score = (float)f->score,
                                .how = f->how};
    if (!t)
        return row;
    if (t->n_seen > 0)
        row.speed_px =
            hypot(f->x_px - t->seen_x, f->y_px - t->seen_y) / (double)(r->frame - t->seen_frame);
    t->newest = r->frame;
    if (f->how == OCT_CELLS_COASTED)
        return row;
    t->n_seen++;
    t->seen_frame = r->frame;
    t->seen_x = f->x_px;
    t->seen_y = f->y_px;
    return row;
}

enum oct_err oct_cells_rows_add(struct oct_cells_rows *rows, uint64_t frame,
                                const struct oct_cells_found *found, unsigned n,
                                struct oct_error *err)
{
    struct oct_cells_rows *r = rows;
    const enum oct_err e = add_tracks(r, found, n, err);
    if (e)
        return e;
    r->frame = frame;
    void *memory = r->rows;
    if (!make_room(&memory, &r->room, r->n + n, sizeof(*r->rows)))
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %zu cells", r->n + n);
    r->rows = memory;
    for (unsigned i = 0; i < n; i++)
        r->rows[r->n++] = take(r, &found[i]);
    if (r->n > 2 * r->n_pruned + LEAST_ROOM)
        prune(r, false);
    return OCT_OK;
}

void oct_cells_rows_end(struct oct_cells_rows *rows)
{
    prune(rows, true);
}

/* ---- by track ---- */

struct key {
    uint64_t track;
    size_t row;
};

static int compare(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    if (x->track != y->track)
        return x->track < y->track ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row); /* rows are in order of frames */
}

size_t *oct_cells_rows_by_track(const struct oct_cells_rows *rows)
{
    const size_t n = rows->n;
    struct key *keys = malloc((n + 1) * sizeof(*keys));
    size_t *order = malloc((n + 1) * sizeof(*order));
    for (size_t i = 0; keys && order && i < n; i++)
        keys[i] = (struct key){rows->rows[i].track, i};
    if (keys && order)
        qsort(keys, n, sizeof(*keys), compare);
    for (size_t i = 0; keys && order && i < n; i++)
        order[i] = keys[i].row;
    if (!keys) {
        free(order);
        order = NULL;
    }
    free(keys);
    return order;
}
