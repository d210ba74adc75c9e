#include "daemon/forecast.h"

#include "config/apply.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cjson/cJSON.h>

#define WINDOW_NS 1000000000u
#define LEAST_BSCANS 20 /* in a window, which tell how fast the engine is */

/* The rate to plan for: the configured one, or, if none is configured or more arrives, the rate
 * that arrives or arrived last. *from: whose it is; NULL: nobody's, but the built-in default. */
static double wanted_hz(const struct oct_daemon_forecast *o, const struct oct_config *config,
                        const char **from)
{
    bool said = oct_config_is_set(config, "scan.line_rate_hz");
    *from = "the camera's";
    if (o->in_hz > 0 && (!said || o->in_hz > config->scan.line_rate_hz))
        return o->in_hz;
    if (!said && o->camera_hz > 0)
        return o->camera_hz;
    *from = said ? "scan.line_rate_hz" : NULL;
    return config->scan.line_rate_hz;
}

/* Whether a picture costs as much as when it was measured: the values of black and white, and how
 * fast they follow, cost nothing; finding them does. */
static bool shows_as(const struct oct_display *then, const struct oct_config *config)
{
    struct oct_display now;
    oct_config_display(config, &now);
    return now.log == then->log && now.range == then->range &&
           (now.range != OCT_RANGE_PERCENTILE ||
            (now.percentile_lo == then->percentile_lo && now.percentile_hi == then->percentile_hi));
}

static bool is_on_same_disk(const struct oct_daemon_forecast *o, const struct oct_config *config)
{
    return strcmp(o->directory, config->record.directory) == 0;
}

/* Makes the forecast; uses a measurement only where it fits the current configuration. */
static void make_forecast(struct oct_daemon_forecast *o, const struct oct_config *config,
                          const struct oct_session *s)
{
    const struct oct_geometry *g = &oct_pipeline_plan(s->pipeline)->geometry;
    /* Another engine may have taken over since, which was not measured. */
    bool same = strcmp(oct_pipeline_engine_name(s->pipeline), s->engine_name) == 0 &&
                shows_as(&s->engine_display, config);
    const bool disk = is_on_same_disk(o, config);
    bool engine_busy, disk_busy;
    const char *rate_from;
    const double bytes = oct_session_bscan_bytes(s, config),
                 wanted = wanted_hz(o, config, &rate_from), need_hz = wanted * OCT_FORECAST_MARGIN;
    double engine_hz = oct_forecast_series_rate(&s->engine_rates, &engine_busy);
    struct oct_forecast_disk now = o->disk;
    now.bytes_per_s = oct_forecast_series_rate(&o->disk_rates, &disk_busy);
    const struct oct_forecast_setup setup = {
        .wanted_hz = wanted,
        .rate_from = rate_from,
        .engine_hz = same ? engine_hz : 0,
        .n_engine_slow = oct_forecast_series_below(&s->engine_rates, need_hz),
        .n_disk_slow = oct_forecast_series_below(&o->disk_rates, need_hz * bytes / g->n_lines),
        .engine_busy = same && engine_busy,
        .disk_busy = disk && disk_busy,
        .disk = disk ? now : (struct oct_forecast_disk){0},
        .bscan_bytes = bytes,
        .n_lines = g->n_lines,
        .ring_bscans = oct_ring_n_slots(oct_pipeline_raw(s->pipeline)),
        .buffer_bscans = s->buffer_bscans,
    };
    oct_forecast_make(&o->result, &setup);
    oct_forecast_warning(&o->result, o->warning, sizeof(o->warning));
}

/* A folder that does not exist yet will lie on the disk of its parent. A folder that exists but
 * cannot be measured is not replaced by its parent, which may be on another disk. */
static void measure_disk(struct oct_daemon_forecast *o, const char *directory)
{
    char path[OCT_CONFIG_STRING_BYTES];
    struct oct_error err;
    struct stat st;
    snprintf(path, sizeof(path), "%s", directory);
    if (stat(path, &st) != 0 && errno == ENOENT) {
        size_t n = strlen(path);
        while (n > 1 && path[n - 1] == '/')
            path[--n] = '\0';
        char *slash = strrchr(path, '/');
        snprintf(slash ? slash : path, 2, "%s", slash ? "/" : ".");
    }
    for (unsigned n = 0; n < OCT_FORECAST_AGREEING; n++) {
        struct oct_forecast_load load;
        oct_forecast_load_begin(&load);
        if (oct_forecast_disk(path, OCT_FORECAST_DISK_US, &o->disk, &err)) {
            oct_log(OCT_LOG_WARNING, "no forecast of the disk: %s", err.text);
            o->disk_rates = (struct oct_forecast_series){0};
            return;
        }
        oct_forecast_series_add(&o->disk_rates, o->disk.bytes_per_s, oct_forecast_load_end(&load));
    }
}

static void log_forecast(const struct oct_daemon_forecast *o)
{
    char text[OCT_ERROR_TEXT_BYTES];
    oct_forecast_text(&o->result, text, sizeof(text));
    oct_log(OCT_LOG_INFO, "forecast: %s", text);
    if (o->warning[0])
        oct_log(OCT_LOG_WARNING, "%s", o->warning);
}

void oct_daemon_forecast_measure(struct oct_daemon_forecast *o, const struct oct_config *config,
                                 const struct oct_session *s)
{
    if (!is_on_same_disk(o, config))
        o->disk_rates = (struct oct_forecast_series){0};
    o->disk = (struct oct_forecast_disk){0};
    o->last_done = o->last_busy_ns = 0; /* of another session, maybe */
    o->load = (struct oct_forecast_load){0};
    snprintf(o->directory, sizeof(o->directory), "%s", config->record.directory);
    if (config->record.spectra || config->record.bscans)
        measure_disk(o, config->record.directory);
    make_forecast(o, config, s);
    log_forecast(o);
}

void oct_daemon_forecast_measured(struct oct_daemon_forecast *o, const struct oct_config *config,
                                  const struct oct_session *s)
{
    bool warned = o->warning[0] != '\0';
    make_forecast(o, config, s);
    if (warned != (o->warning[0] != '\0'))
        log_forecast(o);
}

bool oct_daemon_forecast_is_due(struct oct_daemon_forecast_idle *idle, bool quiet, uint64_t now_ns)
{
    if (!quiet) {
        *idle = (struct oct_daemon_forecast_idle){0};
        return false;
    }
    if (!idle->quiet_ns)
        *idle = (struct oct_daemon_forecast_idle){now_ns, OCT_DAEMON_FORECAST_FIRST_NS};
    if (now_ns - idle->quiet_ns < idle->pause_ns)
        return false;
    idle->quiet_ns = now_ns;
    idle->pause_ns = idle->pause_ns < OCT_DAEMON_FORECAST_PAUSE_NS / 2
                         ? 2 * idle->pause_ns
                         : OCT_DAEMON_FORECAST_PAUSE_NS;
    return true;
}

static void tick_rate(struct oct_daemon_forecast *o, const struct oct_session *s, uint64_t now_ns)
{
    const struct oct_ingest_counts *c = oct_ingest_counts(s->ingest);
    uint64_t lines = c->lines_received + c->lines_dropped;
    bool same_session = lines >= o->last_lines && o->last_ns;
    const double n_came = same_session ? (double)(lines - o->last_lines) : 0;
    o->in_hz = o->was_quiet ? 0 : n_came * 1e9 / (double)(now_ns - o->last_ns);
    o->was_quiet = n_came == 0;
    o->last_lines = lines;
    o->last_ns = now_ns;
}

/* How fast the engine was over the last second. */
static void tick_engine(struct oct_daemon_forecast *o, const struct oct_config *config,
                        struct oct_session *s, double window_ns)
{
    const struct oct_pipeline_counts now = oct_pipeline_count(s->pipeline);
    const uint64_t n_lines = oct_pipeline_plan(s->pipeline)->geometry.n_lines;
    const bool is_same = now.busy_ns >= o->last_busy_ns && now.bscans_done >= o->last_done;
    const double busy_ns = is_same ? (double)(now.busy_ns - o->last_busy_ns) : 0;
    const double n_done = is_same ? (double)(now.bscans_done - o->last_done) : 0;
    o->engine_load = busy_ns < window_ns ? busy_ns / window_ns : 1;
    o->last_busy_ns = now.busy_ns;
    o->last_done = now.bscans_done;
    /* B-scans that wait say that it does not keep up, whatever held it up. */
    const bool is_behind = oct_pipeline_get_progress(s->pipeline).n_waiting >
                           oct_ring_n_slots(oct_pipeline_raw(s->pipeline)) / 4;
    const char *name = oct_pipeline_engine_name(s->pipeline);
    if (n_done < LEAST_BSCANS || strcmp(name, "cpu") != 0 || strcmp(name, s->engine_name) != 0 ||
        !shows_as(&s->engine_display, config)) {
        o->load = (struct oct_forecast_load){0};
        return;
    }
    if (o->load.ran_s > 0)
        oct_forecast_series_add(&s->engine_rates, n_done * (double)n_lines * 1e9 / busy_ns,
                                is_behind ? 0 : oct_forecast_load_end(&o->load));
    oct_forecast_load_begin(&o->load);
}

void oct_daemon_forecast_tick(struct oct_daemon_forecast *o, const struct oct_config *config,
                              struct oct_session *s, double bytes_free)
{
    uint64_t now_ns = oct_clock_ns();
    bool warned = o->warning[0] != '\0';
    const uint64_t window_ns = now_ns - o->last_ns;
    if (window_ns < WINDOW_NS)
        return;
    tick_rate(o, s, now_ns);
    tick_engine(o, config, s, (double)window_ns);
    if (o->disk_rates.n_taken && bytes_free >= 0 && is_on_same_disk(o, config))
        o->disk.bytes_free = bytes_free;
    make_forecast(o, config, s);
    if (o->warning[0] && !warned)
        oct_log(OCT_LOG_WARNING, "%s", o->warning);
}

void oct_daemon_forecast_changed(struct oct_daemon_forecast *o, const struct oct_config *config,
                                 const struct oct_session *s)
{
    make_forecast(o, config, s);
}

void oct_daemon_forecast_describe(cJSON *reply, const struct oct_daemon_forecast *o,
                                  const struct oct_session *s)
{
    const struct oct_forecast *f = &o->result;
    cJSON *object = cJSON_AddObjectToObject(reply, "forecast");
    cJSON_AddNumberToObject(object, "wanted_hz", f->wanted_hz);
    cJSON_AddNumberToObject(object, "in_hz", o->in_hz);
    cJSON_AddNumberToObject(object, "engine_hz", f->engine_hz);
    cJSON_AddNumberToObject(object, "engine_load", o->engine_load);
    cJSON_AddNumberToObject(object, "disk_hz", f->disk_hz);
    cJSON_AddNumberToObject(object, "ring_s", f->ring_s);
    cJSON_AddNumberToObject(object, "buffer_s", f->buffer_s);
    cJSON_AddNumberToObject(object, "overrun_s", f->overrun_s);
    cJSON_AddNumberToObject(object, "record_overrun_s", f->record_overrun_s);
    cJSON_AddNumberToObject(object, "disk_min", f->disk_min);
    cJSON_AddNumberToObject(object, "engine_measurements", s ? s->engine_rates.n_taken : 0);
    cJSON_AddNumberToObject(object, "disk_measurements", o->disk_rates.n_taken);
    cJSON_AddBoolToObject(object, "busy", f->busy);
    cJSON_AddBoolToObject(object, "too_slow", f->slow_engine || f->slow_disk);
    cJSON_AddStringToObject(object, "warning", o->warning);
}
