/* register --as mosaic: pictures that overlap, into one. */
#include "analysis/align/matcher.h"
#include "analysis/align/mosaic.h"
#include "formats/csv.h"
#include "formats/results.h"
#include "plot/plot.h"
#include "tools/analyse/register.h"
#include "tools/analyse/register_files.h"
#include "tools/commands.h"
#include "tools/outputs.h"
#include "tools/progress.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_PICTURES 1000u

struct job {
    const struct oct_register *r;
    unsigned n;
    struct oct_picture *pictures; /* [n] */
    const char **paths;           /* [n], of the files; valid while `source` is open */
    struct oct_pictures *source;
    double um[2];
    struct oct_mosaic mosaic;
    struct oct_picture canvas;
    float *weight;
    double origin[2];
    struct oct_results *results;
    struct oct_progress progress;
};

/* All pictures are kept: each is needed for every pair. */
static enum oct_err read_pictures(struct job *job, struct oct_error *err)
{
    const struct oct_register *r = job->r;
    struct oct_pictures_options options = r->pictures;
    enum oct_err e;

    options.allow_sizes = true;
    e = oct_pictures_open(&job->source, r->inputs, r->n_inputs, &options, err);
    uint64_t n = e ? 0 : oct_pictures_count(job->source);
    if (!e && (n < 2 || n > MOST_PICTURES))
        e = oct_fail(err, OCT_E_ARG, "%llu pictures: a mosaic is of 2 to %u", (unsigned long long)n,
                     MOST_PICTURES);
    if (e)
        return e;
    job->n = (unsigned)n;
    job->pictures = calloc(n, sizeof(*job->pictures));
    job->paths = calloc(n, sizeof(*job->paths));
    if (!job->pictures || !job->paths)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %u pictures", job->n);
    for (unsigned i = 0; !e && i < job->n; i++) {
        struct oct_pictures_info info;
        e = oct_register_read(r, job->source, i, &job->pictures[i], &info, err);
        job->paths[i] = e ? NULL : info.path;
        if (!e && i == 0) {
            job->um[0] = info.um[0];
            job->um[1] = info.um[1];
        }
    }
    return e;
}

static bool show(void *arg, unsigned done, unsigned of)
{
    struct job *job = arg;

    oct_progress_show(&job->progress, done, of);
    return !*job->r->cancel;
}

/* ---- files ---- */

static void write_average(struct job *job)
{
    static const char *const axes[2] = {"row", "column"};
    struct oct_results *f = job->results;
    const uint64_t dims[2] = {job->canvas.height, job->canvas.width};
    unsigned average = oct_results_dataset(f, "/average", OCT_RESULTS_F32, 2, dims, NULL);
    unsigned weight = oct_results_dataset(f, "/weight", OCT_RESULTS_F32, 2, dims, NULL);

    oct_results_write(f, average, job->canvas.pixels);
    oct_results_write(f, weight, job->weight);
    oct_results_numbers(f, "/average", "origin_px", job->origin, 2);
    oct_results_axes(f, average, axes, job->um);
    oct_results_axes(f, weight, axes, job->um);
    oct_results_count(f, NULL, "n_averaged", job->mosaic.n_placed);
}

static void write_results(struct job *job)
{
    struct oct_results *f = job->results;
    const uint64_t n = job->n, pairs[2] = {n, 2};
    unsigned place =
        oct_results_dataset(f, "/pictures/position_px", OCT_RESULTS_F64, 2, pairs, "px");
    unsigned part = oct_results_dataset(f, "/pictures/component", OCT_RESULTS_U32, 1, &n, NULL);
    unsigned score = oct_results_dataset(f, "/pictures/score", OCT_RESULTS_F64, 1, &n, NULL);
    unsigned with = oct_results_dataset(f, "/pictures/with", OCT_RESULTS_U32, 1, &n, NULL);

    if (!job->r->options.shifts_only)
        write_average(job);
    oct_results_text(
        f, "/pictures/position_px", "meaning",
        "row and column of pixel (0, 0), from that of the first picture of the component");
    for (unsigned i = 0; i < job->n; i++) {
        const struct oct_mosaic_place *p = &job->mosaic.places[i];
        const double pair[2] = {p->y, p->x};
        const uint32_t component = p->component, neighbour = p->with;
        oct_results_write_rows(f, place, i, 1, pair);
        oct_results_write_rows(f, part, i, 1, &component);
        oct_results_write_rows(f, score, i, 1, &p->score);
        oct_results_write_rows(f, with, i, 1, &neighbour);
    }
    oct_register_write_settings(f, job->r);
    oct_register_write_paths(f, "/pictures/files", n, job->source);
    oct_results_text(f, NULL, "model", "mosaic");
    oct_results_numbers(f, NULL, "um_px", job->um, 2);
}

static enum oct_err write_csv(void *context, const char *path, bool force, struct oct_error *err)
{
    const struct job *job = context;
    struct oct_csv *csv;
    enum oct_err e = oct_csv_create(&csv, path, force,
                                    "picture,file,component,y_px,x_px,y_um,x_um,with,score", err);

    if (e)
        return e;
    for (unsigned i = 0; i < job->n; i++) {
        const struct oct_mosaic_place *p = &job->mosaic.places[i];
        oct_csv_count(csv, i);
        oct_csv_text(csv, job->paths[i]);
        oct_csv_count(csv, p->component);
        oct_csv_number(csv, p->y);
        oct_csv_number(csv, p->x);
        oct_csv_number(csv, p->y * job->um[0]);
        oct_csv_number(csv, p->x * job->um[1]);
        oct_csv_number(csv, p->is_first ? (double)NAN : (double)p->with);
        oct_csv_number(csv, p->score);
        oct_csv_end_row(csv);
    }
    return oct_csv_publish(csv, err);
}

static enum oct_err write_png(void *context, const char *path, bool force, struct oct_error *err)
{
    const struct job *job = context;
    char footer[80];
    const struct oct_plot_picture plot = {.footer = footer,
                                          .pixels = job->canvas.pixels,
                                          .height = job->canvas.height,
                                          .width = job->canvas.width,
                                          .um_dx = job->um[1]};

    snprintf(footer, sizeof(footer), "mosaic of %u pictures", job->mosaic.n_placed);
    return oct_plot_write_picture(path, force, &plot, err);
}

/* ---- the summary ---- */

/* The weakest edge that the mosaic hangs on. */
static double weakest(const struct job *job)
{
    double least = NAN;

    for (unsigned i = 0; i < job->n; i++)
        if (job->mosaic.places[i].component == 0)
            least = fmin(least, job->mosaic.places[i].score); /* fmin leaves NaN out */
    return least;
}

static enum oct_err print_json(void *context, struct oct_error *err)
{
    const struct job *job = context;
    cJSON *o = cJSON_CreateObject();
    cJSON *list = cJSON_AddArrayToObject(o, "pictures");

    cJSON_AddNumberToObject(o, "placed", job->mosaic.n_placed);
    cJSON_AddNumberToObject(o, "components", job->mosaic.n_components);
    cJSON_AddNumberToObject(o, "weakest_score", weakest(job));
    if (!job->r->options.shifts_only) {
        cJSON_AddNumberToObject(o, "height", job->canvas.height);
        cJSON_AddNumberToObject(o, "width", job->canvas.width);
    }
    for (unsigned i = 0; i < job->n; i++) {
        const struct oct_mosaic_place *p = &job->mosaic.places[i];
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "file", job->paths[i]);
        cJSON_AddNumberToObject(one, "component", p->component);
        cJSON_AddNumberToObject(one, "y_px", p->y);
        cJSON_AddNumberToObject(one, "x_px", p->x);
        if (!oct_picture_has_contrast(&job->pictures[i]))
            cJSON_AddStringToObject(one, "reason", "no contrast");
        if (!p->is_first) {
            cJSON_AddNumberToObject(one, "with", p->with);
            cJSON_AddNumberToObject(one, "score", p->score);
        }
        cJSON_AddItemToArray(list, one);
    }
    if (job->r->out)
        cJSON_AddStringToObject(o, "out", job->r->out);
    bool printed = oct_command_print_json(o);
    cJSON_Delete(o);
    return printed ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
}

static void print_summary(void *context)
{
    const struct job *job = context;
    const char *before = "; left out, no overlap: ";

    printf("%s%s%u of %u pictures", job->r->out ? job->r->out : "", job->r->out ? ": " : "",
           job->mosaic.n_placed, job->n);
    if (!job->r->options.shifts_only)
        printf(" in %u x %u px", job->canvas.width, job->canvas.height);
    printf(", weakest overlap %.3f", oct_command_shown(weakest(job), 3));
    for (unsigned i = 0; i < job->n; i++) {
        const struct oct_mosaic_place *p = &job->mosaic.places[i];
        if (p->component == 0)
            continue;
        printf("%s%s", before, job->paths[i]);
        if (!oct_picture_has_contrast(&job->pictures[i]))
            printf(" (no contrast)");
        else if (!p->is_first)
            printf(" (with %s)", job->paths[p->with]);
        before = ", ";
    }
    printf("\n");
}

/* ---- all of it ---- */

static enum oct_err find(struct job *job, struct oct_error *err)
{
    const struct oct_mosaic_setup setup = {
        .min_score = isnan(job->r->options.min_score) ? 0 : job->r->options.min_score};
    enum oct_err e = oct_mosaic_find(&job->mosaic, job->pictures, job->n, &setup, show, job, err);

    if (e && *job->r->cancel)
        return oct_fail(err, OCT_E_STATE, "interrupted; nothing was written");

    if (!e && job->mosaic.n_placed < 2)
        e = oct_fail(err, OCT_E_ARG, "no two of the %u pictures overlap", job->n);
    return e || job->r->options.shifts_only
               ? e
               : oct_mosaic_blend(&job->mosaic, job->pictures, &job->canvas, &job->weight,
                                  &job->origin[0], &job->origin[1], err);
}

static enum oct_err write_all(struct job *job, struct oct_error *err)
{
    enum oct_err e = OCT_OK;

    if (job->r->out)
        e = oct_results_create(&job->results, job->r->out, "mosaic", job->r->options.force, err);
    if (!e && job->results)
        write_results(job);
    const struct oct_register_writers writers = {write_csv,  write_png,     NULL,
                                                 print_json, print_summary, job};
    return e ? e : oct_register_publish(job->r, &job->results, &writers, err);
}

static enum oct_err run(const struct oct_register *r, struct oct_error *err)
{
    struct job job = {.r = r, .progress = {.what = "pairs", .quiet = r->config->quiet}};
    enum oct_err e = oct_register_check_files(r, false, err);

    e = e ? e : read_pictures(&job, err);
    e = e ? e : find(&job, err);
    e = e ? e : write_all(&job, err);
    oct_results_discard(job.results);
    oct_mosaic_finish(&job.mosaic);
    oct_picture_finish(&job.canvas);
    for (unsigned i = 0; job.pictures && i < job.n; i++)
        oct_picture_finish(&job.pictures[i]);
    oct_pictures_close(job.source);
    free(job.pictures);
    free(job.paths);
    free(job.weight);
    return e;
}

const struct oct_register_mode oct_register_mosaic = {
    .name = "mosaic", .use = OCT_REGISTER_MOSAIC, .run = run};
