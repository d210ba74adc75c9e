#include "daemon/outlook.h"

#include "config/apply.h"
#include "pipeline/clock.h"
#include "pipeline/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cjson/cJSON.h>

#define WINDOW_NS 1000000000u

/* What is configured; where nobody said anything, or more comes than was said, what comes. */
static double wanted_hz(const struct oct_outlook *o, const struct oct_config *config)
{
    bool said = oct_config_is_set(config, "scan.line_rate_hz");
    if (o->in_hz > 0 && (!said || o->in_hz > config->scan.line_rate_hz))
        return o->in_hz;
    return config->scan.line_rate_hz;
}

static double bscan_bytes(const struct oct_config *config, const struct oct_geometry *g)
{
    return (config->record.spectra ? (double)oct_geometry_spectra_bytes(g) : 0) +
           (config->record.bscans ? (double)oct_geometry_image_bytes(g) : 0);
}

/* Whether a picture costs what it cost then: black and white themselves, and how fast they follow,
 * are no work; finding them is. */
static bool shows_as(const struct oct_display *then, const struct oct_config *config)
{
    struct oct_display now;
    oct_config_display(config, &now);
    return now.log == then->log && now.range == then->range &&
           (now.range != OCT_RANGE_PERCENTILE ||
            (now.percentile_lo == then->percentile_lo && now.percentile_hi == then->percentile_hi));
}

static bool is_on_same_disk(const struct oct_outlook *o, const struct oct_config *config)
{
    return strcmp(o->directory, config->record.directory) == 0;
}

/* What is configured now may not be what was measured. */
static void make(struct oct_outlook *o, const struct oct_config *config,
                 const struct oct_session *s)
{
    const struct oct_geometry *g = &oct_pipeline_plan(s->pipeline)->geometry;
    /* Another engine may have taken over since, of which nothing is known. */
    bool same = strcmp(oct_pipeline_engine_name(s->pipeline), s->engine_name) == 0 &&
                shows_as(&s->engine_display, config);
    const struct oct_forecast_setup setup = {
        .wanted_hz = wanted_hz(o, config),
        .engine_hz = same ? s->engine_hz : 0,
        .disk = is_on_same_disk(o, config) ? o->disk : (struct oct_forecast_disk){0},
        .bscan_bytes = bscan_bytes(config, g),
        .n_lines = g->n_lines,
        .ring_bscans = oct_ring_n_slots(oct_pipeline_raw(s->pipeline)),
        .buffer_bscans = s->buffer_bscans,
    };
    oct_forecast_make(&o->forecast, &setup);
    oct_forecast_warning(&o->forecast, o->warning, sizeof(o->warning));
}

/* A folder that recording will make is on the disk of the one that it will be in. Where there is a
 * folder that cannot be measured, nothing else is: it may be another disk. */
static void measure_disk(struct oct_outlook *o, const char *directory)
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
    if (oct_forecast_disk(path, OCT_FORECAST_DISK_US, &o->disk, &err))
        oct_log(OCT_LOG_WARNING, "no forecast of the disk: %s", err.text);
}

void oct_outlook_measure(struct oct_outlook *o, const struct oct_config *config,
                         const struct oct_session *s)
{
    char text[OCT_ERROR_TEXT_BYTES];
    o->disk = (struct oct_forecast_disk){0};
    snprintf(o->directory, sizeof(o->directory), "%s", config->record.directory);
    if (config->record.spectra || config->record.bscans)
        measure_disk(o, config->record.directory);
    make(o, config, s);
    oct_forecast_text(&o->forecast, text, sizeof(text));
    oct_log(OCT_LOG_INFO, "forecast: %s", text);
    if (o->warning[0])
        oct_log(OCT_LOG_WARNING, "%s", o->warning);
}

static void follow_rate(struct oct_outlook *o, const struct oct_session *s, uint64_t now_ns)
{
    const struct oct_ingest_counts *c = oct_ingest_counts(s->ingest);
    uint64_t lines = c->lines_received + c->lines_dropped;
    bool same_session = lines >= o->last_lines && o->last_ns;
    o->in_hz =
        same_session ? (double)(lines - o->last_lines) * 1e9 / (double)(now_ns - o->last_ns) : 0;
    o->last_lines = lines;
    o->last_ns = now_ns;
}

void oct_outlook_follow(struct oct_outlook *o, const struct oct_config *config,
                        const struct oct_session *s, double bytes_free)
{
    uint64_t now_ns = oct_clock_ns();
    bool warned = o->warning[0] != '\0';
    if (now_ns - o->last_ns < WINDOW_NS)
        return;
    follow_rate(o, s, now_ns);
    if (o->disk.bytes_per_s > 0 && bytes_free >= 0 && is_on_same_disk(o, config))
        o->disk.bytes_free = bytes_free;
    make(o, config, s);
    if (o->warning[0] && !warned)
        oct_log(OCT_LOG_WARNING, "%s", o->warning);
}

void oct_outlook_changed(struct oct_outlook *o, const struct oct_config *config,
                         const struct oct_session *s)
{
    make(o, config, s);
}

void oct_outlook_describe(cJSON *reply, const struct oct_outlook *o)
{
    const struct oct_forecast *f = &o->forecast;
    cJSON *object = cJSON_AddObjectToObject(reply, "forecast");
    cJSON_AddNumberToObject(object, "wanted_hz", f->wanted_hz);
    cJSON_AddNumberToObject(object, "in_hz", o->in_hz);
    cJSON_AddNumberToObject(object, "engine_hz", f->engine_hz);
    cJSON_AddNumberToObject(object, "disk_hz", f->disk_hz);
    cJSON_AddNumberToObject(object, "ring_s", f->ring_s);
    cJSON_AddNumberToObject(object, "buffer_s", f->buffer_s);
    cJSON_AddNumberToObject(object, "overrun_s", f->overrun_s);
    cJSON_AddNumberToObject(object, "record_overrun_s", f->record_overrun_s);
    cJSON_AddNumberToObject(object, "disk_min", f->disk_min);
    cJSON_AddBoolToObject(object, "too_slow", f->slow_engine || f->slow_disk);
    cJSON_AddStringToObject(object, "warning", o->warning);
}
