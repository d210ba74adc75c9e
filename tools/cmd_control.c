/* status, start, stop, record, set, get, shutdown: one JSON object each way over ZeroMQ (contract
 * section 5, control). */
#include "pipeline/base/clock.h"
#include "pipeline/net/curve.h"
#include "tools/commands.h"
#include "tools/patience.h"
#include "tools/status_table.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <zmq.h>

#define MOST_ANSWER_BYTES (1 << 20)
#define MOST_TIMEOUT_S 86400.0
#define USUAL_DRAIN_S 10.0 /* of a daemon that does not say */
#define END_S 5.0          /* beyond daemon.drain_s: sockets, threads and memory are given back */
#define END_TEXT "5"
#define PAUSE_S 0.02

struct control_call {
    const char *name; /* of the command, for messages */
    const char *endpoint;
    struct oct_curve_files keys;
    double timeout_s; /* without an answer */
    double wait_s;    /* for what was granted, while nothing gets on; 0: by daemon.drain_s */
    bool json, no_wait;
    const char *plain[2]; /* arguments that are no options */
    int n_plain;
    bool pending; /* the daemon has not done yet what it granted */
};

/* ---- the command line ---- */

/* JSON is UTF-8: the daemon would tell of a request that nobody wrote. */
static int refuse_encoding(const struct control_call *call)
{
    struct oct_error err;
    const char *bad = NULL;
    int i = 0;
    while (i < call->n_plain && !(bad = oct_config_bad_encoding(call->plain[i])))
        i++;
    if (!bad)
        return 0;
    oct_fail(&err, OCT_E_CONFIG, "%.60s%s'%.60s' %s", i ? call->plain[0] : "", i ? ": " : "",
             call->plain[i], bad);
    return oct_command_fail(call->name, &err);
}

static int read_options(struct control_call *call, const struct oct_config *config, int argc,
                        char **argv, int n_least, int n_most)
{
    *call = (struct control_call){
        .name = argv[0],
        .endpoint = config->control.endpoint,
        .keys = {config->security.client_key, config->security.server_public},
        .timeout_s = 5,
    };
    for (int i = 1; i < argc; i++) {
        const char *value;
        if (oct_option_flag(argv[i], "--json")) {
            call->json = true;
        } else if (oct_option_flag(argv[i], "--no-wait")) {
            call->no_wait = true;
        } else if (oct_option_value(argc, argv, &i, "--timeout", &value)) {
            if (!oct_option_double(value, &call->timeout_s) || call->timeout_s <= 0 ||
                call->timeout_s > MOST_TIMEOUT_S)
                return oct_command_misuse(argv[0], "--timeout needs a number of seconds above 0");
        } else if (oct_option_value(argc, argv, &i, "--wait", &value)) {
            if (!oct_option_double(value, &call->wait_s) || call->wait_s <= 0 ||
                call->wait_s > MOST_TIMEOUT_S)
                return oct_command_misuse(argv[0], "--wait needs a number of seconds above 0");
        } else if (oct_option_value(argc, argv, &i, "--endpoint", &value)) {
            if (!value)
                return oct_command_misuse(argv[0], "--endpoint needs a value");
            call->endpoint = value;
        } else if (strncmp(argv[i], "--", 2) == 0) {
            return oct_command_misuse(argv[0], "unknown option '%s'", argv[i]);
        } else if (call->n_plain < n_most) {
            call->plain[call->n_plain++] = argv[i];
        } else {
            return oct_command_misuse(argv[0], "unexpected argument '%s'", argv[i]);
        }
    }
    if (call->n_plain < n_least)
        return oct_command_misuse(argv[0], "an argument is missing");
    return refuse_encoding(call);
}

/* ---- the exchange ---- */

/* What is printed must not steer a terminal, whoever answers. cJSON bounds how deep they lie. */
static void make_printable(cJSON *item) /* NOLINT(misc-no-recursion) */
{
    char *texts[] = {item->string, item->valuestring};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        for (char *c = texts[i]; c && *c; c++)
            *c = (unsigned char)*c < ' ' || *c == 127 ? '?' : *c;
    cJSON *child;
    cJSON_ArrayForEach(child, item) make_printable(child);
}

static enum oct_err receive(void *socket, const struct control_call *call, cJSON **answer,
                            char **text, struct oct_error *err)
{
    zmq_msg_t message;
    zmq_msg_init(&message);
    enum oct_err code = OCT_OK;
    if (zmq_msg_recv(&message, socket, 0) < 0) {
        code =
            errno == EAGAIN
                ? oct_fail(err, OCT_E_IO,
                           "no daemon answers at %s (is octd running? --set control.endpoint=...; "
                           "%s)",
                           call->endpoint,
                           call->keys.client_key[0]
                               ? "does it allow the key of security.client_key?"
                               : "one with keys answers only with security.client_key")
                : oct_fail(err, OCT_E_IO, "%s: %s", call->endpoint, zmq_strerror(errno));
    } else {
        size_t n_bytes = zmq_msg_size(&message);
        *text = malloc(n_bytes + 1);
        if (*text) {
            memcpy(*text, zmq_msg_data(&message), n_bytes);
            (*text)[n_bytes] = '\0';
            *answer = cJSON_ParseWithLength(*text, n_bytes);
        }
        if (!cJSON_IsObject(*answer))
            code = oct_fail(err, OCT_E_FORMAT,
                            "%s: the answer is no JSON object: is that really octd's control "
                            "endpoint?",
                            call->endpoint);
        else
            make_printable(*answer);
    }
    zmq_msg_close(&message);
    return code;
}

static enum oct_err exchange(const struct control_call *call, const char *request, cJSON **answer,
                             char **text, struct oct_error *err)
{
    enum oct_err code = OCT_OK;
    int timeout_ms = (int)ceil(call->timeout_s * 1000);
    int no_linger = 0;
    int64_t most_bytes = MOST_ANSWER_BYTES;
    void *context = zmq_ctx_new();
    void *socket = context ? zmq_socket(context, ZMQ_REQ) : NULL;
    if (!socket || zmq_setsockopt(socket, ZMQ_LINGER, &no_linger, sizeof(no_linger)) ||
        zmq_setsockopt(socket, ZMQ_SNDTIMEO, &timeout_ms, sizeof(timeout_ms)) ||
        zmq_setsockopt(socket, ZMQ_RCVTIMEO, &timeout_ms, sizeof(timeout_ms)) ||
        zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &most_bytes, sizeof(most_bytes))) {
        code = oct_fail(err, OCT_E_IO, "cannot make a socket: %s", zmq_strerror(errno));
        goto fail;
    }
    if ((code = oct_curve_set_client(socket, &call->keys, err)))
        goto fail;
    if (zmq_connect(socket, call->endpoint)) {
        code = oct_fail(err, OCT_E_CONFIG, "control.endpoint: cannot connect to '%s': %s",
                        call->endpoint, zmq_strerror(errno));
        goto fail;
    }
    if (zmq_send(socket, request, strlen(request), 0) < 0) {
        code = oct_fail(err, OCT_E_IO, "%s: cannot send: %s", call->endpoint, zmq_strerror(errno));
        goto fail;
    }
    code = receive(socket, call, answer, text, err);
fail:
    if (socket)
        zmq_close(socket);
    if (context)
        zmq_ctx_term(context);
    return code;
}

/* ---- showing an answer ---- */

static void print_answer(const struct control_call *call, const cJSON *answer)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(answer, "value");
    if (strcmp(call->name, "status") == 0) {
        oct_status_table_print(answer);
    } else if (strcmp(call->name, "get") == 0 && cJSON_IsString(value)) {
        printf("%s\n", value->valuestring);
    } else if (strcmp(call->name, "get") == 0 && value) {
        char *text = cJSON_PrintUnformatted(value);
        printf("%s\n", text ? text : "");
        cJSON_free(text);
    }
}

/* Once it is so, and not before: a script that reads "ok" goes by it. Passes the status on. */
static int say_ok(const struct control_call *call, int status)
{
    if (status == 0 && !call->json)
        printf("ok\n");
    return status;
}

/* ---- waiting ---- */

static bool is_true(const cJSON *object, const char *key)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static double now_s(void)
{
    return (double)oct_clock_ns() * 1e-9;
}

static void pause_shortly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)(PAUSE_S * 1e9)}, NULL);
}

/* How long the daemon may take to drain, and some seconds more. It answers at once or not at
 * all. */
static double most_draining_s(const struct control_call *call)
{
    struct control_call brief = *call;
    struct oct_error err;
    cJSON *answer = NULL;
    char *text = NULL;
    double drain_s = USUAL_DRAIN_S;
    brief.timeout_s = fmin(call->timeout_s, 1);
    if (!exchange(&brief, "{\"cmd\":\"get\",\"key\":\"daemon.drain_s\"}", &answer, &text, &err)) {
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(answer, "value");
        if (cJSON_IsString(value) && !oct_option_double(value->valuestring, &drain_s))
            drain_s = USUAL_DRAIN_S;
    }
    free(text);
    cJSON_Delete(answer);
    return fmin(fmax(drain_s, 0), MOST_TIMEOUT_S) + END_S;
}

/* Whether to ask again after this status; if not, for how long it was waited is in err. */
static bool may_wait(struct oct_patience *patience, const struct control_call *call,
                     const cJSON *status, struct oct_error *err)
{
    if (patience->wait_s <= 0)
        patience->wait_s = most_draining_s(call);
    return oct_patience_lasts(patience, status, err);
}

/* Asks the same again as long as the daemon says that it is busy with starting or draining. */
static enum oct_err exchange_patiently(const struct control_call *call, const char *request,
                                       cJSON **answer, char **text, struct oct_error *err)
{
    struct oct_patience patience = {.command = call->name, .wait_s = call->wait_s};
    for (;;) {
        enum oct_err code = exchange(call, request, answer, text, err);
        cJSON *status = NULL;
        char *status_text = NULL;
        if (code || !is_true(*answer, "busy"))
            return code;
        cJSON_Delete(*answer);
        free(*text);
        *answer = NULL;
        *text = NULL;
        pause_shortly();
        code = exchange(call, "{\"cmd\":\"status\"}", &status, &status_text, err);
        bool wait = !code && may_wait(&patience, call, status, err);
        cJSON_Delete(status);
        free(status_text);
        if (!wait)
            return code ? code : OCT_E_STATE;
    }
}

/* What the forecast says of a recording that begins. */
static void print_warning(const cJSON *from)
{
    const char *warning = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(from, "warning"));
    if (warning && *warning)
        fprintf(stderr, "octctl: warning: %s\n", warning);
}

/* Takes the request over and returns the exit status. */
static int talk(struct control_call *call, cJSON *request)
{
    struct oct_error err = {0};
    cJSON *answer = NULL;
    char *answer_text = NULL;
    char *text = request ? cJSON_PrintUnformatted(request) : NULL;
    enum oct_err code = text ? exchange_patiently(call, text, &answer, &answer_text, &err)
                             : oct_fail(&err, OCT_E_NO_MEMORY, "out of memory");
    if (!code && call->json)
        printf("%s\n", answer_text);
    if (!code && !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "ok"))) {
        const cJSON *why = cJSON_GetObjectItemCaseSensitive(answer, "error");
        code = oct_fail(&err, OCT_E_STATE, "%s: %s", call->name,
                        cJSON_IsString(why) ? why->valuestring : "refused without a reason");
    }
    call->pending = !code && is_true(answer, "pending");
    if (!code)
        print_warning(answer);
    if (!code && !call->json)
        print_answer(call, answer);
    if (code)
        fprintf(stderr, "octctl: %s\n", err.text);
    cJSON_free(text);
    free(answer_text);
    cJSON_Delete(answer);
    cJSON_Delete(request);
    return oct_exit_status(code);
}

/* The exit status of what was granted, once nothing is under way. */
static int what_became(const struct control_call *call, const cJSON *status)
{
    const cJSON *record = cJSON_GetObjectItemCaseSensitive(status, "record");
    const char *phase = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(status, "phase"));
    const char *why = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(status, "last_error"));
    bool starts =
        call->n_plain > 0 ? strcmp(call->plain[0], "start") == 0 : strcmp(call->name, "start") == 0;
    bool recording = strcmp(call->name, "record") == 0;
    bool failed = phase && strcmp(phase, "error") == 0;
    bool is_so =
        recording ? is_true(record, "active") : phase && strcmp(phase, "idle") != 0 && !failed;
    if (starts && recording && is_so)
        print_warning(cJSON_GetObjectItemCaseSensitive(status, "forecast"));
    if (starts ? !phase || is_so : recording || !failed)
        return 0;
    fprintf(stderr, "octctl: %s: %s\n", call->name,
            why && *why ? why : "the daemon failed at it: see octctl status");
    return 1;
}

/* The daemon answers within 100 ms and may not be done by then. Waits until nothing is under way
 * and, if `closed`, until no recording is active: who asked for a stop wants the file. A daemon
 * that is gone is as good. */
static int wait_until_done(const struct control_call *call, bool closed)
{
    struct oct_patience patience = {.command = call->name, .wait_s = call->wait_s};
    for (;;) {
        struct oct_error err;
        cJSON *answer = NULL;
        char *text = NULL;
        enum oct_err e = exchange(call, "{\"cmd\":\"status\"}", &answer, &text, &err);
        const cJSON *record = e ? NULL : cJSON_GetObjectItemCaseSensitive(answer, "record");
        bool wait = !e && (is_true(answer, "pending") || (closed && is_true(record, "active")));
        int status = wait || e ? 0 : what_became(call, answer);
        bool too_long = wait && !may_wait(&patience, call, answer, &err);
        free(text);
        cJSON_Delete(answer);
        if (too_long)
            fprintf(stderr, "octctl: %s\n", err.text);
        if (!wait || too_long)
            return too_long ? 1 : status;
        pause_shortly();
    }
}

/* Whether a daemon answers; its process, if it runs on this machine, 0 if that is not known. */
static bool find_process(const struct control_call *call, pid_t *process)
{
    struct oct_error err;
    cJSON *answer = NULL;
    char *text = NULL, path[64], name[16] = "";
    double pid = 0;
    bool here = strncmp(call->endpoint, "ipc://", 6) == 0 ||
                strncmp(call->endpoint, "tcp://127.", 10) == 0 ||
                strncmp(call->endpoint, "tcp://localhost:", 16) == 0 ||
                strncmp(call->endpoint, "tcp://[::1]:", 12) == 0;
    bool answers = !exchange(call, "{\"cmd\":\"status\"}", &answer, &text, &err);
    *process = 0;
    if (answers && here)
        pid = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(answer, "pid"));
    free(text);
    cJSON_Delete(answer);
    if (!(pid > 1 && pid < 1e9))
        return answers;
    /* Through a tunnel, or from within a container, the number is another process's. */
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

/* A process that is gone, or a zombie that only waits for its parent. */
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
    return !name_end || strncmp(name_end, ") Z", 3) == 0 || strncmp(name_end, ") X", 3) == 0;
}

/* Without a process to look at: nobody answers, twice in a row, for a second each. */
static bool is_silent(const struct control_call *call)
{
    struct control_call brief = *call;
    brief.timeout_s = 1;
    for (int n = 0; n < 2; n++) {
        struct oct_error err;
        cJSON *answer = NULL;
        char *text = NULL;
        enum oct_err e = exchange(&brief, "{\"cmd\":\"status\"}", &answer, &text, &err);
        free(text);
        cJSON_Delete(answer);
        if (!e)
            return false;
    }
    return true;
}

static int wait_until_ended(const struct control_call *call, pid_t pid, double most_s)
{
    for (double end_s = now_s() + most_s; now_s() < end_s; pause_shortly())
        if (pid ? has_ended(pid) : is_silent(call))
            return 0;
    fprintf(stderr, "octctl: shutdown: octd has not ended after %g s (%s): see its log\n", most_s,
            call->wait_s > 0 ? "--wait" : "daemon.drain_s and " END_TEXT " s");
    return 1;
}

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

/* The same for the last seconds; prints what became of them, unless the answer was JSON. */
static int wait_until_saved(const struct control_call *call)
{
    struct oct_patience patience = {.command = call->name, .wait_s = call->wait_s};
    for (bool saving = true; saving; pause_shortly()) {
        struct oct_error err;
        cJSON *answer = NULL;
        char *text = NULL;
        enum oct_err e = exchange(call, "{\"cmd\":\"status\"}", &answer, &text, &err);
        const cJSON *last = e ? NULL : cJSON_GetObjectItemCaseSensitive(answer, "record_last");
        const char *why = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(last, "error"));
        const char *file = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(last, "file"));
        saving = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(last, "saving"));
        if (e == OCT_OK && !saving && (!why || *why))
            e = oct_fail(&err, OCT_E_STATE, "record last: %s", why ? why : "it is not known");
        if (e == OCT_OK && saving && !may_wait(&patience, call, answer, &err))
            e = OCT_E_STATE;
        if (e == OCT_OK && !saving)
            warn_of_lost(last);
        if (e == OCT_OK && !saving && !call->json)
            printf("%s\n", file ? file : "");
        free(text);
        cJSON_Delete(answer);
        if (e) {
            fprintf(stderr, "octctl: %s\n", err.text);
            return 1;
        }
    }
    return 0;
}

enum oct_err oct_control_status(const struct oct_config *config, const char *endpoint,
                                double timeout_s, cJSON **status, struct oct_error *err)
{
    const struct control_call call = {
        .name = "status",
        .endpoint = endpoint ? endpoint : config->control.endpoint,
        .keys = {config->security.client_key, config->security.server_public},
        .timeout_s = timeout_s,
    };
    char *text = NULL;
    *status = NULL;
    enum oct_err code = exchange(&call, "{\"cmd\":\"status\"}", status, &text, err);
    if (!code && !is_true(*status, "ok"))
        code = oct_fail(err, OCT_E_FORMAT, "%s: the answer is no status", call.endpoint);
    if (code) {
        cJSON_Delete(*status);
        *status = NULL;
    }
    free(text);
    return code;
}

static cJSON *request_for(const char *command)
{
    cJSON *request = cJSON_CreateObject();
    if (request && !cJSON_AddStringToObject(request, "cmd", command)) {
        cJSON_Delete(request);
        return NULL;
    }
    return request;
}

static int plain_command(const struct oct_config *config, int argc, char **argv)
{
    struct control_call call;
    int status = read_options(&call, config, argc, argv, 0, 0);
    return status ? status : talk(&call, request_for(call.name));
}

/* ---- the commands ---- */

int oct_cmd_status(struct oct_config *config, int argc, char **argv)
{
    return plain_command(config, argc, argv);
}

int oct_cmd_start(struct oct_config *config, int argc, char **argv)
{
    struct control_call call;
    int status = read_options(&call, config, argc, argv, 0, 0);
    if (status || (status = talk(&call, request_for(call.name))))
        return status;
    return say_ok(&call, call.no_wait || !call.pending ? 0 : wait_until_done(&call, false));
}

int oct_cmd_stop(struct oct_config *config, int argc, char **argv)
{
    struct control_call call;
    int status = read_options(&call, config, argc, argv, 0, 0);
    if (status || (status = talk(&call, request_for(call.name))))
        return status;
    return say_ok(&call, call.no_wait ? 0 : wait_until_done(&call, true));
}

int oct_cmd_shutdown(struct oct_config *config, int argc, char **argv)
{
    struct control_call call;
    int status = read_options(&call, config, argc, argv, 0, 0);
    if (status)
        return status;
    /* Asked before: afterwards it may not answer any more. */
    pid_t pid;
    if (call.no_wait || !find_process(&call, &pid))
        return say_ok(&call, talk(&call, request_for(call.name)));
    double most_s = call.wait_s > 0 ? call.wait_s : most_draining_s(&call);
    if ((status = talk(&call, request_for(call.name))))
        return status;
    return say_ok(&call, wait_until_ended(&call, pid, most_s));
}

int oct_cmd_record(struct oct_config *config, int argc, char **argv)
{
    struct control_call call;
    int status = read_options(&call, config, argc, argv, 1, 2);
    if (status)
        return status;
    bool last = strcmp(call.plain[0], "last") == 0;
    if (!last && strcmp(call.plain[0], "start") != 0 && strcmp(call.plain[0], "stop") != 0)
        return oct_command_misuse(argv[0], "'%s' must be start, stop or last", call.plain[0]);
    if (!last && call.n_plain > 1)
        return oct_command_misuse(argv[0], "unexpected argument '%s'", call.plain[1]);
    cJSON *request = request_for("record");
    cJSON_AddStringToObject(request, "action", call.plain[0]);
    if (call.n_plain > 1)
        cJSON_AddStringToObject(request, "name", call.plain[1]);
    status = talk(&call, request);
    if (status || last)
        return status ? status : wait_until_saved(&call);
    bool closed = strcmp(call.plain[0], "stop") == 0;
    bool wait = !call.no_wait && (closed || call.pending);
    return say_ok(&call, wait ? wait_until_done(&call, closed) : 0);
}

int oct_cmd_set(struct oct_config *config, int argc, char **argv)
{
    struct control_call call;
    int status = read_options(&call, config, argc, argv, 2, 2);
    if (status)
        return status;
    cJSON *request = request_for("set");
    cJSON_AddStringToObject(request, "key", call.plain[0]);
    cJSON_AddStringToObject(request, "value", call.plain[1]);
    return say_ok(&call, talk(&call, request));
}

int oct_cmd_get(struct oct_config *config, int argc, char **argv)
{
    struct control_call call;
    int status = read_options(&call, config, argc, argv, 1, 1);
    if (status)
        return status;
    cJSON *request = request_for("get");
    cJSON_AddStringToObject(request, "key", call.plain[0]);
    return talk(&call, request);
}
