#include "formats/paths.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* ---- order ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Compares the numbers at *a and *b, of any length, and moves behind them. */
static int compare_numbers(const char **a, const char **b)
{
    *a += strspn(*a, "0");
    *b += strspn(*b, "0");
    const size_t n_a = strspn(*a, "0123456789"), n_b = strspn(*b, "0123456789");
    int order = n_a != n_b ? (n_a < n_b ? -1 : 1) : strncmp(*a, *b, n_a);
    *a += n_a;
    *b += n_b;
    return order;
}

int oct_paths_compare(const char *a, const char *b)
{
    const char *x = a, *y = b;
    while (*x && *y) {
        if (is_digit(*x) && is_digit(*y)) {
            const int order = compare_numbers(&x, &y);
            if (order)
                return order;
        } else if (*x != *y) {
            return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
        } else {
            x++;
            y++;
        }
    }
    if (*x || *y)
        return *x ? 1 : -1;
    return strcmp(a, b); /* 01 and 1 are different names */
}

static int compare(const void *a, const void *b)
{
    return oct_paths_compare(*(char *const *)a, *(char *const *)b);
}

/* ---- the list ---- */

/* Takes path, which is malloc'd; NULL: there was no memory for it. */
static enum oct_err add(struct oct_paths *paths, char *path, struct oct_error *err)
{
    const bool is_full = (paths->n & (paths->n - 1)) == 0; /* room is a power of 2 */
    char **grown = paths->path;
    if (path && is_full)
        grown = realloc(paths->path, (paths->n ? 2 * (size_t)paths->n : 1) * sizeof(*grown));
    if (!path || !grown) {
        free(path);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the names of files");
    }
    paths->path = grown;
    paths->path[paths->n++] = path;
    return OCT_OK;
}

static void sort_from(struct oct_paths *paths, unsigned first)
{
    if (paths->n > first)
        qsort(paths->path + first, paths->n - first, sizeof(*paths->path), compare);
}

void oct_paths_finish(struct oct_paths *paths)
{
    for (unsigned i = 0; i < paths->n; i++)
        free(paths->path[i]);
    free(paths->path);
    *paths = (struct oct_paths){0};
}

/* ---- folders ---- */

static bool is_picture(const char *name)
{
    static const char *const suffixes[] = {".png", ".tif", ".tiff"};
    const char *suffix = strrchr(name, '.');
    for (unsigned i = 0; suffix && i < 3; i++)
        if (strcasecmp(suffix, suffixes[i]) == 0)
            return true;
    return false;
}

static char *join(const char *folder, const char *name)
{
    const size_t n = strlen(folder) + strlen(name) + 2;
    char *path = malloc(n);
    const bool ends = folder[0] && folder[strlen(folder) - 1] == '/';
    if (path)
        snprintf(path, n, "%s%s%s", folder, ends ? "" : "/", name);
    return path;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* What is no picture: how many, and the first by name. */
struct others {
    unsigned n;
    char first[256];
};

static enum oct_err take_entry(struct oct_paths *paths, const char *folder, const char *name,
                               struct others *others, struct oct_error *err)
{
    if (name[0] == '.')
        return OCT_OK;
    char *path = join(folder, name);
    if (path && is_picture(name) && !is_folder(path))
        return add(paths, path, err);
    free(path);
    if (!path)
        return add(paths, NULL, err);
    if (others->n++ == 0 || oct_paths_compare(name, others->first) < 0)
        snprintf(others->first, sizeof(others->first), "%s", name);
    return OCT_OK;
}

static enum oct_err add_folder(struct oct_paths *paths, const char *folder, struct oct_error *err)
{
    const unsigned first = paths->n;
    struct others others = {0};
    enum oct_err e = OCT_OK;
    DIR *dir = opendir(folder);
    if (!dir)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot read the folder", folder);
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (!entry && errno)
            e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot read the folder", folder);
        if (!entry || e)
            break;
        if ((e = take_entry(paths, folder, entry->d_name, &others, err)) != OCT_OK)
            break;
    }
    closedir(dir);
    sort_from(paths, first);
    if (e || paths->n > first)
        return e;
    if (others.n == 0)
        return oct_fail(err, OCT_E_ARG, "%s: an empty folder; it needs PNG or TIFF files", folder);
    if (others.n == 1)
        return oct_fail(err, OCT_E_ARG, "%s: no PNG or TIFF files in the folder, only %s", folder,
                        others.first);
    return oct_fail(err, OCT_E_ARG, "%s: no PNG or TIFF files in the folder, but %s and %u more",
                    folder, others.first, others.n - 1);
}

/* ---- patterns ---- */

static enum oct_err add_pattern(struct oct_paths *paths, const char *pattern, struct oct_error *err)
{
    const unsigned first = paths->n;
    enum oct_err e = OCT_OK;
    glob_t found;
    const int result = glob(pattern, GLOB_NOSORT, NULL, &found);
    if (result == GLOB_NOSPACE)
        return add(paths, NULL, err);
    for (size_t i = 0; result == 0 && e == OCT_OK && i < found.gl_pathc; i++)
        if (!is_folder(found.gl_pathv[i]))
            e = add(paths, strdup(found.gl_pathv[i]), err);
    if (result == 0)
        globfree(&found);
    sort_from(paths, first);
    if (e == OCT_OK && paths->n == first)
        e = oct_fail(err, OCT_E_IO, "%s: no file matches", pattern);
    return e;
}

/* "FILE.h5:/DATASET" and names without *, ? and [ are no patterns. */
static bool is_pattern(const char *arg)
{
    struct stat st;
    return strpbrk(arg, "*?[") && !strstr(arg, ":/") && stat(arg, &st) != 0;
}

enum oct_err oct_paths_expand(struct oct_paths *paths, const char *const *args, unsigned n_args,
                              struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    *paths = (struct oct_paths){0};
    for (unsigned i = 0; e == OCT_OK && i < n_args; i++) {
        if (is_folder(args[i]))
            e = add_folder(paths, args[i], err);
        else if (is_pattern(args[i]))
            e = add_pattern(paths, args[i], err);
        else
            e = add(paths, strdup(args[i]), err);
    }
    if (e)
        oct_paths_finish(paths);
    return e;
}
