/* Faults from outside, for LD_PRELOAD in tests: octd itself knows nothing of them, and what is not
 * in it cannot be hit by accident. Files in the folder OCT_FAULTS switch them on and off:
 *
 * | file   | while it exists                                              |
 * |--------|--------------------------------------------------------------|
 * | wedge  | fftwf_execute_dft does not return: the CPU engine is wedged, |
 * |        | if it asks FFTW at all: with pipeline.simd=plain it does     |
 * | ingest | zmq_poll does not return to the thread octd-ingest           |
 * | keeper | clock_gettime does not return to the thread octd-keeper      |
 * | stall  | pwrite, fdatasync, mkdir, stat, statvfs, realpath wait: the  |
 * |        | disk stands still                                            |
 * | reply  | one zmq_send in 20 of the main thread comes the milliseconds |
 * |        | late that stand in it                                        |
 * | clock  | CLOCK_REALTIME is off by the seconds that stand in it        |
 *
 * Whom a fault has hit leaves a file FAULT.hit: a fault that hits nobody tests nothing. */
#define _GNU_SOURCE /* RTLD_NEXT, gettid */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static int is_on(const char *fault, char *path, size_t bytes)
{
    const char *folder = getenv("OCT_FAULTS");
    if (!folder)
        return 0;
    snprintf(path, bytes, "%s/%s", folder, fault);
    return access(path, F_OK) == 0;
}

/* path: of the fault, as is_on made it. */
static void leave_trace(const char *path)
{
    char hit[520];
    snprintf(hit, sizeof(hit), "%s.hit", path);
    int fd = open(hit, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
}

static void wait_for(const char *fault)
{
    char path[512];
    if (is_on(fault, path, sizeof(path)))
        leave_trace(path);
    while (is_on(fault, path, sizeof(path)))
        usleep(2000);
}

void fftwf_execute_dft(void *plan, void *in, void *out)
{
    static void (*real)(void *, void *, void *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fftwf_execute_dft");
    wait_for("wedge");
    real(plan, in, out);
}

static int is_thread(const char *wanted)
{
    char name[17] = "";
    prctl(PR_GET_NAME, name);
    return strcmp(name, wanted) == 0;
}

int zmq_poll(void *items, int n, long timeout_ms)
{
    static int (*real)(void *, int, long);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "zmq_poll");
    if (is_thread("octd-ingest"))
        wait_for("ingest");
    return real(items, n, timeout_ms);
}

int zmq_send(void *socket, const void *bytes, size_t n, int flags)
{
    static int (*real)(void *, const void *, size_t, int);
    static unsigned n_sent; /* by the main thread alone */
    char path[512], text[32] = "";
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "zmq_send");
    if (gettid() == getpid() && is_on("reply", path, sizeof(path)) && ++n_sent % 20 == 0) {
        FILE *file = fopen(path, "r");
        if (file && fgets(text, sizeof(text), file))
            usleep((useconds_t)strtoul(text, NULL, 10) * 1000);
        if (file)
            fclose(file);
        leave_trace(path);
    }
    return real(socket, bytes, n, flags);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    static ssize_t (*real)(int, const void *, size_t, off_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pwrite");
    wait_for("stall");
    return real(fd, bytes, n, at);
}

int fdatasync(int fd)
{
    static int (*real)(int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fdatasync");
    wait_for("stall");
    return real(fd);
}

int statvfs(const char *restrict path, struct statvfs *restrict fs)
{
    static int (*real)(const char *, struct statvfs *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "statvfs");
    wait_for("stall");
    return real(path, fs);
}

char *realpath(const char *restrict path, char *restrict real_path)
{
    static char *(*real)(const char *, char *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "realpath");
    wait_for("stall");
    return real(path, real_path);
}

int stat(const char *restrict path, struct stat *restrict st)
{
    static int (*real)(const char *, struct stat *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "stat");
    wait_for("stall");
    return real(path, st);
}

int mkdir(const char *path, mode_t mode)
{
    static int (*real)(const char *, mode_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "mkdir");
    wait_for("stall");
    return real(path, mode);
}

static long clock_step_s(void)
{
    char path[512], text[32];
    if (!is_on("clock", path, sizeof(path)))
        return 0;
    leave_trace(path);
    FILE *file = fopen(path, "r");
    long step = file && fgets(text, sizeof(text), file) ? strtol(text, NULL, 10) : 0;
    if (file)
        fclose(file);
    return step;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(clock, now);
    if (is_thread("octd-keeper"))
        wait_for("keeper");
    if (status == 0 && clock == CLOCK_REALTIME)
        now->tv_sec += clock_step_s();
    return status;
}

time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec t;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &t);
    now->tv_sec = t.tv_sec;
    now->tv_usec = t.tv_nsec / 1000;
    return 0;
}
