#include "tools/synth_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum oct_err oct_synth_join(char path[PATH_MAX], const char *stem, const char *suffix,
                            struct oct_error *err)
{
    int n = snprintf(path, PATH_MAX, "%s%s", stem, suffix);
    return n >= 0 && n < PATH_MAX ? OCT_OK : oct_fail(err, OCT_E_CONFIG, "%s: name too long", stem);
}

enum oct_err oct_synth_claim(const char *path, char temporary[PATH_MAX], struct oct_error *err)
{
    char part[PATH_MAX];
    if (access(path, F_OK) == 0)
        return oct_fail(err, OCT_E_IO, "%s: exists already; remove it or choose another name",
                        path);
    if (oct_synth_join(temporary, path, ".synth", err) ||
        oct_synth_join(part, temporary, ".part", err))
        return OCT_E_CONFIG;
    unlink(temporary);
    unlink(part);
    return OCT_OK;
}

enum oct_err oct_synth_publish(const char *temporary, const char *path, struct oct_error *err)
{
    if (rename(temporary, path))
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be named %s", temporary, path);
    return OCT_OK;
}

void oct_synth_discard(const char *temporary)
{
    char part[PATH_MAX];
    unlink(temporary);
    if (!oct_synth_join(part, temporary, ".part", NULL))
        unlink(part);
}

enum oct_err oct_synth_samples_open(int *fd, const char *path, struct oct_error *err)
{
    *fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (*fd < 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be made", path);
    return OCT_OK;
}

enum oct_err oct_synth_samples_write(int fd, const char *path, uint16_t *samples, size_t n,
                                     struct oct_error *err)
{
    size_t left = 2 * n;
    uint8_t *bytes = (uint8_t *)samples;
    for (size_t i = 0; i < n; i++) {
        uint16_t sample = samples[i];
        bytes[2 * i] = (uint8_t)(sample & 0xff);
        bytes[2 * i + 1] = (uint8_t)(sample >> 8);
    }
    while (left > 0) {
        ssize_t written = write(fd, bytes, left);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", path);
        bytes += written;
        left -= (size_t)written;
    }
    return OCT_OK;
}
