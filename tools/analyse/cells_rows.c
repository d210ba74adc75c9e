#include "tools/alloc.h"
#include "tools/analyse/cells.h"

#include <math.h>
#include <stdlib.h>

#define LEAST_PRUNED 1024u

struct oct_cells_rows_track {
    uint64_t newest;     /* the newest frame in which it was alive */
    uint64_t seen_frame; /* where and when it was last seen; n_seen 0: never */
    double seen_x, seen_y;
    uint32_t n_seen;
};

/* Drops what is decided: rows of ended tracks that are none, or that were not seen again. Those of
 * tracks alive stay, unless all have ended. */
static void prune(struct oct_cells_rows *r, bool all_ended)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct oct_cells_row *row = &r->rows[i];
        const uint64_t track = row->found.track;
        const struct oct_cells_rows_track *t = track ? &r->tracks[track - 1] : NULL;
        const bool has_ended = t && (all_ended || t->newest < r->frame);
        if (!has_ended || (t->n_seen >= r->min_frames && row->frame <= t->seen_frame))
            r->rows[n++] = *row;
    }
    r->n = r->n_pruned = n;
}

static void add_tracks(struct oct_cells_rows *r, const struct oct_cells_found *found, unsigned n)
{
    size_t most = r->n_tracks;
    for (unsigned i = 0; i < n; i++)
        most = found[i].track > most ? (size_t)found[i].track : most;
    r->tracks = oct_alloc_room(r->tracks, &r->tracks_room, most, sizeof(*r->tracks));
    for (; r->n_tracks < most; r->n_tracks++)
        r->tracks[r->n_tracks] = (struct oct_cells_rows_track){.n_seen = 0};
}

/* The row of a cell; its track takes note of where it was seen. */
static struct oct_cells_row make_row(struct oct_cells_rows *r, const struct oct_cells_found *f)
{
    struct oct_cells_rows_track *t = f->track ? &r->tracks[f->track - 1] : NULL;
    struct oct_cells_row row = {.frame = r->frame, .found = *f, .speed_px = NAN};
    row.found.score = (double)(float)f->score;
    if (!t)
        return row;
    if (t->n_seen > 0)
        row.speed_px =
            hypot(f->x_px - t->seen_x, f->y_px - t->seen_y) / (double)(r->frame - t->seen_frame);
    t->newest = r->frame;
    if (!oct_cells_is_seen(&row))
        return row;
    t->n_seen++;
    t->seen_frame = r->frame;
    t->seen_x = f->x_px;
    t->seen_y = f->y_px;
    return row;
}

void oct_cells_rows_add(struct oct_cells_rows *rows, uint64_t frame,
                        const struct oct_cells_found *found, unsigned n)
{
    struct oct_cells_rows *r = rows;
    add_tracks(r, found, n);
    r->frame = frame;
    r->rows = oct_alloc_room(r->rows, &r->room, r->n + n, sizeof(*r->rows));
    for (unsigned i = 0; i < n; i++)
        r->rows[r->n++] = make_row(r, &found[i]);
    if (r->n > 2 * r->n_pruned + LEAST_PRUNED)
        prune(r, false);
}

static int compare_tracks(const void *a, const void *b)
{
    const struct oct_cells_row *p = *(const struct oct_cells_row *const *)a;
    const struct oct_cells_row *q = *(const struct oct_cells_row *const *)b;
    if (p->found.track != q->found.track)
        return p->found.track < q->found.track ? -1 : 1;
    return (p > q) - (p < q); /* rows are in order of frames */
}

void oct_cells_rows_end(struct oct_cells_rows *rows)
{
    prune(rows, true);
    rows->by_track = oct_alloc(rows->n, sizeof(struct oct_cells_row *));
    for (size_t i = 0; i < rows->n; i++)
        rows->by_track[i] = &rows->rows[i];
    qsort(rows->by_track, rows->n, sizeof(struct oct_cells_row *), compare_tracks);
    for (size_t i = 0; i < rows->n; i++)
        rows->rows[rows->by_track[i] - rows->rows].order = i;
}
