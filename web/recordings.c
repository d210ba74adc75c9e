#define _GNU_SOURCE /* strcasestr */
#include "web/recordings.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* octd names a file NAME.h5 once it is closed. */
bool oct_web_recordings_is_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    return name[0] != '.' && dot && strcmp(dot, ".h5") == 0 && !strchr(name, '/') &&
           strlen(name) <= NAME_MAX;
}

static bool look(int folder, const char *name, struct oct_web_recording *r)
{
    struct stat s;
    if (!oct_web_recordings_is_name(name) || fstatat(folder, name, &s, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(s.st_mode))
        return false;
    snprintf(r->name, sizeof(r->name), "%s", name);
    r->bytes = (uint64_t)s.st_size;
    r->time_s = (uint64_t)s.st_mtime;
    return true;
}

static int newest_first(const void *a, const void *b)
{
    const struct oct_web_recording *x = a, *y = b;
    if (x->time_s != y->time_s)
        return x->time_s < y->time_s ? 1 : -1;
    return strcmp(y->name, x->name);
}

unsigned oct_web_recordings_list(const char *folder, const char *of,
                                 struct oct_web_recording list[OCT_WEB_MOST_RECORDINGS],
                                 unsigned *n_all)
{
    struct oct_web_recording r;
    unsigned n = 0;
    *n_all = 0;
    DIR *entries = opendir(folder);
    for (const struct dirent *entry; entries && (entry = readdir(entries));) {
        if (!strcasestr(entry->d_name, of) || !look(dirfd(entries), entry->d_name, &r))
            continue;
        ++*n_all;
        unsigned at = n;
        if (n == OCT_WEB_MOST_RECORDINGS) { /* it takes the place of the oldest, if it is newer */
            at = 0;
            for (unsigned i = 1; i < n; i++)
                at = newest_first(&list[i], &list[at]) > 0 ? i : at;
            if (newest_first(&r, &list[at]) > 0)
                continue;
        } else {
            n++;
        }
        list[at] = r;
    }
    if (entries)
        closedir(entries);
    qsort(list, n, sizeof(*list), newest_first);
    return n;
}

bool oct_web_recordings_has(const char *folder, const char *name)
{
    struct oct_web_recording r;
    DIR *entries = opendir(folder);
    const bool has = entries && look(dirfd(entries), name, &r);
    if (entries)
        closedir(entries);
    return has;
}
