/* Reading the folder of allowed keys. */
#include "pipeline/access.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The machine is short of something: that says nothing about the key. */
static bool is_passing(int errnum)
{
    return errnum == EMFILE || errnum == ENFILE || errnum == ENOMEM || errnum == EIO ||
           errnum == EINTR || errnum == ESTALE;
}

static bool is_public_key_name(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && name[0] != '.' && strcmp(name + n - 4, ".key") == 0;
}

static enum oct_err take_file(const char *folder, const char *file,
                              bool (*take)(void *context, const char *name, const char *key),
                              void (*complain)(void *context, const char *text), void *context,
                              struct oct_error *err)
{
    char path[PATH_MAX], name[NAME_MAX + 1], key[OCT_CURVE_KEY_BYTES];
    struct oct_error why;
    if (snprintf(path, sizeof(path), "%s/%s", folder, file) >= (int)sizeof(path))
        return OCT_OK;
    if (oct_curve_read_public(path, key, &why)) {
        if (is_passing(errno))
            return oct_fail(err, OCT_E_IO, "%s", why.text);
        if (complain && errno != ENOENT) /* taken away while we looked */
            complain(context, why.text);
        return OCT_OK;
    }
    snprintf(name, sizeof(name), "%.*s", (int)(strlen(file) - 4), file);
    if (!take(context, name, key))
        return oct_fail(err, OCT_E_IO, "%s: no room for its key", path);
    return OCT_OK;
}

enum oct_err oct_access_read_folder(const char *folder,
                                    bool (*take)(void *context, const char *name, const char *key),
                                    void (*complain)(void *context, const char *text),
                                    void *context, struct oct_error *err)
{
    enum oct_err code = OCT_OK;
    DIR *open = opendir(folder);
    if (!open)
        return oct_fail_errno(err, is_passing(errno) ? OCT_E_IO : OCT_E_CONFIG, errno,
                              "security.allowed: %s: cannot read the folder of keys", folder);
    while (!code) {
        errno = 0;
        const struct dirent *entry = readdir(open);
        if (!entry && errno)
            code = oct_fail_errno(err, OCT_E_IO, errno, "security.allowed: %s", folder);
        if (!entry)
            break;
        if (is_public_key_name(entry->d_name))
            code = take_file(folder, entry->d_name, take, complain, context, err);
    }
    closedir(open);
    return code;
}
