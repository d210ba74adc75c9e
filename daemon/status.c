/* The status reply (contract section 5, Control). */
#include "daemon/daemon.h"
#include "daemon/describe.h"

#include "analysis/average/average.h"
#include "config/analysis.h"
#include "pipeline/base/clock.h"
#include "pipeline/net/connections.h"
#include "pipeline/wire/wire.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
static const struct oct_daemon_forecast no_forecast;
static const struct oct_recorder_status no_recorder;
static const struct oct_record_result_counts none_recorded;

/* Each line and each message is counted as taken first and by its outcome later, so the outcomes
 * are read first: no part is larger than its whole. */
static void add_ingest(cJSON *reply, const struct oct_ingest *ingest)
{
    const struct oct_ingest_counts *c = ingest ? oct_ingest_counts(ingest) : &no_counts;
    add_u64(reply, "lines_received", c->lines_received);
    uint64_t cut = c->lines_cut;
    add_u64(reply, "lines_missing", c->lines_missing);
    add_u64(reply, "lines_cut", cut);
    add_u64(reply, "lines_duplicate", c->lines_duplicate);
    add_u64(reply, "lines_late", c->lines_late);
    add_u64(reply, "lines_flyback", c->lines_flyback);
    add_u64(reply, "lines_dropped", c->lines_dropped);
    add_u64(reply, "messages_duplicate", c->messages_duplicate);
    add_u64(reply, "messages_reordered", c->messages_reordered);
    add_u64(reply, "messages_missed", c->messages_missed);
    add_u64(reply, "messages_received", c->messages);
    add_u64(reply, "messages_ignored", ingest ? oct_ingest_ignored(ingest) : 0);
    add_u64(reply, "slots_reclaimed", ingest ? oct_ingest_reclaimed(ingest) : 0);
    add_u64(reply, "shm_mended", ingest ? oct_ingest_mended(ingest) : 0);
    cJSON *bad = cJSON_AddObjectToObject(reply, "messages_bad");
    for (unsigned r = OCT_BAD_NONE + 1; r < OCT_N_BAD; r++)
        add_u64(bad, oct_bad_names[r], c->messages_bad[r]);
    add_u64(reply, "acquisitions", c->acquisitions);
}

static struct oct_publisher_topic find_topic(const struct oct_session *s, const char *name)
{
    struct oct_publisher_topic topic;
    for (unsigned i = 0; (topic = oct_publisher_topic(s->publisher, i)).name; i++)
        if (strcmp(topic.name, name) == 0)
            break;
    return topic;
}

/* Complex values, made for who asks: the topic, and what of them came to the host in all. */
static void add_complex(cJSON *reply, const struct oct_session *s,
                        const struct oct_pipeline_counts *counts)
{
    struct oct_publisher_topic topic = {.name = NULL};
    if (s)
        topic = find_topic(s, OCT_TOPIC_COMPLEX);
    cJSON *object = cJSON_AddObjectToObject(reply, "complex");
    cJSON_AddBoolToObject(object, "offered", topic.name != NULL);
    cJSON_AddBoolToObject(object, "wanted", topic.wanted);
    add_u64(object, "published", topic.published);
    add_u64(object, "skipped", topic.skipped);
    add_u64(object, "bytes", counts->complex_bytes);
}

/* Counts only grow while they are read: so reads the end of the path first, its beginning last. So,
 * at every moment, of B-scans written <= done + dropped by the engine (the recorder was looked at
 * before all this), published <= done, in flight is never negative; and of lines, those of B-scans
 * done <= received + missing <= those of B-scans begun and of B-scans that were skipped whole. */
static void add_path(cJSON *reply, const struct oct_session *s)
{
    const struct oct_ingest_counts *c = s ? oct_ingest_counts(s->ingest) : &no_counts;
    uint64_t published = s ? oct_publisher_published(s->publisher) : 0;
    uint64_t skipped = s ? oct_publisher_skipped(s->publisher) : 0;
    struct oct_pipeline_counts counts = {0};
    if (s)
        counts = oct_pipeline_count(s->pipeline);
    uint64_t no_slot = c->bscans_dropped;
    add_ingest(reply, s ? s->ingest : NULL);
    uint64_t begun = c->bscans_begun;

    add_u64(reply, "bscans_begun", begun);
    add_u64(reply, "bscans_done", counts.bscans_done);
    cJSON *dropped = cJSON_AddObjectToObject(reply, "bscans_dropped");
    add_u64(dropped, "ring_full", no_slot);
    add_u64(dropped, "engine", counts.bscans_dropped_engine);
    add_u64(reply, "bscans_in_flight",
            begun - counts.bscans_done - counts.bscans_dropped_engine - no_slot);
    add_u64(reply, "bscans_published", published);
    add_u64(reply, "bscans_not_published", skipped);
    add_complex(reply, s, &counts);
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

/* offered = written + pending + the sum of dropped. */
static void add_account(cJSON *reply, const char *key, const struct oct_recorder_account *a)
{
    cJSON *account = cJSON_AddObjectToObject(reply, key);
    add_u64(account, "offered", a->offered);
    add_u64(account, "written", a->written);
    add_u64(account, "pending", a->pending);
    cJSON *dropped = cJSON_AddObjectToObject(account, "dropped");
    for (int r = OCT_LOSS_SOURCE; r <= OCT_LOSS_WRITE_FAILED; r++)
        add_u64(dropped, oct_loss_names[r], a->dropped[r]);
    add_u64(dropped, oct_loss_names[OCT_LOSS_PAUSED], a->dropped[OCT_LOSS_PAUSED]);
}

static void add_last(cJSON *reply, const struct oct_recorder_status *s)
{
    cJSON *last = cJSON_AddObjectToObject(reply, "record_last");
    add_u64(last, "bscans", s->keeper.n_history);
    add_u64(last, "bscans_most", s->keeper.history_bscans);
    cJSON_AddNumberToObject(last, "length_s", (double)s->keeper.history_ns * 1e-9);
    add_u64(last, "memory_bytes", s->keeper.history_bscans ? s->keeper.bytes : 0);
    cJSON_AddBoolToObject(last, "saving", s->history.saving);
    cJSON_AddStringToObject(last, "file", s->history.file);
    add_u64(last, "bscans_saved", s->history.n_saved);
    add_u64(last, "bscans_lost", s->history.n_lost);
    add_u64(last, "files_saved", s->history.n_files);
    cJSON_AddStringToObject(last, "error", s->history.failure.code ? s->history.failure.text : "");
}

/* volumes_set: as configured, for the recordings to come. */
static void add_recorder(cJSON *reply, const struct oct_recorder_status *s, uint64_t n_images,
                         uint32_t volumes_set)
{
    add_u64(reply, "volumes_written", s->volumes_written);
    add_u64(reply, "volumes_incomplete", s->volumes_incomplete);
    add_u64(reply, "bscans_written", s->bscans_written);
    add_u64(reply, "bscans_unsaved", s->bscans_unsaved);
    add_u64(reply, "bytes_written", s->bytes_written);
    cJSON *record = cJSON_AddObjectToObject(reply, "record");
    cJSON_AddBoolToObject(record, "active", s->active);
    cJSON_AddBoolToObject(record, "stopping", s->stopping);
    cJSON_AddBoolToObject(record, "waiting_for_volume", s->active && !s->file_open);
    cJSON_AddStringToObject(record, "file", s->file);
    add_u64(record, "bscans_in_file", s->bscans_in_file);
    add_u64(record, "volumes", s->volumes);
    add_u64(record, "volumes_set", volumes_set);
    add_u64(record, "volumes_written", s->files);
    add_u64(record, "volumes_incomplete", s->files_incomplete);
    add_u64(record, "bscans_waiting", s->keeper.n_waiting);
    add_u64(record, "buffer_bscans", s->keeper.buffer_bscans);
    /* Dropped B-scans do not count as waiting. */
    uint64_t in_ring = n_images > s->keeper.next_slot ? n_images - s->keeper.next_slot : 0;
    add_u64(record, "bscans_queued", s->keeper.n_waiting + in_ring);
    add_account(reply, "record_account", &s->account);
    add_account(reply, "record_total", &s->total);
    add_last(reply, s);
}

/* Where analysis i stands in a list of indices; -1: nowhere. */
static int find_index(const unsigned *of, unsigned n, unsigned i)
{
    for (unsigned k = 0; k < n; k++)
        if (of[k] == i)
            return (int)k;
    return -1;
}

/* What became of its results: published where somebody subscribes, recorded where they came before
 * their file was closed. */
static void add_results(cJSON *object, const struct oct_publisher_topic *topic,
                        const struct oct_record_result_counts *recorded)
{
    add_u64(object, "published", topic->published);
    add_u64(object, "not_published", topic->skipped);
    add_u64(object, "unwanted", topic->unwanted);
    cJSON_AddBoolToObject(object, "wanted", topic->wanted);
    add_u64(object, "recorded", recorded->written);
    add_u64(object, "not_recorded", recorded->missed);
}

/* Its settings in force, for a viewer that changes them: members with the names of its keys. */
static void add_settings(cJSON *object, const struct oct_config *config, const char *analysis)
{
    struct oct_config_setting s;
    for (size_t at = 0; oct_config_analysis_setting(config, analysis, &at, &s);)
        switch (s.kind) {
        case OCT_SETTING_NUMBER:
            cJSON_AddNumberToObject(object, s.name, s.number);
            break;
        case OCT_SETTING_FLAG:
            cJSON_AddBoolToObject(object, s.name, s.flag);
            break;
        case OCT_SETTING_TEXT:
            cJSON_AddStringToObject(object, s.name, s.text);
        }
}

/* What its newest result says beside its pixels, by name; null (cJSON's NaN): it is not known, or
 * there is none. */
static void add_numbers(cJSON *object, const struct oct_stage *stage,
                        const struct oct_stage_counts *counts)
{
    const struct oct_image_form *form = stage ? oct_stage_results(stage).form : NULL;
    if (!form || form->n_numbers == 0)
        return;
    cJSON *numbers = cJSON_AddObjectToObject(object, "numbers");
    const double *value = counts->numbers;
    const bool has = counts->results > 0 && !counts->at_rest;
    for (unsigned i = 0; i < form->n_numbers; i++) {
        const struct oct_image_number *number = &form->numbers[i];
        cJSON *list = number->n_values > 1 ? cJSON_AddArrayToObject(numbers, number->name) : NULL;
        for (unsigned k = 0; k < number->n_values; k++, value++)
            if (list)
                cJSON_AddItemToArray(list, cJSON_CreateNumber(has ? *value : (double)NAN));
            else
                cJSON_AddNumberToObject(numbers, number->name, has ? *value : (double)NAN);
    }
}

/* One object an analysis, in the order of analysis.run. seen = done + the sum of skipped. What
 * became of results is counted before results are: it is never more. */
static void add_analysis(cJSON *array, const struct oct_daemon *d, unsigned i)
{
    const struct oct_daemon_analyses *all = &d->session->analyses;
    const struct oct_daemon_analysis *a = &all->analysis[i];
    struct oct_stage_counts c = {.failure = a->refused};
    struct oct_publisher_topic topic = {.name = NULL};
    int k = find_index(all->source_of, all->n_sources, i);
    int recorded = find_index(all->recorded_of, all->n_recorded, i);
    if (k >= 0)
        topic = find_topic(d->session, all->sources[k].form->name);
    if (a->stage)
        oct_stage_count(a->stage, &c);
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToArray(array, object);
    cJSON_AddStringToObject(object, "name", a->ops->name);
    cJSON_AddStringToObject(object, "running", a->stage ? c.running : "none");
    add_u64(object, "seen", c.seen);
    add_u64(object, "done", c.done);
    cJSON *skipped = cJSON_AddObjectToObject(object, "skipped");
    for (int r = 0; r < OCT_STAGE_N_SKIPS; r++)
        add_u64(skipped, oct_stage_skip_names[r], c.skipped[r]);
    add_u64(object, "results", c.results);
    if (k >= 0)
        add_results(object, &topic,
                    recorded >= 0 ? &d->recorder.results[recorded] : &none_recorded);
    cJSON_AddBoolToObject(object, "at_rest", c.at_rest);
    cJSON_AddNumberToObject(object, "busy_s", (double)c.busy_ns * 1e-9);
    cJSON_AddBoolToObject(object, "late", a->lag.is_late);
    cJSON_AddNumberToObject(object, "late_share", a->lag.looked_ns ? a->lag.late_share : NAN);
    cJSON_AddNumberToObject(object, "bscan_ms", a->lag.looked_ns ? a->lag.bscan_ms : NAN);
    add_numbers(object, a->stage, &c);
    add_settings(object, &d->config, a->ops->name);
    cJSON_AddBoolToObject(object, "failing", !a->stage || c.failing);
    cJSON_AddStringToObject(object, "error", c.failure.code ? c.failure.text : "");
}

static cJSON *describe_analyses(const struct oct_daemon *d)
{
    cJSON *array = cJSON_CreateArray();
    for (unsigned i = 0; d->session && i < d->session->analyses.n; i++)
        add_analysis(array, d, i);
    return array;
}

/* The live average. `behind`: B-scans that it left out because others had come meanwhile. */
static void add_average(cJSON *reply, const struct oct_daemon *d)
{
    struct oct_stage_counts c = {.at_rest = true};
    for (unsigned i = 0; d->session && i < d->session->analyses.n; i++) {
        const struct oct_daemon_analysis *a = &d->session->analyses.analysis[i];
        if (a->stage && strcmp(a->ops->name, oct_average_cpu.name) == 0)
            oct_stage_count(a->stage, &c);
    }
    const uint32_t repeats = d->config.scan.interleave > 1 ? 1 : d->config.scan.repeats;
    const struct oct_average_settings *s = oct_config_settings(&d->config, oct_average_cpu.name);
    const double *n = c.numbers;
    const bool has = !c.at_rest && isfinite(n[OCT_AVERAGE_AVERAGED]);
    cJSON *average = cJSON_AddObjectToObject(reply, "average");
    add_u64(average, "bscans", repeats > 1 ? repeats : s->bscans);
    cJSON_AddNumberToObject(average, "averaged", has ? n[OCT_AVERAGE_AVERAGED] : 0);
    cJSON_AddNumberToObject(average, "rejected", has ? n[OCT_AVERAGE_REJECTED] : 0);
    cJSON_AddNumberToObject(average, "resets", has ? n[OCT_AVERAGE_RESETS] : 0);
    add_u64(average, "behind", c.skipped[OCT_STAGE_LATE]);
    if (has && isfinite(n[OCT_AVERAGE_SCORE]))
        cJSON_AddNumberToObject(average, "score", n[OCT_AVERAGE_SCORE]);
    else
        cJSON_AddNullToObject(average, "score");
    cJSON_AddNumberToObject(average, "min_score", s->min_score);
}

static void add_session(cJSON *reply, const struct oct_daemon *d)
{
    const struct oct_session *s = d->session;
    cJSON *analyses = describe_analyses(d); /* before what they see: seen <= done */
    cJSON_AddStringToObject(reply, "backend", s ? oct_pipeline_engine_name(s->pipeline) : "none");
    cJSON_AddStringToObject(reply, "engine", s ? s->engine_why : "");
    cJSON_AddStringToObject(reply, "engine_now",
                            s ? oct_pipeline_engine_description(s->pipeline) : "");
    cJSON_AddBoolToObject(reply, "memory_locked", s && oct_pipeline_is_pinned(s->pipeline));
    add_path(reply, s);
    add_recorder(reply, s ? &d->recorder : &no_recorder, s ? d->n_images : 0,
                 d->config.record.volumes);
    add_latency(reply, s ? s->publisher : NULL);
    cJSON_AddItemToObject(reply, "analysis", analyses);
    add_average(reply, d);
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

static struct oct_access_counts count_access(const struct oct_daemon *d)
{
    struct oct_access_counts counts = {0};
    if (d->access)
        oct_access_get_counts(d->access, &counts);
    return counts;
}

static void add_security(cJSON *reply, const struct oct_daemon *d)
{
    struct oct_access_counts counts = count_access(d);
    cJSON *security = cJSON_AddObjectToObject(reply, "security");
    cJSON_AddBoolToObject(security, "curve", d->access != NULL);
    add_u64(security, "keys_allowed", counts.n_allowed);
    add_u64(security, "keys_unreadable", counts.n_unreadable);
    cJSON_AddBoolToObject(security, "keys_incomplete", counts.is_incomplete);
    cJSON *refused = cJSON_AddObjectToObject(security, "refused");
    for (unsigned r = 0; r < OCT_N_REFUSALS; r++)
        add_u64(refused, oct_refusal_names[r], counts.refused[r]);
    add_u64(security, "messages_refused", counts.messages_refused);
    add_u64(security, "connections_cut", counts.connections_cut);
    add_u64(security, "connections_not_taken", oct_connections_not_taken());
    add_u64(security, "connections_flooded", oct_connections_flooded_all());
    add_u64(security, "viewers_cut", oct_connections_viewers_cut());
}

/* Adds the faults during which B-scans may go on. */
static void add_degraded(cJSON *reply, const struct oct_daemon *d)
{
    struct oct_access_counts access = count_access(d);
    cJSON *degraded = cJSON_AddArrayToObject(reply, "degraded");
    if (d->source.lost)
        cJSON_AddItemToArray(degraded, cJSON_CreateString("source"));
    if (d->session && d->driver.fault != OCT_DRIVER_RIGHT)
        cJSON_AddItemToArray(degraded, cJSON_CreateString("source_refused"));
    if (d->failed_over)
        cJSON_AddItemToArray(degraded, cJSON_CreateString("engine"));
    if (d->session && d->recorder.failure.code)
        cJSON_AddItemToArray(degraded, cJSON_CreateString("recording"));
    if (d->session && d->backlog.disk_slow)
        cJSON_AddItemToArray(degraded, cJSON_CreateString("disk"));
    if (d->session && oct_daemon_analyses_are_degraded(&d->session->analyses))
        cJSON_AddItemToArray(degraded, cJSON_CreateString("analysis"));
    if (d->session && oct_daemon_analyses_are_late(&d->session->analyses))
        cJSON_AddItemToArray(degraded, cJSON_CreateString("analysis_late"));
    if (access.n_unreadable || access.is_incomplete)
        cJSON_AddItemToArray(degraded, cJSON_CreateString("keys"));
}

/* Adds the camera driver's fault in the words of the log; "" if there is none. */
static void add_fault(cJSON *source, const struct oct_daemon *d)
{
    static const struct oct_driver none;
    const struct oct_driver *driver = d->session ? &d->driver : &none;
    char text[OCT_ERROR_TEXT_BYTES];
    bool wrong = driver->fault != OCT_DRIVER_RIGHT;
    oct_driver_text(driver, text, sizeof(text));
    cJSON *fault = cJSON_AddObjectToObject(source, "fault");
    cJSON_AddStringToObject(fault, "reason", oct_driver_fault_name(driver->fault));
    add_u64(fault, "messages", wrong ? driver->n_messages : 0);
    cJSON_AddStringToObject(fault, "text", text);
    cJSON_AddStringToObject(fault, "cure", wrong ? driver->cure : "");
    cJSON_AddStringToObject(fault, "plain", wrong ? driver->plain : "");
}

/* Adds the header of the newest right message that was looked at. */
static void add_seen(cJSON *source, const struct oct_daemon *d)
{
    static const struct oct_line_rate none;
    const struct oct_line_rate *rate = d->session ? &d->line_rate : &none;
    const struct oct_driver_look *look = &rate->look;
    cJSON *seen = cJSON_AddObjectToObject(source, "seen");
    add_u64(seen, "looks", look->number);
    add_u64(seen, "samples_a_line", look->header.n_samples);
    add_u64(seen, "lines_a_message", look->header.n_lines);
    add_u64(seen, "sample_bits", look->number ? oct_samples_bits(look->header.format) : 0);
    cJSON_AddBoolToObject(seen, "crc", look->header.crc32c != 0);
    add_u64(seen, "camera_ns", look->header.time_ns);
    cJSON_AddNumberToObject(seen, "by_camera_hz", rate->by_camera_hz);
    cJSON_AddNumberToObject(seen, "by_octd_hz", rate->by_octd_hz);
    add_u64(seen, "sample_min", look->samples.min);
    add_u64(seen, "sample_max", look->samples.max);
    cJSON_AddStringToObject(seen, "samples", oct_sample_fault_names[look->samples.fault]);
}

static uint64_t n_seen(const struct oct_daemon *d, enum oct_driver_fault fault)
{
    return d->session ? oct_ingest_driver(d->session->ingest)->n[fault] : 0;
}

static void add_source(cJSON *reply, const struct oct_daemon *d)
{
    const struct oct_ingest_counts *c =
        d->session ? oct_ingest_counts(d->session->ingest) : &no_counts;
    cJSON *source = cJSON_AddObjectToObject(reply, "source");
    add_u64(source, "epoch", c->epoch);
    cJSON_AddBoolToObject(source, "streaming", d->source.streaming);
    cJSON_AddBoolToObject(source, "lost", d->source.lost);
    add_u64(source, "losses", d->source.n_losses);
    add_u64(source, "resynchronised", c->resynchronised);
    add_u64(source, "starts_again", n_seen(d, OCT_DRIVER_STARTS_AGAIN));
    add_u64(source, "connections_refused", n_seen(d, OCT_DRIVER_NO_PUSH));
    add_fault(source, d);
    add_seen(source, d);
}

cJSON *oct_daemon_status(const struct oct_daemon *d)
{
    cJSON *reply = cJSON_CreateObject();
    if (!reply)
        return NULL;
    cJSON_AddBoolToObject(reply, "ok", true);
    cJSON_AddStringToObject(reply, "state",
                            oct_state_contract_name(d->state, oct_daemon_is_recording(d)));
    cJSON_AddStringToObject(reply, "phase", oct_state_names[d->state]);
    cJSON_AddBoolToObject(reply, "pending", !oct_daemon_is_settled(d));
    cJSON_AddStringToObject(reply, "version", OCT_VERSION);
    add_u64(reply, "pid", (uint64_t)getpid());
    cJSON_AddNumberToObject(reply, "uptime_s", (double)(oct_clock_ns() - d->started_ns) * 1e-9);
    cJSON_AddStringToObject(reply, "last_error", d->last_error);
    cJSON_AddBoolToObject(reply, "config_changed", d->stale);
    cJSON_AddBoolToObject(reply, "config_file_changed", oct_file_watch_changed(&d->watch));
    add_degraded(reply, d);
    add_source(reply, d);
    add_session(reply, d);
    oct_errand_describe(&d->errand, reply);
    oct_daemon_describe(reply, d);
    oct_daemon_forecast_describe(reply, d->session ? &d->forecast : &no_forecast, d->session);
    add_security(reply, d);
    return reply;
}
