#define _GNU_SOURCE /* pipe2 */
#include "pipeline/volume/hdf5_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* Reading metadata takes milliseconds. A child that loops is ended after MAX_CPU_S of computing,
 * one that waits for a disk after MAX_WALL_S. */
enum { MAX_CPU_S = 2, MAX_WALL_S = 60, SLICE_MS = 50 };

/* Of the process, as its signals are. */
static const volatile sig_atomic_t *told_to_end;

void oct_hdf5_probe_cancel(const volatile sig_atomic_t *cancel)
{
    told_to_end = cancel;
}

static bool was_told_to_end(void)
{
    sigset_t waiting;
    return (told_to_end && *told_to_end) ||
           (sigpending(&waiting) == 0 &&
            (sigismember(&waiting, SIGINT) == 1 || sigismember(&waiting, SIGTERM) == 1));
}

/* The pipe says whether the child came to its end. Its exit status does not: the program may ignore
 * SIGCHLD. */
static bool came_to_its_end(int pipe)
{
    char done;
    for (;;) {
        struct pollfd in = {.fd = pipe, .events = POLLIN};
        if (was_told_to_end())
            return false;
        if (poll(&in, 1, SLICE_MS) <= 0)
            continue;
        const ssize_t n = read(pipe, &done, 1);
        if (n >= 0 || errno != EINTR)
            return n == 1;
    }
}

/* Resets the signal handlers, which are the parent's, and turns off output: a crash ends this
 * process silently, and its end does not print again what the parent has buffered (ThreadSanitizer
 * does). */
static void become_expendable(void)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM, SIGXCPU};
    const struct rlimit cpu = {MAX_CPU_S, MAX_CPU_S + 1}, no_core = {0, 0};
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t set;
    sigemptyset(&action.sa_mask);
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++) {
        sigaction(fatal[i], &action, NULL);
        sigaddset(&set, fatal[i]);
    }
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    setrlimit(RLIMIT_CORE, &no_core);
    setrlimit(RLIMIT_CPU, &cpu);
    alarm(MAX_WALL_S);
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) {
        dup2(nowhere, STDOUT_FILENO);
        dup2(nowhere, STDERR_FILENO);
    }
}

enum oct_err oct_hdf5_probe(const char *path, void (*look)(const char *path), struct oct_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: no pipe to a child process", path);
    pid_t child = fork();
    if (child < 0) {
        int errnum = errno;
        close(ends[0]);
        close(ends[1]);
        return oct_fail_errno(err, OCT_E_IO, errnum, "%s: no child process to look at it", path);
    }
    if (child == 0) {
        become_expendable();
        look(path);
        _exit(write(ends[1], "", 1) == 1 ? 0 : 1);
    }
    close(ends[1]);
    const bool has_ended = came_to_its_end(ends[0]), is_told = !has_ended && was_told_to_end();
    close(ends[0]);
    if (is_told)
        kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    if (is_told)
        return oct_fail(err, OCT_E_CLOSED, "%s: interrupted while it was looked at", path);
    if (!has_ended)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: damaged HDF5 file: libhdf5 crashes or never ends when it reads it",
                        path);
    return OCT_OK;
}
