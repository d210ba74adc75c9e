#define _GNU_SOURCE /* realpath */
#include "tools/files/batch.h"

#include "formats/whole_file.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "octctl-batch"
#define MOST_RECORDINGS 10000000u

const char *const oct_batch_states[OCT_BATCH_N_STATES] = {"todo", "queued", "done", "failed",
                                                          "missing"};

static enum oct_err no_memory(struct oct_error *err)
{
    return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the batch");
}

static char *joined(const char *folder, const char *name)
{
    const size_t n = strlen(folder) + strlen(name) + 2;
    char *path = malloc(n);
    if (path)
        snprintf(path, n, "%s/%s", folder, name);
    return path;
}

/* Of a name that need not exist: from the working folder on. */
static char *absolute(const char *path)
{
    char here[PATH_MAX];
    if (path[0] == '/')
        return strdup(path);
    return getcwd(here, sizeof(here)) ? joined(here, path) : NULL;
}

/* ---- its own files ---- */

enum oct_err oct_batch_write(const char *path, const char *bytes, size_t n, struct oct_error *err)
{
    struct oct_whole_file file;
    enum oct_err e = oct_whole_file_init(&file, path, true, err);
    if (e)
        return e;
    FILE *out = fopen(file.work, "we");
    const bool is_written = out && fwrite(bytes, 1, n, out) == n;
    if ((out && fclose(out) != 0) || !is_written) {
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", path);
        oct_whole_file_discard(&file);
        return e;
    }
    return oct_whole_file_publish(&file, err);
}

char *oct_batch_share(const struct oct_batch *batch, unsigned submission, unsigned task,
                      const char *suffix)
{
    char name[64];
    snprintf(name, sizeof(name), "%u-%u.%s", submission, task, suffix);
    return joined(batch->folder, name);
}

static enum oct_err take_lock(struct oct_batch *batch, struct oct_error *err)
{
    char *path = joined(batch->folder, "lock");
    if (!path)
        return no_memory(err);
    batch->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    enum oct_err e = OCT_OK;
    if (batch->lock < 0)
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s", path);
    else if (flock(batch->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        e = oct_fail(err, OCT_E_STATE, "%s: another octctl batch works on it: try again later",
                     batch->folder);
    free(path); /* a file system without locks: one user at a time */
    return e;
}

/* The keys that were given, so that tasks leave all others to each recording. */
static enum oct_err write_config(const struct oct_batch *batch, const struct oct_config *config,
                                 struct oct_error *err)
{
    char *all = oct_config_text(config), *path = joined(batch->folder, "octd.ini");
    char section[64] = "", key[128];
    size_t n = 0;
    enum oct_err e = OCT_E_NO_MEMORY;
    /* What is kept moves to the front of the same text. */
    for (char *line = all, *end; line && *line; line = end) {
        end = line + strcspn(line, "\n");
        end += *end == '\n';
        const size_t bytes = (size_t)(end - line);
        bool is_kept = sscanf(line, "[%60[^]]]", section) == 1;
        if (!is_kept && strchr("#;\n", *line) == NULL) {
            snprintf(key, sizeof(key), "%s.%.*s", section, (int)strcspn(line, " =\n"), line);
            is_kept = oct_config_is_set(config, key);
        }
        if (is_kept) {
            memmove(all + n, line, bytes);
            n += bytes;
        }
    }
    if (all && path)
        e = oct_batch_write(path, all, n, err);
    else
        no_memory(err);
    free(all);
    free(path);
    return e;
}

/* ---- the manifest ---- */

static cJSON *item_tree(const struct oct_batch_item *item)
{
    cJSON *tree = cJSON_CreateObject();
    cJSON_AddStringToObject(tree, "in", item->in);
    cJSON_AddStringToObject(tree, "out", item->out);
    cJSON_AddStringToObject(tree, "state", oct_batch_states[item->state]);
    if (item->why)
        cJSON_AddStringToObject(tree, "why", item->why);
    return tree;
}

static cJSON *submission_tree(const struct oct_batch_submission *submission)
{
    cJSON *tree = cJSON_CreateObject();
    cJSON_AddNumberToObject(tree, "tasks", submission->n_tasks);
    cJSON_AddStringToObject(tree, "job", submission->job);
    return tree;
}

cJSON *oct_batch_tree(const struct oct_batch *batch)
{
    cJSON *tree = cJSON_CreateObject();
    cJSON_AddNumberToObject(tree, "version", 1);
    cJSON_AddStringToObject(tree, "command", "recon");
    cJSON_AddStringToObject(tree, "out_dir", batch->out_dir);
    cJSON *options = cJSON_AddArrayToObject(tree, "sbatch");
    for (unsigned i = 0; i < batch->n_options; i++)
        cJSON_AddItemToArray(options, cJSON_CreateString(batch->options[i]));
    cJSON *submissions = cJSON_AddArrayToObject(tree, "submissions");
    for (unsigned i = 0; i < batch->n_submissions; i++)
        cJSON_AddItemToArray(submissions, submission_tree(&batch->submissions[i]));
    cJSON *items = cJSON_AddArrayToObject(tree, "recordings");
    bool is_whole = options && submissions && items;
    for (unsigned i = 0; i < batch->n && is_whole; i++)
        is_whole = cJSON_AddItemToArray(items, item_tree(&batch->items[i]));
    if (is_whole)
        return tree;
    cJSON_Delete(tree);
    return NULL;
}

enum oct_err oct_batch_save(const struct oct_batch *batch, struct oct_error *err)
{
    cJSON *tree = oct_batch_tree(batch);
    char *text = tree ? cJSON_Print(tree) : NULL, *path = joined(batch->folder, "manifest.json");
    enum oct_err e = text && path ? oct_batch_write(path, text, strlen(text), err) : no_memory(err);
    cJSON_free(text);
    cJSON_Delete(tree);
    free(path);
    return e;
}

static const char *text_of(const cJSON *object, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static bool read_item(struct oct_batch_item *item, const cJSON *tree)
{
    const char *in = text_of(tree, "in"), *out = text_of(tree, "out"), *why = text_of(tree, "why");
    if (!in || !out || in[0] != '/' || out[0] != '/')
        return false;
    *item = (struct oct_batch_item){
        .in = strdup(in), .out = strdup(out), .why = why ? strdup(why) : NULL};
    return item->in && item->out && (!why || item->why);
}

/* "job" goes into file names nowhere, but is compared with what squeue says: digits alone. */
static bool read_submission(struct oct_batch_submission *s, const cJSON *tree)
{
    const char *job = text_of(tree, "job");
    const double n = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(tree, "tasks"));
    if (!job || strlen(job) >= sizeof(s->job) || strspn(job, "0123456789") != strlen(job) ||
        !(n >= 1 && n <= MOST_RECORDINGS))
        return false;
    s->n_tasks = (unsigned)n;
    snprintf(s->job, sizeof(s->job), "%s", job);
    return true;
}

/* Room for one more of each, which a batch of none needs too. */
static bool read_lists(struct oct_batch *batch, const cJSON *tree)
{
    const cJSON *items = cJSON_GetObjectItemCaseSensitive(tree, "recordings"), *one;
    const cJSON *submissions = cJSON_GetObjectItemCaseSensitive(tree, "submissions");
    const cJSON *options = cJSON_GetObjectItemCaseSensitive(tree, "sbatch");
    batch->items = calloc((size_t)cJSON_GetArraySize(items) + 1, sizeof(*batch->items));
    batch->submissions =
        calloc((size_t)cJSON_GetArraySize(submissions) + 1, sizeof(*batch->submissions));
    batch->options = calloc((size_t)cJSON_GetArraySize(options) + 1, sizeof(char *));
    bool is_good = batch->items && batch->submissions && batch->options && cJSON_IsArray(items);
    for (one = items ? items->child : NULL; one && is_good; one = one->next)
        is_good = read_item(&batch->items[batch->n++], one);
    for (one = submissions ? submissions->child : NULL; one && is_good; one = one->next)
        is_good = read_submission(&batch->submissions[batch->n_submissions++], one);
    for (one = options ? options->child : NULL; one && is_good; one = one->next) {
        batch->options[batch->n_options] = strdup(cJSON_IsString(one) ? one->valuestring : "");
        is_good = batch->options[batch->n_options++] != NULL;
    }
    return is_good && batch->n > 0;
}

/* ---- life ---- */

void oct_batch_finish(struct oct_batch *batch)
{
    for (unsigned i = 0; i < batch->n; i++) {
        free(batch->items[i].in);
        free(batch->items[i].out);
        free(batch->items[i].why);
    }
    for (unsigned i = 0; i < batch->n_options; i++)
        free(batch->options[i]);
    free(batch->items);
    free(batch->submissions);
    free(batch->options);
    free(batch->folder);
    free(batch->out_dir);
    if (batch->lock >= 0)
        close(batch->lock);
    *batch = (struct oct_batch){.lock = -1};
}

enum oct_err oct_batch_set_options(struct oct_batch *batch, const char *const *options,
                                   struct oct_error *err)
{
    unsigned n = 0;
    while (options[n])
        n++;
    for (unsigned i = 0; i < batch->n_options; i++)
        free(batch->options[i]);
    free(batch->options);
    batch->n_options = 0;
    batch->options = calloc(n + 1, sizeof(*batch->options));
    for (unsigned i = 0; i < n && batch->options; i++) {
        if (options[i][0] != '-' || strpbrk(options[i], "\n\r\"\\"))
            return oct_fail(err, OCT_E_ARG,
                            "--sbatch '%s': needs an option of sbatch, as --time=60, without line "
                            "ends, double quotes and backslashes",
                            options[i]);
        batch->options[i] = strdup(options[i]);
        if (!batch->options[i])
            return no_memory(err);
        batch->n_options++;
    }
    return batch->options ? OCT_OK : no_memory(err);
}

static enum oct_err set_folders(struct oct_batch *batch, const char *out_dir, struct oct_error *err)
{
    *batch = (struct oct_batch){.lock = -1};
    batch->out_dir = realpath(out_dir, NULL);
    if (!batch->out_dir)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: no such folder", out_dir);
    batch->folder = joined(batch->out_dir, FOLDER);
    return batch->folder ? OCT_OK : no_memory(err);
}

/* Tasks run elsewhere: names are absolute. */
static enum oct_err add_items(struct oct_batch *batch, const struct oct_recon_names *names,
                              struct oct_error *err)
{
    batch->items = calloc(names->n, sizeof(*batch->items));
    if (names->n > MOST_RECORDINGS || !batch->items)
        return no_memory(err);
    for (; batch->n < names->n; batch->n++) {
        struct oct_batch_item *item = &batch->items[batch->n];
        const char *out = names->out[batch->n];
        if (access(names->in[batch->n], R_OK) != 0)
            return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot open", names->in[batch->n]);
        item->in = absolute(names->in[batch->n]);
        item->out = joined(batch->out_dir, strrchr(out, '/') + 1);
        if (!item->in || !item->out) {
            free(item->in);
            free(item->out);
            return no_memory(err);
        }
    }
    return OCT_OK;
}

static enum oct_err make(struct oct_batch *batch, const struct oct_config *config,
                         struct oct_error *err)
{
    struct stat st;
    enum oct_err e = oct_recon_names_make_folder(batch->folder, err);
    if (e || (e = take_lock(batch, err)))
        return e;
    char *manifest = joined(batch->folder, "manifest.json");
    if (!manifest)
        return no_memory(err);
    if (lstat(manifest, &st) == 0)
        e = oct_fail(err, OCT_E_STATE,
                     "%s: has a batch already: see octctl batch --status, go on with --resume, or "
                     "remove %s",
                     batch->out_dir, batch->folder);
    free(manifest);
    return e ? e : write_config(batch, config, err);
}

enum oct_err oct_batch_init(struct oct_batch *batch, const struct oct_recon_names *names,
                            const char *out_dir, const char *const *options,
                            const struct oct_config *config, struct oct_error *err)
{
    *batch = (struct oct_batch){.lock = -1};
    enum oct_err e = oct_recon_names_make_folder(out_dir, err);
    if (!e)
        e = set_folders(batch, out_dir, err);
    if (!e)
        e = oct_batch_set_options(batch, options, err);
    if (!e)
        e = add_items(batch, names, err);
    if (!e)
        e = make(batch, config, err);
    if (e)
        oct_batch_finish(batch);
    return e;
}

enum oct_err oct_batch_load(struct oct_batch *batch, const char *out_dir, struct oct_error *err)
{
    char *text = NULL;
    size_t bytes;
    enum oct_err e = set_folders(batch, out_dir, err);
    char *path = e ? NULL : joined(batch->folder, "manifest.json");
    if (!e && !path)
        e = no_memory(err);
    if (!e && access(path, R_OK) != 0)
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: holds no batch: %s", out_dir, path);
    if (!e)
        e = take_lock(batch, err);
    if (!e)
        e = oct_recon_names_read(&text, &bytes, path, err);
    if (!e) {
        cJSON *tree = cJSON_Parse(text);
        if (!tree || !read_lists(batch, tree))
            e = oct_fail(err, OCT_E_FORMAT, "%s: is no manifest of a batch", path);
        cJSON_Delete(tree);
    }
    if (e)
        oct_batch_finish(batch);
    free(text);
    free(path);
    return e;
}

unsigned oct_batch_count(const struct oct_batch *batch, enum oct_batch_state state)
{
    unsigned n = 0;
    for (unsigned i = 0; i < batch->n; i++)
        n += batch->items[i].state == state;
    return n;
}
