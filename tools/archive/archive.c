/* octctl archive PART: into the queue, what is in it, out of it. archive_run.c empties it. */
#include "formats/whole_file.h"
#include "tools/commands.h"
#include "tools/dicom/queue.h"
#include "tools/files/export.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what is said of an instance ---- */

static void add_time(cJSON *object, const char *name, time_t t)
{
    char text[40];
    struct tm at;
    if (!t || !gmtime_r(&t, &at))
        return;
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &at);
    cJSON_AddStringToObject(object, name, text);
}

static cJSON *describe(const struct oct_queue_note *note)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "uid", note->uid);
    cJSON_AddStringToObject(o, "pseudonym", note->pseudonym);
    cJSON_AddStringToObject(o, "what", note->what);
    cJSON_AddStringToObject(o, "state", note->state);
    cJSON_AddNumberToObject(o, "bytes", (double)note->bytes);
    cJSON_AddNumberToObject(o, "tries", note->tries);
    cJSON_AddStringToObject(o, "reason", note->reason);
    add_time(o, "since", note->since);
    add_time(o, "next", note->next);
    add_time(o, "done", note->done);
    return o;
}

/* ---- send ---- */

/* Whether the file is DICOM already. */
static bool is_dicom(const char *path)
{
    unsigned char start[132] = {0};
    FILE *file = fopen(path, "rbe");
    const bool is = file && fread(start, 1, sizeof(start), file) == sizeof(start) &&
                    memcmp(start + 128, "DICM", 4) == 0;
    if (file)
        fclose(file);
    return is;
}

static enum oct_err copy_file(const char *from, const char *to, struct oct_error *err)
{
    char bytes[65536];
    size_t n;
    struct oct_whole_file out;
    FILE *in = fopen(from, "rbe");
    if (!in)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s", from);
    enum oct_err e = oct_whole_file_open(&out, to, true, err);
    if (!e) {
        while (!e && (n = fread(bytes, 1, sizeof(bytes), in)) > 0)
            e = oct_whole_file_put(&out, bytes, n, err);
        if (!e && ferror(in))
            e = oct_fail_errno(err, OCT_E_IO, errno, "%s", from);
        e = oct_whole_file_end(&out, e, err);
    }
    fclose(in);
    return e;
}

/* Returns the exit status, once it has said what happened, or added it to the list. */
static int send_one(struct oct_queue *queue, const struct oct_config *config, const char *name,
                    const struct oct_export_given *given, const char *path, cJSON *list)
{
    struct oct_queue_note note = {.what = "file"};
    struct oct_error err;
    char incoming[OCT_CONFIG_STRING_BYTES], id[40];
    bool is_new = false;
    enum oct_err e = OCT_OK;
    int status = 0;
    snprintf(id, sizeof(id), "incoming.%ld", (long)getpid());
    oct_queue_path(queue, id, ".dcm", incoming);
    if (is_dicom(path))
        e = copy_file(path, incoming, &err);
    else
        status =
            oct_export_as_dicom(name, config, given, path, incoming, note.pseudonym, note.what);
    if (!status && !e)
        e = oct_queue_add(queue, incoming, &note, &is_new, &err);
    if (status || e)
        unlink(incoming);
    if (e)
        status = oct_command_fail_at_work(name, &err);
    if (status)
        return status;
    if (given->json) {
        cJSON *o = describe(&note);
        cJSON_AddStringToObject(o, "file", path);
        cJSON_AddBoolToObject(o, "new", is_new);
        cJSON_AddItemToArray(list, o);
        return 0;
    }
    oct_command_put_name(stdout, path);
    printf(": %s, %s: %s\n", note.what, note.uid,
           is_new      ? "waits for the archive (octctl archive run)"
           : note.done ? "the archive has it already"
                       : "waits already");
    return 0;
}

static int run_send(struct oct_config *config, int argc, char **argv)
{
    struct oct_export_given given = {.force = true};
    struct oct_queue queue;
    struct oct_error err;
    int status = oct_options_read(&oct_command_archive_send, &given, &argc, argv);
    if (status)
        return status;
    given.force = true;
    umask(0077);
    if (oct_queue_open(&queue, config, &err))
        return oct_command_fail(argv[0], &err);
    cJSON *list = cJSON_CreateArray();
    for (int i = 1; i < argc; i++) {
        const int failed = send_one(&queue, config, argv[0], &given, argv[i], list);
        status = failed > status ? failed : status;
    }
    if (given.json)
        oct_command_print_json(list);
    cJSON_Delete(list);
    return status;
}

const struct oct_command oct_command_archive_send = {
    .name = "archive send",
    .usage = "FILE...",
    .help = "puts recordings, as export --to dicom makes them, and DICOM files into the queue",
    .options = oct_export_options + OCT_EXPORT_OPTIONS_OF_DICOM,
    .n_least = 1,
    .n_most = INT_MAX,
    .too_few = "which file?",
    .run = run_send,
};

/* ---- status ---- */

struct showing {
    bool json;
};

static const struct oct_option show_options[] = {
    {"--json", NULL, "as JSON", OCT_OPTION_FLAG, .at = offsetof(struct showing, json)},
    {NULL},
};

static void print_note(const struct oct_queue_note *note)
{
    printf("%-8s %s  %s", note->state, note->uid, note->what);
    if (note->pseudonym[0])
        printf(" of %s", note->pseudonym);
    if (!note->done && note->tries)
        printf(", tried %u time%s: %s", note->tries, note->tries == 1 ? "" : "s", note->reason);
    printf("\n");
}

static int run_status(struct oct_config *config, int argc, char **argv)
{
    struct showing o = {false};
    struct oct_queue queue;
    struct oct_queue_note *notes = NULL;
    struct oct_error err;
    unsigned n = 0, n_waiting = 0;
    int sender = -1;
    const int status = oct_options_read(&oct_command_archive_status, &o, &argc, argv);
    if (status)
        return status;
    if (oct_queue_open(&queue, config, &err) || oct_queue_list(&queue, &notes, &n, &err))
        return oct_command_fail(argv[0], &err);
    const bool is_running = oct_queue_be_sender(&queue, &sender, NULL) == OCT_E_STATE;
    if (sender >= 0)
        close(sender);
    cJSON *all = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(all, "instances");
    for (unsigned i = 0; i < n; i++) {
        n_waiting += !notes[i].done;
        cJSON_AddItemToArray(list, describe(&notes[i]));
        if (!o.json)
            print_note(&notes[i]);
    }
    cJSON_AddBoolToObject(all, "running", is_running);
    cJSON_AddStringToObject(all, "archive", config->dicom.archive);
    cJSON_AddNumberToObject(all, "waiting", n_waiting);
    if (o.json)
        oct_command_print_json(all);
    else
        printf("%u waiting, %u arrived; octctl archive run is %srunning\n", n_waiting,
               n - n_waiting, is_running ? "" : "not ");
    cJSON_Delete(all);
    free(notes);
    return 0;
}

const struct oct_command oct_command_archive_status = {
    .name = "archive status",
    .usage = "",
    .help = "what waits and what has arrived: sent (the archive said so) or stored (it was asked)",
    .options = show_options,
    .words = OCT_WORDS_NONE,
    .run = run_status,
};

/* ---- retry, drop ---- */

static enum oct_err retry_one(struct oct_queue *queue, const char *uid, struct oct_error *err)
{
    struct oct_queue_note note;
    enum oct_err e = oct_queue_lock(queue, err);
    e = e ? e : oct_queue_read(queue, uid, &note, err);
    if (!e && !note.done) {
        note.next = 0;
        e = oct_queue_write(queue, &note, err);
    }
    oct_queue_unlock(queue);
    return e;
}

/* Of these instances, or of all. */
static int run_each(const struct oct_command *command, struct oct_config *config, int argc,
                    char **argv,
                    enum oct_err (*each)(struct oct_queue *, const char *, struct oct_error *))
{
    struct oct_queue queue;
    struct oct_queue_note *notes = NULL;
    struct oct_error err;
    unsigned n = 0;
    int status = oct_options_read(command, NULL, &argc, argv);
    if (status)
        return status;
    umask(0077);
    if (oct_queue_open(&queue, config, &err) ||
        (argc < 2 && oct_queue_list(&queue, &notes, &n, &err)))
        return oct_command_fail(argv[0], &err);
    n = argc > 1 ? (unsigned)argc - 1 : n;
    for (unsigned i = 0; i < n; i++)
        if (each(&queue, notes ? notes[i].uid : argv[i + 1], &err))
            status = oct_command_fail(argv[0], &err);
    free(notes);
    return status;
}

static int run_retry(struct oct_config *config, int argc, char **argv)
{
    return run_each(&oct_command_archive_retry, config, argc, argv, retry_one);
}

const struct oct_command oct_command_archive_retry = {
    .name = "archive retry",
    .usage = "[UID...]",
    .help = "tries these now, or all that wait",
    .n_most = INT_MAX,
    .words = OCT_WORDS_NONE,
    .run = run_retry,
};

static int run_drop(struct oct_config *config, int argc, char **argv)
{
    return run_each(&oct_command_archive_drop, config, argc, argv, oct_queue_drop);
}

const struct oct_command oct_command_archive_drop = {
    .name = "archive drop",
    .usage = "UID...",
    .help = "takes these out of the queue, sent or not",
    .n_least = 1,
    .n_most = INT_MAX,
    .too_few = "which one? octctl archive status lists them",
    .words = OCT_WORDS_NONE,
    .run = run_drop,
};

/* ---- archive ---- */

static const struct oct_command *const parts[] = {
    &oct_command_archive_send,  &oct_command_archive_run,  &oct_command_archive_status,
    &oct_command_archive_retry, &oct_command_archive_drop, NULL,
};

static int run_archive(struct oct_config *config, int argc, char **argv)
{
    const struct oct_command *part = oct_command_part(&oct_command_archive, argv[1]);
    char name[40];
    if (argc < 2)
        return oct_command_misuse(argv[0], "send, run, status, retry or drop?");
    if (!part)
        return oct_command_misuse(argv[0], "'%s' is no part of it", argv[1]);
    snprintf(name, sizeof(name), "%s", part->name);
    argv[1] = name;
    return part->run(config, argc - 1, argv + 1);
}

const struct oct_command oct_command_archive = {
    .name = "archive",
    .usage = "PART ...",
    .help = "sends to the hospital's archive (DICOM), by a queue on disk",
    .parts = parts,
    .run = run_archive,
};
