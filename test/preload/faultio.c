/* Disk faults for tests: loaded with LD_PRELOAD, it stands between the program and the C library's
 * writing and syncing.
 *
 * The file that $FAULTIO names says what is wrong now; it is read anew at every call, so a test
 * turns faults on and off while the program runs. Its words:
 *
 *     (nothing)        all is well
 *     eio | enospc     writes fail
 *     sync_eio         writes succeed, syncing fails
 *     folder_eio       syncing the folder fails, all else succeeds
 *     short            a write takes at most 1000 bytes; half of its blocks where it is direct
 *     eintr            every other call is interrupted before it does anything
 *     random N SEED    one call in N fails: ENOSPC, EIO or EINTR; opening, cutting and naming too
 *     flip N           the lowest bit of byte N changes at its first write
 *     stall MS         each write and sync takes MS milliseconds longer
 *     sync_stall MS    each sync alone
 *     open_stall MS    opening a file that is there
 *     list_stall MS    opening the folder
 *     stall once MS    the next one alone: it removes the file before it sleeps
 *
 * The file that $FAULTIO_JOURNAL names, if it does, gets all that succeeded, in order: struct
 * entry, then its bytes. From it a test rebuilds what a power cut leaves. A file is known by its
 * inode, which another may have had before: it begins where it is created.
 *
 * Only a folder called "records", descriptors of files in it and files in memory are touched. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static atomic_uint n_calls;
static atomic_flag has_flipped = ATOMIC_FLAG_INIT;
static pthread_mutex_t journal_lock = PTHREAD_MUTEX_INITIALIZER;

enum what {
    WRITES = 0,
    SYNCS = 1,  /* the file or the folder */
    BEGINS = 2, /* a new file, nameless or not */
    NAMES = 3,  /* the bytes are its name from now on */
};

struct entry {
    uint64_t inode, offset, n_bytes, what;
};

enum place { ELSEWHERE, FOLDER, RECORDING };

static enum place place_of(const char *path)
{
    size_t n = strlen(path), folder = strlen("/records");
    if (strstr(path, "/records/") || strstr(path, "/memfd:"))
        return RECORDING;
    return n >= folder && strcmp(path + n - folder, "/records") == 0 ? FOLDER : ELSEWHERE;
}

static enum place place_of_fd(int fd)
{
    char link[40], path[4096];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    if (n <= 0)
        return ELSEWHERE;
    path[n] = '\0';
    return place_of(path);
}

static void read_plan(char *plan, size_t bytes)
{
    const char *path = getenv("FAULTIO");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = fd < 0 ? 0 : read(fd, plan, bytes - 1);
    plan[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

/* Whether this call is one of those; the same ones for the same seed, as far as threads allow. */
static bool is_unlucky(const char *plan)
{
    static const int errors[] = {ENOSPC, EIO, EINTR};
    unsigned one_in, seed;
    if (sscanf(plan, "random %u %u", &one_in, &seed) != 2)
        return false;
    uint64_t h = ((uint64_t)seed << 32 | n_calls++) * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
    h ^= h >> 29;
    if (h % one_in != 0)
        return false;
    errno = errors[h / one_in % 3];
    return true;
}

/* What every call suffers; false: it fails with errno. */
static bool suffer(int fd, char *plan, size_t bytes, bool syncing)
{
    int stall_ms;
    int before = errno;
    plan[0] = '\0';
    enum place place = place_of_fd(fd);
    if (place == ELSEWHERE)
        return true;
    read_plan(plan, bytes);
    errno = before;
    bool once = sscanf(plan, "stall once %d", &stall_ms) == 1;
    if (once ? unlink(getenv("FAULTIO")) == 0
             : sscanf(plan, "stall %d", &stall_ms) == 1 ||
                   (syncing && sscanf(plan, "sync_stall %d", &stall_ms) == 1))
        nanosleep(&(struct timespec){stall_ms / 1000, stall_ms % 1000 * 1000000L}, NULL);
    if (strncmp(plan, "eintr", 5) == 0 && n_calls++ % 2 == 0)
        errno = EINTR;
    else if (!syncing && strncmp(plan, "eio", 3) == 0)
        errno = EIO;
    else if (!syncing && strncmp(plan, "enospc", 6) == 0)
        errno = ENOSPC;
    else if (syncing && strncmp(plan, place == FOLDER ? "folder_eio" : "sync_eio", 8) == 0)
        errno = EIO;
    else
        return !is_unlucky(plan);
    return false;
}

/* What calls suffer that the words before do not speak of. */
static bool suffer_luck(enum place place)
{
    char plan[64];
    int before = errno;
    if (place == ELSEWHERE)
        return true;
    read_plan(plan, sizeof(plan));
    errno = before;
    return !is_unlucky(plan);
}

static void suffer_slow_open(enum place place)
{
    char plan[64];
    int stall_ms, before = errno;
    if (place == ELSEWHERE)
        return;
    read_plan(plan, sizeof(plan));
    if (sscanf(plan, place == FOLDER ? "list_stall %d" : "open_stall %d", &stall_ms) == 1)
        nanosleep(&(struct timespec){stall_ms / 1000, stall_ms % 1000 * 1000000L}, NULL);
    errno = before;
}

static void note(uint64_t inode, uint64_t offset, const void *data, uint64_t n_bytes,
                 enum what what)
{
    const char *path = getenv("FAULTIO_JOURNAL");
    int before = errno;
    if (!path)
        return;
    struct entry entry = {inode, offset, n_bytes, what};
    pthread_mutex_lock(&journal_lock);
    FILE *journal = fopen(path, "ab");
    if (!journal || fwrite(&entry, sizeof(entry), 1, journal) != 1 ||
        (n_bytes && fwrite(data, n_bytes, 1, journal) != 1) || fclose(journal) != 0)
        abort();
    pthread_mutex_unlock(&journal_lock);
    errno = before;
}

static void note_fd(int fd, uint64_t offset, const void *data, uint64_t n_bytes, enum what what)
{
    struct stat st;
    int before = errno;
    if (place_of_fd(fd) != ELSEWHERE && fstat(fd, &st) == 0)
        note(st.st_ino, offset, data, n_bytes, what);
    errno = before;
}

static void note_name(const char *path)
{
    struct stat st;
    int before = errno;
    if (place_of(path) == RECORDING && lstat(path, &st) == 0)
        note(st.st_ino, 0, path, strlen(path), NAMES);
    errno = before;
}

static ssize_t faulty_pwrite(int fd, const void *data, size_t n, off_t offset)
{
    static ssize_t (*real)(int, const void *, size_t, off_t);
    char plan[64];
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pwrite");
    if (!suffer(fd, plan, sizeof(plan), false))
        return -1;
    if (strncmp(plan, "short", 5) == 0 && n > 1000)
        n = fcntl(fd, F_GETFL) & O_DIRECT ? (n > 4096 ? n / 2 / 4096 * 4096 : n) : 1000;
    uint64_t at;
    unsigned char *bad = NULL;
    if (sscanf(plan, "flip %" SCNu64, &at) == 1 && at >= (uint64_t)offset &&
        at - (uint64_t)offset < n && !atomic_flag_test_and_set(&has_flipped) && (bad = malloc(n))) {
        memcpy(bad, data, n);
        bad[at - (uint64_t)offset] ^= 1;
        data = bad;
    }
    ssize_t written = real(fd, data, n, offset);
    free(bad);
    if (written > 0)
        note_fd(fd, (uint64_t)offset, data, (uint64_t)written, WRITES);
    return written;
}

static int faulty_sync(int fd, int (*real)(int))
{
    char plan[64];
    if (!suffer(fd, plan, sizeof(plan), true))
        return -1;
    int status = real(fd);
    if (status == 0)
        note_fd(fd, 0, NULL, 0, SYNCS);
    return status;
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t offset)
{
    return faulty_pwrite(fd, data, n, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t n, off_t offset)
{
    return faulty_pwrite(fd, data, n, offset);
}

int fdatasync(int fd)
{
    static int (*real)(int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fdatasync");
    return faulty_sync(fd, real);
}

int fsync(int fd)
{
    static int (*real)(int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fsync");
    return faulty_sync(fd, real);
}

int open(const char *path, int flags, ...)
{
    static int (*real)(const char *, int, ...);
    bool creates = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
    mode_t mode = 0;
    if (creates) {
        va_list arguments;
        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
    }
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "open");
    if (!suffer_luck(place_of(path)))
        return -1;
    if (!creates)
        suffer_slow_open(place_of(path));
    int fd = real(path, flags, mode);
    if (fd >= 0 && creates)
        note_fd(fd, 0, NULL, 0, BEGINS);
    return fd;
}

DIR *opendir(const char *path)
{
    static DIR *(*real)(const char *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "opendir");
    suffer_slow_open(place_of(path));
    return real(path);
}

int ftruncate(int fd, off_t length)
{
    static int (*real)(int, off_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "ftruncate");
    return suffer_luck(place_of_fd(fd)) ? real(fd, length) : -1;
}

int fallocate(int fd, int mode, off_t offset, off_t length)
{
    static int (*real)(int, int, off_t, off_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fallocate");
    return suffer_luck(place_of_fd(fd)) ? real(fd, mode, offset, length) : -1;
}

size_t fwrite(const void *data, size_t size, size_t n, FILE *file)
{
    static size_t (*real)(const void *, size_t, size_t, FILE *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fwrite");
    return suffer_luck(place_of_fd(fileno(file))) ? real(data, size, n, file) : 0;
}

int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
    static int (*real)(int, const char *, int, const char *, int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "linkat");
    if (!suffer_luck(place_of(to)))
        return -1;
    int status = real(from_fd, from, to_fd, to, flags);
    if (status == 0)
        note_name(to);
    return status;
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    static int (*real)(int, const char *, int, const char *, unsigned);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "renameat2");
    if (!suffer_luck(place_of(to)))
        return -1;
    int status = real(from_fd, from, to_fd, to, flags);
    if (status == 0)
        note_name(to);
    return status;
}
