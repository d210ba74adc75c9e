/* octctl doctor: collects the status of a daemon over some seconds and judges its stream. */
#ifndef OCT_TOOLS_DOCTOR_H
#define OCT_TOOLS_DOCTOR_H

#include "pipeline/ingest/sample_look.h"

#include <stdbool.h>
#include <stddef.h>

struct cJSON;

enum { OCT_DOCTOR_MOST_CHECKS = 40, OCT_DOCTOR_MOST_FAULTS = 8 };

/* One line of the report. */
struct oct_doctor_check {
    const char *name;
    bool ok;
    char text[320], cure[256]; /* cure: "" if there is nothing to be done */
};

struct oct_doctor_report {
    struct oct_doctor_check checks[OCT_DOCTOR_MOST_CHECKS];
    unsigned n;
};

/* What the statuses so far have shown. */
struct oct_doctor_seen {
    struct cJSON *first, *last; /* owned */
    unsigned n_looks;           /* at lines of messages, and what was seen in them: */
    double sample_min, sample_max;
    unsigned n_samples_like[OCT_N_SAMPLE_FAULTS];
    double look, camera_ns;   /* the newest */
    unsigned n_stood, n_back; /* of the camera's clock */
    unsigned n_faults;
    struct {
        char reason[40], text[320], cure[256];
    } faults[OCT_DOCTOR_MOST_FAULTS]; /* one of each reason, as last told */
};

/* Takes the status over. */
void oct_doctor_watch(struct oct_doctor_seen *seen, struct cJSON *status);

/* The status may come from any program: missing or absurd values count as 0. */
void oct_doctor_judge(const struct oct_doctor_seen *seen, struct oct_doctor_report *report);

bool oct_doctor_is_well(const struct oct_doctor_report *report);

void oct_doctor_forget(struct oct_doctor_seen *seen);

#endif
