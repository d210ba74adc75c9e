/* What octctl cones found, and how it is told: CSV, HDF5, PNG, JSON and a line. One thread. */
#ifndef OCT_TOOLS_CONES_REPORT_H
#define OCT_TOOLS_CONES_REPORT_H

#include "analysis/cones/cones.h"
#include "formats/pictures.h"

#include <stdbool.h>

/* A picture: its tiles, or itself as the only one. */
struct oct_cones_frame {
    const char *path;        /* its file; NULL: not read yet */
    char *left_out;          /* why: it has one result, without a ring; owned. NULL: it is not */
    uint64_t time_ns, index; /* of oct_pictures_info */
    double um;               /* of a square pixel; NaN: unknown */
    uint32_t rows, columns;
    struct oct_cones_result *results; /* [rows][columns]; owned */
};

struct oct_cones_report {
    uint64_t n;
    struct oct_cones_frame *frames; /* [n]; owned */
    const char *const *inputs;      /* [n_inputs] */
    unsigned n_inputs;
    uint32_t tile, step; /* px; tile 0: whole pictures */
    double seconds;

    /* Of the first picture that was not left out, for the plot. */
    uint64_t n_first; /* its number */
    struct oct_picture first;
    double *radius, *c1d; /* [n_profile]; 0 with tiles */
    uint32_t n_profile;
};

/* OCT_E_NO_MEMORY; *report is empty then. */
enum oct_err oct_cones_report_init(struct oct_cones_report *report, uint64_t n,
                                   struct oct_error *err);
void oct_cones_report_finish(struct oct_cones_report *report); /* of an empty one too */

/* Writers of a struct oct_output_file, of a struct oct_cones_report; errors as those of
 * formats/csv.h, formats/results.h and plot/plot.h. */
enum oct_err oct_cones_report_csv(void *report, const char *path, bool force,
                                  struct oct_error *err);
enum oct_err oct_cones_report_h5(void *report, const char *path, bool force, struct oct_error *err);
/* C1D of the first picture, its ring marked; with tiles the map over it. */
enum oct_err oct_cones_report_plot(void *report, const char *path, bool force,
                                   struct oct_error *err);

/* What deserves a look, a line each on stderr. */
void oct_cones_report_warn(const struct oct_cones_report *report, const char *name);

void oct_cones_report_print(const struct oct_cones_report *report);
bool oct_cones_report_print_json(const struct oct_cones_report *report);

#endif
