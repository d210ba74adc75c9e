/* octctl batch: reconstructs many recordings by the tasks of a Slurm job array, tells what became
 * of them, and submits again what is left. */
#include "tools/commands.h"
#include "tools/files/batch.h"

#include <cjson/cJSON.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILES_A_TASK 16u /* unless somebody says how many */
#define MOST_TASKS 1000u /* of Slurm's own MaxArraySize, 1001 */

struct options {
    const char *folder, *list, *status, *resume;
    const char **sbatch; /* up to NULL */
    uint64_t tasks, files_a_task;
    bool dry_run, json;
};

/* ---- telling ---- */

static void print_counts(const struct oct_batch *batch)
{
    printf("%s: %u recordings: %u done, %u failed, %u missing, %u queued, %u to do\n",
           batch->out_dir, batch->n, oct_batch_count(batch, OCT_BATCH_DONE),
           oct_batch_count(batch, OCT_BATCH_FAILED), oct_batch_count(batch, OCT_BATCH_MISSING),
           oct_batch_count(batch, OCT_BATCH_QUEUED), oct_batch_count(batch, OCT_BATCH_TODO));
}

/* Most reasons begin with the recording, which the line has named already. */
static const char *without_name(const char *why, const char *in)
{
    struct oct_error name; /* as messages show it */
    oct_fail(&name, OCT_OK, "%s: ", in);
    const size_t n = strlen(name.text);
    return strncmp(why, name.text, n) == 0 ? why + n : why;
}

static void print_state(const struct oct_batch *batch, enum oct_batch_state state)
{
    for (unsigned i = 0; i < batch->n; i++) {
        const struct oct_batch_item *item = &batch->items[i];
        if (item->state != state)
            continue;
        printf("%s ", oct_batch_states[state]);
        oct_command_put_name(stdout, item->in);
        if (item->why)
            printf(": %s", without_name(item->why, item->in));
        putchar('\n');
    }
}

static int tell(const struct oct_batch *batch, bool as_json)
{
    const bool is_done = oct_batch_count(batch, OCT_BATCH_DONE) == batch->n;
    if (as_json) {
        cJSON *tree = oct_batch_tree(batch);
        const int status = oct_command_printed("batch", tree && oct_command_print_json(tree));
        cJSON_Delete(tree);
        return status ? status : !is_done;
    }
    print_counts(batch);
    print_state(batch, OCT_BATCH_FAILED);
    print_state(batch, OCT_BATCH_MISSING);
    return !is_done;
}

/* ---- submitting ---- */

static unsigned count_tasks(const struct oct_batch *batch, const struct options *given)
{
    const unsigned n = batch->n - oct_batch_count(batch, OCT_BATCH_DONE) -
                       oct_batch_count(batch, OCT_BATCH_QUEUED);
    if (given->tasks)
        return (unsigned)given->tasks;
    const uint64_t each = given->files_a_task ? given->files_a_task : FILES_A_TASK;
    const uint64_t tasks = (n + each - 1) / each;
    return tasks > MOST_TASKS && !given->files_a_task ? MOST_TASKS : (unsigned)tasks;
}

/* The manifest names the submission before Slurm has it, and the job as soon as it is known. */
static enum oct_err submit(struct oct_batch *batch, const struct options *given,
                           struct oct_error *err)
{
    char *script = NULL;
    print_counts(batch);
    if (oct_batch_count(batch, OCT_BATCH_DONE) + oct_batch_count(batch, OCT_BATCH_QUEUED) ==
        batch->n)
        return oct_batch_save(batch, err);
    enum oct_err e = oct_batch_prepare(batch, count_tasks(batch, given), &script, err);
    if (!e)
        e = oct_batch_save(batch, err);
    if (!e && !given->dry_run)
        e = oct_batch_submit(batch, script, err);
    if (!e && !given->dry_run)
        e = oct_batch_save(batch, err);
    const struct oct_batch_submission *s = &batch->submissions[batch->n_submissions - 1];
    if (!e && given->dry_run)
        printf("%s: %u tasks, not submitted\n", script, s->n_tasks);
    else if (!e)
        printf("%s: %u tasks, submitted as job %s\n", script, s->n_tasks, s->job);
    free(script);
    return e;
}

static int begin(const struct oct_config *config, const struct options *given, int argc,
                 char **argv)
{
    struct oct_recon_names names;
    struct oct_batch batch = {.lock = -1};
    struct oct_error err;
    enum oct_err e = oct_recon_names_init(&names, (const char *const *)argv + 1,
                                          (unsigned)(argc - 1), given->list, given->folder, &err);
    if (!e)
        e = oct_batch_init(&batch, &names, given->folder, given->sbatch, config, &err);
    if (!e)
        e = oct_batch_look(&batch, &err);
    if (!e)
        e = submit(&batch, given, &err);
    oct_batch_finish(&batch);
    oct_recon_names_finish(&names);
    return e ? oct_command_fail(argv[0], &err) : 0;
}

static int go_on(const struct options *given, const char *name)
{
    struct oct_batch batch;
    struct oct_error err;
    int status = 0;
    enum oct_err e = oct_batch_load(&batch, given->status ? given->status : given->resume, &err);
    if (!e)
        e = oct_batch_look(&batch, &err);
    if (!e && given->status && !(e = oct_batch_save(&batch, &err)))
        status = tell(&batch, given->json);
    if (!e && given->resume && given->sbatch[0])
        e = oct_batch_set_options(&batch, given->sbatch, &err);
    if (!e && given->resume)
        e = submit(&batch, given, &err);
    oct_batch_finish(&batch);
    return e ? oct_command_fail_at_work(name, &err) : status;
}

/* ---- the command ---- */

static const struct oct_option options[] = {
    {"--out-dir", "D",
     "of each recording NAME.* make D/NAME.h5; the batch's own files\nare in "
     "D/octctl-batch",
     OCT_OPTION_TEXT, .at = offsetof(struct options, folder), .words = OCT_WORDS_FOLDERS},
    {"--files0-from", "FILE",
     "more recordings: their names, each ended by a NUL byte\n(find -print0); -: standard input",
     OCT_OPTION_TEXT, .at = offsetof(struct options, list)},
    {"--tasks", "N", "tasks of the job array", OCT_OPTION_COUNT,
     .at = offsetof(struct options, tasks), .least = 1, .most = 1e6, .needs = "a number above 0"},
    {"--files-per-task", "K", "recordings a task (16; more where that makes over 1000 tasks)",
     OCT_OPTION_COUNT, .at = offsetof(struct options, files_a_task), .least = 1, .most = 1e6,
     .needs = "a number above 0"},
    {"--sbatch", "OPTION", "an option of sbatch, as --sbatch=--time=60; repeatable",
     OCT_OPTION_LIST, .at = offsetof(struct options, sbatch)},
    {"--dry-run", NULL, "write the script and its lists, submit nothing", OCT_OPTION_FLAG,
     .at = offsetof(struct options, dry_run)},
    {"--status", "D", "tell what is done, failed and missing; exit status 0: all done",
     OCT_OPTION_TEXT, .at = offsetof(struct options, status), .words = OCT_WORDS_FOLDERS},
    {"--resume", "D", "submit again what failed or is missing", OCT_OPTION_TEXT,
     .at = offsetof(struct options, resume), .words = OCT_WORDS_FOLDERS},
    {"--json", NULL, "with --status: the manifest", OCT_OPTION_FLAG,
     .at = offsetof(struct options, json)},
    {NULL},
};

/* NULL: the options go together. */
static const char *find_misuse(const struct options *given, int n_plain)
{
    if (given->status && given->resume)
        return "--status and --resume are two commands";
    if ((given->status || given->resume) && (given->folder || given->list || n_plain))
        return "--status and --resume name the batch's folder: no recordings and no --out-dir";
    if (!given->status && !given->resume && !given->folder)
        return "--out-dir D is missing";
    if (given->tasks && given->files_a_task)
        return "--tasks and --files-per-task exclude one another";
    if (given->json && !given->status)
        return "--json goes with --status";
    return NULL;
}

static int run(struct oct_config *config, int argc, char **argv)
{
    struct options given = {.sbatch = calloc((size_t)argc + 1, sizeof(char *))};
    struct oct_error err;
    int status;
    if (!given.sbatch) {
        oct_fail(&err, OCT_E_NO_MEMORY, "out of memory");
        return oct_command_fail(argv[0], &err);
    }
    status = oct_options_read(&oct_command_batch, &given, &argc, argv);
    const char *misuse = status ? NULL : find_misuse(&given, argc - 1);
    if (misuse) {
        status = oct_command_misuse(argv[0], "%s", misuse);
    } else if (!status && !given.status && !given.dry_run && !oct_batch_has_slurm()) {
        oct_fail(&err, OCT_E_BACKEND,
                 "sbatch is not in PATH: work on a machine of a Slurm cluster, or --dry-run to "
                 "write the script alone");
        status = oct_command_fail(argv[0], &err);
    } else if (!status) {
        status = given.status || given.resume ? go_on(&given, argv[0])
                                              : begin(config, &given, argc, argv);
    }
    free(given.sbatch);
    return status;
}

const struct oct_command oct_command_batch = {
    .name = "batch",
    .usage = "IN... --out-dir D",
    .help = "reconstructs many recordings on a Slurm cluster",
    .options = options,
    .n_most = INT_MAX,
    .run = run,
};
