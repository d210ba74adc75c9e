/* octctl worklist: the day's patients, and the pseudonym under which octd records one of them.
 * octctl identify: the same by hand. */
#define _DEFAULT_SOURCE /* getrandom */
#include "pipeline/base/sha256.h"
#include "tools/alloc.h"
#include "tools/commands.h"
#include "tools/control/wait.h"
#include "tools/dicom/identity.h"
#include "tools/dicom/peer.h"
#include "tools/interrupt.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#define STEP 0x00400100u
#define TIMEOUT_S 5.

/* An appointment. */
struct entry {
    struct oct_export_person person;
    char date[OCT_PERSON_BYTES], time[OCT_PERSON_BYTES], modality[OCT_PERSON_BYTES];
    char what[OCT_PERSON_BYTES], step_what[OCT_PERSON_BYTES];
    char key[9]; /* of it, as long as it stays the same */
    bool is_whole;
};

struct list {
    struct entry now; /* being filled */
    struct entry *all;
    size_t room;
    unsigned n;
};

static void make_key(struct entry *entry)
{
    unsigned char sum[OCT_SHA256_BYTES];
    struct oct_sha256 sha;
    oct_sha256_init(&sha);
    oct_sha256_add(&sha, &entry->person, sizeof(entry->person));
    oct_sha256_add(&sha, entry->date, sizeof(entry->date));
    oct_sha256_add(&sha, entry->time, sizeof(entry->time));
    oct_sha256_end(&sha, sum);
    for (unsigned i = 0; i < 4; i++)
        snprintf(entry->key + 2 * i, 3, "%02x", sum[i]);
}

static enum oct_err take_entry(void *context, bool is_whole, struct oct_error *err)
{
    struct list *list = context;
    (void)err;
    if (!list->now.what[0])
        snprintf(list->now.what, OCT_PERSON_BYTES, "%s", list->now.step_what);
    list->now.is_whole = is_whole;
    make_key(&list->now);
    list->all = oct_alloc_room(list->all, &list->room, list->n + 1u, sizeof(*list->all));
    list->all[list->n++] = list->now;
    return OCT_OK;
}

static int by_time(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    const int day = strcmp(x->date, y->date), hour = strcmp(x->time, y->time);
    return day ? day : hour ? hour : strcmp(x->key, y->key);
}

#define MORE 5u
static enum oct_err ask(const struct oct_config *config, const char *date, const char *modality,
                        struct list *list, struct oct_error *err)
{
    struct entry *e = &list->now;
    struct oct_dicom_text texts[OCT_N_PERSON_FIELDS + MORE] = {
        {0x00400002, STEP, e->date, OCT_PERSON_BYTES},
        {0x00400003, STEP, e->time, OCT_PERSON_BYTES},
        {0x00080060, STEP, e->modality, OCT_PERSON_BYTES},
        {0x00321060, 0, e->what, OCT_PERSON_BYTES},
        {0x00400007, STEP, e->step_what, OCT_PERSON_BYTES},
    };
    const unsigned n = OCT_N_PERSON_FIELDS + MORE;
    const char *query[2 * (OCT_N_PERSON_FIELDS + MORE) + 4] = {"-W", "-k", "0008,0005"};
    char keys[OCT_N_PERSON_FIELDS + MORE][80], folder[OCT_CONFIG_STRING_BYTES];
    bool is_cut = false;
    for (unsigned i = 0; i < OCT_N_PERSON_FIELDS; i++)
        texts[MORE + i] =
            (struct oct_dicom_text){oct_person_fields[i].tag, oct_person_fields[i].sequence,
                                    (char *)&e->person + oct_person_fields[i].at, OCT_PERSON_BYTES};
    for (unsigned i = 0; i < n; i++) {
        snprintf(keys[i], sizeof(keys[i]), "%s%04x,%04x%s%s",
                 texts[i].sequence ? "0040,0100[0]." : "", texts[i].tag >> 16,
                 texts[i].tag & 0xffff, i == 0 || i == 2 ? "=" : "",
                 i == 0   ? date
                 : i == 2 ? modality
                          : "");
        query[3 + 2 * i] = "-k";
        query[4 + 2 * i] = keys[i];
    }
    query[3 + 2 * n] = NULL;
    enum oct_err code = oct_state_folder("worklist", folder, err);
    code = code ? code
                : oct_dicom_find(config, OCT_DICOM_WORKLIST, query, folder, texts, n, take_entry,
                                 list, &is_cut, oct_interrupt_watch(), err);
    if (is_cut)
        fprintf(stderr, "octctl worklist: more than %u appointments: the rest is left out\n",
                OCT_DICOM_MOST_ANSWERS);
    if (list->n)
        qsort(list->all, list->n, sizeof(*list->all), by_time);
    return code;
}

/* ---- what is shown ---- */

static cJSON *describe(const struct entry *entry, unsigned number)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "number", number);
    cJSON_AddStringToObject(o, "key", entry->key);
    cJSON_AddStringToObject(o, "date", entry->date);
    cJSON_AddStringToObject(o, "time", entry->time);
    cJSON_AddStringToObject(o, "modality", entry->modality);
    cJSON_AddStringToObject(o, "description", entry->what);
    cJSON_AddBoolToObject(o, "readable", entry->is_whole);
    oct_person_add(o, &entry->person);
    return o;
}

static void show(const struct list *list, bool json)
{
    cJSON *all = cJSON_CreateArray();
    for (unsigned i = 0; i < list->n; i++) {
        const struct entry *e = &list->all[i];
        if (json)
            cJSON_AddItemToArray(all, describe(e, i + 1));
        else
            printf("%3u  %.2s%s%.2s  %s  %s  %s  %s\n", i + 1, e->time, e->time[0] ? ":" : "",
                   strlen(e->time) >= 4 ? e->time + 2 : "", e->person.name, e->person.id,
                   e->person.accession[0] ? e->person.accession : "-", e->what);
    }
    if (json)
        oct_command_print_json(all);
    else if (!list->n)
        printf("nobody\n");
    cJSON_Delete(all);
}

/* ---- taking one ---- */

/* By its number in the list, or by its key. */
static enum oct_err find_entry(const struct list *list, const char *which,
                               const struct entry **entry, struct oct_error *err)
{
    uint64_t number;
    *entry = NULL;
    for (unsigned i = 0; i < list->n && !*entry; i++)
        if (strcmp(list->all[i].key, which) == 0)
            *entry = &list->all[i];
    if (!*entry && strlen(which) < 5 && oct_option_u64(which, &number) && number >= 1 &&
        number <= list->n)
        *entry = &list->all[number - 1];
    if (!*entry)
        return oct_fail(err, OCT_E_STATE, "%s: not in the list, or not any more", which);
    if (!(*entry)->is_whole)
        return oct_fail(
            err, OCT_E_FORMAT,
            "%s: its character set is not read, or a value is too long: octctl identify "
            "takes it by hand",
            which);
    return OCT_OK;
}

/* "P-" and 8 letters that nobody has. */
static enum oct_err make_pseudonym(char pseudonym[12], struct oct_error *err)
{
    struct oct_export_person person;
    unsigned char bytes[8];
    enum oct_err e;
    do {
        if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
            return oct_fail(err, OCT_E_IO, "the system gives no random numbers");
        memcpy(pseudonym, "P-", 3);
        for (unsigned i = 0; i < 8; i++) /* 26 letters: those of 256 are as good as even */
            pseudonym[2 + i] = (char)('A' + bytes[i] % 26);
        pseudonym[10] = '\0';
    } while ((e = oct_identity_read(pseudonym, &person, err)) == OCT_OK);
    return e == OCT_E_STATE ? OCT_OK : e;
}

/* record.pseudonym of the running octd. */
static enum oct_err tell_octd(const struct oct_config *config, const char *endpoint,
                              const char *pseudonym, struct oct_error *err)
{
    struct oct_control_link *control;
    cJSON *answer = NULL;
    char request[120], *text = NULL;
    snprintf(request, sizeof(request),
             "{\"cmd\":\"set\",\"key\":\"record.pseudonym\",\"value\":\"%s\"}", pseudonym);
    enum oct_err e = oct_control_open(&control, config, endpoint, TIMEOUT_S, err);
    const struct oct_control_wait wait = {.control = control, .command = "worklist"};
    e = e ? e : oct_control_ask_patiently(&wait, request, &answer, &text, err);
    if (!e && !oct_json_is_true(answer, "ok")) {
        const char *why = oct_json_text(answer, "error");
        e = oct_fail(err, OCT_E_STATE, "octd: %s", why ? why : "refused without a reason");
    }
    free(text);
    cJSON_Delete(answer);
    oct_control_close(control);
    return e;
}

/* Whoever records must be known before octd records: the file first. */
static enum oct_err take(const struct oct_config *config, const struct entry *entry,
                         const char *endpoint, bool json, struct oct_error *err)
{
    char pseudonym[12];
    bool was_there;
    enum oct_err e = make_pseudonym(pseudonym, err);
    e = e ? e : oct_identity_write(pseudonym, &entry->person, err);
    if (e)
        return e;
    e = tell_octd(config, endpoint, pseudonym, err);
    if (e) {
        oct_identity_forget(pseudonym, &was_there, NULL);
        return e;
    }
    if (json) {
        cJSON *o = describe(entry, 0);
        cJSON_DeleteItemFromObject(o, "number");
        cJSON_AddStringToObject(o, "pseudonym", pseudonym);
        oct_command_print_json(o);
        cJSON_Delete(o);
    } else {
        printf("%s: %s, %s: octd records under this pseudonym\n", pseudonym, entry->person.name,
               entry->person.id);
    }
    return OCT_OK;
}

/* ---- worklist ---- */

struct call {
    const char *date, *modality, *take, *endpoint;
    bool json;
};

#define AT(member) .at = offsetof(struct call, member)
static const struct oct_option options[] = {
    {"--date", "YYYYMMDD", "of that day (today)", OCT_OPTION_TEXT, AT(date)},
    {"--modality", "NAME", "OPT, another one, or any (OPT)", OCT_OPTION_TEXT, AT(modality),
     .words = "OPT any"},
    {"--take", "N|KEY",
     "octd records this one, by a new pseudonym, and octctl keeps who it is: the\n"
     "number in the list, or the key that --json shows, which stays",
     OCT_OPTION_TEXT, AT(take), .words = OCT_WORDS_NONE},
    {"--json", NULL, "as JSON", OCT_OPTION_FLAG, AT(json)},
    {"--endpoint", "E", "the daemon's control.endpoint", OCT_OPTION_TEXT, AT(endpoint)},
    {NULL},
};

static int run_worklist(struct oct_config *config, int argc, char **argv)
{
    struct call call = {.date = NULL};
    struct list list = {.all = NULL};
    const struct entry *entry;
    struct oct_error err;
    char today[16];
    const time_t now = time(NULL);
    struct tm at;
    const int status = oct_options_read(&oct_command_worklist, &call, &argc, argv);
    if (status)
        return status;
    strftime(today, sizeof(today), "%Y%m%d", localtime_r(&now, &at));
    const char *date = call.date ? call.date : today;
    const char *modality = call.modality ? call.modality : "OPT";
    if (strlen(date) != 8 || strspn(date, "0123456789") != 8)
        return oct_command_misuse(argv[0], "--date %s: it is YYYYMMDD", date);
    if (strcmp(modality, "any") == 0)
        modality = "";
    if (strspn(modality, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != strlen(modality) || strlen(modality) > 16)
        return oct_command_misuse(argv[0], "--modality %s: it is any, or letters as OPT", modality);
    umask(0077);
    enum oct_err e = ask(config, date, modality, &list, &err);
    if (!e && call.take)
        e = find_entry(&list, call.take, &entry, &err);
    if (!e && call.take)
        e = take(config, entry, call.endpoint, call.json, &err);
    else if (!e)
        show(&list, call.json);
    free(list.all);
    return e ? oct_command_fail_at_work(argv[0], &err) : 0;
}

const struct oct_command oct_command_worklist = {
    .name = "worklist",
    .usage = "",
    .help = "the day's patients of the hospital's worklist (dicom.worklist)",
    .options = options,
    .words = OCT_WORDS_NONE,
    .run = run_worklist,
};

/* ---- identify ---- */

struct typed {
    const char *fields[OCT_N_PERSON_FIELDS], *from;
    bool json;
};

#define FIELD(i) OCT_OPTION_TEXT, .at = offsetof(struct typed, fields) + (i) * sizeof(const char *)
static const struct oct_option typed_options[] = {
    {"--name", "FAMILY^GIVEN", "", FIELD(0)},
    {"--id", "ID", "the hospital's number of the patient", FIELD(1)},
    {"--born", "YYYYMMDD", "", FIELD(2)},
    {"--sex", "M|F|O", "", FIELD(3), .words = "M F O"},
    {"--physician", "FAMILY^GIVEN", "who referred the patient", FIELD(4)},
    {"--accession", "NUMBER", "of the order", FIELD(5)},
    {"--study-uid", "UID", "of the order's study", FIELD(6)},
    {"--step", "ID", "of the scheduled procedure step", FIELD(7)},
    {"--procedure", "ID", "of the requested procedure", FIELD(8)},
    {"--from", "FILE|-",
     "the same from JSON, {\"name\": ..., \"id\": ...}; -: from standard input, which no\n"
     "list of processes shows",
     OCT_OPTION_TEXT, .at = offsetof(struct typed, from)},
    {"--json", NULL, "print who it is as JSON", OCT_OPTION_FLAG,
     .at = offsetof(struct typed, json)},
    {NULL},
};

static void print_person(const char *pseudonym, const struct oct_export_person *person, bool json)
{
    cJSON *o = cJSON_CreateObject(), *field;
    cJSON_AddStringToObject(o, "pseudonym", pseudonym);
    oct_person_add(o, person);
    if (json)
        oct_command_print_json(o);
    else
        cJSON_ArrayForEach(field, o)
        {
            printf("%-10s %s\n", field->string, field->valuestring);
        }
    cJSON_Delete(o);
}

#define MOST_TYPED_BYTES 16384
static enum oct_err take_from(const char *from, struct oct_export_person *person,
                              struct oct_error *err)
{
    char text[MOST_TYPED_BYTES];
    const bool is_stdin = strcmp(from, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(from, "rbe");
    if (!file)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s", from);
    const size_t n = fread(text, 1, sizeof(text), file);
    if (!is_stdin)
        fclose(file);
    cJSON *all = n < sizeof(text) ? cJSON_ParseWithLength(text, n) : NULL;
    const enum oct_err e = cJSON_IsObject(all)
                               ? oct_person_take(all, person, err)
                               : oct_fail(err, OCT_E_ARG,
                                          "%s: it is an object of JSON, as {\"name\": "
                                          "\"FAMILY^GIVEN\", \"id\": \"7\"}",
                                          from);
    cJSON_Delete(all);
    return e;
}

/* Fields that are not given stay as they are; without any it shows them. */
static int run_identify(struct oct_config *config, int argc, char **argv)
{
    struct typed typed = {.json = false};
    struct oct_export_person person;
    struct oct_error err;
    bool is_change = false;
    (void)config;
    const int status = oct_options_read(&oct_command_identify, &typed, &argc, argv);
    if (status)
        return status;
    enum oct_err e = oct_identity_read(argv[1], &person, &err);
    for (unsigned i = 0; i < OCT_N_PERSON_FIELDS; i++) {
        const char *text = typed.fields[i];
        if (!text)
            continue;
        if (strlen(text) >= OCT_PERSON_BYTES)
            return oct_command_misuse(argv[0], "%s is too long", oct_person_fields[i].name);
        snprintf((char *)&person + oct_person_fields[i].at, OCT_PERSON_BYTES, "%s", text);
        is_change = true;
    }
    if (typed.from && is_change)
        return oct_command_misuse(argv[0], "--from: the fields are in there, or given; not both");
    if (typed.from && take_from(typed.from, &person, &err))
        return oct_command_fail(argv[0], &err);
    is_change |= typed.from != NULL;
    if (is_change && (!e || e == OCT_E_STATE || e == OCT_E_FORMAT))
        e = oct_identity_write(argv[1], &person, &err);
    if (!e && (!is_change || typed.json))
        print_person(argv[1], &person, typed.json);
    return e ? oct_command_fail(argv[0], &err) : 0;
}

const struct oct_command oct_command_identify = {
    .name = "identify",
    .usage = "PSEUDONYM",
    .help = "says who is behind a pseudonym, for DICOM with --identity real; shows it",
    .options = typed_options,
    .n_least = 1,
    .n_most = 1,
    .too_few = "which pseudonym?",
    .words = OCT_WORDS_NONE,
    .run = run_identify,
};
