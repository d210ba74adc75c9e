#include "formats/whole_file.h"

#include "pipeline/base/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void finish(struct oct_whole_file *file)
{
    free(file->path);
    free(file->work);
    free(file->old);
    *file = (struct oct_whole_file){0};
}

static enum oct_err check_folder(const char *path, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    char *folder = oct_folder_of(path);
    struct stat st;
    if (!folder)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    if (stat(folder, &st) != 0)
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be made in %s", path, folder);
    else if (!S_ISDIR(st.st_mode))
        e = oct_fail_errno(err, OCT_E_IO, ENOTDIR, "%s: cannot be made in %s", path, folder);
    else if (access(folder, W_OK) != 0)
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written in %s", path, folder);
    free(folder);
    return e;
}

/* "FILE.h5:/DATASET" names FILE.h5, "-" standard input, which may be a file. */
static bool stat_input(const char *input, struct stat *st)
{
    if (strcmp(input, "-") == 0)
        return fstat(STDIN_FILENO, st) == 0;
    if (stat(input, st) == 0)
        return true;
    const char *colon = strstr(input, ":/");
    char *file = colon ? strndup(input, (size_t)(colon - input)) : NULL;
    bool is_there = file && stat(file, st) == 0;
    free(file);
    return is_there;
}

enum oct_err oct_whole_file_may(const char *path, bool force, const char *const *inputs,
                                unsigned n_inputs, struct oct_error *err)
{
    struct stat there, in;
    if (path[0] == '\0' || path[strlen(path) - 1] == '/')
        return oct_fail(err, OCT_E_CONFIG, "'%s': names no file", path);
    if (stat(path, &there) != 0)
        return check_folder(path, err);
    if (!S_ISREG(there.st_mode))
        return oct_fail(err, OCT_E_CONFIG, "%s: is %s; choose another output", path,
                        S_ISDIR(there.st_mode) ? "a folder" : "no plain file");
    for (unsigned i = 0; i < n_inputs; i++)
        if (inputs[i] && stat_input(inputs[i], &in) && in.st_dev == there.st_dev &&
            in.st_ino == there.st_ino)
            return oct_fail(err, OCT_E_CONFIG, "%s: is an input itself; choose another output",
                            path);
    if (!force)
        return oct_fail(err, OCT_E_IO, "%s: exists already; choose another name, or --force", path);
    return check_folder(path, err);
}

static enum oct_err init(struct oct_whole_file *file, const char *path, bool force,
                         const char *what, struct oct_error *err)
{
    *file = (struct oct_whole_file){0};
    enum oct_err e = oct_whole_file_may(path, force, NULL, 0, err);
    if (e)
        return e;
    const size_t n = strlen(path) + 32;
    *file = (struct oct_whole_file){.path = strdup(path), .work = malloc(n), .force = force};
    if (!file->path || !file->work) {
        finish(file);
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    }
    snprintf(file->work, n, "%s.%s.%ld", path, what, (long)getpid());
    unlink(file->work);
    return OCT_OK;
}

enum oct_err oct_whole_file_init(struct oct_whole_file *file, const char *path, bool force,
                                 struct oct_error *err)
{
    return init(file, path, force, "new", err);
}

enum oct_err oct_whole_file_init_of_all(struct oct_whole_file *file, const char *path, bool force,
                                        struct oct_error *err)
{
    return init(file, path, force, "all", err);
}

static enum oct_err cannot_write(const struct oct_whole_file *file, struct oct_error *err)
{
    return oct_fail_errno(err, OCT_E_IO, errno ? errno : EIO, "%s: cannot be written", file->path);
}

enum oct_err oct_whole_file_open(struct oct_whole_file *file, const char *path, bool force,
                                 struct oct_error *err)
{
    enum oct_err e = oct_whole_file_init(file, path, force, err);
    if (!e && !(file->stream = fopen(file->work, "wxe"))) {
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be made", path);
        finish(file);
    }
    return e;
}

enum oct_err oct_whole_file_put(struct oct_whole_file *file, const void *bytes, size_t n,
                                struct oct_error *err)
{
    errno = 0;
    return fwrite(bytes, 1, n, file->stream) == n ? OCT_OK : cannot_write(file, err);
}

enum oct_err oct_whole_file_rewind(struct oct_whole_file *file, struct oct_error *err)
{
    errno = 0;
    return fseek(file->stream, 0, SEEK_SET) == 0 ? OCT_OK : cannot_write(file, err);
}

enum oct_err oct_whole_file_end(struct oct_whole_file *file, enum oct_err e, struct oct_error *err)
{
    FILE *stream = file->stream;
    file->stream = NULL;
    errno = 0;
    const bool is_bad = stream && ferror(stream);
    if (((stream && fclose(stream) != 0) || is_bad) && !e)
        e = cannot_write(file, err);
    if (!e)
        return oct_whole_file_publish(file, err);
    oct_whole_file_discard(file);
    return e;
}

static enum oct_err sync_work(const struct oct_whole_file *file, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    int fd = open(file->work, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0)
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", file->path);
    if (fd >= 0)
        close(fd);
    return e;
}

/* Without force by a second link, which never replaces a file; where there are no links, by a
 * rename. */
static enum oct_err give_name(const struct oct_whole_file *file, struct oct_error *err)
{
    struct stat st;
    if (!file->force && link(file->work, file->path) == 0) {
        unlink(file->work);
        return OCT_OK;
    }
    if (!file->force && (errno == EEXIST || stat(file->path, &st) == 0))
        return oct_fail(err, OCT_E_IO, "%s: has appeared meanwhile; choose another name",
                        file->path);
    if (rename(file->work, file->path) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be made", file->path);
    return OCT_OK;
}

enum oct_err oct_whole_file_publish(struct oct_whole_file *file, struct oct_error *err)
{
    enum oct_err e = sync_work(file, err);
    e = e ? e : give_name(file, err);
    if (e) {
        oct_whole_file_discard(file);
        return e;
    }
    oct_folder_sync_parent(file->path, NULL);
    finish(file);
    return OCT_OK;
}

/* Keeps what has the name under another one, by a second link or, where there are no links, by a
 * rename. */
static enum oct_err keep_old(struct oct_whole_file *file, struct oct_error *err)
{
    struct stat st;
    if (!file->force || lstat(file->path, &st) != 0 || S_ISDIR(st.st_mode))
        return OCT_OK;
    const size_t n = strlen(file->path) + 32;
    char *old = malloc(n);
    if (!old)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", file->path);
    snprintf(old, n, "%s.old.%ld", file->path, (long)getpid());
    unlink(old);
    if (link(file->path, old) != 0 && rename(file->path, old) != 0) {
        free(old);
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be replaced", file->path);
    }
    file->old = old;
    return OCT_OK;
}

static void restore_old(struct oct_whole_file *file, bool is_named)
{
    if (file->old) {
        rename(file->old, file->path);
        unlink(file->old); /* a rename onto another link of the same file does nothing */
    } else if (is_named) {
        unlink(file->path);
    }
}

enum oct_err oct_whole_file_publish_all(struct oct_whole_file *files, unsigned n,
                                        struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    unsigned n_kept = 0, n_named = 0;
    for (unsigned i = 0; i < n && !e; i++)
        e = files[i].path ? sync_work(&files[i], err) : OCT_OK;
    for (; n_kept < n && !e; n_kept += !e)
        e = files[n_kept].path ? keep_old(&files[n_kept], err) : OCT_OK;
    for (; n_named < n && !e; n_named += !e)
        e = files[n_named].path ? give_name(&files[n_named], err) : OCT_OK;
    for (unsigned i = 0; i < n; i++) {
        if (!files[i].path)
            continue;
        if (e && i < n_kept)
            restore_old(&files[i], i < n_named);
        else if (files[i].old)
            unlink(files[i].old);
        if (!e)
            oct_folder_sync_parent(files[i].path, NULL);
        oct_whole_file_discard(&files[i]);
    }
    return e;
}

void oct_whole_file_discard(struct oct_whole_file *file)
{
    if (file->stream)
        fclose(file->stream);
    if (file->work)
        unlink(file->work);
    finish(file);
}
