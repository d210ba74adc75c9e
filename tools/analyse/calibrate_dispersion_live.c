/* octctl calibrate dispersion --live: a running octd does it on its next B-scans. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "config/apply.h"
#include "tools/analyse/calibrate_dispersion.h"
#include "tools/commands.h"
#include "tools/control/wait.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether the daemon's dispersion is the very file of this configuration. */
static bool is_same_file(const struct oct_dispersion_job *job, struct oct_control_link *control)
{
    static const char ask[] = "{\"cmd\":\"get\",\"key\":\"calibration.dispersion\"}";
    cJSON *answer = NULL;
    if (oct_control_ask(control, ask, &answer, NULL, NULL))
        return false;
    const char *path = oct_json_text(answer, "value");
    char *theirs = path ? realpath(path, NULL) : NULL;
    char *ours = realpath(job->config.calibration.dispersion, NULL);
    const bool is_same = theirs && ours && strcmp(theirs, ours) == 0;
    free(theirs);
    free(ours);
    cJSON_Delete(answer);
    return is_same;
}

/* Of a dispersion that is a file: the whole, from that file and what remained. */
static enum oct_err combine(struct oct_dispersion_job *job, struct oct_control_link *control,
                            const cJSON *result, struct oct_error *err)
{
    const double remaining[2] = {oct_json_number(result, "a2"), oct_json_number(result, "a3")};
    if (!job->plan || !is_same_file(job, control))
        return oct_fail(err, OCT_E_ARG,
                        "octd's dispersion is a file, which coefficients do not add to: name "
                        "octd's own configuration (--config), so that both become a file");
    return oct_sharpen_combine(job->plan, remaining, &job->whole, err);
}

/* Prints it. */
static enum oct_err tell(struct oct_dispersion_job *job, struct oct_control_link *control,
                         const cJSON *result, struct oct_error *err)
{
    const char *why = oct_json_text(result, "why");
    job->ini = cJSON_GetObjectItemCaseSensitive(result, "ini");
    if (job->given.job.json)
        oct_command_print_json(result);
    if (why && *why)
        return oct_fail(err, OCT_E_ARG, "%s", why);
    if (!job->given.job.json)
        oct_dispersion_print(job, result);
    return job->ini ? OCT_OK : combine(job, control, result, err);
}

enum oct_err oct_dispersion_ask(struct oct_dispersion_job *job, struct oct_error *err)
{
    const struct oct_dispersion_given *g = &job->given;
    const struct oct_dispersion_settings *s = &job->settings;
    struct oct_control_wait wait = {.command = "calibrate", .wait_s = s->wait_s};
    const cJSON *result = NULL;
    double number = 0;
    job->job.says_nothing = true;
    enum oct_err e =
        oct_control_open(&wait.control, job->job.config, g->endpoint, s->timeout_s, err);
    e = e ? e : oct_errand_ask(&wait, "{\"cmd\":\"calibrate\"}", &number, err);
    wait.most_s = s->wait_s;
    e = e ? e : oct_errand_wait(&wait, number, &job->status, &result, err);
    e = e ? e : tell(job, wait.control, result, err);
    oct_control_close(wait.control);
    return e;
}
