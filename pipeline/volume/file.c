#define _GNU_SOURCE /* fallocate, O_DIRECT, O_TMPFILE, renameat2, TEMP_FAILURE_RETRY */
#include "pipeline/volume/file.h"

#include "pipeline/base/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static char *joined(const char *a, const char *b)
{
    size_t bytes = strlen(a) + strlen(b) + 1;
    char *text = malloc(bytes);
    if (text)
        snprintf(text, bytes, "%s%s", a, b);
    return text;
}

static enum oct_err refuse_existing(const char *path, struct oct_error *err)
{
    struct stat st;
    if (lstat(path, &st) == 0)
        return oct_fail(err, OCT_E_IO,
                        "%s: exists already and is never overwritten: move it or choose another "
                        "name",
                        path);
    if (errno != ENOENT)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s", path);
    return OCT_OK;
}

/* Any call may be interrupted on network and user-space file systems; it is then repeated. */
static int open_fully(const char *path, int flags)
{
    return (int)TEMP_FAILURE_RETRY(open(path, flags, 0666));
}

static enum oct_err open_draft(struct oct_volume_file *file, struct oct_error *err)
{
    file->fd = open_fully(file->folder, O_TMPFILE | O_RDWR | O_CLOEXEC);
    if (file->fd >= 0)
        return OCT_OK;
    /* EISDIR: kernels that do not know O_TMPFILE; EOPNOTSUPP: file systems that do not. */
    if (errno == EISDIR || errno == EOPNOTSUPP || errno == EINVAL) {
        char suffix[40];
        snprintf(suffix, sizeof(suffix), ".new.%ld", (long)getpid());
        char *name = joined(file->part, suffix);
        if (!name)
            return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", file->path);
        file->fd = open_fully(name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC);
        if (file->fd >= 0) {
            file->draft = name;
            return OCT_OK;
        }
        free(name);
    }
    return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot create a file in this folder",
                          file->path);
}

enum oct_err oct_volume_file_draft(struct oct_volume_file *file, const char *path,
                                   struct oct_error *err)
{
    *file = (struct oct_volume_file){.fd = -1, .direct_fd = -1};
    file->path = strdup(path);
    file->part = joined(path, ".part");
    file->folder = oct_folder_of(path);
    if (!file->path || !file->part || !file->folder)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    enum oct_err e = refuse_existing(file->path, err);
    e = e ? e : refuse_existing(file->part, err);
    e = e ? e : open_draft(file, err);
    return e;
}

static uint64_t free_bytes(int fd)
{
    struct statvfs fs;
    return fstatvfs(fd, &fs) == 0 ? (uint64_t)fs.f_bavail * fs.f_frsize : UINT64_MAX;
}

enum oct_err oct_volume_file_reserve(struct oct_volume_file *file, uint64_t bytes,
                                     struct oct_error *err)
{
    uint64_t n_free = free_bytes(file->fd);
    int status = (int)TEMP_FAILURE_RETRY(fallocate(file->fd, 0, 0, (off_t)bytes));
    if (status != 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) {
        /* This file system cannot reserve (some network ones): check that it would fit now. */
        errno = ENOSPC;
        status = n_free < bytes ? -1 : (int)TEMP_FAILURE_RETRY(ftruncate(file->fd, (off_t)bytes));
    }
    if (status == 0)
        return OCT_OK;
    if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)
        return oct_fail(err, OCT_E_NO_SPACE,
                        "%s: no room for this volume: %llu bytes wanted, %llu free on its disk: %s",
                        file->path, (unsigned long long)bytes, (unsigned long long)n_free,
                        strerror(errno));
    return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot reserve %llu bytes", file->path,
                          (unsigned long long)bytes);
}

/* A signal or a network file system may interrupt a sync. What is on the disk is then unknown, so
 * the sync is repeated. */
static int sync_fully(int fd, int (*sync)(int fd))
{
    return (int)TEMP_FAILURE_RETRY(sync(fd));
}

static enum oct_err sync_folder(const struct oct_volume_file *file, struct oct_error *err)
{
    struct oct_error why;
    enum oct_err e = oct_folder_sync(file->folder, &why);
    return e ? oct_fail(err, e, "%s: %s", file->path, why.text) : OCT_OK;
}

/* rename that never replaces; returns 0 or -1 with errno. */
static int rename_new(const char *from, const char *to)
{
    if (TEMP_FAILURE_RETRY(renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE)) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (TEMP_FAILURE_RETRY(link(from, to)) != 0)
        return -1;
    return (int)TEMP_FAILURE_RETRY(unlink(from));
}

static int name_draft(struct oct_volume_file *file)
{
    if (file->draft) {
        if (rename_new(file->draft, file->part) != 0)
            return -1;
        free(file->draft);
        file->draft = NULL;
        return 0;
    }
    char self[40];
    snprintf(self, sizeof(self), "/proc/self/fd/%d", file->fd);
    return (int)TEMP_FAILURE_RETRY(linkat(AT_FDCWD, self, AT_FDCWD, file->part, AT_SYMLINK_FOLLOW));
}

enum oct_err oct_volume_file_publish(struct oct_volume_file *file, struct oct_error *err)
{
    if (sync_fully(file->fd, fsync) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot sync", file->path);
    if (name_draft(file) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot give the file this name",
                              file->part);
    enum oct_err e = sync_folder(file, err);
    if (e == OCT_OK) {
        file->direct_fd = open_fully(file->part, O_WRONLY | O_DIRECT | O_CLOEXEC);
        if (file->direct_fd < 0 && errno != EINVAL)
            e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot open it again", file->part);
    }
    if (e != OCT_OK)
        unlink(file->part); /* nothing is in it yet */
    return e;
}

/* One pwrite; it may write less than asked. A direct write may end within a block when the disk is
 * nearly full, and some file systems refuse direct I/O only at the first write. What cannot be
 * written directly is written through the page cache. The kernel writes back and drops cached pages
 * under a direct write, so that both ways may be mixed. */
static ssize_t write_some(struct oct_volume_file *file, const unsigned char *data, size_t bytes,
                          uint64_t offset, bool direct)
{
    const size_t mask = OCT_VOLUME_BLOCK_BYTES - 1;
    if (direct && file->direct_fd >= 0 && !(offset & mask) && !(bytes & mask)) {
        ssize_t n = pwrite(file->direct_fd, data, bytes, (off_t)offset);
        if (n >= 0 || errno != EINVAL)
            return n;
        close(file->direct_fd);
        file->direct_fd = -1;
    }
    return pwrite(file->fd, data, bytes, (off_t)offset);
}

enum oct_err oct_volume_file_write(struct oct_volume_file *file, const void *data, size_t bytes,
                                   uint64_t offset, bool direct, struct oct_error *err)
{
    const unsigned char *next = data;
    while (bytes > 0) {
        ssize_t n = write_some(file, next, bytes, offset, direct);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return oct_fail_errno(err, OCT_E_IO, n < 0 ? errno : EIO,
                                  "%s: cannot write %zu bytes at byte %llu", file->part, bytes,
                                  (unsigned long long)offset);
        next += n;
        bytes -= (size_t)n;
        offset += (uint64_t)n;
    }
    return OCT_OK;
}

enum oct_err oct_volume_file_write_column(struct oct_volume_file *file,
                                          const struct oct_volume_column_form *column,
                                          const void *rows, size_t stride, size_t n,
                                          uint64_t offset, struct oct_error *err)
{
    enum { AT_ONCE = 1024 };
    unsigned char values[AT_ONCE * sizeof(uint64_t)];
    enum oct_err e = OCT_OK;
    for (size_t first = 0, some; first < n && !e; first += some) {
        some = n - first < AT_ONCE ? n - first : AT_ONCE;
        for (size_t i = 0; i < some; i++)
            memcpy(values + i * column->bytes,
                   (const char *)rows + (first + i) * stride + column->at, column->bytes);
        e = oct_volume_file_write(file, values, some * column->bytes,
                                  offset + first * column->bytes, false, err);
    }
    return e;
}

enum oct_err oct_volume_file_sync(struct oct_volume_file *file, struct oct_error *err)
{
    if (sync_fully(file->fd, fdatasync) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot sync", file->part);
    return OCT_OK;
}

#define LEAST_HOLE_BYTES ((uint64_t)64 << 10)

void oct_volume_file_give_back(struct oct_volume_file *file, uint64_t start, uint64_t end)
{
    const uint64_t mask = OCT_VOLUME_BLOCK_BYTES - 1;
    start = (start + mask) & ~mask; /* a block at either end may hold a neighbour's bytes */
    end &= ~mask;
    if (end <= start || end - start < LEAST_HOLE_BYTES)
        return;
    /* The recording is whole without it: a failure costs space, no bytes. */
    (void)TEMP_FAILURE_RETRY(fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                       (off_t)start, (off_t)(end - start)));
}

void oct_volume_file_give_back_rows(struct oct_volume_file *file, uint64_t start, size_t row_bytes,
                                    const uint8_t *used, uint32_t n_rows)
{
    for (uint32_t first = 0, end; first < n_rows; first = end) {
        for (end = first; end < n_rows && used[end] == used[first]; end++)
            ;
        if (!used[first])
            oct_volume_file_give_back(file, start + (uint64_t)first * row_bytes,
                                      start + (uint64_t)end * row_bytes);
    }
}

enum oct_err oct_volume_file_rename(struct oct_volume_file *file, struct oct_error *err)
{
    if (rename_new(file->part, file->path) == 0)
        return sync_folder(file, err);
    if (errno == EEXIST)
        return oct_fail(err, OCT_E_IO,
                        "%s: exists already and is never overwritten: the recording stays as %s",
                        file->path, file->part);
    return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot rename it to %s", file->part,
                          file->path);
}

void oct_volume_file_close(struct oct_volume_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    if (file->direct_fd >= 0)
        close(file->direct_fd);
    if (file->draft)
        unlink(file->draft);
    free(file->path);
    free(file->part);
    free(file->folder);
    free(file->draft);
    *file = (struct oct_volume_file){.fd = -1, .direct_fd = -1};
}
