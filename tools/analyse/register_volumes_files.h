/* What octctl register-volumes writes and prints: OUT.h5, NIfTI, the summary. The writers are for
 * outputs.h; their context is a struct oct_volumes_report. One thread at a time. */
#ifndef OCT_TOOLS_REGISTER_VOLUMES_FILES_H
#define OCT_TOOLS_REGISTER_VOLUMES_FILES_H

#include "tools/analyse/register_volumes_run.h"

struct oct_results;

struct oct_volumes_report {
    struct oct_volumes_run *run;
    const char *out;
    struct oct_results *h5; /* OUT.h5 while pairs are written to it */

    /* The pair in hand, which the writers of its files show. */
    unsigned pair;
    const struct oct_volumes_result *result;
};

/* Datasets and numbers of the pair in hand, into report->h5. Errors come with _h5. */
void oct_volumes_write_pair(struct oct_volumes_report *report);

/* The average and the settings, and gives the file its name. */
enum oct_err oct_volumes_report_h5(void *report, const char *path, bool force,
                                   struct oct_error *err);

/* Of the pair in hand. */
enum oct_err oct_volumes_nifti_warped(void *report, const char *path, bool force,
                                      struct oct_error *err);
enum oct_err oct_volumes_nifti_displacement(void *report, const char *path, bool force,
                                            struct oct_error *err);
enum oct_err oct_volumes_nifti_jacobian(void *report, const char *path, bool force,
                                        struct oct_error *err);
enum oct_err oct_volumes_nifti_average(void *report, const char *path, bool force,
                                       struct oct_error *err);

void oct_volumes_print(const struct oct_volumes_report *report);
enum oct_err oct_volumes_print_json(const struct oct_volumes_report *report, struct oct_error *err);

/* What should be known of the result, a line each on stderr. */
void oct_volumes_warn(const struct oct_volumes_run *run, const char *name);

#endif
