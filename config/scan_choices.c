#include "config/scan_choices.h"

#include "config/apply.h"
#include "config/keys.h"

#include <stdlib.h>
#include <string.h>

#define SPACES " \t"

/* An entry: what stands before its colon and behind it, without the spaces around. */
struct entry {
    const char *name, *keys;
    size_t name_bytes, keys_bytes;
    bool has_colon;
};

static void trim(const char **text, size_t *n)
{
    while (*n > 0 && strchr(SPACES, **text)) {
        ++*text;
        --*n;
    }
    while (*n > 0 && strchr(SPACES, (*text)[*n - 1]))
        --*n;
}

/* Reads the entry at *at, which then points behind it. False: there are no more. */
static bool next_entry(const char **at, struct entry *entry)
{
    if (**at == '\0')
        return false;
    const size_t n = strcspn(*at, "|"), n_name = strcspn(*at, ":|");
    *entry = (struct entry){.name = *at, .name_bytes = n_name, .has_colon = n_name < n};
    entry->keys = *at + n_name + entry->has_colon;
    entry->keys_bytes = n - n_name - entry->has_colon;
    trim(&entry->name, &entry->name_bytes);
    trim(&entry->keys, &entry->keys_bytes);
    *at += n + ((*at)[n] == '|');
    return true;
}

bool oct_scan_choice_name(const struct oct_config *config, unsigned i,
                          char name[OCT_SCAN_CHOICE_BYTES])
{
    const char *at = config->scan.choices;
    struct entry entry;
    while (next_entry(&at, &entry))
        if (i-- == 0) {
            const size_t most = OCT_SCAN_CHOICE_BYTES - 1;
            const size_t n = entry.name_bytes < most ? entry.name_bytes : most;
            memcpy(name, entry.name, n);
            name[n] = '\0';
            return true;
        }
    return false;
}

enum oct_err oct_scan_set_key(struct oct_config *config, const char *key, const char *value,
                              struct oct_error *err)
{
    char whole[64];
    if (strcmp(key, "choices") == 0 || strlen(key) > sizeof(whole) - sizeof("scan."))
        return oct_fail(err, OCT_E_CONFIG, "scan.%.40s is no key of a scan", key);
    strcpy(whole, "scan.");
    strcat(whole, key);
    return oct_config_set(config, whole, value, "scan", err);
}

/* "KEY=VALUE KEY=VALUE". */
static enum oct_err set_keys(struct oct_config *config, const struct entry *entry,
                             struct oct_error *err)
{
    char text[OCT_CONFIG_STRING_BYTES], *rest = NULL;
    memcpy(text, entry->keys, entry->keys_bytes);
    text[entry->keys_bytes] = '\0';
    enum oct_err e = OCT_OK;
    for (char *key = strtok_r(text, SPACES, &rest); key && !e;
         key = strtok_r(NULL, SPACES, &rest)) {
        char *value = strchr(key, '=');
        if (!value)
            return oct_fail(err, OCT_E_CONFIG, "'%.40s' is no KEY=VALUE", key);
        *value++ = '\0';
        e = oct_scan_set_key(config, key, value, err);
    }
    return e;
}

enum oct_err oct_scan_choose(struct oct_config *config, const char *name, struct oct_error *err)
{
    const char *at = config->scan.choices;
    struct entry entry;
    while (next_entry(&at, &entry)) {
        if (entry.name_bytes != strlen(name) || memcmp(entry.name, name, entry.name_bytes) != 0)
            continue;
        struct oct_config changed = *config;
        const enum oct_err e = set_keys(&changed, &entry, err);
        if (!e)
            *config = changed;
        return e;
    }
    return oct_fail(err, OCT_E_ARG, "'%.40s' is no scan of scan.choices (%.200s)", name,
                    config->scan.choices);
}

void oct_scan_copy(struct oct_config *to, const struct oct_config *from)
{
    struct oct_key key;
    size_t row = 0;
    to->scan = from->scan;
    while (oct_key_next(&row, &key)) {
        if (strcmp(key.section, "scan") != 0)
            continue;
        to->origins[key.index] = (struct oct_config_origin){.order = 0};
        if (oct_key_is_marked(from, &key))
            oct_key_copy_origin(to, from, &key);
    }
}

enum oct_err oct_scan_config_check(const struct oct_config *config, struct oct_error *err)
{
    struct oct_geometry geometry;
    struct oct_scan scan = oct_config_way(config);
    /* Of a file of positions only its name is known here. */
    scan.pattern = scan.pattern == OCT_SCAN_FILE ? OCT_SCAN_RASTER : scan.pattern;
    enum oct_err e = oct_config_check(config, err);
    e = e ? e : oct_config_geometry(config, &geometry, err);
    return e ? e : oct_scan_check(&scan, err);
}

/* Whether an earlier entry has this name. */
static bool is_taken(const struct oct_config *config, unsigned n_before, const char *name)
{
    char other[OCT_SCAN_CHOICE_BYTES];
    for (unsigned i = 0; i < n_before && oct_scan_choice_name(config, i, other); i++)
        if (strcmp(other, name) == 0)
            return true;
    return false;
}

static enum oct_err check_entry(const struct oct_config *config, const struct entry *entry,
                                unsigned i, struct oct_error *err)
{
    struct oct_config changed = *config;
    char name[OCT_SCAN_CHOICE_BYTES];
    struct oct_error why = {.text = ""};
    if (!entry->has_colon || entry->name_bytes == 0 || entry->name_bytes >= sizeof(name) ||
        i >= OCT_MOST_SCAN_CHOICES)
        return oct_fail(err, OCT_E_CONFIG,
                        "scan.choices: at most %u entries \"NAME: KEY=VALUE ...\", separated by |, "
                        "names of at most %u bytes: not '%.*s'",
                        OCT_MOST_SCAN_CHOICES, OCT_SCAN_CHOICE_BYTES - 1, (int)entry->name_bytes,
                        entry->name);
    oct_scan_choice_name(config, i, name);
    if (is_taken(config, i, name))
        return oct_fail(err, OCT_E_CONFIG, "scan.choices: two entries are named '%s'", name);
    enum oct_err e = oct_scan_choose(&changed, name, &why);
    e = e ? e : oct_scan_config_check(&changed, &why);
    if (!e && changed.scan.positions[0] != '/' &&
        strcmp(changed.scan.positions, config->scan.positions) != 0)
        e = oct_fail(&why, OCT_E_CONFIG, "positions=%.200s: write its whole path, from / on",
                     changed.scan.positions);
    return e ? oct_fail(err, OCT_E_CONFIG, "scan.choices: %s: %s", name, why.text) : OCT_OK;
}

enum oct_err oct_scan_choices_check(const struct oct_config *config, struct oct_error *err)
{
    const char *at = config->scan.choices;
    struct entry entry;
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; !e && next_entry(&at, &entry); i++)
        e = check_entry(config, &entry, i, err);
    return e;
}
