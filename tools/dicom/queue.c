#define _GNU_SOURCE /* flock, TEMP_FAILURE_RETRY */
#include "tools/dicom/queue.h"

#include "formats/dicom_texts.h"
#include "formats/whole_file.h"
#include "pipeline/base/folder.h"
#include "pipeline/base/utf8.h"
#include "tools/alloc.h"
#include "tools/dicom/identity.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_NOTE_BYTES 4096
#define HALF_DONE_S 3600        /* after which nobody goes on with it */
#define KEPT_S (30 * 24 * 3600) /* the note of what has arrived */

void oct_queue_path(const struct oct_queue *queue, const char *uid, const char *end,
                    char path[OCT_CONFIG_STRING_BYTES])
{
    snprintf(path, OCT_CONFIG_STRING_BYTES, "%.900s/%.80s%.20s", queue->folder, uid, end);
}

enum oct_err oct_queue_open(struct oct_queue *queue, const struct oct_config *config,
                            struct oct_error *err)
{
    struct stat st;
    queue->lock = -1;
    if (!config->dicom.queue[0])
        return oct_state_folder("queue", queue->folder, err);
    snprintf(queue->folder, sizeof(queue->folder), "%s", config->dicom.queue);
    if (mkdir(queue->folder, 0700) != 0 && errno != EEXIST)
        return oct_fail_errno(err, OCT_E_IO, errno, "dicom.queue: %s: cannot be made",
                              queue->folder);
    if (strlen(queue->folder) > 900)
        return oct_fail(err, OCT_E_CONFIG, "dicom.queue: the name is too long");
    if (stat(queue->folder, &st) != 0 || !S_ISDIR(st.st_mode))
        return oct_fail(err, OCT_E_IO, "dicom.queue: %s: is no folder", queue->folder);
    return oct_folder_sync_parent(queue->folder, err);
}

static enum oct_err take_lock(const struct oct_queue *queue, const char *name, int how, int *fd,
                              struct oct_error *err)
{
    char path[OCT_CONFIG_STRING_BYTES];
    oct_queue_path(queue, name, "", path);
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (*fd < 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s", path);
    if (TEMP_FAILURE_RETRY(flock(*fd, how)) == 0)
        return OCT_OK;
    const int errnum = errno;
    close(*fd);
    *fd = -1;
    return errnum == EWOULDBLOCK
               ? oct_fail(err, OCT_E_STATE, "%s: another process sends from here", queue->folder)
               : oct_fail_errno(err, OCT_E_IO, errnum, "%s", path);
}

enum oct_err oct_queue_lock(struct oct_queue *queue, struct oct_error *err)
{
    return take_lock(queue, ".notes", LOCK_EX, &queue->lock, err);
}

void oct_queue_unlock(struct oct_queue *queue)
{
    if (queue->lock >= 0)
        close(queue->lock);
    queue->lock = -1;
}

enum oct_err oct_queue_be_sender(const struct oct_queue *queue, int *fd, struct oct_error *err)
{
    return take_lock(queue, ".sender", LOCK_EX | LOCK_NB, fd, err);
}

/* ---- notes ---- */

static bool is_uid(const char *text)
{
    const size_t n = strspn(text, "0123456789.");
    return n >= 1 && n <= 64 && !text[n] && text[0] != '.';
}

static const struct {
    const char *name;
    size_t at, bytes;
} texts[] = {
#define TEXT(member)                                                                               \
    {                                                                                              \
#member, offsetof(struct oct_queue_note, member),                                          \
            sizeof(((struct oct_queue_note *)0)->member)                                           \
    }
    TEXT(pseudonym),
    TEXT(what),
    TEXT(state),
    TEXT(reason),
};
#define N_TEXTS (sizeof(texts) / sizeof(texts[0]))

static double number(const cJSON *all, const char *key)
{
    const double x = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(all, key));
    return x >= 0 && x < 1e15 ? x : 0;
}

enum oct_err oct_queue_read(const struct oct_queue *queue, const char *uid,
                            struct oct_queue_note *note, struct oct_error *err)
{
    char path[OCT_CONFIG_STRING_BYTES], text[MOST_NOTE_BYTES];
    struct stat st;
    *note = (struct oct_queue_note){.state = "waiting"};
    oct_queue_path(queue, uid, ".json", path);
    FILE *file = is_uid(uid) ? fopen(path, "rbe") : NULL;
    if (!file)
        return oct_fail(err, OCT_E_STATE, "'%.80s' is not in %s", uid, queue->folder);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    snprintf(note->uid, sizeof(note->uid), "%s", uid);
    cJSON *all = cJSON_Parse(text); /* NULL: somebody has written into it: it is still waiting */
    for (size_t i = 0; i < N_TEXTS; i++) {
        const char *is = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(all, texts[i].name));
        if (is)
            snprintf((char *)note + texts[i].at, texts[i].bytes, "%s", is);
        oct_utf8_make_line((char *)note + texts[i].at);
    }
    note->since = (time_t)number(all, "since");
    note->next = (time_t)number(all, "next");
    note->done = (time_t)number(all, "done");
    note->tries = (unsigned)fmin(number(all, "tries"), 1e9);
    cJSON_Delete(all);
    oct_queue_path(queue, uid, ".dcm", path);
    note->bytes = stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
    return OCT_OK;
}

enum oct_err oct_queue_write(const struct oct_queue *queue, const struct oct_queue_note *note,
                             struct oct_error *err)
{
    char path[OCT_CONFIG_STRING_BYTES];
    struct oct_whole_file file;
    oct_queue_path(queue, note->uid, ".json", path);
    enum oct_err e = oct_whole_file_open(&file, path, true, err);
    if (e)
        return e;
    cJSON *all = cJSON_CreateObject();
    for (size_t i = 0; i < N_TEXTS; i++)
        cJSON_AddStringToObject(all, texts[i].name, (const char *)note + texts[i].at);
    cJSON_AddNumberToObject(all, "since", (double)note->since);
    cJSON_AddNumberToObject(all, "next", (double)note->next);
    cJSON_AddNumberToObject(all, "done", (double)note->done);
    cJSON_AddNumberToObject(all, "tries", note->tries);
    char *text = cJSON_PrintUnformatted(all);
    e = oct_whole_file_put(&file, text, strlen(text), err);
    cJSON_free(text);
    cJSON_Delete(all);
    return oct_whole_file_end(&file, e, err);
}

static int by_time(const void *a, const void *b)
{
    const struct oct_queue_note *x = a, *y = b;
    return x->since != y->since ? (x->since > y->since) - (x->since < y->since)
                                : strcmp(x->uid, y->uid);
}

/* "UID.json"; uid has room for 65. */
static bool uid_of_note(const char *name, char *uid)
{
    const size_t n = strlen(name);
    if (n < 6 || n > 64 + 5 || strcmp(name + n - 5, ".json") != 0)
        return false;
    snprintf(uid, 65, "%.*s", (int)(n - 5), name);
    return is_uid(uid);
}

enum oct_err oct_queue_list(const struct oct_queue *queue, struct oct_queue_note **notes,
                            unsigned *n, struct oct_error *err)
{
    size_t room = 0;
    char uid[65];
    *notes = NULL;
    *n = 0;
    DIR *folder = opendir(queue->folder);
    if (!folder)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s", queue->folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        struct oct_queue_note note;
        if (!uid_of_note(entry->d_name, uid) || oct_queue_read(queue, uid, &note, NULL))
            continue;
        *notes = oct_alloc_room(*notes, &room, *n + 1u, sizeof(**notes));
        (*notes)[(*n)++] = note;
    }
    closedir(folder);
    if (*n)
        qsort(*notes, *n, sizeof(**notes), by_time);
    return OCT_OK;
}

/* ---- instances ---- */

enum oct_err oct_queue_add(struct oct_queue *queue, const char *path, struct oct_queue_note *note,
                           bool *is_new, struct oct_error *err)
{
    char uid[66] = "", to[OCT_CONFIG_STRING_BYTES];
    const struct oct_dicom_text text = {0x00080018, 0, uid, sizeof(uid)};
    struct oct_queue_note old;
    enum oct_err e = oct_dicom_texts_read(path, &text, 1, NULL, err);
    *is_new = false;
    if (!e && !is_uid(uid))
        e = oct_fail(err, OCT_E_FORMAT, "no SOP Instance UID: nothing that an archive takes");
    e = e ? e : oct_queue_lock(queue, err);
    if (e)
        return e;
    oct_queue_path(queue, uid, ".dcm", to);
    if (!oct_queue_read(queue, uid, &old, NULL) && (old.done || old.bytes)) {
        *note = old;
        unlink(path);
    } else {
        snprintf(note->uid, sizeof(note->uid), "%s", uid);
        snprintf(note->state, sizeof(note->state), "waiting");
        note->since = time(NULL);
        e = oct_queue_write(queue, note, err);
        if (!e && rename(path, to) != 0)
            e = oct_fail_errno(err, OCT_E_IO, errno, "%s", to);
        e = e ? e : oct_folder_sync(queue->folder, err);
        *is_new = !e;
    }
    oct_queue_unlock(queue);
    return e;
}

enum oct_err oct_queue_drop(struct oct_queue *queue, const char *uid, struct oct_error *err)
{
    struct oct_queue_note note;
    char path[OCT_CONFIG_STRING_BYTES];
    enum oct_err e = oct_queue_lock(queue, err);
    e = e ? e : oct_queue_read(queue, uid, &note, err);
    for (unsigned i = 0; i < 2 && !e; i++) {
        oct_queue_path(queue, uid, i ? ".json" : ".dcm", path);
        if (unlink(path) != 0 && errno != ENOENT)
            e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be removed", path);
    }
    e = e ? e : oct_folder_sync(queue->folder, err);
    oct_queue_unlock(queue);
    return e;
}

/* A note of what arrived long ago, or what was begun under a name of ours and nobody finishes. */
static bool is_over(const struct oct_queue *queue, const char *name, const char *path, time_t now)
{
    struct oct_queue_note note;
    struct stat st;
    char uid[65];
    if (stat(path, &st) != 0)
        return false;
    const bool is_old = now - st.st_mtime > HALF_DONE_S;
    if (uid_of_note(name, uid) && !oct_queue_read(queue, uid, &note, NULL))
        return note.done ? now - note.done > KEPT_S : !note.bytes && is_old;
    return is_old && (strncmp(name, "incoming.", 9) == 0 ||
                      (strstr(name, ".json.new.") && name[0] >= '0' && name[0] <= '9'));
}

void oct_queue_tidy(struct oct_queue *queue)
{
    char path[OCT_CONFIG_STRING_BYTES + 300];
    DIR *folder = oct_queue_lock(queue, NULL) ? NULL : opendir(queue->folder);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        snprintf(path, sizeof(path), "%s/%s", queue->folder, entry->d_name);
        if (is_over(queue, entry->d_name, path, time(NULL)))
            unlink(path);
    }
    if (folder)
        closedir(folder);
    oct_queue_unlock(queue);
}
