/* octctl recon: reads a recording, or many, and writes a volume file of each, through the daemon's
 * own pipeline. octctl analyse: the same, and what octd's analyses find in it. */
#include "config/analysis.h"
#include "pipeline/base/clock.h"
#include "tools/commands.h"
#include "tools/files/recon_many.h"
#include "tools/files/recon_run.h"
#include "tools/interrupt.h"
#include "tools/progress.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

struct options {
    bool force, skip;
    const char *folder, *list, *results, *analyses;
    uint64_t jobs;
};

/* Those that are named run, and are awake; their other settings are the configuration's. */
static enum oct_err choose_analyses(struct oct_config *config, const char *names,
                                    struct oct_error *err)
{
    char key[OCT_IMAGE_NAME_BYTES + sizeof(".enabled")], value[OCT_CONFIG_STRING_BYTES];
    enum oct_err e = oct_config_set(config, "analysis.run", names, "", err);
    for (const char *at = config->analysis.run; *at && !e;) {
        const struct oct_analysis_ops *ops;
        if ((e = oct_config_analysis_next(&at, &ops, err)))
            return e;
        snprintf(key, sizeof(key), "%s.enabled", ops->name);
        if (oct_config_get(config, key, value, sizeof(value), NULL) == OCT_OK)
            e = oct_config_set(config, key, "yes", "", err);
    }
    return e;
}

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
    struct oct_recon_result result = {0};
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

static int run_single(const struct oct_config *config, const struct options *given, int argc,
                      char **argv)
{
    if (given->skip || given->jobs || given->list || given->results)
        return oct_command_misuse(argv[0],
                                  "--jobs, --skip-existing, --files0-from and --results are for "
                                  "many recordings: they need --out-dir D");
    if (argc < 3)
        return oct_command_misuse(argv[0], "%s", oct_command_recon.too_few);
    if (argc > 3)
        return oct_command_misuse(argv[0],
                                  "one argument too many: '%s' (of several recordings "
                                  "each has its output in the folder of --out-dir)",
                                  argv[3]);
    if (strlen(argv[2]) >= OCT_CONFIG_STRING_BYTES)
        return oct_command_misuse(argv[0], "the output's name is too long");
    struct oct_progress progress = {
        .what = "B-scans", .started_ns = oct_clock_ns(), .quiet = config->quiet};
    const struct oct_recon_job job = {
        .in = argv[1],
        .out = argv[2],
        .force = given->force,
        .analyses = given->analyses != NULL,
        .progress = oct_progress_show,
        .progress_context = &progress,
        .cancel = oct_interrupt_watch(),
    };
    return run_one(config, argv[0], &job, &progress);
}

/* ---- many ---- */

static void report_many(const struct oct_recon_counts *counts, const struct options *given)
{
    printf("%s: %u done, %u skipped, %u failed in %.2f s", given->folder, counts->n_done,
           counts->n_skipped, counts->n_failed, counts->seconds);
    if (counts->n_done)
        printf(" (%.1f recordings/s, %.0f A-lines/s), %u at a time, %u engine%s, %s",
               counts->n_done / counts->seconds, (double)counts->n_lines / counts->seconds,
               counts->n_jobs, counts->n_engines, counts->n_engines == 1 ? "" : "s",
               counts->engine);
    putchar('\n');
}

static int run_names(const struct oct_config *config, const struct options *given,
                     const struct oct_recon_names *names)
{
    const struct oct_recon_many many = {
        .command = oct_command_recon.name,
        .config = config,
        .names = names,
        .jobs = (unsigned)given->jobs,
        .force = given->force,
        .skip = given->skip,
        .analyses = given->analyses != NULL,
        .results = given->results,
        .cancel = oct_interrupt_watch(),
    };
    struct oct_recon_counts counts;
    struct oct_error err;
    const enum oct_err e = oct_recon_many_run(&many, &counts, &err);
    if (e)
        return oct_command_fail(many.command, &err);
    report_many(&counts, given);
    if (counts.was_cancelled) {
        oct_fail(&err, OCT_E_CLOSED, "interrupted: %u of %u recordings are not done",
                 names->n - counts.n_done - counts.n_skipped - counts.n_failed, names->n);
        return oct_command_fail(many.command, &err);
    }
    return counts.n_failed > 0;
}

static int run_many(const struct oct_config *config, const struct options *given, int argc,
                    char **argv)
{
    struct oct_recon_names names;
    struct oct_error err;
    enum oct_err e = oct_recon_names_init(&names, (const char *const *)argv + 1,
                                          (unsigned)(argc - 1), given->list, given->folder, &err);
    if (!e)
        e = oct_recon_make_folder(given->folder, &err);
    const int status = e ? oct_command_fail(argv[0], &err) : run_names(config, given, &names);
    oct_recon_names_finish(&names);
    return status;
}

/* ---- the command ---- */

static const struct oct_option options[] = {
    {"--force", NULL, "replace an output that exists, once the new one is whole", OCT_OPTION_FLAG,
     .at = offsetof(struct options, force)},
    {"--out-dir", "D", "of each recording NAME.* make D/NAME.h5; D is made where it is missing",
     OCT_OPTION_TEXT, .at = offsetof(struct options, folder), .words = OCT_WORDS_FOLDERS},
    {"--jobs", "N", "recordings at a time, 1 to 64 (one more than threads, 4 at most)",
     OCT_OPTION_COUNT, .at = offsetof(struct options, jobs), .least = 1, .most = 64,
     .needs = "a number of 1 to 64"},
    {"--skip-existing", NULL, "leave out recordings whose output is there and whole",
     OCT_OPTION_FLAG, .at = offsetof(struct options, skip)},
    {"--files0-from", "FILE",
     "more recordings: their names, each ended by a NUL byte\n(find -print0); -: standard input",
     OCT_OPTION_TEXT, .at = offsetof(struct options, list)},
    {"--analyse", "NAME[,NAME...]", "what these analyses of octd find, too (octctl analyse --help)",
     OCT_OPTION_TEXT, .at = offsetof(struct options, analyses), .words = OCT_WORDS_NONE},
    {"--results", "FILE",
     "append a line for each recording: its number from 0, then done,\n"
     "skipped or failed and why",
     OCT_OPTION_TEXT, .at = offsetof(struct options, results)},
    {NULL},
};

static int run_given(struct oct_config *config, const struct options *given, int argc, char **argv)
{
    struct oct_error err;
    if (given->analyses && choose_analyses(config, given->analyses, &err))
        return oct_command_fail(argv[0], &err);
    return given->folder ? run_many(config, given, argc, argv)
                         : run_single(config, given, argc, argv);
}

static int run(struct oct_config *config, int argc, char **argv)
{
    struct options given = {0};
    const int status = oct_options_read(&oct_command_recon, &given, &argc, argv);
    return status ? status : run_given(config, &given, argc, argv);
}

const struct oct_command oct_command_recon = {
    .name = "recon",
    .usage = "IN OUT.h5 | IN... --out-dir D",
    .help = "reconstructs a recording, or many, offline",
    .options = options,
    .n_most = INT_MAX,
    .too_few = "two files are needed: the recording and the output",
    .run = run,
};

static int run_analyse(struct oct_config *config, int argc, char **argv)
{
    struct options given = {0};
    const int status = oct_options_read(&oct_command_analyse, &given, &argc, argv);
    if (status)
        return status;
    given.analyses = argv[1];
    argv[1] = argv[0];
    return run_given(config, &given, argc - 1, argv + 1);
}

const struct oct_command oct_command_analyse = {
    .name = "analyse",
    .usage = "NAME[,NAME...] IN OUT.h5 | NAME[,NAME...] IN... --out-dir D",
    .help = "what octd's analyses find in a recording, or many",
    .options = options,
    .n_least = 2,
    .n_most = INT_MAX,
    .too_few = "needed: names of analyses (enface, quality, cells, ...), the recording, the output",
    .words = OCT_WORDS_NONE,
    .run = run_analyse,
};
