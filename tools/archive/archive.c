/* octctl archive PART: into the queue, what is in it, out of it. archive_run.c empties it. */
#include "config/apply.h"
#include "formats/contents.h"
#include "formats/whole_file.h"
#include "pipeline/volume/volume.h"
#include "tools/alloc.h"
#include "tools/commands.h"
#include "tools/dicom/queue.h"
#include "tools/files/export.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

/* An instance that is made, and is not in the queue yet. */
struct incoming {
    char path[OCT_CONFIG_STRING_BYTES];
    struct oct_queue_note note;
};

static void name_incoming(const struct oct_queue *queue, struct incoming *i, unsigned number)
{
    char id[40];
    snprintf(id, sizeof(id), "incoming.%ld.%u", (long)getpid(), number);
    oct_queue_path(queue, id, ".dcm", i->path);
}

/* Returns the exit status, once it has said what happened, or added it to the list. */
static int put_in_queue(struct oct_queue *queue, struct incoming *i, const char *command,
                        const char *from, cJSON *list)
{
    struct oct_queue_note *note = &i->note;
    struct oct_error err;
    bool is_new = false;
    if (oct_queue_add(queue, i->path, note, &is_new, &err))
        return oct_command_fail_at_work(command, &err);
    if (list) {
        cJSON *o = describe(note);
        cJSON_AddStringToObject(o, "file", from);
        cJSON_AddBoolToObject(o, "new", is_new);
        cJSON_AddItemToArray(list, o);
        return 0;
    }
    oct_command_put_name(stdout, from);
    printf(": %s, %s: %s\n", note->what, note->uid,
           is_new       ? "waits for the archive (octctl archive run)"
           : note->done ? "the archive has it already"
                        : "waits already");
    return 0;
}

static int send_one(struct oct_queue *queue, const struct oct_config *config, const char *name,
                    const struct oct_export_given *given, const char *path, cJSON *list)
{
    struct incoming i = {.note.what = "file"};
    struct oct_error err;
    int status = 0;
    name_incoming(queue, &i, 0);
    if (!is_dicom(path))
        status =
            oct_export_as_dicom(name, config, given, path, i.path, i.note.pseudonym, i.note.what);
    else if (copy_file(path, i.path, &err))
        status = oct_command_fail_at_work(name, &err);
    status = status ? status : put_in_queue(queue, &i, name, path, list);
    unlink(i.path);
    return status;
}

typedef int one_sender(struct oct_queue *queue, const struct oct_config *config, const char *name,
                       const struct oct_export_given *given, const char *path, cJSON *list);

/* Puts what each name stands for into the queue. */
static int send_all(const struct oct_command *command, struct oct_config *config, int argc,
                    char **argv, one_sender *send)
{
    struct oct_export_given given = {.force = true};
    struct oct_queue queue;
    struct oct_error err;
    int status = oct_options_read(command, &given, &argc, argv);
    if (status)
        return status;
    given.force = true;
    umask(0077);
    if (oct_queue_open(&queue, config, &err))
        return oct_command_fail(argv[0], &err);
    cJSON *list = given.json ? cJSON_CreateArray() : NULL;
    for (int i = 1; i < argc; i++) {
        const int failed = send(&queue, config, argv[0], &given, argv[i], list);
        status = failed > status ? failed : status;
    }
    if (list)
        oct_command_print_json(list);
    cJSON_Delete(list);
    return status;
}

static int run_send(struct oct_config *config, int argc, char **argv)
{
    return send_all(&oct_command_archive_send, config, argc, argv, send_one);
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

/* ---- exam ---- */

/* Runs octctl report in a child, for what a command takes in memory goes with its process. */
static int make_report(struct incoming *i, const struct oct_config *config,
                       const struct oct_export_given *given, const char *from)
{
    const char *words[12] = {"report", "--to", "dicom", "--force"};
    struct oct_config of_child = *config;
    int n = 4, ended = 0;
    if (given->identity) {
        words[n++] = "--identity";
        words[n++] = given->identity;
    }
    if (given->eye) {
        words[n++] = "--eye";
        words[n++] = given->eye;
    }
    words[n++] = from;
    words[n++] = i->path;
    fflush(NULL);
    const pid_t parent = getpid(), child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent || !freopen("/dev/null", "we", stdout))
            _exit(1);
        const int status = oct_command_report.run(&of_child, n, (char **)words);
        fflush(NULL);
        _exit(status);
    }
    while (child > 0 && waitpid(child, &ended, 0) < 0 && errno == EINTR)
        ;
    snprintf(i->note.what, sizeof(i->note.what), "report");
    if (child > 0 && WIFEXITED(ended))
        return WEXITSTATUS(ended);
    struct oct_error err;
    oct_fail(&err, OCT_E_IO, "%s: octctl report ended: %s", from,
             child > 0 ? strsignal(WTERMSIG(ended)) : strerror(errno));
    return oct_command_fail_at_work("archive exam", &err);
}

#define AVERAGE "analysis/average"
#define ANGIOGRAM "analysis/angiogram"
#define MOST_DATASETS 3u

/* The length of the first axis of a dataset; 0: there is none. */
static uint64_t n_of(const struct oct_contents *contents, const char *name)
{
    for (unsigned i = 0; i < contents->n; i++)
        if (strcmp(contents->datasets[i].name.text + 1, name) == 0)
            return contents->datasets[i].dims[0];
    return 0;
}

/* Whether all B-scans lie at one place, as the recording's own configuration says. */
static bool is_of_one_place(const char *path)
{
    struct oct_volume_reader *reader;
    struct oct_config *its = oct_alloc(1, sizeof(*its));
    bool is_one = false;
    oct_config_init(its);
    if (oct_volume_open(&reader, path, NULL) == OCT_OK) {
        const char *text = oct_volume_config_text(reader);
        if (text && oct_config_load_text(its, text, path, NULL) == OCT_OK) {
            const struct oct_scan scan = oct_config_way(its);
            is_one = oct_scan_is_one_place(&scan);
        }
        oct_volume_reader_destroy(reader);
    }
    free(its);
    return is_one;
}

/* Which datasets make an exam. Of several B-scans at each place the average stands for them, and
 * the angiogram is the picture from above: no length leads from one B-scan to the next. A line and
 * a circle have no picture from above. */
static unsigned choose_datasets(const char *path, const char *datasets[MOST_DATASETS])
{
    struct oct_contents contents;
    unsigned n = 0;
    oct_contents_look(&contents, path, NULL); /* of another format: it holds none of these */
    const uint64_t n_bscans = n_of(&contents, "bscans"), n_places = n_of(&contents, ANGIOGRAM);
    datasets[n++] = n_places && n_places < n_bscans ? AVERAGE : "bscans";
    if (n_bscans != 1 && !is_of_one_place(path) && !(n_places && n_places < n_bscans))
        datasets[n++] = "enface";
    if (n_places)
        datasets[n++] = ANGIOGRAM;
    oct_contents_finish(&contents);
    return n;
}

/* B-scans, pictures from above and the page; all are made before the first of them is queued. */
static int send_exam(struct oct_queue *queue, const struct oct_config *config, const char *name,
                     const struct oct_export_given *given, const char *path, cJSON *list)
{
    const char *datasets[MOST_DATASETS];
    const unsigned n = choose_datasets(path, datasets);
    struct incoming all[MOST_DATASETS + 1];
    struct oct_export_given part = *given;
    int status = 0;
    for (unsigned i = 0; i <= n; i++) {
        all[i] = (struct incoming){.path = ""};
        name_incoming(queue, &all[i], i);
    }
    for (unsigned i = 0; i < n && !status; i++) {
        part.dataset = datasets[i];
        status = oct_export_as_dicom(name, config, &part, path, all[i].path, all[i].note.pseudonym,
                                     all[i].note.what);
    }
    memcpy(all[n].note.pseudonym, all[0].note.pseudonym, sizeof(all[n].note.pseudonym));
    status = status ? status : make_report(&all[n], config, given, path);
    for (unsigned i = 0; i <= n && !status; i++)
        status = put_in_queue(queue, &all[i], name, path, list);
    for (unsigned i = 0; i <= n; i++)
        unlink(all[i].path);
    return status;
}

static int run_exam(struct oct_config *config, int argc, char **argv)
{
    return send_all(&oct_command_archive_exam, config, argc, argv, send_exam);
}

#define AT(member) .at = offsetof(struct oct_export_given, member)
static const struct oct_option exam_options[] = {
    {"--eye", "OD|OS", "of a recording that does not say it", OCT_OPTION_TEXT, AT(eye),
     .words = "OD OS"},
    {"--identity", "masked|real", "the pseudonym alone and no date, or who it is, and when",
     OCT_OPTION_TEXT, AT(identity), .words = "masked real"},
    {"--pixel-um", "D[,L[,B]]", "as of export, where the recording does not say them",
     OCT_OPTION_TEXT, AT(pixel_um)},
    {"--json", NULL, "print what is in the queue of it as JSON", OCT_OPTION_FLAG, AT(json)},
    {NULL},
};

const struct oct_command oct_command_archive_exam = {
    .name = "archive exam",
    .usage = "IN...",
    .help = "puts recordings into the queue: B-scans, pictures from above, report",
    .options = exam_options,
    .n_least = 1,
    .n_most = INT_MAX,
    .too_few = "which recording?",
    .run = run_exam,
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
    &oct_command_archive_send,
    &oct_command_archive_exam,
    &oct_command_archive_run,
    &oct_command_archive_status,
    &oct_command_archive_retry,
    &oct_command_archive_drop,
    NULL,
};

static int run_archive(struct oct_config *config, int argc, char **argv)
{
    const struct oct_command *part = oct_command_part(&oct_command_archive, argv[1]);
    char name[40];
    if (argc < 2)
        return oct_command_misuse(argv[0], "send, exam, run, status, retry or drop?");
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
