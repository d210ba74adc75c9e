#define _GNU_SOURCE /* renameat2 */
#include "viewer/draw/png.h"

#include "viewer/model/words.h"

#include <SDL.h>
#include <errno.h>
#include <fcntl.h>
#include <png.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_SNAPSHOTS_A_SECOND 999

#define FAULT_BYTES 160
/* Level 6 makes a window a sixth smaller in twice the time. */
#define COMPRESSION 1

/* ---- the bytes of a PNG ---- */

/* What libpng is given; its functions leave by longjmp, so nothing here is a local of theirs. */
struct encoding {
    png_structp png;
    png_infop info;
    png_text notes[4];
    char created[64], fault[FAULT_BYTES];
};

static void keep_fault(png_structp png, png_const_charp text)
{
    snprintf(png_get_error_ptr(png), FAULT_BYTES, "%s", text);
    longjmp(png_jmpbuf(png), 1);
}

static void ignore_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

/* iTXt holds UTF-8. */
static void add_note(png_text *note, char *keyword, const char *text)
{
    *note = (png_text){
        .compression = PNG_ITXT_COMPRESSION_NONE, .key = keyword, .itxt_length = strlen(text)};
    memcpy(&note->text, &text, sizeof(text)); /* not const there, but libpng copies the text */
}

static void make_notes(struct encoding *e, const struct oct_view_caption *caption, time_t when)
{
    static char software[] = "Software", created[] = "Creation Time", line[] = "Description",
                json[] = "octview";
    struct tm local;
    localtime_r(&when, &local);
    strftime(e->created, sizeof(e->created), "%Y-%m-%dT%H:%M:%S%z", &local);
    add_note(&e->notes[0], software, "octview " OCT_VERSION);
    add_note(&e->notes[1], created, e->created);
    add_note(&e->notes[2], line, caption->line);
    add_note(&e->notes[3], json, caption->json);
}

/* False: libpng failed, or the file did; e->fault has libpng's reason. */
static bool encode(struct encoding *e, const SDL_Surface *surface, FILE *file)
{
    if (setjmp(png_jmpbuf(e->png)))
        return false;
    png_init_io(e->png, file);
    png_set_compression_level(e->png, COMPRESSION);
    png_set_IHDR(e->png, e->info, (png_uint_32)surface->w, (png_uint_32)surface->h, 8,
                 PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_set_text(e->png, e->info, e->notes, sizeof(e->notes) / sizeof(e->notes[0]));
    png_write_info(e->png, e->info);
    png_set_bgr(e->png); /* the bytes of ARGB8888 are B, G, R, A */
    png_set_filler(e->png, 0, PNG_FILLER_AFTER);
    for (int y = 0; y < surface->h; y++)
        png_write_row(e->png,
                      (png_const_bytep)surface->pixels + (size_t)y * (size_t)surface->pitch);
    png_write_end(e->png, e->info);
    return true;
}

static enum oct_err write_png(SDL_Surface *surface, const struct oct_view_caption *caption,
                              time_t when, FILE *file, const char *path, struct oct_error *err)
{
    struct encoding e = {.fault = "out of memory"};
    if (surface->format->format != SDL_PIXELFORMAT_ARGB8888)
        return oct_fail(err, OCT_E_ARG, "cannot write %s: its pixels are not ARGB8888", path);
    make_notes(&e, caption, when);
    e.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, e.fault, keep_fault, ignore_warning);
    e.info = e.png ? png_create_info_struct(e.png) : NULL;
    errno = 0;
    bool written = e.info && encode(&e, surface, file);
    int error = errno;
    png_destroy_write_struct(&e.png, &e.info);
    if (ferror(file) || fflush(file) != 0 || fsync(fileno(file)) != 0)
        return oct_fail_errno(err, OCT_E_IO, error ? error : errno, "cannot write %s", path);
    if (!written)
        return oct_fail(err, OCT_E_IO, "cannot write %s: %s", path, e.fault);
    return OCT_OK;
}

/* ---- its name ---- */

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
static enum oct_err write_beside(SDL_Surface *surface, const struct oct_view_caption *caption,
                                 time_t when, const char *path, char *name, size_t name_bytes,
                                 struct oct_error *err)
{
    FILE *file = open_beside(path, name, name_bytes);
    if (!file) {
        name[0] = '\0';
        return oct_fail_errno(err, OCT_E_IO, errno, "cannot write %s", path);
    }
    enum oct_err code = write_png(surface, caption, when, file, path, err);
    if (fclose(file) != 0 && code == OCT_OK)
        code = oct_fail_errno(err, OCT_E_IO, errno, "cannot write %s", path);
    if (code) {
        unlink(name);
        name[0] = '\0';
    }
    return code;
}

enum oct_err oct_png_save(SDL_Surface *surface, const struct oct_view_caption *caption,
                          const char *path, struct oct_error *err)
{
    char name[4096];
    enum oct_err code = write_beside(surface, caption, time(NULL), path, name, sizeof(name), err);
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

enum oct_err oct_png_save_new(SDL_Surface *surface, const struct oct_view_caption *caption,
                              const char *folder, time_t when, char *path, size_t path_bytes,
                              struct oct_error *err)
{
    char stamp[32], name[4096];
    struct tm local;
    int renamed = -1;
    localtime_r(&when, &local);
    strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &local);
    if (snprintf(path, path_bytes, "%s/octview-%s-999%s.png", folder, stamp, caption->name) >=
        (int)path_bytes)
        return oct_fail(err, OCT_E_IO, "snapshot: the folder name %s is too long", folder);
    enum oct_err code = write_beside(surface, caption, when, path, name, sizeof(name), err);
    if (code)
        return code;
    errno = EEXIST;
    for (int i = 1; i <= MOST_SNAPSHOTS_A_SECOND && renamed != 0 && errno == EEXIST; i++) {
        snprintf(path, path_bytes, "%s/octview-%s-%03d%s.png", folder, stamp, i, caption->name);
        renamed = rename_new(name, path);
    }
    if (renamed == 0)
        return OCT_OK;
    code = oct_fail_errno(err, OCT_E_IO, errno, "cannot write %s", path);
    unlink(name);
    return code;
}
