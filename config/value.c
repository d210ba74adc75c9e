/* One value: from text, to text, and what it may be. Numbers are read and written in the C
 * locale, which every program of ours keeps. */
#include "config/keys.h"

#include "pipeline/base/utf8.h"
#include "pipeline/wire/shm_layout.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#define SHOWN_BYTES 60 /* of a wrong value in a message */

static void *place_of(const struct oct_key *key, struct oct_config *config)
{
    return (char *)config + key->offset;
}

static const void *const_place_of(const struct oct_key *key, const struct oct_config *config)
{
    return (const char *)config + key->offset;
}

/* Longest string a key takes, without its NUL. */
static size_t max_length(const struct oct_key *key)
{
    return key->max > 0 ? (size_t)key->max : OCT_CONFIG_STRING_BYTES - 1;
}

static bool parse_whole(const struct oct_key *key, const char *text, uint64_t *value)
{
    if (!*text || strspn(text, "0123456789") != strlen(text))
        return false;
    errno = 0;
    unsigned long long parsed = strtoull(text, NULL, 10);
    *value = parsed;
    return errno == 0 && parsed >= (uint64_t)key->min && parsed <= (uint64_t)key->max;
}

static bool parse_real(const struct oct_key *key, const char *text, double *value)
{
    /* Only plain decimals: strtod would also take hexadecimal, inf and nan. */
    if (!*text || strspn(text, "0123456789+-.eE") != strlen(text))
        return false;
    char *end;
    *value = strtod(text, &end);
    return !*end && isfinite(*value) && *value >= key->min && *value <= key->max;
}

static bool parse_bool(const char *text, bool *value)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (!strcasecmp(text, words[i])) {
            *value = i % 2;
            return true;
        }
    return false;
}

/* Index of text in a NULL-terminated list, or -1. */
static int index_of(const char *const *names, const char *text)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], text))
            return i;
    return -1;
}

const char *oct_config_bad_encoding(const char *text)
{
    if (oct_utf8_valid_bytes(text, strlen(text)) == strlen(text))
        return NULL;
    return "is not UTF-8: write it in that encoding; a file or folder whose name is in another one "
           "needs a new name or a link";
}

const char *oct_key_bad_text(const char *text)
{
    bool after_space = true;
    const char *bad = oct_config_bad_encoding(text);
    if (bad)
        return bad;
    for (; *text; text++) {
        if (iscntrl((unsigned char)*text))
            return "holds a control character";
        if (*text == ';' && after_space)
            return "holds a ';' that would start a comment (no ';' first or after a space)";
        after_space = *text == ' ';
    }
    return NULL;
}

/* "0", "0,1", ...; empty is fine. */
static const char *bad_devices(const char *text)
{
    for (; *text; text++) {
        size_t n_digits = strspn(text, "0123456789");
        if (n_digits < 1 || n_digits > 3)
            return "is not a list of device numbers such as 0,1";
        text += n_digits;
        if (!*text)
            break;
        if (*text != ',' || !text[1])
            return "is not a list of device numbers such as 0,1";
    }
    return NULL;
}

_Static_assert(OCT_CONFIG_MAX_NAMES == 16, "as a message below says");

/* "enface,quality"; empty is fine. */
static const char *bad_names(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    const char *names[OCT_CONFIG_MAX_NAMES];
    size_t lengths[OCT_CONFIG_MAX_NAMES];
    if (!text[0])
        return NULL;
    for (unsigned n = 0; n < OCT_CONFIG_MAX_NAMES; n++) {
        names[n] = text;
        lengths[n] = strspn(text, letters);
        text += lengths[n];
        if (lengths[n] == 0 || (*text && *text != ','))
            return "is not a list of names such as enface,quality (letters, digits and _)";
        for (unsigned before = 0; before < n; before++)
            if (lengths[before] == lengths[n] && !memcmp(names[before], names[n], lengths[n]))
                return "holds a name twice";
        if (!*text++)
            return NULL;
    }
    return "holds more than 16 names";
}

static const char *bad_tcp(const char *address)
{
    const char *colon = strrchr(address, ':');
    if (!colon || colon == address || !colon[1])
        return "lacks host or port: tcp://HOST:PORT";
    if (!strcmp(colon + 1, "*"))
        return NULL;
    size_t n_digits = strspn(colon + 1, "0123456789");
    if (n_digits != strlen(colon + 1) || n_digits > 5 || atoi(colon + 1) > 65535)
        return "has a port that is not 0 to 65535 (or *: any free one)";
    return NULL;
}

/* Only the ingest takes shared memory. */
static bool may_be_shm(const struct oct_key *key)
{
    return !strcmp(key->section, "ingest");
}

static const char *bad_endpoint(const struct oct_key *key, const char *text)
{
    static const char *const schemes[] = {"tcp://", "ipc://"};
    const char *address = NULL;
    int scheme = 0;
    if (may_be_shm(key) && oct_shm_is_endpoint(text))
        return oct_shm_bad_name(text + strlen(OCT_SHM_SCHEME));
    for (int i = 0; i < (int)(sizeof(schemes) / sizeof(schemes[0])); i++)
        if (strncmp(text, schemes[i], strlen(schemes[i])) == 0) {
            scheme = i;
            address = text + strlen(schemes[i]);
        }
    if (!address)
        return may_be_shm(key) ? "does not start with tcp:// or ipc:// or shm://"
                               : "does not start with tcp:// or ipc://";
    if (strlen(address) == 0)
        return "has nothing after ://";
    if (strchr(text, ' '))
        return "holds a space";
    if (scheme == 0)
        return bad_tcp(address);
    if (scheme == 1 && strlen(address) >= sizeof(((struct sockaddr_un *)0)->sun_path))
        return "has a path too long for a socket";
    return NULL;
}

static bool parse_string(const struct oct_key *key, const char *text, char *value, char *why,
                         size_t why_bytes)
{
    size_t length = strlen(text);
    const char *bad = NULL;
    if (length < (size_t)key->min) {
        snprintf(why, why_bytes, "must not be empty");
        return false;
    }
    if (length > max_length(key)) {
        snprintf(why, why_bytes, "is %zu bytes long: at most %zu are allowed", length,
                 max_length(key));
        return false;
    }
    bad = oct_key_bad_text(text);
    if (!bad && key->type == OCT_KEY_ENDPOINT)
        bad = bad_endpoint(key, text);
    if (!bad && key->type == OCT_KEY_DEVICES)
        bad = bad_devices(text);
    if (!bad && key->type == OCT_KEY_NAMES)
        bad = bad_names(text);
    if (bad) {
        snprintf(why, why_bytes, "'%.*s' %s", SHOWN_BYTES, text, bad);
        return false;
    }
    if (key->names && index_of(key->names, text) < 0)
        return false;
    memcpy(value, text, length + 1);
    return true;
}

/* False with an empty `why`: the caller says what the key takes. */
static bool parse_trimmed(const struct oct_key *key, void *place, const char *text, char *why,
                          size_t why_bytes)
{
    uint64_t whole;
    double real;
    bool is_true;
    int index;
    switch (key->type) {
    case OCT_KEY_U32:
        if (key->word && !strcmp(key->word, text))
            whole = key->word_value;
        else if (!parse_whole(key, text, &whole))
            return false;
        *(uint32_t *)place = (uint32_t)whole;
        return true;
    case OCT_KEY_U64:
        if (!parse_whole(key, text, &whole))
            return false;
        *(uint64_t *)place = whole;
        return true;
    case OCT_KEY_F64:
        if (!parse_real(key, text, &real))
            return false;
        *(double *)place = real;
        return true;
    case OCT_KEY_BOOL:
        if (!parse_bool(text, &is_true))
            return false;
        *(bool *)place = is_true;
        return true;
    case OCT_KEY_ENUM:
        index = index_of(key->names, text);
        if (index < 0)
            return false;
        *(int *)place = index + key->first;
        return true;
    case OCT_KEY_STRING:
    case OCT_KEY_DEVICES:
    case OCT_KEY_NAMES:
    case OCT_KEY_PATH:
    case OCT_KEY_ENDPOINT:
        return parse_string(key, text, place, why, why_bytes);
    }
    return false;
}

bool oct_key_parse(const struct oct_key *key, struct oct_config *config, const char *text,
                   char *why, size_t why_bytes)
{
    char trimmed[OCT_CONFIG_STRING_BYTES];
    why[0] = '\0';
    text += strspn(text, " \t");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r\n", text[length - 1]))
        length--;
    if (length >= sizeof(trimmed)) {
        snprintf(why, why_bytes, "is %zu bytes long: at most %zu are allowed", length,
                 sizeof(trimmed) - 1);
        return false;
    }
    memcpy(trimmed, text, length);
    trimmed[length] = '\0';
    if (parse_trimmed(key, place_of(key, config), trimmed, why, why_bytes))
        return true;
    if (!why[0]) {
        char range[128];
        oct_key_format_range(key, range, sizeof(range));
        snprintf(why, why_bytes, "'%.*s' is not allowed: it takes %s", SHOWN_BYTES, trimmed, range);
    }
    return false;
}

/* The shortest decimal that reads back as the same double. */
static void format_real(double value, char *text, size_t text_bytes)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, text_bytes, "%.*g", digits, value);
        if (digits == 17 || fabs(strtod(text, NULL) - value) <= 0)
            return;
    }
}

size_t oct_key_format(const struct oct_key *key, const struct oct_config *config, char *text,
                      size_t text_bytes)
{
    const void *place = const_place_of(key, config);
    char number[32];
    const char *value = number;
    switch (key->type) {
    case OCT_KEY_U32:
        if (key->word && *(const uint32_t *)place == key->word_value)
            value = key->word;
        else
            snprintf(number, sizeof(number), "%lu", (unsigned long)*(const uint32_t *)place);
        break;
    case OCT_KEY_U64:
        snprintf(number, sizeof(number), "%llu", (unsigned long long)*(const uint64_t *)place);
        break;
    case OCT_KEY_F64:
        format_real(*(const double *)place, number, sizeof(number));
        break;
    case OCT_KEY_BOOL:
        value = *(const bool *)place ? "yes" : "no";
        break;
    case OCT_KEY_ENUM:
        value = key->names[*(const int *)place - key->first];
        break;
    case OCT_KEY_STRING:
    case OCT_KEY_DEVICES:
    case OCT_KEY_NAMES:
    case OCT_KEY_PATH:
    case OCT_KEY_ENDPOINT:
        value = place;
        break;
    }
    return (size_t)snprintf(text, text_bytes, "%s", value);
}

static void format_names(const char *const *names, char *text, size_t text_bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; names[i] && used < text_bytes; i++)
        used += (size_t)snprintf(text + used, text_bytes - used, "%s%s", i ? " | " : "",
                                 names[i][0] ? names[i] : "nothing");
}

static void format_allowed(const struct oct_key *key, char *text, size_t text_bytes)
{
    char min[32], max[32];
    switch (key->type) {
    case OCT_KEY_U32:
    case OCT_KEY_U64:
        snprintf(text, text_bytes, "%s%s%.0f to %.0f", key->word ? key->word : "",
                 key->word ? " | " : "", key->min, key->max);
        return;
    case OCT_KEY_F64:
        format_real(key->min, min, sizeof(min));
        format_real(key->max, max, sizeof(max));
        snprintf(text, text_bytes, "%s to %s", min, max);
        return;
    case OCT_KEY_BOOL:
        snprintf(text, text_bytes, "yes | no");
        return;
    case OCT_KEY_ENUM:
        format_names(key->names, text, text_bytes);
        return;
    case OCT_KEY_STRING:
        if (key->names)
            format_names(key->names, text, text_bytes);
        else
            snprintf(text, text_bytes, "text of up to %zu bytes", max_length(key));
        return;
    case OCT_KEY_DEVICES:
        snprintf(text, text_bytes, "device numbers with commas between, or nothing");
        return;
    case OCT_KEY_NAMES:
        snprintf(text, text_bytes, "names with commas between, or nothing");
        return;
    case OCT_KEY_PATH:
        snprintf(text, text_bytes, "a path");
        return;
    case OCT_KEY_ENDPOINT:
        snprintf(text, text_bytes, "tcp://HOST:PORT | ipc://PATH%s",
                 may_be_shm(key) ? " | shm://NAME" : "");
        return;
    }
}

void oct_key_format_range(const struct oct_key *key, char *text, size_t text_bytes)
{
    format_allowed(key, text, text_bytes);
    size_t used = strlen(text);
    bool is_path = key->type == OCT_KEY_PATH; /* the unit is that of the file's numbers */
    if (key->unit)
        snprintf(text + used, text_bytes - used, "%s %s%s", is_path ? " (values in" : "", key->unit,
                 is_path ? ")" : "");
}
