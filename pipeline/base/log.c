#define _GNU_SOURCE /* program_invocation_short_name */
#include "pipeline/base/log.h"

#include "pipeline/base/utf8.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINE_BYTES 1024
#define PATIENCE_MS 20 /* of the 100 ms that a control reply may take */

/* stderr belongs to the process, and so does this state: no caller could hold it. The lock admits
 * one line at a time, so that what poll() reported still holds at the write. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t n_dropped; /* since the last line that got through; guarded by lock */

static const char *const words[] = {"error: ", "warning: ", ""};
static const int priorities[] = {3, 4, 6};

/* The beginning of every line. */
static size_t write_head(char *line, size_t bytes, enum oct_log_level level)
{
    int n = getenv("JOURNAL_STREAM")
                ? snprintf(line, bytes, "<%d>", priorities[level])
                : snprintf(line, bytes, "%s: %s", program_invocation_short_name, words[level]);
    return n < 0 ? 0 : (size_t)n < bytes ? (size_t)n : bytes - 1;
}

/* False: the write would block. Any other error of stderr has nowhere to be reported. */
static bool write_at_once(const char *text, size_t n)
{
    ssize_t sent;
    do
        sent = send(STDERR_FILENO, text, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0 || errno != ENOTSOCK)
        return sent >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&out, 1, 0) == 0)
        return false; /* a full pipe, a stopped terminal */
    do
        sent = write(STDERR_FILENO, text, n); /* less than PIPE_BUF: whole */
    while (sent < 0 && errno == EINTR);
    return sent >= 0 || errno != EAGAIN;
}

static bool write_patiently(const char *text, size_t n)
{
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (write_at_once(text, n))
        return true;
    /* Only the first line waits; a reader that did not read then is not waited for again. */
    return n_dropped == 0 && poll(&out, 1, PATIENCE_MS) > 0 && write_at_once(text, n);
}

void oct_log(enum oct_log_level level, const char *format, ...)
{
    char text[2 * LINE_BYTES], *line = text + LINE_BYTES;
    size_t n = write_head(line, LINE_BYTES, level), n_before = 0;

    va_list args;
    va_start(args, format);
    int more = vsnprintf(line + n, LINE_BYTES - n - 1, format, args);
    va_end(args);
    if (more < 0)
        line[n] = '\0';
    oct_utf8_make_line(line + n); /* a file's name may contain a newline */
    n += strlen(line + n);
    line[n++] = '\n';

    pthread_mutex_lock(&lock);
    if (n_dropped > 0) { /* a line of its own, in the same write */
        char before[256];
        n_before = write_head(before, sizeof(before), OCT_LOG_WARNING);
        n_before += (size_t)snprintf(before + n_before, sizeof(before) - n_before,
                                     "%llu lines of this log were lost here: nobody read it\n",
                                     (unsigned long long)n_dropped);
        memcpy(line - n_before, before, n_before);
    }
    if (write_patiently(line - n_before, n_before + n))
        n_dropped = 0;
    else
        n_dropped++;
    pthread_mutex_unlock(&lock);
}
