#include "tools/control/control.h"

#include "pipeline/net/control_client.h"
#include "tools/alloc.h"

#include <math.h>
#include <stdlib.h>

struct oct_control_link {
    struct oct_control_client *client;
    const char *endpoint; /* of the configuration, or of the command line */
    double timeout_s;
};

enum oct_err oct_control_open(struct oct_control_link **control, const struct oct_config *config,
                              const char *endpoint, double timeout_s, struct oct_error *err)
{
    const struct oct_control_client_setup setup = {
        .endpoint = endpoint ? endpoint : config->control.endpoint,
        .keys = {config->security.client_key, config->security.server_public},
    };
    *control = NULL;
    struct oct_control_link *c = oct_alloc(1, sizeof(*c));
    c->endpoint = setup.endpoint;
    c->timeout_s = timeout_s;
    enum oct_err code = oct_control_client_create(&c->client, &setup, err);
    if (code)
        oct_control_close(c);
    else
        *control = c;
    return code;
}

const char *oct_control_endpoint(const struct oct_control_link *control)
{
    return control->endpoint;
}

void oct_control_close(struct oct_control_link *control)
{
    if (!control)
        return;
    oct_control_client_destroy(control->client);
    free(control);
}

/* Replaces control characters: no answer may steer the terminal it is printed on. cJSON bounds the
 * depth of nesting. */
static void make_printable(cJSON *item) /* NOLINT(misc-no-recursion) */
{
    char *texts[] = {item->string, item->valuestring};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        for (char *c = texts[i]; c && *c; c++)
            *c = (unsigned char)*c < ' ' || *c == 127 ? '?' : *c;
    cJSON *child;
    cJSON_ArrayForEach(child, item) make_printable(child);
}

/* The object that the text is; NULL: it is none. */
static cJSON *read_object(const char *text, size_t n_bytes)
{
    cJSON *object = cJSON_ParseWithLength(text, n_bytes);
    if (object && cJSON_IsObject(object)) {
        make_printable(object);
        return object;
    }
    cJSON_Delete(object);
    return NULL;
}

static enum oct_err send_request(struct oct_control_link *c, const char *request, double timeout_s,
                                 cJSON **answer, char **text, struct oct_error *err)
{
    size_t n_bytes = 0;
    char *reply;
    enum oct_err code = oct_control_client_ask(c->client, request, (unsigned)ceil(timeout_s * 1000),
                                               &reply, &n_bytes, err);
    *answer = code ? NULL : read_object(reply, n_bytes);
    if (!code && !*answer)
        code = oct_fail(err, OCT_E_FORMAT,
                        "%s: the answer is no JSON object: is that really octd's control endpoint?",
                        c->endpoint);
    if (code || !text) {
        free(reply);
        reply = NULL;
    }
    if (text)
        *text = reply;
    return code;
}

enum oct_err oct_control_ask(struct oct_control_link *c, const char *request, cJSON **answer,
                             char **text, struct oct_error *err)
{
    return send_request(c, request, c->timeout_s, answer, text, err);
}

enum oct_err oct_control_ask_briefly(struct oct_control_link *c, const char *request, double most_s,
                                     cJSON **answer, struct oct_error *err)
{
    return send_request(c, request, fmin(c->timeout_s, most_s), answer, NULL, err);
}

enum oct_err oct_control_status(struct oct_control_link *c, cJSON **status, struct oct_error *err)
{
    return oct_control_ask(c, "{\"cmd\":\"status\"}", status, NULL, err);
}
