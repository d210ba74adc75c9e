#include "daemon/describe.h"

#include "config/analysis.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/utf8.h"

#include <math.h>

#include <cjson/cJSON.h>

char *oct_reply_print(cJSON *reply)
{
    char *text = reply ? cJSON_PrintUnformatted(reply) : NULL;
    cJSON_Delete(reply);
    if (text)
        oct_utf8_repair(text);
    return text;
}

/* NaN is written as null. */
static void add_length(cJSON *object, const char *key, double um)
{
    cJSON_AddNumberToObject(object, key, isfinite(um) && um > 0 ? um : (double)NAN);
}

/* The way of the scan. */
static void add_pattern(cJSON *scan, const struct oct_config_scan *its)
{
    cJSON_AddStringToObject(scan, "pattern", oct_scan_pattern_names[its->pattern]);
    cJSON_AddNumberToObject(scan, "width_um", its->width_um);
    cJSON_AddNumberToObject(scan, "height_um", its->height_um);
    cJSON_AddNumberToObject(scan, "centre_x_um", its->centre_x_um);
    cJSON_AddNumberToObject(scan, "centre_y_um", its->centre_y_um);
    cJSON_AddNumberToObject(scan, "angle_deg", its->angle_deg);
    cJSON_AddNumberToObject(scan, "flyback_lines", its->flyback_lines);
    cJSON_AddNumberToObject(scan, "trigger_delay_lines", its->trigger_delay_lines);
}

static void add_scan(cJSON *reply, const struct oct_daemon *d, const struct oct_plan *plan)
{
    const struct oct_config *config = &d->config;
    cJSON *scan = cJSON_AddObjectToObject(reply, "scan");
    const struct oct_spacing um =
        plan ? oct_config_spacing(config, plan) : (struct oct_spacing){NAN, NAN, NAN};

    add_length(scan, "axial_um", um.depth_um);
    add_length(scan, "lateral_um", um.line_um);
    add_length(scan, "slow_um", um.bscan_um);
    /* While the scan changes, that of what is still shown. */
    add_pattern(scan, d->session && oct_rescan_is_under_way(d) ? &d->session->scan : &config->scan);
    oct_rescan_describe_choices(d, scan);
    cJSON_AddNumberToObject(scan, "repeats", config->scan.repeats);
    cJSON_AddNumberToObject(scan, "line_rate_hz", oct_line_rate_hz(&d->line_rate, config));
    cJSON_AddStringToObject(scan, "line_rate_from", oct_line_rate_from(&d->line_rate, config));
}

static void add_disk(cJSON *reply, const struct oct_daemon *d)
{
    double bytes;
    if (oct_disk_bytes_free(&d->disk, d->config.record.directory, &bytes))
        cJSON_AddNumberToObject(reply, "disk_bytes_free", bytes);
    else
        cJSON_AddNullToObject(reply, "disk_bytes_free");
}

static void add_record(cJSON *reply, cJSON *record, const struct oct_daemon *d)
{
    /* Of images of a volume it may be a fraction. */
    double bytes = d->session ? ceil(oct_session_bscan_bytes(d->session, &d->config)) : 0;
    cJSON_AddNumberToObject(record, "bytes_per_bscan", bytes);
    const cJSON *disk = cJSON_GetObjectItemCaseSensitive(reply, "disk_bytes_free");
    /* At the rate at which lines come: the configured one may be any number. */
    if (cJSON_IsNumber(disk) && bytes > 0 && d->line_rate.measured_hz > 0)
        cJSON_AddNumberToObject(record, "disk_left_s",
                                disk->valuedouble / bytes * d->config.scan.lines /
                                    d->line_rate.measured_hz);
    else
        cJSON_AddNullToObject(record, "disk_left_s");
    bool active = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(record, "active"));
    cJSON_AddNumberToObject(record, "elapsed_s",
                            active ? (double)(oct_clock_ns() - d->record_ns) * 1e-9 : 0);
    cJSON_AddStringToObject(record, "eye", d->config.record.eye);
    cJSON_AddStringToObject(record, "pseudonym", d->config.record.pseudonym);
}

void oct_daemon_describe(cJSON *reply, const struct oct_daemon *d)
{
    const struct oct_plan *plan = d->session ? oct_pipeline_plan(d->session->pipeline) : NULL;
    cJSON *record = cJSON_GetObjectItemCaseSensitive(reply, "record");

    add_scan(reply, d, plan);
    cJSON *pixels = cJSON_AddObjectToObject(reply, "pixels");
    cJSON_AddBoolToObject(pixels, "log", d->config.pipeline.log);
    cJSON_AddStringToObject(pixels, "sample",
                            d->config.output.sample == OCT_SAMPLE_F32 ? "f32" : "u8");
    cJSON_AddNumberToObject(pixels, "saturation", (double)((1u << d->config.camera.bits) - 1));
    add_disk(reply, d);
    if (record)
        add_record(reply, record, d);
}
