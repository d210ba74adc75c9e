#include "config/apply.h"

#include "config/analysis.h"
#include "config/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint32_t oct_config_crop_last(const struct oct_config *config)
{
    if (config->pipeline.crop_last != OCT_CONFIG_CROP_AUTO)
        return config->pipeline.crop_last;
    return oct_geometry_padded(config->camera.samples) / 2; /* P1 = P2/2 */
}

bool oct_config_has_complex(const struct oct_config *config)
{
    return config->output.sample == OCT_CONFIG_C64;
}

enum oct_err oct_config_geometry(const struct oct_config *config, struct oct_geometry *geometry,
                                 struct oct_error *err)
{
    struct oct_error why = {.text = ""};
    if (oct_geometry_init(geometry, config->camera.samples, config->scan.lines, config->scan.bscans,
                          config->pipeline.crop_first, oct_config_crop_last(config),
                          oct_config_has_complex(config)
                              ? OCT_SAMPLE_U8
                              : (enum oct_sample_type)config->output.sample,
                          &why))
        return oct_config_blame(config, &why, err);
    return OCT_OK;
}

/* Reads one calibration file, if the config names it; the message names the key. */
static enum oct_err read_table(const struct oct_config *config, const char *key, const char *path,
                               unsigned n_columns, double **values, size_t *n_rows,
                               struct oct_error *err)
{
    struct oct_error found = {.text = ""}, why;
    if (!path[0])
        return OCT_OK;
    enum oct_err code = oct_calibration_read_table(path, n_columns, values, n_rows, &found);
    if (!code)
        return OCT_OK;
    struct oct_key found_key;
    bool comment_meant = oct_key_find_dotted(key, &found_key) &&
                         oct_key_came_from_file(config, &found_key) && strstr(path, " #") &&
                         access(path, R_OK);
    oct_fail_key(&why, code, key, "%s: %s", key, found.text);
    return oct_key_blame(
        config, &why,
        comment_meant ? " (a '#' starts a comment only first in a line; ' ;' does within one)" : "",
        err);
}

enum oct_err oct_config_calibration(const struct oct_config *config, struct oct_calibration *cal,
                                    struct oct_error *err)
{
    enum oct_err code;
    *cal = (struct oct_calibration){0};
    code = read_table(config, "calibration.wavelengths", config->calibration.wavelengths, 1,
                      &cal->wavelengths_nm, &cal->n_wavelengths, err);
    if (code)
        goto fail;
    code = read_table(config, "calibration.kmap", config->calibration.kmap, 1, &cal->kmap_px,
                      &cal->n_kmap, err);
    if (code)
        goto fail;
    code = read_table(config, "calibration.dispersion", config->calibration.dispersion, 2,
                      &cal->dispersion, &cal->n_dispersion, err);
    if (code)
        goto fail;
    code = read_table(config, "calibration.background", config->calibration.background, 1,
                      &cal->background, &cal->n_background, err);
    if (code)
        goto fail;
    code = read_table(config, "scan.positions", config->scan.positions, 2, &cal->positions_um,
                      &cal->n_positions, err);
    if (code)
        goto fail;
    cal->coefficient[2] = config->calibration.dispersion_a2;
    cal->coefficient[3] = config->calibration.dispersion_a3;
    cal->coefficient[4] = config->calibration.dispersion_a4;
    cal->coefficient[5] = config->calibration.dispersion_a5;
    cal->dispersion_over = (enum oct_dispersion_over)config->calibration.dispersion_over;
    cal->axial_um = config->scan.axial_um;
    cal->lambda_nm = config->scan.lambda_nm;
    cal->band_nm = config->scan.bandwidth_nm;
    return OCT_OK;
fail:
    oct_calibration_finish(cal);
    return code;
}

void oct_config_chain(const struct oct_config *config, struct oct_chain *chain)
{
    *chain = (struct oct_chain){
        .dc = (enum oct_dc)config->pipeline.dc,
        .dc_bscans = config->pipeline.dc_bscans,
        .interpolation = (enum oct_interpolation)config->pipeline.interpolation,
        .accuracy_db = config->pipeline.nufft_accuracy_db,
        .shaping = {.window = (enum oct_window)config->pipeline.window,
                    .width = config->pipeline.window_width,
                    .flatten = config->pipeline.flatten},
    };
}

void oct_config_display(const struct oct_config *config, struct oct_display *display)
{
    *display = (struct oct_display){
        .log = config->pipeline.log,
        .range = (enum oct_range)config->pipeline.range,
        .lo = config->pipeline.log ? config->pipeline.min_db : config->pipeline.min,
        .hi = config->pipeline.log ? config->pipeline.max_db : config->pipeline.max,
        .percentile_lo = config->pipeline.percentile_low,
        .percentile_hi = config->pipeline.percentile_high,
        .smoothing_bscans = config->pipeline.smoothing_bscans,
    };
}

/* XDG base directories: XDG_CACHE_HOME counts only if absolute, else HOME/.cache. */
static const char *find_wisdom_dir(char *dir, size_t dir_bytes)
{
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    int length;
    if (cache && cache[0] == '/')
        length = snprintf(dir, dir_bytes, "%s/octd", cache);
    else if (home && home[0] == '/')
        length = snprintf(dir, dir_bytes, "%s/.cache/octd", home);
    else
        return NULL;
    return length > 0 && (size_t)length < dir_bytes ? dir : NULL;
}

void oct_config_engine_options(const struct oct_config *config, struct oct_engine_options *options,
                               char *wisdom_dir, size_t wisdom_bytes)
{
    *options = (struct oct_engine_options){
        .n_threads = config->pipeline.threads,
        .max_batch = config->pipeline.batch,
        .simd = oct_config_simd_names[config->pipeline.simd],
        .gpus = config->pipeline.gpus,
        .wisdom_dir = find_wisdom_dir(wisdom_dir, wisdom_bytes),
    };
}

/* The plan names a calibration by its key; this appends the file's path. */
static enum oct_err name_file(const struct oct_config *config, const struct oct_error *why,
                              struct oct_error *err)
{
    const struct {
        const char *key, *path;
    } files[] = {
        {"calibration.wavelengths", config->calibration.wavelengths},
        {"calibration.kmap", config->calibration.kmap},
        {"calibration.dispersion", config->calibration.dispersion},
        {"calibration.background", config->calibration.background},
        {"scan.positions", config->scan.positions},
    };
    char in_file[OCT_CONFIG_STRING_BYTES + 8] = "";
    size_t n_first = strcspn(why->key, " ");
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (files[i].path[0] && n_first == strlen(files[i].key) &&
            !strncmp(why->key, files[i].key, n_first))
            snprintf(in_file, sizeof(in_file), " (in %s)", files[i].path);
    return oct_key_blame(config, why, in_file, err);
}

struct oct_scan oct_config_way(const struct oct_config *config)
{
    return (struct oct_scan){
        .n_lines = config->scan.lines,
        .n_bscans = config->scan.bscans,
        .pattern = (enum oct_scan_pattern)config->scan.pattern,
        .protocol = oct_config_scan(config),
        .width_um = config->scan.width_um,
        .height_um = config->scan.height_um,
        .centre_um = {config->scan.centre_x_um, config->scan.centre_y_um},
        .angle_deg = config->scan.angle_deg,
        .flyback_lines = config->scan.flyback_lines,
        .delay_lines = config->scan.trigger_delay_lines,
        .phase_deg = config->scan.phase,
    };
}

struct oct_scan oct_config_way_of_recording(const struct oct_config *config,
                                            const struct oct_calibration *cal, uint32_t scan_bscans,
                                            uint64_t first_bscan)
{
    struct oct_scan scan = oct_config_way(config);
    const size_t n_rows = cal->n_positions, n_lines = scan.n_lines;
    if (scan.pattern == OCT_SCAN_FILE && n_rows % n_lines == 0 && n_rows / n_lines <= UINT32_MAX)
        scan_bscans = (uint32_t)(n_rows / n_lines);
    if (scan_bscans > 0 && scan_bscans != scan.n_bscans) {
        scan.n_bscans = scan_bscans;
        scan.first_bscan = (uint32_t)(first_bscan % scan_bscans);
    }
    if (n_rows == (uint64_t)scan.n_bscans * n_lines)
        scan.file = (const double(*)[2])cal->positions_um;
    return scan;
}

enum oct_err oct_config_set_scan(const struct oct_config *config, struct oct_plan *plan,
                                 struct oct_error *err)
{
    const struct oct_scan scan = oct_config_way(config);
    return oct_plan_set_scan(plan, &scan, err);
}

double oct_config_bscans_hz(const struct oct_config *config)
{
    return config->scan.line_rate_hz / ((double)config->scan.lines + config->scan.flyback_lines);
}

enum oct_err oct_config_plan(const struct oct_config *config, struct oct_plan **plan,
                             struct oct_error *err)
{
    struct oct_geometry geometry;
    struct oct_calibration cal;
    struct oct_error why = {.text = ""};
    struct oct_chain chain;
    *plan = NULL;
    enum oct_err code = oct_config_geometry(config, &geometry, err);
    if (code)
        return code;
    code = oct_config_calibration(config, &cal, err);
    if (code)
        return code;
    oct_config_chain(config, &chain);
    code = oct_plan_create(plan, &geometry, &cal, &chain, &why);
    if (!code && (code = oct_config_set_scan(config, *plan, &why)) != OCT_OK) {
        oct_plan_destroy(*plan);
        *plan = NULL;
    }
    oct_calibration_finish(&cal);
    return code ? name_file(config, &why, err) : OCT_OK;
}
