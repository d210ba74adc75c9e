#define _GNU_SOURCE /* NAME_MAX */
#include "viewer/play/folder.h"

#include "formats/paths.h"
#include "pipeline/base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a walk through a folder finds about one name. */
struct walk {
    const char *name;           /* the last part of the path */
    int by;                     /* -1 or 1 */
    char nearest[NAME_MAX + 1]; /* the nearest before, or after it; "": none */
    unsigned n_before, n;       /* of the recordings */
};

static bool is_recording(const char *name)
{
    const char *dot = strrchr(name, '.');
    return name[0] != '.' && dot && (strcmp(dot, ".h5") == 0 || strcmp(dot, ".hdf5") == 0);
}

static void look_at(struct walk *w, const char *name)
{
    const int order = oct_paths_compare(name, w->name);
    const int nearer = w->nearest[0] ? oct_paths_compare(name, w->nearest) : -w->by;

    w->n++;
    w->n_before += order < 0;
    if (order != 0 && (order > 0) == (w->by > 0) && nearer != 0 && (nearer > 0) != (w->by > 0))
        snprintf(w->nearest, sizeof(w->nearest), "%s", name);
}

static enum oct_err walk(struct walk *w, const char *path, struct oct_error *err)
{
    const char *slash = strrchr(path, '/');
    char *folder = oct_folder_of(path);
    DIR *entries = folder ? opendir(folder) : NULL;
    enum oct_err e = OCT_OK;

    w->name = slash ? slash + 1 : path;
    if (!folder)
        e = oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    else if (!entries)
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot read this folder", folder);
    for (const struct dirent *entry; entries && (entry = readdir(entries));)
        if (is_recording(entry->d_name))
            look_at(w, entry->d_name);
    if (entries)
        closedir(entries);
    free(folder);
    return e;
}

bool oct_play_folder_has(const char *path)
{
    return access(path, F_OK) == 0;
}

bool oct_play_folder_is_written(const char *path)
{
    char part[PATH_MAX];
    const int n = snprintf(part, sizeof(part), "%s.part", path);

    return n > 0 && n < (int)sizeof(part) && oct_play_folder_has(part);
}

enum oct_err oct_play_folder_neighbour(const char *path, int by, char *found, size_t found_bytes,
                                       struct oct_error *err)
{
    struct walk w = {.by = by < 0 ? -1 : 1};
    const char *slash = strrchr(path, '/');
    const int folder_bytes = slash ? (int)(slash + 1 - path) : 0;
    enum oct_err e = walk(&w, path, err);

    if (e)
        return e;
    if (!w.nearest[0])
        return oct_fail(err, OCT_E_STATE, "%s: it is the %s recording of its folder", w.name,
                        by < 0 ? "first" : "last");
    if (snprintf(found, found_bytes, "%.*s%s", folder_bytes, path, w.nearest) >= (int)found_bytes)
        return oct_fail(err, OCT_E_ARG, "%s: the path is too long", w.nearest);
    return OCT_OK;
}

void oct_play_folder_place(const char *path, unsigned *place, unsigned *n)
{
    struct walk w = {.by = 1};
    const bool known = walk(&w, path, NULL) == OCT_OK;

    *n = known ? w.n : 0;
    *place = known ? w.n_before + 1 : 0;
}
