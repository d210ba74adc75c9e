/* Fields wait in a file without a name beside the results until their number is known. */
#include "formats/result_files.h"
#include "formats/results.h"
#include "tools/alloc.h"
#include "tools/analyse/cells.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct window {
    uint64_t frame, track;
    uint32_t u1, v1, rows, columns, iterations;
};

#define W struct window
static const struct oct_result_field window_columns[] = {
    {OCT_RESULT("frame", W, frame), .unit = "frame"},
    {OCT_RESULT("track", W, track), .unit = "1"},
    {OCT_RESULT("u1", W, u1), .unit = "px"},
    {OCT_RESULT("v1", W, v1), .unit = "px"},
    {OCT_RESULT("rows", W, rows), .unit = "px"},
    {OCT_RESULT("columns", W, columns), .unit = "px"},
    {OCT_RESULT("iterations", W, iterations), .unit = "1"},
};
#undef W
static const struct oct_result_fields window_fields = OCT_RESULT_FIELDS(window_columns);

struct oct_cells_maps {
    struct oct_results *results;
    unsigned score, best; /* datasets */
    float *score_pixels;  /* [H][W] */
    uint8_t *best_pixels;

    const char *path;
    FILE *waiting;                      /* fields of rows x columns floats */
    uint32_t field_rows, field_columns; /* of the largest window */
    float *field, *padded;              /* as the film gives it, and as the file has it */
    struct window *windows;             /* [n] */
    size_t n, room;
};

/* ---- making ---- */

/* A file beside the results that nobody else sees. */
static enum oct_err open_waiting(struct oct_cells_maps *m, struct oct_error *err)
{
    char *name = oct_alloc_text("%s.fields.%ld", m->path, (long)getpid());
    m->waiting = fopen(name, "w+xe");
    const enum oct_err e =
        m->waiting ? OCT_OK : oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be made", name);
    if (m->waiting)
        unlink(name);
    free(name);
    return e;
}

static void make_memory(struct oct_cells_maps *m, const struct oct_cells_job *c)
{
    const size_t n = (size_t)c->grid.height * c->grid.width;
    m->field_rows = (uint32_t)ceil(4 * c->params->radius) + 2;
    m->field_columns = (uint32_t)ceil(8 * c->params->radius) + 2;
    const size_t most = oct_cell_window_most(c->params);
    const size_t whole = (size_t)m->field_rows * m->field_columns;
    m->score_pixels = oct_alloc(n, sizeof(*m->score_pixels));
    m->best_pixels = oct_alloc(n, 1);
    m->field = oct_alloc(most > whole ? most : whole, sizeof(*m->field));
    m->padded = oct_alloc(whole, sizeof(*m->padded));
}

static void make_datasets(struct oct_cells_maps *m, const struct oct_cells_job *c)
{
    struct oct_results *r = m->results;
    const uint64_t dims[3] = {c->n_all, c->grid.height, c->grid.width};
    double radii[OCT_CELLS_MOST_CIRCLES];
    const unsigned n = oct_cells_circles(c->params, radii);
    m->score = oct_results_dataset(r, "/score", OCT_RESULTS_F32, 3, dims, "1");
    m->best = oct_results_dataset(r, "/best_radius", OCT_RESULTS_U8, 3, dims, "1");
    oct_results_number(r, NULL, "x0", c->grid.x0);
    oct_results_number(r, NULL, "y0", c->grid.y0);
    oct_results_number(r, NULL, "dx", c->grid.dx);
    oct_results_number(r, NULL, "dy", c->grid.dy);
    oct_results_numbers(r, "/best_radius", "radii_px", radii, n);
}

enum oct_err oct_cells_maps_begin(struct oct_cells_job *c, struct oct_error *err)
{
    struct oct_cells_maps *m = c->maps = oct_alloc(1, sizeof(*m));
    m->path = c->given.maps;
    make_memory(m, c);
    enum oct_err e =
        oct_results_create(&m->results, m->path, "cell-scores", c->given.job.force, err);
    if (!e)
        e = open_waiting(m, err);
    if (e)
        return e;
    make_datasets(m, c);
    return oct_results_error(m->results, err);
}

void oct_cells_maps_discard(struct oct_cells_maps *maps)
{
    if (maps)
        oct_results_discard(maps->results);
}

/* ---- frames ---- */

static enum oct_err add_score(struct oct_cells_job *c, uint64_t frame, struct oct_error *err)
{
    struct oct_cells_maps *m = c->maps;
    bool searched;
    const enum oct_err e =
        oct_cells_film_map(c->film, m->score_pixels, m->best_pixels, &searched, err);
    if (e)
        return e;
    if (searched)
        oct_results_write_rows(m->results, m->score, frame, 1, m->score_pixels);
    else
        memset(m->best_pixels, UINT8_MAX, (size_t)c->grid.height * c->grid.width);
    oct_results_write_rows(m->results, m->best, frame, 1, m->best_pixels);
    return oct_results_error(m->results, err);
}

static enum oct_err fail_waiting(const struct oct_cells_maps *m, struct oct_error *err)
{
    return oct_fail_errno(err, OCT_E_IO, errno ? errno : EIO, "%s: fields cannot be kept", m->path);
}

static enum oct_err add_field(struct oct_cells_job *c, unsigned i, uint64_t frame,
                              struct oct_error *err)
{
    struct oct_cells_maps *m = c->maps;
    struct window w = {.frame = frame};
    struct oct_cell_window at;
    const enum oct_err e =
        oct_cells_film_field(c->film, i, &w.track, &at, &w.iterations, m->field, err);
    if (e)
        return e;
    w.u1 = (uint32_t)at.u1;
    w.v1 = (uint32_t)at.v1;
    w.rows = (uint32_t)(at.v2 - at.v1 + 1);
    w.columns = (uint32_t)(at.u2 - at.u1 + 1);
    for (uint32_t y = 0; y < m->field_rows; y++)
        for (uint32_t x = 0; x < m->field_columns; x++)
            m->padded[(size_t)y * m->field_columns + x] =
                y < w.rows && x < w.columns ? m->field[(size_t)y * w.columns + x] : NAN;
    m->windows = oct_alloc_room(m->windows, &m->room, m->n + 1, sizeof(*m->windows));
    m->windows[m->n++] = w;
    const size_t n = (size_t)m->field_rows * m->field_columns;
    return fwrite(m->padded, sizeof(float), n, m->waiting) == n ? OCT_OK : fail_waiting(m, err);
}

enum oct_err oct_cells_maps_add(struct oct_cells_job *c, uint64_t frame, struct oct_error *err)
{
    enum oct_err e = add_score(c, frame, err);
    const unsigned n = oct_cells_film_n_fields(c->film);
    for (unsigned i = 0; i < n && !e; i++)
        e = add_field(c, i, frame, err);
    return e;
}

/* ---- the end ---- */

static enum oct_err write_fields(struct oct_cells_maps *m, struct oct_error *err)
{
    const uint64_t dims[3] = {m->n, m->field_rows, m->field_columns};
    const size_t n = (size_t)m->field_rows * m->field_columns;
    const unsigned field =
        oct_results_dataset(m->results, "/mgvf/field", OCT_RESULTS_F32, 3, dims, "1");
    if (fflush(m->waiting) != 0)
        return fail_waiting(m, err);
    rewind(m->waiting);
    for (size_t i = 0; i < m->n; i++) {
        if (fread(m->padded, sizeof(float), n, m->waiting) != n)
            return fail_waiting(m, err);
        oct_results_write_rows(m->results, field, i, 1, m->padded);
    }
    return OCT_OK;
}

enum oct_err oct_cells_maps_publish(void *job, const char *path, bool force, struct oct_error *err)
{
    struct oct_cells_maps *m = ((struct oct_cells_job *)job)->maps;
    const struct oct_result_rows windows = OCT_RESULT_ROWS(window_fields, m->windows, m->n);
    (void)force;
    oct_result_datasets(m->results, "/mgvf", &windows);
    const enum oct_err e = write_fields(m, err);
    if (e)
        return e;
    struct oct_results *results = m->results;
    m->results = NULL;
    return oct_results_publish_as(results, path, err);
}
