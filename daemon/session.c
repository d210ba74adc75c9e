#include "daemon/session.h"

#include "config/analysis.h"
#include "config/apply.h"
#include "config/config.h"
#include "kernels/device/workers.h"
#include "kernels/engines.h"
#include "pipeline/base/log.h"
#include "pipeline/base/memory.h"
#include "pipeline/plan/geometry.h"
#include "pipeline/record/keeper.h"
#include "pipeline/record/recorder.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

/* The recorder's memory: how many B-scans the configuration asks it to keep, and whether this
 * machine has room for them. */

#define MIB 1048576.0
#define SHARE 0.8 /* of the available memory: the rest is for the page cache and other programs */

/* From record.buffer_s and record.last_s at scan.line_rate_hz. OCT_E_CONFIG: record.last_s takes
 * more than there is, or more B-scans than a file may hold; says how much would do. */
static enum oct_err memory_plan(const struct oct_config *config, const struct oct_geometry *g,
                                uint32_t *buffer_bscans, uint32_t *history_bscans,
                                struct oct_error *err)
{
    double per_s = oct_config_bscans_hz(config);
    double bytes = (double)oct_kept_bytes(g, oct_config_has_complex(config));
    double free_bytes = oct_memory_available_bytes(NULL) * SHARE;
    double buffer = ceil(config->record.buffer_s * per_s);
    double history = ceil(config->record.last_s * per_s);
    if (history > OCT_MAX_BSCANS)
        return oct_fail_key(
            err, OCT_E_CONFIG, "record.last_s",
            "record.last_s: %g s are %.0f B-scans, a file holds at most %u: at most "
            "%g s",
            config->record.last_s, history, OCT_MAX_BSCANS, floor(OCT_MAX_BSCANS / per_s));
    if (history > 0 && (history + buffer) * bytes > free_bytes)
        return oct_fail_key(
            err, OCT_E_CONFIG, "record.last_s record.buffer_s",
            "record.last_s: %g s (and record.buffer_s: %g s) take %.0f MiB, but only "
            "%.0f MiB can be had: at most %.1f s",
            config->record.last_s, config->record.buffer_s, (history + buffer) * bytes / MIB,
            free_bytes / MIB, fmax(0, free_bytes / bytes / per_s - config->record.buffer_s));
    /* The buffer grows only as it is needed; a share of the memory bounds it. */
    buffer = fmin(buffer, floor(fmin(free_bytes / bytes, UINT32_MAX / 2)));
    *buffer_bscans = (uint32_t)buffer;
    *history_bscans = (uint32_t)history;
    return OCT_OK;
}

/* Logs how much memory was taken. */
static void memory_tell(struct oct_recorder *recorder, const struct oct_config *config)
{
    const double per_s = oct_config_bscans_hz(config);
    struct oct_recorder_status status;
    oct_recorder_get_status(recorder, &status);
    const struct oct_keeper_status *k = &status.keeper;
    if (k->history_bscans > 0)
        oct_log(OCT_LOG_INFO,
                "the last %g s (%u B-scans) are kept in memory for record last: with %.1f s for a "
                "slow disk %.1f MiB, all taken now",
                config->record.last_s, k->history_bscans, k->buffer_bscans / per_s,
                (double)k->bytes / MIB);
    else
        oct_log(OCT_LOG_INFO,
                "a recording survives a disk that stalls %.1f s (%u B-scans, up to %.1f MiB)",
                k->buffer_bscans / per_s, k->buffer_bscans, (double)k->bytes / MIB);
}

static void measure(const struct oct_engine_ops *ops, struct oct_engine *engine,
                    const struct oct_plan *plan, const struct oct_display *display,
                    struct oct_forecast_series *rates)
{
    struct oct_forecast_load load;
    oct_forecast_load_begin(&load);
    double hz = oct_forecast_engine(ops, engine, plan, display, OCT_FORECAST_ENGINE_US);
    oct_forecast_series_add(rates, hz, oct_forecast_load_end(&load));
}

void oct_session_measure(const struct oct_session *s, const struct oct_config *config,
                         struct oct_forecast_series *rates)
{
    const struct oct_engine_ops *ops;
    struct oct_engine_options options;
    struct oct_engine *engine;
    struct oct_error err;
    char wisdom_dir[OCT_CONFIG_STRING_BYTES], why[OCT_ERROR_TEXT_BYTES];
    oct_config_engine_options(config, &options, wisdom_dir, sizeof(wisdom_dir));
    options.workers = s->workers;
    if (oct_engine_select("cpu", s->plan, &options, &ops, &engine, why, sizeof(why), &err))
        return;
    measure(ops, engine, s->plan, &s->engine_display, rates);
    ops->destroy(engine);
}

static enum oct_err create_pipeline(struct oct_session *s, const struct oct_config *config,
                                    struct oct_error *err)
{
    struct oct_engine_options options;
    struct oct_pipeline_setup setup = {.ring_bscans = config->pipeline.ring_bscans};
    char wisdom_dir[OCT_CONFIG_STRING_BYTES];

    enum oct_err e = oct_daemon_analyses_find(&s->analyses, config, setup.lends, err);
    e = e ? e : oct_config_plan(config, &s->plan, err);
    e = e ? e : oct_workers_create(&s->workers, config->pipeline.threads, err);
    e = e ? e : oct_workers_create_yielding(&s->analysts, config->pipeline.threads, err);
    if (e)
        return e;
    setup.lends[OCT_LENT_COMPLEX] |= config->publish.has_complex || oct_config_has_complex(config);
    setup.plan = s->plan;
    setup.spacing = oct_config_spacing(config, s->plan);
    e = oct_calibrate_topic_init(&s->calibrate, s->plan, &setup.spacing, err);
    if (e) /* no engine yet, which nothing here would destroy */
        return e;
    oct_config_engine_options(config, &options, wisdom_dir, sizeof(wisdom_dir));
    options.workers = s->workers;
    options.has_complex = setup.lends[OCT_LENT_COMPLEX];
    e = oct_engine_select(oct_config_backend_names[config->pipeline.backend], s->plan, &options,
                          &setup.ops, &setup.engine, s->engine_why, sizeof(s->engine_why), err);
    if (e)
        return e;
    oct_config_display(config, &setup.display);
    s->engine_display = setup.display;
    s->engine_name = setup.ops->running ? setup.ops->running(setup.engine) : setup.ops->name;
    for (unsigned n = 0; n < OCT_FORECAST_AGREEING; n++)
        measure(setup.ops, setup.engine, s->plan, &setup.display, &s->engine_rates);
    e = oct_pipeline_create(&s->pipeline, &setup, err);
    if (!e)
        oct_daemon_analyses_start(&s->analyses, config, s->pipeline, s->analysts);
    return e;
}

/* Ingest and keeper write into the log of losses; the recorder asks it later, when it reaches the
 * B-scans that wait in rings and memory. */
static enum oct_err create_losses(struct oct_session *s, uint64_t n_kept, struct oct_error *err)
{
    uint64_t n_rings = (uint64_t)oct_ring_n_slots(oct_pipeline_raw(s->pipeline)) +
                       oct_ring_n_slots(oct_pipeline_images(s->pipeline));
    s->losses = oct_loss_log_create(n_kept + n_rings);
    return s->losses ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a session");
}

/* What is published beside pictures and spectra. Returns how many. */
static unsigned list_sources(const struct oct_session *s,
                             struct oct_image_source sources[OCT_DAEMON_MOST_ANALYSES + 1])
{
    unsigned n = s->analyses.n_sources;
    memcpy(sources, s->analyses.sources, n * sizeof(*sources));
    sources[n++] = (struct oct_image_source){&s->calibrate.form, s->calibrate.ring, NULL};
    return n;
}

static enum oct_err create_publisher(struct oct_session *s, const struct oct_config *config,
                                     const char *name, struct oct_error *err)
{
    struct oct_image_source sources[OCT_DAEMON_MOST_ANALYSES + 1];
    const struct oct_publisher_options publisher = {
        .zmq_context = s->zmq_context,
        .endpoint = config->publish.endpoint,
        .queue_bscans = config->publish.queue_bscans,
        .geometry = &s->plan->geometry,
        .images = oct_pipeline_images(s->pipeline),
        .session = name,
        .door = s->door,
        .raw = oct_pipeline_raw(s->pipeline),
        .pipeline = config->publish.has_complex ? s->pipeline : NULL,
        .limit = (1u << config->camera.bits) - 1,
        .sources = sources,
        .n_sources = list_sources(s, sources),
    };
    return oct_publisher_create(&s->publisher, &publisher, err);
}

static enum oct_err create_ends(struct oct_session *s, const struct oct_config *config,
                                const char *name, bool open, const struct oct_epochs *epochs,
                                struct oct_error *err)
{
    uint32_t buffer = 0, history = 0;
    const struct oct_geometry *g = &s->plan->geometry;
    enum oct_err e = memory_plan(config, g, &buffer, &history, err);
    e = e ? e : create_losses(s, (uint64_t)buffer + history, err);
    if (e)
        return e;
    const struct oct_ingest_options ingest = {
        .endpoint = config->ingest.endpoint,
        .shm_group = config->ingest.shm_group,
        .queue_messages = config->ingest.queue_messages,
        .max_message_bytes = (uint64_t)config->ingest.max_message_mb << 20,
        .idle_s = config->ingest.idle_s,
        .slot_bscans = config->ingest.slot_bscans,
        .lend = true,
        .scan = &s->plan->scan,
        .epochs = epochs,
        .memory = oct_pipeline_memory(s->pipeline),
        .open = open,
        .losses = s->losses,
        .door = s->door,
    };
    e = create_publisher(s, config, name, err);
    if (e)
        return e;
    e = oct_ingest_create(&s->ingest, s->zmq_context, g, oct_pipeline_raw(s->pipeline), &ingest,
                          err);
    if (e)
        return e;
    struct oct_recorder_options recorder = {
        .plan = s->plan,
        .raw = oct_pipeline_raw(s->pipeline),
        .images = oct_pipeline_images(s->pipeline),
        .ended_at = &oct_ingest_counts(s->ingest)->ended_at,
        .engine = s->engine_why,
        .losses = s->losses,
        .buffer_bscans = buffer,
        .history_bscans = history,
        .complex_of = oct_config_has_complex(config) ? s->pipeline : NULL,
        .sources = s->analyses.recorded,
        .n_sources = s->analyses.n_recorded,
    };
    return oct_recorder_create(&s->recorder, &recorder, err);
}

/* The keeper's memory, plus half of the image ring before it (keeper.h). */
static unsigned buffer_of(const struct oct_session *s)
{
    struct oct_recorder_status recorder;
    oct_recorder_get_status(s->recorder, &recorder);
    return recorder.keeper.buffer_bscans + recorder.keeper.history_bscans +
           oct_ring_n_slots(oct_pipeline_images(s->pipeline)) / 2;
}

enum oct_err oct_session_create(struct oct_session **out, const struct oct_config *config,
                                struct oct_access *keys, const char *name, bool open,
                                const struct oct_epochs *epochs, struct oct_error *err)
{
    *out = NULL;
    struct oct_session *s = calloc(1, sizeof(*s));
    if (!s)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a session");
    enum oct_err e = OCT_OK;
    s->scan = config->scan;
    s->zmq_context = zmq_ctx_new();
    if (!s->zmq_context)
        e = oct_fail(err, OCT_E_NO_MEMORY, "no ZeroMQ context: %s", zmq_strerror(zmq_errno()));
    e = e ? e : oct_door_create(&s->door, s->zmq_context, keys, err);
    e = e ? e : create_pipeline(s, config, err);
    e = e ? e : create_ends(s, config, name, open, epochs, err);
    if (e) {
        oct_session_destroy(s);
        return e;
    }
    s->buffer_bscans = buffer_of(s);
    oct_log(OCT_LOG_INFO, "%s", s->engine_why);
    memory_tell(s->recorder, config);
    oct_log(OCT_LOG_INFO, "lines in on %s, B-scans out on %s", oct_ingest_endpoint(s->ingest),
            oct_publisher_endpoint(s->publisher));
    if (!oct_pipeline_is_pinned(s->pipeline))
        oct_log(OCT_LOG_WARNING, "the rings are not locked in memory (RLIMIT_MEMLOCK is too low: "
                                 "raise it with ulimit -l); under memory pressure B-scans may be "
                                 "late");
    if (access(config->record.directory, W_OK) != 0 && errno != ENOENT)
        oct_log(OCT_LOG_WARNING,
                "record.directory: %s cannot be written: recording will be refused",
                config->record.directory);
    *out = s;
    return OCT_OK;
}

void oct_session_drain(struct oct_session *s)
{
    struct oct_recorder_status recorder;
    oct_recorder_drain(s->recorder);
    oct_ingest_set_gate(s->ingest, false);
    oct_pipeline_drain(s->pipeline);
    /* The image ring is closed: the recorder ends when it has read all of it. */
    for (;;) {
        oct_recorder_get_status(s->recorder, &recorder);
        if (!recorder.active)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
}

/* Reads begun last, as done and dropped only grow: the difference is never negative. */
uint64_t oct_session_n_in_flight(const struct oct_session *s)
{
    const struct oct_ingest_counts *in = oct_ingest_counts(s->ingest);
    struct oct_pipeline_counts out = oct_pipeline_count(s->pipeline);
    uint64_t ended = out.bscans_done + out.bscans_dropped_engine + in->bscans_dropped;
    return in->bscans_begun - ended;
}

void oct_session_destroy(struct oct_session *s)
{
    if (!s)
        return;
    /* Ends in the order of the stream: closes the gate, drains the pipeline, then the sinks end
     * when they have read all. The recorder reads the ingest's counts, so the ingest is destroyed
     * last. */
    if (s->recorder)
        oct_recorder_drain(s->recorder);
    if (s->ingest)
        oct_ingest_set_gate(s->ingest, false);
    if (s->pipeline)
        oct_pipeline_drain(s->pipeline);
    bool all_ended = oct_daemon_analyses_drain(&s->analyses);
    if (s->calibrate.ring)
        oct_ring_close(s->calibrate.ring);
    oct_recorder_destroy(s->recorder);
    oct_publisher_destroy(s->publisher);
    oct_ingest_destroy(s->ingest);
    oct_daemon_analyses_destroy(&s->analyses);
    oct_calibrate_topic_finish(&s->calibrate);
    oct_pipeline_destroy(s->pipeline);
    oct_workers_destroy(s->workers);
    if (all_ended) /* else it lasts as long as the program: a thread may still be using it */
        oct_workers_destroy(s->analysts);
    oct_plan_destroy(s->plan);
    oct_loss_log_destroy(s->losses);
    oct_door_destroy(s->door);
    if (s->zmq_context)
        while (zmq_ctx_term(s->zmq_context) != 0 && zmq_errno() == EINTR)
            ; /* interrupted by a signal: call again to go on waiting */
    free(s);
}

/* text: the configuration's text; the recorder copies it with the rest. */
static struct oct_record_settings settings_of(const struct oct_config *config, const char *text)
{
    return (struct oct_record_settings){
        .directory = config->record.directory,
        .spectra = config->record.spectra != OCT_RECORD_NO_SPECTRA,
        .as_sent = config->record.spectra == OCT_RECORD_SPECTRA_AS_SENT,
        .bscans = config->record.bscans,
        .has_complex = oct_config_has_complex(config),
        .sync_interval_s = config->record.sync_interval_s,
        .config_text = text,
        .eye = config->record.eye,
        .pseudonym = config->record.pseudonym,
        .width_um = config->scan.width_um,
        .height_um = config->scan.height_um,
        .refractive_index = config->scan.refractive_index,
        .scan = oct_config_scan(config),
        .is_log = config->pipeline.log,
        .volumes = config->record.volumes,
        .name_has_pseudonym = config->record.name_has_pseudonym,
    };
}

enum oct_err oct_session_may_record(const struct oct_session *s, const struct oct_config *config,
                                    struct oct_error *err)
{
    const struct oct_record_settings settings = settings_of(config, "");
    return oct_recorder_check(s->recorder, &settings, NULL, err);
}

double oct_session_bscan_bytes(const struct oct_session *s, const struct oct_config *config)
{
    const struct oct_record_settings settings = settings_of(config, "");
    const struct oct_geometry *g = &oct_pipeline_plan(s->pipeline)->geometry;
    const double results =
        oct_record_sources_bytes(s->analyses.recorded, s->analyses.n_recorded, g->n_bscans);
    return oct_record_bscan_bytes(&settings, g, results);
}

enum oct_err oct_session_record(struct oct_session *s, const struct oct_config *config,
                                bool last_seconds, const char *name, struct oct_error *err)
{
    char *text = oct_config_text(config);
    if (!text)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the configuration's text");
    const struct oct_record_settings settings = settings_of(config, text);
    enum oct_err e = last_seconds ? oct_recorder_save_history(s->recorder, &settings, name, err)
                                  : oct_recorder_start(s->recorder, &settings, err);
    free(text);
    return e;
}
