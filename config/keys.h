/* The key table: all that is known about a configuration key, in one row. The INI reader, the
 * checks, --help, the reference file and the effective text follow from it. For this folder and
 * its tests; everyone else uses config/config.h. Everything here is constant and thread-safe. */
#ifndef OCT_CONFIG_KEYS_H
#define OCT_CONFIG_KEYS_H

#include "config/config.h"

/* A row of the table: a parameter (analysis/param.h) in its section. */
struct oct_key {
    const char *section, *name;
    const struct oct_param *param;
    size_t at;    /* of the section's settings, in struct oct_config */
    size_t index; /* among all rows, of config->origins */
};

struct oct_key_section {
    const char *name, *meaning; /* meaning NULL: more of the section before */
    const struct oct_params *params;
    size_t at;
};

/* A place among the sections, in the order of octd.ini; zeroed: before the first. Keys of one
 * section follow one another. */
struct oct_key_sections {
    size_t i, settings; /* where those of the analysis begin in config->settings */
    unsigned analysis, table;
};

/* The next section; false: there are no more. */
bool oct_key_next_section(struct oct_key_sections *at, struct oct_key_section *section);

/* Where the settings that an analysis owns begin in config->settings. */
size_t oct_key_settings_at(const struct oct_analysis_ops *ops);

/* Row `index` of all tables, options alone too; false: there are no more. */
bool oct_key_row(size_t index, struct oct_key *key);

/* Key i, from 0; false: there are no more. */
bool oct_key_at(size_t i, struct oct_key *key);

/* The next key; *row begins as 0. False: there are no more. */
bool oct_key_next(size_t *row, struct oct_key *key);

/* False: there is no such key. */
bool oct_key_find(const char *section, const char *name, struct oct_key *key);

/* One line; NULL: there is no such section. */
const char *oct_key_section_meaning(const char *section);

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

/* False if there is no key of that name, "section.key". */
bool oct_key_find_dotted(const char *dotted, struct oct_key *key);

/* As oct_config_blame, with `more` behind the text ("": nothing). */
enum oct_err oct_key_blame(const struct oct_config *config, const struct oct_error *why,
                           const char *more, struct oct_error *err);

/* As oct_param_parse, into the configuration. */
bool oct_key_parse(const struct oct_key *key, struct oct_config *config, const char *text,
                   char *why, size_t why_bytes);

/* As oct_param_format. */
size_t oct_key_format(const struct oct_key *key, const struct oct_config *config, char *text,
                      size_t text_bytes);

/* "folder/path", without "." steps at the joint. False if it does not fit. */
bool oct_key_join_path(const char *folder, const char *path, char *joined, size_t joined_bytes);

#endif
