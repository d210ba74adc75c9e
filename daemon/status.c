/* The status reply (contract section 5, Control). */
#include "daemon/daemon.h"
#include "daemon/describe.h"

#include "pipeline/clock.h"
#include "pipeline/wire.h"

#include <inttypes.h>
#include <stdio.h>

#include <cjson/cJSON.h>

/* cJSON keeps numbers as doubles; counts stay exact as text. */
static void add_u64(cJSON *object, const char *key, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, value);
    cJSON_AddRawToObject(object, key, text);
}

/* Without a session (NULL below) nothing has been counted, but every key is there. */
static const struct oct_ingest_counts no_counts;
static const struct oct_outlook no_outlook;

static void add_ingest(cJSON *reply, const struct oct_ingest *ingest)
{
    const struct oct_ingest_counts *c = ingest ? oct_ingest_counts(ingest) : &no_counts;
    add_u64(reply, "lines_received", c->lines_received);
    add_u64(reply, "lines_missing", c->lines_missing);
    add_u64(reply, "lines_duplicate", c->lines_duplicate);
    add_u64(reply, "lines_late", c->lines_late);
    add_u64(reply, "lines_dropped", c->lines_dropped);
    add_u64(reply, "messages_received", c->messages);
    add_u64(reply, "messages_duplicate", c->messages_duplicate);
    add_u64(reply, "messages_missed", c->messages_missed);
    add_u64(reply, "messages_ignored", ingest ? oct_ingest_ignored(ingest) : 0);
    add_u64(reply, "slots_reclaimed", ingest ? oct_ingest_reclaimed(ingest) : 0);
    cJSON *bad = cJSON_AddObjectToObject(reply, "messages_bad");
    for (unsigned r = OCT_BAD_NONE + 1; r < OCT_N_BAD; r++)
        add_u64(bad, oct_bad_names[r], c->messages_bad[r]);
    add_u64(reply, "acquisitions", c->acquisitions);
}

/* Begun is read last: done and dropped only grow, so in flight is never negative. */
static void add_bscans(cJSON *reply, const struct oct_session *s)
{
    const struct oct_ingest_counts *c = s ? oct_ingest_counts(s->ingest) : &no_counts;
    struct oct_pipeline_counts counts = {0};
    if (s)
        counts = oct_pipeline_count(s->pipeline);
    uint64_t no_slot = c->bscans_dropped;
    uint64_t begun = c->bscans_begun;

    add_u64(reply, "bscans_begun", begun);
    add_u64(reply, "bscans_done", counts.bscans_done);
    cJSON *dropped = cJSON_AddObjectToObject(reply, "bscans_dropped");
    add_u64(dropped, "ring_full", no_slot);
    add_u64(dropped, "engine", counts.bscans_dropped_engine);
    add_u64(reply, "bscans_in_flight",
            begun - counts.bscans_done - counts.bscans_dropped_engine - no_slot);
    add_u64(reply, "bscans_published", s ? oct_publisher_published(s->publisher) : 0);
    add_u64(reply, "bscans_not_published", s ? oct_publisher_skipped(s->publisher) : 0);
}

static void add_latency(cJSON *reply, const struct oct_publisher *publisher)
{
    struct oct_latency_summary latency = {0};
    if (publisher)
        latency = oct_publisher_latency(publisher);
    cJSON *object = cJSON_AddObjectToObject(reply, "latency_us");
    add_u64(object, "p50", latency.p50_us);
    add_u64(object, "p99", latency.p99_us);
    add_u64(object, "max", latency.max_us);
}

static void add_recorder(cJSON *reply, struct oct_recorder *recorder)
{
    struct oct_recorder_status s = {0};
    if (recorder)
        oct_recorder_get_status(recorder, &s);
    add_u64(reply, "volumes_written", s.volumes_written);
    add_u64(reply, "volumes_incomplete", s.volumes_incomplete);
    add_u64(reply, "bscans_written", s.bscans_written);
    add_u64(reply, "bscans_unsaved", s.bscans_unsaved);
    add_u64(reply, "bytes_written", s.bytes_written);
    cJSON *record = cJSON_AddObjectToObject(reply, "record");
    cJSON_AddBoolToObject(record, "active", s.active);
    cJSON_AddBoolToObject(record, "stopping", s.stopping);
    cJSON_AddBoolToObject(record, "waiting_for_volume", s.active && !s.file_open);
    cJSON_AddStringToObject(record, "file", s.file);
    add_u64(record, "bscans_in_file", s.bscans_in_file);
}

static void add_session(cJSON *reply, const struct oct_session *s)
{
    cJSON_AddStringToObject(reply, "backend", s ? oct_pipeline_engine_name(s->pipeline) : "none");
    cJSON_AddStringToObject(reply, "engine", s ? s->engine_why : "");
    cJSON_AddStringToObject(reply, "engine_now",
                            s ? oct_pipeline_engine_description(s->pipeline) : "");
    add_ingest(reply, s ? s->ingest : NULL);
    add_bscans(reply, s);
    add_recorder(reply, s ? s->recorder : NULL);
    add_latency(reply, s ? s->publisher : NULL);
    if (!s)
        return;
    const struct oct_geometry *g = &oct_pipeline_plan(s->pipeline)->geometry;
    cJSON *geometry = cJSON_AddObjectToObject(reply, "geometry");
    add_u64(geometry, "samples", g->n_samples);
    add_u64(geometry, "lines", g->n_lines);
    add_u64(geometry, "bscans", g->n_bscans);
    add_u64(geometry, "depth", g->depth);
    cJSON *endpoints = cJSON_AddObjectToObject(reply, "endpoints");
    cJSON_AddStringToObject(endpoints, "ingest", oct_ingest_endpoint(s->ingest));
    cJSON_AddStringToObject(endpoints, "publish", oct_publisher_endpoint(s->publisher));
}

char *oct_daemon_status(const struct oct_daemon *d)
{
    cJSON *reply = cJSON_CreateObject();
    if (!reply)
        return NULL;
    cJSON_AddBoolToObject(reply, "ok", true);
    cJSON_AddStringToObject(reply, "state", oct_state_names[oct_daemon_state(d)]);
    cJSON_AddStringToObject(reply, "version", OCT_VERSION);
    cJSON_AddNumberToObject(reply, "uptime_s", (double)(oct_clock_ns() - d->started_ns) * 1e-9);
    cJSON_AddStringToObject(reply, "last_error", d->last_error);
    cJSON_AddBoolToObject(reply, "config_changed", d->stale);
    add_session(reply, d->session);
    oct_daemon_describe(reply, d);
    oct_outlook_describe(reply, d->session ? &d->outlook : &no_outlook);
    char *text = cJSON_PrintUnformatted(reply);
    cJSON_Delete(reply);
    return text;
}
