#include "config/config.h"

#include "pipeline/base/folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Makes each folder of the path that is missing. */
static enum oct_err make_folders(const char *path, struct oct_error *err)
{
    char part[OCT_CONFIG_STRING_BYTES];
    for (size_t n = 1; n <= strlen(path); n++) {
        if (path[n] != '/' && path[n] != '\0')
            continue;
        snprintf(part, sizeof(part), "%.*s", (int)n, path);
        if (mkdir(part, 0700) == 0)
            oct_folder_sync_parent(part, NULL);
        else if (errno != EEXIST)
            return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be made", part);
    }
    return OCT_OK;
}

enum oct_err oct_state_folder(const char *name, char *path, struct oct_error *err)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    const bool has_state = state && state[0] == '/';
    if (!has_state && !(home && home[0] == '/'))
        return oct_fail(err, OCT_E_CONFIG,
                        "neither XDG_STATE_HOME nor HOME is set: there is no place for %s", name);
    const int n = snprintf(path, OCT_CONFIG_STRING_BYTES, "%s%s/octd/%s", has_state ? state : home,
                           has_state ? "" : "/.local/state", name);
    if (n < 0 || (size_t)n >= OCT_CONFIG_STRING_BYTES)
        return oct_fail(err, OCT_E_CONFIG, "the name of the state folder is too long");
    return make_folders(path, err);
}

enum oct_err oct_config_web_tokens(const struct oct_config *config, oct_config_string path,
                                   struct oct_error *err)
{
    if (config->web.tokens[0]) {
        snprintf(path, OCT_CONFIG_STRING_BYTES, "%s", config->web.tokens);
        return OCT_OK;
    }
    const enum oct_err code = oct_state_folder("web", path, err);
    const size_t n = strlen(path);
    if (!code && snprintf(path + n, OCT_CONFIG_STRING_BYTES - n, "/tokens") >=
                     (int)(OCT_CONFIG_STRING_BYTES - n))
        return oct_fail(err, OCT_E_CONFIG, "the name of the state folder is too long");
    return code;
}
