#include "tools/output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_SUFFIX 40 /* of the names that are derived from the user's */

enum oct_err oct_output_init(struct oct_output *output, const char *path, const char *in,
                             bool force, struct oct_error *err)
{
    struct stat in_is, out_is;

    *output = (struct oct_output){.path = path, .force = force};
    if (strlen(path) + MOST_SUFFIX > sizeof(output->work))
        return oct_fail(err, OCT_E_ARG, "the output's name is too long");
    if (force)
        snprintf(output->work, sizeof(output->work), "%s.new.%ld", path, (long)getpid());
    else
        snprintf(output->work, sizeof(output->work), "%s", path);
    if (stat(path, &out_is) != 0)
        return OCT_OK;
    if (stat(in, &in_is) == 0 && in_is.st_dev == out_is.st_dev && in_is.st_ino == out_is.st_ino)
        return oct_fail(err, OCT_E_ARG, "%s: is the recording itself; choose another output", path);
    if (!force)
        return oct_fail(err, OCT_E_IO, "%s: exists already; choose another name, or --force", path);
    return OCT_OK;
}

enum oct_err oct_output_publish(const struct oct_output *output, struct oct_error *err)
{
    if (output->force && rename(output->work, output->path) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot replace it", output->path);
    return OCT_OK;
}

void oct_output_discard(const struct oct_output *output, const char *suffix)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s%s", output->work, suffix);
    if (n > 0 && (size_t)n < sizeof(path))
        unlink(path);
}
