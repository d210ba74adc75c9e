/* What the files of octctl calibrate dispersion share. */
#ifndef OCT_TOOLS_CALIBRATE_DISPERSION_H
#define OCT_TOOLS_CALIBRATE_DISPERSION_H

#include "analysis/calibrate/sharpen.h"
#include "tools/analyse/job.h"
#include "tools/options.h"

#include <stdio.h>

struct cJSON;
struct oct_recording;

struct oct_dispersion_settings {
    uint32_t bscans, lines, first_px, last_px; /* last_px 0: all */
    double most_a2, most_a3, timeout_s, wait_s;
};

struct oct_dispersion_given {
    struct oct_param_texts own; /* of the settings */
    const char *png, *endpoint, *old_out;
    bool live;
    struct oct_job_options job;
};

struct oct_dispersion_job {
    struct oct_job job;
    struct oct_dispersion_given given;
    struct oct_dispersion_settings settings;
    const char *in;           /* NULL: live */
    struct oct_config config; /* effective */
    struct oct_recording *recording;
    char *table, *curve; /* names beside OUT.ini and --png */
    struct oct_plan *plan;
    struct oct_sharpen *sharpen;
    struct oct_sharpen_result result;
    struct oct_sharpen_dispersion whole;
    struct cJSON *status;    /* live: the daemon's answer */
    const struct cJSON *ini; /* live: the lines as the daemon gave them */
};

/* The lines of a configuration that a daemon told, one a line. */
void oct_dispersion_print_ini(const struct cJSON *ini, FILE *file);

/* What was found, as oct_sharpen_describe says it. */
void oct_dispersion_print(const struct oct_dispersion_job *job, const struct cJSON *result);

/* --live: an octd searches; prints what it found. */
enum oct_err oct_dispersion_ask(struct oct_dispersion_job *job, struct oct_error *err);

#endif
