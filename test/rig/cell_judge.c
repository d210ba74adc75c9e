#include "test/rig/cell_judge.h"

#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>

#define RIM 5.0 /* px on both sides of the rim of the searchable part */

struct lists {
    struct oct_score_cell *truth, *found;
    bool *is_judged; /* [n_frames][n_cells] */
    size_t n_true, n_found;
};

static void add_row(struct cell_judge *j, unsigned frame, const struct oct_cells_found *found)
{
    if ((j->n_rows & (j->n_rows + 1)) == 0) /* doubled at 0, 1, 3, 7 .. */
        j->rows = realloc(j->rows, 2 * (j->n_rows + 1) * sizeof *j->rows);
    assert_non_null(j->rows);
    j->rows[j->n_rows++] = (struct cell_judge_row){frame, *found};
}

static void run_film(struct cell_judge *j, const struct cell_film *film,
                     const struct oct_cells_film_setup *setup, double frame_s)
{
    const struct cell_film_setup *s = &film->setup;
    struct oct_cells_film *tracked;
    struct oct_picture picture;
    struct oct_cells_grid grid;
    double *time_s = calloc(s->height, sizeof *time_s);
    assert_non_null(time_s);
    must(oct_picture_init(&picture, s->height, s->width, false, &failure));
    must(oct_cells_film_create(&tracked, setup, &failure));
    oct_cells_film_grid(tracked, &grid);
    j->px = grid.dx * s->dx;
    for (unsigned frame = 0; frame < s->n_frames; frame++) {
        const struct oct_cells_found *found;
        struct oct_cells_times times = {.start_s = frame * frame_s, .time_s = time_s};
        unsigned n;
        for (uint32_t y = 0; y < s->height; y++)
            time_s[y] = frame_s * (frame + s->scan * y / s->height);
        cell_film_draw(film, frame, &picture);
        must(oct_cells_film_push(tracked, &picture, frame_s > 0 ? &times : NULL, 0, &found, &n,
                                 &failure));
        for (unsigned i = 0; i < n; i++)
            add_row(j, frame, &found[i]);
    }
    oct_cells_film_destroy(tracked);
    oct_picture_finish(&picture);
    free(time_s);
}

/* Drops tracks that were seen too rarely, and what was only predicted behind the last sight. */
static void keep_tracks_that_count(struct cell_judge *j, unsigned min_frames)
{
    uint64_t most = 0;
    for (size_t i = 0; i < j->n_rows; i++)
        most = j->rows[i].found.track > most ? j->rows[i].found.track : most;
    uint32_t *n_seen = calloc(most + 1, sizeof *n_seen);
    unsigned *last = calloc(most + 1, sizeof *last);
    size_t n = 0;
    assert_true(n_seen && last);
    for (size_t i = 0; i < j->n_rows; i++) {
        const struct cell_judge_row *row = &j->rows[i];
        n_seen[row->found.track] = row->found.n_seen;
        if (row->found.how != OCT_CELLS_COASTED)
            last[row->found.track] = row->frame;
    }
    for (size_t i = 0; i < j->n_rows; i++) {
        const struct cell_judge_row row = j->rows[i];
        if (n_seen[row.found.track] >= min_frames && row.frame <= last[row.found.track])
            j->rows[n++] = row;
    }
    j->n_rows = n;
    free(n_seen);
    free(last);
}

/* How deep a place lies within the searchable part, in px of the searched picture. */
static double depth_of(const struct cell_judge *j, const struct cell_film *film, double border,
                       double x, double y)
{
    const double width = (film->setup.width - 1) * film->setup.dx / j->px;
    const double height = (film->setup.height - 1) * film->setup.dy / j->px;
    x /= j->px;
    y /= j->px;
    return fmin(fmin(x, width - x), fmin(y, height - y)) - border;
}

/* Cells of the truth, each from the first search since it came. */
static void list_truth(struct lists *l, const struct cell_judge *j, const struct cell_film *film,
                       double border, unsigned detect_every)
{
    for (unsigned i = 0; i < film->n_cells; i++) {
        bool is_known = false;
        for (unsigned frame = 0; frame < film->setup.n_frames; frame++) {
            double x, y;
            if (!cell_film_place_seen(film, i, frame, &x, &y) ||
                depth_of(j, film, border, x, y) < RIM)
                continue;
            is_known = is_known || frame % detect_every == 0;
            if (!is_known)
                continue;
            l->is_judged[(size_t)frame * film->n_cells + i] = true;
            l->truth[l->n_true++] = (struct oct_score_cell){frame, i + 1, x, y};
        }
    }
}

/* Whether what was found is the place of a true cell that is judged, or, far from all of them, a
 * place within the part that is judged. */
static bool is_judged(const struct lists *l, const struct cell_judge *j,
                      const struct cell_film *film, double border, unsigned frame, double x,
                      double y)
{
    double nearest = film->setup.radius;
    bool answer = depth_of(j, film, border, x, y) >= RIM;
    for (unsigned i = 0; i < film->n_cells; i++) {
        double tx, ty;
        if (cell_film_place_seen(film, i, frame, &tx, &ty) && hypot(tx - x, ty - y) < nearest) {
            nearest = hypot(tx - x, ty - y);
            answer = l->is_judged[(size_t)frame * film->n_cells + i];
        }
    }
    return answer;
}

static void list_cells(struct lists *l, const struct cell_judge *j, const struct cell_film *film,
                       double border, unsigned detect_every)
{
    const struct cell_film_setup *s = &film->setup;
    const size_t n = (size_t)s->n_frames * film->n_cells + 1;
    l->truth = calloc(n, sizeof *l->truth);
    l->is_judged = calloc(n, sizeof *l->is_judged);
    l->found = calloc(j->n_rows + 1, sizeof *l->found);
    assert_true(l->truth && l->is_judged && l->found);
    list_truth(l, j, film, border, detect_every);
    for (size_t i = 0; i < j->n_rows; i++) {
        const struct oct_cells_found *f = &j->rows[i].found;
        const double x = f->x_px * s->dx, y = f->y_px * s->dy;
        if (is_judged(l, j, film, border, j->rows[i].frame, x, y))
            l->found[l->n_found++] = (struct oct_score_cell){j->rows[i].frame, f->track, x, y};
    }
}

static void print_all(const struct cell_judge *j, const struct lists *l)
{
    for (size_t i = 0; i < l->n_true; i++)
        print_message("true %d %d %.2f %.2f\n", (int)l->truth[i].frame, (int)l->truth[i].track,
                      l->truth[i].x, l->truth[i].y);
    for (size_t i = 0; i < j->n_rows; i++) {
        const struct oct_cells_found *f = &j->rows[i].found;
        print_message("found %u %d %.2f %.2f %s %.2f\n", j->rows[i].frame, (int)f->track, f->x_px,
                      f->y_px, oct_cells_how_names[f->how], f->score);
    }
}

void cell_judge_run(struct cell_judge *j, const struct cell_film_setup *film_setup,
                    const struct oct_cells_film_setup *setup, double frame_s)
{
    struct cell_film film;
    struct lists l = {0};
    struct oct_cells_film_setup whole = *setup;
    *j = (struct cell_judge){0};
    whole.height = film_setup->height;
    whole.width = film_setup->width;
    whole.backend = setup->backend ? setup->backend : "cpu";
    cell_film_init(&film, film_setup);
    run_film(j, &film, &whole, frame_s);
    keep_tracks_that_count(j, setup->params.min_frames);
    list_cells(&l, j, &film, oct_cells_border(&setup->params), setup->params.detect_every);
    must(oct_cells_score(l.truth, l.n_true, l.found, l.n_found, film_setup->radius / 2, &j->score,
                         &failure));
    if (getenv("OCT_CELLS_FAULTS"))
        print_all(j, &l);
    free(l.truth);
    free(l.is_judged);
    free(l.found);
}

void cell_judge_finish(struct cell_judge *j)
{
    free(j->rows);
    *j = (struct cell_judge){0};
}
