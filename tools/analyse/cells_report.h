/* What octctl cells found, and how it is told. Writers of a struct oct_output_file, of a struct
 * oct_cells_report; errors as those of formats/csv.h, formats/results.h, formats/whole_file.h and
 * plot/plot.h. One thread. */
#ifndef OCT_TOOLS_CELLS_REPORT_H
#define OCT_TOOLS_CELLS_REPORT_H

#include "tools/analyse/cells_run.h"
#include "tools/analyse/cells_summary.h"

struct oct_results;

struct oct_cells_report {
    struct oct_cells_run *run; /* after oct_cells_run_all */
    const struct oct_cells_summary *summary;
    const char *const *inputs; /* [n_inputs] */
    unsigned n_inputs;
    const char *config; /* text: what was asked for, "key = value" a line */
    bool detect_only;
};

/* ---- cells_report.c: tables ---- */

/* "track,frame,time_s,x_px,...": those in um and um/s are left out where the pixels' size is
 * unknown; times and speeds are empty where they are. */
enum oct_err oct_cells_report_csv(void *report, const char *path, bool force,
                                  struct oct_error *err);
/* "track_id,t,y,x", px, in order of track: a tracks layer of napari. */
enum oct_err oct_cells_report_napari(void *report, const char *path, bool force,
                                     struct oct_error *err);
/* A file with /tracks: a dataset a column. */
enum oct_err oct_cells_report_h5(void *report, const char *path, bool force, struct oct_error *err);
/* /tracks in a file of results that is there; force: instead of those it has. The file is replaced
 * when the new one is whole. */
enum oct_err oct_cells_report_into(const struct oct_cells_report *report, const char *path,
                                   bool force, struct oct_error *err);

/* ---- cells_trackmate.c ---- */

enum oct_err oct_cells_report_trackmate(void *report, const char *path, bool force,
                                        struct oct_error *err);

/* ---- cells_overlay.c: a circle a cell on the pictures ---- */

/* Whether the pictures may be made in this folder, which need not exist. OCT_E_ARG, OCT_E_IO. */
enum oct_err oct_cells_overlay_check(const char *path, bool force, struct oct_error *err);

/* A folder of PNG files; force: those of an earlier run go. */
enum oct_err oct_cells_report_frames(const struct oct_cells_report *report, const char *path,
                                     bool force, struct oct_error *err);
enum oct_err oct_cells_report_film(void *report, const char *path, bool force,
                                   struct oct_error *err); /* an AVI */

/* ---- cells_plots.c ---- */

enum oct_err oct_cells_report_kymograph(void *report, const char *path, bool force,
                                        struct oct_error *err);
enum oct_err oct_cells_report_histogram(void *report, const char *path, bool force,
                                        struct oct_error *err);

/* The colour of a track, 0xRRGGBB, bright enough to stand on grey. */
unsigned oct_cells_track_colour(uint64_t track);

#endif
