#include "daemon/background.h"

#include "pipeline/flow/background.h"

#include <stdio.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#define VALUE_BYTES 16 /* "65535.0000," */

static void take(void *work, const struct oct_raw_frame *frame)
{
    oct_background_add(work, frame);
}

static enum oct_err compute(void *work, const atomic_bool *cancelled, struct oct_error *err)
{
    (void)cancelled; /* there is nothing left to do */
    return oct_background_check(work, err);
}

static void describe(const void *work, cJSON *result)
{
    const struct oct_background *b = work;
    cJSON_AddNumberToObject(result, "bscans", (double)b->n_bscans);
    cJSON_AddNumberToObject(result, "lines", (double)b->n_lines);
    cJSON_AddNumberToObject(result, "samples", b->geometry.n_samples);
    cJSON_AddNumberToObject(result, "saturated", (double)b->n_saturated);
}

static void destroy(void *work)
{
    oct_background_finish(work);
    free(work);
}

static const struct oct_errand_ops background_ops = {.name = "background",
                                                     .take = take,
                                                     .compute = compute,
                                                     .describe = describe,
                                                     .destroy = destroy};

enum oct_err oct_daemon_background(struct oct_daemon *d, unsigned n_bscans, double timeout_s,
                                   struct oct_error *err)
{
    struct oct_geometry g = {.n_samples = d->config.camera.samples,
                             .n_lines = d->config.scan.lines};
    struct oct_background *work = calloc(1, sizeof(*work));
    if (!work)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a background");
    if (d->session) /* the configuration may have changed since it was built */
        g = oct_pipeline_plan(d->session->pipeline)->geometry;
    enum oct_err e = oct_background_init(work, &g, d->config.camera.bits, err);
    if (e) {
        destroy(work);
        return e;
    }
    return oct_daemon_errand(d, &background_ops, work, n_bscans, (uint64_t)(timeout_s * 1e6), err);
}

/* ["%.4f", ...], NULL: out of memory. cJSON would take 17 digits for each, and as many
 * allocations. */
static char *print_values(const struct oct_background *b, uint32_t first, uint32_t n)
{
    char *text = malloc((size_t)n * VALUE_BYTES + 2), *at = text;
    if (!text)
        return NULL;
    *at++ = '[';
    for (uint32_t i = 0; i < n; i++)
        at += snprintf(at, VALUE_BYTES, "%s%.4f", i ? "," : "", oct_background_at(b, first + i));
    *at++ = ']';
    *at = '\0';
    return text;
}

enum oct_err oct_daemon_background_values(const struct oct_daemon *d, uint32_t first, cJSON *reply,
                                          struct oct_error *err)
{
    const struct oct_errand *errand = &d->errand;
    const struct oct_background *b = errand->work;
    if (errand->ops != &background_ops)
        return oct_fail(err, OCT_E_STATE, "there is no background: send one with \"bscans\"");
    if (errand->runs)
        return oct_fail(err, OCT_E_AGAIN, "the background is under way: %u of %u B-scans came",
                        atomic_load(&errand->tap.n_taken), errand->tap.n_bscans);
    if (errand->err.code)
        return oct_fail(err, OCT_E_STATE, "%s", errand->err.text);
    if (first >= b->geometry.n_samples)
        return oct_fail(err, OCT_E_ARG, "\"first\" is %u, and the background has %u samples", first,
                        b->geometry.n_samples);
    const uint32_t left = b->geometry.n_samples - first;
    char *text =
        print_values(b, first, left < OCT_BACKGROUND_VALUES ? left : OCT_BACKGROUND_VALUES);
    if (!text)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the background's values");
    cJSON_AddNumberToObject(reply, "number", (double)errand->number);
    cJSON_AddNumberToObject(reply, "first", first);
    cJSON_AddNumberToObject(reply, "samples", b->geometry.n_samples);
    cJSON_AddRawToObject(reply, "values", text);
    free(text);
    return OCT_OK;
}
