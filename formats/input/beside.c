#define _GNU_SOURCE /* TEMP_FAILURE_RETRY */
#include "formats/input/beside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

char *oct_beside_name(const char *path, size_t n_end, const char *end)
{
    const size_t n = strlen(path), n_stem = n_end < n ? n - n_end : 0;
    char *name = malloc(n_stem + strlen(end) + 1);
    if (name) {
        memcpy(name, path, n_stem);
        memcpy(name + n_stem, end, strlen(end) + 1);
    }
    return name;
}

bool oct_beside_ends(const char *path, const char *end)
{
    const size_t n = strlen(path), n_end = strlen(end);
    return n > n_end && path[n - n_end - 1] != '/' && strcasecmp(path + n - n_end, end) == 0;
}

static char *read_all(int fd, size_t most, size_t *n_bytes)
{
    struct stat about;
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size < 0 ||
        (uint64_t)about.st_size > most)
        return NULL;
    const size_t n_all = (size_t)about.st_size;
    char *text = malloc(n_all + 1);
    size_t n = 0;
    while (text && n < n_all) {
        const ssize_t got = TEMP_FAILURE_RETRY(read(fd, text + n, n_all - n));
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    if (text)
        text[n] = '\0';
    *n_bytes = n;
    return text;
}

char *oct_beside_read(const char *path, size_t most, size_t *n_bytes)
{
    size_t n = 0;
    /* O_NONBLOCK: opening a named pipe must not block. */
    const int fd = (int)TEMP_FAILURE_RETRY(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    char *text = fd >= 0 ? read_all(fd, most, &n) : NULL;
    if (fd >= 0)
        close(fd);
    if (n_bytes)
        *n_bytes = n;
    return text;
}
