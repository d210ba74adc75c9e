#define _GNU_SOURCE /* renameat2 */
#include "viewer/draw/png.h"

#include <SDL.h>
#include <SDL_image.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_SNAPSHOTS_A_SECOND 999

/* SDL reports a failed write as text; errno and ferror say which failure it was. */
static enum oct_err write_png(SDL_Surface *surface, FILE *file, const char *path,
                              struct oct_error *err)
{
    errno = 0;
    SDL_RWops *out = SDL_RWFromFP(file, SDL_FALSE);
    if (!out)
        return oct_fail(err, OCT_E_IO, "%s: %s", path, SDL_GetError());
    bool written = IMG_SavePNG_RW(surface, out, 0) == 0;
    SDL_RWclose(out);
    if (fflush(file) != 0 || ferror(file) || fsync(fileno(file)) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "cannot write %s", path);
    if (!written)
        return oct_fail(err, OCT_E_IO, "cannot write %s: %s", path, SDL_GetError());
    return OCT_OK;
}

/* Creates a file beside `path` under a name of its own: PATH.PID-N.part. mkstemp would make it
 * unreadable for others; a picture has the mode of any file that its owner makes. */
static FILE *open_beside(const char *path, char *name, size_t name_bytes)
{
    static atomic_uint n_files;
    int fd = -1;

    errno = EEXIST;
    while (fd < 0 && errno == EEXIST) {
        if (snprintf(name, name_bytes, "%s.%ld-%u.part", path, (long)getpid(), n_files++) >=
            (int)name_bytes) {
            errno = ENAMETOOLONG;
            return NULL;
        }
        fd = open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    }
    FILE *file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (fd >= 0 && !file) {
        close(fd);
        unlink(name);
    }
    return file;
}

/* Writes the picture, whole and synced, into a file beside `path`. `name` is set to the file's
 * name, "" on failure. */
static enum oct_err write_beside(SDL_Surface *surface, const char *path, char *name,
                                 size_t name_bytes, struct oct_error *err)
{
    FILE *file = open_beside(path, name, name_bytes);

    if (!file) {
        name[0] = '\0';
        return oct_fail_errno(err, OCT_E_IO, errno, "cannot write %s", path);
    }
    enum oct_err code = write_png(surface, file, path, err);
    if (fclose(file) != 0 && code == OCT_OK)
        code = oct_fail_errno(err, OCT_E_IO, errno, "cannot write %s", path);
    if (code) {
        unlink(name);
        name[0] = '\0';
    }
    return code;
}

enum oct_err oct_png_save(SDL_Surface *surface, const char *path, struct oct_error *err)
{
    char name[4096];

    enum oct_err code = write_beside(surface, path, name, sizeof(name), err);
    if (code == OCT_OK && rename(name, path) != 0) {
        code = oct_fail_errno(err, OCT_E_IO, errno, "cannot write %s", path);
        unlink(name);
    }
    return code;
}

/* Renames, but fails with EEXIST where a file of that name exists. Not every file system can do
 * that in one step; there a hard link gives the new name, which is as safe. */
static int rename_new(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (link(from, to) == 0)
        return unlink(from);
    if (errno == EEXIST || (errno != EPERM && errno != ENOTSUP))
        return -1;
    /* The file system has neither: looking first is the best there is. */
    if (access(to, F_OK) == 0) {
        errno = EEXIST;
        return -1;
    }
    return rename(from, to);
}

enum oct_err oct_png_save_new(SDL_Surface *surface, const char *folder, time_t when, char *path,
                              size_t path_bytes, struct oct_error *err)
{
    char stamp[32], name[4096];
    struct tm local;
    int renamed = -1;

    localtime_r(&when, &local);
    strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &local);
    if (snprintf(path, path_bytes, "%s/octview-%s-999.png", folder, stamp) >= (int)path_bytes)
        return oct_fail(err, OCT_E_IO, "snapshot: the folder name %s is too long", folder);
    enum oct_err code = write_beside(surface, path, name, sizeof(name), err);
    if (code)
        return code;
    errno = EEXIST;
    for (int i = 1; i <= MOST_SNAPSHOTS_A_SECOND && renamed != 0 && errno == EEXIST; i++) {
        snprintf(path, path_bytes, "%s/octview-%s-%03d.png", folder, stamp, i);
        renamed = rename_new(name, path);
    }
    if (renamed == 0)
        return OCT_OK;
    code = oct_fail_errno(err, OCT_E_IO, errno, "cannot write %s", path);
    unlink(name);
    return code;
}
