/* Where values came from, and messages that say so. */
#include "config/config.h"

#include "config/keys.h"

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
    config->origins[key->index] =
        (struct oct_config_origin){.order = config->n_given, .line = line, .source = source};
}

bool oct_key_is_marked(const struct oct_config *config, const struct oct_key *key)
{
    return config->origins[key->index].order != 0;
}

bool oct_key_came_from_file(const struct oct_config *config, const struct oct_key *key)
{
    return config->origins[key->index].line != 0;
}

void oct_key_copy_origin(struct oct_config *config, const struct oct_config *over,
                         const struct oct_key *key)
{
    const struct oct_config_origin *from = &over->origins[key->index];
    uint32_t source = from->source;
    if (source < OCT_CONFIG_MAX_SOURCES)
        source = oct_key_add_source(config, over->sources[source]);
    oct_key_mark(config, key, source, from->line);
}

/* "lab.ini:7: [pipeline] crop_last: ", "--set pipeline.crop_last: " or "control: ...: ". */
static void format_prefix(const struct oct_config *config, const struct oct_key *key, size_t n_name,
                          char *prefix)
{
    const struct oct_config_origin *origin = &config->origins[key->index];
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

/* The text without the key that it starts with, which the prefix has named. */
static const char *skip_key(const char *text, const struct oct_key *key)
{
    char name[128];
    size_t n = (size_t)snprintf(name, sizeof(name), "%s.%s", key->section, key->name);
    if (strncmp(text, name, n))
        return text;
    if (!strncmp(text + n, ": ", 2) || !strncmp(text + n, ", ", 2))
        return text + n + 2;
    if (!strncmp(text + n, " is ", 4) || !strncmp(text + n, " has ", 5))
        return text + n + 1;
    return text;
}

/* Whether a key has its built-in value because no source gave another: a program may have changed
 * it since, as opening a recording does. */
static bool is_built_in(const struct oct_config *config, const struct oct_key *key)
{
    char value[OCT_CONFIG_STRING_BYTES];
    oct_key_format(key, config, value, sizeof(value));
    return !oct_key_is_marked(config, key) && strcmp(value, key->param->standard) == 0;
}

/* Copies the text of `why`, and marks a value at its default as such: a user who never set the
 * number would search for it in vain. */
static void format_text(const struct oct_config *config, const struct oct_error *why, char *text)
{
    static const char note[] = ": not set, built in";
    struct oct_key key;
    size_t n = strlen(why->text), end = why->value_end;
    if (!oct_key_find_dotted(why->value_key, &key) || end > n ||
        n + sizeof(note) > OCT_ERROR_TEXT_BYTES || !is_built_in(config, &key)) {
        memcpy(text, why->text, n + 1);
        return;
    }
    memcpy(text, why->text, end);
    memcpy(text + end, note, sizeof(note) - 1);
    memcpy(text + end + sizeof(note) - 1, why->text + end, n - end + 1);
}

/* Of the keys that `why` blames and that were given, the one given last; false: none was given. */
static bool key_to_blame(const struct oct_config *config, const struct oct_error *why,
                         struct oct_key *last)
{
    char keys[OCT_ERROR_KEY_BYTES], *rest = NULL;
    struct oct_key key;
    uint32_t order = 0;
    memcpy(keys, why->key, sizeof(keys));
    for (char *name = strtok_r(keys, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        if (oct_key_find_dotted(name, &key) && config->origins[key.index].order > order) {
            *last = key;
            order = config->origins[key.index].order;
        }
    }
    return order > 0;
}

enum oct_err oct_key_blame(const struct oct_config *config, const struct oct_error *why,
                           const char *more, struct oct_error *err)
{
    char prefix[PREFIX_BYTES], told[OCT_ERROR_TEXT_BYTES];
    struct oct_key key;
    format_text(config, why, told);
    if (!key_to_blame(config, why, &key))
        return oct_fail(err, why->code, "%s%s", told, more);
    const char *text = skip_key(told, &key);
    format_prefix(config, &key, OCT_CONFIG_SOURCE_BYTES, prefix);
    if (strlen(prefix) + strlen(text) + strlen(more) >= OCT_ERROR_TEXT_BYTES)
        format_prefix(config, &key, SHORT_NAME, prefix); /* the text's end says what is wrong */
    return oct_fail(err, why->code, "%s%s%s", prefix, text, more);
}

enum oct_err oct_config_blame(const struct oct_config *config, const struct oct_error *why,
                              struct oct_error *err)
{
    return oct_key_blame(config, why, "", err);
}
