/* The control client against servers that reply well, late, too much, in parts, or not at all. */
#include "pipeline/base/clock.h"
#include "pipeline/net/control_client.h"
#include "test/rig/tap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <zmq.h>

#define SOON_MS 300u /* long enough to be told from at once, short enough to be waited for */

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* Replies "re: " and the request; what the request begins with says how:
 *     "mute"    not at all
 *     "late N"  after N ms
 *     "huge"    one byte more than a client takes
 *     "parts"   and two parts more
 *     "nul"     with a NUL in the middle */
struct server {
    void *context, *socket;
    pthread_t thread;
    atomic_bool ending;
    atomic_uint n_requests;
};

static void reply(struct server *s, zmq_msg_t *peer, const char *request)
{
    static char huge[OCT_CONTROL_MOST_REPLY_BYTES + 1];
    char text[100];
    int n = snprintf(text, sizeof(text), "re: %s", request);
    if (strncmp(request, "mute", 4) == 0)
        return;
    if (strncmp(request, "late ", 5) == 0)
        pause_ms(atoi(request + 5));
    zmq_send(s->socket, zmq_msg_data(peer), zmq_msg_size(peer), ZMQ_SNDMORE);
    zmq_send(s->socket, "", 0, ZMQ_SNDMORE);
    bool parts = strcmp(request, "parts") == 0;
    if (strcmp(request, "huge") == 0)
        zmq_send(s->socket, huge, sizeof(huge), 0);
    else if (strcmp(request, "nul") == 0)
        zmq_send(s->socket, "a\0b", 3, 0);
    else
        zmq_send(s->socket, text, (size_t)n, parts ? ZMQ_SNDMORE : 0);
    for (int i = 0; i < 2 && parts; i++)
        zmq_send(s->socket, "more", 4, i == 0 ? ZMQ_SNDMORE : 0);
}

static void *serve(void *context)
{
    struct server *s = context;
    while (!s->ending) {
        zmq_msg_t peer, empty;
        char request[100];
        zmq_msg_init(&peer);
        zmq_msg_init(&empty);
        if (zmq_msg_recv(&peer, s->socket, 0) >= 0 && zmq_msg_recv(&empty, s->socket, 0) >= 0) {
            int n = zmq_recv(s->socket, request, sizeof(request) - 1, 0);
            request[n > 0 ? n : 0] = '\0';
            s->n_requests++;
            reply(s, &peer, request);
        }
        zmq_msg_close(&empty);
        zmq_msg_close(&peer);
    }
    return NULL;
}

static void start(struct server *s)
{
    const int wait_ms = 20, linger = 0;
    s->socket = zmq_socket(s->context, ZMQ_ROUTER);
    zmq_setsockopt(s->socket, ZMQ_RCVTIMEO, &wait_ms, sizeof(wait_ms));
    zmq_setsockopt(s->socket, ZMQ_LINGER, &linger, sizeof(linger));
    assert_int_equal(zmq_bind(s->socket, "ipc://control"), 0);
    s->ending = false;
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void stop(struct server *s)
{
    s->ending = true;
    pthread_join(s->thread, NULL);
    zmq_close(s->socket);
}

static int open_server(void **state)
{
    struct server *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    s->context = zmq_ctx_new();
    start(s);
    *state = s;
    return 0;
}

static int close_server(void **state)
{
    struct server *s = *state;
    stop(s);
    zmq_ctx_term(s->context);
    free(s);
    return 0;
}

static struct oct_control_client *connect_to(const char *endpoint)
{
    const struct oct_control_client_setup setup = {.endpoint = endpoint};
    struct oct_control_client *client;
    must(oct_control_client_create(&client, &setup, &failure));
    return client;
}

static void expect_reply(struct oct_control_client *client, const char *request, const char *wanted)
{
    char *text;
    size_t n_bytes;
    struct oct_error err = {.text = ""};
    if (oct_control_client_ask(client, request, TEST_PATIENCE_MS, &text, &n_bytes, &err))
        fail_msg("%s: %s", request, err.text);
    assert_string_equal(text, wanted);
    assert_true(n_bytes >= strlen(wanted));
    free(text);
}

static void expect_silence(struct oct_control_client *client, const char *request)
{
    char *text;
    struct oct_error err;
    uint64_t began_ns = oct_clock_ns();
    assert_int_equal(oct_control_client_ask(client, request, SOON_MS, &text, NULL, &err),
                     OCT_E_AGAIN);
    assert_true(oct_clock_ns() - began_ns >= SOON_MS * UINT64_C(900000)); /* its clock is coarse */
    assert_null(text);
    assert_non_null(strstr(err.text, "no daemon answers at ipc://"));
    assert_non_null(strstr(err.text, "is octd running?"));
}

#define CASE(name) TEST_WITH(name, open_server, close_server)

CASE(questions_are_answered_one_after_the_other)
{
    struct server *s = *state;
    struct oct_control_client *client = connect_to("ipc://control");
    expect_reply(client, "a", "re: a");
    expect_reply(client, "late 50", "re: late 50");
    expect_reply(client, "parts", "re: parts");
    expect_reply(client, "b", "re: b");
    assert_int_equal(s->n_requests, 4);
    char *text;
    size_t n_bytes;
    assert_int_equal(oct_control_client_ask(client, "nul", TEST_PATIENCE_MS, &text, &n_bytes, NULL),
                     OCT_OK);
    assert_int_equal(n_bytes, 3);
    assert_memory_equal(text, "a\0b", 4);
    free(text);
    oct_control_client_destroy(client);
}

CASE(silence_is_told_and_the_next_question_is_answered)
{
    struct server *s = *state;
    struct oct_control_client *client = connect_to("ipc://control");
    expect_silence(client, "mute");
    expect_reply(client, "a", "re: a");
    expect_silence(client, "huge");
    expect_reply(client, "b", "re: b");
    assert_int_equal(s->n_requests, 4); /* nothing was sent twice */
    oct_control_client_destroy(client);
}

CASE(a_late_reply_is_not_taken_for_that_to_another_question)
{
    struct oct_control_client *client = connect_to("ipc://control");
    expect_silence(client, "late 600");
    expect_reply(client, "next", "re: next");
    pause_ms(400);
    expect_reply(client, "last", "re: last");
    oct_control_client_destroy(client);
}

CASE(a_daemon_may_come_later_or_be_started_anew)
{
    struct server *s = *state;
    stop(s);
    struct oct_control_client *client = connect_to("ipc://control");
    expect_silence(client, "nobody");
    start(s);
    expect_reply(client, "a", "re: a");
    stop(s);
    expect_silence(client, "gone");
    start(s);
    expect_reply(client, "b", "re: b");
    oct_control_client_destroy(client);
}

struct asking {
    struct oct_control_client *client;
    enum oct_err code;
    struct oct_error err;
};

static void *ask_in_vain(void *context)
{
    struct asking *a = context;
    char *text;
    a->code = oct_control_client_ask(a->client, "mute", TEST_PATIENCE_MS, &text, NULL, &a->err);
    assert_null(text);
    return NULL;
}

CASE(a_question_is_called_off_from_another_thread)
{
    struct server *s = *state;
    struct asking a = {.client = connect_to("ipc://control")};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, ask_in_vain, &a), 0);
    while (s->n_requests == 0)
        pause_ms(1);
    uint64_t began_ns = oct_clock_ns();
    oct_control_client_end(a.client);
    pthread_join(thread, NULL);
    assert_true(oct_clock_ns() - began_ns < TEST_PATIENCE_NS / 2);
    assert_int_equal(a.code, OCT_E_CLOSED);
    assert_non_null(strstr(a.err.text, "called off"));
    char *text;
    assert_int_equal(oct_control_client_ask(a.client, "a", SOON_MS, &text, NULL, NULL),
                     OCT_E_CLOSED);
    oct_control_client_destroy(a.client);
    oct_control_client_destroy(NULL);
}

CASE(what_cannot_be_connected_is_refused)
{
    struct oct_control_client *client;
    struct oct_error err;
    struct oct_control_client_setup setup = {.endpoint = "carrier:pigeon"};
    assert_int_equal(oct_control_client_create(&client, &setup, &err), OCT_E_CONFIG);
    assert_null(client);
    assert_non_null(strstr(err.text, "control.endpoint: cannot connect to 'carrier:pigeon'"));
    assert_non_null(strstr(err.text, "write tcp://HOST:PORT or ipc://PATH"));
    setup = (struct oct_control_client_setup){.endpoint = "tcp://127.0.0.1:9",
                                              .keys = {"/nowhere.key_secret", "/nowhere.key"}};
    must_fail(oct_control_client_create(&client, &setup, &failure), OCT_E_CONFIG, "/nowhere.key");
}

CASE(an_address_in_brackets_is_one_of_ipv6)
{
    struct server *s = *state;
    const int on = 1;
    char endpoint[64];
    size_t bytes = sizeof(endpoint);
    stop(s);
    void *probe = zmq_socket(s->context, ZMQ_ROUTER);
    zmq_setsockopt(probe, ZMQ_IPV6, &on, sizeof(on));
    bool there = zmq_bind(probe, "tcp://[::1]:*") == 0 &&
                 zmq_getsockopt(probe, ZMQ_LAST_ENDPOINT, endpoint, &bytes) == 0;
    const int wait_ms = 20;
    zmq_setsockopt(probe, ZMQ_RCVTIMEO, &wait_ms, sizeof(wait_ms));
    s->socket = probe;
    s->ending = false;
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
    if (there) {
        struct oct_control_client *client = connect_to(endpoint);
        expect_reply(client, "six", "re: six");
        oct_control_client_destroy(client);
    } else {
        print_message("this machine has no IPv6\n");
    }
    stop(s);
    start(s);
}
