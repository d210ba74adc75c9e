/* What octctl calibrate kmap says and writes. One thread. */
#ifndef OCT_TOOLS_CALIBRATE_KMAP_REPORT_H
#define OCT_TOOLS_CALIBRATE_KMAP_REPORT_H

#include "tools/analyse/calibrate_kmap_run.h"

/* The context of the writers below, which are those of a struct oct_output_file. */
struct oct_kmap_report {
    const struct oct_kmap_run *run;
    const char *folder; /* of the calibration */
    uint32_t mirror;    /* that a picture shows, where it shows one */
};

enum oct_err oct_kmap_write_kmap(void *report, const char *path, bool force, struct oct_error *err);
enum oct_err oct_kmap_write_phase(void *report, const char *path, bool force,
                                  struct oct_error *err);
enum oct_err oct_kmap_write_ini(void *report, const char *path, bool force, struct oct_error *err);
enum oct_err oct_kmap_write_json(void *report, const char *path, bool force, struct oct_error *err);

/* Mirror `mirror`: its mean line, the source, the fringe's envelope. */
enum oct_err oct_kmap_draw_spectrum(void *report, const char *path, bool force,
                                    struct oct_error *err);
/* All mirrors: the phase less its straight line; what the fit leaves; the peak before and after. */
enum oct_err oct_kmap_draw_phases(void *report, const char *path, bool force,
                                  struct oct_error *err);
enum oct_err oct_kmap_draw_residuals(void *report, const char *path, bool force,
                                     struct oct_error *err);
enum oct_err oct_kmap_draw_peaks(void *report, const char *path, bool force, struct oct_error *err);
/* The k map less its straight line, and theta. */
enum oct_err oct_kmap_draw_map(void *report, const char *path, bool force, struct oct_error *err);
enum oct_err oct_kmap_draw_dispersion(void *report, const char *path, bool force,
                                      struct oct_error *err);

void oct_kmap_print(const struct oct_kmap_report *report);
bool oct_kmap_print_json(const struct oct_kmap_report *report);

/* What deserves a look, a line each on stderr. */
void oct_kmap_warn(const struct oct_kmap_report *report, const char *name);

/* The last part of a path. */
const char *oct_kmap_file_name(const char *path);

#endif
