#include "tools/dicom/identity.h"

#include "config/config.h"
#include "config/options.h"
#include "formats/whole_file.h"
#include "pipeline/base/folder.h"
#include "pipeline/base/sha256.h"
#include "pipeline/base/utf8.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP 0x00400100u /* Scheduled Procedure Step Sequence */
#define AT(member) offsetof(struct oct_export_person, member)
#define MOST_FILE_BYTES 16384

const struct oct_person_field oct_person_fields[OCT_N_PERSON_FIELDS] = {
    {"name", AT(name), 0x00100010, 0, 64},
    {"id", AT(id), 0x00100020, 0, 64},
    {"born", AT(born), 0x00100030, 0, 8},
    {"sex", AT(sex), 0x00100040, 0, 1},
    {"physician", AT(physician), 0x00080090, 0, 64},
    {"accession", AT(accession), 0x00080050, 0, 16},
    {"study-uid", AT(study_uid), 0x0020000d, 0, 64},
    {"step", AT(step), 0x00400009, STEP, 16},
    {"procedure", AT(procedure), 0x00401001, 0, 16},
};

static const char *value(const struct oct_export_person *person, unsigned i)
{
    return (const char *)person + oct_person_fields[i].at;
}

/* A pseudonym may hold anything: a sum of it is the file's name. */
static enum oct_err path_of(const char *pseudonym, char *path, struct oct_error *err)
{
    unsigned char sum[OCT_SHA256_BYTES];
    struct oct_sha256 sha;
    char folder[OCT_CONFIG_STRING_BYTES];
    if (!pseudonym[0])
        return oct_fail(err, OCT_E_ARG, "without a pseudonym nobody can be known by it");
    const enum oct_err e = oct_state_folder("identities", folder, err);
    if (e)
        return e;
    oct_sha256_init(&sha);
    oct_sha256_add(&sha, pseudonym, strlen(pseudonym));
    oct_sha256_end(&sha, sum);
    size_t n = (size_t)snprintf(path, OCT_CONFIG_STRING_BYTES, "%s/", folder);
    if (n + 38 > OCT_CONFIG_STRING_BYTES)
        return oct_fail(err, OCT_E_CONFIG, "the name of the state folder is too long");
    for (unsigned i = 0; i < 16; i++)
        n += (size_t)snprintf(path + n, 3, "%02x", sum[i]);
    snprintf(path + n, 6, ".json");
    return OCT_OK;
}

/* ---- a person ---- */

static bool is_text(const char *text, unsigned most)
{
    unsigned n = 0;
    if (text[oct_utf8_valid_bytes(text, strlen(text))])
        return false;
    for (const char *c = text; *c; c++) {
        n += ((unsigned char)*c & 0xc0) != 0x80;
        if ((unsigned char)*c < ' ' || *c == 127 || *c == '\\')
            return false;
    }
    return n <= most;
}

enum oct_err oct_person_check(const struct oct_export_person *person, struct oct_error *err)
{
    for (unsigned i = 0; i < OCT_N_PERSON_FIELDS; i++)
        if (!is_text(value(person, i), oct_person_fields[i].most))
            return oct_fail(err, OCT_E_ARG,
                            "%s: %u characters of UTF-8 at most, no '\\' and no control character",
                            oct_person_fields[i].name, oct_person_fields[i].most);
    if (!person->name[0] || !person->id[0])
        return oct_fail(err, OCT_E_ARG, "a person has a name and an id");
    if (person->born[0] && (strlen(person->born) != 8 || strspn(person->born, "0123456789") != 8))
        return oct_fail(err, OCT_E_ARG, "born: it is YYYYMMDD");
    if (person->sex[0] && !strchr("MFO", person->sex[0]))
        return oct_fail(err, OCT_E_ARG, "sex: it is M, F or O");
    if (person->study_uid[strspn(person->study_uid, "0123456789.")])
        return oct_fail(err, OCT_E_ARG, "study-uid: it is digits and dots");
    return OCT_OK;
}

void oct_person_add(cJSON *object, const struct oct_export_person *person)
{
    for (unsigned i = 0; i < OCT_N_PERSON_FIELDS; i++)
        if (value(person, i)[0])
            cJSON_AddStringToObject(object, oct_person_fields[i].name, value(person, i));
}

enum oct_err oct_person_take(const cJSON *object, struct oct_export_person *person,
                             struct oct_error *err)
{
    for (unsigned i = 0; i < OCT_N_PERSON_FIELDS; i++) {
        const char *name = oct_person_fields[i].name;
        const cJSON *field = cJSON_GetObjectItemCaseSensitive(object, name);
        const char *text = cJSON_GetStringValue(field);
        if (field && (!text || strlen(text) >= OCT_PERSON_BYTES))
            return oct_fail(err, OCT_E_ARG, "%s is %s", name, text ? "too long" : "no text");
        if (text)
            snprintf((char *)person + oct_person_fields[i].at, OCT_PERSON_BYTES, "%s", text);
    }
    return OCT_OK;
}

/* ---- files ---- */

enum oct_err oct_identity_read(const char *pseudonym, struct oct_export_person *person,
                               struct oct_error *err)
{
    char path[OCT_CONFIG_STRING_BYTES], text[MOST_FILE_BYTES];
    *person = (struct oct_export_person){.name = ""};
    const enum oct_err e = path_of(pseudonym, path, err);
    if (e)
        return e;
    FILE *file = fopen(path, "rbe");
    if (!file && errno == ENOENT)
        return oct_fail(err, OCT_E_STATE,
                        "nobody is known by the pseudonym '%s': octctl identify says who it is",
                        pseudonym);
    if (!file)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s", path);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    cJSON *all = cJSON_Parse(text);
    const char *whose = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(all, "pseudonym"));
    const bool is_good =
        whose && strcmp(whose, pseudonym) == 0 && !oct_person_take(all, person, NULL);
    cJSON_Delete(all);
    if (!is_good)
        return oct_fail(err, OCT_E_FORMAT, "%s: it says nobody: octctl identify writes it anew",
                        path);
    return oct_person_check(person, err);
}

bool oct_identity_option(const char *given, const struct oct_config *config, bool *is_real)
{
    const int i =
        given ? oct_option_word(given, oct_config_identity_names, 2) : config->dicom.identity;
    *is_real = i == OCT_IDENTITY_REAL;
    return i >= 0;
}

enum oct_err oct_identity_reveal(struct oct_export_form *form, struct oct_export_person *person,
                                 const char *in, const struct oct_config *config,
                                 struct oct_error *err)
{
    struct oct_error why;
    const enum oct_err e = oct_identity_read(form->pseudonym, person, &why);
    if (e)
        return oct_fail(err, e, "%s: %s; or --identity masked", in, why.text);
    form->person = person;
    form->serial = config->dicom.serial;
    return OCT_OK;
}

enum oct_err oct_identity_write(const char *pseudonym, const struct oct_export_person *person,
                                struct oct_error *err)
{
    struct oct_whole_file file;
    char path[OCT_CONFIG_STRING_BYTES];
    enum oct_err e = oct_person_check(person, err);
    e = e ? e : path_of(pseudonym, path, err);
    if (e)
        return e;
    const mode_t mask = umask(0077);
    e = oct_whole_file_open(&file, path, true, err);
    umask(mask);
    if (e)
        return e;
    cJSON *all = cJSON_CreateObject();
    cJSON_AddStringToObject(all, "pseudonym", pseudonym);
    oct_person_add(all, person);
    char *text = cJSON_Print(all);
    e = text ? oct_whole_file_put(&file, text, strlen(text), err)
             : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    cJSON_free(text);
    cJSON_Delete(all);
    return oct_whole_file_end(&file, e, err);
}

enum oct_err oct_identity_forget(const char *pseudonym, bool *was_there, struct oct_error *err)
{
    char path[OCT_CONFIG_STRING_BYTES];
    *was_there = false;
    const enum oct_err e = path_of(pseudonym, path, err);
    if (e)
        return e;
    *was_there = unlink(path) == 0;
    if (!*was_there && errno != ENOENT)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be removed", path);
    return oct_folder_sync_parent(path, err);
}
