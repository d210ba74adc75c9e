#define _GNU_SOURCE /* execvpe, TEMP_FAILURE_RETRY */
#include "tools/dicom/peer.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/utf8.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_WORDS 96u
#define SAID_BYTES 2048u
#define LOOK_MS 20
#define OLD_S 3600                    /* since when nobody reads an answer any more */
#define MOST_CHILD_BYTES (1ull << 30) /* of memory */
#define MOST_ANSWER_BYTES (1u << 18)
#define LEAST_BYTES_A_S 100e3 /* of a transfer; a slower one is given up */

/* A program of DCMTK's and its words. */
struct call {
    const char *words[MOST_WORDS];
    unsigned n;
    char title[32], host[OCT_CONFIG_STRING_BYTES], port[8], seconds[16];
    double most_s;
    const volatile sig_atomic_t *cancel;
};

static void add_words(struct call *call, const char *const *words)
{
    for (; *words && call->n < MOST_WORDS - 1; words++)
        call->words[call->n++] = *words;
}

#define ADD(call, ...) add_words(call, (const char *const[]){__VA_ARGS__, NULL})

static enum oct_err add_tls(struct call *call, const struct oct_config *config,
                            struct oct_error *err)
{
    if (!config->dicom.tls)
        return OCT_OK;
    if (!config->dicom.tls_ca[0])
        return oct_fail_key(err, OCT_E_CONFIG, "dicom.tls_ca",
                            "dicom.tls_ca is empty: without it nobody knows who answers");
    if (!config->dicom.tls_key[0] != !config->dicom.tls_cert[0])
        return oct_fail_key(err, OCT_E_CONFIG, "dicom.tls_key dicom.tls_cert",
                            "dicom.tls_key and dicom.tls_cert belong together");
    if (config->dicom.tls_key[0])
        ADD(call, "+tls", config->dicom.tls_key, config->dicom.tls_cert, "-pw");
    else
        ADD(call, "+tla");
    ADD(call, "+cf", config->dicom.tls_ca);
    return OCT_OK;
}

/* The program, who calls whom, timeouts, TLS. */
static enum oct_err begin_call(struct call *call, const char *program,
                               const struct oct_config *config, enum oct_dicom_peer peer,
                               struct oct_error *err)
{
    const bool is_archive = peer == OCT_DICOM_ARCHIVE;
    const char *text = is_archive ? config->dicom.archive : config->dicom.worklist;
    const char *key = is_archive ? "dicom.archive" : "dicom.worklist";
    const char *host = strchr(text, '@'), *port = strrchr(text, ':');
    *call = (struct call){.most_s = 3. * config->dicom.timeout_s + 2};
    if (!text[0] || !host || !port)
        return oct_fail_key(err, OCT_E_CONFIG, key, "%s is empty: it is TITLE@HOST:PORT", key);
    snprintf(call->title, sizeof(call->title), "%.*s", (int)(host - text), text);
    snprintf(call->host, sizeof(call->host), "%.*s", (int)(port - host - 1), host + 1);
    snprintf(call->port, sizeof(call->port), "%.5s", port + 1);
    snprintf(call->seconds, sizeof(call->seconds), "%u", config->dicom.timeout_s);
    ADD(call, program, "-ll", "error", "-aet", config->dicom.title, "-aec", call->title, "-to",
        call->seconds, "-ta", call->seconds, "-td", call->seconds);
    return add_tls(call, config, err);
}

/* ---- the child ---- */

static bool limit(__rlimit_resource_t what, rlim_t most)
{
    const struct rlimit l = {most, most};
    return setrlimit(what, &l) == 0;
}

/* Does not return. Nothing of this process goes along but three descriptors. */
static void become_program(const struct call *call, int output, pid_t parent)
{
    char path[1024], dictionary[1024];
    char *environment[] = {path, (char *)"LC_ALL=C", NULL, NULL};
    const int nowhere = open("/dev/null", O_RDONLY);
    const char *from = getenv("PATH"), *dict = getenv("DCMDICTPATH");
    snprintf(path, sizeof(path), "PATH=%s", from ? from : "/usr/bin:/bin");
    snprintf(dictionary, sizeof(dictionary), "DCMDICTPATH=%s", dict ? dict : "");
    environment[2] = dict ? dictionary : NULL;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it died before */
        _exit(126);
    if (!limit(RLIMIT_CORE, 0) || !limit(RLIMIT_AS, MOST_CHILD_BYTES) ||
        !limit(RLIMIT_FSIZE, MOST_ANSWER_BYTES))
        _exit(126);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    dup2(nowhere, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    close_range(STDERR_FILENO + 1, ~0u, 0);
    execvpe(call->words[0], (char *const *)call->words, environment);
    _exit(errno == ENOENT ? 127 : 126);
}

static void read_said(int fd, char said[SAID_BYTES], size_t *n)
{
    char bytes[4096];
    ssize_t got;
    while ((got = read(fd, bytes, sizeof(bytes))) > 0) {
        const size_t room = SAID_BYTES - 1 - *n, take = (size_t)got < room ? (size_t)got : room;
        memcpy(said + *n, bytes, take);
        *n += take;
    }
    said[*n] = '\0';
}

/* Waits for the child's end, and ends it and what it has made after its time. *ended: waitpid's
 * word. */
static enum oct_err wait_child(const struct call *call, pid_t child, int fd, char *said, int *ended,
                               struct oct_error *err)
{
    const uint64_t began_ns = oct_clock_ns();
    enum oct_err e = OCT_OK;
    size_t n = 0;
    for (;;) {
        struct pollfd look = {.fd = fd, .events = POLLIN};
        const int is_said = poll(&look, 1, LOOK_MS);
        read_said(fd, said, &n);
        if (waitpid(child, ended, WNOHANG) == child)
            break;
        if (is_said > 0 && (look.revents & POLLHUP)) /* it may close its output and go on */
            poll(NULL, 0, LOOK_MS);
        if (call->cancel && *call->cancel)
            e = oct_fail(err, OCT_E_CLOSED, "interrupted");
        else if ((double)(oct_clock_ns() - began_ns) * 1e-9 > call->most_s)
            e = oct_fail(err, OCT_E_IO, "no answer within %.0f s", call->most_s);
        if (!e)
            continue;
        kill(-child, SIGKILL);
        waitpid(child, ended, 0);
        break;
    }
    kill(-child, SIGKILL); /* what it may have left */
    read_said(fd, said, &n);
    return e;
}

/* What it said in one line that cannot harm a terminal, without its "E: " and "F: ". storescu says
 * nothing of a refusal but its status (PS3.4 B.2.3), the upper half of which is its own. */
static void find_reason(char *said, int status, char reason[160])
{
    size_t n = 0;
    char *rest = NULL;
    reason[0] = '\0';
    for (char *line = strtok_r(said, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest)) {
        line += (line[0] == 'E' || line[0] == 'F') && line[1] == ':' && line[2] == ' ' ? 3 : 0;
        n += (size_t)snprintf(reason + n, 160 - n, "%s%s", n ? " " : "", line);
        n = n < 160 ? n : 159;
    }
    if (!n && status >= 0xa0)
        snprintf(reason, 160, "refused, status %02Xxx%s", (unsigned)status,
                 status == 0xa7   ? ": it is out of resources"
                 : status == 0xa9 ? ": it does not take what is in the file"
                                  : "");
    else if (!n)
        snprintf(reason, 160, "no reason given");
    oct_utf8_make_line(reason);
}

/* OCT_E_IO with what the program said, unless it ended with 0. */
static enum oct_err run_call(const struct call *call, char said[SAID_BYTES], struct oct_error *err)
{
    const pid_t self = getpid();
    int pipes[2], ended = 0;
    char reason[160];
    said[0] = '\0';
    if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s cannot be run", call->words[0]);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
        become_program(call, pipes[1], self);
    close(pipes[1]);
    enum oct_err e = child < 0
                         ? oct_fail_errno(err, OCT_E_IO, errno, "%s cannot be run", call->words[0])
                         : wait_child(call, child, pipes[0], said, &ended, err);
    close(pipes[0]);
    if (e)
        return e;
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0)
        return OCT_OK;
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 127)
        return oct_fail(err, OCT_E_STATE, "%s is not there: install the package dcmtk",
                        call->words[0]);
    if (WIFSIGNALED(ended))
        return oct_fail(err, OCT_E_IO, "%s:%s: %s ended by signal %d", call->host, call->port,
                        call->words[0], WTERMSIG(ended));
    find_reason(said, WEXITSTATUS(ended), reason);
    return oct_fail(err, OCT_E_IO, "%s:%s: %s", call->host, call->port, reason);
}

/* ---- the three ---- */

enum oct_err oct_dicom_echo(const struct oct_config *config, enum oct_dicom_peer peer,
                            const volatile sig_atomic_t *cancel, struct oct_error *err)
{
    struct call call;
    char said[SAID_BYTES];
    enum oct_err e = begin_call(&call, "echoscu", config, peer, err);
    call.cancel = cancel;
    ADD(&call, call.host, call.port);
    return e ? e : run_call(&call, said, err);
}

enum oct_err oct_dicom_store(const struct oct_config *config, const char *path,
                             const volatile sig_atomic_t *cancel, struct oct_error *err)
{
    struct call call;
    struct stat st;
    char said[SAID_BYTES];
    enum oct_err e = begin_call(&call, "storescu", config, OCT_DICOM_ARCHIVE, err);
    if (!e && stat(path, &st) != 0)
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s", path);
    if (e)
        return e;
    call.cancel = cancel;
    call.most_s += (double)st.st_size / LEAST_BYTES_A_S;
    ADD(&call, "-R", call.host, call.port, path);
    return run_call(&call, said, err);
}

/* Removes the folder and the files in it; reads each before, in their order. */
static enum oct_err take_answers(const char *folder, const struct oct_dicom_text *texts, unsigned n,
                                 enum oct_err (*take)(void *, bool, struct oct_error *),
                                 void *context, unsigned *n_taken, enum oct_err e,
                                 struct oct_error *err)
{
    struct dirent **names = NULL;
    bool is_whole;
    const int n_names = scandir(folder, &names, NULL, alphasort);
    for (int i = 0; i < n_names; i++) {
        char path[OCT_CONFIG_STRING_BYTES + 300];
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);
        const bool is_answer = strncmp(names[i]->d_name, "rsp", 3) == 0;
        if (!e && is_answer && !(e = oct_dicom_texts_read(path, texts, n, &is_whole, err))) {
            (*n_taken)++;
            e = take(context, is_whole, err);
        }
        if (names[i]->d_name[0] != '.')
            unlink(path);
        free(names[i]);
    }
    free(names);
    rmdir(folder);
    return e;
}

/* Those of a process that was killed. */
static void remove_old_answers(const char *folder)
{
    struct dirent **names = NULL;
    struct stat st;
    const int n_names = scandir(folder, &names, NULL, NULL);
    for (int i = 0; i < n_names; i++) {
        char path[OCT_CONFIG_STRING_BYTES + 300];
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);
        if (strncmp(names[i]->d_name, "answers.", 8) == 0 && stat(path, &st) == 0 &&
            time(NULL) - st.st_mtime > OLD_S)
            take_answers(path, NULL, 0, NULL, NULL, NULL, OCT_E_CLOSED, NULL);
        free(names[i]);
    }
    free(names);
}

enum oct_err
oct_dicom_find(const struct oct_config *config, enum oct_dicom_peer peer, const char *const *query,
               const char *folder, const struct oct_dicom_text *texts, unsigned n,
               enum oct_err (*take)(void *context, bool is_whole, struct oct_error *err),
               void *context, bool *is_cut, const volatile sig_atomic_t *cancel,
               struct oct_error *err)
{
    struct call call;
    char said[SAID_BYTES], answers[OCT_CONFIG_STRING_BYTES + 32], most[16], cancels[16];
    unsigned n_taken = 0;
    *is_cut = false;
    enum oct_err e = begin_call(&call, "findscu", config, peer, err);
    if (e)
        return e;
    remove_old_answers(folder);
    snprintf(answers, sizeof(answers), "%s/answers.XXXXXX", folder);
    if (!mkdtemp(answers))
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: no folder can be made for answers",
                              folder);
    snprintf(most, sizeof(most), "%u", OCT_DICOM_MOST_ANSWERS);
    snprintf(cancels, sizeof(cancels), "%u", OCT_DICOM_MOST_ANSWERS + 1);
    call.cancel = cancel;
    add_words(&call, query);
    ADD(&call, "-sr", "-X", "-od", answers, "-Xlo", most, "--cancel", cancels, call.host,
        call.port);
    e = run_call(&call, said, err);
    e = take_answers(answers, texts, n, take, context, &n_taken, e, err);
    *is_cut = n_taken == OCT_DICOM_MOST_ANSWERS;
    return e;
}
