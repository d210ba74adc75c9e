/* octctl background from a running octd: it takes the next B-scans beside its stream, the status
 * says how far it is, and the values come a few thousand at a time. */
#include "pipeline/base/clock.h"
#include "pipeline/flow/background.h"
#include "tools/background.h"
#include "tools/control_wait.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ANSWER_S 5.0 /* octd answers within 100 ms, or it is not there */
#define GRACE_S 5.0  /* beyond the time that octd itself gives its B-scans */

/* NaN: it is not there. */
static double number_of(const cJSON *object, const char *key)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static enum oct_err check_ok(const cJSON *answer, struct oct_error *err)
{
    const char *why = oct_json_text(answer, "error");
    if (oct_json_is_true(answer, "ok"))
        return OCT_OK;
    return oct_fail(err, OCT_E_STATE, "%s", why ? why : "octd refused without a reason");
}

/* *number: the errand's. */
static enum oct_err begin(struct oct_control *control, const struct oct_background_options *options,
                          double *number, struct oct_error *err)
{
    const struct oct_control_wait wait = {.control = control, .command = "background"};
    const uint64_t n = options->n_bscans ? options->n_bscans : OCT_BACKGROUND_BSCANS;
    char request[128];
    cJSON *answer = NULL;
    snprintf(request, sizeof(request), "{\"cmd\":\"background\",\"bscans\":%u,\"timeout_s\":%.3f}",
             (unsigned)n, options->timeout_s);
    enum oct_err e = oct_control_ask_patiently(&wait, request, &answer, NULL, err);
    if (!e)
        e = check_ok(answer, err);
    if (!e && !((*number = number_of(answer, "number")) > 0))
        e = oct_fail(err, OCT_E_FORMAT, "octd's answer has no number: is it older than octctl?");
    cJSON_Delete(answer);
    return e;
}

/* OCT_E_AGAIN: it is under way. */
static enum oct_err look(const cJSON *status, double number, struct oct_background_line *line,
                         struct oct_error *err)
{
    const cJSON *errand = cJSON_GetObjectItemCaseSensitive(status, "errand");
    const cJSON *result = cJSON_GetObjectItemCaseSensitive(errand, "result");
    const char *why = oct_json_text(errand, "error");
    if (number_of(errand, "number") != number)
        return oct_fail(err, OCT_E_STATE, "another command came between, or octd started anew");
    if (oct_json_is_true(errand, "pending"))
        return OCT_E_AGAIN;
    if (why && *why)
        return oct_fail(err, OCT_E_STATE, "%s", why);
    const double n = number_of(result, "samples");
    line->n_bscans = number_of(result, "bscans");
    line->n_lines = number_of(result, "lines");
    line->n_saturated = number_of(result, "saturated");
    if (!(n >= 1 && n <= OCT_MAX_SAMPLES) || !(line->n_lines >= 1) || !(line->n_bscans >= 1) ||
        !(line->n_saturated >= 0))
        return oct_fail(err, OCT_E_FORMAT, "octd's status says nothing of the background");
    line->n = (uint32_t)n;
    return OCT_OK;
}

static enum oct_err wait_done(struct oct_control *control,
                              const struct oct_background_options *options, double number,
                              struct oct_background_line *line, struct oct_error *err)
{
    const double most_s = options->timeout_s + GRACE_S;
    const uint64_t until_ns = oct_clock_ns() + (uint64_t)(most_s * 1e9);
    for (;;) {
        cJSON *status;
        enum oct_err e = oct_control_status(control, &status, err);
        if (e)
            return e;
        e = look(status, number, line, err);
        cJSON_Delete(status);
        if (e != OCT_E_AGAIN)
            return e;
        if (oct_clock_ns() > until_ns)
            return oct_fail(err, OCT_E_STATE, "not done within %g s: see octctl status", most_s);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
}

/* Adds the values of a reply to those that are there. */
static enum oct_err add_values(const cJSON *answer, double number, uint32_t *n_have,
                               struct oct_background_line *line, struct oct_error *err)
{
    const cJSON *values = cJSON_GetObjectItemCaseSensitive(answer, "values"), *value;
    enum oct_err e = check_ok(answer, err);
    if (e)
        return e;
    if (number_of(answer, "number") != number)
        return oct_fail(err, OCT_E_STATE, "another command came between, or octd started anew");
    if (!cJSON_IsArray(values) || !values->child)
        return oct_fail(err, OCT_E_FORMAT, "octd's answer has no values");
    cJSON_ArrayForEach(value, values)
    {
        const double counts = cJSON_GetNumberValue(value);
        if (*n_have == line->n || !(counts >= 0 && counts <= UINT16_MAX))
            return oct_fail(err, OCT_E_FORMAT, "octd's values are no counts, or too many");
        line->values[(*n_have)++] = counts;
    }
    return OCT_OK;
}

static enum oct_err fetch_values(struct oct_control *control, double number,
                                 struct oct_background_line *line, struct oct_error *err)
{
    uint32_t n_have = 0;
    enum oct_err e = OCT_OK;
    line->values = malloc(line->n * sizeof(*line->values));
    if (!line->values)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a background");
    while (!e && n_have < line->n) {
        char request[64];
        cJSON *answer = NULL;
        snprintf(request, sizeof(request), "{\"cmd\":\"background\",\"first\":%u}", n_have);
        e = oct_control_ask(control, request, &answer, NULL, err);
        if (!e)
            e = add_values(answer, number, &n_have, line, err);
        cJSON_Delete(answer);
    }
    return e;
}

enum oct_err oct_background_live(struct oct_background_line *line, const struct oct_config *config,
                                 const struct oct_background_options *options,
                                 struct oct_error *err)
{
    struct oct_control *control;
    double number = 0;
    enum oct_err e = oct_control_open(&control, config, options->endpoint, ANSWER_S, err);
    if (e)
        return e;
    snprintf(line->source, sizeof(line->source), "%s", oct_control_endpoint(control));
    e = begin(control, options, &number, err);
    if (!e)
        e = wait_done(control, options, number, line, err);
    if (!e)
        e = fetch_values(control, number, line, err);
    oct_control_close(control);
    return e;
}
