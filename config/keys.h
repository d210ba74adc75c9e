/* The key table: all that is known about a configuration key, in one row. The INI reader, the
 * checks, --help, the reference file and the effective text follow from it. For this folder and
 * its tests; everyone else uses config/config.h. Everything here is constant and thread-safe. */
#ifndef OCT_CONFIG_KEYS_H
#define OCT_CONFIG_KEYS_H

#include "config/config.h"

enum oct_key_type {
    OCT_KEY_U32,
    OCT_KEY_U64,
    OCT_KEY_F64,
    OCT_KEY_BOOL,
    OCT_KEY_ENUM,     /* an int: index into names, plus first */
    OCT_KEY_STRING,   /* this and the rest are oct_config_string */
    OCT_KEY_DEVICES,  /* device numbers with commas between */
    OCT_KEY_NAMES,    /* names with commas between, each once */
    OCT_KEY_PATH,     /* relative to the folder of the file that says it */
    OCT_KEY_ENDPOINT, /* of ZeroMQ */
};

struct oct_key {
    const char *section, *name;
    enum oct_key_type type;
    enum oct_config_when when;
    unsigned applies; /* LIVE: flags of enum oct_config_applies, at least one; else 0 */
    size_t offset;    /* in struct oct_config */
    double min, max;  /* of the value; of a string: its length in bytes (max 0: all that fits) */
    const char *const *names; /* enum: NULL-terminated; string: the allowed values, NULL: any */
    int first;                /* enum: value of names[0] */
    const char *standard;     /* the default, as it would stand in a file */
    const char *word;         /* u32: stands for the value word_value, beside min..max; or NULL */
    uint32_t word_value;
    const char *unit;    /* NULL: none */
    const char *meaning; /* one line */
};

struct oct_key_section {
    const char *name, *meaning;
};

extern const struct oct_key oct_keys[]; /* keys of one section stand together */
extern const size_t oct_n_keys;
extern const struct oct_key_section oct_key_sections[]; /* in the order of oct_keys */
extern const size_t oct_n_key_sections;

/* NULL if there is no such key. */
const struct oct_key *oct_key_find(const char *section, const char *name);

bool oct_key_section_exists(const char *section);

/* Fills `why` for a key or section that does not exist, with the nearest that does if one is close.
 * The same name in another section counts as close. */
void oct_key_explain_unknown(const char *section, const char *name, char *why, size_t why_bytes);

/* Writes the key's part of the reference file. */
void oct_key_write_reference(FILE *out, const struct oct_key *key);

/* The index of a source (a file's name, "--set", "control"), noted if it is new;
 * OCT_CONFIG_MAX_SOURCES when there is no room. */
uint32_t oct_key_add_source(struct oct_config *config, const char *name);

/* Returns the end of a name, which messages and `sources` show. */
const char *oct_key_shown_name(const char *name);

/* Returns what separates an origin from a key in a message: a space after an option, else ": ". */
const char *oct_key_origin_joint(const char *origin);

/* Notes that a source gave the key (line 0: it is no file); the others ask for that note. */
void oct_key_mark(struct oct_config *config, const struct oct_key *key, uint32_t source,
                  uint32_t line);
bool oct_key_is_marked(const struct oct_config *config, const struct oct_key *key);
bool oct_key_came_from_file(const struct oct_config *config, const struct oct_key *key);

/* Copies the key's origin from `over`. */
void oct_key_copy_origin(struct oct_config *config, const struct oct_config *over,
                         const struct oct_key *key);

/* NULL if there is no key of that name, "section.key". */
const struct oct_key *oct_key_find_dotted(const char *dotted);

/* As oct_config_blame, with `more` behind the text ("": nothing). */
enum oct_err oct_key_blame(const struct oct_config *config, const struct oct_error *why,
                           const char *more, struct oct_error *err);

/* Checks `text` against the key's type and range and stores it. Spaces at both ends are dropped.
 * False: nothing is stored and `why` (of why_bytes) says what is wrong and what is allowed. */
bool oct_key_parse(const struct oct_key *key, struct oct_config *config, const char *text,
                   char *why, size_t why_bytes);

/* The value as it would stand in a file: oct_key_parse reads back the same. Returns its length,
 * or that which it would have had, as snprintf does. */
size_t oct_key_format(const struct oct_key *key, const struct oct_config *config, char *text,
                      size_t text_bytes);

/* What the key takes: "4 to 131072 samples", "auto | cpu | cuda", "yes | no", ... */
void oct_key_format_range(const struct oct_key *key, char *text, size_t text_bytes);

/* Returns why an INI file cannot hold the string, as the end of a sentence ("holds a control
 * character"), or NULL if it can. */
const char *oct_key_bad_text(const char *text);

/* "folder/path", without "." steps at the joint. False if it does not fit. */
bool oct_key_join_path(const char *folder, const char *path, char *joined, size_t joined_bytes);

#endif
