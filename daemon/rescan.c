#include "daemon/rescan.h"

#include "daemon/daemon.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EPOCH_BITS 20u /* of an epoch, which a driver chooses itself; those above are the scan's */
#define LEAST_END_S 0.4
#define EPOCH_TAGS (1u << (32 - EPOCH_BITS))

static bool is_same_scan(const struct oct_config *a, const struct oct_config *b)
{
    char *text_a = oct_config_text(a), *text_b = oct_config_text(b);
    const bool is_same = text_a && text_b && strcmp(text_a, text_b) == 0;
    free(text_a);
    free(text_b);
    return is_same;
}

/* Of the list's scans the one that is as configured: it runs when no other was chosen. */
static void name_configured(struct oct_daemon *d)
{
    struct oct_rescan *r = &d->rescan;
    char name[OCT_SCAN_CHOICE_BYTES];
    r->configured_choice[0] = '\0';
    for (unsigned i = 0; oct_scan_choice_name(&r->configured, i, name); i++) {
        struct oct_config chosen = r->configured;
        if (oct_scan_choose(&chosen, name, NULL) == OCT_OK &&
            is_same_scan(&chosen, &r->configured)) {
            memcpy(r->configured_choice, name, sizeof(name));
            return;
        }
    }
}

enum oct_err oct_rescan_init(struct oct_daemon *d, struct oct_error *err)
{
    const uint64_t now_s = (uint64_t)time(NULL);
    d->rescan = (struct oct_rescan){.salt = (uint32_t)(now_s ^ oct_clock_ns() / 1000),
                                    .configured = d->config};
    const enum oct_err e = oct_scan_choices_check(&d->config, err);
    if (!e)
        name_configured(d);
    return e;
}

/* ends: another scan follows. False: it could not be. */
static bool announce_scan(struct oct_daemon *d, bool ends)
{
    cJSON *text = cJSON_CreateObject(), *shape = cJSON_AddArrayToObject(text, "shape");
    /* The keys of all topics, of an image that has no bytes. */
    cJSON_AddItemToArray(shape, cJSON_CreateString("0"));
    cJSON_AddStringToObject(text, "dataset", "scan");
    cJSON_AddStringToObject(text, "dtype", "uint8");
    cJSON_AddStringToObject(text, "compression", "none");
    cJSON_AddNumberToObject(text, "dsize", 0);
    cJSON_AddNumberToObject(text, "frame_num", d->rescan.number);
    cJSON_AddStringToObject(text, "acquisition_id", d->job.name); /* what those of it begin with */
    oct_rescan_describe(d, text);
    cJSON_AddBoolToObject(text, "ends", ends);
    char *json = cJSON_PrintUnformatted(text);
    const bool is_done = json && oct_publisher_announce_scan(d->session->publisher, json);
    cJSON_free(json);
    cJSON_Delete(text);
    return is_done;
}

/* ---- the wish ---- */

static enum oct_err set_keys(struct oct_config *config, const cJSON *keys, struct oct_error *err)
{
    const cJSON *item;
    enum oct_err e = OCT_OK;
    cJSON_ArrayForEach(item, keys)
    {
        char number[40];
        const char *value = cJSON_GetStringValue(item);
        if (cJSON_IsNumber(item)) {
            snprintf(number, sizeof(number), "%.17g", item->valuedouble);
            value = number;
        }
        if (!value)
            return oct_fail(err, OCT_E_ARG, "scan.%.40s: the value is no string and no number",
                            item->string);
        if ((e = oct_scan_set_key(config, item->string, value, err)))
            break;
    }
    return e;
}

static enum oct_err apply_wish(const struct oct_daemon *d, const struct oct_scan_wish *wish,
                               struct oct_config *changed, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    if (wish->to) {
        oct_scan_copy(changed, &d->rescan.configured);
        if (wish->to[0])
            e = oct_scan_choose(changed, wish->to, err);
    }
    e = e ? e : set_keys(changed, wish->keys, err);
    return e ? e : oct_scan_config_check(changed, err);
}

static void note_choice(struct oct_rescan *r, const struct oct_scan_wish *wish)
{
    memcpy(r->choice_before, r->choice, sizeof(r->choice));
    r->was_by_keys = r->is_by_keys;
    r->n_volumes_before = r->n_volumes;
    r->is_by_keys = wish->keys != NULL || (!wish->to && r->is_by_keys);
    if (wish->to)
        snprintf(r->choice, sizeof(r->choice), "%s", wish->to);
    r->n_volumes = wish->n_volumes;
}

/* Of the scan that runs, for its driver. */
static uint64_t patience_ns(const struct oct_daemon *d)
{
    const uint32_t n_lines = oct_scan_sent_lines(&oct_pipeline_plan(d->session->pipeline)->scan);
    const double two_s = 2.0 * n_lines / oct_line_rate_hz(&d->line_rate, &d->rescan.before);
    return (uint64_t)(1e9 * fmax(LEAST_END_S, fmin(two_s, d->config.daemon.drain_s)));
}

static void begin_change(struct oct_daemon *d)
{
    struct oct_rescan *r = &d->rescan;
    r->must_record = oct_daemon_is_recording(d) && !d->recorder.stopping;
    r->failure = (struct oct_error){.code = OCT_OK};
    r->step = OCT_RESCAN_ENDS;
    r->ends_by_ns = oct_clock_ns() + patience_ns(d);
    announce_scan(d, true);
}

enum oct_err oct_daemon_rescan(struct oct_daemon *d, const struct oct_scan_wish *wish,
                               struct oct_error *err)
{
    struct oct_config changed = d->config;
    struct oct_rescan *r = &d->rescan;
    if (d->want_shutdown)
        return oct_fail(err, OCT_E_STATE, "the daemon is ending");
    if (!oct_daemon_is_settled(d))
        return oct_fail(err, OCT_E_AGAIN,
                        "the daemon is starting, stopping or changing its scan: ask again in a "
                        "moment");
    const enum oct_err e = apply_wish(d, wish, &changed, err);
    if (e)
        return e;
    r->before = d->config;
    r->refusal = (struct oct_error){.code = OCT_OK};
    note_choice(r, wish);
    oct_log(OCT_LOG_INFO, "scan: %s -> %s%s%s", oct_scan_pattern_names[d->config.scan.pattern],
            oct_scan_pattern_names[changed.scan.pattern],
            r->choice[0] && !r->is_by_keys ? ", " : "", r->is_by_keys ? "" : r->choice);
    d->config = changed;
    d->stale = true;
    if (d->state != OCT_STATE_IDLE && d->state != OCT_STATE_ERROR)
        begin_change(d);
    return OCT_OK;
}

void oct_rescan_note_set(struct oct_daemon *d, const char *key, const char *value)
{
    struct oct_config config = d->rescan.configured;
    if (oct_config_set(&config, key, value, "control", NULL) == OCT_OK)
        d->rescan.configured = config;
    name_configured(d);
}

/* ---- the steps ---- */

void oct_rescan_give_up(struct oct_daemon *d)
{
    d->rescan.step = OCT_RESCAN_NONE;
    d->stale |= d->rescan.only_followers;
    d->rescan.only_followers = false;
}

bool oct_rescan_is_under_way(const struct oct_daemon *d)
{
    return d->rescan.step != OCT_RESCAN_NONE && d->rescan.step != OCT_RESCAN_RECORDS;
}

static void build(struct oct_daemon *d, enum oct_rescan_step step)
{
    struct oct_error err;
    d->rescan.only_followers = true;
    if (oct_daemon_start(d, &err)) {
        d->outcome = err;
        d->rescan.step = OCT_RESCAN_NONE;
        return;
    }
    d->rescan.step = step;
}

/* The session cannot be built for the new scan. Unless the old one is no longer possible either,
 * octd goes on with it. */
static void build_before(struct oct_daemon *d)
{
    struct oct_rescan *r = &d->rescan;
    r->refusal = d->outcome;
    oct_scan_copy(&d->config, &r->before);
    memcpy(r->choice, r->choice_before, sizeof(r->choice));
    r->is_by_keys = r->was_by_keys;
    r->n_volumes = r->n_volumes_before;
    d->stale = true;
    build(d, OCT_RESCAN_BUILDS_BEFORE);
}

/* The recording has ended behind `files`. It goes on unless it failed, or what came until the gate
 * closed made it complete: then no volume is left, which as a number would mean no end. */
static void note_recorded(struct oct_daemon *d)
{
    struct oct_rescan *r = &d->rescan;
    const uint64_t n_whole = d->recorder.files - d->recorder.files_incomplete;
    const uint32_t n = d->record_volumes;
    if (r->must_record)
        r->failure = d->recorder.failure;
    r->must_record &= !r->failure.code && (n == 0 || n > n_whole);
    r->record_volumes = n > n_whole ? n - (uint32_t)n_whole : 0;
}

static void record_again(struct oct_daemon *d)
{
    struct oct_rescan *r = &d->rescan;
    r->step = OCT_RESCAN_RECORDS;
    if (r->must_record)
        oct_daemon_record(d, true, &r->record_volumes, &r->failure);
    if (!r->failure.code)
        return;
    d->outcome = r->failure;
    oct_daemon_keep_error(d, &r->failure);
    oct_log(OCT_LOG_ERROR, "recording not gone on with: %s", r->failure.text);
}

/* Whether nothing is under way but the change itself. */
static bool is_at_rest(const struct oct_daemon *d)
{
    return d->job.kind == OCT_JOB_NONE && !d->must_build && !d->must_record &&
           !oct_state_is_passing(d->state);
}

/* What runs, once nothing stands between the lines and their recording. */
static void announce(struct oct_daemon *d)
{
    struct oct_rescan *r = &d->rescan;
    const bool runs = d->session && d->state != OCT_STATE_IDLE && d->state != OCT_STATE_ERROR;
    if (runs && r->announced != r->number && announce_scan(d, false))
        r->announced = r->number;
}

/* Stops octd once the driver has ended its acquisition, or does not. */
static void await_end(struct oct_daemon *d)
{
    struct oct_error ignored;
    const struct oct_ingest_counts *counts = oct_ingest_counts(d->session->ingest);
    const bool is_silent = !d->source.streaming || atomic_load(&counts->over);
    if (!is_silent && oct_clock_ns() < d->rescan.ends_by_ns)
        return;
    oct_daemon_stop(d, &ignored); /* granted in the states that lead here */
    d->rescan.step = OCT_RESCAN_DRAINS;
}

static void take_step(struct oct_daemon *d)
{
    struct oct_rescan *r = &d->rescan;
    const bool runs = d->state != OCT_STATE_IDLE && d->state != OCT_STATE_ERROR;
    if (r->step == OCT_RESCAN_ENDS) {
        await_end(d);
    } else if (r->step == OCT_RESCAN_DRAINS && d->state == OCT_STATE_IDLE) {
        note_recorded(d);
        build(d, OCT_RESCAN_BUILDS);
    } else if (r->step == OCT_RESCAN_BUILDS && !runs) {
        build_before(d);
    } else if (r->step == OCT_RESCAN_BUILDS || (r->step == OCT_RESCAN_BUILDS_BEFORE && runs)) {
        record_again(d);
    } else {
        if (r->refusal.code)
            d->outcome = r->refusal;
        r->step = OCT_RESCAN_NONE;
    }
}

void oct_rescan_tick(struct oct_daemon *d)
{
    if (d->want_shutdown)
        d->rescan.step = OCT_RESCAN_NONE;
    if (d->want_shutdown || !is_at_rest(d))
        return;
    if (d->rescan.step != OCT_RESCAN_NONE)
        take_step(d);
    if (d->rescan.step == OCT_RESCAN_NONE)
        announce(d);
}

/* ---- what runs ---- */

static struct oct_epochs epochs_of(const struct oct_rescan *r)
{
    const uint32_t tag = (r->salt + r->number) % EPOCH_TAGS;
    return (struct oct_epochs){.first = tag << EPOCH_BITS,
                               .last = tag << EPOCH_BITS | ((1u << EPOCH_BITS) - 1),
                               .only_followers = r->only_followers};
}

struct oct_epochs oct_rescan_next_epochs(struct oct_daemon *d)
{
    d->rescan.number++;
    return epochs_of(&d->rescan);
}

void oct_rescan_describe(const struct oct_daemon *d, cJSON *reply)
{
    const struct oct_scan *scan = &oct_pipeline_plan(d->session->pipeline)->scan;
    const struct oct_epochs epochs = epochs_of(&d->rescan);
    const double given[] = {epochs.first, epochs.last};
    cJSON_AddNumberToObject(reply, "number", d->rescan.number);
    cJSON_AddItemToObject(reply, "epochs", cJSON_CreateDoubleArray(given, 2));
    cJSON_AddNumberToObject(reply, "volumes", d->rescan.n_volumes);
    cJSON_AddStringToObject(reply, "pattern", oct_scan_pattern_names[scan->pattern]);
    cJSON_AddNumberToObject(reply, "lines", scan->n_lines);
    cJSON_AddNumberToObject(reply, "bscans", scan->n_bscans);
    cJSON_AddNumberToObject(reply, "repeats", scan->protocol.repeats);
    cJSON_AddNumberToObject(reply, "interleave", scan->protocol.interleave);
    cJSON_AddNumberToObject(reply, "line_repeats", scan->protocol.line_repeats);
    cJSON_AddNumberToObject(reply, "width_um", scan->width_um);
    cJSON_AddNumberToObject(reply, "height_um", scan->height_um);
    cJSON_AddNumberToObject(reply, "centre_x_um", scan->centre_um[0]);
    cJSON_AddNumberToObject(reply, "centre_y_um", scan->centre_um[1]);
    cJSON_AddNumberToObject(reply, "angle_deg", scan->angle_deg);
    cJSON_AddNumberToObject(reply, "phase_deg", scan->phase_deg);
    cJSON_AddNumberToObject(reply, "trigger_delay_lines", scan->delay_lines);
    cJSON_AddNumberToObject(reply, "flyback_lines", scan->flyback_lines);
    cJSON_AddNumberToObject(reply, "sent_lines",
                            (double)scan->n_bscans * oct_scan_sent_lines(scan));
    cJSON_AddNumberToObject(reply, "line_rate_hz", oct_line_rate_hz(&d->line_rate, &d->config));
}

void oct_rescan_describe_choices(const struct oct_daemon *d, cJSON *scan)
{
    const struct oct_rescan *r = &d->rescan;
    char name[OCT_SCAN_CHOICE_BYTES];
    cJSON_AddNumberToObject(scan, "number", r->number);
    const bool is_before =
        d->session && (r->step == OCT_RESCAN_ENDS || r->step == OCT_RESCAN_DRAINS);
    const char *choice = is_before ? r->choice_before : r->choice;
    if (is_before ? r->was_by_keys : r->is_by_keys)
        cJSON_AddNullToObject(scan, "choice");
    else
        cJSON_AddStringToObject(scan, "choice", choice[0] ? choice : r->configured_choice);
    cJSON_AddStringToObject(scan, "refused", r->refusal.code ? r->refusal.text : "");
    cJSON *choices = cJSON_AddArrayToObject(scan, "choices");
    for (unsigned i = 0; oct_scan_choice_name(&d->config, i, name); i++)
        cJSON_AddItemToArray(choices, cJSON_CreateString(name));
}
