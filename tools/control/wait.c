#include "tools/control/wait.h"

#include "pipeline/base/clock.h"
#include "tools/options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_WAIT_S 600.0
#define MOST_DRAIN_S 86400.0
#define USUAL_DRAIN_S 10.0 /* assumed of a daemon that does not tell its daemon.drain_s */
#define END_S 5.0          /* beyond daemon.drain_s, for freeing sockets, threads and memory */
#define END_TEXT "5"
#define PAUSE_S 0.02

static double now_s(void)
{
    return (double)oct_clock_ns() * 1e-9;
}

static void pause_shortly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)(PAUSE_S * 1e9)}, NULL);
}

/* Returns how long the daemon may take to drain, and END_S more. It waits a second for the answer:
 * the daemon answers at once or not at all. */
static double most_draining_s(const struct oct_control_wait *wait)
{
    double drain_s = USUAL_DRAIN_S;
    cJSON *answer;
    oct_control_ask_briefly(wait->control, "{\"cmd\":\"get\",\"key\":\"daemon.drain_s\"}", 1,
                            &answer, NULL);
    const char *value = oct_json_text(answer, "value");
    if (value && !oct_option_double(value, &drain_s))
        drain_s = USUAL_DRAIN_S;
    cJSON_Delete(answer);
    return fmin(fmax(drain_s, 0), MOST_DRAIN_S) + END_S;
}

/* ---- how long ---- */

struct patience {
    const struct oct_control_wait *wait;
    double wait_s; /* 0: not asked for yet */
    double began_s, moved_s,
        most; /* the highest count so far; began_s 0: before the first status */
};

static double count_of(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

/* Returns whether to ask again after this status; if not, err says how long the wait was. Only a
 * new maximum counts as a rise, so that numbers that jump up and down prolong nothing; while a
 * recording is being closed, pictures are no sign that it gets on. */
static bool may_wait(struct patience *p, const cJSON *status, struct oct_error *err)
{
    const struct oct_control_wait *wait = p->wait;
    const double now = now_s();
    double count =
        count_of(status, "bscans_written") + count_of(status, "bytes_written") +
        count_of(cJSON_GetObjectItemCaseSensitive(status, "record_last"), "bscans_saved");
    if (strcmp(wait->command, "record") != 0)
        count += count_of(status, "bscans_done");
    if (p->began_s <= 0)
        *p = (struct patience){wait, wait->wait_s, now, now, count};
    if (p->wait_s <= 0 && wait->most_s <= 0)
        p->wait_s = most_draining_s(wait);
    if (count > p->most) {
        p->most = count;
        p->moved_s = now;
    }
    const double still_s = now - p->moved_s, all_s = now - p->began_s;
    if (wait->most_s > 0 ? all_s <= wait->most_s : still_s < p->wait_s && all_s < MOST_WAIT_S)
        return true;
    if (wait->most_s > 0)
        oct_fail(err, OCT_E_STATE, "not done within %g s: see octctl status", wait->most_s);
    else
        oct_fail(err, OCT_E_STATE,
                 "%s: not done after %.0f s%s: see octctl status and the daemon's log",
                 wait->command, all_s,
                 still_s < p->wait_s ? "" : ", and the daemon gets on with nothing (--wait)");
    return false;
}

enum oct_err oct_control_ask_patiently(const struct oct_control_wait *wait, const char *request,
                                       cJSON **answer, char **text, struct oct_error *err)
{
    struct patience patience = {.wait = wait};
    for (;; pause_shortly()) {
        enum oct_err code = oct_control_ask(wait->control, request, answer, text, err);
        cJSON *status;
        if (code || !oct_json_is_true(*answer, "busy"))
            return code;
        cJSON_Delete(*answer);
        free(*text);
        *answer = NULL;
        *text = NULL;
        code = oct_control_status(wait->control, &status, err);
        const bool again = !code && may_wait(&patience, status, err);
        cJSON_Delete(status);
        if (!again)
            return code ? code : OCT_E_STATE;
    }
}

/* Asks for the status until `look` returns another code than OCT_E_AGAIN, and returns that code;
 * *last (NULL: not wanted) is that status. OCT_E_STATE: it took too long; other errors: octd did
 * not answer. */
static enum oct_err follow_status(const struct oct_control_wait *wait,
                                  enum oct_err (*look)(void *context, const cJSON *status,
                                                       struct oct_error *err),
                                  void *context, cJSON **last, struct oct_error *err)
{
    struct patience patience = {.wait = wait};
    for (;; pause_shortly()) {
        cJSON *status;
        enum oct_err e = oct_control_status(wait->control, &status, err);
        const bool answers = !e;
        if (answers)
            e = look(context, status, err);
        if (answers && e == OCT_E_AGAIN && may_wait(&patience, status, err)) {
            cJSON_Delete(status);
            continue;
        }
        if (last)
            *last = status;
        else
            cJSON_Delete(status);
        return answers && e == OCT_E_AGAIN ? OCT_E_STATE : e;
    }
}

/* ---- done ---- */

void oct_control_print_warning(const cJSON *from)
{
    const char *warning = oct_json_text(from, "warning");
    if (warning && *warning)
        fprintf(stderr, "octctl: warning: %s\n", warning);
}

/* Returns the exit status of a granted request once the daemon works on nothing any more, and
 * prints why it failed. */
static int what_became(const struct oct_control_wait *wait, const cJSON *status)
{
    const cJSON *record = cJSON_GetObjectItemCaseSensitive(status, "record");
    const char *phase = oct_json_text(status, "phase");
    const char *why = oct_json_text(status, "last_error");
    const char *refused =
        oct_json_text(cJSON_GetObjectItemCaseSensitive(status, "scan"), "refused");
    bool starts = strcmp(wait->action ? wait->action : wait->command, "start") == 0;
    bool recording = strcmp(wait->command, "record") == 0;
    bool failed = phase && strcmp(phase, "error") == 0;
    if (strcmp(wait->command, "rescan") == 0) { /* it has cleared what failed before it */
        why = refused && *refused ? refused : why;
        failed |= why && *why;
    }
    bool is_so = recording ? oct_json_is_true(record, "active")
                           : phase && strcmp(phase, "idle") != 0 && !failed;
    if (starts && recording && is_so)
        oct_control_print_warning(cJSON_GetObjectItemCaseSensitive(status, "forecast"));
    if (starts ? !phase || is_so : recording || !failed)
        return 0;
    fprintf(stderr, "octctl: %s: %s\n", wait->command,
            why && *why ? why : "the daemon failed at it: see octctl status");
    return 1;
}

struct done {
    const struct oct_control_wait *wait;
    bool closed;
    int status; /* of the exit */
};

static enum oct_err look_done(void *context, const cJSON *answer, struct oct_error *err)
{
    struct done *done = context;
    const cJSON *record = cJSON_GetObjectItemCaseSensitive(answer, "record");
    (void)err;
    if (oct_json_is_true(answer, "pending") || (done->closed && oct_json_is_true(record, "active")))
        return OCT_E_AGAIN;
    done->status = what_became(done->wait, answer);
    return OCT_OK;
}

int oct_control_wait_done(const struct oct_control_wait *wait, bool closed)
{
    struct done done = {wait, closed, 0};
    struct oct_error err;
    if (follow_status(wait, look_done, &done, NULL, &err) != OCT_E_STATE)
        return done.status;
    fprintf(stderr, "octctl: %s\n", err.text);
    return 1;
}

/* ---- saved ---- */

static void warn_of_lost(const cJSON *last)
{
    double saved = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(last, "bscans_saved"));
    double lost = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(last, "bscans_lost"));
    if (lost > 0)
        fprintf(stderr,
                "octctl: warning: record last: %.0f of %.0f B-scans are missing: the disk was too "
                "slow to save them before newer ones needed their memory\n",
                lost, lost + saved);
}

static enum oct_err look_saved(void *context, const cJSON *answer, struct oct_error *err)
{
    const cJSON *last = cJSON_GetObjectItemCaseSensitive(answer, "record_last");
    const char *why = oct_json_text(last, "error"), *file = oct_json_text(last, "file");
    const bool *prints = context;
    if (oct_json_is_true(last, "saving"))
        return OCT_E_AGAIN;
    if (!why || *why)
        return oct_fail(err, OCT_E_STATE, "record last: %s", why ? why : "it is not known");
    warn_of_lost(last);
    if (*prints)
        printf("%s\n", file ? file : "");
    return OCT_OK;
}

int oct_control_wait_saved(const struct oct_control_wait *wait, bool prints)
{
    struct oct_error err;
    if (follow_status(wait, look_saved, &prints, NULL, &err) == OCT_OK)
        return 0;
    fprintf(stderr, "octctl: %s\n", err.text);
    return 1;
}

/* ---- ended ---- */

bool oct_control_find_process(const struct oct_control_wait *wait, pid_t *process)
{
    static const char *const here[] = {"ipc://", "tcp://127.", "tcp://localhost:", "tcp://[::1]:"};
    const char *endpoint = oct_control_endpoint(wait->control);
    cJSON *answer;
    char path[64], name[16] = "";
    double pid = 0;
    bool answers = oct_control_status(wait->control, &answer, NULL) == OCT_OK;
    for (size_t i = 0; i < sizeof(here) / sizeof(here[0]); i++)
        if (strncmp(endpoint, here[i], strlen(here[i])) == 0)
            pid = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(answer, "pid"));
    cJSON_Delete(answer);
    *process = 0;
    if (!(pid > 1 && pid < 1e9))
        return answers;
    /* Through a tunnel or out of a container, the number may belong to another process. */
    snprintf(path, sizeof(path), "/proc/%.0f/comm", pid);
    FILE *file = fopen(path, "re");
    if (file && !fgets(name, sizeof(name), file))
        name[0] = '\0';
    if (file)
        fclose(file);
    if (strcmp(name, "octd\n") == 0)
        *process = (pid_t)pid;
    return answers;
}

/* Returns whether the process is gone, or a zombie without a thread: its first thread is one before
 * the others have ended. */
static bool has_ended(pid_t pid)
{
    char path[64], line[512] = "";
    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return true;
    if (!fgets(line, sizeof(line), file))
        line[0] = '\0';
    fclose(file);
    const char *name_end = strrchr(line, ')');
    char state = 'X';
    long n_threads = 0; /* field 20; the state is field 3 */
    if (name_end)
        sscanf(name_end, ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld",
               &state, &n_threads);
    return state == 'X' || (state == 'Z' && n_threads <= 1);
}

/* Where the process is not known: two questions in a row get no answer within a second each. */
static bool is_silent(const struct oct_control_wait *wait)
{
    bool answers = false;
    for (int n = 0; n < 2 && !answers; n++) {
        cJSON *answer;
        answers = oct_control_ask_briefly(wait->control, "{\"cmd\":\"status\"}", 1, &answer,
                                          NULL) == OCT_OK;
        cJSON_Delete(answer);
    }
    return !answers;
}

double oct_control_most_ending_s(const struct oct_control_wait *wait)
{
    return wait->wait_s > 0 ? wait->wait_s : most_draining_s(wait);
}

int oct_control_wait_ended(const struct oct_control_wait *wait, pid_t process, double most_s)
{
    for (double end_s = now_s() + most_s; now_s() < end_s; pause_shortly())
        if (process ? has_ended(process) : is_silent(wait))
            return 0;
    fprintf(stderr, "octctl: shutdown: octd has not ended after %g s (%s): see its log\n", most_s,
            wait->wait_s > 0 ? "--wait" : "daemon.drain_s and " END_TEXT " s");
    return 1;
}

/* ---- errands ---- */

enum oct_err oct_errand_granted(const cJSON *answer, struct oct_error *err)
{
    const char *why = oct_json_text(answer, "error");
    if (oct_json_is_true(answer, "ok"))
        return OCT_OK;
    return oct_fail(err, OCT_E_STATE, "%s", why ? why : "octd refused without a reason");
}

enum oct_err oct_errand_ask(const struct oct_control_wait *wait, const char *request,
                            double *number, struct oct_error *err)
{
    cJSON *answer = NULL;
    char *text = NULL;
    enum oct_err e = oct_control_ask_patiently(wait, request, &answer, &text, err);
    e = e ? e : oct_errand_granted(answer, err);
    if (!e && !((*number = oct_json_number(answer, "number")) > 0))
        e = oct_fail(err, OCT_E_FORMAT, "octd's answer has no number: is it older than octctl?");
    cJSON_Delete(answer);
    free(text);
    return e;
}

struct errand {
    double number;
    const cJSON **result;
};

static enum oct_err look_errand(void *context, const cJSON *status, struct oct_error *err)
{
    const struct errand *e = context;
    const cJSON *errand = cJSON_GetObjectItemCaseSensitive(status, "errand");
    const char *why = oct_json_text(errand, "error");
    *e->result = cJSON_GetObjectItemCaseSensitive(errand, "result");
    if (oct_json_number(errand, "number") != e->number)
        return oct_fail(err, OCT_E_STATE, "another command came between, or octd started anew");
    if (oct_json_is_true(errand, "pending"))
        return OCT_E_AGAIN;
    if (why && *why)
        return oct_fail(err, OCT_E_STATE, "%s", why);
    return *e->result ? OCT_OK : oct_fail(err, OCT_E_FORMAT, "octd's status has no result");
}

enum oct_err oct_errand_wait(const struct oct_control_wait *wait, double number, cJSON **status,
                             const cJSON **result, struct oct_error *err)
{
    struct errand errand = {number, result};
    return follow_status(wait, look_errand, &errand, status, err);
}
