/* A journal of names, for LD_PRELOAD in tests: which were made and removed, which folders were
 * synced. Each call that succeeded adds a line to the file $OCT_NAMES: "mkdir PATH", "link PATH"
 * (the new name), "open PATH" (made by it), "unlink PATH", "sync PATH" (of a folder). */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int (*real_open(void))(const char *, int, ...)
{
    static int (*real)(const char *, int, ...);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "open");
    return real;
}

static void note(const char *what, const char *path)
{
    const char *journal = getenv("OCT_NAMES");
    int fd = journal ? real_open()(journal, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return;
    dprintf(fd, "%s %s\n", what, path);
    close(fd);
}

int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    int fd = real_open()(path, flags, mode);
    if (fd >= 0 && flags & O_CREAT && flags & O_EXCL)
        note("open", path);
    return fd;
}

int mkdir(const char *path, mode_t mode)
{
    static int (*real)(const char *, mode_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "mkdir");
    int status = real(path, mode);
    if (status == 0)
        note("mkdir", path);
    return status;
}

int link(const char *from, const char *to)
{
    static int (*real)(const char *, const char *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "link");
    int status = real(from, to);
    if (status == 0)
        note("link", to);
    return status;
}

int unlink(const char *path)
{
    static int (*real)(const char *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "unlink");
    int status = real(path);
    if (status == 0)
        note("unlink", path);
    return status;
}

int fsync(int fd)
{
    static int (*real)(int);
    struct stat about;
    char link_name[40], path[PATH_MAX];
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fsync");
    int status = real(fd);
    snprintf(link_name, sizeof(link_name), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link_name, path, sizeof(path) - 1);
    if (status == 0 && n > 0 && fstat(fd, &about) == 0 && S_ISDIR(about.st_mode)) {
        path[n] = '\0';
        note("sync", path);
    }
    return status;
}
