/* status, start, stop, record, rescan, set, get, shutdown: one JSON object each way over ZeroMQ
 * (contract section 5, control). */
#include "tools/commands.h"
#include "tools/control/status_table.h"
#include "tools/control/wait.h"

#include <cjson/cJSON.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_TIMEOUT_S 86400.0

struct call {
    const char *name; /* of the command, for messages */
    const char *endpoint;
    double timeout_s; /* without an answer */
    double wait_s;
    bool json, no_wait, all;
    uint64_t volumes; /* of `record start` and `rescan`; UINT64_MAX: not said */
    char **plain;     /* [n_plain] arguments that are no options */
    int n_plain;
    struct oct_control_link *control;
    bool pending; /* the daemon granted the request and still works on it */
    bool is_said; /* its effect is, in other words than "ok" */
};

/* clang-format off */
#define ANSWER_OPTIONS \
    {"--json", NULL, "print the daemon's answer as it came", OCT_OPTION_FLAG, \
     .at = offsetof(struct call, json)}, \
    {"--timeout", "S", "wait at most S seconds for the answer", OCT_OPTION_NUMBER, \
     .at = offsetof(struct call, timeout_s), .least = OCT_OPTION_ABOVE_0, .most = MOST_TIMEOUT_S, \
     .standard = "5"}, \
    {"--wait", "S", "and for what it grants while nothing gets on (daemon.drain_s + 5)", \
     OCT_OPTION_NUMBER, .at = offsetof(struct call, wait_s), .least = OCT_OPTION_ABOVE_0, \
     .most = MOST_TIMEOUT_S}, \
    {"--endpoint", "E", "the daemon's control.endpoint", OCT_OPTION_TEXT, \
     .at = offsetof(struct call, endpoint)}, \
    {"--no-wait", NULL, "return when the daemon has granted it, not when it is done", \
     OCT_OPTION_FLAG, .at = offsetof(struct call, no_wait)}, \
    {NULL}
/* clang-format on */

static const struct oct_option status_options[] = {
    {"--all", NULL, "print every counter and setting below the summary", OCT_OPTION_FLAG,
     .at = offsetof(struct call, all)},
    ANSWER_OPTIONS,
};

static const struct oct_option record_options[] = {
    {"--volumes", "N", "end after N volumes: record start (record.volumes), rescan (0); 0: go on",
     OCT_OPTION_COUNT, .at = offsetof(struct call, volumes), .most = OCT_MOST_VOLUMES},
    ANSWER_OPTIONS,
};

/* ---- the command line ---- */

/* JSON is UTF-8: of other bytes the daemon would quote a text that the user never wrote. */
static int refuse_encoding(const struct call *call)
{
    struct oct_error err;
    const char *bad = NULL;
    int i = 0;
    while (i < call->n_plain && !(bad = oct_param_bad_encoding(call->plain[i])))
        i++;
    if (!bad)
        return 0;
    oct_fail(&err, OCT_E_CONFIG, "%.60s%s'%.60s' %s", i ? call->plain[0] : "", i ? ": " : "",
             call->plain[i], bad);
    return oct_command_fail(call->name, &err);
}

/* Fills *call and connects. Returns 0 or, once it has said why, the exit status. */
static int open_call(struct call *call, const struct oct_command *command,
                     const struct oct_config *config, int argc, char **argv)
{
    struct oct_error err;
    *call = (struct call){.name = command->name, .volumes = UINT64_MAX};
    int status = oct_options_read(command, call, &argc, argv);
    call->plain = argv + 1;
    call->n_plain = argc - 1;
    if (status || (status = refuse_encoding(call)))
        return status;
    enum oct_err code =
        oct_control_open(&call->control, config, call->endpoint, call->timeout_s, &err);
    if (code)
        fprintf(stderr, "octctl: %s\n", err.text);
    return oct_exit_status(code);
}

static struct oct_control_wait wait_of(const struct call *call)
{
    return (struct oct_control_wait){
        .control = call->control,
        .command = call->name,
        .action = call->n_plain > 0 ? call->plain[0] : NULL,
        .wait_s = call->wait_s,
    };
}

/* ---- a request and its answer ---- */

static void print_answer(const struct call *call, const cJSON *answer)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(answer, "value");
    if (strcmp(call->name, "status") == 0) {
        oct_status_table_print(answer, call->all);
    } else if (strcmp(call->name, "get") == 0 && cJSON_IsString(value)) {
        oct_command_put_name(stdout, value->valuestring);
        putchar('\n');
    } else if (strcmp(call->name, "get") == 0 && value) {
        char *text = cJSON_PrintUnformatted(value);
        printf("%s\n", text ? text : "");
        cJSON_free(text);
    }
}

/* {"cmd": "scan", "to": name, "set": {key: value ...}}: the plain argument without '=' is the
 * name; none at all is the scan as configured. */
static cJSON *scan_request_of(const struct call *call)
{
    cJSON *request = cJSON_CreateObject(), *set = NULL;
    const char *to = call->n_plain ? NULL : "";
    cJSON_AddStringToObject(request, "cmd", "scan");
    for (int i = 0; i < call->n_plain; i++) {
        char *value = strchr(call->plain[i], '=');
        if (!value) {
            to = call->plain[i];
            continue;
        }
        set = set ? set : cJSON_AddObjectToObject(request, "set");
        *value = '\0';
        const char *key = call->plain[i];
        cJSON_AddStringToObject(set, strncmp(key, "scan.", 5) == 0 ? key + 5 : key, value + 1);
        *value = '=';
    }
    if (to)
        cJSON_AddStringToObject(request, "to", to);
    return request;
}

static cJSON *plain_request_of(const struct call *call, const char *const keys[2])
{
    cJSON *request = cJSON_CreateObject();
    cJSON_AddStringToObject(request, "cmd", call->name);
    for (int i = 0; i < call->n_plain; i++)
        cJSON_AddStringToObject(request, keys[i], call->plain[i]);
    return request;
}

/* {"cmd": command, key: value ...}. keys: NULL: of a change of the scan. */
static char *request_of(const struct call *call, const char *const keys[2])
{
    cJSON *request = keys ? plain_request_of(call, keys) : scan_request_of(call);
    if (call->volumes != UINT64_MAX)
        cJSON_AddNumberToObject(request, "volumes", (double)call->volumes);
    char *text = cJSON_PrintUnformatted(request);
    cJSON_Delete(request);
    return text;
}

/* `keys`: what the plain arguments are called in the request. Returns the exit status. */
static int talk(struct call *call, const char *const keys[2])
{
    const struct oct_control_wait wait = wait_of(call);
    struct oct_error err = {0};
    cJSON *answer = NULL;
    char *answer_text = NULL, *text = request_of(call, keys);
    enum oct_err code = oct_control_ask_patiently(&wait, text, &answer, &answer_text, &err);
    if (!code && call->json)
        printf("%s\n", answer_text);
    if (!code && !oct_json_is_true(answer, "ok")) {
        const char *why = oct_json_text(answer, "error");
        code = oct_fail(&err, OCT_E_STATE, "%s: %s", call->name,
                        why ? why : "refused without a reason");
    }
    call->pending = !code && oct_json_is_true(answer, "pending");
    if (!code)
        oct_control_print_warning(answer);
    if (!code && !call->json)
        print_answer(call, answer);
    if (code)
        fprintf(stderr, "octctl: %s\n", err.text);
    cJSON_free(text);
    free(answer_text);
    cJSON_Delete(answer);
    return oct_exit_status(code);
}

/* ---- the commands ---- */

static int end_daemon(struct call *call)
{
    const struct oct_control_wait wait = wait_of(call);
    /* Find the process before the request: the daemon may not answer after it. */
    pid_t process;
    const bool waits = !call->no_wait && oct_control_find_process(&wait, &process);
    const double most_s = waits ? oct_control_most_ending_s(&wait) : 0;
    static const char *const keys[2] = {NULL};
    const int status = talk(call, keys);
    return !status && waits ? oct_control_wait_ended(&wait, process, most_s) : status;
}

static int record(struct call *call)
{
    static const char *const keys[2] = {"action", "name"};
    const bool last = strcmp(call->plain[0], "last") == 0;
    const bool stops = strcmp(call->plain[0], "stop") == 0;
    const struct oct_control_wait wait = wait_of(call);
    if (!last && !stops && strcmp(call->plain[0], "start") != 0)
        return oct_command_misuse(call->name, "'%s' must be start, stop or last", call->plain[0]);
    if (!last && call->n_plain > 1)
        return oct_command_misuse(call->name, "unexpected argument '%s'", call->plain[1]);
    if ((last || stops) && call->volumes != UINT64_MAX)
        return oct_command_misuse(call->name, "--volumes belongs to start");
    call->is_said = last;
    const int status = talk(call, keys);
    if (!status && last)
        return oct_control_wait_saved(&wait, !call->json);
    if (!status && !call->no_wait && (stops || call->pending))
        return oct_control_wait_done(&wait, stops);
    return status;
}

static int rescan(struct call *call)
{
    const struct oct_control_wait wait = wait_of(call);
    int n_names = 0;
    for (int i = 0; i < call->n_plain; i++)
        n_names += strchr(call->plain[i], '=') == NULL;
    if (n_names > 1)
        return oct_command_misuse(call->name, "one NAME of scan.choices at most");
    const int status = talk(call, NULL);
    if (status || !call->pending || call->no_wait)
        return status;
    return oct_control_wait_done(&wait, false);
}

/* status, start, stop, set, get. */
static int request(struct call *call)
{
    static const char *const keys[2] = {"key", "value"};
    const struct oct_control_wait wait = wait_of(call);
    const bool stops = strcmp(call->name, "stop") == 0;
    const int status = talk(call, keys);
    if (status || call->no_wait || !(stops || (call->pending && strcmp(call->name, "start") == 0)))
        return status;
    return oct_control_wait_done(&wait, stops);
}

static int run_request(struct oct_config *config, int argc, char **argv)
{
    static const struct oct_command *const all[] = {
        &oct_command_status, &oct_command_start, &oct_command_stop,     &oct_command_record,
        &oct_command_set,    &oct_command_get,   &oct_command_shutdown, &oct_command_rescan,
    };
    const struct oct_command *command = all[0];
    for (size_t i = 1; i < sizeof(all) / sizeof(all[0]); i++)
        command = strcmp(argv[0], all[i]->name) == 0 ? all[i] : command;
    struct call call;
    int status = open_call(&call, command, config, argc, argv);
    if (!status)
        status = command == &oct_command_record     ? record(&call)
                 : command == &oct_command_shutdown ? end_daemon(&call)
                 : command == &oct_command_rescan   ? rescan(&call)
                                                    : request(&call);
    oct_control_close(call.control);
    /* Scripts rely on "ok": it is printed once the command has taken effect, never before. */
    if (status == 0 && !call.json && !call.is_said && command != &oct_command_status &&
        command != &oct_command_get)
        printf("ok\n");
    return status;
}

const struct oct_command oct_command_status = {
    .name = "status",
    .usage = "",
    .help = "state and counters of the running daemon",
    .options = status_options,
    .run = run_request,
};

const struct oct_command oct_command_start = {
    .name = "start",
    .usage = "",
    .help = "accept lines",
    .options = record_options + 1,
    .run = run_request,
};

const struct oct_command oct_command_stop = {
    .name = "stop",
    .usage = "",
    .help = "accept no more lines",
    .options = record_options + 1,
    .run = run_request,
};

const struct oct_command oct_command_record = {
    .name = "record",
    .usage = "start|stop|last [NAME]",
    .help = "record volumes, stop, or save the last seconds",
    .options = record_options,
    .n_least = 1,
    .n_most = 2,
    .words = "start stop last",
    .too_few = "start, stop or last?",
    .run = run_request,
};

const struct oct_command oct_command_set = {
    .name = "set",
    .usage = "KEY VALUE",
    .help = "change a key of the running daemon",
    .options = record_options + 1,
    .n_least = 2,
    .n_most = 2,
    .words = OCT_WORDS_KEYS,
    .too_few = "a key and its value, as average.bscans 16",
    .run = run_request,
};

const struct oct_command oct_command_get = {
    .name = "get",
    .usage = "KEY",
    .help = "show a key of the running daemon",
    .options = record_options + 1,
    .n_least = 1,
    .n_most = 1,
    .words = OCT_WORDS_KEYS,
    .too_few = "which key?",
    .run = run_request,
};

const struct oct_command oct_command_rescan = {
    .name = "rescan",
    .usage = "[NAME] [KEY=VALUE...]",
    .help = "change the running scan: one of scan.choices, keys of [scan], or back",
    .options = record_options,
    .n_most = INT_MAX,
    .run = run_request,
};

const struct oct_command oct_command_shutdown = {
    .name = "shutdown",
    .usage = "",
    .help = "end the daemon",
    .options = record_options + 1,
    .run = run_request,
};
