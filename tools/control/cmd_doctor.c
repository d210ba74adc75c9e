/* doctor: watches a running daemon's stream for some seconds and says what the camera driver does
 * right and wrong, one line each. */
#include "pipeline/base/clock.h"
#include "tools/commands.h"
#include "tools/control/control.h"
#include "tools/control/doctor.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_S 0.2
#define LEAST_S 0.5
#define MOST_S 3600.0

struct doctor_call {
    double seconds, timeout_s;
    const char *endpoint;
    bool json;
};

static const struct oct_option options[] = {
    {"--seconds", "N", "watch for N seconds (5)", OCT_OPTION_NUMBER,
     .at = offsetof(struct doctor_call, seconds), .least = LEAST_S, .most = MOST_S,
     .needs = "a number from 0.5 to 3600"},
    {"--json", NULL, "as JSON", OCT_OPTION_FLAG, .at = offsetof(struct doctor_call, json)},
    {"--timeout", "S", "wait at most S seconds for an answer (5)", OCT_OPTION_NUMBER,
     .at = offsetof(struct doctor_call, timeout_s), .least = OCT_OPTION_ABOVE_0, .most = MOST_S,
     .needs = "a number of seconds above 0"},
    {"--endpoint", "E", "the daemon's control.endpoint", OCT_OPTION_TEXT,
     .at = offsetof(struct doctor_call, endpoint)},
    {NULL},
};

static double now_s(void)
{
    return (double)oct_clock_ns() * 1e-9;
}

static enum oct_err ask_status(struct oct_control_link *control, cJSON **status,
                               struct oct_error *err)
{
    enum oct_err code = oct_control_status(control, status, err);
    if (code || oct_json_is_true(*status, "ok"))
        return code;
    cJSON_Delete(*status);
    return oct_fail(err, OCT_E_FORMAT, "%s: the answer is no status",
                    oct_control_endpoint(control));
}

static enum oct_err watch(struct oct_doctor_seen *seen, const struct oct_config *config,
                          const struct doctor_call *call, struct oct_error *err)
{
    double end_s = now_s() + call->seconds;
    struct oct_control_link *control;
    enum oct_err code = oct_control_open(&control, config, call->endpoint, call->timeout_s, err);
    for (bool last = false; !code; last = now_s() + LOOK_S >= end_s) {
        cJSON *status;
        code = ask_status(control, &status, err);
        if (code)
            break;
        oct_doctor_watch(seen, status);
        if (last)
            break;
        nanosleep(&(struct timespec){.tv_nsec = (long)(LOOK_S * 1e9)}, NULL);
    }
    oct_control_close(control);
    return code;
}

static void print_report(const struct oct_doctor_report *r)
{
    for (unsigned i = 0; i < r->n; i++) {
        const struct oct_doctor_check *c = &r->checks[i];
        printf("%-5s  %-16s %s%s%s\n", c->ok ? "ok" : "WRONG", c->name, c->text,
               c->cure[0] ? ": " : "", c->cure);
    }
}

static int print_json(const struct oct_doctor_report *r, double seconds)
{
    cJSON *all = cJSON_CreateObject();
    cJSON_AddBoolToObject(all, "ok", oct_doctor_is_well(r));
    cJSON_AddNumberToObject(all, "seconds", seconds);
    cJSON *checks = cJSON_AddArrayToObject(all, "checks");
    for (unsigned i = 0; i < r->n; i++) {
        cJSON *check = cJSON_CreateObject();
        cJSON_AddStringToObject(check, "name", r->checks[i].name);
        cJSON_AddBoolToObject(check, "ok", r->checks[i].ok);
        cJSON_AddStringToObject(check, "text", r->checks[i].text);
        cJSON_AddStringToObject(check, "cure", r->checks[i].cure);
        cJSON_AddItemToArray(checks, check);
    }
    bool printed = oct_command_print_json(all);
    cJSON_Delete(all);
    return printed ? 0 : 1;
}

static int run(struct oct_config *config, int argc, char **argv)
{
    struct doctor_call call = {.seconds = 5, .timeout_s = 5};
    struct oct_doctor_seen seen = {.first = NULL};
    struct oct_doctor_report report;
    struct oct_error err;
    int status = oct_options_read(&oct_command_doctor, &call, &argc, argv);
    if (status)
        return status;
    if (watch(&seen, config, &call, &err)) {
        status = oct_command_fail(argv[0], &err);
    } else {
        oct_doctor_judge(&seen, &report);
        if (call.json)
            status = print_json(&report, call.seconds);
        else
            print_report(&report);
        status = status || !oct_doctor_is_well(&report);
    }
    oct_doctor_forget(&seen);
    return status;
}

const struct oct_command oct_command_doctor = {
    .name = "doctor",
    .usage = "[OPTIONS]",
    .help = "what the camera driver does right and wrong",
    .options = options,
    .keys = "",
    .run = run,
};
