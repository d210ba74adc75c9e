/* octctl calibrate dispersion: the a2 and a3 that make a sample sharpest. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "tools/analyse/calibrate_dispersion.h"

#include "analysis/calibrate/sharpen_text.h"
#include "config/apply.h"
#include "formats/recording_plan.h"
#include "plot/plot.h"
#include "tools/alloc.h"
#include "tools/commands.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANGE_DB 45.0

/* ---- settings ---- */

#define S struct oct_dispersion_settings
#define OPTION .is_option = true, .is_no_key = true
static const struct oct_param setting_rows[] = {
    {OCT_PARAM("bscans", S, bscans), OPTION, .least = 1, .most = 1e6, .standard = "8",
     .meaning = "B-scans to look at, evenly spread."},
    {OCT_PARAM("lines", S, lines), OPTION, .least = 8, .most = OCT_SHARPEN_MOST_LINES,
     .standard = "512", .meaning = "A-lines of all of them."},
    {OCT_PARAM("first", S, first_px), OPTION, .least = 1, .most = 65535, .standard = "16",
     .unit = "px", .meaning = "Depths before it are left out."},
    {OCT_PARAM("last", S, last_px), OPTION, .least = 17, .most = 65535, .word = "auto",
     .standard = "auto", .unit = "px", .meaning = "And from it on; auto: from P2/4."},
    {OCT_PARAM("most_a2", S, most_a2), OPTION, .least = 1, .most = 1000, .standard = "100",
     .unit = "rad", .meaning = "Search range of a2 beside what the configuration has."},
    {OCT_PARAM("most_a3", S, most_a3), OPTION, .least = 1, .most = 300, .standard = "24",
     .unit = "rad", .meaning = "Search range of a3."},
#define N_OF_FILES 6u /* octd searches as it does without them */
    {OCT_PARAM("timeout", S, timeout_s), OPTION, .least = 0.001, .most = 86400, .standard = "5",
     .unit = "s", .meaning = "Of --live: wait so long for an answer."},
    {OCT_PARAM("wait", S, wait_s), OPTION, .least = 0.001, .most = 86400, .standard = "60",
     .unit = "s", .meaning = "Of --live: and for the result."},
};
#undef OPTION
#undef S
static const struct oct_params setting_params = OCT_PARAMS(setting_rows);

/* ---- the search ---- */

static enum oct_err add_bscans(struct oct_dispersion_job *d, struct oct_recording *recording,
                               uint64_t n, struct oct_error *err)
{
    const struct oct_geometry *g = &d->plan->geometry;
    const uint64_t n_there = oct_recording_n_bscans(recording);
    struct oct_raw_frame frame = {
        .spectra = oct_alloc(oct_geometry_spectra_bytes(g), 1),
        .line_valid = oct_alloc(g->n_lines, 1),
    };
    enum oct_err e = OCT_OK;
    for (uint64_t k = 0; k < n && !e; k++) { /* the middles of n equal parts */
        bool valid;
        e = oct_recording_read(recording, (2 * k + 1) * n_there / (2 * n), &frame, &valid, err);
        if (!e && valid)
            oct_sharpen_add(d->sharpen, frame.spectra, frame.line_valid);
    }
    free(frame.spectra);
    free(frame.line_valid);
    return e;
}

static enum oct_err search(struct oct_dispersion_job *d, struct oct_recording *recording,
                           struct oct_error *err)
{
    const struct oct_dispersion_settings *s = &d->settings;
    const uint64_t n_there = oct_recording_n_bscans(recording);
    const uint64_t n = s->bscans < n_there ? s->bscans : n_there;
    struct oct_sharpen_setup setup = oct_sharpen_standard;
    setup.plan = d->plan;
    setup.first_px = s->first_px;
    setup.last_px = s->last_px;
    setup.n_lines = s->lines;
    setup.n_bscans = (uint32_t)n;
    setup.most_a2 = s->most_a2;
    setup.most_a3 = s->most_a3;
    setup.limit = (1u << d->config.camera.bits) - 1;
    enum oct_err e = oct_sharpen_create(&d->sharpen, &setup, err);
    e = e ? e : add_bscans(d, recording, n, err);
    e = e ? e : oct_sharpen_run(d->sharpen, NULL, &d->result, err);
    return e ? e : oct_sharpen_combine(d->plan, d->result.remaining, &d->whole, err);
}

/* What is no use is an error, but with --json, which says it. */
static enum oct_err find_dispersion(void *job, struct oct_error *err)
{
    struct oct_dispersion_job *d = job;
    if (!d->in)
        return oct_dispersion_ask(d, err);
    const enum oct_err e = search(d, d->recording, err);
    d->job.leaves_files = d->result.state != OCT_SHARPEN_FOUND;
    d->job.status = d->job.leaves_files;
    if (!e && d->job.leaves_files && !d->given.job.json)
        return oct_fail(err, OCT_E_ARG, "%s: %s", d->in, oct_sharpen_why(d->result.state));
    return e;
}

/* ---- a configuration ---- */

void oct_dispersion_print_ini(const cJSON *ini, FILE *file)
{
    const cJSON *line;
    cJSON_ArrayForEach(line, ini) if (cJSON_IsString(line))
        fprintf(file, "%s\n", line->valuestring);
}

/* The file that says where camera samples lie in k, as the configuration names it. */
static void put_map(FILE *file, const struct oct_config *config)
{
    const char *kmap = config->calibration.kmap, *wavelengths = config->calibration.wavelengths;
    const char *path = kmap[0] ? kmap : wavelengths;
    char *whole = path[0] ? realpath(path, NULL) : NULL;
    if (whole)
        fprintf(file, "%s = %s\n", kmap[0] ? "kmap" : "wavelengths", whole);
    free(whole);
}

static void put_ini(const void *job, FILE *file)
{
    const struct oct_dispersion_job *d = job;
    const struct oct_sharpen_result *r = &d->result;
    const char *slash = d->table ? strrchr(d->table, '/') : NULL;
    char line[OCT_SHARPEN_INI_BYTES];
    if (d->in) {
        fprintf(file, "# octctl calibrate dispersion ");
        oct_command_put_name(file, d->in);
        fprintf(file,
                ": sharpness %.2f -> %.2f, a2 +- %.3f,\n"
                "# a3 +- %.3f rad over the spectrum, from %u A-lines\n",
                r->before, r->after, r->error[0], r->error[1], r->n_lines);
    } else {
        fprintf(file, "# octctl calibrate dispersion --live\n");
    }
    fprintf(file, "[calibration]\n");
    if (d->in || d->whole.is_table)
        put_map(file, &d->config);
    if (d->ini)
        oct_dispersion_print_ini(d->ini, file);
    else if (d->whole.is_table)
        fprintf(file, "dispersion = %s\n", slash ? slash + 1 : d->table);
    else
        for (unsigned i = 0; oct_sharpen_ini(&d->whole, i, line); i++)
            fprintf(file, "%s\n", line);
}

static void put_table(const void *job, FILE *file)
{
    const struct oct_dispersion_job *d = job;
    const double *value = d->whole.table;
    for (uint32_t q = 0; q < d->whole.n; q++, value += 2)
        fprintf(file, "%.9f %.9f\n", value[0], value[1]);
}

static enum oct_err write_ini(void *job, const char *path, bool force, struct oct_error *err)
{
    (void)force;
    return oct_outputs_print(path, put_ini, job, err);
}

static enum oct_err write_table(void *job, const char *path, bool force, struct oct_error *err)
{
    (void)force;
    return oct_outputs_print(path, put_table, job, err);
}

/* ---- pictures ---- */

/* [depth][lines] dB of the picture with this remaining phase. */
static float *make_picture(const struct oct_dispersion_job *d, const double remaining[2])
{
    const uint32_t n = oct_sharpen_picture_lines(d->sharpen), depth = oct_sharpen_depth(d->sharpen);
    float *intensity = oct_alloc((size_t)n * depth, sizeof(*intensity));
    float *db = oct_alloc((size_t)n * depth, sizeof(*db));
    oct_sharpen_picture(d->sharpen, remaining, intensity);
    for (uint32_t j = 0; j < n; j++)
        for (uint32_t i = 0; i < depth; i++)
            db[(size_t)i * n + j] = 10 * log10f(fmaxf(intensity[(size_t)j * depth + i], 1e-12F));
    free(intensity);
    return db;
}

static enum oct_err draw_pictures(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct oct_dispersion_job *d = job;
    const struct oct_sharpen_result *r = &d->result;
    const uint32_t n = oct_sharpen_picture_lines(d->sharpen), depth = oct_sharpen_depth(d->sharpen);
    float *pixels[] = {make_picture(d, (const double[]){0, 0}), make_picture(d, r->remaining)};
    float top = -INFINITY;
    char title[256], titles[2][96];
    struct oct_plot_tile tiles[2];
    for (size_t i = 0; i < (size_t)n * depth; i++)
        top = fmaxf(top, pixels[1][i]);
    snprintf(title, sizeof(title), "%s: remaining a2 %.2f, a3 %.2f rad", d->in, r->remaining[0],
             r->remaining[1]);
    for (unsigned i = 0; i < 2; i++) {
        snprintf(titles[i], sizeof(titles[i]), "%s: sharpness %.1f, width %.2f px",
                 i ? "after" : "before", i ? r->after : r->before,
                 i ? r->width_after_px : r->width_before_px);
        tiles[i] = (struct oct_plot_tile){.title = titles[i],
                                          .pixels = pixels[i],
                                          .height = depth,
                                          .width = n,
                                          .lo = top - RANGE_DB,
                                          .hi = top};
    }
    const struct oct_plot_sheet plot = {
        .title = title, .tiles = tiles, .n_tiles = 2, .n_columns = 2, .fitted = true};
    const enum oct_err e = oct_plot_write_sheet(path, force, &plot, err);
    free(pixels[0]);
    free(pixels[1]);
    return e;
}

static enum oct_err draw_curve(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct oct_dispersion_job *d = job;
    const struct oct_sharpen_result *r = &d->result;
    const struct oct_plot_series series[] = {
        {.x = r->curve[0].at, .y = r->curve[0].s, .n = OCT_SHARPEN_CURVE, .label = "a2"},
        {.x = r->curve[1].at,
         .y = r->curve[1].s,
         .n = OCT_SHARPEN_CURVE,
         .label = "a3",
         .style = OCT_PLOT_DASHES},
    };
    char text[96];
    snprintf(text, sizeof(text), "a2 = %.2f, a3 = %.2f", r->remaining[0], r->remaining[1]);
    const struct oct_plot_mark marks[] = {{r->remaining[0], r->after, text},
                                          {r->remaining[1], r->after, ""}};
    const struct oct_plot_lines plot = {
        .title = "sharpness along one coefficient, the other at its best",
        .x_label = "remaining phase at the ends of the spectrum, rad",
        .y_label = "sharpness (noise: 2)",
        .series = series,
        .n_series = 2,
        .marks = marks,
        .n_marks = 2,
    };
    return oct_plot_write_lines(path, force, &plot, err);
}

/* ---- what is said ---- */

static void fill_json(const void *job, cJSON *tree)
{
    const struct oct_dispersion_job *d = job;
    cJSON_AddStringToObject(tree, "sample", d->in);
    oct_sharpen_describe(&d->result, &d->whole, tree);
    if (!d->job.leaves_files && d->job.out)
        cJSON_AddStringToObject(tree, "out", d->job.out);
    for (int m = 0; m < 2; m++) {
        const struct oct_sharpen_curve *c = &d->result.curve[m];
        cJSON *curve = cJSON_AddObjectToObject(tree, m ? "curve_a3" : "curve_a2");
        cJSON_AddItemToObject(curve, "rad", cJSON_CreateDoubleArray(c->at, OCT_SHARPEN_CURVE));
        cJSON_AddItemToObject(curve, "sharpness", cJSON_CreateDoubleArray(c->s, OCT_SHARPEN_CURVE));
    }
}

static void print_whole(const struct oct_dispersion_job *d)
{
    const double *s = d->whole.over_spectrum, *g = d->whole.over_grid;
    if (d->whole.is_table)
        printf("whole       a file of %u values%s\n", d->whole.n,
               d->job.out ? "" : ": name one, OUT.ini");
    else
        printf("whole       a2 %.4f, a3 %.4f, a4 %.4f, a5 %.4f rad over the spectrum\n"
               "            a2 %.4f, a3 %.4f, a4 %.4f, a5 %.4f rad over the grid\n",
               s[2], s[3], s[4], s[5], g[2], g[3], g[4], g[5]);
}

void oct_dispersion_print(const struct oct_dispersion_job *job, const cJSON *result)
{
    const double widths = oct_json_number(result, "widths");
    printf("remaining   a2 %.3f +- %.3f rad, a3 %.3f +- %.3f rad over the spectrum\n",
           oct_json_number(result, "a2"), oct_json_number(result, "a2_error"),
           oct_json_number(result, "a3"), oct_json_number(result, "a3_error"));
    if (job->in)
        print_whole(job);
    printf("sharpness   %.2f -> %.2f (noise: 2), agreement %.2f\n",
           oct_json_number(result, "sharpness_before"), oct_json_number(result, "sharpness_after"),
           oct_json_number(result, "agreement"));
    if (widths > 0)
        printf("width       %.2f -> %.2f px, median of the brightest layer of %.0f A-lines\n",
               oct_json_number(result, "width_before_px"),
               oct_json_number(result, "width_after_px"), widths);
    if (job->in || !job->ini)
        return;
    printf("for the configuration, or octctl stop, octctl set calibration.KEY VALUE, octctl "
           "start:\n\n[calibration]\n");
    oct_dispersion_print_ini(job->ini, stdout);
}

static void print_all(const void *job)
{
    const struct oct_dispersion_job *d = job;
    const struct oct_sharpen_result *r = &d->result;
    cJSON *result = cJSON_CreateObject();
    oct_sharpen_describe(r, &d->whole, result);
    oct_dispersion_print(d, result);
    cJSON_Delete(result);
    printf("A-lines     %u", r->n_lines);
    if (r->n_saturated)
        printf(", and %u left out because they are saturated", r->n_saturated);
    printf("\n");
    for (unsigned i = 0; i < d->job.n_files; i++)
        if (d->job.files[i].path)
            printf("%s\n", d->job.files[i].path);
}

/* ---- the command ---- */

/* [SAMPLE] [OUT.ini] */
static int read_given(void *job)
{
    struct oct_dispersion_job *d = job;
    const struct oct_dispersion_given *g = &d->given;
    const char *name = d->job.name;
    const unsigned n_in = g->live ? 0 : 1;
    d->job.out = g->old_out;
    if (d->job.n_inputs == n_in + 1 && !d->job.out) {
        const char *last = d->job.inputs[--d->job.n_inputs];
        const size_t n = strlen(last);
        if (n < 5 || strcmp(last + n - 4, ".ini") != 0)
            return g->live ? oct_command_misuse(name,
                                                "--live takes the camera's B-scans: name no SAMPLE")
                           : oct_command_misuse(name, "%s: the output's name ends with .ini", last);
        d->job.out = last;
    }
    if (d->job.n_inputs != n_in)
        return oct_command_misuse(name, "%s",
                                  g->live ? "--live takes the camera's B-scans: name no SAMPLE"
                                          : "which recording? (or --live)");
    d->in = g->live ? NULL : d->job.inputs[0];
    if (g->live && g->png)
        return oct_command_misuse(name, "--live has no --png: see the topic calibrate");
    for (unsigned i = 0; g->live && i < N_OF_FILES; i++)
        if (g->own.text[i])
            return oct_command_misuse(name, "--live has no --%s: octd searches as it does without",
                                      setting_rows[i].name);
    oct_params_set_defaults(&setting_params, &d->settings);
    oct_param_texts_store(&setting_params, &g->own, &d->settings);
    return 0;
}

static enum oct_err list_files(void *job, struct oct_error *err)
{
    struct oct_dispersion_job *d = job;
    const char *out = d->job.out, *png = d->given.png;
    enum oct_err e = OCT_OK;
    d->config = *d->job.config;
    if (d->in)
        e = oct_recording_open(&d->recording, d->in, &d->config, err);
    if (!e && d->in)
        e = oct_recording_plan(&d->plan, &d->config, d->recording, err);
    else if (!e && d->config.calibration.dispersion[0])
        e = oct_config_plan(&d->config, &d->plan, err);
    if (out && d->plan && d->plan->calibration.n_dispersion) {
        const char *dot = strrchr(out, '.');
        const size_t n = dot && strcmp(dot, ".ini") == 0 ? (size_t)(dot - out) : strlen(out);
        d->table = oct_alloc_text("%.*s-dispersion.txt", (int)n, out);
    }
    if (png)
        d->curve = oct_job_beside(png, ".png", "curve");
    oct_job_add(&d->job, out, write_ini, d);
    oct_job_add(&d->job, d->table, write_table, d);
    oct_job_add(&d->job, png, draw_pictures, d);
    oct_job_add(&d->job, d->curve, draw_curve, d);
    return e;
}

static void finish_dispersion(void *job)
{
    struct oct_dispersion_job *d = job;
    oct_recording_close(d->recording);
    oct_sharpen_destroy(d->sharpen);
    oct_plan_destroy(d->plan);
    cJSON_Delete(d->status);
}

#define AT(member) .at = offsetof(struct oct_dispersion_given, member)
static const struct oct_option options[] = {
    {.was = "--out",
     .meaning = "the last argument is the output, OUT.ini",
     .kind = OCT_OPTION_TEXT,
     AT(old_out)},
    {.kind = OCT_OPTION_PARAMS, .params = &setting_params, AT(own)},
    {"--png", "FILE",
     "the first B-scan before and after, and FILE-curve.png: the sharpness over\n"
     "a2 and a3",
     OCT_OPTION_TEXT, AT(png)},
    {"--live", NULL, "asks a running octd to do it on its next B-scans", OCT_OPTION_FLAG, AT(live)},
    {"--endpoint", "E", "of --live: the daemon's control.endpoint", OCT_OPTION_TEXT, AT(endpoint)},
    OCT_JOB_JSON(struct oct_dispersion_given, job),
    OCT_JOB_FORCE(struct oct_dispersion_given, job),
    {NULL},
};

static const struct oct_job_ops dispersion_job = {
    .command = &oct_command_calibrate_dispersion,
    .bytes = sizeof(struct oct_dispersion_job),
    .values = offsetof(struct oct_dispersion_job, given),
    .options = offsetof(struct oct_dispersion_job, given.job),
    .has_no_out = true,
    .takes_names = true,
    .may_be_killed = true,
    .read = read_given,
    .list = list_files,
    .work = find_dispersion,
    .print = print_all,
    .json = fill_json,
    .finish = finish_dispersion,
};

static int run_dispersion(struct oct_config *config, int argc, char **argv)
{
    return oct_job_run(&dispersion_job, config, argc, argv);
}

const struct oct_command oct_command_calibrate_dispersion = {
    .name = "calibrate dispersion",
    .usage = "SAMPLE|--live [OUT.ini]",
    .help = "finds the dispersion that makes any sample sharpest",
    .options = options,
    .n_most = 2,
    .run = run_dispersion,
};
