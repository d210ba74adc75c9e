/* octctl batch: reconstructs many recordings by the tasks of a Slurm job array, tells what became
 * of them, and submits again what is left. All of a batch lies in the folder D/octctl-batch beside
 * the outputs:
 *
 *     manifest.json   recordings, their outputs and states; replaced as a whole
 *     octd.ini        the keys that --config and --set gave
 *     lock            held by the one octctl batch that works on it
 *     S.sbatch        the script of submission S = 1, 2, ...
 *     S-T.files       the recordings of its task T = 0, 1, ...: names, each ended by a NUL byte
 *     S-T.results     what became of them: written by the task and by octctl recon --results
 *     S-T.log         what the task printed
 *
 * Tasks write results and logs alone, so the manifest has one writer. What counts is the outputs:
 * each is whole or not there. Whether a task still runs, Slurm alone knows. */
#define _GNU_SOURCE /* realpath, getdelim */
#include "formats/whole_file.h"
#include "pipeline/base/utf8.h"
#include "tools/alloc.h"
#include "tools/commands.h"
#include "tools/files/recon.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_RECORDINGS 10000000u
#define FILES_A_TASK 16u /* unless the user says how many */
#define MOST_TASKS 1000u /* of Slurm's own MaxArraySize, 1001 */

enum state {
    TO_DO,   /* in no task that began */
    QUEUED,  /* its task waits or runs */
    DONE,    /* the output is there, and whole */
    FAILED,  /* octctl recon said why */
    MISSING, /* its task is gone, and left neither output nor reason: killed */
};
static const char *const states[] = {"todo", "queued", "done", "failed", "missing"};

struct item {
    cJSON *tree; /* its object of the manifest: the state, and why it failed or is missing */
    const char *in, *out; /* absolute, of the tree */
    enum state state;
    bool has_line; /* the result line of its newest task says done */
};

struct batch {
    char *out_dir, *folder; /* D and D/octctl-batch, absolute */
    cJSON *manifest, *submissions;
    struct item *items, **by_name; /* [n] in the order of the manifest, and sorted by `in` */
    unsigned n;
    char *queue; /* what squeue says, "JOB_TASK" a line; NULL: it is not asked yet */
    int lock;    /* -1: not held */
};

struct options {
    const char *folder, *list, *status, *resume;
    const char **sbatch; /* up to NULL */
    uint64_t tasks, files_a_task;
    bool dry_run, json;
};

static unsigned count(const struct batch *b, enum state state)
{
    unsigned n = 0;
    for (unsigned i = 0; i < b->n; i++)
        n += b->items[i].state == state;
    return n;
}

/* Neither done nor queued. */
static unsigned count_wanted(const struct batch *b)
{
    return b->n - count(b, DONE) - count(b, QUEUED);
}

static void free_batch(struct batch *b)
{
    cJSON_Delete(b->manifest);
    free(b->items);
    free(b->by_name);
    free(b->queue);
    free(b->folder);
    free(b->out_dir);
    if (b->lock >= 0)
        close(b->lock);
}

/* ---- its files ---- */

/* folder/NAME, printf-like. */
#define OF_BATCH(b, format, ...) oct_alloc_text("%s/" format, (b)->folder, __VA_ARGS__)

/* Begins a file of the batch, which oct_whole_file_end gives its name; frees `path`. */
static enum oct_err open_file(struct oct_whole_file *file, char *path, struct oct_error *err)
{
    const enum oct_err e = oct_whole_file_open(file, path, true, err);
    free(path);
    return e;
}

static enum oct_err take_lock(struct batch *b, struct oct_error *err)
{
    char *path = OF_BATCH(b, "%s", "lock");
    enum oct_err e = OCT_OK;
    b->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (b->lock < 0)
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s", path);
    else if (flock(b->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        e = oct_fail(err, OCT_E_STATE, "%s: another octctl batch works on it: try again later",
                     b->folder);
    free(path); /* a file system without locks: one user at a time */
    return e;
}

/* The keys that were given, so that tasks leave all others to each recording. */
static enum oct_err write_config(const struct batch *b, const struct oct_config *config,
                                 struct oct_error *err)
{
    struct oct_whole_file file;
    char section[64] = "", key[128];
    enum oct_err e = open_file(&file, OF_BATCH(b, "%s", "octd.ini"), err);
    if (e)
        return e;
    char *all = oct_alloc_check(oct_config_text(config));
    for (char *line = all, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        end += *end == '\n';
        bool is_kept = sscanf(line, "[%60[^]]]", section) == 1;
        if (!is_kept && strchr("#;\n", *line) == NULL) {
            snprintf(key, sizeof(key), "%s.%.*s", section, (int)strcspn(line, " =\n"), line);
            is_kept = oct_config_is_set(config, key);
        }
        if (is_kept)
            fwrite(line, 1, (size_t)(end - line), file.stream);
    }
    free(all);
    return oct_whole_file_end(&file, OCT_OK, err);
}

/* ---- the manifest ---- */

static int compare(const void *a, const void *b)
{
    return strcmp((*(struct item *const *)a)->in, (*(struct item *const *)b)->in);
}

static bool is_submission(const cJSON *s)
{
    const char *job = oct_json_text(s, "job");
    const double n = oct_json_number(s, "tasks");
    return job && strlen(job) < 32 && strspn(job, "0123456789") == strlen(job) && n >= 1 &&
           n <= MOST_RECORDINGS;
}

/* False: it is no manifest of a batch. The batch deletes it in any case. */
static bool take_manifest(struct batch *b, cJSON *manifest)
{
    const cJSON *items = cJSON_GetObjectItemCaseSensitive(manifest, "recordings"), *s;
    cJSON *one;
    b->manifest = manifest;
    b->submissions = cJSON_GetObjectItemCaseSensitive(manifest, "submissions");
    const int n = cJSON_IsArray(items) ? cJSON_GetArraySize(items) : 0;
    bool is_good = n > 0 && cJSON_IsArray(b->submissions);
    cJSON_ArrayForEach(s, b->submissions) is_good = is_good && is_submission(s);
    if (!is_good)
        return false;
    b->items = oct_alloc((size_t)n, sizeof(*b->items));
    b->by_name = oct_alloc((size_t)n, sizeof(*b->by_name)); /* NOLINT(bugprone-sizeof-expression) */
    cJSON_ArrayForEach(one, items)
    {
        const char *in = oct_json_text(one, "in"), *out = oct_json_text(one, "out");
        if (!in || !out || in[0] != '/' || out[0] != '/')
            return false;
        b->items[b->n] = (struct item){.tree = one, .in = in, .out = out};
        b->by_name[b->n] = &b->items[b->n];
        b->n++;
    }
    qsort(b->by_name, b->n, sizeof(struct item *), compare);
    return true;
}

static enum oct_err save(const struct batch *b, struct oct_error *err)
{
    struct oct_whole_file file;
    enum oct_err e = open_file(&file, OF_BATCH(b, "%s", "manifest.json"), err);
    if (e)
        return e;
    char *text = cJSON_Print(b->manifest);
    fputs(text, file.stream);
    cJSON_free(text);
    return oct_whole_file_end(&file, OCT_OK, err);
}

static enum oct_err set_options(struct batch *b, const char *const *options, struct oct_error *err)
{
    cJSON *list = cJSON_CreateArray();
    if (!cJSON_ReplaceItemInObjectCaseSensitive(b->manifest, "sbatch", list))
        cJSON_AddItemToObject(b->manifest, "sbatch", list);
    for (; *options; options++) {
        if ((*options)[0] != '-' || strpbrk(*options, "\n\r\"\\"))
            return oct_fail(err, OCT_E_ARG,
                            "--sbatch '%s': needs an option of sbatch, as --time=60, without line "
                            "ends, double quotes and backslashes",
                            *options);
        cJSON_AddItemToArray(list, cJSON_CreateString(*options));
    }
    return OCT_OK;
}

static enum oct_err set_folders(struct batch *b, const char *out_dir, struct oct_error *err)
{
    b->out_dir = realpath(out_dir, NULL);
    if (!b->out_dir)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: no such folder", out_dir);
    b->folder = oct_alloc_text("%s/octctl-batch", b->out_dir);
    return OCT_OK;
}

/* Tasks run elsewhere: names are absolute. */
static enum oct_err make_manifest(struct batch *b, const struct oct_recon_names *names,
                                  const char *const *options, struct oct_error *err)
{
    cJSON *tree = b->manifest = cJSON_CreateObject();
    cJSON_AddNumberToObject(tree, "version", 1);
    cJSON_AddStringToObject(tree, "command", "recon");
    cJSON_AddStringToObject(tree, "out_dir", b->out_dir);
    cJSON_AddArrayToObject(tree, "sbatch");
    cJSON_AddArrayToObject(tree, "submissions");
    cJSON *items = cJSON_AddArrayToObject(tree, "recordings");
    char *here = oct_alloc_check(getcwd(NULL, 0));
    enum oct_err e = set_options(b, options, err);
    for (unsigned i = 0; i < names->n && !e; i++) {
        const char *name = names->in[i];
        if (access(name, R_OK) != 0)
            e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot open", name);
        char *in =
            name[0] == '/' ? oct_alloc_text("%s", name) : oct_alloc_text("%s/%s", here, name);
        char *out = oct_alloc_text("%s%s", b->out_dir, strrchr(names->out[i], '/'));
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "in", in);
        cJSON_AddStringToObject(item, "out", out);
        cJSON_AddStringToObject(item, "state", states[TO_DO]);
        cJSON_AddItemToArray(items, item);
        free(in);
        free(out);
    }
    free(here);
    take_manifest(b, tree);
    return e;
}

/* A new batch: makes D and its folder, and writes octd.ini. */
static enum oct_err create(struct batch *b, const struct oct_recon_names *names,
                           const struct options *given, const struct oct_config *config,
                           struct oct_error *err)
{
    struct stat st;
    enum oct_err e;
    if ((e = oct_recon_make_folder(given->folder, err)) ||
        (e = set_folders(b, given->folder, err)) ||
        (e = make_manifest(b, names, given->sbatch, err)) ||
        (e = oct_recon_make_folder(b->folder, err)) || (e = take_lock(b, err)))
        return e;
    char *path = OF_BATCH(b, "%s", "manifest.json");
    const bool is_there = lstat(path, &st) == 0;
    free(path);
    if (is_there)
        return oct_fail(err, OCT_E_STATE,
                        "%s: has a batch already: see octctl batch --status, go on with --resume, "
                        "or remove %s",
                        b->out_dir, b->folder);
    return write_config(b, config, err);
}

static enum oct_err load(struct batch *b, const char *out_dir, struct oct_error *err)
{
    char *text = NULL;
    size_t room = 0;
    enum oct_err e = set_folders(b, out_dir, err);
    if (e)
        return e;
    char *path = OF_BATCH(b, "%s", "manifest.json");
    FILE *file = fopen(path, "re");
    if (!file)
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: holds no batch: %s", out_dir, path);
    else if (!(e = take_lock(b, err)) &&
             (getdelim(&text, &room, '\0', file) < 0 || !take_manifest(b, cJSON_Parse(text))))
        e = oct_fail(err, OCT_E_FORMAT, "%s: is no manifest of a batch", path);
    if (file)
        fclose(file);
    free(text);
    free(path);
    return e;
}

/* ---- Slurm ---- */

static bool has_slurm(void)
{
    return system("command -v sbatch >/dev/null 2>&1") == 0; /* NOLINT(cert-env33-c): constant */
}

/* Quotes a text for the shell; malloc'd. */
static char *quoted(const char *text)
{
    char *all = oct_alloc(4 * strlen(text) + 3, 1), *at = all;
    *at++ = '\'';
    for (; *text; text++)
        at = *text == '\'' ? stpcpy(at, "'\\''") : (*at = *text, at + 1);
    *at = '\'';
    return all;
}

/* Runs a line of the shell; *text is what it printed, or NULL on error. */
static enum oct_err run_program(const char *name, const char *line, char **text,
                                struct oct_error *err)
{
    size_t room = 1;
    *text = oct_alloc(room, 1);
    FILE *pipe = popen(line, "re"); /* NOLINT(cert-env33-c): texts of the user's are quoted */
    if (!pipe)
        return oct_fail_errno(err, OCT_E_BACKEND, errno, "%s", name);
    if (getdelim(text, &room, '\0', pipe) < 0)
        (*text)[0] = '\0';
    if (pclose(pipe) == 0)
        return OCT_OK;
    (*text)[strcspn(*text, "\n")] = '\0';
    const enum oct_err e = oct_fail(err, OCT_E_BACKEND, "%s: %s", name, *text);
    free(*text);
    *text = NULL;
    return e;
}

/* sbatch --parsable prints "JOB" or "JOB;CLUSTER", and may print warnings before. */
static enum oct_err submit_script(cJSON *submission, const char *script, struct oct_error *err)
{
    char *path = quoted(script), *line = oct_alloc_text("sbatch --parsable %s 2>&1", path), *text;
    enum oct_err e = run_program("sbatch", line, &text, err);
    free(path);
    free(line);
    if (e)
        return e;
    for (size_t n = strlen(text); n > 0 && text[n - 1] == '\n';)
        text[--n] = '\0';
    char *last = strrchr(text, '\n');
    last = last ? last + 1 : text;
    const size_t n_digits = strspn(last, "0123456789");
    if (n_digits == 0 || n_digits >= 32) {
        e = oct_fail(err, OCT_E_BACKEND, "sbatch: says no number of a job: %s", last);
    } else {
        last[n_digits] = '\0';
        cJSON_SetValuestring(cJSON_GetObjectItemCaseSensitive(submission, "job"), last);
    }
    free(text);
    return e;
}

/* ---- what became of the recordings ---- */

/* The recordings of a task, and its state. */
struct share {
    struct item **items; /* [n]; NULL: the manifest does not name it */
    unsigned n;
    char job[80]; /* "12_3" that began it last; "": none has */
    bool has_ended;
    int status; /* then */
};

static void set_state(struct item *item, enum state state, const char *why)
{
    item->state = state;
    item->has_line = state == DONE;
    cJSON_ReplaceItemInObjectCaseSensitive(item->tree, "state", cJSON_CreateString(states[state]));
    cJSON_DeleteItemFromObjectCaseSensitive(item->tree, "why");
    if (why && *why) /* a file said it */
        oct_utf8_make_line(cJSON_AddStringToObject(item->tree, "why", why)->valuestring);
}

/* "begin JOB_TASK HOST", "end STATUS", or a line of octctl recon --results. */
static void take_line(struct share *share, const char *line)
{
    char word[16] = "";
    unsigned i;
    int at = 0;
    if (sscanf(line, "begin %79s", share->job) == 1)
        share->has_ended = false;
    else if (sscanf(line, "end %d", &share->status) == 1)
        share->has_ended = true;
    else if (sscanf(line, "%u %15s %n", &i, word, &at) < 2 || i >= share->n || !share->items[i])
        return; /* of a task that was killed while it wrote */
    else if (strcmp(word, "failed") == 0)
        set_state(share->items[i], FAILED, line + at);
    else if (strcmp(word, "done") == 0 || strcmp(word, "skipped") == 0)
        set_state(share->items[i], DONE, NULL);
}

static struct item *find_recording(const struct batch *b, const char *in)
{
    const struct item key = {.in = in}, *const at = &key;
    struct item **found = bsearch(&at, b->by_name, b->n, sizeof(struct item *), compare);
    return found ? *found : NULL;
}

/* The recordings of task t, which all begin anew in a later submission, and what it wrote of them.
 */
static enum oct_err read_share(struct share *share, const struct batch *b, unsigned s, unsigned t,
                               struct oct_error *err)
{
    char *files = OF_BATCH(b, "%u-%u.files", s, t), *results = OF_BATCH(b, "%u-%u.results", s, t);
    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen(files, "re");
    enum oct_err e =
        file ? OCT_OK : oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be read", files);
    while (file && getdelim(&line, &room, '\0', file) > 0) {
        share->items = oct_alloc_more(share->items, share->n + 1, sizeof(struct item *));
        share->items[share->n] = find_recording(b, line);
        if (share->items[share->n])
            set_state(share->items[share->n], TO_DO, NULL);
        share->n++;
    }
    if (file)
        fclose(file);
    if (!e && !(file = fopen(results, "re")) && errno != ENOENT)
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be read", results);
    while (!e && file && getline(&line, &room, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        take_line(share, line);
    }
    if (!e && file)
        fclose(file);
    free(line);
    free(files);
    free(results);
    return e;
}

/* "12_3" in a line of its own. */
static bool is_queued(const char *queue, const char *job)
{
    const size_t n = strlen(job);
    for (const char *at = queue; n && (at = strstr(at, job)); at += n)
        if ((at == queue || at[-1] == '\n') && (at[n] == '\n' || at[n] == '\0'))
            return true;
    return false;
}

static bool is_todo(const struct item *item)
{
    return item && item->state == TO_DO;
}

/* Decides on the recordings of which their task says nothing. Slurm is asked once, and only where a
 * task is not known to have ended. */
static enum oct_err decide_open(struct batch *b, const struct share *share, const char *job,
                                unsigned t, struct oct_error *err)
{
    char task[80], why[96] = "";
    unsigned n_open = 0;
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < share->n; i++)
        n_open += is_todo(share->items[i]);
    if (n_open == 0 || (!job[0] && !share->job[0]))
        return OCT_OK;
    if (!share->has_ended && !b->queue) {
        if (has_slurm())
            e = run_program("squeue", "squeue --me --noheader --array --format=%i 2>&1", &b->queue,
                            err);
        else
            b->queue = oct_alloc(1, 1); /* nothing was submitted from here */
        if (e)
            return e;
    }
    snprintf(task, sizeof(task), "%.31s_%u", job, t);
    const bool waits = !share->has_ended &&
                       ((job[0] && is_queued(b->queue, task)) || is_queued(b->queue, share->job));
    if (share->has_ended)
        snprintf(why, sizeof(why), "its task ended with status %d", share->status);
    for (unsigned i = 0; i < share->n; i++)
        if (is_todo(share->items[i]))
            set_state(share->items[i], waits ? QUEUED : MISSING, why);
    return OCT_OK;
}

/* An output under its name is whole. That of a recording which no task has booked may be another
 * program's, or be damaged. */
static void look_at_output(struct item *item)
{
    const bool is_there = access(item->out, F_OK) == 0;
    if (is_there && (item->has_line || oct_recon_is_there(item->out)))
        set_state(item, DONE, NULL);
    else if (item->state == DONE)
        set_state(item, MISSING, is_there ? NULL : "its output was removed");
}

/* Finds the state of each recording, from outputs, results and Slurm's queue. */
static enum oct_err find_states(struct batch *b, struct oct_error *err)
{
    const cJSON *submission;
    unsigned s = 0;
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < b->n; i++)
        set_state(&b->items[i], TO_DO, NULL);
    cJSON_ArrayForEach(submission, b->submissions)
    {
        s++;
        for (unsigned t = 0; t < oct_json_number(submission, "tasks") && !e; t++) {
            struct share share = {0};
            e = read_share(&share, b, s, t, err);
            e = e ? e : decide_open(b, &share, oct_json_text(submission, "job"), t, err);
            free(share.items);
        }
    }
    for (unsigned i = 0; i < b->n && !e; i++)
        look_at_output(&b->items[i]);
    return e;
}

/* ---- a submission ---- */

/* What a killed octctl recon wrote beside the output: PATH.new.PID, PATH.new.PID.part. Its task is
 * gone. */
static void remove_left(const char *out)
{
    const size_t n = strlen(out);
    char *pattern = oct_alloc(2 * n + 16, 1), *at = pattern;
    glob_t found;
    for (const char *c = out; *c; c++) {
        if (strchr("*?[\\", *c))
            *at++ = '\\';
        *at++ = *c;
    }
    memcpy(at, ".new.[0-9]*", sizeof(".new.[0-9]*"));
    if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            const char *end = found.gl_pathv[i] + n + strlen(".new.");
            end += strspn(end, "0123456789");
            if (*end == '\0' || strcmp(end, ".part") == 0)
                unlink(found.gl_pathv[i]);
        }
        globfree(&found);
    }
    free(pattern);
}

/* The wanted recording k goes to task k % n_tasks, so that neighbours, which are alike, are spread.
 */
static enum oct_err write_share(const struct batch *b, unsigned s, unsigned t, unsigned n_tasks,
                                struct oct_error *err)
{
    struct oct_whole_file file;
    unsigned k = 0;
    enum oct_err e = open_file(&file, OF_BATCH(b, "%u-%u.files", s, t), err);
    if (e)
        return e;
    for (unsigned i = 0; i < b->n; i++) {
        const struct item *item = &b->items[i];
        if (item->state != DONE && item->state != QUEUED && k++ % n_tasks == t) {
            fwrite(item->in, 1, strlen(item->in) + 1, file.stream);
            remove_left(item->out);
        }
    }
    return oct_whole_file_end(&file, OCT_OK, err);
}

static const char script_tail[] =
    "share=$batch/$submission-$SLURM_ARRAY_TASK_ID\n"
    "exec >\"$share.log\" 2>&1\n"
    "printf 'begin %s_%s %s\\n' \"$SLURM_ARRAY_JOB_ID\" \"$SLURM_ARRAY_TASK_ID\" \"$(hostname)\" "
    ">>\"$share.results\"\n"
    "set --\n" /* as many threads as Slurm gave cores, unless the user said how many */
    "grep -q '^threads = ' \"$batch/octd.ini\" ||\n"
    "    set -- --set \"pipeline.threads=${SLURM_CPUS_PER_TASK:-${SLURM_CPUS_ON_NODE:-0}}\"\n"
    "\"${OCTCTL:-$octctl}\" --config \"$batch/octd.ini\" \"$@\" recon \\\n"
    "    --files0-from \"$share.files\" --out-dir \"$out_dir\" --skip-existing \\\n"
    "    --results \"$share.results\"\n"
    "status=$?\n"
    "printf 'end %s\\n' \"$status\" >>\"$share.results\"\n"
    "exit \"$status\"\n";

static enum oct_err write_script(const struct batch *b, const char *path, unsigned s,
                                 unsigned n_tasks, struct oct_error *err)
{
    struct oct_whole_file file;
    const cJSON *option;
    const enum oct_err e = oct_whole_file_open(&file, path, true, err);
    if (e)
        return e;
    fprintf(file.stream,
            "#!/bin/bash\n"
            "#SBATCH --job-name=octctl-recon\n"
            "#SBATCH --array=0-%u\n"
            "#SBATCH --output=/dev/null\n",
            n_tasks - 1);
    cJSON_ArrayForEach(option, cJSON_GetObjectItemCaseSensitive(b->manifest, "sbatch"))
        fprintf(file.stream, "#SBATCH \"%s\"\n", cJSON_IsString(option) ? option->valuestring : "");
    char *self = realpath("/proc/self/exe", NULL);
    if (!self)
        return oct_whole_file_end(
            &file, oct_fail_errno(err, OCT_E_IO, errno, "/proc/self/exe: cannot be read"), err);
    char *octctl = quoted(self), *out_dir = quoted(b->out_dir), *folder = quoted(b->folder);
    fprintf(file.stream, "octctl=%s\nout_dir=%s\nbatch=%s\nsubmission=%u\n%s", octctl, out_dir,
            folder, s, script_tail);
    free(self);
    free(octctl);
    free(out_dir);
    free(folder);
    return oct_whole_file_end(&file, OCT_OK, err);
}

static unsigned count_tasks(unsigned n_wanted, const struct options *given)
{
    const uint64_t each = given->files_a_task ? given->files_a_task : FILES_A_TASK;
    uint64_t tasks = given->tasks ? given->tasks : (n_wanted + each - 1) / each;
    if (!given->tasks && !given->files_a_task && tasks > MOST_TASKS)
        tasks = MOST_TASKS;
    return tasks < n_wanted ? (unsigned)tasks : n_wanted;
}

static void print_counts(const struct batch *b)
{
    printf("%s: %u recordings: %u done, %u failed, %u missing, %u queued, %u to do\n", b->out_dir,
           b->n, count(b, DONE), count(b, FAILED), count(b, MISSING), count(b, QUEUED),
           count(b, TO_DO));
}

/* Submits what is left. The manifest names the submission before Slurm has it, and the job as soon
 * as it is known. */
static enum oct_err submit(struct batch *b, const struct options *given, struct oct_error *err)
{
    const unsigned n_tasks = count_tasks(count_wanted(b), given);
    const unsigned s = (unsigned)cJSON_GetArraySize(b->submissions) + 1;
    enum oct_err e = OCT_OK;
    print_counts(b);
    if (n_tasks == 0)
        return save(b, err);
    cJSON *submission = cJSON_CreateObject();
    cJSON_AddNumberToObject(submission, "tasks", n_tasks);
    cJSON_AddStringToObject(submission, "job", "");
    cJSON_AddItemToArray(b->submissions, submission);
    for (unsigned t = 0; t < n_tasks && !e; t++)
        e = write_share(b, s, t, n_tasks, err);
    char *script = OF_BATCH(b, "%u.sbatch", s);
    e = e ? e : write_script(b, script, s, n_tasks, err);
    e = e ? e : save(b, err);
    if (!e && given->dry_run)
        printf("%s: %u tasks, not submitted\n", script, n_tasks);
    else if (!e && !(e = submit_script(submission, script, err)) && !(e = save(b, err)))
        printf("%s: %u tasks, submitted as job %s\n", script, n_tasks,
               oct_json_text(submission, "job"));
    free(script);
    return e;
}

/* ---- the command ---- */

/* Most reasons begin with the recording, which the line has named already. */
static const char *without_name(const char *why, const char *in)
{
    struct oct_error name; /* as messages show it */
    oct_fail(&name, OCT_OK, "%s: ", in);
    const size_t n = strlen(name.text);
    return strncmp(why, name.text, n) == 0 ? why + n : why;
}

static void print_state(const struct batch *b, enum state state)
{
    for (unsigned i = 0; i < b->n; i++) {
        const struct item *item = &b->items[i];
        const char *why = oct_json_text(item->tree, "why");
        if (item->state != state)
            continue;
        printf("%s ", states[state]);
        oct_command_put_name(stdout, item->in);
        printf("%s%s\n", why ? ": " : "", why ? without_name(why, item->in) : "");
    }
}

/* Returns the exit status. */
static int report_states(const struct batch *b, bool as_json)
{
    if (as_json) {
        oct_command_print_json(b->manifest);
    } else {
        print_counts(b);
        print_state(b, FAILED);
        print_state(b, MISSING);
    }
    return count(b, DONE) != b->n;
}

static int begin_batch(const struct oct_config *config, const struct options *given, int argc,
                       char **argv)
{
    struct oct_recon_names names;
    struct batch batch = {.lock = -1};
    struct oct_error err;
    enum oct_err e = oct_recon_names_init(&names, (const char *const *)argv + 1,
                                          (unsigned)(argc - 1), given->list, given->folder, &err);
    e = e ? e : create(&batch, &names, given, config, &err);
    e = e ? e : find_states(&batch, &err);
    e = e ? e : submit(&batch, given, &err);
    free_batch(&batch);
    oct_recon_names_finish(&names);
    return e ? oct_command_fail(argv[0], &err) : 0;
}

static int continue_batch(const struct options *given, const char *name)
{
    struct batch batch = {.lock = -1};
    struct oct_error err;
    int status = 0;
    enum oct_err e = load(&batch, given->status ? given->status : given->resume, &err);
    e = e ? e : find_states(&batch, &err);
    if (!e && given->status && !(e = save(&batch, &err)))
        status = report_states(&batch, given->json);
    if (!e && given->resume && given->sbatch[0])
        e = set_options(&batch, given->sbatch, &err);
    if (!e && given->resume)
        e = submit(&batch, given, &err);
    free_batch(&batch);
    return e ? oct_command_fail_at_work(name, &err) : status;
}

static const struct oct_option options[] = {
    {"--out-dir", "D",
     "of each recording NAME.* make D/NAME.h5; the batch's own files\nare in "
     "D/octctl-batch",
     OCT_OPTION_TEXT, .at = offsetof(struct options, folder), .words = OCT_WORDS_FOLDERS},
    {"--files0-from", "FILE",
     "more recordings: their names, each ended by a NUL byte\n(find -print0); -: standard input",
     OCT_OPTION_TEXT, .at = offsetof(struct options, list)},
    {"--tasks", "N", "tasks of the job array", OCT_OPTION_COUNT,
     .at = offsetof(struct options, tasks), .least = 1, .most = 1e6},
    {"--files-per-task", "K", "recordings a task (16; more where that makes over 1000 tasks)",
     OCT_OPTION_COUNT, .at = offsetof(struct options, files_a_task), .least = 1, .most = 1e6},
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

static int run_batch(struct oct_config *config, int argc, char **argv)
{
    struct options given = {.sbatch = oct_alloc((size_t)argc + 1, sizeof(char *))};
    struct oct_error err;
    int status = oct_options_read(&oct_command_batch, &given, &argc, argv);
    const char *misuse = status ? NULL : find_misuse(&given, argc - 1);
    if (misuse) {
        status = oct_command_misuse(argv[0], "%s", misuse);
    } else if (!status && !given.status && !given.dry_run && !has_slurm()) {
        oct_fail(&err, OCT_E_BACKEND,
                 "sbatch is not in PATH: work on a machine of a Slurm cluster, or --dry-run to "
                 "write the script alone");
        status = oct_command_fail(argv[0], &err);
    } else if (!status) {
        status = given.status || given.resume ? continue_batch(&given, argv[0])
                                              : begin_batch(config, &given, argc, argv);
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
    .run = run_batch,
};
