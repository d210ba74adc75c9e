#define _GNU_SOURCE /* program_invocation_short_name */
#include "pipeline/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void oct_log(enum oct_log_level level, const char *format, ...)
{
    static const char *const words[] = {"error: ", "warning: ", ""};
    static const int priorities[] = {3, 4, 6};
    char line[1024];
    int n;

    if (getenv("JOURNAL_STREAM"))
        n = snprintf(line, sizeof(line), "<%d>", priorities[level]);
    else
        n = snprintf(line, sizeof(line), "%s: %s", program_invocation_short_name, words[level]);
    va_list args;
    va_start(args, format);
    n += vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, args);
    va_end(args);
    if (n > (int)sizeof(line) - 2)
        n = (int)sizeof(line) - 2;
    line[n++] = '\n';
    while (write(STDERR_FILENO, line, (size_t)n) < 0 && errno == EINTR)
        ;
}
