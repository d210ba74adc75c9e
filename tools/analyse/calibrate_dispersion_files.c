/* The files of octctl calibrate dispersion. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "analysis/calibrate/sharpen_text.h"
#include "plot/plot.h"
#include "tools/analyse/calibrate_dispersion.h"
#include "tools/commands.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANGE_DB 45.0

/* "STEM-WHAT" in place of the name's ending. */
static char *beside(const char *path, const char *ending, const char *what)
{
    const size_t n = strlen(path), n_ending = strlen(ending);
    const size_t stem = n > n_ending && strcmp(path + n - n_ending, ending) == 0 ? n - n_ending : n;
    const size_t room = stem + strlen(what) + 2;
    char *name = malloc(room);
    if (name)
        snprintf(name, room, "%.*s-%s", (int)stem, path, what);
    return name;
}

/* ---- a configuration ---- */

/* The file that says where camera samples lie in k, as the configuration names it. */
static void write_map(FILE *file, const struct oct_config *config)
{
    const char *kmap = config->calibration.kmap, *wavelengths = config->calibration.wavelengths;
    const char *path = kmap[0] ? kmap : wavelengths;
    char *whole = path[0] ? realpath(path, NULL) : NULL;
    if (whole)
        fprintf(file, "%s = %s\n", kmap[0] ? "kmap" : "wavelengths", whole);
    free(whole);
}

static void write_ini(const struct oct_dispersion_job *job, FILE *file)
{
    const struct oct_sharpen_result *r = &job->result;
    const char *slash = job->table ? strrchr(job->table, '/') : NULL;
    char line[OCT_SHARPEN_INI_BYTES];
    if (job->in) {
        fprintf(file, "# octctl calibrate dispersion ");
        oct_command_put_name(file, job->in);
        fprintf(file,
                ": sharpness %.2f -> %.2f, a2 +- %.3f,\n"
                "# a3 +- %.3f rad over the spectrum, from %u A-lines\n",
                r->before, r->after, r->error[0], r->error[1], r->n_lines);
    } else {
        fprintf(file, "# octctl calibrate dispersion --live\n");
    }
    fprintf(file, "[calibration]\n");
    if (job->in || job->whole.is_table)
        write_map(file, job->config);
    if (job->ini)
        oct_dispersion_print_ini(job->ini, file);
    else if (job->whole.is_table)
        fprintf(file, "dispersion = %s\n", slash ? slash + 1 : job->table);
    else
        for (unsigned i = 0; oct_sharpen_ini(&job->whole, i, line); i++)
            fprintf(file, "%s\n", line);
}

static void write_table(const struct oct_dispersion_job *job, FILE *file)
{
    const double *value = job->whole.table;
    for (uint32_t q = 0; q < job->whole.n; q++, value += 2)
        fprintf(file, "%.9f %.9f\n", value[0], value[1]);
}

static enum oct_err write_text(void *context, const char *path,
                               void (*write)(const struct oct_dispersion_job *, FILE *),
                               struct oct_error *err)
{
    FILE *file = fopen(path, "wxe");
    if (!file)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be made", path);
    write(context, file);
    const bool failed = ferror(file);
    if (fclose(file) != 0 || failed)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", path);
    return OCT_OK;
}

static enum oct_err make_ini(void *context, const char *path, bool force, struct oct_error *err)
{
    (void)force;
    return write_text(context, path, write_ini, err);
}

static enum oct_err make_table(void *context, const char *path, bool force, struct oct_error *err)
{
    (void)force;
    return write_text(context, path, write_table, err);
}

/* ---- pictures ---- */

static enum oct_err make_picture(void *context, const char *path, bool force, struct oct_error *err)
{
    const struct oct_dispersion_job *job = context;
    const struct oct_sharpen_result *r = &job->result;
    const uint32_t depth = oct_sharpen_depth(job->sharpen);
    float top = -INFINITY;
    char title[256], before[96], after[96];
    const uint32_t width = oct_sharpen_picture_lines(job->sharpen);
    for (size_t i = 0; i < (size_t)width * depth; i++)
        top = fmaxf(top, job->after[i]);
    snprintf(title, sizeof(title), "%s: remaining a2 %.2f, a3 %.2f rad", job->in, r->remaining[0],
             r->remaining[1]);
    snprintf(before, sizeof(before), "before: sharpness %.1f, width %.2f px", r->before,
             r->width_before_px);
    snprintf(after, sizeof(after), "after: sharpness %.1f, width %.2f px", r->after,
             r->width_after_px);
    struct oct_plot_tile tiles[2];
    for (unsigned i = 0; i < 2; i++)
        tiles[i] = (struct oct_plot_tile){.title = i ? after : before,
                                          .pixels = i ? job->after : job->before,
                                          .height = depth,
                                          .width = width,
                                          .lo = top - RANGE_DB,
                                          .hi = top};
    const struct oct_plot_sheet plot = {
        .title = title, .tiles = tiles, .n_tiles = 2, .n_columns = 2, .fitted = true};
    return oct_plot_write_sheet(path, force, &plot, err);
}

static enum oct_err make_curve(void *context, const char *path, bool force, struct oct_error *err)
{
    const struct oct_dispersion_job *job = context;
    const struct oct_sharpen_result *r = &job->result;
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

/* [depth][lines] dB from [lines][depth] counts^2. */
static float *upright(const float *intensity, uint32_t n_lines, uint32_t depth)
{
    float *db = malloc((size_t)n_lines * depth * sizeof(*db));
    for (uint32_t j = 0; db && j < n_lines; j++)
        for (uint32_t d = 0; d < depth; d++)
            db[(size_t)d * n_lines + j] =
                10 * log10f(fmaxf(intensity[(size_t)j * depth + d], 1e-12F));
    return db;
}

enum oct_err oct_dispersion_draw(struct oct_dispersion_job *job, struct oct_error *err)
{
    const double none[2] = {0, 0};
    const uint32_t n = oct_sharpen_picture_lines(job->sharpen);
    const uint32_t depth = oct_sharpen_depth(job->sharpen);
    float *intensity = malloc((size_t)n * depth * sizeof(*intensity));
    if (intensity) {
        oct_sharpen_picture(job->sharpen, none, intensity);
        job->before = upright(intensity, n, depth);
        oct_sharpen_picture(job->sharpen, job->result.remaining, intensity);
        job->after = upright(intensity, n, depth);
    }
    free(intensity);
    return job->before && job->after ? OCT_OK
                                     : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for pictures");
}

/* ---- which ---- */

static void add(struct oct_dispersion_job *job, const char *path,
                enum oct_err (*write)(void *, const char *, bool, struct oct_error *))
{
    job->files[job->n_files++] = (struct oct_output_file){path, write, job};
}

enum oct_err oct_dispersion_list_files(struct oct_dispersion_job *job, struct oct_error *err)
{
    const struct oct_dispersion_options *o = &job->options;
    const bool has_table = o->out && job->plan && job->plan->calibration.n_dispersion;
    const struct oct_input_files read = {&job->in, job->in ? 1 : 0, {0}};
    if (has_table)
        job->table = beside(o->out, ".ini", "dispersion.txt");
    if (o->png)
        job->curve = beside(o->png, ".png", "curve.png");
    if ((has_table && !job->table) || (o->png && !job->curve))
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    add(job, o->out, make_ini);
    add(job, job->table, make_table);
    add(job, job->in ? o->png : NULL, make_picture);
    add(job, job->in ? job->curve : NULL, make_curve);
    return oct_outputs_check(job->files, job->n_files, o->force, &read, err);
}
