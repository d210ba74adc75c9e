/* What the files of octctl calibrate dispersion share. */
#ifndef OCT_TOOLS_CALIBRATE_DISPERSION_H
#define OCT_TOOLS_CALIBRATE_DISPERSION_H

#include "analysis/calibrate/sharpen.h"
#include "config/config.h"
#include "tools/outputs.h"

#include <stdio.h>

struct cJSON;

#define OCT_DISPERSION_BSCANS 8u

struct oct_dispersion_options {
    const char *out, *png, *endpoint;
    uint64_t bscans, lines, first_px, last_px;
    double most_a2, most_a3, timeout_s, wait_s;
    bool json, force, live;
};

struct oct_dispersion_job {
    const char *name; /* of the command */
    struct oct_dispersion_options options;
    const char *in; /* NULL: live */
    const struct oct_config *config;
    struct oct_plan *plan;
    struct oct_sharpen *sharpen;
    struct oct_sharpen_result result;
    struct oct_sharpen_dispersion whole;
    float *before, *after;   /* [lines][depth] of the pictures */
    char *table, *curve;     /* names beside --out and --png */
    const struct cJSON *ini; /* live: the lines as the daemon gave them */
    struct oct_output_file files[4];
    unsigned n_files;
};

/* The files that are asked for; OCT_E_ARG, OCT_E_IO: one may not be made. */
enum oct_err oct_dispersion_list_files(struct oct_dispersion_job *job, struct oct_error *err);

/* Makes before and after. */
enum oct_err oct_dispersion_draw(struct oct_dispersion_job *job, struct oct_error *err);

/* The lines of a configuration that a daemon told, one a line. */
void oct_dispersion_print_ini(const struct cJSON *ini, FILE *file);

/* --live; returns the exit status. */
int oct_dispersion_live(struct oct_dispersion_job *job);

#endif
