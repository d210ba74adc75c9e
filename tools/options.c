#include "tools/options.h"

#include "pipeline/base/utf8.h"
#include "tools/commands.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int oct_command_fail(const char *name, const struct oct_error *err)
{
    char text[OCT_ERROR_TEXT_BYTES];
    snprintf(text, sizeof(text), "%s", err->text);
    oct_utf8_make_line(text); /* it may have a name out of a file */
    fprintf(stderr, "octctl %s: %s\n", name, text);
    return oct_exit_status(err->code);
}

int oct_command_fail_at_work(const char *name, const struct oct_error *err)
{
    const int status = oct_command_fail(name, err);
    return err->code == OCT_E_ARG ? 1 : status;
}

int oct_command_misuse(const char *name, const char *format, ...)
{
    char what[OCT_ERROR_TEXT_BYTES / 2];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    struct oct_error err;
    oct_fail(&err, OCT_E_ARG, "%s; see octctl %s --help", what, name);
    return oct_command_fail(name, &err);
}

const struct oct_command *oct_command_part(const struct oct_command *command, const char *word)
{
    if (!word || !command->parts)
        return NULL;
    if (strncmp(word, "--", 2) == 0)
        word += 2;
    for (const struct oct_command *const *part = command->parts; *part; part++) {
        const char *space = strrchr((*part)->name, ' ');
        if (space && strcmp(space + 1, word) == 0)
            return *part;
    }
    return NULL;
}

static void report_old(const char *command, const struct oct_option *o)
{
    if (o->name)
        fprintf(stderr, "octctl %s: %s is now %s%s%s\n", command, o->was, o->name,
                o->argument ? " " : "", o->argument ? o->argument : "");
    else
        fprintf(stderr, "octctl %s: %s is no more: %s\n", command, o->was, o->meaning);
}

int oct_options_read(const struct oct_command *command, void *values, int *argc, char **argv)
{
    struct oct_option_shown shown;
    const char *wrong = NULL;
    int n_plain = 0;

    oct_options_set_defaults(command->options, values);
    for (int i = 1; i < *argc; i++) {
        char *word = argv[i];
        const bool is_option =
            oct_option_read(command->options, values, *argc, argv, &i, &shown, &wrong);
        if (wrong)
            return oct_command_misuse(command->name, "%s needs %s", wrong, shown.option.needs);
        if (is_option && shown.is_old)
            report_old(command->name, &shown.option);
        if (is_option)
            continue;
        if (strncmp(word, "--", 2) == 0 && !(command->is_plain && command->is_plain(word)))
            return oct_command_misuse(command->name, "unknown option '%s'", word);
        if (n_plain == command->n_most)
            return oct_command_misuse(command->name, "%s '%s'",
                                      command->too_many ? command->too_many : "unexpected argument",
                                      word);
        argv[++n_plain] = word;
    }
    if (n_plain < command->n_least)
        return oct_command_misuse(command->name, "%s", command->too_few);
    argv[n_plain + 1] = NULL;
    *argc = n_plain + 1;
    return 0;
}

/* ---- JSON and printing ---- */

bool oct_json_is_true(const cJSON *object, const char *key)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, key));
}

const char *oct_json_text(const cJSON *object, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

double oct_json_number(const cJSON *object, const char *key)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

void oct_command_add_number(cJSON *object, const char *name, double value)
{
    if (isfinite(value))
        cJSON_AddNumberToObject(object, name, value);
    else
        cJSON_AddNullToObject(object, name);
}

void oct_command_put_name(FILE *file, const char *name)
{
    for (const char *c = name; *c; c++)
        putc((unsigned char)*c < ' ' || *c == 127 ? '?' : *c, file);
}

bool oct_command_print_json(const cJSON *tree)
{
    char *text = cJSON_Print(tree);
    if (!text)
        return false;
    oct_utf8_repair(text);
    printf("%s\n", text);
    cJSON_free(text);
    return true;
}

double oct_command_shown(double value, unsigned decimals)
{
    const double half = 0.5 * pow(10, -(double)decimals);
    return value > -half && value < half ? 0 : value;
}

void oct_command_print_left_out(uint64_t n, const char *(*why)(const void *context, uint64_t i),
                                const void *context)
{
    oct_command_print_runs("; left out: ", n, why, context);
}

void oct_command_print_runs(const char *before, uint64_t n,
                            const char *(*why)(const void *context, uint64_t i),
                            const void *context)
{
    const char *reason, *next;
    for (uint64_t i = 0; i < n; i++) {
        if (!(reason = why(context, i)))
            continue;
        uint64_t last = i;
        while (last + 1 < n && (next = why(context, last + 1)) && strcmp(next, reason) == 0)
            last++;
        printf("%s%" PRIu64, before, i);
        if (last > i)
            printf("-%" PRIu64, last);
        printf(" (%s)", reason);
        before = ", ";
        i = last;
    }
}

void oct_command_add_left_out(cJSON *object, uint64_t n,
                              const char *(*why)(const void *context, uint64_t i),
                              const void *context)
{
    oct_command_add_reasons(object, "frame", n, why, context);
}

void oct_command_add_reasons(cJSON *object, const char *what, uint64_t n,
                             const char *(*why)(const void *context, uint64_t i),
                             const void *context)
{
    cJSON *left = cJSON_AddArrayToObject(object, "left_out");
    for (uint64_t i = 0; i < n; i++) {
        const char *reason = why(context, i);
        if (!reason)
            continue;
        cJSON *one = cJSON_CreateObject();
        cJSON_AddNumberToObject(one, what, (double)i);
        cJSON_AddStringToObject(one, "reason", reason);
        cJSON_AddItemToArray(left, one);
    }
}
