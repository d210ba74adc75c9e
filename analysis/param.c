#include "analysis/param.h"

#include "pipeline/base/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SHOWN_BYTES 60 /* of a wrong value in a message */

/* Longest text that it takes, without its NUL. */
static size_t max_length(const struct oct_param *param)
{
    return param->most > 0 ? (size_t)param->most : OCT_PARAM_TEXT_BYTES - 1;
}

static bool parse_whole(const struct oct_param *param, const char *text, uint64_t *value)
{
    if (!*text || strspn(text, "0123456789") != strlen(text))
        return false;
    errno = 0;
    unsigned long long parsed = strtoull(text, NULL, 10);
    *value = parsed;
    return errno == 0 && parsed >= (uint64_t)param->least && parsed <= (uint64_t)param->most;
}

static bool parse_real(const struct oct_param *param, const char *text, double *value)
{
    /* Only plain decimals: strtod would also take hexadecimal, inf and nan. */
    if (!*text || strspn(text, "0123456789+-.eE") != strlen(text))
        return false;
    char *end;
    *value = strtod(text, &end);
    return !*end && isfinite(*value) && *value >= param->least && *value <= param->most;
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

/* Words that begin with no and yes are a bool's with more to it: they take its other words too. */
static bool is_answer(const char *const *words)
{
    return words[0] && words[1] && !strcmp(words[0], "no") && !strcmp(words[1], "yes");
}

/* Index of text in a NULL-terminated list, or -1. */
static int index_of(const char *const *words, const char *text)
{
    for (int i = 0; words[i]; i++)
        if (!strcmp(words[i], text))
            return i;
    return -1;
}

const char *oct_param_bad_encoding(const char *text)
{
    if (oct_utf8_valid_bytes(text, strlen(text)) == strlen(text))
        return NULL;
    return "is not UTF-8: write it in that encoding; a file or folder whose name is in another one "
           "needs a new name or a link";
}

const char *oct_param_bad_text(const char *text)
{
    bool after_space = true;
    const char *bad = oct_param_bad_encoding(text);
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

static bool parse_text(const struct oct_param *param, const char *text, char *value, char *why,
                       size_t why_bytes)
{
    size_t length = strlen(text);
    const char *bad = NULL;
    if (length < (size_t)param->least) {
        snprintf(why, why_bytes, "must not be empty");
        return false;
    }
    if (length > max_length(param)) {
        snprintf(why, why_bytes, "is %zu bytes long: at most %zu are allowed", length,
                 max_length(param));
        return false;
    }
    bad = oct_param_bad_text(text);
    if (!bad && param->bad)
        bad = param->bad(text);
    if (bad) {
        snprintf(why, why_bytes, "'%.*s' %s", SHOWN_BYTES, text, bad);
        return false;
    }
    if (param->words && index_of(param->words, text) < 0)
        return false;
    memcpy(value, text, length + 1);
    return true;
}

/* False with an empty `why`: the caller says what it takes. */
static bool parse_trimmed(const struct oct_param *param, void *place, const char *text, char *why,
                          size_t why_bytes)
{
    uint64_t whole;
    double real;
    bool is_true;
    int index;
    switch (param->type) {
    case OCT_PARAM_U32:
        if (param->word && !strcmp(param->word, text))
            whole = param->word_value;
        else if (!parse_whole(param, text, &whole))
            return false;
        *(uint32_t *)place = (uint32_t)whole;
        return true;
    case OCT_PARAM_U64:
        if (!parse_whole(param, text, &whole))
            return false;
        *(uint64_t *)place = whole;
        return true;
    case OCT_PARAM_F64:
        if (!parse_real(param, text, &real))
            return false;
        *(double *)place = real;
        return true;
    case OCT_PARAM_BOOL:
        if (!parse_bool(text, &is_true))
            return false;
        *(bool *)place = is_true;
        return true;
    case OCT_PARAM_WORD:
        index = index_of(param->words, text);
        if (index < 0 && is_answer(param->words) && parse_bool(text, &is_true))
            index = is_true;
        if (index < 0)
            return false;
        *(int *)place = index + param->first;
        return true;
    case OCT_PARAM_TEXT:
    case OCT_PARAM_PATH:
        return parse_text(param, text, place, why, why_bytes);
    case OCT_PARAM_FORM:
        return param->form->parse(param, text, place, why, why_bytes);
    }
    return false;
}

bool oct_param_parse(const struct oct_param *param, void *settings, const char *text, char *why,
                     size_t why_bytes)
{
    char trimmed[OCT_PARAM_TEXT_BYTES];
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
    if (parse_trimmed(param, (char *)settings + param->at, trimmed, why, why_bytes))
        return true;
    if (!why[0]) {
        char range[128];
        oct_param_format_range(param, range, sizeof(range));
        snprintf(why, why_bytes, "'%.*s' is not allowed: it takes %s", SHOWN_BYTES, trimmed, range);
    }
    return false;
}

bool oct_param_allows(const struct oct_param *param, const char *text)
{
    _Alignas(max_align_t) char value[OCT_PARAM_TEXT_BYTES]; /* of any type */
    char why[256];
    struct oct_param alone = *param;
    alone.at = 0;
    return oct_param_parse(&alone, value, text, why, sizeof(why));
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

size_t oct_param_format(const struct oct_param *param, const void *settings, char *text,
                        size_t text_bytes)
{
    const void *place = (const char *)settings + param->at;
    char number[128];
    const char *value = number;
    switch (param->type) {
    case OCT_PARAM_U32:
        if (param->word && *(const uint32_t *)place == param->word_value)
            value = param->word;
        else
            snprintf(number, sizeof(number), "%lu", (unsigned long)*(const uint32_t *)place);
        break;
    case OCT_PARAM_U64:
        snprintf(number, sizeof(number), "%llu", (unsigned long long)*(const uint64_t *)place);
        break;
    case OCT_PARAM_F64:
        format_real(*(const double *)place, number, sizeof(number));
        break;
    case OCT_PARAM_BOOL:
        value = *(const bool *)place ? "yes" : "no";
        break;
    case OCT_PARAM_WORD:
        value = param->words[*(const int *)place - param->first];
        break;
    case OCT_PARAM_TEXT:
    case OCT_PARAM_PATH:
        value = place;
        break;
    case OCT_PARAM_FORM:
        param->form->format(place, number, sizeof(number));
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

static void format_allowed(const struct oct_param *param, char *text, size_t text_bytes)
{
    char min[32], max[32];
    switch (param->type) {
    case OCT_PARAM_U32:
    case OCT_PARAM_U64:
        snprintf(text, text_bytes, "%s%s%.0f to %.0f", param->word ? param->word : "",
                 param->word ? " | " : "", param->least, param->most);
        return;
    case OCT_PARAM_F64:
        format_real(param->least, min, sizeof(min));
        format_real(param->most, max, sizeof(max));
        snprintf(text, text_bytes, "%s to %s", min, max);
        return;
    case OCT_PARAM_BOOL:
        snprintf(text, text_bytes, "yes | no");
        return;
    case OCT_PARAM_WORD:
        format_names(param->words, text, text_bytes);
        return;
    case OCT_PARAM_TEXT:
        if (param->words)
            format_names(param->words, text, text_bytes);
        else if (param->takes)
            snprintf(text, text_bytes, "%s", param->takes);
        else
            snprintf(text, text_bytes, "text of up to %zu bytes", max_length(param));
        return;
    case OCT_PARAM_PATH:
        snprintf(text, text_bytes, "a path");
        return;
    case OCT_PARAM_FORM:
        snprintf(text, text_bytes, "%s", param->takes);
        return;
    }
}

void oct_param_format_range(const struct oct_param *param, char *text, size_t text_bytes)
{
    format_allowed(param, text, text_bytes);
    size_t used = strlen(text);
    bool is_path = param->type == OCT_PARAM_PATH; /* the unit is that of the file's numbers */
    if (param->unit)
        snprintf(text + used, text_bytes - used, "%s %s%s", is_path ? " (values in" : "",
                 param->unit, is_path ? ")" : "");
}

void oct_params_set_defaults(const struct oct_params *params, void *settings)
{
    char why[128];
    for (unsigned i = 0; i < params->n; i++)
        oct_param_parse(&params->rows[i], settings, params->rows[i].standard, why, sizeof(why));
}

/* Whether the value is one that text could have given. */
static bool is_allowed(const struct oct_param *param, const void *place)
{
    double value = param->least;
    switch (param->type) {
    case OCT_PARAM_U32:
        value = *(const uint32_t *)place;
        break;
    case OCT_PARAM_U64:
        value = (double)*(const uint64_t *)place;
        break;
    case OCT_PARAM_F64:
        value = *(const double *)place;
        break;
    case OCT_PARAM_WORD:
        for (int i = 0; param->words[i]; i++)
            if (*(const int *)place == i + param->first)
                return true;
        return false;
    default:
        return true;
    }
    return (value >= param->least && value <= param->most) ||
           (param->word && param->type == OCT_PARAM_U32 &&
            *(const uint32_t *)place == param->word_value);
}

enum oct_err oct_params_check(const struct oct_params *params, const void *settings,
                              const char *name, struct oct_error *err)
{
    for (unsigned i = 0; i < params->n; i++) {
        const struct oct_param *param = &params->rows[i];
        const void *place = (const char *)settings + param->at;
        char value[64] = "no word", range[128];
        if (is_allowed(param, place))
            continue;
        if (param->type != OCT_PARAM_WORD)
            oct_param_format(param, settings, value, sizeof(value));
        oct_param_format_range(param, range, sizeof(range));
        return oct_fail(err, OCT_E_CONFIG, "%s: %s is %s: it takes %s", name, param->name, value,
                        range);
    }
    return OCT_OK;
}

bool oct_params_are_same(const struct oct_params *params, const void *a, const void *b)
{
    char of_a[OCT_PARAM_TEXT_BYTES], of_b[OCT_PARAM_TEXT_BYTES];
    for (unsigned i = 0; i < params->n; i++) {
        oct_param_format(&params->rows[i], a, of_a, sizeof(of_a));
        oct_param_format(&params->rows[i], b, of_b, sizeof(of_b));
        if (strcmp(of_a, of_b) != 0)
            return false;
    }
    return true;
}

/* ---- forms ---- */

static bool parse_region(const struct oct_param *param, const char *text, void *value, char *why,
                         size_t why_bytes)
{
    struct oct_region r = {.width = 0};
    uint32_t *const parts[] = {&r.x, &r.y, &r.width, &r.height};
    (void)param;
    (void)why;
    (void)why_bytes;
    for (size_t i = 0; i < 4 && *text; i++) {
        char *end;
        errno = 0;
        const unsigned long long n = strtoull(text, &end, 10);
        if (*text < '0' || *text > '9' || errno || n > UINT32_MAX || *end != (i < 3 ? ',' : '\0'))
            return false;
        *parts[i] = (uint32_t)n;
        text = end + (i < 3);
        if (i == 3 && (r.width == 0 || r.height == 0))
            return false;
    }
    *(struct oct_region *)value = r;
    return true;
}

static void format_region(const void *value, char *text, size_t text_bytes)
{
    const struct oct_region *r = value;
    text[0] = '\0';
    if (r->width > 0)
        snprintf(text, text_bytes, "%u,%u,%u,%u", r->x, r->y, r->width, r->height);
}

const struct oct_param_form oct_param_region = {parse_region, format_region};

static bool parse_number_or_none(const struct oct_param *param, const char *text, void *value,
                                 char *why, size_t why_bytes)
{
    (void)why;
    (void)why_bytes;
    if (*text && strcmp(text, "none") != 0)
        return parse_real(param, text, value);
    *(double *)value = NAN;
    return true;
}

static void format_number_or_none(const void *value, char *text, size_t text_bytes)
{
    text[0] = '\0';
    if (!isnan(*(const double *)value))
        format_real(*(const double *)value, text, text_bytes);
}

const struct oct_param_form oct_param_number_or_none = {parse_number_or_none,
                                                        format_number_or_none};
