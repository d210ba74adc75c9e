/* octctl surfaces: layers of the retina, their thickness, and slabs that follow them. */
#include "config/config.h"
#include "formats/paths.h"
#include "kernels/device/workers.h"
#include "tools/analyse/surfaces_mask.h"
#include "tools/analyse/surfaces_pictures.h"
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/outputs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ARGUMENTS 1000000
#define MOST_FILES (6u + OCT_SURFACES_MOST_SLABS)

struct job {
    const char *name;
    const struct oct_config *config;
    struct oct_surfaces_given given;
    struct oct_paths inputs;
    struct oct_surfaces_run run;
    struct oct_surfaces_mask mask;
    struct oct_surfaces_report report, slabs[OCT_SURFACES_MOST_SLABS];
    struct oct_output_file files[MOST_FILES];
    unsigned n_files;
    char *pictures[2 + OCT_SURFACES_MOST_SLABS]; /* names beside --png */
};

/* ---- files ---- */

/* "FILE-bscans.png" beside "FILE.png"; in `what` ':' becomes '_'. */
static char *beside(const char *png, const char *what)
{
    const size_t n = strlen(png), n_what = strlen(what);
    const size_t stem = n > 4 && strcmp(png + n - 4, ".png") == 0 ? n - 4 : n;
    const size_t room = stem + n_what + sizeof("-.png");
    char *path = malloc(room);
    if (!path)
        return NULL;
    snprintf(path, room, "%.*s-%s.png", (int)stem, png, what);
    for (char *at = path + stem; *at; at++)
        *at = *at == ':' ? '_' : *at;
    return path;
}

static void add(struct job *job, const char *path,
                enum oct_err (*write)(void *, const char *, bool, struct oct_error *),
                void *context)
{
    job->files[job->n_files++] = (struct oct_output_file){path, write, context};
}

static enum oct_err list_pictures(struct job *job, struct oct_error *err)
{
    const struct oct_surfaces_given *g = &job->given;
    char **names = job->pictures;
    bool is_whole = (names[0] = beside(g->png, "bscans")) != NULL;
    is_whole = (names[1] = beside(g->png, "relief")) != NULL && is_whole;
    add(job, g->png, oct_surfaces_draw_map, &job->report);
    add(job, names[0], oct_surfaces_draw_bscans, &job->report);
    add(job, names[1], oct_surfaces_draw_relief, &job->report);
    for (unsigned i = 0; i < g->n_slabs; i++) {
        char text[64], what[80];
        oct_slab_text(&g->slab[i], text, sizeof(text));
        snprintf(what, sizeof(what), "slab-%s", text);
        is_whole = (names[2 + i] = beside(g->png, what)) != NULL && is_whole;
        job->slabs[i] = (struct oct_surfaces_report){.run = &job->run, .which_slab = i};
        add(job, names[2 + i], oct_surfaces_draw_slab, &job->slabs[i]);
    }
    return is_whole ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
}

/* All that will be written, and whether it may be. */
static enum oct_err list_files(struct job *job, const char *out, struct oct_error *err)
{
    const struct oct_surfaces_given *g = &job->given;
    const struct oct_input_files read = {
        (const char *const *)job->inputs.path, job->inputs.n, {g->mask}};
    enum oct_err e = OCT_OK;
    job->report = (struct oct_surfaces_report){.run = &job->run, .out = out};
    add(job, out, g->mask ? oct_surfaces_mask_h5 : oct_surfaces_report_h5,
        g->mask ? (void *)&job->mask : (void *)&job->report);
    add(job, g->csv, oct_surfaces_report_csv, &job->report);
    add(job, g->phi, oct_surfaces_report_phi, &job->report);
    if (g->png)
        e = list_pictures(job, err);
    return e ? e : oct_outputs_check(job->files, job->n_files, g->force, &read, err);
}

/* ---- the work ---- */

static enum oct_err denoise_mask(struct job *job, struct oct_workers *workers,
                                 const volatile sig_atomic_t *cancel, struct oct_error *err)
{
    struct oct_surfaces_mask *m = &job->mask;
    m->path = job->given.mask;
    oct_surfaces_given_levelset(&job->given, &m->params);
    m->workers = workers;
    m->backend = oct_config_backend_names[job->config->pipeline.backend];
    m->gpus = job->config->pipeline.gpus;
    m->cancel = cancel;
    enum oct_err e = oct_surfaces_mask_run(m, err);
    e = e ? e : oct_outputs_write(job->files, job->n_files, job->given.force, err);
    if (!e && job->given.json)
        e = oct_surfaces_mask_json(m, job->report.out, err);
    else if (!e)
        oct_surfaces_mask_print(m, job->report.out);
    return e;
}

static enum oct_err find_layers(struct job *job, struct oct_workers *workers,
                                const volatile sig_atomic_t *cancel, struct oct_error *err)
{
    struct oct_surfaces_run *run = &job->run;
    run->given = &job->given;
    run->inputs = (const char *const *)job->inputs.path;
    run->n_inputs = job->inputs.n;
    run->workers = workers;
    run->progress.quiet = job->config->quiet;
    run->backend = oct_config_backend_names[job->config->pipeline.backend];
    run->gpus = job->config->pipeline.gpus;
    run->cancel = cancel;
    enum oct_err e = oct_surfaces_run_begin(run, err);
    e = e ? e : oct_surfaces_run_all(run, err);
    e = e ? e : oct_outputs_write(job->files, job->n_files, job->given.force, err);
    if (e)
        return e;
    oct_progress_end(&run->progress, run->n_bscans, run->n_bscans);
    oct_surfaces_warn(run, job->name);
    if (job->given.json)
        return oct_surfaces_print_json(&job->report, err);
    oct_surfaces_print(&job->report);
    return OCT_OK;
}

static int work(struct job *job, const char *out)
{
    struct oct_workers *workers = NULL;
    struct oct_error err;
    const volatile sig_atomic_t *cancel = oct_interrupt_watch(); /* before what is cleaned up */
    enum oct_err e = list_files(job, out, &err);
    e = e ? e : oct_workers_create(&workers, 0, &err);
    if (!e)
        e = job->given.mask ? denoise_mask(job, workers, cancel, &err)
                            : find_layers(job, workers, cancel, &err);
    oct_workers_destroy(workers);
    return e ? oct_command_fail_at_work(job->name, &err) : 0;
}

/* IN... OUT.h5, or OUT.h5 with --mask. */
static int run_job(struct job *job, int argc, char **argv)
{
    struct oct_error err;
    const int status = oct_surfaces_given_read(&job->given, job->name);
    if (status)
        return status;
    if (job->given.mask && argc > 2)
        return oct_command_misuse(job->name, "--mask FILE stands in place of IN; name OUT.h5 "
                                             "alone");
    if (!job->given.mask && argc < 3)
        return oct_command_misuse(job->name, "which volume, and which OUT.h5?");
    if (!job->given.mask &&
        oct_paths_expand(&job->inputs, (const char *const *)(argv + 1), (unsigned)(argc - 2), &err))
        return oct_command_fail_at_work(job->name, &err);
    return work(job, argv[argc - 1]);
}

static int run(struct oct_config *config, int argc, char **argv)
{
    struct job *job = calloc(1, sizeof(*job));
    const char **slabs = calloc((size_t)argc + 1, sizeof(*slabs));
    struct oct_error err;
    int status;
    if (!job || !slabs) {
        free(job);
        free(slabs);
        oct_fail(&err, OCT_E_NO_MEMORY, "out of memory");
        return oct_command_fail(argv[0], &err);
    }
    job->name = argv[0];
    job->config = config;
    job->given = (struct oct_surfaces_given){.strength = NAN, .slabs = slabs};
    status = oct_options_read(&oct_command_surfaces, &job->given, &argc, argv);
    if (!status)
        status = run_job(job, argc, argv);
    oct_surfaces_run_finish(&job->run);
    oct_surfaces_mask_finish(&job->mask);
    for (size_t i = 0; i < sizeof(job->pictures) / sizeof(job->pictures[0]); i++)
        free(job->pictures[i]);
    oct_paths_finish(&job->inputs);
    free(slabs);
    free(job);
    return status;
}

const struct oct_command oct_command_surfaces = {
    .name = "surfaces",
    .usage = "IN... OUT.h5",
    .keys = "",
    .help = "finds layers of the retina, and measures their thickness",
    .options = oct_surfaces_options,
    .n_least = 1,
    .n_most = MOST_ARGUMENTS,
    .too_few = "which volume, and which OUT.h5?",
    .run = run,
};
