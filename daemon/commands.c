/* The control commands: from a request's bytes to a reply's text. */
#include "daemon/control.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

static char *print(cJSON *reply)
{
    char *text = reply ? cJSON_PrintUnformatted(reply) : NULL;
    cJSON_Delete(reply);
    return text;
}

static char *refusal(const char *why)
{
    cJSON *reply = cJSON_CreateObject();
    cJSON_AddBoolToObject(reply, "ok", false);
    cJSON_AddStringToObject(reply, "error", why);
    return print(reply);
}

static cJSON *reply_done(struct oct_daemon *daemon)
{
    cJSON *reply = cJSON_CreateObject();
    cJSON_AddBoolToObject(reply, "ok", true);
    cJSON_AddStringToObject(reply, "state", oct_state_names[oct_daemon_state(daemon)]);
    return reply;
}

static char *done(struct oct_daemon *daemon)
{
    return print(reply_done(daemon));
}

static char *status(struct oct_daemon *daemon, const cJSON *request, struct oct_error *err)
{
    (void)request;
    oct_daemon_look_around(daemon);
    char *text = oct_daemon_status(daemon);
    if (!text)
        oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the status");
    return text;
}

static char *start(struct oct_daemon *daemon, const cJSON *request, struct oct_error *err)
{
    (void)request;
    return oct_daemon_start(daemon, err) ? NULL : done(daemon);
}

static char *stop(struct oct_daemon *daemon, const cJSON *request, struct oct_error *err)
{
    (void)request;
    return oct_daemon_stop(daemon, err) ? NULL : done(daemon);
}

/* A member that must be a string; NULL and a filled err otherwise. */
static const char *text_of(const cJSON *request, const char *key, struct oct_error *err)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(request, key));
    if (!text)
        oct_fail(err, OCT_E_ARG, "the field \"%s\" is missing or is no string", key);
    return text;
}

static char *record(struct oct_daemon *daemon, const cJSON *request, struct oct_error *err)
{
    const char *action = text_of(request, "action", err);
    if (!action)
        return NULL;
    bool begin = strcmp(action, "start") == 0;
    if (!begin && strcmp(action, "stop") != 0) {
        oct_fail(err, OCT_E_ARG, "the action '%.40s' is unknown: use start or stop", action);
        return NULL;
    }
    if (oct_daemon_record(daemon, begin, err))
        return NULL;
    cJSON *reply = reply_done(daemon);
    if (begin && daemon->outlook.warning[0])
        cJSON_AddStringToObject(reply, "warning", daemon->outlook.warning);
    return print(reply);
}

/* Values come as strings, or as JSON numbers and booleans, which is what people write. */
static const char *value_of(const cJSON *request, char *buffer, size_t bytes, struct oct_error *err)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(request, "value");
    if (cJSON_IsString(value))
        return value->valuestring;
    if (cJSON_IsBool(value))
        return cJSON_IsTrue(value) ? "yes" : "no";
    if (cJSON_IsNumber(value)) {
        snprintf(buffer, bytes, "%.17g", value->valuedouble);
        return buffer;
    }
    oct_fail(err, OCT_E_ARG, "the field \"value\" is missing or is no string, number or boolean");
    return NULL;
}

static char *set(struct oct_daemon *daemon, const cJSON *request, struct oct_error *err)
{
    char buffer[40];
    const char *key = text_of(request, "key", err);
    const char *value = key ? value_of(request, buffer, sizeof(buffer), err) : NULL;
    if (!value || oct_daemon_set(daemon, key, value, err))
        return NULL;
    return done(daemon);
}

static char *get(struct oct_daemon *daemon, const cJSON *request, struct oct_error *err)
{
    char value[OCT_CONFIG_STRING_BYTES];
    const char *key = text_of(request, "key", err);
    if (!key || oct_config_get(&daemon->config, key, value, sizeof(value), err))
        return NULL;
    cJSON *reply = cJSON_CreateObject();
    cJSON_AddBoolToObject(reply, "ok", true);
    cJSON_AddStringToObject(reply, "key", key);
    cJSON_AddStringToObject(reply, "value", value);
    return print(reply);
}

static char *shut_down(struct oct_daemon *daemon, const cJSON *request, struct oct_error *err)
{
    (void)request;
    (void)err;
    daemon->want_shutdown = true;
    return done(daemon);
}

static const struct {
    const char *name;
    char *(*run)(struct oct_daemon *daemon, const cJSON *request, struct oct_error *err);
} commands[] = {
    {"status", status}, {"start", start}, {"stop", stop},          {"record", record},
    {"set", set},       {"get", get},     {"shutdown", shut_down},
};

static char *run_command(struct oct_daemon *daemon, const cJSON *request, struct oct_error *err)
{
    const char *name = text_of(request, "cmd", err);
    if (!name)
        return NULL;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strcmp(commands[i].name, name) == 0)
            return commands[i].run(daemon, request, err);
    oct_fail(err, OCT_E_ARG,
             "the command '%.40s' is unknown: use status, start, stop, record, set, get or "
             "shutdown",
             name);
    return NULL;
}

char *oct_control_answer(struct oct_daemon *daemon, const char *bytes, size_t n_bytes)
{
    struct oct_error err = {.text = "the request failed"};
    const char *end = NULL;
    char *reply = NULL;
    /* A zero byte would let the text after it pass unseen. */
    cJSON *request =
        memchr(bytes, 0, n_bytes) ? NULL : cJSON_ParseWithLengthOpts(bytes, n_bytes, &end, false);
    while (request && end < bytes + n_bytes && strchr(" \t\r\n", *end))
        end++;
    if (!request || end != bytes + n_bytes)
        oct_fail(&err, OCT_E_FORMAT, "the request is not one JSON object");
    else if (!cJSON_IsObject(request))
        oct_fail(&err, OCT_E_FORMAT, "the request is not a JSON object");
    else
        reply = run_command(daemon, request, &err);
    cJSON_Delete(request);
    return reply ? reply : refusal(err.text);
}
