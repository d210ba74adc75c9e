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

void oct_dispersion_print_ini(const cJSON *ini, FILE *file)
{
    const cJSON *line;
    cJSON_ArrayForEach(line, ini) if (cJSON_IsString(line))
        fprintf(file, "%s\n", line->valuestring);
}

static void print_text(const cJSON *r, const cJSON *ini)
{
    printf("remaining   a2 %.3f +- %.3f rad, a3 %.3f +- %.3f rad over the spectrum\n",
           oct_json_number(r, "a2"), oct_json_number(r, "a2_error"), oct_json_number(r, "a3"),
           oct_json_number(r, "a3_error"));
    printf("sharpness   %.2f -> %.2f (noise: 2), agreement %.2f\n",
           oct_json_number(r, "sharpness_before"), oct_json_number(r, "sharpness_after"),
           oct_json_number(r, "agreement"));
    if (oct_json_number(r, "widths") > 0)
        printf("width       %.2f -> %.2f px, median of the brightest layer of %.0f A-lines\n",
               oct_json_number(r, "width_before_px"), oct_json_number(r, "width_after_px"),
               oct_json_number(r, "widths"));
    if (!ini)
        return;
    printf("for the configuration, or octctl stop, octctl set calibration.KEY VALUE, octctl "
           "start:\n\n[calibration]\n");
    oct_dispersion_print_ini(ini, stdout);
}

/* Whether the daemon's dispersion is the very file of this configuration. */
static bool is_same_file(const struct oct_dispersion_job *job, struct oct_control_link *control)
{
    static const char ask[] = "{\"cmd\":\"get\",\"key\":\"calibration.dispersion\"}";
    cJSON *answer = NULL;
    if (oct_control_ask(control, ask, &answer, NULL, NULL))
        return false;
    const char *path = oct_json_text(answer, "value");
    char *theirs = path ? realpath(path, NULL) : NULL;
    char *ours = realpath(job->config->calibration.dispersion, NULL);
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

/* Prints and writes. */
static enum oct_err tell(struct oct_dispersion_job *job, struct oct_control_link *control,
                         const cJSON *result, struct oct_error *err)
{
    const char *why = oct_json_text(result, "why");
    job->ini = cJSON_GetObjectItemCaseSensitive(result, "ini");
    if (job->options.json && !oct_command_print_json(result))
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    if (why && *why)
        return oct_fail(err, OCT_E_ARG, "%s", why);
    if (!job->options.json)
        print_text(result, job->ini);
    enum oct_err e = job->ini ? OCT_OK : combine(job, control, result, err);
    return e ? e : oct_outputs_write(job->files, job->n_files, job->options.force, err);
}

/* An option that octd could not follow; NULL: there is none. */
static const char *option_of_files(const struct oct_dispersion_options *o)
{
    return o->bscans != OCT_DISPERSION_BSCANS           ? "--bscans"
           : o->lines != oct_sharpen_standard.n_lines   ? "--lines"
           : o->first_px != OCT_SHARPEN_FIRST_PX        ? "--first"
           : o->last_px != 0                            ? "--last"
           : o->most_a2 != oct_sharpen_standard.most_a2 ? "--most-a2"
           : o->most_a3 != oct_sharpen_standard.most_a3 ? "--most-a3"
                                                        : NULL;
}

int oct_dispersion_live(struct oct_dispersion_job *job)
{
    const struct oct_dispersion_options *o = &job->options;
    struct oct_control_wait wait = {.command = "calibrate", .wait_s = o->wait_s};
    struct oct_error err;
    cJSON *status = NULL;
    const cJSON *result = NULL;
    double number = 0;
    if (o->png)
        return oct_command_misuse(job->name, "--live has no --png: see the topic calibrate");
    if (option_of_files(o))
        return oct_command_misuse(job->name, "--live has no %s: octd searches as it does without",
                                  option_of_files(o));
    enum oct_err e = OCT_OK;
    if (job->config->calibration.dispersion[0])
        e = oct_config_plan(job->config, &job->plan, &err);
    e = e ? e : oct_dispersion_list_files(job, &err);
    e = e ? e : oct_control_open(&wait.control, job->config, o->endpoint, o->timeout_s, &err);
    e = e ? e : oct_errand_ask(&wait, "{\"cmd\":\"calibrate\"}", &number, &err);
    wait.most_s = o->wait_s;
    e = e ? e : oct_errand_wait(&wait, number, &status, &result, &err);
    e = e ? e : tell(job, wait.control, result, &err);
    cJSON_Delete(status);
    oct_control_close(wait.control);
    return e ? oct_command_fail_at_work(job->name, &err) : 0;
}
