/* What a viewer may send and have: bytes by connection and of all viewers, subscriptions. */
#define _DEFAULT_SOURCE
#include "pipeline/base/clock.h"
#include "pipeline/net/connections.h"
#include "pipeline/net/subscriptions.h"
#include "pipeline/net/zsocket.h"
#include "test/rig/tap.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <zmq.h>

/* ---- bytes ---- */

struct link {
    int listener, ours, theirs;
    bool has_spoken;
};

static void mark(int listener, enum oct_callers callers)
{
    int priority = (int)callers;
    assert_int_equal(setsockopt(listener, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority)), 0);
}

static struct link make_link(enum oct_callers callers)
{
    struct link l = {.listener = socket(AF_UNIX, SOCK_STREAM, 0),
                     .theirs = socket(AF_UNIX, SOCK_STREAM, 0)};
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t bytes = sizeof(name.sun_family); /* the kernel chooses a name */
    assert_int_equal(bind(l.listener, (struct sockaddr *)&name, bytes), 0);
    assert_int_equal(listen(l.listener, 1), 0);
    bytes = sizeof(name);
    assert_int_equal(getsockname(l.listener, (struct sockaddr *)&name, &bytes), 0);
    assert_int_equal(connect(l.theirs, (struct sockaddr *)&name, bytes), 0);
    mark(l.listener, callers);
    l.ours = accept(l.listener, NULL, NULL);
    assert_true(l.ours >= 0);
    return l;
}

static void drop_link(struct link *l)
{
    close(l->listener);
    close(l->ours);
    close(l->theirs);
}

static bool is_cut(int theirs)
{
    struct pollfd look = {.fd = theirs, .events = POLLIN};
    return poll(&look, 1, 0) == 1 && (look.revents & POLLHUP);
}

/* Sends so many bytes, a greeting of ZMTP 3 and then empty messages, and receives them as ZeroMQ
 * does; how many came. */
static size_t say(struct link *l, size_t n)
{
    static const char greeting[4096] = {'\xff', 0, 0, 0, 0, 0, 0, 0, 0, 1, 3};
    static const char empty[4096] = {0};
    size_t came = 0;
    while (n > 0) {
        size_t some = n < sizeof(empty) ? n : sizeof(empty);
        char received[4096];
        if (send(l->theirs, l->has_spoken ? empty : greeting, some, MSG_NOSIGNAL) != (ssize_t)some)
            break;
        l->has_spoken = true;
        ssize_t got = recv(l->ours, received, some, 0);
        if (got <= 0)
            break;
        came += (size_t)got;
        n -= (size_t)got;
    }
    return came;
}

TEST(a_viewer_that_sends_too_much_is_cut)
{
    uint64_t before = oct_connections_viewers_cut();
    struct link l = make_link(OCT_CALLERS_VIEWERS), other = make_link(OCT_CALLERS_VIEWERS);
    assert_int_equal(say(&l, OCT_VIEWER_BYTES), OCT_VIEWER_BYTES);
    assert_false(is_cut(l.theirs));
    /* A second's worth may have come in beside it on a slow machine. */
    assert_true(say(&l, OCT_VIEWER_BYTES) < OCT_VIEWER_BYTES);
    assert_true(is_cut(l.theirs));
    assert_int_equal(oct_connections_viewers_cut(), before + 1);
    assert_int_equal(say(&other, OCT_VIEWER_BYTES), OCT_VIEWER_BYTES); /* each has its own */
    assert_false(is_cut(other.theirs));
    drop_link(&l);
    drop_link(&other);
}

TEST(a_camera_and_commands_may_send_what_they_like)
{
    static const enum oct_callers callers[] = {OCT_CALLERS_CAMERA, OCT_CALLERS_CONTROL,
                                               OCT_CALLERS_UNKNOWN};
    for (size_t i = 0; i < sizeof(callers) / sizeof(callers[0]); i++) {
        struct link l = make_link(callers[i]);
        assert_int_equal(say(&l, 4 * OCT_VIEWER_BYTES), 4 * OCT_VIEWER_BYTES);
        drop_link(&l);
    }
}

/* ZeroMQ accepts before we have marked its listener. */
TEST(a_mark_that_comes_late_counts)
{
    struct link l = make_link(OCT_CALLERS_UNKNOWN);
    assert_int_equal(say(&l, 100), 100);
    mark(l.listener, OCT_CALLERS_VIEWERS);
    assert_true(say(&l, 2 * OCT_VIEWER_BYTES) < 2 * OCT_VIEWER_BYTES);
    assert_true(is_cut(l.theirs));
    drop_link(&l);
}

/* Those that were opened to the camera's socket and say nothing kept control out for 30 s. */
TEST(silence_is_closed_soon)
{
    const int types[] = {ZMQ_PULL, ZMQ_ROUTER, ZMQ_XPUB};
    void *context = zmq_ctx_new();
    for (int i = 0; i < 3; i++) {
        struct oct_error err;
        char bound[OCT_ENDPOINT_BYTES];
        int ms = 0;
        size_t bytes = sizeof(ms);
        void *socket = oct_zsocket_bind(context, types[i], "tcp://127.0.0.1:*", "x", 8, 4096, NULL,
                                        bound, &err);
        assert_non_null(socket);
        assert_int_equal(zmq_getsockopt(socket, ZMQ_HANDSHAKE_IVL, &ms, &bytes), 0);
        assert_in_range(ms, 1, 5000);
        zmq_close(socket);
    }
    zmq_ctx_term(context);
}

/* ---- subscriptions ---- */

static bool note(struct oct_subscriptions *all, int fd, bool begins, unsigned topic)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "topic %u", topic);
    return oct_subscriptions_note(all, fd, begins, (const uint8_t *)text, (size_t)n);
}

TEST(many_subscriptions_are_cut)
{
    struct oct_subscriptions *all = oct_subscriptions_create();
    struct link a = make_link(OCT_CALLERS_VIEWERS), b = make_link(OCT_CALLERS_VIEWERS);
    uint64_t before = oct_connections_viewers_cut();
    for (unsigned i = 0; i < OCT_MOST_SUBSCRIPTIONS; i++)
        assert_true(note(all, a.ours, true, i) && note(all, b.ours, true, i));
    assert_true(note(all, a.ours, true, 5));   /* stands already */
    assert_true(note(all, a.ours, false, 99)); /* never began */
    for (unsigned i = 100; i < 1000; i++)      /* one place is used again and again */
        assert_true(note(all, a.ours, false, i == 100 ? 7 : i - 1) && note(all, a.ours, true, i));
    assert_false(is_cut(a.theirs));
    assert_false(note(all, a.ours, true, 7));
    assert_true(is_cut(a.theirs));
    assert_false(is_cut(b.theirs));
    assert_int_equal(oct_connections_viewers_cut(), before + 1);
    drop_link(&a);
    drop_link(&b);
    oct_subscriptions_destroy(all);
}

TEST(long_subscriptions_are_cut)
{
    static const uint8_t topic[OCT_MOST_TOPIC_BYTES + 1];
    struct oct_subscriptions *all = oct_subscriptions_create();
    struct link a = make_link(OCT_CALLERS_VIEWERS), b = make_link(OCT_CALLERS_VIEWERS);
    assert_true(oct_subscriptions_note(all, a.ours, true, topic, OCT_MOST_TOPIC_BYTES));
    assert_true(oct_subscriptions_note(all, a.ours, true, topic, 0)); /* all topics: no bytes */
    assert_false(oct_subscriptions_note(all, a.ours, true, topic, 1));
    assert_true(is_cut(a.theirs));
    assert_false(oct_subscriptions_note(all, b.ours, true, topic, OCT_MOST_TOPIC_BYTES + 1));
    assert_true(is_cut(b.theirs));
    drop_link(&a);
    drop_link(&b);
    oct_subscriptions_destroy(all);
}

/* What is still told of a connection that has gone is charged to nobody. */
TEST(who_has_gone_is_charged_to_nobody)
{
    struct oct_subscriptions *all = oct_subscriptions_create();
    struct link a = make_link(OCT_CALLERS_VIEWERS), b = make_link(OCT_CALLERS_CAMERA);
    uint64_t before = oct_connections_viewers_cut();
    int fd = a.ours;
    for (unsigned i = 0; i <= OCT_MOST_SUBSCRIPTIONS; i++)
        note(all, fd, true, i);
    assert_true(is_cut(a.theirs));
    for (unsigned i = 0; i < 10; i++)
        assert_false(note(all, fd, true, i));
    assert_int_equal(oct_connections_viewers_cut(), before + 1);
    assert_int_equal(dup2(b.ours, fd), fd); /* its number is now another's, no viewer's */
    for (unsigned i = 0; i < 10 * OCT_MOST_SUBSCRIPTIONS; i++)
        assert_true(note(all, fd, true, i));
    assert_false(is_cut(b.theirs));
    oct_connections_begin(fd, a.listener); /* a viewer's, but a new one's */
    for (unsigned i = 0; i < OCT_MOST_SUBSCRIPTIONS; i++)
        assert_true(note(all, fd, true, i));
    assert_false(is_cut(b.theirs));
    assert_false(note(all, fd, true, 999));
    assert_true(is_cut(b.theirs));
    assert_true(note(all, -1, true, 1) && note(all, 4000, true, 1) && note(all, 1 << 30, true, 1));
    drop_link(&a);
    drop_link(&b);
    oct_subscriptions_destroy(all);
}

static bool subscribe(struct oct_subscriptions *all, int fd, bool begins, const char *topic)
{
    return oct_subscriptions_note(all, fd, begins, (const uint8_t *)topic, strlen(topic));
}

/* Looks again once it is time to. */
static void review(struct oct_subscriptions *all)
{
    usleep((OCT_SUBSCRIPTIONS_REVIEW_MS + 20) * 1000);
    oct_subscriptions_review(all);
}

static struct oct_subscriptions *watch_two(void)
{
    struct oct_subscriptions *all = oct_subscriptions_create();
    assert_true(oct_subscriptions_watch(all, "enface") && oct_subscriptions_watch(all, "quality"));
    return all;
}

TEST(a_topic_is_wanted_by_whoever_subscribes_to_how_it_begins)
{
    static const struct {
        const char *subscription;
        bool enface, quality;
    } cases[] = {{"enface", true, false}, {"enfac", true, false},   {"e", true, false},
                 {"", true, true},        {"quality", false, true}, {"enfacex", false, false},
                 {"bscan", false, false}, {"Enface", false, false}, {"nface", false, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oct_subscriptions *all = watch_two();
        struct link l = make_link(OCT_CALLERS_VIEWERS);
        assert_false(oct_subscriptions_wants(all, "enface"));
        assert_true(subscribe(all, l.ours, true, cases[i].subscription));
        for (int again = 0; again < (i ? 1 : 2); again++) {
            assert_int_equal(oct_subscriptions_wants(all, "enface"), cases[i].enface);
            assert_int_equal(oct_subscriptions_wants(all, "quality"), cases[i].quality);
            assert_false(oct_subscriptions_wants(all, "e")); /* is not watched */
            subscribe(all, l.ours, false, "never began");
            review(all);
        }
        drop_link(&l);
        oct_subscriptions_destroy(all);
    }
}

TEST(what_is_wanted_ends_with_the_last_that_wants_it)
{
    struct oct_subscriptions *all = watch_two();
    struct link a = make_link(OCT_CALLERS_VIEWERS), b = make_link(OCT_CALLERS_VIEWERS);
    subscribe(all, a.ours, true, "enface");
    subscribe(all, b.ours, true, "en");
    subscribe(all, a.ours, false, "enface");
    review(all);
    assert_true(oct_subscriptions_wants(all, "enface"));
    /* ZeroMQ tells of the end of a connection without saying whose it is, and perhaps before its
     * descriptor is closed. */
    subscribe(all, -1, false, "en");
    oct_subscriptions_review(all);
    drop_link(&b);
    assert_true(oct_subscriptions_wants(all, "enface"));
    review(all);
    assert_false(oct_subscriptions_wants(all, "enface"));
    /* What one wanted that was cut is not wanted. */
    subscribe(all, a.ours, true, "quality");
    for (unsigned i = 0; i < OCT_MOST_SUBSCRIPTIONS; i++)
        note(all, a.ours, true, i);
    assert_true(is_cut(a.theirs));
    subscribe(all, -1, false, "quality");
    review(all);
    assert_false(oct_subscriptions_wants(all, "quality"));
    /* Whose end would not be noticed wants it for ever. */
    subscribe(all, -1, true, "quality");
    subscribe(all, -1, false, "quality");
    review(all);
    assert_true(oct_subscriptions_wants(all, "quality"));
    drop_link(&a);
    oct_subscriptions_destroy(all);
}

/* So that a late message finds nobody under its connection's number, and not the next viewer. */
TEST(a_viewers_number_is_not_the_next_ones)
{
    int last = -1;
    for (int i = 0; i < 20; i++) {
        struct link l = make_link(OCT_CALLERS_VIEWERS);
        assert_int_not_equal(l.ours, last);
        last = l.ours;
        drop_link(&l);
    }
}

/* Heartbeats go on for ever. */
TEST(a_little_each_second_is_for_ever)
{
    struct link l = make_link(OCT_CALLERS_VIEWERS);
    uint64_t now_ns = oct_clock_ns() + UINT64_C(1000000000000);
    assert_false(oct_connections_viewer_exceeds(l.ours, OCT_VIEWER_BYTES, now_ns));
    for (int s = 1; s < 10000; s++)
        assert_false(oct_connections_viewer_exceeds(l.ours, OCT_VIEWER_BYTES_S,
                                                    now_ns += UINT64_C(1000000000)));
    assert_true(oct_connections_viewer_exceeds(l.ours, 1, now_ns));
    drop_link(&l);
}

TEST(all_viewers_together_are_bounded)
{
    uint64_t now_ns = oct_clock_ns() + UINT64_C(100000000000000);
    for (int i = 0; i < OCT_VIEWERS_BYTES / OCT_VIEWER_BYTES; i++) {
        struct link l = make_link(OCT_CALLERS_UNKNOWN); /* by the clock it may be full */
        mark(l.listener, OCT_CALLERS_VIEWERS);
        assert_false(oct_connections_viewers_are_full(now_ns));
        assert_false(oct_connections_viewer_exceeds(l.ours, OCT_VIEWER_BYTES, now_ns));
        drop_link(&l);
    }
    assert_true(oct_connections_viewers_are_full(now_ns));
    assert_false(oct_connections_viewers_are_full(now_ns + UINT64_C(50000000)));
    for (int i = 0; i < 4000; i++) { /* at one moment: it is over two seconds later all the same */
        struct link l = make_link(OCT_CALLERS_UNKNOWN);
        mark(l.listener, OCT_CALLERS_VIEWERS);
        oct_connections_viewer_exceeds(l.ours, OCT_VIEWER_BYTES, now_ns);
        drop_link(&l);
    }
    assert_true(oct_connections_viewers_are_full(now_ns));
    assert_false(oct_connections_viewers_are_full(now_ns + UINT64_C(2000000000)));
    /* By the clock it is full for ages: a connection is closed at once, no other's. */
    uint64_t before = oct_connections_viewers_cut();
    struct link camera = make_link(OCT_CALLERS_CAMERA);
    struct sockaddr_un name;
    socklen_t bytes = sizeof(name);
    assert_int_equal(getsockname(camera.listener, (struct sockaddr *)&name, &bytes), 0);
    int next = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(next, (struct sockaddr *)&name, bytes), 0);
    mark(camera.listener, OCT_CALLERS_VIEWERS);
    assert_int_equal(accept(camera.listener, NULL, NULL), -1);
    assert_true(is_cut(next));
    assert_int_equal(oct_connections_viewers_cut(), before + 1);
    close(next);
    drop_link(&camera);
}

/* ---- names ---- */

/* Its queue is full and it accepts nobody: to connect would wait for ever. */
TEST(who_listens_and_accepts_nobody_holds_the_name)
{
    const struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "held"};
    struct oct_error err = {.text = ""};
    char bound[256];
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), waiting[2];
    assert_int_equal(bind(listener, (const struct sockaddr *)&name, sizeof(name)), 0);
    assert_int_equal(listen(listener, 0), 0);
    for (int i = 0; i < 2; i++) {
        waiting[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(waiting[i], (const struct sockaddr *)&name, sizeof(name));
    }
    void *context = zmq_ctx_new();
    alarm(20);
    assert_null(oct_zsocket_bind(context, ZMQ_PULL, "ipc://held", "ingest.endpoint", 8, 4096, NULL,
                                 bound, &err));
    alarm(0);
    assert_non_null(strstr(err.text, "ingest.endpoint"));
    zmq_ctx_term(context);
    close(listener);
    close(waiting[0]);
    close(waiting[1]);
}
