/* What became of the recordings of a batch: their outputs, what tasks wrote, Slurm's queue. */
#include "pipeline/base/err.h"
#include "pipeline/base/utf8.h"
#include "tools/files/batch.h"
#include "tools/files/recon_many.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The recordings by name. */
struct entry {
    const char *in;
    struct oct_batch_item *item;
};
struct index {
    struct entry *by_name; /* [n] */
    unsigned n;
};

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->in, ((const struct entry *)b)->in);
}

static struct oct_batch_item *find(const struct index *index, const char *in)
{
    const struct entry key = {.in = in};
    const struct entry *found =
        bsearch(&key, index->by_name, index->n, sizeof(*index->by_name), compare);
    return found ? found->item : NULL;
}

/* A task's share, and how it stands. */
struct share {
    struct oct_batch_item **items; /* [n] */
    unsigned n;
    char job[80]; /* "12_3" that began it last; "": none has */
    bool has_ended;
    int status; /* then */
};

static void set_state(struct oct_batch_item *item, enum oct_batch_state state, const char *why)
{
    free(item->why);
    item->why = why && *why ? strdup(why) : NULL;
    if (item->why)
        oct_utf8_make_line(item->why); /* a file said it */
    item->state = state;
    item->has_line = state == OCT_BATCH_DONE;
}

/* ---- what a task wrote ---- */

/* "begin JOB_TASK HOST", "end STATUS", or a line of octctl recon --results. */
static void take_line(struct share *share, char *line)
{
    char word[16] = "";
    unsigned i;
    int at = 0;
    if (sscanf(line, "begin %79s", share->job) == 1) {
        share->has_ended = false;
        return;
    }
    if (sscanf(line, "end %d", &share->status) == 1) {
        share->has_ended = true;
        return;
    }
    if (sscanf(line, "%u %15s %n", &i, word, &at) < 2 || i >= share->n || !share->items[i])
        return; /* of a task that was killed while it wrote */
    if (strcmp(word, "failed") == 0)
        set_state(share->items[i], OCT_BATCH_FAILED, line + at);
    else if (strcmp(word, "done") == 0 || strcmp(word, "skipped") == 0)
        set_state(share->items[i], OCT_BATCH_DONE, NULL);
}

static enum oct_err read_results(struct share *share, const char *path, struct oct_error *err)
{
    char *text = NULL;
    size_t bytes;
    if (access(path, F_OK) != 0)
        return OCT_OK; /* it has not begun */
    enum oct_err e = oct_recon_names_read(&text, &bytes, path, err);
    if (e || !text)
        return e;
    for (char *line = text, *end; line; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        if (end)
            *end = '\0';
        take_line(share, line);
    }
    free(text);
    return OCT_OK;
}

/* The recordings of the share; one that the manifest does not name stays NULL. */
static enum oct_err read_share(struct share *share, const struct index *index, const char *path,
                               struct oct_error *err)
{
    char *text;
    size_t bytes;
    enum oct_err e = oct_recon_names_read(&text, &bytes, path, err);
    if (e)
        return e;
    share->items = calloc(bytes + 1, sizeof(struct oct_batch_item *));
    for (size_t at = 0; share->items && at < bytes; at += strlen(text + at) + 1)
        share->items[share->n++] = find(index, text + at);
    free(text);
    return share->items ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the batch");
}

/* ---- how it stands ---- */

/* Slurm is asked once, and only where a task is not known to have ended. */
struct queue {
    char *text; /* NULL: not asked yet */
};

/* "12_3" in a line of its own. */
static bool is_queued(const char *queue, const char *job)
{
    const size_t n = strlen(job);
    for (const char *at = queue; n && (at = strstr(at, job)); at += n)
        if ((at == queue || at[-1] == '\n') && (at[n] == '\n' || at[n] == '\0'))
            return true;
    return false;
}

static bool is_open(const struct share *share)
{
    for (unsigned i = 0; i < share->n; i++)
        if (share->items[i] && share->items[i]->state == OCT_BATCH_TODO)
            return true;
    return false;
}

/* Of the recordings whose task says nothing of them. */
static enum oct_err judge(const struct share *share, const struct oct_batch_submission *submission,
                          unsigned task, struct queue *queue, struct oct_error *err)
{
    char job[80], why[96] = "";
    snprintf(job, sizeof(job), "%.31s_%u", submission->job, task);
    const bool began = submission->job[0] || share->job[0];
    enum oct_err e = OCT_OK;
    if (!began || !is_open(share))
        return OCT_OK;
    if (!share->has_ended && !queue->text && (e = oct_batch_queue(&queue->text, err)))
        return e;
    const bool waits = !share->has_ended && ((submission->job[0] && is_queued(queue->text, job)) ||
                                             is_queued(queue->text, share->job));
    if (share->has_ended)
        snprintf(why, sizeof(why), "its task ended with status %d", share->status);
    for (unsigned i = 0; i < share->n; i++) {
        struct oct_batch_item *item = share->items[i];
        if (item && item->state == OCT_BATCH_TODO)
            set_state(item, waits ? OCT_BATCH_QUEUED : OCT_BATCH_MISSING, why);
    }
    return OCT_OK;
}

/* A later submission has the last word: all of its recordings begin anew. */
static enum oct_err look_at_task(struct oct_batch *batch, const struct index *index, unsigned s,
                                 unsigned task, struct queue *queue, struct oct_error *err)
{
    struct share share = {0};
    char *files = oct_batch_share(batch, s, task, "files");
    char *results = oct_batch_share(batch, s, task, "results");
    enum oct_err e = OCT_E_NO_MEMORY;
    if (files && results)
        e = read_share(&share, index, files, err);
    else
        oct_fail(err, e, "out of memory for the batch");
    for (unsigned i = 0; i < share.n && !e; i++)
        if (share.items[i])
            set_state(share.items[i], OCT_BATCH_TODO, NULL);
    if (!e)
        e = read_results(&share, results, err);
    if (!e)
        e = judge(&share, &batch->submissions[s - 1], task, queue, err);
    free(share.items);
    free(files);
    free(results);
    return e;
}

/* An output under its name is whole. That of a recording which no task has booked may be another
 * program's, or be damaged. */
static void look_at_output(struct oct_batch_item *item)
{
    const bool is_there = access(item->out, F_OK) == 0;
    if (is_there && (item->has_line || oct_recon_is_there(item->out)))
        set_state(item, OCT_BATCH_DONE, NULL);
    else if (item->state == OCT_BATCH_DONE)
        set_state(item, OCT_BATCH_MISSING, is_there ? NULL : "its output was removed");
}

enum oct_err oct_batch_look(struct oct_batch *batch, struct oct_error *err)
{
    struct index index = {calloc(batch->n, sizeof(*index.by_name)), batch->n};
    struct queue queue = {0};
    enum oct_err e = OCT_OK;
    if (!index.by_name)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the batch");
    for (unsigned i = 0; i < batch->n; i++) {
        index.by_name[i] = (struct entry){batch->items[i].in, &batch->items[i]};
        set_state(&batch->items[i], OCT_BATCH_TODO, NULL);
    }
    qsort(index.by_name, index.n, sizeof(*index.by_name), compare);
    for (unsigned s = 1; s <= batch->n_submissions && !e; s++)
        for (unsigned t = 0; t < batch->submissions[s - 1].n_tasks && !e; t++)
            e = look_at_task(batch, &index, s, t, &queue, err);
    for (unsigned i = 0; i < batch->n && !e; i++)
        look_at_output(&batch->items[i]);
    free(queue.text);
    free(index.by_name);
    return e;
}
