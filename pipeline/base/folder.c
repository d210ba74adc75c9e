#define _GNU_SOURCE /* TEMP_FAILURE_RETRY */
#include "pipeline/base/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum oct_err oct_folder_sync(const char *folder, struct oct_error *err)
{
    int fd = (int)TEMP_FAILURE_RETRY(open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    int status = fd < 0 ? -1 : (int)TEMP_FAILURE_RETRY(fsync(fd));
    int errnum = errno;
    if (fd >= 0)
        close(fd);
    if (status != 0 && errnum != EINVAL && errnum != ENOTSUP)
        return oct_fail_errno(err, OCT_E_IO, errnum, "%s: cannot sync the folder", folder);
    return OCT_OK;
}

char *oct_folder_of(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') /* "a/folder/" lies in "a" */
        n--;
    while (n > 0 && path[n - 1] != '/')
        n--;
    while (n > 1 && path[n - 1] == '/')
        n--;
    char *folder = malloc(n + 2);
    if (!folder)
        return NULL;
    memcpy(folder, n ? path : ".", n ? n : 1);
    folder[n ? n : 1] = '\0';
    return folder;
}

enum oct_err oct_folder_sync_parent(const char *path, struct oct_error *err)
{
    char *folder = oct_folder_of(path);
    enum oct_err e =
        folder ? oct_folder_sync(folder, err) : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    free(folder);
    return e;
}
