/* The viewer's side of the control socket against servers that answer well, badly, or not. */
#include "test/rig/tap.h"
#include "viewer/model/clock.h"
#include "viewer/net/control.h"

#include <cjson/cJSON.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#define STATUS "{\"ok\":true,\"state\":\"running\",\"record\":{\"active\":false}}"

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* A server that answers a status with `status` and all else with `other`; NULL: not at all. */
struct server {
    void *context, *socket;
    char endpoint[512];
    pthread_t thread;
    pthread_mutex_t mutex;
    const char *status, *other;
    size_t status_bytes;
    unsigned n_parts;
    char last[512]; /* the newest request that was no status */
    bool ending;
};

static void answer(struct server *s, zmq_msg_t parts[3], int n)
{
    pthread_mutex_lock(&s->mutex);
    char request[512] = "";
    size_t n_bytes = zmq_msg_size(&parts[2]);
    memcpy(request, zmq_msg_data(&parts[2]), n_bytes < sizeof(request) ? n_bytes : 511);
    bool status = strstr(request, "\"status\"") != NULL;
    if (!status)
        snprintf(s->last, sizeof(s->last), "%s", request);
    const char *text = status ? s->status : s->other;
    size_t text_bytes = status && s->status_bytes ? s->status_bytes : text ? strlen(text) : 0;
    if (text && n == 3) {
        zmq_send(s->socket, zmq_msg_data(&parts[0]), zmq_msg_size(&parts[0]), ZMQ_SNDMORE);
        zmq_send(s->socket, "", 0, ZMQ_SNDMORE);
        for (unsigned i = 0; i < s->n_parts; i++)
            zmq_send(s->socket, text, text_bytes, i + 1 < s->n_parts ? ZMQ_SNDMORE : 0);
    }
    pthread_mutex_unlock(&s->mutex);
}

static void *serve(void *context)
{
    struct server *s = context;
    bool ending = false;

    while (!ending) {
        zmq_msg_t parts[3];
        int n = 0;
        bool more = true;
        for (int i = 0; i < 3; i++)
            zmq_msg_init(&parts[i]);
        while (more && n < 3 && zmq_msg_recv(&parts[n], s->socket, 0) >= 0)
            more = zmq_msg_more(&parts[n++]);
        if (n > 0)
            answer(s, parts, n);
        for (int i = 0; i < 3; i++)
            zmq_msg_close(&parts[i]);
        pthread_mutex_lock(&s->mutex);
        ending = s->ending;
        pthread_mutex_unlock(&s->mutex);
    }
    return NULL;
}

static void start_server(struct server *s)
{
    int wait_ms = 50, linger = 0;

    s->socket = zmq_socket(s->context, ZMQ_ROUTER);
    zmq_setsockopt(s->socket, ZMQ_RCVTIMEO, &wait_ms, sizeof(wait_ms));
    zmq_setsockopt(s->socket, ZMQ_LINGER, &linger, sizeof(linger));
    assert_int_equal(zmq_bind(s->socket, s->endpoint), 0);
    s->ending = false;
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void stop_server(struct server *s)
{
    pthread_mutex_lock(&s->mutex);
    s->ending = true;
    pthread_mutex_unlock(&s->mutex);
    pthread_join(s->thread, NULL);
    zmq_close(s->socket);
}

static int open_server(void **state)
{
    const char *folder = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    struct server *s = calloc(1, sizeof(*s));

    assert_non_null(s);
    s->context = zmq_ctx_new();
    pthread_mutex_init(&s->mutex, NULL);
    s->status = STATUS;
    s->other = "{\"ok\":true}";
    s->n_parts = 1;
    snprintf(s->endpoint, sizeof(s->endpoint), "ipc://%s/octview-ctl-%ld", folder, (long)getpid());
    start_server(s);
    *state = s;
    return 0;
}

static int close_server(void **state)
{
    struct server *s = *state;

    stop_server(s);
    zmq_ctx_term(s->context);
    pthread_mutex_destroy(&s->mutex);
    free(s);
    return 0;
}

static void say(struct server *s, const char *status, size_t n_bytes, const char *other,
                unsigned n_parts)
{
    pthread_mutex_lock(&s->mutex);
    s->status = status;
    s->status_bytes = n_bytes;
    s->other = other;
    s->n_parts = n_parts;
    pthread_mutex_unlock(&s->mutex);
}

/* Takes until an answer to a wish came. */
static struct oct_view_answer wait_answer(struct oct_view_control *c)
{
    struct oct_view_daemon daemon;
    struct oct_view_answer reply = {0};

    for (int i = 0; i < TEST_PATIENCE_MS / 10 && reply.wish == OCT_WISH_NONE; i++) {
        oct_view_control_take(c, &daemon, &reply);
        pause_ms(10);
    }
    return reply;
}

static bool wait_reachable(struct oct_view_control *c, bool reachable)
{
    struct oct_view_daemon daemon = {.reachable = !reachable};
    struct oct_view_answer reply;

    for (int i = 0; i < TEST_PATIENCE_MS / 10 && daemon.reachable != reachable; i++) {
        oct_view_control_take(c, &daemon, &reply);
        pause_ms(10);
    }
    return daemon.reachable == reachable;
}

static void a_wish_is_sent_once_and_its_answer_comes_back(void **state)
{
    struct server *s = *state;
    struct oct_view_control *c;
    struct oct_view_answer reply;

    assert_int_equal(oct_view_control_create(&c, s->endpoint, NULL, NULL, NULL, NULL), OCT_OK);
    assert_true(oct_view_control_wait(c, TEST_PATIENCE_NS));
    assert_true(oct_view_control_ask(c, OCT_WISH_RECORD, ""));
    reply = wait_answer(c);
    assert_true(reply.wish == OCT_WISH_RECORD && reply.ok);
    assert_string_equal(s->last, "{\"cmd\":\"record\",\"action\":\"start\"}");
    say(s, STATUS, 0, "{\"ok\":false,\"error\":\"the folder\\nis gone\"}", 1);
    assert_true(oct_view_control_ask(c, OCT_WISH_PSEUDONYM, "P-\"1\""));
    reply = wait_answer(c);
    assert_true(reply.wish == OCT_WISH_PSEUDONYM && !reply.ok);
    assert_string_equal(reply.text, "the folder?is gone");
    assert_string_equal(s->last,
                        "{\"cmd\":\"set\",\"key\":\"record.pseudonym\",\"value\":\"P-\\\"1\\\"\"}");
    oct_view_control_destroy(c);
}

static void every_wish_sets_its_own_key(void **state)
{
    struct server *s = *state;
    struct oct_view_control *c;
    static const struct {
        enum oct_view_wish wish;
        const char *text, *request;
    } cases[] = {
        {OCT_WISH_STOP, "", "{\"cmd\":\"record\",\"action\":\"stop\"}"},
        {OCT_WISH_EYE, "OS", "{\"cmd\":\"set\",\"key\":\"record.eye\",\"value\":\"OS\"}"},
        {OCT_WISH_PROJECTION, "slab",
         "{\"cmd\":\"set\",\"key\":\"analysis.enface_projection\",\"value\":\"slab\"}"},
        {OCT_WISH_SLAB_FIRST, "0.4100",
         "{\"cmd\":\"set\",\"key\":\"analysis.enface_slab_first\",\"value\":\"0.4100\"}"},
        {OCT_WISH_ENABLE, "cells.enabled",
         "{\"cmd\":\"set\",\"key\":\"cells.enabled\",\"value\":\"yes\"}"},
        {OCT_WISH_SLAB_LAST, "0.6100",
         "{\"cmd\":\"set\",\"key\":\"analysis.enface_slab_last\",\"value\":\"0.6100\"}"},
    };

    assert_int_equal(oct_view_control_create(&c, s->endpoint, NULL, NULL, NULL, NULL), OCT_OK);
    assert_true(oct_view_control_wait(c, TEST_PATIENCE_NS));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_true(oct_view_control_ask(c, cases[i].wish, cases[i].text));
        struct oct_view_answer reply = wait_answer(c);
        assert_true(reply.wish == cases[i].wish && reply.ok);
        assert_string_equal(reply.text, cases[i].text);
        assert_string_equal(s->last, cases[i].request);
    }
    oct_view_control_destroy(c);
}

/* A status as octd gives it after it granted a recording. */
#define AFTER(pending, active, error)                                                              \
    "{\"ok\":true,\"state\":\"running\",\"pending\":" pending ",\"last_error\":\"" error           \
    "\",\"record\":{\"active\":" active "}}"

static void a_recording_is_answered_when_it_has_begun_or_failed(void **state)
{
    struct server *s = *state;
    struct oct_view_control *c;
    struct oct_view_daemon daemon;
    struct oct_view_answer reply;
    static const char granted[] = "{\"ok\":true,\"pending\":true}";
    static const char *const after[2] = {AFTER("false", "true", ""),
                                         AFTER("false", "false", "the folder is full")};

    assert_int_equal(oct_view_control_create(&c, s->endpoint, NULL, NULL, NULL, NULL), OCT_OK);
    for (int failed = 0; failed < 2; failed++) {
        say(s, AFTER("true", "false", ""), 0, granted, 1);
        assert_true(oct_view_control_ask(c, OCT_WISH_RECORD, ""));
        pause_ms(400);
        oct_view_control_take(c, &daemon, &reply);
        assert_int_equal(reply.wish, OCT_WISH_NONE);
        assert_false(oct_view_control_ask(c, OCT_WISH_RECORD, ""));
        say(s, after[failed], 0, granted, 1);
        for (int i = 0; i < TEST_PATIENCE_MS / 10 && reply.wish == OCT_WISH_NONE; i++) {
            pause_ms(5);
            oct_view_control_take(c, &daemon, &reply);
        }
        assert_true(reply.wish == OCT_WISH_RECORD && reply.ok == !failed);
        assert_string_equal(reply.text, failed ? "the folder is full" : "");
        assert_true(daemon.record.active == !failed);
    }
    oct_view_control_destroy(c);
}

static void a_silent_server_is_told_and_found_again(void **state)
{
    struct server *s = *state;
    struct oct_view_control *c;

    assert_int_equal(oct_view_control_create(&c, s->endpoint, NULL, NULL, NULL, NULL), OCT_OK);
    assert_true(wait_reachable(c, true));
    say(s, NULL, 0, NULL, 1);
    assert_true(oct_view_control_ask(c, OCT_WISH_STOP, ""));
    struct oct_view_answer reply = wait_answer(c);
    assert_true(reply.wish == OCT_WISH_STOP && !reply.ok);
    assert_string_equal(reply.text, "no answer from octd");
    assert_true(wait_reachable(c, false));
    say(s, STATUS, 0, "{\"ok\":true}", 1);
    assert_true(wait_reachable(c, true));
    stop_server(s); /* gone, and back at the same place */
    assert_true(wait_reachable(c, false));
    start_server(s);
    assert_true(wait_reachable(c, true));
    /* It ends at once, also while it waits for an answer. */
    say(s, NULL, 0, NULL, 1);
    pause_ms(700);
    uint64_t start_ns = oct_view_now_ns();
    oct_view_control_destroy(c);
    assert_true(oct_view_now_ns() - start_ns < OCT_NS_PER_S); /* of the two that it would wait */
}

static void hostile_answers_are_survived(void **state)
{
    struct server *s = *state;
    struct oct_view_control *c;
    const size_t big = 900000;
    char *huge = calloc(1, big + 1);
    static const char *const bad[] = {"",
                                      "{",
                                      "[]",
                                      "null",
                                      "\xff\xfe\x01",
                                      "{\"ok\":true}",
                                      "{\"ok\":true,\"state\":{\"a\":[]}}"};

    assert_non_null(huge);
    memset(huge, '[', big);
    assert_int_equal(oct_view_control_create(&c, s->endpoint, NULL, NULL, NULL, NULL), OCT_OK);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_true(wait_reachable(c, true));
        say(s, bad[i], 0, bad[i], 1 + (unsigned)i % 3);
        oct_view_control_ask(c, OCT_WISH_EYE, "OS"); /* makes it ask at once */
        assert_true(wait_reachable(c, false));
        say(s, STATUS, 0, "{\"ok\":true}", 1);
        oct_view_control_ask(c, OCT_WISH_EYE, "OS");
    }
    assert_true(wait_reachable(c, true));
    say(s, huge, big, huge, 1);
    oct_view_control_ask(c, OCT_WISH_EYE, "OS");
    assert_true(wait_reachable(c, false));
    say(s, STATUS, 0, "{\"ok\":true}", 500); /* far too many parts */
    assert_true(wait_reachable(c, true));
    oct_view_control_destroy(c);
    free(huge);
}

static void an_endpoint_that_is_none_is_refused(void **state)
{
    struct oct_view_control *c;
    struct oct_error err = {0};

    assert_int_equal(oct_view_control_create(&c, "nonsense", NULL, NULL, NULL, &err), OCT_E_CONFIG);
    assert_non_null(strstr(err.text, "nonsense"));
    assert_null(c);
    oct_view_control_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_wish_sets_its_own_key, open_server, close_server),
        cmocka_unit_test_setup_teardown(a_wish_is_sent_once_and_its_answer_comes_back, open_server,
                                        close_server),
        cmocka_unit_test_setup_teardown(a_recording_is_answered_when_it_has_begun_or_failed,
                                        open_server, close_server),
        cmocka_unit_test_setup_teardown(a_silent_server_is_told_and_found_again, open_server,
                                        close_server),
        cmocka_unit_test_setup_teardown(hostile_answers_are_survived, open_server, close_server),
        cmocka_unit_test(an_endpoint_that_is_none_is_refused),
    };
    return cmocka_run_group_tests_name("viewer control", tests, NULL, NULL);
}
