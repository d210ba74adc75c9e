#include "viewer/png.h"

#include <SDL.h>
#include <SDL_image.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

static FILE *open_beside(const char *path, char *name, size_t name_bytes)
{
    if (snprintf(name, name_bytes, "%s.XXXXXX", path) >= (int)name_bytes) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    int fd = mkstemp(name);
    if (fd < 0)
        return NULL;
    FILE *file = fdopen(fd, "wb");
    if (!file) {
        close(fd);
        unlink(name);
        return NULL;
    }
    /* mkstemp gives 0600; a picture is as readable as any file its owner makes. */
    mode_t mask = umask(0);
    umask(mask);
    fchmod(fd, 0666 & ~mask);
    return file;
}

enum oct_err oct_png_save(SDL_Surface *surface, const char *path, struct oct_error *err)
{
    char name[4096];

    FILE *file = open_beside(path, name, sizeof(name));
    if (!file)
        return oct_fail_errno(err, OCT_E_IO, errno, "cannot write %s", path);
    enum oct_err code = write_png(surface, file, path, err);
    if (fclose(file) != 0 && code == OCT_OK)
        code = oct_fail_errno(err, OCT_E_IO, errno, "cannot write %s", path);
    if (code == OCT_OK && rename(name, path) != 0)
        code = oct_fail_errno(err, OCT_E_IO, errno, "cannot write %s", path);
    if (code)
        unlink(name);
    return code;
}

enum oct_err oct_png_save_new(SDL_Surface *surface, const char *folder, char *path,
                              size_t path_bytes, struct oct_error *err)
{
    time_t now = time(NULL);
    struct tm local;
    char stamp[32];
    int fd = -1;

    localtime_r(&now, &local);
    strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &local);
    errno = EEXIST;
    for (int i = 1; i <= MOST_SNAPSHOTS_A_SECOND && fd < 0 && errno == EEXIST; i++) {
        if (snprintf(path, path_bytes, "%s/octview-%s-%03d.png", folder, stamp, i) >=
            (int)path_bytes)
            return oct_fail(err, OCT_E_IO, "snapshot: the folder name %s is too long", folder);
        /* Creating the name first makes it ours: nothing that exists is ever replaced. */
        fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    }
    if (fd < 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "cannot write %s", path);
    close(fd);
    enum oct_err code = oct_png_save(surface, path, err);
    if (code)
        unlink(path);
    return code;
}
