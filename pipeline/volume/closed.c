#define _GNU_SOURCE /* TEMP_FAILURE_RETRY, F_OFD_SETLK */
#include "pipeline/volume/closed.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* 10 ms each: a label is written in a moment, a program may write a file for hours. */
#define LABEL_TRIES 1000
#define WRITER_TRIES 100

/* A recording has its final name when it is closed. The file's own name is asked, not the one that
 * it was opened by, which may be a link. */
static enum oct_err refuse_unfinished(int fd, const char *path, struct oct_error *err)
{
    static const char part[] = ".part";
    char link[40], name[PATH_MAX];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, name, sizeof(name));
    const size_t n_part = sizeof(part) - 1;
    if (n >= (ssize_t)n_part && memcmp(name + n - n_part, part, n_part) == 0)
        return oct_fail(err, OCT_E_STATE,
                        "%s: is still being written, or was left by a program that was killed: "
                        "wait until it is closed, or rename it without .part",
                        path);
    return OCT_OK;
}

/* Tries again every 10 ms; `lock` returns -1 with errno. File systems that have no locks are
 * trusted. */
static bool await_lock(int fd, int (*lock)(int fd), int n_tries)
{
    const struct timespec pause = {.tv_nsec = 10 * 1000000L};
    for (int i = 0; i < n_tries; i++) {
        if (lock(fd) == 0 || (errno != EWOULDBLOCK && errno != EACCES && errno != EINTR))
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

/* Those who change a closed recording take this one from one another. */
static int lock_label(int fd)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &all);
}

/* libhdf5's own, shared: a program that writes the file keeps others out and is kept out, and one
 * that reads it goes on reading. */
static int lock_for_reading(int fd)
{
    return flock(fd, LOCK_SH | LOCK_NB);
}

static enum oct_err lock_file(int fd, const char *path, bool to_change, struct oct_error *err)
{
    if ((!to_change || await_lock(fd, lock_label, LABEL_TRIES)) &&
        await_lock(fd, lock_for_reading, WRITER_TRIES))
        return OCT_OK;
    return oct_fail(err, OCT_E_STATE, "%s: another program writes it: close it there", path);
}

/* Who waited for the lock may have got that of a file which has lost its name meanwhile. */
static enum oct_err check_name(int fd, const char *path, struct oct_error *err)
{
    struct stat own, named;
    if (fstat(fd, &own) == 0 && stat(path, &named) == 0 && own.st_dev == named.st_dev &&
        own.st_ino == named.st_ino)
        return OCT_OK;
    return oct_fail(err, OCT_E_STATE, "%s: another program has replaced it: try again", path);
}

enum oct_err oct_volume_closed_open(int *fd, const char *path, bool to_change,
                                    struct oct_error *err)
{
    struct stat st;
    const int mode = to_change ? O_RDWR : O_RDONLY;
    *fd = (int)TEMP_FAILURE_RETRY(open(path, mode | O_NONBLOCK | O_CLOEXEC));
    if (*fd < 0 || fstat(*fd, &st) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be opened%s", path,
                              to_change ? " for writing" : "");
    if (!S_ISREG(st.st_mode))
        return oct_fail(err, OCT_E_FORMAT, "%s: not a file", path);
    enum oct_err e = refuse_unfinished(*fd, path, err);
    e = e ? e : lock_file(*fd, path, to_change, err);
    return e == OCT_OK ? check_name(*fd, path, err) : e;
}
