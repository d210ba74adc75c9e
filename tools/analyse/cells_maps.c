#define _GNU_SOURCE /* TEMP_FAILURE_RETRY */
#include "tools/analyse/cells_maps.h"

#include "formats/results.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A window's facts, as they wait in memory. */
struct window {
    uint64_t frame, track;
    struct oct_cell_window at;
    uint32_t iterations;
};

struct oct_cells_maps {
    struct oct_results *results;
    unsigned score, best; /* datasets */
    struct oct_cells_grid grid;
    float *score_pixels; /* [H][W] */
    uint8_t *best_pixels;

    int fd; /* of the fields that wait: h x w floats each; -1: none */
    char *path;
    uint32_t field_rows, field_columns; /* of the largest window */
    float *field;                       /* [rows][columns]: as the film gives it, */
    float *padded;                      /* and as the file has it */
    struct window *windows;
    size_t n, room;
};

/* ---- making ---- */

static void describe(struct oct_results *r, const struct oct_cells_film *film,
                     const struct oct_cells_grid *grid)
{
    double radii[OCT_CELLS_MOST_CIRCLES];
    const unsigned n = oct_cells_circles(oct_cells_film_params(film), radii);
    oct_results_number(r, NULL, "x0", grid->x0);
    oct_results_number(r, NULL, "y0", grid->y0);
    oct_results_number(r, NULL, "dx", grid->dx);
    oct_results_number(r, NULL, "dy", grid->dy);
    oct_results_numbers(r, "/best_radius", "radii_px", radii, n);
}

static enum oct_err make_memory(struct oct_cells_maps *m, const struct oct_cells_film *film,
                                struct oct_error *err)
{
    const size_t n = (size_t)m->grid.height * m->grid.width;
    const struct oct_cells_params *p = oct_cells_film_params(film);
    m->field_rows = (uint32_t)ceil(4 * p->radius) + 2;
    m->field_columns = (uint32_t)ceil(8 * p->radius) + 2;
    const size_t most = oct_cell_window_most(p);
    const size_t whole = (size_t)m->field_rows * m->field_columns;
    m->score_pixels = malloc(n * sizeof(*m->score_pixels));
    m->best_pixels = malloc(n);
    m->field = malloc((most > whole ? most : whole) * sizeof(*m->field));
    m->padded = malloc(whole * sizeof(*m->padded));
    return m->score_pixels && m->best_pixels && m->field && m->padded
               ? OCT_OK
               : oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", m->path);
}

/* A file beside the results that nobody else sees. */
static enum oct_err open_waiting(struct oct_cells_maps *m, struct oct_error *err)
{
    const size_t n = strlen(m->path) + 32;
    char *name = malloc(n);
    if (!name)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", m->path);
    snprintf(name, n, "%s.fields.%ld", m->path, (long)getpid());
    m->fd = (int)TEMP_FAILURE_RETRY(open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    enum oct_err e =
        m->fd >= 0 ? OCT_OK : oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be made", name);
    if (m->fd >= 0)
        unlink(name);
    free(name);
    return e;
}

enum oct_err oct_cells_maps_create(struct oct_cells_maps **maps, const char *path, bool force,
                                   const struct oct_cells_film *film, uint64_t n_frames,
                                   struct oct_error *err)
{
    *maps = NULL;
    struct oct_cells_maps *m = calloc(1, sizeof(*m));
    if (!m || !(m->path = strdup(path))) {
        free(m);
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    }
    m->fd = -1;
    oct_cells_film_grid(film, &m->grid);
    enum oct_err e = make_memory(m, film, err);
    if (!e)
        e = oct_results_create(&m->results, path, "cell-scores", force, err);
    if (!e)
        e = open_waiting(m, err);
    if (e) {
        oct_cells_maps_discard(m);
        return e;
    }
    const uint64_t dims[3] = {n_frames, m->grid.height, m->grid.width};
    m->score = oct_results_dataset(m->results, "/score", OCT_RESULTS_F32, 3, dims, "1");
    m->best = oct_results_dataset(m->results, "/best_radius", OCT_RESULTS_U8, 3, dims, "1");
    describe(m->results, film, &m->grid);
    if ((e = oct_results_error(m->results, err)))
        oct_cells_maps_discard(m);
    else
        *maps = m;
    return e;
}

void oct_cells_maps_discard(struct oct_cells_maps *maps)
{
    if (!maps)
        return;
    oct_results_discard(maps->results);
    if (maps->fd >= 0)
        close(maps->fd);
    free(maps->score_pixels);
    free(maps->best_pixels);
    free(maps->field);
    free(maps->padded);
    free(maps->windows);
    free(maps->path);
    free(maps);
}

/* ---- frames ---- */

static enum oct_err take_score(struct oct_cells_maps *m, struct oct_cells_film *film,
                               uint64_t frame, struct oct_error *err)
{
    bool searched;
    const enum oct_err e =
        oct_cells_film_map(film, m->score_pixels, m->best_pixels, &searched, err);
    if (e)
        return e;
    if (searched)
        oct_results_write_rows(m->results, m->score, frame, 1, m->score_pixels);
    else
        memset(m->best_pixels, UINT8_MAX, (size_t)m->grid.height * m->grid.width);
    oct_results_write_rows(m->results, m->best, frame, 1, m->best_pixels);
    return oct_results_error(m->results, err);
}

static enum oct_err move_bytes(const struct oct_cells_maps *m, size_t i, bool writes,
                               struct oct_error *err)
{
    const size_t n = (size_t)m->field_rows * m->field_columns * sizeof(float);
    char *bytes = (char *)m->padded;
    for (size_t done = 0; done < n;) {
        const off_t at = (off_t)(i * n + done);
        const ssize_t got = writes ? TEMP_FAILURE_RETRY(pwrite(m->fd, bytes + done, n - done, at))
                                   : TEMP_FAILURE_RETRY(pread(m->fd, bytes + done, n - done, at));
        if (got <= 0)
            return oct_fail_errno(err, OCT_E_IO, got < 0 ? errno : EIO, "%s: fields cannot be kept",
                                  m->path);
        done += (size_t)got;
    }
    return OCT_OK;
}

/* Of what the film gives, tight, what the file has. */
static void pad(struct oct_cells_maps *m, const struct oct_cell_window *at)
{
    const uint32_t rows = (uint32_t)(at->v2 - at->v1 + 1),
                   columns = (uint32_t)(at->u2 - at->u1 + 1);
    for (uint32_t y = 0; y < m->field_rows; y++)
        for (uint32_t x = 0; x < m->field_columns; x++)
            m->padded[(size_t)y * m->field_columns + x] =
                y < rows && x < columns ? m->field[(size_t)y * columns + x] : NAN;
}

static enum oct_err take_field(struct oct_cells_maps *m, struct oct_cells_film *film, unsigned i,
                               uint64_t frame, struct oct_error *err)
{
    struct window w = {.frame = frame};
    enum oct_err e = oct_cells_film_field(film, i, &w.track, &w.at, &w.iterations, m->field, err);
    if (e)
        return e;
    if (m->n == m->room) {
        const size_t room = m->room ? 2 * m->room : 1024;
        struct window *grown = realloc(m->windows, room * sizeof(*grown));
        if (!grown)
            return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", m->path);
        m->windows = grown;
        m->room = room;
    }
    pad(m, &w.at);
    e = move_bytes(m, m->n, true, err);
    if (!e)
        m->windows[m->n++] = w;
    return e;
}

enum oct_err oct_cells_maps_take(struct oct_cells_maps *maps, struct oct_cells_film *film,
                                 uint64_t frame, struct oct_error *err)
{
    enum oct_err e = take_score(maps, film, frame, err);
    const unsigned n = oct_cells_film_n_fields(film);
    for (unsigned i = 0; i < n && !e; i++)
        e = take_field(maps, film, i, frame, err);
    return e;
}

/* ---- the end ---- */

static void write_windows(struct oct_cells_maps *m)
{
    struct oct_results *r = m->results;
    const uint64_t n = m->n;
    const unsigned frame = oct_results_dataset(r, "/mgvf/frame", OCT_RESULTS_U64, 1, &n, "frame");
    const unsigned track = oct_results_dataset(r, "/mgvf/track", OCT_RESULTS_U64, 1, &n, "1");
    const unsigned u1 = oct_results_dataset(r, "/mgvf/u1", OCT_RESULTS_U32, 1, &n, "px");
    const unsigned v1 = oct_results_dataset(r, "/mgvf/v1", OCT_RESULTS_U32, 1, &n, "px");
    const unsigned rows = oct_results_dataset(r, "/mgvf/rows", OCT_RESULTS_U32, 1, &n, "px");
    const unsigned columns = oct_results_dataset(r, "/mgvf/columns", OCT_RESULTS_U32, 1, &n, "px");
    const unsigned iterations =
        oct_results_dataset(r, "/mgvf/iterations", OCT_RESULTS_U32, 1, &n, "1");
    for (size_t i = 0; i < n; i++) {
        const struct window *w = &m->windows[i];
        const uint32_t at[2] = {(uint32_t)w->at.u1, (uint32_t)w->at.v1};
        const uint32_t size[2] = {(uint32_t)(w->at.v2 - w->at.v1 + 1),
                                  (uint32_t)(w->at.u2 - w->at.u1 + 1)};
        oct_results_write_rows(r, frame, i, 1, &w->frame);
        oct_results_write_rows(r, track, i, 1, &w->track);
        oct_results_write_rows(r, u1, i, 1, &at[0]);
        oct_results_write_rows(r, v1, i, 1, &at[1]);
        oct_results_write_rows(r, rows, i, 1, &size[0]);
        oct_results_write_rows(r, columns, i, 1, &size[1]);
        oct_results_write_rows(r, iterations, i, 1, &w->iterations);
    }
}

static enum oct_err write_fields(struct oct_cells_maps *m, struct oct_error *err)
{
    const uint64_t dims[3] = {m->n, m->field_rows, m->field_columns};
    const unsigned field =
        oct_results_dataset(m->results, "/mgvf/field", OCT_RESULTS_F32, 3, dims, "1");
    enum oct_err e = oct_results_error(m->results, err);
    for (size_t i = 0; i < m->n && !e; i++) {
        e = move_bytes(m, i, false, err);
        if (!e)
            oct_results_write_rows(m->results, field, i, 1, m->padded);
    }
    return e;
}

enum oct_err oct_cells_maps_publish(struct oct_cells_maps *maps, struct oct_error *err)
{
    if (!maps)
        return OCT_OK;
    write_windows(maps);
    enum oct_err e = write_fields(maps, err);
    if (!e) {
        e = oct_results_publish(maps->results, err);
        maps->results = NULL;
    }
    oct_cells_maps_discard(maps);
    return e;
}
