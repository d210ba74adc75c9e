/* doctor: watches a running daemon's stream for some seconds and says what the camera driver does
 * right and wrong, one line each. */
#include "tools/commands.h"
#include "tools/doctor.h"

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

static int read_options(struct doctor_call *call, int argc, char **argv)
{
    *call = (struct doctor_call){.seconds = 5, .timeout_s = 5};
    for (int i = 1; i < argc; i++) {
        const char *value;
        if (oct_option_flag(argv[i], "--json")) {
            call->json = true;
        } else if (oct_option_value(argc, argv, &i, "--seconds", &value)) {
            if (!oct_option_double(value, &call->seconds) || call->seconds < LEAST_S ||
                call->seconds > MOST_S)
                return oct_command_misuse(argv[0], "--seconds needs a number from 0.5 to 3600");
        } else if (oct_option_value(argc, argv, &i, "--timeout", &value)) {
            if (!oct_option_double(value, &call->timeout_s) || call->timeout_s <= 0 ||
                call->timeout_s > MOST_S)
                return oct_command_misuse(argv[0], "--timeout needs a number of seconds above 0");
        } else if (oct_option_value(argc, argv, &i, "--endpoint", &value)) {
            if (!value)
                return oct_command_misuse(argv[0], "--endpoint needs a value");
            call->endpoint = value;
        } else if (strncmp(argv[i], "--", 2) == 0) {
            return oct_command_misuse(argv[0], "unknown option '%s'", argv[i]);
        } else {
            return oct_command_misuse(argv[0], "unexpected argument '%s'", argv[i]);
        }
    }
    return 0;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static enum oct_err watch(struct oct_doctor_seen *seen, const struct oct_config *config,
                          const struct doctor_call *call, struct oct_error *err)
{
    double end_s = now_s() + call->seconds;
    for (bool last = false;; last = now_s() + LOOK_S >= end_s) {
        cJSON *status;
        enum oct_err code =
            oct_control_status(config, call->endpoint, call->timeout_s, &status, err);
        if (code)
            return code;
        oct_doctor_watch(seen, status);
        if (last)
            return OCT_OK;
        nanosleep(&(struct timespec){.tv_nsec = (long)(LOOK_S * 1e9)}, NULL);
    }
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

int oct_cmd_doctor(struct oct_config *config, int argc, char **argv)
{
    struct doctor_call call;
    struct oct_doctor_seen seen = {.first = NULL};
    struct oct_doctor_report report;
    struct oct_error err;
    int status = read_options(&call, argc, argv);
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
