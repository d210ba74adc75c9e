#include "tools/analyse/job.h"

#include "kernels/device/workers.h"
#include "pipeline/base/clock.h"
#include "tools/alloc.h"
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/picture_options.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

void oct_job_add(struct oct_job *job, const char *path, oct_output_writer *write, void *context)
{
    job->files = oct_alloc_more(job->files, job->n_files + 1, sizeof(*job->files));
    job->files[job->n_files++] = (struct oct_output_file){path, write, context};
}

char *oct_job_beside(const char *path, const char *end, const char *what)
{
    const size_t n = strlen(path), n_end = strlen(end);
    const bool has_end = n > n_end && strcmp(path + n - n_end, end) == 0;
    return oct_alloc_text("%.*s-%s%s", (int)(has_end ? n - n_end : n), path, what, end);
}

const char *oct_job_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

enum oct_err oct_job_go_on(const struct oct_job *job, struct oct_error *err)
{
    return *job->cancel ? oct_fail(err, OCT_E_STATE, "interrupted; nothing was written") : OCT_OK;
}

/* IN... [OUT] */
static void divide_names(const struct oct_job_ops *ops, struct oct_job *job, int argc, char **argv)
{
    const bool has_out =
        ops->may_lack_out ? oct_picture_option_has_out(argc, argv) : argc > 2 && !ops->has_no_out;
    job->inputs = (const char *const *)(argv + 1);
    job->n_inputs = (unsigned)(argc - (has_out ? 2 : 1));
    job->out = has_out ? argv[argc - 1] : NULL;
}

static enum oct_err expand_inputs(struct oct_job *job, struct oct_error *err)
{
    if (job->n_inputs == 0 || job->ops->takes_names)
        return OCT_OK;
    const enum oct_err e = oct_paths_expand(&job->paths, job->inputs, job->n_inputs, err);
    job->inputs = (const char *const *)job->paths.path;
    job->n_inputs = job->paths.n;
    return e;
}

static enum oct_err check_outputs(const struct oct_job *job, bool force, struct oct_error *err)
{
    struct oct_input_files read = {.inputs = job->inputs, .n_inputs = job->n_inputs};
    memcpy(read.more, job->reads, sizeof(read.more));
    return oct_outputs_check(job->files, job->n_files, force, &read, err);
}

/* All names that are read or written. */
static enum oct_err find_names(struct oct_job *job, bool force, struct oct_error *err)
{
    const bool is_strict = job->ops->strict_names;
    enum oct_err e = expand_inputs(job, err);
    if (!e) {
        e = job->ops->list(job, err);
        if (!e)
            e = check_outputs(job, force, err);
        if (e == OCT_E_IO && is_strict)
            e = OCT_E_ARG;
    }
    if (e == OCT_E_ARG && is_strict)
        err->code = OCT_E_CONFIG;
    return e;
}

static enum oct_err do_work(struct oct_job *job, bool force, struct oct_error *err)
{
    static const volatile sig_atomic_t never;
    const struct oct_job_ops *ops = job->ops;
    /* Before there is anything to clean up. */
    job->cancel = ops->may_be_killed ? &never : oct_interrupt_watch();
    enum oct_err e = find_names(job, force, err);
    if (!e)
        e = oct_workers_create(&job->workers, 0, err);
    if (!e)
        e = oct_outputs_begin(&job->outputs, job->files, job->n_files, force, err);
    job->progress.what = ops->progress;
    job->progress.started_ns = oct_clock_ns();
    if (!e)
        e = ops->work(job, err);
    job->seconds = oct_progress_seconds(&job->progress);
    if (e || job->leaves_files)
        return e;
    struct oct_outputs *outputs = job->outputs;
    job->outputs = NULL;
    e = oct_outputs_publish(outputs, err);
    return e || !ops->write_more ? e : ops->write_more(job, err);
}

static int show_error(const struct oct_job *job, struct oct_error *err)
{
    const size_t n = strlen(job->name);
    if (strncmp(err->text, job->name, n) == 0 && strncmp(err->text + n, ": ", 2) == 0)
        memmove(err->text, err->text + n + 2, strlen(err->text + n + 2) + 1);
    return oct_command_fail_at_work(job->name, err);
}

static int show_results(const struct oct_job *job, bool as_json)
{
    if (job->ops->warn)
        job->ops->warn(job);
    if (job->says_nothing)
        return job->status;
    if (!as_json) {
        job->ops->print(job);
        return job->status;
    }
    cJSON *tree = cJSON_CreateObject();
    job->ops->json(job, tree);
    oct_command_print_json(tree);
    cJSON_Delete(tree);
    return job->status;
}

int oct_job_run(const struct oct_job_ops *ops, struct oct_config *config, int argc, char **argv)
{
    static struct oct_job *job; /* what it points at is reachable to the end */
    struct oct_error err;
    job = oct_alloc(1, ops->bytes);
    void *values = (char *)job + ops->values;
    const struct oct_job_options *options =
        (const struct oct_job_options *)(const void *)((char *)job + ops->options);
    job->ops = ops;
    job->name = argv[0];
    job->n_words = (unsigned)argc;
    job->config = config;
    job->progress.quiet = config->quiet;
    job->backend = oct_config_backend_names[config->pipeline.backend];
    job->gpus = config->pipeline.gpus;
    if (ops->init)
        ops->init(job);
    int status = oct_options_read(ops->command, values, &argc, argv);
    if (!status) {
        divide_names(ops, job, argc, argv);
        status = ops->read(job);
    }
    if (!status && do_work(job, options->force, &err))
        status = show_error(job, &err);
    else if (!status)
        status = show_results(job, options->json);
    oct_outputs_discard(job->outputs);
    if (ops->finish)
        ops->finish(job);
    oct_workers_destroy(job->workers);
    return status;
}
