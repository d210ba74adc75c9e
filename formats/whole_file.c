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

/* "FILE.h5:/DATASET" names FILE.h5. */
static bool stat_input(const char *input, struct stat *st)
{
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
        return oct_fail(err, OCT_E_ARG, "'%s': names no file", path);
    if (stat(path, &there) != 0)
        return check_folder(path, err);
    if (!S_ISREG(there.st_mode))
        return oct_fail(err, OCT_E_ARG, "%s: is %s; choose another output", path,
                        S_ISDIR(there.st_mode) ? "a folder" : "no plain file");
    for (unsigned i = 0; i < n_inputs; i++)
        if (inputs[i] && stat_input(inputs[i], &in) && in.st_dev == there.st_dev &&
            in.st_ino == there.st_ino)
            return oct_fail(err, OCT_E_ARG, "%s: is an input itself; choose another output", path);
    if (!force)
        return oct_fail(err, OCT_E_IO, "%s: exists already; choose another name, or --force", path);
    return check_folder(path, err);
}

enum oct_err oct_whole_file_init(struct oct_whole_file *file, const char *path, bool force,
                                 struct oct_error *err)
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
    snprintf(file->work, n, "%s.new.%ld", path, (long)getpid());
    unlink(file->work);
    return OCT_OK;
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
    if (e == OCT_OK)
        e = give_name(file, err);
    if (e) {
        oct_whole_file_discard(file);
        return e;
    }
    oct_folder_sync_parent(file->path, NULL);
    finish(file);
    return OCT_OK;
}

void oct_whole_file_discard(struct oct_whole_file *file)
{
    if (file->work)
        unlink(file->work);
    finish(file);
}
