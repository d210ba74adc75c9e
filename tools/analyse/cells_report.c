#include "tools/analyse/cells_report.h"

#include "formats/csv.h"
#include "formats/results.h"
#include "tools/outputs.h"

#include <math.h>
#include <stdlib.h>

#define ROWS_A_WRITE 4096u

/* ---- CSV ---- */

static const char *header_of(bool has_um)
{
    return has_um ? "track,frame,time_s,x_px,y_px,x_um,y_um,radius_um,score,speed_um_s,how"
                  : "track,frame,time_s,x_px,y_px,score,how";
}

enum oct_err oct_cells_report_csv(void *context, const char *path, bool force,
                                  struct oct_error *err)
{
    const struct oct_cells_report *report = context;
    const struct oct_cells_run *run = report->run;
    const bool has_um = oct_cells_run_has_um(run);
    struct oct_csv *csv;
    const enum oct_err e = oct_csv_create(&csv, path, force, header_of(has_um), err);
    if (e)
        return e;
    for (size_t i = 0; i < run->rows.n; i++) {
        const struct oct_cells_row *r = &run->rows.rows[i];
        if (r->track > 0)
            oct_csv_count(csv, r->track);
        else
            oct_csv_text(csv, "");
        oct_csv_count(csv, r->frame);
        oct_csv_number(csv, r->time_s);
        oct_csv_number(csv, r->x_px);
        oct_csv_number(csv, r->y_px);
        if (has_um) {
            oct_csv_number(csv, r->x_px * run->um[1]);
            oct_csv_number(csv, r->y_px * run->um[0]);
            oct_csv_number(csv, r->radius_px * run->grid.um);
        }
        oct_csv_number(csv, (double)r->score);
        if (has_um)
            oct_csv_number(csv, r->speed_um_s);
        oct_csv_text(csv, oct_cells_how_names[r->how]);
        oct_csv_end_row(csv);
    }
    return oct_csv_publish(csv, err);
}

enum oct_err oct_cells_report_napari(void *context, const char *path, bool force,
                                     struct oct_error *err)
{
    const struct oct_cells_report *report = context;
    const struct oct_cells_rows *rows = &report->run->rows;
    struct oct_csv *csv;
    size_t *order = oct_cells_rows_by_track(rows);
    if (!order)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    enum oct_err e = oct_csv_create(&csv, path, force, "track_id,t,y,x", err);
    for (size_t i = 0; i < rows->n && !e; i++) {
        const struct oct_cells_row *r = &rows->rows[order[i]];
        oct_csv_count(csv, r->track);
        oct_csv_count(csv, r->frame);
        oct_csv_number(csv, r->y_px);
        oct_csv_number(csv, r->x_px);
        oct_csv_end_row(csv);
    }
    free(order);
    return e ? e : oct_csv_publish(csv, err);
}

/* ---- HDF5 ---- */

enum { TIME, X_PX, Y_PX, X_UM, Y_UM, RADIUS_PX, RADIUS_UM, SCORE, SPEED_UM_S, SPEED_PX, N_NUMBERS };

static const struct {
    const char *name, *unit;
} numbers[N_NUMBERS] = {
    [TIME] = {"/tracks/time_s", "s"},
    [X_PX] = {"/tracks/x_px", "px"},
    [Y_PX] = {"/tracks/y_px", "px"},
    [X_UM] = {"/tracks/x_um", "um"},
    [Y_UM] = {"/tracks/y_um", "um"},
    [RADIUS_PX] = {"/tracks/radius_px", "px"},
    [RADIUS_UM] = {"/tracks/radius_um", "um"},
    [SCORE] = {"/tracks/score", "1"},
    [SPEED_UM_S] = {"/tracks/speed_um_s", "um/s"},
    [SPEED_PX] = {"/tracks/speed_px_frame", "px/frame"},
};

static double number_of(const struct oct_cells_run *run, const struct oct_cells_row *r, int which)
{
    switch (which) {
    case TIME:
        return r->time_s;
    case X_PX:
        return r->x_px;
    case Y_PX:
        return r->y_px;
    case X_UM:
        return r->x_px * run->um[1];
    case Y_UM:
        return r->y_px * run->um[0];
    case RADIUS_PX:
        return r->radius_px;
    case RADIUS_UM:
        return r->radius_px * run->grid.um;
    case SCORE:
        return (double)r->score;
    case SPEED_UM_S:
        return r->speed_um_s;
    default:
        return r->speed_px;
    }
}

static void write_numbers(struct oct_results *results, const struct oct_cells_run *run, int which)
{
    const struct oct_cells_rows *rows = &run->rows;
    const uint64_t n = rows->n;
    double values[ROWS_A_WRITE];
    const unsigned dataset = oct_results_dataset(results, numbers[which].name, OCT_RESULTS_F64, 1,
                                                 &n, numbers[which].unit);
    for (size_t first = 0; first < n; first += ROWS_A_WRITE) {
        const size_t part = n - first < ROWS_A_WRITE ? n - first : ROWS_A_WRITE;
        for (size_t i = 0; i < part; i++)
            values[i] = number_of(run, &rows->rows[first + i], which);
        oct_results_write_rows(results, dataset, first, part, values);
    }
}

static void write_whole(struct oct_results *results, const struct oct_cells_rows *rows)
{
    const uint64_t n = rows->n;
    uint64_t tracks[ROWS_A_WRITE], frames[ROWS_A_WRITE];
    uint8_t hows[ROWS_A_WRITE];
    const unsigned track =
        oct_results_dataset(results, "/tracks/track", OCT_RESULTS_U64, 1, &n, "1");
    const unsigned frame =
        oct_results_dataset(results, "/tracks/frame", OCT_RESULTS_U64, 1, &n, "1");
    const unsigned how = oct_results_dataset(results, "/tracks/how", OCT_RESULTS_U8, 1, &n, "1");
    for (size_t first = 0; first < n; first += ROWS_A_WRITE) {
        const size_t part = n - first < ROWS_A_WRITE ? n - first : ROWS_A_WRITE;
        for (size_t i = 0; i < part; i++) {
            tracks[i] = rows->rows[first + i].track;
            frames[i] = rows->rows[first + i].frame;
            hows[i] = (uint8_t)rows->rows[first + i].how;
        }
        oct_results_write_rows(results, track, first, part, tracks);
        oct_results_write_rows(results, frame, first, part, frames);
        oct_results_write_rows(results, how, first, part, hows);
    }
    oct_results_text(results, "/tracks/how", "meaning", "0 detected, 1 snake, 2 coasted");
    oct_results_text(results, "/tracks/track", "meaning", "0: detection alone");
}

static void write_tracks(struct oct_results *results, const struct oct_cells_report *report)
{
    write_whole(results, &report->run->rows);
    for (int which = 0; which < N_NUMBERS; which++)
        write_numbers(results, report->run, which);
    oct_results_text(results, "/tracks", "config", report->config);
    oct_results_text(results, "/tracks", "backend", report->run->running);
    oct_results_count(results, "/tracks", "frames", report->run->n);
    oct_results_count(results, "/tracks", "height_px", report->run->height);
    oct_results_count(results, "/tracks", "width_px", report->run->width);
    oct_results_numbers(results, "/tracks", "um_px", report->run->um, 2); /* dy, dx */
}

enum oct_err oct_cells_report_h5(void *context, const char *path, bool force, struct oct_error *err)
{
    const struct oct_cells_report *report = context;
    struct oct_results *results;
    const enum oct_err e = oct_results_create(&results, path, "cells", force, err);
    if (e)
        return e;
    oct_outputs_source(results, report->inputs, report->n_inputs);
    write_tracks(results, report);
    return oct_results_publish(results, err);
}

enum oct_err oct_cells_report_into(const struct oct_cells_report *report, const char *path,
                                   bool force, struct oct_error *err)
{
    struct oct_results *results;
    const enum oct_err e = oct_results_amend(&results, path, "/tracks", force, err);
    if (e)
        return e;
    write_tracks(results, report);
    return oct_results_publish(results, err);
}
