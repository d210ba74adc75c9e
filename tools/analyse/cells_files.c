/* Rows as tables: CSV, and datasets of /tracks. */
#include "formats/result_files.h"
#include "formats/results.h"
#include "formats/whole_file.h"
#include "tools/analyse/cells.h"

#include <string.h>

#define R struct oct_cells_row
static const struct oct_result_field row_columns[] = {
    {OCT_RESULT("track", R, found.track), .unit = "1", .meaning = "0: detection alone",
     .zero_is_none = true},
    {OCT_RESULT("frame", R, frame), .unit = "1"},
    {OCT_RESULT("time_s", R, found.time_s), .unit = "s"},
    {OCT_RESULT("x_px", R, found.x_px), .unit = "px"},
    {OCT_RESULT("y_px", R, found.y_px), .unit = "px"},
    {OCT_RESULT("x_um", R, found.x_um), .unit = "um"},
    {OCT_RESULT("y_um", R, found.y_um), .unit = "um"},
    {OCT_RESULT("radius_px", R, found.radius_px), .unit = "px", .not_in = OCT_RESULT_CSV},
    {OCT_RESULT("radius_um", R, found.radius_um), .unit = "um"},
    {OCT_RESULT("score", R, found.score), .unit = "1"},
    {OCT_RESULT("speed_um_s", R, found.speed_um_s), .unit = "um/s"},
    {OCT_RESULT("speed_px_frame", R, speed_px), .unit = "px/frame", .not_in = OCT_RESULT_CSV},
    {OCT_RESULT_NAMED("how", R, found.how, oct_cells_how_names), .unit = "1"},
};
static const struct oct_result_fields row_fields = OCT_RESULT_FIELDS(row_columns);

static const struct oct_result_field napari_columns[] = {
    {OCT_RESULT("track_id", R, found.track)},
    {OCT_RESULT("t", R, frame)},
    {OCT_RESULT("y", R, found.y_px)},
    {OCT_RESULT("x", R, found.x_px)},
};
static const struct oct_result_fields napari_fields = OCT_RESULT_FIELDS(napari_columns);
#undef R

enum oct_err oct_cells_write_csv(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct oct_cells_job *c = job;
    struct oct_result_field columns[sizeof(row_columns) / sizeof(row_columns[0])];
    struct oct_result_fields known = {.fields = columns};
    for (unsigned i = 0; i < row_fields.n; i++)
        if (oct_cells_has_um(c) || strncmp(row_columns[i].unit, "um", 2) != 0)
            columns[known.n++] = row_columns[i];
    const struct oct_result_rows rows = OCT_RESULT_ROWS(known, c->rows.rows, c->rows.n);
    return oct_result_csv(path, force, &rows, err);
}

static void fill_by_track(const void *rows, uint64_t i, void *row)
{
    *(struct oct_cells_row *)row = *((const struct oct_cells_rows *)rows)->by_track[i];
}

enum oct_err oct_cells_write_napari(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct oct_cells_job *c = job;
    struct oct_result_rows rows = OCT_RESULT_ROWS(napari_fields, c->rows.rows, c->rows.n);
    rows.fill = fill_by_track;
    rows.context = &c->rows;
    return oct_result_csv(path, force, &rows, err);
}

static void write_tracks(struct oct_results *results, const struct oct_cells_job *c)
{
    const struct oct_result_rows rows = OCT_RESULT_ROWS(row_fields, c->rows.rows, c->rows.n);
    oct_result_datasets(results, "/tracks", &rows);
    oct_results_text(results, "/tracks", "config", c->config);
    oct_results_text(results, "/tracks", "backend", c->summary.backend);
    oct_results_count(results, "/tracks", "frames", c->n);
    oct_results_count(results, "/tracks", "height_px", c->height);
    oct_results_count(results, "/tracks", "width_px", c->width);
    oct_results_numbers(results, "/tracks", "um_px", c->um, 2); /* dy, dx */
}

enum oct_err oct_cells_write_h5(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct oct_cells_job *c = job;
    struct oct_results *results;
    const enum oct_err e = oct_results_create(&results, path, "cells", force, err);
    if (e)
        return e;
    oct_outputs_source(results, c->job.inputs, c->job.n_inputs);
    write_tracks(results, c);
    return oct_results_publish(results, err);
}

enum oct_err oct_cells_check_into(const struct oct_cells_job *c, struct oct_error *err)
{
    const char *into = c->given.into;
    struct oct_results *results;
    enum oct_err e = oct_whole_file_may(into, true, c->job.inputs, c->job.n_inputs, err);
    if (!e && oct_outputs_is_recording(into))
        e = oct_fail(err, OCT_E_ARG,
                     "%s: is a recording, which stays as it is; --into needs a file of results",
                     into);
    if (e)
        return e;
    e = oct_results_amend(&results, into, "/tracks", c->given.job.force, err);
    oct_results_discard(results);
    return e;
}

enum oct_err oct_cells_write_into(const struct oct_cells_job *c, struct oct_error *err)
{
    struct oct_results *results;
    const enum oct_err e =
        oct_results_amend(&results, c->given.into, "/tracks", c->given.job.force, err);
    if (e)
        return e;
    write_tracks(results, c);
    return oct_results_publish(results, err);
}
