/* The control commands: from a request's bytes to a reply's text. */
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/describe.h"
#include "daemon/request.h"
#include "pipeline/flow/background.h"
#include "pipeline/plan/waveform.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The control command background: the mean spectrum of the next B-scans, an errand (errand.h), and
 * its values, which are too many for the status. Main thread only. */

#define OCT_BACKGROUND_VALUES 8192u /* most in a reply: it takes a few ms to write */

#define VALUE_BYTES 16 /* "65535.0000," */

static void add_bscan(void *work, const struct oct_raw_frame *frame)
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
                                                     .take = add_bscan,
                                                     .compute = compute,
                                                     .describe = describe,
                                                     .destroy = destroy};

/* Begins one over the next n_bscans whole B-scans. Refused as oct_daemon_errand refuses. */
static enum oct_err take_background(struct oct_daemon *d, unsigned n_bscans, double timeout_s,
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

/* Adds "number", "first", "samples" and "values", those from sample `first` on, of the last
 * background to a reply. OCT_E_AGAIN: it is under way; OCT_E_STATE: there is none, or it failed;
 * OCT_E_ARG: it has no such sample. */
static enum oct_err add_values(const struct oct_daemon *d, uint32_t first, cJSON *reply,
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

/* busy: the same may be granted in a moment. */
static cJSON *refusal(const struct oct_error *why)
{
    cJSON *reply = cJSON_CreateObject();
    cJSON_AddBoolToObject(reply, "ok", false);
    cJSON_AddStringToObject(reply, "error", why->text);
    if (why->code == OCT_E_AGAIN)
        cJSON_AddBoolToObject(reply, "busy", true);
    return reply;
}

static cJSON *done(struct oct_daemon *daemon)
{
    cJSON *reply = cJSON_CreateObject();
    cJSON_AddBoolToObject(reply, "ok", true);
    cJSON_AddStringToObject(
        reply, "state", oct_state_contract_name(daemon->state, oct_daemon_is_recording(daemon)));
    cJSON_AddStringToObject(reply, "phase", oct_state_names[daemon->state]);
    if (!oct_daemon_is_settled(daemon))
        cJSON_AddBoolToObject(reply, "pending", true);
    else if (daemon->state == OCT_STATE_RECORDING && daemon->forecast.warning[0])
        cJSON_AddStringToObject(reply, "warning", daemon->forecast.warning);
    return reply;
}

/* Asks the recorder itself: the copy of the daemon's last tick may be older. */
static bool last_status(const struct oct_daemon *daemon, struct oct_record_history_status *last)
{
    struct oct_recorder_status recorder;
    if (!daemon->session)
        return false;
    oct_recorder_get_status(daemon->session->recorder, &recorder);
    *last = recorder.history;
    return true;
}

bool oct_control_is_done(const struct oct_daemon *daemon, enum oct_under_way what)
{
    struct oct_record_history_status last;
    if (what == OCT_UNDER_WAY_LAST)
        return !last_status(daemon, &last) || !last.opening;
    return oct_daemon_is_settled(daemon);
}

/* The reply with the file's name, or "pending" while it is unknown whether it can be made. */
static cJSON *last_outcome(struct oct_daemon *daemon)
{
    struct oct_record_history_status last;
    struct oct_error err;
    if (!last_status(daemon, &last)) {
        oct_fail(&err, OCT_E_STATE, "the daemon is ending or starting anew: see record_last");
        return refusal(&err);
    }
    if (last.failure.code)
        return refusal(&last.failure);
    cJSON *reply = done(daemon);
    if (last.opening && !cJSON_HasObjectItem(reply, "pending"))
        cJSON_AddBoolToObject(reply, "pending", true);
    if (!last.opening)
        cJSON_AddStringToObject(reply, "file", last.file);
    return reply;
}

char *oct_control_outcome(struct oct_daemon *daemon, enum oct_under_way what)
{
    const bool has_failed = oct_daemon_is_settled(daemon) && daemon->outcome.code;
    return oct_reply_print(what == OCT_UNDER_WAY_LAST ? last_outcome(daemon)
                           : has_failed               ? refusal(&daemon->outcome)
                                                      : done(daemon));
}

/* Begins at once what was granted. */
static cJSON *granted(struct oct_daemon *daemon)
{
    oct_daemon_tick(daemon);
    return done(daemon);
}

static cJSON *reply_to_status(struct oct_daemon *daemon, const cJSON *request,
                              struct oct_error *err)
{
    (void)request;
    cJSON *reply = oct_daemon_status(daemon);
    if (!reply)
        oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the status");
    return reply;
}

static cJSON *reply_to_start(struct oct_daemon *daemon, const cJSON *request, struct oct_error *err)
{
    (void)request;
    return oct_daemon_start(daemon, err) ? NULL : granted(daemon);
}

static cJSON *reply_to_stop(struct oct_daemon *daemon, const cJSON *request, struct oct_error *err)
{
    (void)request;
    if (oct_daemon_stop(daemon, err))
        return NULL;
    oct_rescan_give_up(daemon);
    return granted(daemon);
}

/* A member that must be a string; NULL and a filled err otherwise. */
static const char *text_of(const cJSON *request, const char *key, struct oct_error *err)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(request, key));
    if (!text)
        oct_fail(err, OCT_E_ARG, "the field \"%s\" is missing or is no string", key);
    return text;
}

/* A number between least and most; `standard` where the field is not there. */
static bool number_of(const cJSON *request, const char *key, double least, double most,
                      double standard, double *value, struct oct_error *err)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(request, key);
    *value = item ? item->valuedouble : standard;
    if (!item || (cJSON_IsNumber(item) && *value >= least && *value <= most))
        return true;
    oct_fail(err, OCT_E_ARG, "the field \"%s\" is no number from %g to %g", key, least, most);
    return false;
}

static bool whole_number_of(const cJSON *request, const char *key, double most, double standard,
                            double *value, struct oct_error *err)
{
    const double least = standard > 0;
    if (!number_of(request, key, least, most, standard, value, err))
        return false;
    if (*value == floor(*value))
        return true;
    oct_fail(err, OCT_E_ARG, "the field \"%s\" is no whole number", key);
    return false;
}

static cJSON *record_last(struct oct_daemon *daemon, const cJSON *request, struct oct_error *err)
{
    const char *name = NULL;
    if (cJSON_GetObjectItemCaseSensitive(request, "name") &&
        !(name = text_of(request, "name", err)))
        return NULL;
    if (oct_daemon_record_last(daemon, name, err))
        return NULL;
    return last_outcome(daemon);
}

/* Of `start` alone: 0 is no limit. */
static bool volumes_of(const cJSON *request, bool begin, uint32_t *volumes, struct oct_error *err)
{
    double value;
    if (!begin) {
        oct_fail(err, OCT_E_ARG, "the field \"volumes\" belongs to the action start");
        return false;
    }
    if (!whole_number_of(request, "volumes", OCT_MOST_VOLUMES, 0, &value, err))
        return false;
    *volumes = (uint32_t)value;
    return true;
}

static cJSON *reply_to_record(struct oct_daemon *daemon, const cJSON *request,
                              struct oct_error *err)
{
    const char *action = text_of(request, "action", err);
    if (!action)
        return NULL;
    if (strcmp(action, "last") == 0)
        return record_last(daemon, request, err);
    bool begin = strcmp(action, "start") == 0;
    if (!begin && strcmp(action, "stop") != 0) {
        oct_fail(err, OCT_E_ARG, "the action '%.40s' is unknown: use start, stop or last", action);
        return NULL;
    }
    const bool limited = cJSON_GetObjectItemCaseSensitive(request, "volumes") != NULL;
    uint32_t volumes = 0;
    if (limited && !volumes_of(request, begin, &volumes, err))
        return NULL;
    return oct_daemon_record(daemon, begin, limited ? &volumes : NULL, err) ? NULL
                                                                            : granted(daemon);
}

/* Accepts strings, and JSON numbers and booleans too, which people write. */
static const char *value_of(const cJSON *request, char *buffer, size_t bytes, struct oct_error *err)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(request, "value");
    if (cJSON_IsString(value))
        return value->valuestring;
    if (cJSON_IsBool(value))
        return cJSON_IsTrue(value) ? "yes" : "no";
    if (cJSON_IsNumber(value)) {
        snprintf(buffer, bytes, "%.17g", value->valuedouble);
        return buffer;
    }
    oct_fail(err, OCT_E_ARG, "the field \"value\" is missing or is no string, number or boolean");
    return NULL;
}

static cJSON *reply_to_set(struct oct_daemon *daemon, const cJSON *request, struct oct_error *err)
{
    char buffer[40];
    const char *key = text_of(request, "key", err);
    const char *value = key ? value_of(request, buffer, sizeof(buffer), err) : NULL;
    if (!value || oct_daemon_set(daemon, key, value, err))
        return NULL;
    return done(daemon);
}

static cJSON *reply_to_get(struct oct_daemon *daemon, const cJSON *request, struct oct_error *err)
{
    char value[OCT_CONFIG_STRING_BYTES];
    const char *key = text_of(request, "key", err);
    if (!key || oct_config_get(&daemon->config, key, value, sizeof(value), err))
        return NULL;
    cJSON *reply = cJSON_CreateObject();
    cJSON_AddBoolToObject(reply, "ok", true);
    cJSON_AddStringToObject(reply, "key", key);
    cJSON_AddStringToObject(reply, "value", value);
    return reply;
}

static cJSON *background_values(struct oct_daemon *daemon, const cJSON *request,
                                struct oct_error *err)
{
    double first;
    if (!whole_number_of(request, "first", OCT_MAX_SAMPLES - 1, 0, &first, err))
        return NULL;
    cJSON *reply = cJSON_CreateObject();
    cJSON_AddBoolToObject(reply, "ok", true);
    if (add_values(daemon, (uint32_t)first, reply, err) == OCT_OK)
        return reply;
    cJSON_Delete(reply);
    return NULL;
}

/* What was granted goes on as the errand of that number; the status tells what became of it. */
static cJSON *errand_begun(struct oct_daemon *daemon)
{
    cJSON *reply = done(daemon);
    cJSON_DeleteItemFromObject(reply, "pending");
    cJSON_AddBoolToObject(reply, "pending", true);
    cJSON_AddNumberToObject(reply, "number", (double)daemon->errand.number);
    return reply;
}

static cJSON *reply_to_background(struct oct_daemon *daemon, const cJSON *request,
                                  struct oct_error *err)
{
    double n_bscans, timeout_s;
    if (cJSON_GetObjectItemCaseSensitive(request, "first"))
        return background_values(daemon, request, err);
    if (!whole_number_of(request, "bscans", OCT_BACKGROUND_MOST_BSCANS, OCT_BACKGROUND_BSCANS,
                         &n_bscans, err) ||
        !number_of(request, "timeout_s", 0.1, 3600, 10, &timeout_s, err) ||
        take_background(daemon, (unsigned)n_bscans, timeout_s, err))
        return NULL;
    return errand_begun(daemon);
}

/* ---- scan ---- */

#define WAY_VALUES 1024u /* lines of a reply: it takes a few ms to write */

/* V to six digits behind the point. */
static double microvolts(double volts)
{
    return round(volts * 1e6) / 1e6;
}

/* Where the mirrors stand, line by line of a volume, for a driver that follows octd. */
static void add_way(const struct oct_daemon *d, const struct oct_scan *scan, uint64_t first,
                    cJSON *reply)
{
    const struct oct_mirrors mirrors = {.um_per_degree = d->config.scan.um_per_degree,
                                        .volts_per_degree = d->config.scan.volts_per_degree};
    const uint64_t n = (uint64_t)scan->n_bscans * oct_scan_sent_lines(scan);
    cJSON *x = cJSON_AddArrayToObject(reply, "x_v"), *y = cJSON_AddArrayToObject(reply, "y_v");
    cJSON *alines = cJSON_AddArrayToObject(reply, "aline");
    for (uint64_t i = first; i < n && i < first + WAY_VALUES; i++) {
        double um[2];
        bool is_line;
        oct_waveform_line(scan, i, um, &is_line);
        cJSON_AddItemToArray(x, cJSON_CreateNumber(microvolts(oct_mirror_volts(&mirrors, um[0]))));
        cJSON_AddItemToArray(y, cJSON_CreateNumber(microvolts(oct_mirror_volts(&mirrors, um[1]))));
        cJSON_AddItemToArray(alines, cJSON_CreateNumber(is_line));
    }
}

static cJSON *change_scan(struct oct_daemon *daemon, const cJSON *request, struct oct_error *err)
{
    struct oct_scan_wish wish = {.to = NULL};
    double volumes;
    const cJSON *keys = cJSON_GetObjectItemCaseSensitive(request, "set");
    if (cJSON_GetObjectItemCaseSensitive(request, "to") && !(wish.to = text_of(request, "to", err)))
        return NULL;
    if (keys && !cJSON_IsObject(keys)) {
        oct_fail(err, OCT_E_ARG, "the field \"set\" is no object of keys of [scan]");
        return NULL;
    }
    wish.keys = keys;
    if (!whole_number_of(request, "volumes", OCT_MOST_VOLUMES, 0, &volumes, err))
        return NULL;
    wish.n_volumes = (uint32_t)volumes;
    return oct_daemon_rescan(daemon, &wish, err) ? NULL : granted(daemon);
}

/* Of the running session; the configuration may have changed since it was built. */
static cJSON *reply_to_scan(struct oct_daemon *daemon, const cJSON *request, struct oct_error *err)
{
    double first;
    if (cJSON_GetObjectItemCaseSensitive(request, "to") ||
        cJSON_GetObjectItemCaseSensitive(request, "set"))
        return change_scan(daemon, request, err);
    if (!oct_daemon_is_settled(daemon)) {
        oct_fail(err, OCT_E_AGAIN, "the scan begins or ends: ask again in a moment");
        return NULL;
    }
    if (!daemon->session || daemon->state == OCT_STATE_IDLE || daemon->state == OCT_STATE_ERROR) {
        oct_fail(err, OCT_E_STATE, "no scan runs: it is that of the next start");
        return NULL;
    }
    if (!whole_number_of(request, "first", 1e15, 0, &first, err))
        return NULL;
    const struct oct_scan *scan = &oct_pipeline_plan(daemon->session->pipeline)->scan;
    cJSON *reply = cJSON_CreateObject();
    cJSON_AddBoolToObject(reply, "ok", true);
    oct_rescan_describe(daemon, reply);
    cJSON_AddNumberToObject(reply, "first", first);
    add_way(daemon, scan, (uint64_t)first, reply);
    return reply;
}

static cJSON *reply_to_calibrate(struct oct_daemon *daemon, const cJSON *request,
                                 struct oct_error *err)
{
    (void)request;
    return oct_daemon_calibrate(daemon, err) ? NULL : errand_begun(daemon);
}

static cJSON *reply_to_shutdown(struct oct_daemon *daemon, const cJSON *request,
                                struct oct_error *err)
{
    (void)request;
    (void)err;
    oct_daemon_shut_down(daemon);
    return done(daemon);
}

static const struct {
    const char *name;
    cJSON *(*run)(struct oct_daemon *daemon, const cJSON *request, struct oct_error *err);
    bool takes_time;
} commands[] = {
    {"status", reply_to_status, false},
    {"start", reply_to_start, true},
    {"stop", reply_to_stop, true},
    {"record", reply_to_record, true},
    {"set", reply_to_set, false},
    {"get", reply_to_get, false},
    {"background", reply_to_background, false},
    {"shutdown", reply_to_shutdown, false},
    {"calibrate", reply_to_calibrate, false},
    {"scan", reply_to_scan, true},
};

/* What an answered request still waits for. */
static enum oct_under_way what_is_under_way(const struct oct_daemon *daemon, const cJSON *request)
{
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(request, "cmd"));
    const char *action = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(request, "action"));
    if (strcmp(name, "record") == 0 && strcmp(action, "last") == 0)
        return OCT_UNDER_WAY_LAST; /* it may have ended since the answer: the next look finds out */
    return oct_daemon_is_settled(daemon) ? OCT_UNDER_WAY_NOTHING : OCT_UNDER_WAY_CHANGE;
}

static cJSON *run_command(struct oct_daemon *daemon, const cJSON *request,
                          enum oct_under_way *under_way, struct oct_error *err)
{
    const char *name = text_of(request, "cmd", err);
    if (!name)
        return NULL;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strcmp(commands[i].name, name) == 0) {
            /* The daemon acts on the recorder's status of its last tick. */
            oct_daemon_tick(daemon);
            cJSON *reply = commands[i].run(daemon, request, err);
            if (reply && commands[i].takes_time)
                *under_way = what_is_under_way(daemon, request);
            return reply;
        }
    oct_fail(err, OCT_E_ARG,
             "the command '%.40s' is unknown: use status, start, stop, record, set, get, "
             "background, calibrate, scan or shutdown",
             name);
    return NULL;
}

static cJSON *parse(const char *bytes, size_t n_bytes, struct oct_error *err)
{
    const char *end = NULL;
    if (oct_request_check(bytes, n_bytes, err))
        return NULL;
    cJSON *request = cJSON_ParseWithLengthOpts(bytes, n_bytes, &end, false);
    while (request && end < bytes + n_bytes && strchr(" \t\r\n", *end))
        end++;
    if (request && end == bytes + n_bytes && cJSON_IsObject(request))
        return request;
    oct_fail(err, OCT_E_FORMAT, "the request is not one JSON object");
    cJSON_Delete(request);
    return NULL;
}

char *oct_control_answer(struct oct_daemon *daemon, const char *bytes, size_t n_bytes,
                         enum oct_under_way *under_way)
{
    struct oct_error err = {.text = "the request failed"};
    cJSON *reply = NULL, *request = parse(bytes, n_bytes, &err);
    *under_way = OCT_UNDER_WAY_NOTHING;
    if (request)
        reply = run_command(daemon, request, under_way, &err);
    cJSON_Delete(request);
    return oct_reply_print(reply ? reply : refusal(&err));
}
