#define _XOPEN_SOURCE 700 /* nftw */
#include "test/fuzz/fuzz.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 512

_Noreturn void fuzz_fail(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
    abort();
}

uint64_t fuzz_take(struct fuzz_input *in, unsigned n_bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < n_bytes && in->left > 0; i++, in->left--)
        value |= (uint64_t)*in->data++ << (8 * i);
    return value;
}

uint32_t fuzz_below(struct fuzz_input *in, uint32_t n)
{
    return (uint32_t)fuzz_take(in, n <= 256 ? 1 : 4) % n;
}

void fuzz_fill(struct fuzz_input *in, void *buffer, size_t n_bytes)
{
    size_t n = n_bytes < in->left ? n_bytes : in->left;
    memset(buffer, 0, n_bytes);
    if (n > 0)
        memcpy(buffer, in->data, n);
    in->data += n;
    in->left -= n;
}

char *fuzz_piece(struct fuzz_input *in, bool text, size_t *n_bytes)
{
    const uint8_t *end = in->left ? memchr(in->data, 0x1e, in->left) : NULL;
    size_t n = end ? (size_t)(end - in->data) : in->left;
    char *piece = malloc(n + (text || n == 0));
    fuzz_must(piece != NULL);
    if (n > 0)
        memcpy(piece, in->data, n);
    if (text)
        piece[n] = '\0';
    in->data += n + (end != NULL);
    in->left -= n + (end != NULL);
    if (n_bytes)
        *n_bytes = n;
    return piece;
}

static char folder[PATH_BYTES];
static pid_t folder_of;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st;
    (void)type;
    (void)where;
    return remove(path);
}

static void remove_folder(void)
{
    if (getpid() == folder_of)
        nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *fuzz_folder(void)
{
    const char *parent = getenv("TMPDIR");
    if (folder[0])
        return folder;
    snprintf(folder, sizeof(folder), "%s/octd-fuzz.XXXXXX", parent ? parent : "/dev/shm");
    fuzz_must(mkdtemp(folder) != NULL);
    folder_of = getpid();
    atexit(remove_folder);
    return folder;
}

const char *fuzz_path(unsigned slot, const char *name)
{
    static char path[2][2 * PATH_BYTES];
    snprintf(path[slot % 2], sizeof(path[0]), "%s/%s", fuzz_folder(), name);
    return path[slot % 2];
}

void fuzz_write_file(const char *path, const void *bytes, size_t n_bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    fuzz_must(fd >= 0);
    fuzz_must(write(fd, bytes, n_bytes) == (ssize_t)n_bytes);
    close(fd);
}
