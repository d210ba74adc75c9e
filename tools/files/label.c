/* label: shows and corrects whose eye recordings are of, and marks them; forgets who was behind a
 * pseudonym. */
#include "pipeline/volume/label.h"
#include "tools/commands.h"
#include "tools/dicom/identity.h"
#include "tools/dicom/queue.h"
#include "tools/picture_options.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct label_options {
    const char *eye, *pseudonym, *mark; /* NULL: as it is */
    bool json, forget;
};

static const struct oct_option options[] = {
    {"--eye", "OD|OS", "right or left, or none", OCT_OPTION_TEXT,
     .at = offsetof(struct label_options, eye), .words = "OD OS none"},
    {"--pseudonym", "TEXT", "who, never a patient's name; --pseudonym= empties it", OCT_OPTION_TEXT,
     .at = offsetof(struct label_options, pseudonym)},
    {"--mark", "M", "keep, repeat or none", OCT_OPTION_TEXT,
     .at = offsetof(struct label_options, mark), .words = "keep repeat none"},
    {"--forget", NULL,
     "remove who is behind these pseudonyms, or those of the files, from\n"
     "octctl's folder; says what else holds the person",
     OCT_OPTION_FLAG, .at = offsetof(struct label_options, forget)},
    {"--json", NULL, "print the labels as JSON", OCT_OPTION_FLAG,
     .at = offsetof(struct label_options, json)},
    {NULL},
};

/* Returns the exit status for a word that is none. */
static int read_change(const struct label_options *o, struct oct_volume_label_change *change,
                       enum oct_volume_mark *mark)
{
    *change = (struct oct_volume_label_change){.pseudonym = o->pseudonym};
    if (oct_picture_eye("label", o->eye, true, &change->eye))
        return 2;
    if (!o->mark)
        return 0;
    if (!*o->mark || !oct_volume_mark_of(o->mark, mark))
        return oct_command_misuse("label", "--mark %s: it is keep, repeat or none", o->mark);
    change->mark = mark;
    return 0;
}

static const char *or_dash(const char *text)
{
    return *text ? text : "-";
}

static void show_labels(const char *path, const struct oct_volume_label *label, cJSON *list)
{
    const char *const mark = label->mark ? oct_volume_mark_name(label->mark) : "";
    if (!list) {
        oct_command_put_name(stdout, path);
        printf(": eye %s, pseudonym %s, mark %s\n", or_dash(label->eye), or_dash(label->pseudonym),
               or_dash(mark));
        return;
    }
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "file", path);
    cJSON_AddStringToObject(o, "eye", label->eye);
    cJSON_AddStringToObject(o, "pseudonym", label->pseudonym);
    cJSON_AddStringToObject(o, "mark", mark);
    cJSON_AddItemToArray(list, o);
}

/* ---- forgetting ---- */

/* Recordings of the folder that have this pseudonym. */
static unsigned count_recordings(const char *folder, const char *pseudonym)
{
    char path[OCT_CONFIG_STRING_BYTES + 300];
    struct oct_volume_label label;
    unsigned n = 0;
    DIR *all = opendir(folder);
    for (struct dirent *entry; all && (entry = readdir(all));) {
        const char *end = strrchr(entry->d_name, '.');
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        n += end && strcmp(end, ".h5") == 0 && !oct_volume_label_read(path, &label, NULL) &&
             strcmp(label.pseudonym, pseudonym) == 0;
    }
    if (all)
        closedir(all);
    return n;
}

static void show_queued(const struct oct_config *config, const char *pseudonym)
{
    struct oct_queue queue;
    struct oct_queue_note *notes = NULL;
    unsigned n = 0;
    if (oct_queue_open(&queue, config, NULL) || oct_queue_list(&queue, &notes, &n, NULL))
        return;
    for (unsigned i = 0; i < n; i++)
        if (notes[i].bytes && strcmp(notes[i].pseudonym, pseudonym) == 0)
            printf("  %s waits for the archive: octctl archive drop removes it\n", notes[i].uid);
    free(notes);
}

static enum oct_err forget(const struct oct_config *config, const char *what, struct oct_error *err)
{
    struct oct_volume_label label = {.eye = ""};
    struct stat st;
    bool was_there;
    const bool is_file = stat(what, &st) == 0 && S_ISREG(st.st_mode);
    enum oct_err e = is_file ? oct_volume_label_read(what, &label, err) : OCT_OK;
    const char *pseudonym = is_file ? label.pseudonym : what;
    e = e ? e : oct_identity_forget(pseudonym, &was_there, err);
    if (e)
        return e;
    oct_command_put_name(stdout, pseudonym);
    printf(was_there ? ": who it is was removed\n" : ": nobody was known by it\n");
    show_queued(config, pseudonym);
    printf("  %u recordings in record.directory have the pseudonym, and no name; DICOM files that "
           "were exported or sent with --identity real have the name\n",
           count_recordings(config->record.directory, pseudonym));
    return OCT_OK;
}

static int forget_all(const struct oct_config *config, int argc, char **argv)
{
    struct oct_error err;
    int status = 0;
    for (int i = 1; i < argc; i++)
        if (forget(config, argv[i], &err))
            status = oct_command_fail(argv[0], &err);
    return status;
}

/* Goes on after a file that cannot be changed; the exit status is the worst. */
static int run_label(struct oct_config *config, int argc, char **argv)
{
    struct label_options o = {NULL};
    struct oct_volume_label_change change;
    struct oct_volume_label label;
    enum oct_volume_mark mark = OCT_MARK_NONE;
    struct oct_error err;
    int status = oct_options_read(&oct_command_label, &o, &argc, argv);
    if (!status)
        status = read_change(&o, &change, &mark);
    if (status)
        return status;
    const bool is_change = o.eye || o.pseudonym || o.mark;
    if (o.forget && (is_change || o.json))
        return oct_command_misuse(argv[0], "--forget stands alone");
    if (o.forget)
        return forget_all(config, argc, argv);
    cJSON *list = o.json ? cJSON_CreateArray() : NULL;
    for (int i = 1; i < argc; i++) {
        const enum oct_err e = is_change ? oct_volume_label_write(argv[i], &change, &label, &err)
                                         : oct_volume_label_read(argv[i], &label, &err);
        if (e == OCT_OK) {
            show_labels(argv[i], &label, list);
            continue;
        }
        const int failed = oct_command_fail(argv[0], &err);
        status = failed > status ? failed : status;
        if (e == OCT_E_ARG) /* the label itself will not do */
            break;
    }
    if (list)
        oct_command_print_json(list);
    cJSON_Delete(list);
    return status;
}

const struct oct_command oct_command_label = {
    .name = "label",
    .usage = "FILE.h5...|PSEUDONYM",
    .help = "shows or corrects the label of recordings: eye, pseudonym, mark",
    .options = options,
    .keys = "",
    .n_least = 1,
    .n_most = INT_MAX,
    .too_few = "of which file?",
    .run = run_label,
};
