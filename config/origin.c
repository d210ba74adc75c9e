/* Where values came from, and messages that say so. */
#include "config/config.h"

#include "config/keys.h"

#include <ctype.h>
#include <string.h>

#define PREFIX_BYTES (OCT_CONFIG_SOURCE_BYTES + 128) /* the source, a line number, a key */
#define SHORT_NAME 60                                /* of a source where the message is long */

const char *oct_key_shown_name(const char *name)
{
    size_t length = strlen(name);
    size_t most = OCT_CONFIG_SOURCE_BYTES - 1;
    return length > most ? name + length - most : name;
}

const char *oct_key_origin_joint(const char *origin)
{
    return strncmp(origin, "--", 2) ? ": " : " ";
}

uint32_t oct_key_add_source(struct oct_config *config, const char *name)
{
    const char *shown = oct_key_shown_name(name);
    for (uint32_t i = 0; i < OCT_CONFIG_MAX_SOURCES; i++) {
        if (!config->sources[i][0])
            memcpy(config->sources[i], shown, strlen(shown) + 1);
        if (!strcmp(config->sources[i], shown))
            return i;
    }
    return OCT_CONFIG_MAX_SOURCES;
}

void oct_key_mark(struct oct_config *config, const struct oct_key *key, uint32_t source,
                  uint32_t line)
{
    if (config->n_given < UINT32_MAX)
        config->n_given++;
    config->origins[key - oct_keys] =
        (struct oct_config_origin){.order = config->n_given, .line = line, .source = source};
}

bool oct_key_is_marked(const struct oct_config *config, const struct oct_key *key)
{
    return config->origins[key - oct_keys].order != 0;
}

bool oct_key_came_from_file(const struct oct_config *config, const struct oct_key *key)
{
    return config->origins[key - oct_keys].line != 0;
}

void oct_key_copy_origin(struct oct_config *config, const struct oct_config *over,
                         const struct oct_key *key)
{
    const struct oct_config_origin *from = &over->origins[key - oct_keys];
    uint32_t source = from->source;
    if (source < OCT_CONFIG_MAX_SOURCES)
        source = oct_key_add_source(config, over->sources[source]);
    oct_key_mark(config, key, source, from->line);
}

/* "lab.ini:7: [pipeline] crop_last: ", "--set pipeline.crop_last: " or "control: ...: ". */
static void format_prefix(const struct oct_config *config, const struct oct_key *key, size_t n_name,
                          char *prefix)
{
    const struct oct_config_origin *origin = &config->origins[key - oct_keys];
    if (origin->source >= OCT_CONFIG_MAX_SOURCES) {
        snprintf(prefix, PREFIX_BYTES, "%s.%s: ", key->section, key->name);
        return;
    }
    const char *name = config->sources[origin->source];
    if (strlen(name) > n_name)
        name += strlen(name) - n_name;
    if (origin->line)
        snprintf(prefix, PREFIX_BYTES, "%s:%u: [%s] %s: ", name, origin->line, key->section,
                 key->name);
    else
        snprintf(prefix, PREFIX_BYTES, "%s%s%s.%s: ", name, oct_key_origin_joint(name),
                 key->section, key->name);
}

/* Does `text` go on with this key's full name? Returns the name's length, 0: no. */
static size_t starts_with_key(const char *text, const struct oct_key *key)
{
    size_t n_section = strlen(key->section), n_name = strlen(key->name);
    if (strncmp(text, key->section, n_section) || text[n_section] != '.' ||
        strncmp(text + n_section + 1, key->name, n_name))
        return 0;
    size_t n = n_section + 1 + n_name;
    return isalnum((unsigned char)text[n]) || text[n] == '_' ? 0 : n;
}

/* The message without the key it starts with, which the prefix has named. */
static const char *skip_key(const char *text, const struct oct_key *key)
{
    size_t n = starts_with_key(text, key);
    if (n && (!strncmp(text + n, ": ", 2) || !strncmp(text + n, ", ", 2)))
        return text + n + 2;
    if (n && (!strncmp(text + n, " is ", 4) || !strncmp(text + n, " has ", 5)))
        return text + n + 1;
    return text;
}

/* Where `word` goes on with a key and its built-in value in brackets, "camera.samples (832)", which
 * nobody set: the length up to the closing one. 0: it does not. */
static size_t built_in_value(const struct oct_config *config, const char *word)
{
    char shown[64];
    for (size_t k = 0; k < oct_n_keys; k++) {
        const struct oct_key *key = &oct_keys[k];
        int n =
            snprintf(shown, sizeof(shown), "%s.%s (%s)", key->section, key->name, key->standard);
        if (!oct_key_is_marked(config, key) && n > 0 && (size_t)n < sizeof(shown) &&
            strncmp(word, shown, (size_t)n) == 0)
            return (size_t)n - 1;
    }
    return 0;
}

/* Says so of such values: whoever never set the number looks for it in vain. */
static void tell_built_in(const struct oct_config *config, const char *from, char *text)
{
    static const char note[] = ": not set, built in";
    size_t used = 0;
    for (size_t at = 0; from[at] && used < OCT_ERROR_TEXT_BYTES - 1; at++) {
        bool begins_word = at == 0 || from[at - 1] == ' ';
        size_t n = begins_word ? built_in_value(config, from + at) : 0;
        if (n > 0 && used + n + sizeof(note) < OCT_ERROR_TEXT_BYTES) {
            memcpy(text + used, from + at, n);
            memcpy(text + used + n, note, sizeof(note) - 1);
            used += n + sizeof(note) - 1;
            at += n;
        }
        text[used++] = from[at];
    }
    text[used] = '\0';
}

enum oct_err oct_key_fail(const struct oct_config *config, const struct oct_key *key,
                          enum oct_err code, const char *text, struct oct_error *err)
{
    char prefix[PREFIX_BYTES], told[OCT_ERROR_TEXT_BYTES];
    tell_built_in(config, text, told);
    text = told;
    if (!key || !oct_key_is_marked(config, key))
        return oct_fail(err, code, "%s", text);
    text = skip_key(text, key);
    format_prefix(config, key, OCT_CONFIG_SOURCE_BYTES, prefix);
    if (strlen(prefix) + strlen(text) >= OCT_ERROR_TEXT_BYTES) /* its end says what is wrong */
        format_prefix(config, key, SHORT_NAME, prefix);
    return oct_fail(err, code, "%s%s", prefix, text);
}

const struct oct_key *oct_key_to_blame(const struct oct_config *config, const char *text)
{
    const struct oct_key *last = NULL;
    uint32_t order = 0;
    for (const char *word = text; *word; word++) {
        if (word > text && word[-1] != ' ' && word[-1] != '(')
            continue;
        for (size_t k = 0; k < oct_n_keys; k++)
            if (config->origins[k].order > order && starts_with_key(word, &oct_keys[k])) {
                last = &oct_keys[k];
                order = config->origins[k].order;
            }
    }
    return last;
}

enum oct_err oct_config_blame(const struct oct_config *config, const struct oct_error *why,
                              struct oct_error *err)
{
    return oct_key_fail(config, oct_key_to_blame(config, why->text), why->code, why->text, err);
}
