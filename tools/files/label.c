/* label: shows and corrects whose eye recordings are of, and marks them. */
#include "pipeline/volume/label.h"
#include "tools/commands.h"
#include "tools/picture_options.h"

#include <cjson/cJSON.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

struct label_options {
    const char *eye, *pseudonym, *mark; /* NULL: as it is */
    bool json;
};

static const struct oct_option options[] = {
    {"--eye", "OD|OS", "right or left, or none", OCT_OPTION_TEXT,
     .at = offsetof(struct label_options, eye), .words = "OD OS none"},
    {"--pseudonym", "TEXT", "who, never a patient's name; --pseudonym= empties it", OCT_OPTION_TEXT,
     .at = offsetof(struct label_options, pseudonym)},
    {"--mark", "M", "keep, repeat or none", OCT_OPTION_TEXT,
     .at = offsetof(struct label_options, mark), .words = "keep repeat none"},
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

/* Goes on after a file that cannot be changed; the exit status is the worst. */
static int run_label(struct oct_config *config, int argc, char **argv)
{
    struct label_options o = {NULL};
    struct oct_volume_label_change change;
    struct oct_volume_label label;
    enum oct_volume_mark mark = OCT_MARK_NONE;
    struct oct_error err;
    (void)config;
    int status = oct_options_read(&oct_command_label, &o, &argc, argv);
    if (!status)
        status = read_change(&o, &change, &mark);
    if (status)
        return status;
    const bool is_change = o.eye || o.pseudonym || o.mark;
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
    .usage = "FILE.h5...",
    .help = "shows or corrects the label of recordings: eye, pseudonym, mark",
    .options = options,
    .keys = "",
    .n_least = 1,
    .n_most = INT_MAX,
    .too_few = "of which file?",
    .run = run_label,
};
