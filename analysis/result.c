#include "analysis/result.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const void *member_of(const struct oct_result_field *field, const void *data)
{
    return (const char *)data + field->at;
}

double oct_result_number(const struct oct_result_field *field, const void *data, unsigned i)
{
    const void *value = member_of(field, data);
    switch (field->type) {
    case OCT_RESULT_U8:
        return ((const uint8_t *)value)[i];
    case OCT_RESULT_U32:
        return ((const uint32_t *)value)[i];
    case OCT_RESULT_U64:
        return (double)((const uint64_t *)value)[i];
    case OCT_RESULT_F32:
        return (double)((const float *)value)[i];
    case OCT_RESULT_F64:
        return ((const double *)value)[i];
    case OCT_RESULT_BOOL:
        return *(const bool *)value;
    case OCT_RESULT_WORD:
        return *(const int *)value;
    case OCT_RESULT_TEXT:
        break;
    }
    return NAN;
}

const char *oct_result_text(const struct oct_result_field *field, const void *data)
{
    if (field->type == OCT_RESULT_TEXT)
        return *(const char *const *)member_of(field, data);
    return field->words[*(const int *)member_of(field, data)];
}

bool oct_result_is_known(const struct oct_result_field *field, const void *data)
{
    if (field->type == OCT_RESULT_TEXT)
        return oct_result_text(field, data) != NULL;
    const double number = oct_result_number(field, data, 0);
    return !isnan(number) && !(field->zero_is_none && number == 0);
}

const struct oct_result_field *oct_result_find(const struct oct_result_fields *fields,
                                               const char *name)
{
    for (unsigned i = 0; i < fields->n; i++)
        if (strcmp(fields->fields[i].name, name) == 0)
            return &fields->fields[i];
    return NULL;
}

/* ---- sentences ---- */

/* What stands between braces: FACTOR*NAME:FORMAT, NAME? or NAME!. */
struct insertion {
    const struct oct_result_field *field;
    double factor;
    char format[8]; /* ".4f", "s", "?", "!", "" */
};

/* *at: behind the brace; then behind the closing one. */
static struct insertion read_insertion(const char **at, const struct oct_result_fields *fields)
{
    struct insertion p = {.factor = 1};
    char text[64];
    const size_t n = strcspn(*at, "}");
    assert(n < sizeof(text));
    memcpy(text, *at, n);
    text[n] = '\0';
    *at += n + 1;
    char *name = text, *star = strchr(text, '*'), *end;
    if (star) {
        p.factor = strtod(text, NULL);
        name = star + 1;
    }
    end = strpbrk(name, ":?!");
    if (end) {
        snprintf(p.format, sizeof(p.format), "%.7s", *end == ':' ? end + 1 : end);
        *end = '\0';
    }
    p.field = oct_result_find(fields, name);
    assert(p.field);
    return p;
}

static bool is_shown(const struct insertion *p, const void *data)
{
    if (p->format[0] == '!')
        return !oct_result_is_known(p->field, data) || oct_result_number(p->field, data, 0) == 0;
    if (p->format[0] == '?' && p->field->type != OCT_RESULT_TEXT)
        return oct_result_is_known(p->field, data) && oct_result_number(p->field, data, 0) != 0;
    return oct_result_is_known(p->field, data);
}

static void print_value(FILE *file, const struct insertion *p, const void *data)
{
    const struct oct_result_field *f = p->field;
    const int decimals = atoi(p->format + (p->format[0] == '.'));
    const char form = p->format[0] ? p->format[strlen(p->format) - 1] : '\0';
    if (form == '?' || form == '!')
        return;
    if (!oct_result_is_known(f, data)) {
        fputc('-', file);
        return;
    }
    if (f->type == OCT_RESULT_TEXT || f->type == OCT_RESULT_WORD) {
        fputs(oct_result_text(f, data), file);
        return;
    }
    const double value = p->factor * oct_result_number(f, data, 0);
    if (form == 's')
        fputs(value == 1 ? "" : "s", file);
    else if (form == 'f')
        fprintf(file, "%.*f", decimals, fabs(value) < 0.5 * pow(10, -decimals) ? 0 : value);
    else if (form == 'g')
        fprintf(file, "%.*g", decimals, value);
    else
        fprintf(file, "%" PRIu64, (uint64_t)value);
}

/* Whether all that stands before the closing bracket is shown; *end: behind it. */
static bool is_group_shown(const char *at, const struct oct_result_fields *fields, const void *data,
                           const char **end)
{
    bool all = true;
    while (*at && *at != ']') {
        if (*at++ != '{')
            continue;
        const struct insertion p = read_insertion(&at, fields);
        all = is_shown(&p, data) && all;
    }
    *end = *at ? at + 1 : at;
    return all;
}

void oct_result_print(FILE *file, const char *sentence, const struct oct_result_fields *fields,
                      const void *data)
{
    for (const char *at = sentence; *at;) {
        const char c = *at++;
        if (strchr("{[]}", c) && *at == c) {
            fputc(c, file);
            at++;
        } else if (c == '[') {
            const char *end;
            if (!is_group_shown(at, fields, data, &end))
                at = end;
        } else if (c == '{') {
            const struct insertion p = read_insertion(&at, fields);
            print_value(file, &p, data);
        } else if (c != ']') {
            fputc(c, file);
        }
    }
}
