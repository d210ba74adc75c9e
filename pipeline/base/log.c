#define _GNU_SOURCE /* program_invocation_short_name */
#include "pipeline/base/log.h"

#include "pipeline/base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_BYTES 1024
#define PATIENCE_MS 20 /* of the 100 ms that a control reply may take */

/* Lines lost since the last one that got through. stderr belongs to the process, and so does this
 * count. There is no lock: a thread that yields to others may be stopped while it writes. */
static atomic_uint_fast64_t n_dropped;

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

static bool was_taken(ssize_t sent)
{
    return sent >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

/* A pipe or terminal, by an open file of our own: that a write must not block is a property of the
 * open file, which we share with whoever started us. A pipe takes less than PIPE_BUF whole. */
static bool write_to_pipe(const char *text, size_t n)
{
    ssize_t sent;
    int fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) { /* of another user: what poll reports may not hold any more at the write */
        struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
        if (poll(&out, 1, 0) == 0)
            return false;
    }
    do
        sent = write(fd < 0 ? STDERR_FILENO : fd, text, n);
    while (sent < 0 && errno == EINTR);
    const bool taken = was_taken(sent);
    if (fd >= 0)
        close(fd);
    return taken;
}

/* False: the write would block. Any other error of stderr has nowhere to be reported. */
static bool write_at_once(const char *text, size_t n)
{
    struct stat about;
    ssize_t sent;
    if (fstat(STDERR_FILENO, &about) == 0 && (S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode)))
        return write_to_pipe(text, n);
    do
        sent = send(STDERR_FILENO, text, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    while (sent < 0 && (errno == ENOTSOCK || errno == EINTR))
        sent = write(STDERR_FILENO, text, n);
    return was_taken(sent);
}

static bool write_patiently(const char *text, size_t n, bool is_first)
{
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (write_at_once(text, n))
        return true;
    /* Only the first line waits; a reader that did not read then is not waited for again. */
    return is_first && poll(&out, 1, PATIENCE_MS) > 0 && write_at_once(text, n);
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

    const uint64_t n_lost = atomic_exchange(&n_dropped, 0);
    if (n_lost > 0) { /* a line of its own, in the same write */
        char before[256];
        n_before = write_head(before, sizeof(before), OCT_LOG_WARNING);
        n_before += (size_t)snprintf(before + n_before, sizeof(before) - n_before,
                                     "%llu lines of this log were lost here: nobody read it\n",
                                     (unsigned long long)n_lost);
        memcpy(line - n_before, before, n_before);
    }
    if (!write_patiently(line - n_before, n_before + n, n_lost == 0))
        atomic_fetch_add(&n_dropped, n_lost + 1);
}
