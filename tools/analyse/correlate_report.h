/* What octctl correlate says of a sequence: numbers of each picture, their fit, and the files,
 * plots and lines made of them. One thread. */
#ifndef OCT_TOOLS_CORRELATE_REPORT_H
#define OCT_TOOLS_CORRELATE_REPORT_H

#include "tools/analyse/correlate_run.h"

struct oct_correlate_row {
    uint64_t frame, time_ns;
    const char *path;
    char *left_out; /* why; owned. NULL: it is not */
    double um;      /* of a pixel; NaN: unknown, or not the same along both axes */
    struct oct_ring_peak peak;
};

/* R_max = offset + slope t, by least squares. */
struct oct_correlate_fit {
    uint64_t n; /* pictures with a ring; fewer than 2: no fit, all are NaN */
    double slope, offset, r2;
};

struct oct_correlate_report {
    const char *source; /* first path */
    uint64_t n;         /* [n] pictures */
    struct oct_correlate_row *rows;
    double *c1d, *radius; /* of the first picture, [max_shift + 1] */
    uint32_t max_shift, height, width;
    const char *norm, *mean, *engine;
    double seconds;
    bool has_fit;
    struct oct_correlate_fit fit;
};

/* OCT_E_NO_MEMORY; *report is empty then. */
enum oct_err oct_correlate_report_init(struct oct_correlate_report *report, uint64_t n,
                                       uint32_t max_shift, struct oct_error *err);
/* The file of picture i of a struct oct_correlate_report. */
const char *oct_correlate_report_path(const void *report, uint64_t i);

void oct_correlate_report_finish(struct oct_correlate_report *report); /* of an empty one too */

/* OCT_E_NO_MEMORY. */
enum oct_err oct_correlate_report_take(struct oct_correlate_report *report,
                                       const struct oct_correlate_result *result,
                                       struct oct_error *err);

/* Over time where it is known, else over the number of the picture. */
void oct_correlate_report_fit(struct oct_correlate_report *report);

/* Seconds since the first picture; NaN: unknown. */
double oct_correlate_report_time(const struct oct_correlate_report *report, uint64_t i);

/* Writers of a struct oct_output_file, of a struct oct_correlate_report. */
enum oct_err oct_correlate_report_csv(void *report, const char *path, bool force,
                                      struct oct_error *err);
enum oct_err oct_correlate_report_plot(void *report, const char *path, bool force,
                                       struct oct_error *err);

void oct_correlate_report_print(const struct oct_correlate_report *report);
bool oct_correlate_report_print_json(const struct oct_correlate_report *report);

/* How many R_max are more than a quarter of the smaller side: they scatter. */
uint64_t oct_correlate_report_n_far(const struct oct_correlate_report *report);

#endif
