/* octctl background from a running octd: it takes the next B-scans beside its stream, the status
 * says how far it is, and the values come a few thousand at a time. */
#include "pipeline/flow/background.h"
#include "tools/control/background.h"
#include "tools/control/errand.h"

#include <stdio.h>
#include <stdlib.h>

#define ANSWER_S 5.0 /* octd answers within 100 ms, or it is not there */
#define GRACE_S 5.0  /* beyond the time that octd itself gives its B-scans */

static enum oct_err begin(struct oct_control_link *control,
                          const struct oct_background_options *options, double *number,
                          struct oct_error *err)
{
    const struct oct_control_wait wait = {.control = control, .command = "background"};
    const uint64_t n = options->n_bscans ? options->n_bscans : OCT_BACKGROUND_BSCANS;
    char request[128];
    snprintf(request, sizeof(request), "{\"cmd\":\"background\",\"bscans\":%u,\"timeout_s\":%.3f}",
             (unsigned)n, options->timeout_s);
    return oct_errand_ask(&wait, request, number, err);
}

static enum oct_err wait_done(struct oct_control_link *control,
                              const struct oct_background_options *options, double number,
                              struct oct_background_line *line, struct oct_error *err)
{
    cJSON *status = NULL;
    const cJSON *result = NULL;
    enum oct_err e =
        oct_errand_wait(control, number, options->timeout_s + GRACE_S, &status, &result, err);
    const double n = oct_json_number(result, "samples");
    line->n_bscans = oct_json_number(result, "bscans");
    line->n_lines = oct_json_number(result, "lines");
    line->n_saturated = oct_json_number(result, "saturated");
    if (!e && (!(n >= 1 && n <= OCT_MAX_SAMPLES) || !(line->n_lines >= 1) ||
               !(line->n_bscans >= 1) || !(line->n_saturated >= 0)))
        e = oct_fail(err, OCT_E_FORMAT, "octd's status says nothing of the background");
    line->n = e ? 0 : (uint32_t)n;
    cJSON_Delete(status);
    return e;
}

/* Adds the values of a reply to those that are there. */
static enum oct_err add_values(const cJSON *answer, double number, uint32_t *n_have,
                               struct oct_background_line *line, struct oct_error *err)
{
    const cJSON *values = cJSON_GetObjectItemCaseSensitive(answer, "values"), *value;
    enum oct_err e = oct_errand_granted(answer, err);
    if (e)
        return e;
    if (oct_json_number(answer, "number") != number)
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

static enum oct_err fetch_values(struct oct_control_link *control, double number,
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
    struct oct_control_link *control;
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
