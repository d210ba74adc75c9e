/* octctl register-volumes: volumes of one eye onto one another, in 3D. */
#include "config/config.h"
#include "formats/recording.h"
#include "formats/results.h"
#include "kernels/device/workers.h"
#include "tools/analyse/register_volumes_pictures.h"
#include "tools/analyse/register_volumes_points.h"
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/outputs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_OF_A_PAIR 6u /* files beside OUT.h5, at most */
#define MOST_FILES (3u + N_OF_A_PAIR * OCT_VOLUMES_MOST_MOVING)

typedef enum oct_err writer(void *context, const char *path, bool force, struct oct_error *err);

struct job {
    const char *name;
    const struct oct_config *config;
    struct oct_volumes_given given;
    struct oct_volumes_run run;
    struct oct_volumes_report report;
    struct oct_outputs *outputs;

    struct oct_output_file files[MOST_FILES]; /* OUT.h5, --points-out, the average, of each pair */
    char *names[MOST_FILES];                  /* of those that are named here */
    unsigned n_files;
    unsigned first[OCT_VOLUMES_MOST_MOVING + 1]; /* of the files of each pair */
    char **read;                                 /* inputs, without the names of datasets */
};

/* ---- files ---- */

static void add(struct job *job, const char *path, writer *write, void *context)
{
    job->files[job->n_files++] = (struct oct_output_file){path, write, context};
}

/* STEM-WHAT.END, or STEM-NUMBER-WHAT.END of several pairs; pair 0: of all. False: no memory. */
static bool add_named(struct job *job, const char *stem, size_t n_stem, unsigned pair,
                      const char *what, writer *write)
{
    const size_t room = n_stem + strlen(what) + 16;
    char number[12] = "", *name = malloc(room);
    if (!name)
        return false;
    if (pair > 0 && job->run.n_moving > 1)
        snprintf(number, sizeof(number), "%u-", pair);
    snprintf(name, room, "%.*s-%s%s", (int)n_stem, stem, number, what);
    job->names[job->n_files] = name;
    add(job, name, write, &job->report);
    return true;
}

static bool add_of_pair(struct job *job, unsigned pair)
{
    const struct oct_volumes_given *g = &job->given;
    const size_t n_nifti = g->nifti ? strlen(g->nifti) : 0, n = g->png ? strlen(g->png) : 0;
    const size_t n_png = n > 4 && strcmp(g->png + n - 4, ".png") == 0 ? n - 4 : n;
    const struct {
        const char *stem;
        size_t n;
        const char *what;
        writer *write;
    } all[N_OF_A_PAIR] = {
        {g->nifti, n_nifti, "warped.nii", oct_volumes_nifti_warped},
        {g->nifti, n_nifti, "displacement.nii", oct_volumes_nifti_displacement},
        {g->nifti, n_nifti, "jacobian.nii", oct_volumes_nifti_jacobian},
        {g->png, n_png, "checkerboard.png", oct_volumes_draw_checkerboard},
        {g->png, n_png, "jacobian.png", oct_volumes_draw_jacobian},
        {g->png, n_png, "displacement.png", oct_volumes_draw_displacement},
    };
    bool is_whole = true;
    for (unsigned i = 0; i < N_OF_A_PAIR; i++)
        if (all[i].stem)
            is_whole =
                add_named(job, all[i].stem, all[i].n, pair, all[i].what, all[i].write) && is_whole;
    return is_whole;
}

/* "FILE.h5:/DATASET" is read from FILE.h5, which no output may replace. */
static char *file_of(const char *path)
{
    char *copy = strdup(path), *colon = NULL;
    if (!copy || !oct_recording_names_dataset(path))
        return copy;
    for (char *next = strstr(copy, ":/"); next; next = strstr(next + 1, ":/"))
        colon = next; /* the last */
    if (colon)
        *colon = '\0';
    return copy;
}

/* FIXED, all MOVING, the mask. */
static enum oct_err list_inputs(struct job *job, struct oct_error *err)
{
    const struct oct_volumes_run *run = &job->run;
    const unsigned n = run->n_moving + 2;
    bool is_whole = (job->read = calloc(n, sizeof(char *))) != NULL;
    for (unsigned i = 0; is_whole && i < n; i++) {
        const char *path = i == 0       ? run->fixed_path
                           : i + 1 == n ? job->given.mask
                                        : run->moving[i - 1];
        is_whole = !path || (job->read[i] = file_of(path));
    }
    return is_whole ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
}

/* All that will be written, and whether it may be. */
static enum oct_err list_files(struct job *job, const char *out, struct oct_error *err)
{
    const struct oct_volumes_given *g = &job->given;
    bool is_whole = true;
    job->report = (struct oct_volumes_report){.run = &job->run, .out = out};
    add(job, out, oct_volumes_report_h5, &job->report);
    add(job, g->points_out, oct_volumes_write_points, &job->run);
    if (g->nifti && (g->average || g->group))
        is_whole =
            add_named(job, g->nifti, strlen(g->nifti), 0, "average.nii", oct_volumes_nifti_average);
    for (unsigned i = 0; i < job->run.n_moving; i++) {
        job->first[i] = job->n_files;
        is_whole = add_of_pair(job, i + 1) && is_whole;
    }
    job->first[job->run.n_moving] = job->n_files;
    enum oct_err e = is_whole ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    e = e ? e : list_inputs(job, err);
    const struct oct_input_files read = {
        (const char *const *)job->read, job->run.n_moving + 2, {g->points}};
    return e ? e : oct_outputs_check(job->files, job->n_files, g->force, &read, err);
}

/* ---- the work ---- */

/* What belongs to pair i is written before the next one is begun, for which there is no room. */
static enum oct_err take(void *context, unsigned i, const struct oct_volumes_result *result,
                         struct oct_error *err)
{
    struct job *job = context;
    job->report.pair = i;
    job->report.result = result;
    oct_volumes_write_pair(&job->report);
    enum oct_err e = oct_results_error(job->report.h5, err);
    for (unsigned k = job->first[i]; k < job->first[i + 1] && !e; k++) {
        if (*job->run.cancel)
            return oct_fail(err, OCT_E_STATE, "interrupted; nothing was written");
        e = oct_outputs_write_one(job->outputs, k, err);
    }
    job->report.result = NULL;
    return e;
}

static enum oct_err publish(struct job *job, struct oct_error *err)
{
    struct oct_outputs *outputs = job->outputs;
    if (*job->run.cancel)
        return oct_fail(err, OCT_E_STATE, "interrupted; nothing was written");
    job->outputs = NULL;
    const enum oct_err e = oct_outputs_publish(outputs, err);
    if (e)
        return e;
    oct_volumes_warn(&job->run, job->name);
    if (job->given.json)
        return oct_volumes_print_json(&job->report, err);
    oct_volumes_print(&job->report);
    return OCT_OK;
}

static int work(struct job *job, const char *out)
{
    struct oct_volumes_run *run = &job->run;
    struct oct_error err;
    run->given = &job->given;
    run->cancel = oct_interrupt_watch(); /* before what is cleaned up */
    run->progress.quiet = job->config->quiet;
    run->backend = oct_config_backend_names[job->config->pipeline.backend];
    run->gpus = job->config->pipeline.gpus;
    run->take = take;
    run->context = job;
    enum oct_err e = list_files(job, out, &err);
    e = e ? e : oct_workers_create(&run->workers, 0, &err);
    e = e ? e : oct_volumes_run_begin(run, &err);
    e = e ? e : oct_outputs_begin(&job->outputs, job->files, job->n_files, job->given.force, &err);
    e = e ? e : oct_results_create(&job->report.h5, out, "volumes", job->given.force, &err);
    e = e ? e : oct_volumes_run_all(run, &err);
    e = e ? e : publish(job, &err);
    oct_results_discard(job->report.h5);
    oct_outputs_discard(job->outputs);
    oct_workers_destroy(run->workers);
    return e ? oct_command_fail_at_work(job->name, &err) : 0;
}

/* FIXED MOVING... OUT.h5 */
static int run_job(struct job *job, int argc, char **argv)
{
    const unsigned n_moving = (unsigned)argc - 3;
    if (n_moving > OCT_VOLUMES_MOST_MOVING)
        return oct_command_misuse(job->name, "%u volumes MOVING; %u are the most at once", n_moving,
                                  OCT_VOLUMES_MOST_MOVING);
    const int status = oct_volumes_given_read(&job->given, n_moving, job->name);
    if (status)
        return status;
    job->run.fixed_path = argv[1];
    job->run.moving = (const char *const *)(argv + 2);
    job->run.n_moving = n_moving;
    return work(job, argv[argc - 1]);
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
    job->config = config;
    job->given = OCT_VOLUMES_GIVEN_NONE;
    int status = oct_options_read(&oct_command_register_volumes, &job->given, &argc, argv);
    if (!status)
        status = run_job(job, argc, argv);
    for (size_t i = 0; job->read && i < (size_t)job->run.n_moving + 2; i++)
        free(job->read[i]);
    free(job->read);
    oct_volumes_run_finish(&job->run);
    for (unsigned i = 0; i < job->n_files; i++)
        free(job->names[i]);
    free(job);
    return status;
}

const struct oct_command oct_command_register_volumes = {
    .name = "register-volumes",
    .usage = "FIXED MOVING... OUT.h5",
    .keys = "",
    .help = "registers volumes of one eye in 3D",
    .options = oct_volumes_options,
    .n_least = 3,
    .n_most = 1000000,
    .too_few = "which FIXED, which MOVING, and which OUT.h5?",
    .run = run,
};
