#include "config/options.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool oct_option_u64(const char *text, uint64_t *value)
{
    if (!text || text[0] < '0' || text[0] > '9')
        return false;
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    *value = number;
    return errno == 0 && *end == '\0';
}

bool oct_option_double(const char *text, double *value)
{
    if (!text || text[0] == '\0' || text[0] == ' ')
        return false;
    char *end;
    *value = strtod(text, &end);
    return *end == '\0' && isfinite(*value);
}

unsigned oct_option_doubles(const char *text, double *values, unsigned most)
{
    for (unsigned n = 0; n < most;) {
        char part[64];
        const size_t bytes = strcspn(text, ",");
        if (bytes >= sizeof(part))
            return 0;
        memcpy(part, text, bytes);
        part[bytes] = '\0';
        if (!oct_option_double(part, &values[n++]))
            return 0;
        if (text[bytes] == '\0')
            return n;
        text += bytes + 1;
    }
    return 0;
}

int oct_option_word(const char *word, const char *const *names, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (!word || strcasecmp(word, names[i]) == 0)
            return (int)i;
    return -1;
}

/* ---- the table ---- */

static void append(const char **list, const char *text)
{
    while (*list)
        list++;
    *list = text;
}

/* "X,Y,W,H" of "X,Y,W,H in pixels, or nothing". */
static const char *form_argument(const struct oct_param *param)
{
    return param->takes && isupper((unsigned char)param->takes[0]) ? param->takes : "VALUE";
}

/* A row as an option. "--radius PIXELS", "--polarity WORD", "--record" (of yes or no). */
static void show_param(const struct oct_param *param, struct oct_option_shown *shown)
{
    struct oct_option *o = &shown->option;
    char *end = shown->argument;
    shown->param = param;
    snprintf(shown->name, sizeof(shown->name), "--%s", param->option ? param->option : param->name);
    for (char *c = shown->name; *c; c++)
        *c = *c == '_' ? '-' : *c;
    snprintf(shown->argument, sizeof(shown->argument), "%s",
             param->type == OCT_PARAM_WORD             ? "WORD"
             : param->type == OCT_PARAM_FORM           ? form_argument(param)
             : param->unit && strlen(param->unit) <= 6 ? param->unit
                                                       : "N");
    for (; *end && *end != ' '; end++)
        *end = (char)(*end == '/' ? '_' : toupper((unsigned char)*end));
    *end = '\0';
    oct_param_format_range(param, shown->needs, sizeof(shown->needs));
    snprintf(shown->meaning, sizeof(shown->meaning), "%s\n%s; default %s", param->meaning,
             shown->needs, param->standard[0] ? param->standard : "none");
    shown->words[0] = '\0';
    for (unsigned i = 0; param->type == OCT_PARAM_WORD && param->words[i]; i++)
        snprintf(shown->words + strlen(shown->words), sizeof(shown->words) - strlen(shown->words),
                 "%s%s", i ? " " : "", param->words[i]);
    o->name = shown->name;
    o->kind = OCT_OPTION_TEXT;
    o->argument = shown->argument;
    o->meaning = shown->meaning;
    o->needs = shown->needs;
    o->words = shown->words[0] ? shown->words : OCT_WORDS_NONE;
}

/* What an option takes whose row does not say it in words. */
static void describe_needs(struct oct_option_shown *shown)
{
    struct oct_option *o = &shown->option;
    const bool has_range = o->most > 0;
    const char *what = o->argument ? o->argument : "a value";
    if (o->needs)
        return;
    o->needs = shown->needs;
    if (o->kind == OCT_OPTION_COUNT || o->kind == OCT_OPTION_NUMBER)
        what = o->kind == OCT_OPTION_COUNT ? "a whole number" : "a number";
    else if (o->words && strcmp(o->words, OCT_WORDS_FOLDERS) == 0)
        what = "a folder";
    else if (strncmp(what, "FILE", 4) == 0)
        what = "a file";
    else if (o->words && o->words[0] != '@')
        what = o->words;
    if (has_range && o->least > 0 && o->least <= OCT_OPTION_ABOVE_0)
        snprintf(shown->needs, sizeof(shown->needs), "%s above 0, %.10g at most", what, o->most);
    else if (has_range)
        snprintf(shown->needs, sizeof(shown->needs), "%s from %.10g to %.10g", what, o->least,
                 o->most);
    else
        snprintf(shown->needs, sizeof(shown->needs), "%s", what);
}

static void describe_default(struct oct_option_shown *shown)
{
    struct oct_option *o = &shown->option;
    if (!o->standard)
        return;
    snprintf(shown->meaning, sizeof(shown->meaning), "%s (%s)", o->meaning, o->standard);
    o->meaning = shown->meaning;
}

bool oct_option_at(const struct oct_option *o, unsigned i, struct oct_option_shown *shown)
{
    for (; o && (o->name || o->params || o->was); o++) {
        *shown = (struct oct_option_shown){.option = *o};
        if (!o->params && i-- == 0) {
            describe_needs(shown);
            describe_default(shown);
            return true;
        }
        for (unsigned row = 0; o->params && row < o->params->n; row++) {
            if (!o->params->rows[row].is_option || i-- > 0)
                continue;
            show_param(&o->params->rows[row], shown);
            shown->option.at = o->at + offsetof(struct oct_param_texts, text[row]);
            return true;
        }
    }
    return false;
}

const char *oct_param_text(const struct oct_params *params, const struct oct_param_texts *given,
                           const char *name)
{
    for (unsigned row = 0; row < params->n; row++)
        if (strcmp(params->rows[row].name, name) == 0)
            return given->text[row];
    return NULL;
}

void oct_param_texts_store(const struct oct_params *params, const struct oct_param_texts *given,
                           void *settings)
{
    char why[256];
    for (unsigned row = 0; row < params->n; row++)
        if (given->text[row])
            oct_param_parse(&params->rows[row], settings, given->text[row], why, sizeof(why));
}

/* The word of a parameter that is meant, whatever its case; else the text. */
static const char *find_word(const struct oct_param *param, const char *text)
{
    for (const char *const *word = param ? param->words : NULL; word && *word; word++)
        if (strcasecmp(*word, text) == 0)
            return *word;
    return text;
}

/* `text` is NULL where the value was left out. */
static bool read_value(const struct oct_option_shown *shown, void *value, const char *text)
{
    const struct oct_option *o = &shown->option;
    double number = 0;
    uint64_t count = 0;
    bool good = text != NULL;

    if (o->kind == OCT_OPTION_FLAG) {
        *(bool *)value = true;
        return true;
    }
    if (good)
        text = find_word(shown->param, text);
    if (good && shown->param && !oct_param_allows(shown->param, text))
        return false;
    if (o->kind == OCT_OPTION_TEXT && good)
        *(const char **)value = text;
    if (o->kind == OCT_OPTION_LIST && good)
        append(*(const char ***)value, text);
    if (o->kind == OCT_OPTION_COUNT && (good = oct_option_u64(text, &count)))
        number = (double)(*(uint64_t *)value = count);
    if (o->kind == OCT_OPTION_NUMBER && (good = oct_option_double(text, &number)))
        *(double *)value = number;
    return good && (o->most <= 0 || (number >= o->least && number <= o->most));
}

void oct_options_set_defaults(const struct oct_option *table, void *values)
{
    struct oct_option_shown shown;
    for (unsigned i = 0; oct_option_at(table, i, &shown); i++)
        if (shown.option.standard)
            read_value(&shown, (char *)values + shown.option.at, shown.option.standard);
}

static bool is_word(const char *word, const char *name)
{
    return name && strcmp(word, name) == 0;
}

/* Whether argv[*i] is the option, or begins as it does; then *text is its value, NULL if there is
 * none. name, brief: how it is spelled; NULL: not so. */
static bool find_value(const struct oct_option *o, const char *name, const char *brief, int argc,
                       char **argv, int *i, char **text)
{
    char *word = argv[*i];
    const size_t n_name = name ? strlen(name) : 0, n_brief = brief ? strlen(brief) : 0;
    const bool is_flag = o->kind == OCT_OPTION_FLAG;

    if (name && !is_flag && strncmp(word, name, n_name) == 0 && word[n_name] == '=') {
        *text = word + n_name + 1;
        return true;
    }
    if (brief && !is_flag && strncmp(word, brief, n_brief) == 0 && word[n_brief]) {
        *text = word + n_brief;
        return true;
    }
    if (!is_word(word, name) && !is_word(word, brief))
        return false;
    *text = !is_flag && *i + 1 < argc ? argv[++*i] : NULL;
    return true;
}

/* A value that an old spelling gave lives as long as the words of the command line. One thread
 * reads these. */
static void keep_turned(char *text)
{
    static char *kept[64];
    static unsigned n;
    kept[n++ % (sizeof(kept) / sizeof(kept[0]))] = text;
}

/* Whether argv[*i] is this option, which it reads. */
static bool read_option(struct oct_option_shown *shown, void *value, int argc, char **argv, int *i,
                        const char **wrong)
{
    const struct oct_option *o = &shown->option;
    const char *word = argv[*i];
    char *text;
    if (o->kind == OCT_OPTION_ARGUMENT)
        return false;
    if (!find_value(o, o->name, o->brief, argc, argv, i, &text)) {
        shown->is_old = find_value(o, o->was, NULL, argc, argv, i, &text);
        if (!shown->is_old)
            return false;
    }
    const bool is_turned = shown->is_old && text && o->from_was;
    const bool is_bad = is_turned && !(text = o->from_was(text));
    if (is_turned)
        keep_turned(text);
    const bool is_brief = o->brief && strncmp(word, "--", 2) != 0;
    if (is_bad || !read_value(shown, value, text))
        *wrong = shown->is_old ? o->was : is_brief ? o->brief : o->name;
    return true;
}

bool oct_option_read(const struct oct_option *table, void *values, int argc, char **argv, int *i,
                     struct oct_option_shown *shown, const char **wrong)
{
    for (unsigned k = 0; oct_option_at(table, k, shown); k++)
        if (read_option(shown, (char *)values + shown->option.at, argc, argv, i, wrong))
            return true;
    return false;
}

void oct_write_wrapped(FILE *out, size_t at, const char *head, const char *text)
{
    size_t n_blanks = 1;
    while (*text) {
        const size_t n_word = strcspn(text, " \n");
        if (at + n_blanks + n_word > 100) {
            fprintf(out, "\n%s", head);
            at = strlen(head);
            n_blanks = 1;
        }
        fprintf(out, "%*s%.*s", (int)n_blanks, "", (int)n_word, text);
        at += n_blanks + n_word;
        text += n_word;
        n_blanks = *text == '\n' ? 1 : strspn(text, " ");
        if (*text == '\n') {
            fprintf(out, "\n%s", head);
            at = strlen(head);
        }
        text += n_blanks;
    }
    fputc('\n', out);
}

static void print_option(const struct oct_option *o, int column)
{
    char head[64];
    snprintf(head, sizeof(head), "%*s", column - 1, "");
    int width = printf("  %s%s%s%s%s", o->brief ? o->brief : "", o->brief ? ", " : "", o->name,
                       o->argument ? " " : "", o->argument ? o->argument : "");
    if (o->meaning[0] && width < column - 1)
        width += printf("%*s", column - 1 - width, "");
    oct_write_wrapped(stdout, (size_t)width, head, o->meaning);
}

void oct_options_print(const struct oct_option *options, int column)
{
    struct oct_option_shown shown;
    for (unsigned i = 0; oct_option_at(options, i, &shown); i++)
        if (shown.option.name)
            print_option(&shown.option, column);
}
