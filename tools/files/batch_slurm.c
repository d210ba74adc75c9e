/* A batch and Slurm: its script, sbatch, squeue. */
#define _GNU_SOURCE /* environ */
#include "tools/files/batch.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- programs ---- */

bool oct_batch_has_slurm(void)
{
    const char *path = getenv("PATH");
    char name[PATH_MAX];
    for (const char *at = path ? path : ""; *at; at += strspn(at, ":")) {
        const int n = (int)strcspn(at, ":");
        if (snprintf(name, sizeof(name), "%.*s/sbatch", n, at) < PATH_MAX &&
            access(name, X_OK) == 0)
            return true;
        at += n;
    }
    return false;
}

/* Reads until the end; *text is malloc'd, never NULL on OCT_OK. */
static enum oct_err read_all(int fd, char **text, struct oct_error *err)
{
    size_t room = 4096, n = 0;
    char *all = malloc(room);
    for (ssize_t got = 1; all && got > 0;) {
        got = read(fd, all + n, room - n - 1);
        if (got < 0 && errno == EINTR) {
            got = 1;
            continue;
        }
        n += got > 0 ? (size_t)got : 0;
        if (n + 1 == room) {
            char *more = realloc(all, room *= 2);
            if (!more)
                free(all);
            all = more;
        }
    }
    if (!all)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for what Slurm says");
    all[n] = '\0';
    *text = all;
    return OCT_OK;
}

/* Runs a program to its end. *text: what it printed, on both streams. No shell looks at argv. */
static enum oct_err run(char *const *argv, char **text, struct oct_error *err)
{
    posix_spawn_file_actions_t actions;
    int ends[2], status = 0;
    pid_t pid;
    *text = NULL;
    if (pipe(ends) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: no pipe", argv[0]);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    const int failed = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    enum oct_err e = failed ? oct_fail_errno(err, OCT_E_BACKEND, failed, "%s", argv[0]) : OCT_OK;
    if (!e)
        e = read_all(ends[0], text, err);
    close(ends[0]);
    while (!failed && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (e || !*text || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
        return e;
    (*text)[strcspn(*text, "\n")] = '\0';
    e = oct_fail(err, OCT_E_BACKEND, "%s: %s", argv[0], *text);
    free(*text);
    *text = NULL;
    return e;
}

enum oct_err oct_batch_queue(char **text, struct oct_error *err)
{
    char *argv[] = {"squeue", "--me", "--noheader", "--array", "--format=%i", NULL};
    if (!oct_batch_has_slurm()) { /* nothing was submitted from here */
        *text = calloc(1, 1);
        return *text ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    }
    return run(argv, text, err);
}

/* sbatch --parsable prints "JOB" or "JOB;CLUSTER", and may print warnings before. */
enum oct_err oct_batch_submit(struct oct_batch *batch, const char *script, struct oct_error *err)
{
    struct oct_batch_submission *s = &batch->submissions[batch->n_submissions - 1];
    char *argv[] = {"sbatch", "--parsable", (char *)script, NULL}, *text, *last;
    enum oct_err e = run(argv, &text, err);
    if (e || !text)
        return e;
    for (size_t n = strlen(text); n > 0 && text[n - 1] == '\n';)
        text[--n] = '\0';
    last = strrchr(text, '\n');
    last = last ? last + 1 : text;
    const size_t n_digits = strspn(last, "0123456789");
    if (n_digits == 0 || n_digits >= sizeof(s->job))
        e = oct_fail(err, OCT_E_BACKEND, "sbatch: says no number of a job: %s", last);
    else
        snprintf(s->job, sizeof(s->job), "%.*s", (int)n_digits, last);
    free(text);
    return e;
}

/* ---- the script ---- */

/* Within single quotes nothing has a meaning to the shell, but their end. */
static void put_quoted(FILE *out, const char *text)
{
    putc('\'', out);
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", out);
        else
            putc(*text, out);
    putc('\'', out);
}

static void put_assignment(FILE *out, const char *name, const char *value)
{
    fprintf(out, "%s=", name);
    put_quoted(out, value);
    putc('\n', out);
}

char *oct_batch_script(const struct oct_batch *batch, unsigned submission, const char *octctl)
{
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    if (!out)
        return NULL;
    fprintf(out,
            "#!/bin/bash\n"
            "#SBATCH --job-name=octctl-recon\n"
            "#SBATCH --array=0-%u\n"
            "#SBATCH --output=/dev/null\n",
            batch->submissions[submission - 1].n_tasks - 1);
    for (unsigned i = 0; i < batch->n_options; i++)
        fprintf(out, "#SBATCH \"%s\"\n", batch->options[i]);
    put_assignment(out, "octctl", octctl);
    put_assignment(out, "out_dir", batch->out_dir);
    put_assignment(out, "batch", batch->folder);
    fprintf(out,
            "share=$batch/%u-$SLURM_ARRAY_TASK_ID\n"
            "exec >\"$share.log\" 2>&1\n"
            "printf 'begin %%s_%%s %%s\\n' \"$SLURM_ARRAY_JOB_ID\" \"$SLURM_ARRAY_TASK_ID\" "
            "\"$(hostname)\" >>\"$share.results\"\n"
            "set --\n" /* as many threads as Slurm gave cores, unless the user said how many */
            "grep -q '^threads = ' \"$batch/octd.ini\" ||\n"
            "    set -- --set "
            "\"pipeline.threads=${SLURM_CPUS_PER_TASK:-${SLURM_CPUS_ON_NODE:-0}}\"\n"
            "\"${OCTCTL:-$octctl}\" --config \"$batch/octd.ini\" \"$@\" recon \\\n"
            "    --files0-from \"$share.files\" --out-dir \"$out_dir\" --skip-existing \\\n"
            "    --results \"$share.results\"\n"
            "status=$?\n"
            "printf 'end %%s\\n' \"$status\" >>\"$share.results\"\n"
            "exit \"$status\"\n",
            submission);
    const bool is_whole = !ferror(out);
    if (fclose(out) == 0 && is_whole)
        return text;
    free(text);
    return NULL;
}

/* ---- a submission ---- */

static bool is_wanted(const struct oct_batch_item *item)
{
    return item->state != OCT_BATCH_DONE && item->state != OCT_BATCH_QUEUED;
}

/* "PID" or "PID.part". */
static bool is_of_process(const char *end)
{
    const size_t n = strspn(end, "0123456789");
    return n > 0 && (end[n] == '\0' || strcmp(end + n, ".part") == 0);
}

/* What a killed octctl recon wrote beside the output: PATH.new.PID, PATH.new.PID.part. Its task is
 * gone. */
static void remove_left(const char *out)
{
    const size_t n = strlen(out);
    char *pattern = malloc(2 * n + 16), *at = pattern;
    glob_t found;
    if (!pattern)
        return;
    for (const char *c = out; *c; c++) {
        if (strchr("*?[\\", *c))
            *at++ = '\\';
        *at++ = *c;
    }
    memcpy(at, ".new.[0-9]*", sizeof(".new.[0-9]*"));
    if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            if (is_of_process(found.gl_pathv[i] + n + strlen(".new.")))
                unlink(found.gl_pathv[i]);
        globfree(&found);
    }
    free(pattern);
}

/* Recording k of those wanted goes to task k % n_tasks, so that neighbours, which are alike, are
 * spread. */
static enum oct_err write_share(struct oct_batch *batch, unsigned s, unsigned task,
                                unsigned n_tasks, struct oct_error *err)
{
    char *text = NULL, *path = oct_batch_share(batch, s, task, "files");
    size_t n = 0;
    unsigned k = 0;
    FILE *out = open_memstream(&text, &n);
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < batch->n && out; i++)
        if (is_wanted(&batch->items[i]) && k++ % n_tasks == task) {
            fwrite(batch->items[i].in, 1, strlen(batch->items[i].in) + 1, out);
            remove_left(batch->items[i].out);
        }
    const bool is_whole = out && !ferror(out) && fclose(out) == 0;
    if (!path || !is_whole)
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the batch");
    if (!e)
        e = oct_batch_write(path, text, n, err);
    free(text);
    free(path);
    return e;
}

static enum oct_err write_script(struct oct_batch *batch, unsigned s, char **script,
                                 struct oct_error *err)
{
    char octctl[PATH_MAX], name[32];
    const ssize_t n = readlink("/proc/self/exe", octctl, sizeof(octctl) - 1);
    if (n <= 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "/proc/self/exe: cannot be read");
    octctl[n] = '\0';
    snprintf(name, sizeof(name), "/%u.sbatch", s);
    char *text = oct_batch_script(batch, s, octctl);
    const size_t bytes = strlen(batch->folder) + sizeof(name);
    char *path = malloc(bytes);
    enum oct_err e = OCT_E_NO_MEMORY;
    if (text && path) {
        snprintf(path, bytes, "%s%s", batch->folder, name);
        e = oct_batch_write(path, text, strlen(text), err);
    } else {
        oct_fail(err, e, "out of memory for the batch");
    }
    free(text);
    if (e)
        free(path);
    else
        *script = path;
    return e;
}

enum oct_err oct_batch_prepare(struct oct_batch *batch, unsigned n_tasks, char **script,
                               struct oct_error *err)
{
    unsigned n_wanted = 0;
    *script = NULL;
    for (unsigned i = 0; i < batch->n; i++)
        n_wanted += is_wanted(&batch->items[i]);
    n_tasks = n_tasks < n_wanted ? n_tasks : n_wanted;
    if (n_tasks == 0)
        return oct_fail(err, OCT_E_ARG, "%s: nothing is left to submit", batch->out_dir);
    const unsigned s = batch->n_submissions + 1;
    struct oct_batch_submission *more =
        realloc(batch->submissions, s * sizeof(*batch->submissions));
    if (!more)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the batch");
    batch->submissions = more;
    batch->submissions[s - 1] = (struct oct_batch_submission){.n_tasks = n_tasks};
    batch->n_submissions = s;
    enum oct_err e = OCT_OK;
    for (unsigned t = 0; t < n_tasks && !e; t++)
        e = write_share(batch, s, t, n_tasks, err);
    return e ? e : write_script(batch, s, script, err);
}
