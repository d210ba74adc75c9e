/* How what octctl calibrate report measured is told: text, JSON, two plots. One thread. */
#ifndef OCT_TOOLS_CALIBRATE_REPORT_H
#define OCT_TOOLS_CALIBRATE_REPORT_H

#include "analysis/rolloff/rolloff.h"
#include "tools/analyse/calibrate_measure.h"

struct oct_calibrate_report {
    const struct oct_measure *files; /* [n] */
    unsigned n;
    struct oct_rolloff_line rolloff; /* of the configured chain; NaN with fewer than 3 depths */
};

/* Fits the roll-off. */
void oct_calibrate_report_init(struct oct_calibrate_report *report, const struct oct_measure *files,
                               unsigned n);

void oct_calibrate_report_text(const struct oct_calibrate_report *report);
bool oct_calibrate_report_json(const struct oct_calibrate_report *report); /* false: no memory */

/* For struct oct_output_file, context a struct oct_calibrate_report: the A-lines of all files, and
 * the peak of the file whose depth is in the middle with every window. */
enum oct_err oct_calibrate_report_peaks(void *context, const char *path, bool force,
                                        struct oct_error *err);
enum oct_err oct_calibrate_report_windows(void *context, const char *path, bool force,
                                          struct oct_error *err);

#endif
