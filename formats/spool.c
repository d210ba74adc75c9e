#define _GNU_SOURCE /* mkostemp */
#include "formats/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES ((size_t)1 << 20)
#define SLICE_MS 100

/* A file without a name in the folder; < 0: errno says why. */
static int make_file(const char *folder)
{
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof(path), "%s/octd-input-XXXXXX", folder);
    if (n < 0 || (size_t)n >= sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    const int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

static bool was_told_to_end(void)
{
    sigset_t waiting;
    return sigpending(&waiting) == 0 &&
           (sigismember(&waiting, SIGINT) == 1 || sigismember(&waiting, SIGTERM) == 1);
}

/* Waits for bytes in slices, as signals may be blocked. *n 0: the end. */
static enum oct_err read_some(char *buffer, ssize_t *n, const volatile sig_atomic_t *cancel,
                              struct oct_error *err)
{
    for (;;) {
        struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
        const int ready = poll(&in, 1, SLICE_MS);
        if ((cancel && *cancel) || was_told_to_end() || (ready < 0 && errno == EINTR))
            return oct_fail(err, OCT_E_CLOSED, "interrupted while reading standard input");
        if (ready == 0)
            continue;
        *n = read(STDIN_FILENO, buffer, BUFFER_BYTES);
        if (*n >= 0)
            return OCT_OK;
        if (errno != EINTR && errno != EAGAIN)
            return oct_fail_errno(err, OCT_E_IO, errno, "standard input: cannot be read");
    }
}

static enum oct_err copy(int fd, const char *folder, const volatile sig_atomic_t *cancel,
                         struct oct_error *err)
{
    char *buffer = malloc(BUFFER_BYTES);
    ssize_t n = 1;
    enum oct_err e = buffer ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    while (!e && n > 0) {
        e = read_some(buffer, &n, cancel, err);
        for (ssize_t done = 0; !e && done < n;) {
            const ssize_t written = write(fd, buffer + done, (size_t)(n - done));
            if (written < 0 && errno != EINTR)
                e = oct_fail_errno(err, OCT_E_IO, errno,
                                   "standard input: cannot be kept in %s (TMPDIR chooses another "
                                   "folder)",
                                   folder);
            done += written > 0 ? written : 0;
        }
    }
    free(buffer);
    return e;
}

enum oct_err oct_spool_input(int *fd, const volatile sig_atomic_t *cancel, struct oct_error *err)
{
    struct stat about;
    const char *folder = getenv("TMPDIR");
    *fd = -1;
    if (isatty(STDIN_FILENO))
        return oct_fail(err, OCT_E_IO, "standard input is a terminal: pipe a recording into it");
    if (fstat(STDIN_FILENO, &about) == 0 && S_ISREG(about.st_mode) &&
        lseek(STDIN_FILENO, 0, SEEK_CUR) == 0) {
        *fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
        return *fd >= 0 ? OCT_OK : oct_fail_errno(err, OCT_E_IO, errno, "standard input");
    }
    folder = folder && folder[0] ? folder : "/var/tmp";
    *fd = make_file(folder);
    if (*fd < 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot keep standard input there (TMPDIR)",
                              folder);
    const enum oct_err e = copy(*fd, folder, cancel, err);
    if (e) {
        close(*fd);
        *fd = -1;
    }
    return e;
}

enum oct_err oct_spool_stdin(const volatile sig_atomic_t *cancel, struct oct_error *err)
{
    int fd;
    enum oct_err e = oct_spool_input(&fd, cancel, err);
    if (e)
        return e;
    if (lseek(fd, 0, SEEK_SET) != 0 || dup2(fd, STDIN_FILENO) < 0)
        e = oct_fail_errno(err, OCT_E_IO, errno, "standard input");
    close(fd);
    return e;
}
