/* octctl cells: cells found and followed in films, recordings and pictures. */
#include "config/config.h"
#include "formats/paths.h"
#include "formats/recording.h"
#include "formats/results.h"
#include "formats/whole_file.h"
#include "kernels/device/workers.h"
#include "pipeline/base/clock.h"
#include "tools/analyse/cells_options.h"
#include "tools/analyse/cells_report.h"
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/outputs.h"
#include "tools/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ARGUMENTS 1000000
#define MOST_CONFIG_BYTES 2048u
#define N_FILES 6u

struct job {
    const char *name;
    struct oct_cells_given given;
    struct oct_paths inputs;
    const char *out;
    struct oct_pictures_options options;
    struct oct_cells_run run;
    struct oct_cells_summary summary;
    struct oct_cells_report report;
    char config[MOST_CONFIG_BYTES];
    struct oct_workers *workers;
    struct oct_progress progress;
};

/* Says what is wrong in one line. Returns `status`, but 1 for what the machine lacks. */
static int fail(const struct job *job, const struct oct_error *err, int status)
{
    struct oct_error said = *err;
    if (strncmp(err->text, "cells: ", 7) == 0) /* the command's own name follows octctl */
        snprintf(said.text, sizeof(said.text), "%s", err->text + 7);
    const int by_code = oct_command_fail(job->name, &said);
    const bool is_machine =
        err->code == OCT_E_NO_MEMORY || err->code == OCT_E_NO_SPACE || err->code == OCT_E_BACKEND;
    return is_machine ? by_code : status;
}

/* ---- files ---- */

static unsigned list_outputs(struct job *job, struct oct_output_file files[N_FILES])
{
    static enum oct_err (*const tables[])(void *, const char *, bool, struct oct_error *) = {
        [OCT_CELLS_FORMAT_OCTD] = oct_cells_report_csv,
        [OCT_CELLS_FORMAT_TRACKMATE] = oct_cells_report_trackmate,
        [OCT_CELLS_FORMAT_NAPARI] = oct_cells_report_napari};
    const struct oct_cells_given *g = &job->given;
    struct oct_cells_report *report = &job->report;
    const struct oct_output_file all[N_FILES] = {
        {job->out, tables[g->which_format], report},
        {g->tracks, oct_cells_report_h5, report},
        {g->kymograph, oct_cells_report_kymograph, report},
        {g->histogram, oct_cells_report_histogram, report},
        {g->summary, oct_cells_summary_json, &job->summary},
        {g->overlay_film, oct_cells_report_film, report}};
    memcpy(files, all, sizeof(all));
    return N_FILES;
}

/* Fails unless the results at --into may be added to. */
static enum oct_err check_into(const struct job *job, const struct oct_input_files *read,
                               struct oct_error *err)
{
    const char *into = job->given.into;
    if (!into)
        return OCT_OK;
    const enum oct_err e = oct_whole_file_may(into, true, read->inputs, read->n_inputs, err);
    if (e)
        return e;
    if (oct_outputs_is_recording(into))
        return oct_fail(err, OCT_E_ARG,
                        "%s: is a recording, which stays as it is; --into needs a "
                        "file of results",
                        into);
    struct oct_results *results;
    const enum oct_err amends = oct_results_amend(&results, into, "/tracks", job->given.force, err);
    oct_results_discard(results);
    return amends;
}

static enum oct_err check_outputs(struct job *job, struct oct_error *err)
{
    const struct oct_cells_given *g = &job->given;
    struct oct_output_file files[N_FILES + 1];
    const unsigned n = list_outputs(job, files);
    files[n] = (struct oct_output_file){.path = g->maps}; /* is written as the film goes */
    const struct oct_input_files read = {
        (const char *const *)job->inputs.path, job->inputs.n, {g->mask}};
    enum oct_err e = oct_outputs_check(files, n + 1, g->force, &read, err);
    if (!e && g->overlay_folder)
        e = oct_cells_overlay_check(g->overlay_folder, g->force, err);
    return e ? e : check_into(job, &read, err);
}

/* ---- pictures ---- */

static bool is_recording(const char *path)
{
    return !strstr(path, ":/") && oct_recording_is_volume(path);
}

/* What recordings show; other files are films. */
static int choose_pictures(struct job *job)
{
    const struct oct_cells_given *g = &job->given;
    unsigned n = 0;
    for (unsigned i = 0; i < job->inputs.n; i++)
        n += is_recording(job->inputs.path[i]);
    if (n > 0 && n < job->inputs.n)
        return oct_command_misuse(job->name, "recordings and films together: name one kind");
    if (n == 0 && (g->source_is_given || g->projection || g->slab))
        return oct_command_misuse(job->name, "--source, --projection and --slab are of recordings");
    oct_cells_given_pictures(g, n > 0, &job->options);
    job->run.is_turned = n > 0 && g->is_bscan;
    return 0;
}

/* Pictures of different sizes are a mistake of the command line; damaged ones are not: without the
 * demand of one size they would open. */
static bool differ_in_size(struct job *job)
{
    struct oct_pictures *pictures;
    struct oct_pictures_options options = job->options;
    options.allow_sizes = true;
    const enum oct_err e = oct_pictures_open(&pictures, (const char *const *)job->inputs.path,
                                             job->inputs.n, &options, NULL);
    oct_pictures_close(pictures);
    return e == OCT_OK;
}

static int open_pictures(struct job *job)
{
    struct oct_error err;
    const int status = choose_pictures(job);
    if (status)
        return status;
    const enum oct_err e =
        oct_pictures_open(&job->run.pictures, (const char *const *)job->inputs.path, job->inputs.n,
                          &job->options, &err);
    if (e == OCT_OK)
        return 0;
    const bool is_misuse = e == OCT_E_ARG || (e == OCT_E_FORMAT && differ_in_size(job));
    return fail(job, &err, is_misuse ? 2 : 1);
}

/* ---- the work ---- */

static int begin(struct job *job, const struct oct_config *config)
{
    const struct oct_cells_given *g = &job->given;
    struct oct_error err;
    enum oct_err e = oct_workers_create(&job->workers, 0, &err);
    job->run.film_setup.workers = job->workers;
    job->progress.quiet = config->quiet;
    job->run.film_setup.backend = oct_config_backend_names[config->pipeline.backend];
    job->run.film_setup.gpus = config->pipeline.gpus;
    job->run.mask_path = g->mask;
    job->run.maps_path = g->maps;
    job->run.force = g->force;
    if (!e)
        e = oct_cells_run_begin(&job->run, &err);
    return e ? fail(job, &err, e == OCT_E_ARG ? 2 : 1) : 0;
}

/* What is not known, in one line. */
static void warn_of_units(const struct job *job)
{
    const struct oct_cells_run *run = &job->run;
    if (!oct_cells_run_has_um(run))
        fprintf(stderr,
                "octctl %s: the size of a pixel is unknown: no columns in um; --pixel-um "
                "gives it\n",
                job->name);
    else if (isnan(run->first_s) && run->n_all > 1)
        fprintf(stderr, "octctl %s: times are unknown: no speeds in um/s; --fps gives them\n",
                job->name);
}

/* What was not found, a line each. */
static void warn_of_frames(const struct job *job)
{
    const struct oct_cells_run *run = &job->run;
    if (run->n_blank > 0)
        fprintf(stderr,
                "octctl %s: %" PRIu64 " of %" PRIu64 " frames are flat, saturated or without any "
                "valid pixel: no cells in them\n",
                job->name, run->n_blank, run->n);
    if (run->rows.n == 0)
        fprintf(stderr,
                "octctl %s: no cells: the highest score seen is %.3g, the threshold %.3g%s\n",
                job->name, run->highest, run->params.threshold,
                run->highest > run->params.threshold ? "; no track was long enough (--min-frames)"
                                                     : "");
}

static enum oct_err write_all(struct job *job, struct oct_error *err)
{
    const struct oct_cells_given *g = &job->given;
    struct oct_output_file files[N_FILES];
    const unsigned n = list_outputs(job, files);
    enum oct_err e = oct_cells_summarise(&job->summary, &job->run, err);
    if (e)
        return e;
    job->summary.seconds = oct_progress_seconds(&job->progress);
    job->report = (struct oct_cells_report){.run = &job->run,
                                            .summary = &job->summary,
                                            .inputs = (const char *const *)job->inputs.path,
                                            .n_inputs = job->inputs.n,
                                            .config = job->config};
    oct_cells_given_text(g, &job->run, job->config, sizeof(job->config));
    e = oct_outputs_write(files, n, g->force, err);
    if (!e) {
        e = oct_cells_maps_publish(job->run.maps, err);
        job->run.maps = NULL;
    }
    if (!e && g->overlay_folder)
        e = oct_cells_report_frames(&job->report, g->overlay_folder, g->force, err);
    if (!e && g->into)
        e = oct_cells_report_into(&job->report, g->into, g->force, err);
    return e;
}

/* What was whole is written, even when not all pictures could be read. */
static int search(struct job *job)
{
    const volatile sig_atomic_t *cancel = oct_interrupt_watch();
    const char *warning = oct_pictures_warning(job->run.pictures);
    struct oct_error err, why;
    int status = 0;
    job->progress.what = "pictures";
    job->progress.started_ns = oct_clock_ns();
    const enum oct_err e =
        oct_cells_run_all(&job->run, cancel, oct_progress_show, &job->progress, &err);
    const bool is_damaged = job->run.n > 0 && (e == OCT_E_FORMAT || e == OCT_E_IO);
    if (is_damaged)
        oct_error_go_on(&err, e, "", "; the %" PRIu64 " of %" PRIu64 " pictures before it are used",
                        job->run.n, job->run.n_all);
    if (e)
        status = fail(job, &err, 1);
    if (e && !is_damaged)
        return status;
    if (!e && !warning) /* of a film that ends early one line says so, and no other */
        warn_of_units(job);
    warn_of_frames(job);
    if (warning) {
        fprintf(stderr, "octctl %s: %s\n", job->name, warning);
        status = 1;
    }
    if (write_all(job, &why))
        return fail(job, &why, 1);
    oct_progress_end(&job->progress, job->run.n, job->run.n_all);
    oct_cells_summary_print(&job->summary);
    return status;
}

static int run_job(struct job *job, const struct oct_config *config, int argc, char **argv)
{
    struct oct_error err;
    int status = oct_cells_given_read(&job->given, config, job->name, &job->run);
    if (status)
        return status;
    job->out = argv[argc - 1];
    status = oct_cells_given_out(&job->given, job->name, job->out);
    if (status)
        return status;
    if (oct_paths_expand(&job->inputs, (const char *const *)(argv + 1), (unsigned)(argc - 2), &err))
        return fail(job, &err, err.code == OCT_E_ARG ? 2 : 1);
    if (check_outputs(job, &err))
        return fail(job, &err, 2);
    status = open_pictures(job);
    if (!status)
        status = begin(job, config);
    return status ? status : search(job);
}

static int run(struct oct_config *config, int argc, char **argv)
{
    struct job *job = calloc(1, sizeof(*job));
    struct oct_error err;
    if (!job) {
        oct_fail(&err, OCT_E_NO_MEMORY, "out of memory");
        return oct_command_fail(argv[0], &err);
    }
    job->name = argv[0];
    oct_cells_given_init(&job->given);
    int status = oct_options_read(&oct_command_cells, &job->given, &argc, argv);
    if (!status)
        status = run_job(job, config, argc, argv);
    oct_cells_run_finish(&job->run);
    oct_pictures_close(job->run.pictures);
    oct_workers_destroy(job->workers);
    oct_paths_finish(&job->inputs);
    free(job);
    return status;
}

const struct oct_command oct_command_cells = {
    .name = "cells",
    .usage = "IN... OUT.csv",
    .help = "finds cells in films and recordings, and follows them",
    .options = oct_cells_options,
    .keys = OCT_CELLS_KEYS,
    .n_least = 2,
    .n_most = MOST_ARGUMENTS,
    .too_few = "which film, and which OUT.csv?",
    .run = run,
};
