/* status, start, stop, record, set, get, shutdown: one JSON object each way over ZeroMQ (contract
 * section 5, control). */
#include "pipeline/curve.h"
#include "tools/commands.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

#define MOST_ANSWER_BYTES (1 << 20)
#define MOST_TIMEOUT_S 86400.0
#define MOST_CLOSING_S 60.0

struct control_call {
    const char *name; /* of the command, for messages */
    const char *endpoint;
    struct oct_curve_files keys;
    double timeout_s;
    bool json;
    const char *plain[2]; /* arguments that are no options */
    int n_plain;
    bool pending; /* the daemon has not done yet what it granted */
};

/* ---- the command line ---- */

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
        } else if (oct_option_value(argc, argv, &i, "--timeout", &value)) {
            if (!oct_option_double(value, &call->timeout_s) || call->timeout_s <= 0 ||
                call->timeout_s > MOST_TIMEOUT_S)
                return oct_command_misuse(argv[0], "--timeout needs a number of seconds above 0");
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
    return 0;
}

/* ---- the exchange ---- */

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

/* ---- showing a status ---- */

/* 1234567 as "1,234,567"; fractions keep three digits. */
static void print_number(double value)
{
    char digits[64];
    if (value != floor(value) || fabs(value) >= 1e18) {
        printf("%.6g", value);
        return;
    }
    int n = snprintf(digits, sizeof(digits), "%.0f", fabs(value));
    if (value < 0)
        putchar('-');
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            putchar(',');
        putchar(digits[i]);
    }
}

static void print_bytes(double bytes)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
    size_t unit = 0;
    while (bytes >= 1000 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        bytes /= 1000;
        unit++;
    }
    printf(unit ? "%.2f %s" : "%.0f %s", bytes, units[unit]);
}

static void print_seconds(double seconds)
{
    if (seconds < 60 || seconds > 1e12) {
        printf("%.1f s", seconds);
        return;
    }
    uint64_t s = (uint64_t)seconds;
    if (s >= 86400)
        printf("%" PRIu64 " d ", s / 86400);
    if (s >= 3600)
        printf("%" PRIu64 " h ", s / 3600 % 24);
    printf("%" PRIu64 " min %" PRIu64 " s", s / 60 % 60, s % 60);
}

static void print_microseconds(double us)
{
    if (us < 1000)
        printf("%.0f us", us);
    else if (us < 1e6)
        printf("%.2f ms", us / 1e3);
    else
        printf("%.2f s", us / 1e6);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static void print_nested(const char *key, const cJSON *object);

/* The unit follows from the end of the key, as everywhere in octd. */
static void print_value(const char *key, const cJSON *value)
{
    if (cJSON_IsString(value))
        printf("%s", value->valuestring[0] ? value->valuestring : "-");
    else if (cJSON_IsBool(value))
        printf("%s", cJSON_IsTrue(value) ? "yes" : "no");
    else if (cJSON_IsObject(value))
        print_nested(key, value);
    else if (!cJSON_IsNumber(value))
        printf("-");
    else if (ends_with(key, "bytes") || strncmp(key, "bytes_", 6) == 0)
        print_bytes(value->valuedouble);
    else if (ends_with(key, "_us"))
        print_microseconds(value->valuedouble);
    else if (ends_with(key, "_s"))
        print_seconds(value->valuedouble);
    else
        print_number(value->valuedouble);
}

/* "messages_bad" and its like: counts by reason. */
static bool counts_by_reason(const char *key)
{
    return strcmp(key, "dropped") == 0 || strncmp(key, "messages_", 9) == 0 ||
           strncmp(key, "bscans_", 7) == 0 || strncmp(key, "lines_", 6) == 0 ||
           strcmp(key, "refused") == 0;
}

static void print_nested(const char *key, const cJSON *object);

static void print_member(const char *key, const cJSON *member)
{
    const char *name = member->string ? member->string : "";
    printf("%s ", name);
    if (cJSON_IsObject(member)) /* cJSON bounds how deep they lie */
        print_nested(name, member);
    else
        print_value(ends_with(key, "_us") || !name[0] ? key : name, member);
}

/* Counts by reason: the sum, then the reasons that occurred. Anything else: name and value. */
static void print_nested(const char *key, const cJSON *object) /* NOLINT(misc-no-recursion) */
{
    bool counts = counts_by_reason(key);
    double sum = 0;
    const cJSON *member;
    cJSON_ArrayForEach(member, object)
    {
        counts = counts && cJSON_IsNumber(member);
        sum += cJSON_IsNumber(member) ? member->valuedouble : 0;
    }
    if (counts)
        print_number(sum);
    const char *before = counts ? " (" : "";
    cJSON_ArrayForEach(member, object)
    {
        if (counts && member->valuedouble == 0)
            continue;
        printf("%s", before);
        print_member(key, member);
        before = ", ";
    }
    if (counts && sum != 0)
        putchar(')');
}

static void print_status(const cJSON *answer)
{
    const cJSON *member;
    cJSON_ArrayForEach(member, answer)
    {
        if (!member->string || strcmp(member->string, "ok") == 0)
            continue;
        char label[32];
        snprintf(label, sizeof(label), "%s", member->string);
        for (char *c = label; *c; c++)
            *c = *c == '_' ? ' ' : *c;
        /* The value shows its unit itself. */
        if (ends_with(label, " us"))
            label[strlen(label) - 3] = '\0';
        else if (ends_with(label, " s"))
            label[strlen(label) - 2] = '\0';
        printf("%-20s ", label);
        if (cJSON_IsObject(member) || cJSON_IsArray(member))
            print_nested(member->string, member);
        else
            print_value(member->string, member);
        putchar('\n');
    }
}

static void print_answer(const struct control_call *call, const cJSON *answer)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(answer, "value");
    if (strcmp(call->name, "status") == 0) {
        print_status(answer);
    } else if (strcmp(call->name, "get") == 0 && cJSON_IsString(value)) {
        printf("%s\n", value->valuestring);
    } else if (strcmp(call->name, "get") == 0 && value) {
        char *text = cJSON_PrintUnformatted(value);
        printf("%s\n", text ? text : "");
        cJSON_free(text);
    } else if (call->n_plain == 0 || strcmp(call->plain[0], "last") != 0) { /* its file follows */
        printf("ok\n");
    }
}

/* ---- the commands ---- */

static bool is_true(const cJSON *object, const char *key)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static void pause_shortly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
}

/* Asks the same again as long as the daemon says that it is busy with starting or draining. */
static enum oct_err exchange_patiently(const struct control_call *call, const char *request,
                                       cJSON **answer, char **text, struct oct_error *err)
{
    for (double waited_s = 0;; waited_s += 0.02) {
        enum oct_err code = exchange(call, request, answer, text, err);
        if (code || !is_true(*answer, "busy") || waited_s >= MOST_CLOSING_S)
            return code;
        cJSON_Delete(*answer);
        free(*text);
        *answer = NULL;
        *text = NULL;
        pause_shortly();
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

/* The exit status of a start or record start that was granted, once nothing is under way. */
static int what_became(const struct control_call *call, const cJSON *status)
{
    const cJSON *record = cJSON_GetObjectItemCaseSensitive(status, "record");
    const char *phase = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(status, "phase"));
    const char *why = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(status, "last_error"));
    bool starts =
        call->n_plain > 0 ? strcmp(call->plain[0], "start") == 0 : strcmp(call->name, "start") == 0;
    bool recording = strcmp(call->name, "record") == 0;
    bool is_so = recording ? is_true(record, "active")
                           : phase && strcmp(phase, "idle") != 0 && strcmp(phase, "error") != 0;
    if (starts && recording && is_so)
        print_warning(cJSON_GetObjectItemCaseSensitive(status, "forecast"));
    if (!starts || !phase || is_so)
        return 0;
    fprintf(stderr, "octctl: %s: %s\n", call->name,
            why && *why ? why : "the daemon did not start: see octctl status");
    return 1;
}

/* The daemon answers within 100 ms and may not be done by then. Waits until nothing is under way
 * and, if `closed`, until no recording is active: who asked for a stop wants the file. A daemon
 * that is gone is as good. */
static int wait_until_done(const struct control_call *call, bool closed)
{
    for (double waited_s = 0; waited_s < MOST_CLOSING_S; waited_s += 0.02) {
        struct oct_error err;
        cJSON *answer = NULL;
        char *text = NULL;
        enum oct_err e = exchange(call, "{\"cmd\":\"status\"}", &answer, &text, &err);
        const cJSON *record = e ? NULL : cJSON_GetObjectItemCaseSensitive(answer, "record");
        bool wait = !e && (is_true(answer, "pending") || (closed && is_true(record, "active")));
        int status = wait || e ? 0 : what_became(call, answer);
        free(text);
        cJSON_Delete(answer);
        if (!wait)
            return status;
        pause_shortly();
    }
    fprintf(stderr, "octctl: %s: still under way after %.0f s: see octctl status\n", call->name,
            MOST_CLOSING_S);
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
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    for (bool saving = true; saving; nanosleep(&pause, NULL)) {
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

int oct_cmd_status(struct oct_config *config, int argc, char **argv)
{
    return plain_command(config, argc, argv);
}

int oct_cmd_start(struct oct_config *config, int argc, char **argv)
{
    struct control_call call;
    int status = read_options(&call, config, argc, argv, 0, 0);
    if (!status)
        status = talk(&call, request_for(call.name));
    return status || !call.pending ? status : wait_until_done(&call, false);
}

int oct_cmd_stop(struct oct_config *config, int argc, char **argv)
{
    struct control_call call;
    int status = read_options(&call, config, argc, argv, 0, 0);
    if (!status)
        status = talk(&call, request_for(call.name));
    return status ? status : wait_until_done(&call, true);
}

int oct_cmd_shutdown(struct oct_config *config, int argc, char **argv)
{
    return plain_command(config, argc, argv);
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
    if (last)
        return status ? status : wait_until_saved(&call);
    bool closed = strcmp(call.plain[0], "stop") == 0;
    return status || !(closed || call.pending) ? status : wait_until_done(&call, closed);
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
    return talk(&call, request);
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
