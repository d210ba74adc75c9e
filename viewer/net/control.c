#include "viewer/net/control.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/condition.h"
#include "pipeline/base/thread.h"
#include "pipeline/net/control_client.h"
#include "viewer/model/words.h"

#include <cjson/cJSON.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ASK_EVERY_NS (OCT_NS_PER_S / 2)
#define ANSWER_MS 2000
#define DONE_NS (10 * OCT_NS_PER_S) /* what is granted and still not done by then counts as done */
#define ASK_PENDING_MS 50

struct oct_view_control {
    struct oct_control_client *client; /* the thread's; destroy ends what it asks */
    void (*notify)(void *context);
    void *notify_context;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards the rest */
    pthread_cond_t changed;
    bool ending;
    enum oct_view_wish wish; /* to be sent, or on its way */
    char wish_text[256];
    struct oct_view_answer answer;
    struct oct_view_daemon daemon;
};

/* ---- the thread ---- */

static void ask_status(struct oct_view_control *c)
{
    char *reply;
    size_t n_bytes;
    bool came = oct_control_client_ask(c->client, "{\"cmd\":\"status\"}", ANSWER_MS, &reply,
                                       &n_bytes, NULL) == OCT_OK;
    pthread_mutex_lock(&c->mutex);
    c->daemon.reachable = came && oct_view_daemon_read(&c->daemon, reply, n_bytes, NULL) == OCT_OK;
    if (c->daemon.reachable)
        c->daemon.answer_ns = oct_clock_ns();
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mutex);
    free(reply);
    if (c->notify)
        c->notify(c->notify_context);
}

/* The request as JSON, malloc'd by cJSON; NULL when out of memory. */
static char *request_of(enum oct_view_wish wish, const char *text)
{
    const struct oct_view_wish_row *row = &oct_view_wish_rows[wish];
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "cmd", row->cmd ? row->cmd : "set");
    if (!row->cmd) {
        cJSON_AddStringToObject(o, "key", row->key ? row->key : text);
        cJSON_AddStringToObject(o, "value",
                                row->key                   ? text
                                : wish == OCT_WISH_DISABLE ? "no"
                                                           : "yes");
    } else if (row->action) {
        cJSON_AddStringToObject(o, "action", row->action);
    } else if (row->with) {
        cJSON_AddItemToObject(o, row->with,
                              wish == OCT_WISH_SCAN ? cJSON_CreateString(text) : cJSON_Parse(text));
    }
    char *json = cJSON_PrintUnformatted(o);
    cJSON_Delete(o);
    return json;
}

/* True: granted, but not done yet. */
static bool read_answer(struct oct_view_answer *answer, const char *text, const char *reply,
                        size_t n_bytes)
{
    cJSON *o = cJSON_ParseWithLength(reply, n_bytes);
    const char *error = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "error"));
    answer->unanswered = false;
    answer->ok = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, "ok"));
    snprintf(answer->text, sizeof(answer->text), "%s",
             answer->ok ? text
             : error    ? error
                        : "the answer was no JSON of octd's: check control.endpoint");
    oct_view_letters_clean(answer->text);
    bool pending = answer->ok && cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, "pending"));
    cJSON_Delete(o);
    return pending;
}

/* octd looks at the disk before a recording begins, and its word comes before that is done: what
 * became of it is in the status. */
static void follow_wish(struct oct_view_control *c, struct oct_view_answer *answer)
{
    const uint64_t until_ns = oct_clock_ns() + DONE_NS;
    const struct oct_view_daemon *d = &c->daemon;
    const bool is_of_scan = answer->wish == OCT_WISH_SCAN || answer->wish == OCT_WISH_SCAN_KEYS;
    bool wait = true;
    while (wait) {
        nanosleep(&(struct timespec){.tv_nsec = ASK_PENDING_MS * 1000000L}, NULL);
        ask_status(c);
        pthread_mutex_lock(&c->mutex);
        wait = !c->ending && d->reachable && d->pending && oct_clock_ns() < until_ns;
        const char *why = NULL;
        if (!d->reachable)
            why = "no answer from octd";
        else if (!d->pending && answer->wish == OCT_WISH_RECORD && !d->record.active)
            why = d->last_error[0] ? d->last_error : "it did not begin";
        else if (!d->pending && is_of_scan && d->scans.refused[0])
            why = d->scans.refused;
        else if (!d->pending && answer->wish != OCT_WISH_STOP && strcmp(d->state, "error") == 0)
            why = d->last_error[0] ? d->last_error : "it did not start";
        if (why) {
            answer->ok = false;
            answer->unanswered = !d->reachable;
            snprintf(answer->text, sizeof(answer->text), "%s", why);
        }
        pthread_mutex_unlock(&c->mutex);
    }
}

static void send_wish(struct oct_view_control *c, enum oct_view_wish wish, const char *text)
{
    struct oct_view_answer answer = {.wish = wish, .unanswered = true};
    char *reply = NULL, *request = request_of(wish, text);
    size_t n_bytes;
    bool pending = false;
    if (request &&
        oct_control_client_ask(c->client, request, ANSWER_MS, &reply, &n_bytes, NULL) == OCT_OK)
        pending = read_answer(&answer, text, reply, n_bytes);
    else
        snprintf(answer.text, sizeof(answer.text), "no answer from octd");
    cJSON_free(request);
    free(reply);
    if (pending && (wish == OCT_WISH_RECORD || wish == OCT_WISH_STOP || wish == OCT_WISH_START ||
                    wish == OCT_WISH_SCAN || wish == OCT_WISH_SCAN_KEYS))
        follow_wish(c, &answer);
    pthread_mutex_lock(&c->mutex);
    c->wish = OCT_WISH_NONE;
    c->answer = answer;
    pthread_mutex_unlock(&c->mutex);
}

static void *run_control(void *context)
{
    struct oct_view_control *c = context;
    enum oct_view_wish wish = OCT_WISH_NONE;
    char text[sizeof(c->wish_text)] = "";
    bool ending = false;
    while (!ending) {
        if (wish != OCT_WISH_NONE)
            send_wish(c, wish, text);
        ask_status(c); /* after a wish at once: its effect shows */
        struct timespec until = oct_clock_deadline(ASK_EVERY_NS / 1000);
        pthread_mutex_lock(&c->mutex);
        while (!c->ending && c->wish == OCT_WISH_NONE &&
               oct_condition_wait_until(&c->changed, &c->mutex, &until))
            ;
        ending = c->ending;
        wish = c->wish;
        snprintf(text, sizeof(text), "%s", c->wish_text);
        pthread_mutex_unlock(&c->mutex);
    }
    return NULL;
}

void oct_view_endpoint_connectable(const char *endpoint, char *text, size_t text_bytes)
{
    static const char any[] = "tcp://*:";
    if (strncmp(endpoint, any, strlen(any)) == 0)
        snprintf(text, text_bytes, "tcp://127.0.0.1:%s", endpoint + strlen(any));
    else
        snprintf(text, text_bytes, "%s", endpoint);
}

/* ---- the caller's side ---- */

static void free_control(struct oct_view_control *c)
{
    oct_control_client_destroy(c->client);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->mutex);
    free(c);
}

enum oct_err oct_view_control_create(struct oct_view_control **control, const char *endpoint,
                                     const struct oct_curve_files *keys,
                                     void (*notify)(void *context), void *context,
                                     struct oct_error *err)
{
    char connectable[OCT_VIEW_ADDRESS_BYTES];
    const struct oct_control_client_setup setup = {
        .endpoint = connectable,
        .keys = keys ? *keys : (struct oct_curve_files){NULL, NULL},
        .prefers_ipv6 = true,
    };
    *control = NULL;
    struct oct_view_control *c = calloc(1, sizeof(*c));
    if (!c)
        return oct_fail(err, OCT_E_NO_MEMORY, "control: out of memory");
    c->notify = notify;
    c->notify_context = context;
    pthread_mutex_init(&c->mutex, NULL);
    oct_condition_init(&c->changed);
    oct_view_endpoint_connectable(endpoint, connectable, sizeof(connectable));
    enum oct_err code = oct_control_client_create(&c->client, &setup, err);
    if (!code)
        code = oct_thread_start(&c->thread, NULL, run_control, c, "control: cannot start a thread",
                                err);
    if (code) {
        free_control(c);
        return code;
    }
    *control = c;
    return OCT_OK;
}

bool oct_view_control_ask(struct oct_view_control *c, enum oct_view_wish wish, const char *text)
{
    pthread_mutex_lock(&c->mutex);
    bool accepted = c->wish == OCT_WISH_NONE;
    if (accepted) {
        c->wish = wish;
        snprintf(c->wish_text, sizeof(c->wish_text), "%s", text);
        pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->mutex);
    return accepted;
}

void oct_view_control_take(struct oct_view_control *c, struct oct_view_daemon *daemon,
                           struct oct_view_answer *answer)
{
    pthread_mutex_lock(&c->mutex);
    *daemon = c->daemon;
    *answer = c->answer;
    c->answer.wish = OCT_WISH_NONE;
    pthread_mutex_unlock(&c->mutex);
}

bool oct_view_control_wait(struct oct_view_control *c, uint64_t timeout_ns)
{
    struct timespec until = oct_clock_deadline(timeout_ns / 1000);
    bool in_time = true;
    pthread_mutex_lock(&c->mutex);
    while (!c->daemon.known && in_time)
        in_time = oct_condition_wait_until(&c->changed, &c->mutex, &until);
    bool known = c->daemon.known;
    pthread_mutex_unlock(&c->mutex);
    return known;
}

void oct_view_control_destroy(struct oct_view_control *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->mutex);
    c->ending = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mutex);
    oct_control_client_end(c->client);
    pthread_join(c->thread, NULL);
    free_control(c);
}
