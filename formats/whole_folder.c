#define _GNU_SOURCE /* renameat2 */
#include "formats/whole_folder.h"

#include "pipeline/base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* The path without slashes at its end; NULL: out of memory. */
static char *bare(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    return strndup(path, n);
}

static bool is_plain(int folder, const char *name)
{
    struct stat st;
    return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

/* Whether all in the folder is as such a folder has it. */
static bool is_alike(const char *path, const char *mark, const char *suffix)
{
    DIR *folder = opendir(path);
    bool has_mark = false, is_ours = folder != NULL;
    const size_t n_suffix = strlen(suffix);
    for (struct dirent *entry; is_ours && (entry = readdir(folder));) {
        const size_t n = strlen(entry->d_name);
        const bool is_mark = strcmp(entry->d_name, mark) == 0;
        if (is_dots(entry->d_name))
            continue;
        has_mark = has_mark || is_mark;
        is_ours = is_plain(dirfd(folder), entry->d_name) &&
                  (is_mark || (n > n_suffix && strcmp(entry->d_name + n - n_suffix, suffix) == 0));
    }
    if (folder)
        closedir(folder);
    return is_ours && has_mark;
}

/* Removes a folder of plain files; not one that a link points at. */
static void remove_folder(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (!is_dots(entry->d_name))
            unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
    else if (fd >= 0)
        close(fd);
    rmdir(path);
}

static enum oct_err check_parent(const char *path, struct oct_error *err)
{
    char *name = bare(path), *parent = name ? oct_folder_of(name) : NULL;
    enum oct_err e = OCT_OK;
    if (!parent)
        e = oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    else if (access(parent, W_OK | X_OK) != 0)
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be made in %s", path, parent);
    free(parent);
    free(name);
    return e;
}

enum oct_err oct_whole_folder_may(const char *path, bool force, const char *mark,
                                  const char *suffix, struct oct_error *err)
{
    struct stat st;
    if (path[0] == '\0')
        return oct_fail(err, OCT_E_ARG, "'': names no folder");
    if (lstat(path, &st) != 0)
        return errno == ENOENT ? check_parent(path, err)
                               : oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be made", path);
    if (!S_ISDIR(st.st_mode))
        return oct_fail(err, OCT_E_ARG, "%s: is no folder; choose another output", path);
    if (!force)
        return oct_fail(err, OCT_E_IO, "%s: exists already; choose another name, or --force", path);
    if (!is_alike(path, mark, suffix))
        return oct_fail(err, OCT_E_ARG,
                        "%s: holds other files than an export does and is not replaced; choose "
                        "another output",
                        path);
    return OCT_OK;
}

static void finish(struct oct_whole_folder *folder)
{
    free(folder->path);
    free(folder->work);
    *folder = (struct oct_whole_folder){0};
}

static char *beside(const char *path, const char *what)
{
    const size_t n = strlen(path) + 32;
    char *name = malloc(n);
    if (name)
        snprintf(name, n, "%s.%s.%ld", path, what, (long)getpid());
    return name;
}

enum oct_err oct_whole_folder_init(struct oct_whole_folder *folder, const char *path, bool force,
                                   const char *mark, const char *suffix, struct oct_error *err)
{
    *folder = (struct oct_whole_folder){
        .path = bare(path), .mark = mark, .suffix = suffix, .force = force};
    folder->work = folder->path ? beside(folder->path, "new") : NULL;
    if (!folder->path || !folder->work) {
        finish(folder);
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    }
    enum oct_err e = oct_whole_folder_may(folder->path, force, mark, suffix, err);
    if (!e)
        remove_folder(folder->work); /* of a process of the same number, which was killed */
    if (!e && mkdir(folder->work, 0777) != 0)
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be made", path);
    if (e)
        finish(folder);
    return e;
}

char *oct_whole_folder_file(const struct oct_whole_folder *folder, const char *name)
{
    const size_t n = strlen(folder->work) + strlen(name) + 2;
    char *path = malloc(n);
    if (path)
        snprintf(path, n, "%s/%s", folder->work, name);
    return path;
}

static enum oct_err sync_files(const struct oct_whole_folder *f, struct oct_error *err)
{
    DIR *folder = opendir(f->work);
    enum oct_err e = OCT_OK;
    if (!folder)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", f->path);
    for (struct dirent *entry; !e && (entry = readdir(folder));) {
        if (is_dots(entry->d_name))
            continue;
        const int fd = openat(dirfd(folder), entry->d_name, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fsync(fd) != 0)
            e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", f->path);
        if (fd >= 0)
            close(fd);
    }
    closedir(folder);
    return e ? e : oct_folder_sync(f->work, err);
}

/* Gives .work the name, which nothing has. */
static enum oct_err give_name(const struct oct_whole_folder *f, struct oct_error *err)
{
    struct stat st;
    int status = renameat2(AT_FDCWD, f->work, AT_FDCWD, f->path, RENAME_NOREPLACE);
    if (status != 0 && (errno == EINVAL || errno == ENOSYS) && lstat(f->path, &st) != 0)
        status = rename(f->work, f->path); /* a file system that knows no more */
    if (status == 0)
        return OCT_OK;
    if (lstat(f->path, &st) == 0)
        return oct_fail(err, OCT_E_IO, "%s: has appeared meanwhile; choose another name", f->path);
    return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be made", f->path);
}

/* Takes the place of a folder like it, which stays aside until the new one has its name. */
static enum oct_err replace(const struct oct_whole_folder *f, struct oct_error *err)
{
    struct stat st;
    if (!f->force || lstat(f->path, &st) != 0)
        return give_name(f, err);
    enum oct_err e = oct_whole_folder_may(f->path, true, f->mark, f->suffix, err);
    char *old = e ? NULL : beside(f->path, "old");
    if (!e && !old)
        e = oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", f->path);
    if (!e && rename(f->path, old) != 0)
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be replaced", f->path);
    if (!e) {
        e = give_name(f, err);
        if (e)
            rename(old, f->path);
        else
            remove_folder(old);
    }
    free(old);
    return e;
}

enum oct_err oct_whole_folder_publish(struct oct_whole_folder *folder, struct oct_error *err)
{
    enum oct_err e = sync_files(folder, err);
    e = e ? e : replace(folder, err);
    if (e) {
        oct_whole_folder_discard(folder);
        return e;
    }
    oct_folder_sync_parent(folder->path, NULL);
    finish(folder);
    return OCT_OK;
}

void oct_whole_folder_discard(struct oct_whole_folder *folder)
{
    if (folder->work)
        remove_folder(folder->work);
    finish(folder);
}
