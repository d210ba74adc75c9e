/* Who is behind a pseudonym: a file a person, JSON, in the folder octd/identities of the user's
 * state folder (XDG_STATE_HOME, else ~/.local/state). The folder has mode 0700 and its files 0600;
 * a file is written whole or not at all. Recordings, octd and its log know the pseudonym alone.
 * Main thread. */
#ifndef OCT_TOOLS_DICOM_IDENTITY_H
#define OCT_TOOLS_DICOM_IDENTITY_H

#include "config/config.h"
#include "formats/export/export.h"

/* A field of a person: one table for files, the worklist, options and the checks. */
struct oct_person_field {
    const char *name; /* "name", "id", "born": in JSON and, behind "--", on the command line */
    size_t at;        /* in struct oct_export_person */
    uint32_t tag, sequence; /* of the worklist's answers */
    unsigned most;          /* characters */
};
#define OCT_N_PERSON_FIELDS 9u
extern const struct oct_person_field oct_person_fields[OCT_N_PERSON_FIELDS];

/* OCT_E_ARG: a field is none that DICOM takes; says which. */
enum oct_err oct_person_check(const struct oct_export_person *person, struct oct_error *err);

/* Fields that are "" are left out. */
struct cJSON;
void oct_person_add(struct cJSON *object, const struct oct_export_person *person);

/* Takes the fields that the object has; the others stay. OCT_E_ARG: one is no text, or too long. */
enum oct_err oct_person_take(const struct cJSON *object, struct oct_export_person *person,
                             struct oct_error *err);

/* OCT_E_STATE: nobody is known by it. */
enum oct_err oct_identity_read(const char *pseudonym, struct oct_export_person *person,
                               struct oct_error *err);

/* --identity masked|real of a command, else dicom.identity. False: it is neither. */
bool oct_identity_option(const char *given, const struct oct_config *config, bool *is_real);

/* Who is behind the pseudonym of form, of the recording `in`, as its person, with the device's
 * serial. Errors as oct_identity_read. */
enum oct_err oct_identity_reveal(struct oct_export_form *form, struct oct_export_person *person,
                                 const char *in, const struct oct_config *config,
                                 struct oct_error *err);

/* Returns when the disk has it. Checks the person. */
enum oct_err oct_identity_write(const char *pseudonym, const struct oct_export_person *person,
                                struct oct_error *err);

/* Removes it; *was_there. Returns when the disk has it no more. */
enum oct_err oct_identity_forget(const char *pseudonym, bool *was_there, struct oct_error *err);

#endif
