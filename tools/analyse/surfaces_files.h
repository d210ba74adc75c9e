/* What octctl surfaces writes and prints of layers: OUT.h5, --csv, --phi, the summary. The writers
 * make the whole file or nothing; their context is a struct oct_surfaces_report. One thread. */
#ifndef OCT_TOOLS_SURFACES_FILES_H
#define OCT_TOOLS_SURFACES_FILES_H

#include "tools/analyse/surfaces_run.h"

struct oct_results;

struct oct_surfaces_report {
    struct oct_surfaces_run *run;
    const char *out;

    /* Of the picture that is being drawn (surfaces_pictures.c). */
    unsigned which_slab;
};

enum oct_err oct_surfaces_report_h5(void *report, const char *path, bool force,
                                    struct oct_error *err);
enum oct_err oct_surfaces_report_csv(void *report, const char *path, bool force,
                                     struct oct_error *err);
enum oct_err oct_surfaces_report_phi(void *report, const char *path, bool force,
                                     struct oct_error *err);

/* The parameters of the level set as attributes of the file. */
void oct_surfaces_write_levelset(struct oct_results *results,
                                 const struct oct_levelset_params *params);

/* Voxels from the surface on that patches about the band see. */
double oct_surfaces_reach(const struct oct_levelset_params *params);

void oct_surfaces_print(const struct oct_surfaces_report *report);
enum oct_err oct_surfaces_print_json(const struct oct_surfaces_report *report,
                                     struct oct_error *err);

/* What is not known or was not found, a line each on stderr. */
void oct_surfaces_warn(const struct oct_surfaces_run *run, const char *name);

/* "OD", "OS" or "". */
const char *oct_surfaces_eye_name(enum oct_surfaces_eye eye);

#endif
