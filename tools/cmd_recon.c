/* octctl recon: reads a recording and writes a volume file, through the daemon's own pipeline. */
#include "pipeline/base/clock.h"
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/progress.h"
#include "tools/recon_run.h"

#include <stdio.h>
#include <string.h>

struct options {
    bool force;
};

/* ---- one recording ---- */

static void report(const struct oct_recon *recon, const struct oct_recon_job *job,
                   const struct oct_recon_result *result)
{
    printf("%s: %llu B-scans of %u lines, %u depth pixels in %.2f s (%.0f A-lines/s), %s\n",
           job->out, (unsigned long long)result->n_bscans, result->n_lines, result->depth,
           result->seconds, (double)result->n_bscans * result->n_lines / result->seconds,
           oct_recon_engine_name(recon));
    if (result->n_skipped)
        printf("%s: %llu B-scans are missing in %s and stay empty\n", job->out,
               (unsigned long long)result->n_skipped, job->in);
}

static int run_one(const struct oct_config *config, const char *name,
                   const struct oct_recon_job *job, struct oct_progress *progress)
{
    struct oct_recon_result result;
    struct oct_recon *recon = NULL;
    struct oct_error err;
    enum oct_err e = oct_recon_create(&recon, NULL, &err);
    if (!e)
        e = oct_recon_run(recon, config, job, &result, &err);
    if (!e) {
        const uint64_t n = result.n_bscans + result.n_skipped;
        oct_progress_end(progress, n, n);
        if (oct_config_is_set(config, "pipeline.backend") && !config->quiet)
            fprintf(stderr, "%s\n", oct_recon_engine(recon));
        report(recon, job, &result);
    } else {
        oct_progress_clear(progress);
    }
    oct_recon_destroy(recon);
    return e ? oct_command_fail(name, &err) : 0;
}

static const struct oct_option options[] = {
    {"--force", NULL, "replace OUT.h5 if it exists, once the new one is whole", OCT_OPTION_FLAG,
     .at = offsetof(struct options, force)},
    {NULL},
};

static int run(struct oct_config *config, int argc, char **argv)
{
    struct options given = {0};
    int status = oct_options_read(&oct_command_recon, &given, &argc, argv);

    if (status)
        return status;
    if (strlen(argv[2]) >= OCT_CONFIG_STRING_BYTES)
        return oct_command_misuse(argv[0], "the output's name is too long");
    struct oct_progress progress = {
        .what = "B-scans", .started_ns = oct_clock_ns(), .quiet = config->quiet};
    const struct oct_recon_job job = {
        .in = argv[1],
        .out = argv[2],
        .force = given.force,
        .progress = oct_progress_show,
        .progress_context = &progress,
        .cancel = oct_interrupt_watch(),
    };
    return run_one(config, argv[0], &job, &progress);
}

const struct oct_command oct_command_recon = {
    .name = "recon",
    .usage = "IN OUT.h5 [--force]",
    .help = "reconstructs a recording offline",
    .options = options,
    .n_least = 2,
    .n_most = 2,
    .too_few = "two files are needed: the recording and the output",
    .too_many = "one argument too many:",
    .run = run,
};
