/* octctl scan: what the two mirrors are driven by, for the pattern of the configuration. */
#include "config/apply.h"
#include "formats/csv.h"
#include "formats/input/npy_header.h"
#include "formats/result_files.h"
#include "formats/whole_file.h"
#include "pipeline/plan/waveform.h"
#include "plot/plot.h"
#include "tools/alloc.h"
#include "tools/analyse/job.h"
#include "tools/commands.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define N_COLUMNS 3u        /* V of x and y, whether it is an A-line */
#define WAV_HEADER_BYTES 44 /* RIFF, of floats */
#define MOST_PLOTTED 4096u  /* lines of the picture */

struct way_options {
    const char *csv, *npy, *wav, *png;
    bool fit;
    struct oct_job_options job;
};

struct way_facts {
    const char *pattern;
    uint64_t lines; /* of a volume, with those of the flyback */
    uint32_t flyback_lines, least_flyback_lines;
    double useful_percent, speed_percent, acceleration_percent, volume_s;
};

struct way_job {
    struct oct_job job;
    struct way_options given;
    struct oct_scan scan;
    struct oct_mirrors mirrors;
    struct oct_calibration positions; /* of the pattern `file` */
    struct oct_waveform wave;
    struct way_facts facts;
};

#define F struct way_facts
static const struct oct_result_field fact_fields[] = {
    {OCT_RESULT("pattern", F, pattern)},
    {OCT_RESULT("lines", F, lines)},
    {OCT_RESULT("flyback_lines", F, flyback_lines)},
    {OCT_RESULT("least_flyback_lines", F, least_flyback_lines)},
    {OCT_RESULT("useful_percent", F, useful_percent)},
    {OCT_RESULT("speed_percent", F, speed_percent)},
    {OCT_RESULT("acceleration_percent", F, acceleration_percent)},
    {OCT_RESULT("volume_s", F, volume_s)},
};
#undef F
static const struct oct_result_fields all_fact_fields = OCT_RESULT_FIELDS(fact_fields);

/* ---- the waveforms ---- */

static enum oct_err read_positions(struct way_job *w, struct oct_error *err)
{
    const struct oct_config *c = w->job.config;
    if (w->scan.pattern != OCT_SCAN_FILE || !c->scan.positions[0])
        return OCT_OK;
    const enum oct_err e = oct_calibration_read_table(
        c->scan.positions, 2, &w->positions.positions_um, &w->positions.n_positions, err);
    w->scan.file = (const double(*)[2])w->positions.positions_um;
    if (!e && w->positions.n_positions != (size_t)w->scan.n_bscans * w->scan.n_lines)
        return oct_fail(err, OCT_E_CONFIG,
                        "%s: %zu rows, and a volume has %zu A-lines (scan.bscans times "
                        "scan.lines)",
                        c->scan.positions, w->positions.n_positions,
                        (size_t)w->scan.n_bscans * w->scan.n_lines);
    return e;
}

static enum oct_err make_waveforms(void *job, struct oct_error *err)
{
    struct way_job *w = job;
    struct way_facts *f = &w->facts;
    uint32_t least = 0;
    enum oct_err e = read_positions(w, err);
    e = e ? e : oct_scan_check(&w->scan, err);
    e = e ? e : oct_waveform_flyback(&w->scan, &w->mirrors, &least, err);
    if (!e && w->given.fit)
        w->scan.flyback_lines = least;
    e = e ? e : oct_waveform_init(&w->wave, &w->scan, &w->mirrors, err);
    *f = (struct way_facts){
        .pattern = oct_scan_pattern_names[w->scan.pattern],
        .lines = w->wave.n,
        .flyback_lines = w->scan.flyback_lines,
        .least_flyback_lines = least,
        .useful_percent = 100 * w->wave.useful,
        .speed_percent = 100 * w->wave.speed,
        .acceleration_percent = 100 * w->wave.acceleration,
        .volume_s = (double)w->wave.n / w->mirrors.line_rate_hz,
    };
    return e;
}

static double volts_at(const struct way_job *w, size_t i, int axis)
{
    return oct_mirror_volts(&w->mirrors, w->wave.um[i][axis]);
}

/* ---- files ---- */

static enum oct_err write_csv(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct way_job *w = job;
    struct oct_csv *csv;
    const enum oct_err e = oct_csv_create(&csv, path, force, "time_s,x_v,y_v,aline", err);
    if (e)
        return e;
    for (size_t i = 0; i < w->wave.n; i++) {
        oct_csv_number(csv, (double)i / w->mirrors.line_rate_hz);
        oct_csv_number(csv, volts_at(w, i, 0));
        oct_csv_number(csv, volts_at(w, i, 1));
        oct_csv_count(csv, w->wave.is_line[i]);
        oct_csv_end_row(csv);
    }
    return oct_csv_publish(csv, err);
}

static enum oct_err put_lines(const struct way_job *w, struct oct_whole_file *file, bool has_mask,
                              struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (size_t i = 0; i < w->wave.n && !e; i++) {
        const float row[N_COLUMNS] = {(float)volts_at(w, i, 0), (float)volts_at(w, i, 1),
                                      w->wave.is_line[i]};
        e = oct_whole_file_put(file, row, (has_mask ? 3 : 2) * sizeof(*row), err);
    }
    return e;
}

/* f32 [V][lines sent a B-scan][x, y, A-line]. */
static enum oct_err write_npy(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct way_job *w = job;
    struct oct_whole_file file;
    char header[OCT_NPY_MADE_BYTES];
    enum oct_err e = oct_whole_file_open(&file, path, force, err);
    if (e)
        return e;
    oct_npy_header_make(header, "<f4", w->scan.n_bscans, oct_scan_sent_lines(&w->scan), N_COLUMNS);
    e = oct_whole_file_put(&file, header, sizeof(header), err);
    e = e ? e : put_lines(w, &file, true, err);
    return oct_whole_file_end(&file, e, err);
}

static void put_u32(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

/* RIFF WAVE of two channels of 32-bit floats, V, at the line rate. */
static enum oct_err write_wav(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct way_job *w = job;
    const uint32_t n_bytes = (uint32_t)(w->wave.n * 2 * sizeof(float));
    const uint32_t rate = (uint32_t)lround(w->mirrors.line_rate_hz);
    unsigned char header[WAV_HEADER_BYTES] = "RIFF\0\0\0\0WAVEfmt ";
    struct oct_whole_file file;
    put_u32(header + 4, n_bytes + WAV_HEADER_BYTES - 8);
    put_u32(header + 16, 16);
    put_u32(header + 20, 3 | 2 << 16); /* IEEE floats, two channels */
    put_u32(header + 24, rate);
    put_u32(header + 28, rate * 8);
    put_u32(header + 32, 8 | 32 << 16); /* bytes a frame, bits a sample */
    put_u32(header + 36, 0x61746164);   /* "data" */
    put_u32(header + 40, n_bytes);
    enum oct_err e = oct_whole_file_open(&file, path, force, err);
    if (e)
        return e;
    e = oct_whole_file_put(&file, header, sizeof(header), err);
    e = e ? e : put_lines(w, &file, false, err);
    return oct_whole_file_end(&file, e, err);
}

/* Both mirrors over the time of the first two B-scans. */
static enum oct_err draw_way(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct way_job *w = job;
    const size_t two = 2 * (size_t)oct_scan_sent_lines(&w->scan);
    const size_t shown = two < w->wave.n ? two : w->wave.n;
    const size_t n = shown < MOST_PLOTTED ? shown : MOST_PLOTTED;
    double *ms = oct_alloc(n, sizeof(*ms)), *volts[3];
    char title[160];
    for (int k = 0; k < 3; k++)
        volts[k] = oct_alloc(n, sizeof(**volts));
    for (size_t i = 0; i < n; i++) {
        const bool is_line = w->wave.is_line[i];
        ms[i] = 1e3 * (double)i / w->mirrors.line_rate_hz;
        volts[0][i] = volts_at(w, i, 0);
        volts[1][i] = volts_at(w, i, 1);
        volts[2][i] = is_line ? volts[0][i] : NAN;
    }
    snprintf(title, sizeof(title), "%s: %.1f %% of the lines are A-lines", w->facts.pattern,
             w->facts.useful_percent);
    const struct oct_plot_series series[] = {
        {ms, volts[0], n, "x, flyback too", OCT_PLOT_DASHES},
        {ms, volts[2], n, "x, A-lines", OCT_PLOT_LINE},
        {ms, volts[1], n, "y", OCT_PLOT_LINE},
    };
    const struct oct_plot_lines plot = {
        .title = title, .x_label = "ms", .y_label = "V", .series = series, .n_series = 3};
    const enum oct_err e = oct_plot_write_lines(path, force, &plot, err);
    for (int k = 0; k < 3; k++)
        free(volts[k]);
    free(ms);
    return e;
}

/* ---- the command ---- */

static int read_given(void *job)
{
    struct way_job *w = job;
    const struct oct_config *c = w->job.config;
    w->scan = oct_config_way(c);
    w->mirrors = (struct oct_mirrors){.line_rate_hz = c->scan.line_rate_hz,
                                      .step_us = c->scan.step_us,
                                      .um_per_degree = c->scan.um_per_degree,
                                      .volts_per_degree = c->scan.volts_per_degree};
    return 0;
}

static enum oct_err list_files(void *job, struct oct_error *err)
{
    struct way_job *w = job;
    (void)err;
    oct_job_add(&w->job, w->given.csv, write_csv, w);
    oct_job_add(&w->job, w->given.npy, write_npy, w);
    oct_job_add(&w->job, w->given.wav, write_wav, w);
    oct_job_add(&w->job, w->given.png, draw_way, w);
    return OCT_OK;
}

static void print_facts(const void *job)
{
    const struct way_job *w = job;
    oct_result_print(stdout,
                     "{pattern}: {lines} lines a volume, {volume_s:.3f} s; {useful_percent:.1f} % "
                     "of them are A-lines; {speed_percent:.0f} % of the mirrors' speed and "
                     "{acceleration_percent:.0f} % of their acceleration\n"
                     "scan.flyback_lines = {flyback_lines} ({least_flyback_lines} is the least)\n",
                     &all_fact_fields, &w->facts);
}

static void fill_json(const void *job, cJSON *tree)
{
    oct_result_json(tree, &all_fact_fields, &((const struct way_job *)job)->facts);
}

static void finish_job(void *job)
{
    struct way_job *w = job;
    oct_waveform_finish(&w->wave);
    oct_calibration_finish(&w->positions);
}

#define AT(member) .at = offsetof(struct way_options, member)
static const struct oct_option options[] = {
    {"--csv", "FILE", "time_s, x_v, y_v, aline: a row a line of a volume", OCT_OPTION_TEXT,
     AT(csv)},
    {"--npy", "FILE", "f32 [B-scan][line][x V, y V, A-line]", OCT_OPTION_TEXT, AT(npy)},
    {"--wav", "FILE", "two channels of V as floats, a frame a line", OCT_OPTION_TEXT, AT(wav)},
    {"--png", "FILE", "both mirrors over the first two B-scans", OCT_OPTION_TEXT, AT(png)},
    {"--fit", NULL, "take the least scan.flyback_lines that the mirrors can follow",
     OCT_OPTION_FLAG, AT(fit)},
    OCT_JOB_JSON(struct way_options, job),
    OCT_JOB_FORCE(struct way_options, job),
    {NULL},
};
#undef AT

static const struct oct_job_ops way_job = {
    .command = &oct_command_scan,
    .bytes = sizeof(struct way_job),
    .values = offsetof(struct way_job, given),
    .options = offsetof(struct way_job, given.job),
    .has_no_out = true,
    .takes_names = true,
    .may_be_killed = true,
    .read = read_given,
    .list = list_files,
    .work = make_waveforms,
    .print = print_facts,
    .json = fill_json,
    .finish = finish_job,
};

static int run_scan(struct oct_config *config, int argc, char **argv)
{
    return oct_job_run(&way_job, config, argc, argv);
}

const struct oct_command oct_command_scan = {
    .name = "scan",
    .usage = "",
    .help = "waveforms of two mirrors for the configured pattern",
    .options = options,
    .run = run_scan,
};
