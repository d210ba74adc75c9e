#define _GNU_SOURCE /* pipe2, posix_spawn_file_actions_addclosefrom_np */
#include "viewer/net/errand.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define END_MS 1000 /* from the request to end to the end */
#define KILLED_MS 500
#define LOOK_MS 10

extern char **environ;

/* ---- the child ---- */

/* "octctl", to be looked for in PATH, where there is none beside this program. */
static void find_octctl(char *path, size_t n_bytes)
{
    const ssize_t n = readlink("/proc/self/exe", path, n_bytes - sizeof("octctl"));
    char *slash = n > 0 ? memrchr(path, '/', (size_t)n) : NULL;
    if (slash)
        memcpy(slash + 1, "octctl", sizeof("octctl"));
    if (!slash || access(path, X_OK) != 0)
        snprintf(path, n_bytes, "octctl");
}

/* A process group of its own, no signal blocked, and no descriptor of the window's. */
static int spawn(pid_t *pid, const char *const *words, int out, int err)
{
    char path[4096];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t how;
    sigset_t none, usual;
    find_octctl(path, sizeof(path));
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                       POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &usual);
    const int errnum = posix_spawnp(pid, path, &actions, &how, (char *const *)words, environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&actions);
    return errnum;
}

static void close_pipe(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void oct_view_errand_begin(struct oct_view_errand *e, const char *const *words, double most_s)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1}, errnum = 0;
    free(e->text);
    *e = (struct oct_view_errand){.runs = true, .out = -1, .err = -1};
    e->until_ns = oct_clock_ns() + (uint64_t)(most_s * (double)OCT_NS_PER_S);
    if (pipe2(out, O_CLOEXEC | O_NONBLOCK) != 0 || pipe2(err, O_CLOEXEC | O_NONBLOCK) != 0 ||
        fcntl(out[1], F_SETFL, 0) != 0 || fcntl(err[1], F_SETFL, 0) != 0) /* octctl may wait */
        errnum = errno;
    else
        errnum = spawn(&e->pid, words, out[1], err[1]);
    close_pipe(&out[1]);
    close_pipe(&err[1]);
    e->out = out[0];
    e->err = err[0];
    if (!errnum)
        return;
    e->pid = 0;
    snprintf(e->why, sizeof(e->why), "octctl cannot be started: %s%s", strerror(errnum),
             errnum == ENOENT ? "; it is to be beside octview, or in PATH" : "");
}

/* ---- what it says ---- */

/* False: it is too much. */
static bool read_out(struct oct_view_errand *e)
{
    for (;;) {
        if (e->room - e->n_bytes < 4096) {
            const size_t room = e->room ? 2 * e->room : 65536;
            char *larger = room <= 2 * OCT_VIEW_MOST_ERRAND_BYTES ? realloc(e->text, room) : NULL;
            if (!larger)
                return false;
            e->text = larger;
            e->room = room;
        }
        const ssize_t n = read(e->out, e->text + e->n_bytes, e->room - e->n_bytes - 1);
        if (n <= 0)
            return true;
        e->n_bytes += (size_t)n;
        e->text[e->n_bytes] = '\0';
        if (e->n_bytes > OCT_VIEW_MOST_ERRAND_BYTES)
            return false;
    }
}

/* Its beginning; the rest is read and left. */
static void read_err(struct oct_view_errand *e)
{
    char bytes[1024];
    ssize_t n;
    while ((n = read(e->err, bytes, sizeof(bytes))) > 0) {
        const size_t room = sizeof(e->why) - 1 - e->n_why;
        const size_t more = (size_t)n < room ? (size_t)n : room;
        memcpy(e->why + e->n_why, bytes, more);
        e->n_why += more;
    }
}

/* The first line of what it said, without "octctl COMMAND: ". */
static void make_reason(struct oct_view_errand *e, int status)
{
    static const char self[] = "octctl ";
    e->why[e->n_why] = '\0';
    e->why[strcspn(e->why, "\n")] = '\0';
    char *colon = strncmp(e->why, self, strlen(self)) == 0 ? strstr(e->why, ": ") : NULL;
    if (colon)
        memmove(e->why, colon + 2, strlen(colon + 2) + 1);
    oct_utf8_make_line(e->why);
    if (WIFSIGNALED(status))
        snprintf(e->why, sizeof(e->why), "octctl was ended by signal %d", WTERMSIG(status));
    else if (!e->why[0])
        snprintf(e->why, sizeof(e->why), "octctl ended with %d and gave no reason",
                 WEXITSTATUS(status));
}

static bool end_errand(struct oct_view_errand *e, bool ok)
{
    close_pipe(&e->out);
    close_pipe(&e->err);
    e->pid = 0;
    e->runs = false;
    e->ok = ok;
    return true;
}

bool oct_view_errand_look(struct oct_view_errand *e)
{
    int status = 0;
    if (!e->runs)
        return false;
    if (e->pid == 0) /* it was never started */
        return end_errand(e, false);
    const pid_t ended = waitpid(e->pid, &status, WNOHANG); /* before the last is read */
    /* Where SIGCHLD is ignored nobody is told how a child ended. */
    const bool is_lost = ended < 0 && errno == ECHILD, is_over = ended == e->pid || is_lost;
    if (is_lost)
        e->cut = "how octctl ended is not known (SIGCHLD is ignored)";
    if (!e->cut && !read_out(e))
        e->cut = "octctl said more than can be true";
    else if (!e->cut && !is_over && oct_clock_ns() > e->until_ns)
        e->cut = "octctl had no answer in time";
    read_err(e);
    if (!is_lost && (e->cut || is_over))
        kill(-e->pid, SIGKILL); /* and what it may have left; its end is seen at the next look */
    if (!is_over)
        return false;
    make_reason(e, status);
    if (e->cut)
        snprintf(e->why, sizeof(e->why), "%s", e->cut);
    return end_errand(e, !e->cut && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void oct_view_errand_end_all(struct oct_view_errand *errands, unsigned n)
{
    unsigned n_left = n;
    for (int ms = 0; ms < END_MS + KILLED_MS && n_left > 0; ms += LOOK_MS) {
        n_left = 0;
        for (unsigned i = 0; i < n; i++) {
            if (errands[i].pid > 0 && (ms == 0 || ms == END_MS))
                kill(-errands[i].pid, ms == 0 ? SIGTERM : SIGKILL);
            n_left += errands[i].runs && !oct_view_errand_look(&errands[i]);
        }
        if (n_left > 0)
            poll(NULL, 0, LOOK_MS);
    }
    for (unsigned i = 0; i < n; i++) {
        if (errands[i].runs) /* not even killed it ends: it waits for a disk */
            end_errand(&errands[i], false);
        free(errands[i].text);
        errands[i] = (struct oct_view_errand){.runs = false};
    }
}
