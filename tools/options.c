/* Reading a command's options and telling what was wrong with them. */
#include "pipeline/base/utf8.h"
#include "tools/commands.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int oct_command_fail(const char *name, const struct oct_error *err)
{
    fprintf(stderr, "octctl %s: %s\n", name, err->text);
    return oct_exit_status(err->code);
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

bool oct_option_flag(const char *argument, const char *name)
{
    return strcmp(argument, name) == 0;
}

bool oct_option_value(int argc, char **argv, int *i, const char *name, const char **value)
{
    size_t length = strlen(name);
    if (strncmp(argv[*i], name, length) != 0)
        return false;
    if (argv[*i][length] == '=') {
        *value = argv[*i] + length + 1;
        return true;
    }
    if (argv[*i][length] != '\0')
        return false;
    *value = *i + 1 < argc ? argv[++*i] : NULL;
    return true;
}

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
