/* Named topics: images of any form, published beside the pictures. */
#define _GNU_SOURCE /* RTLD_NEXT, syscall */
#include "pipeline/base/clock.h"
#include "pipeline/flow/slots.h"
#include "pipeline/net/connections.h"
#include "test/rig/tap.h"
#include "test/rig/topics_rig.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <zmq.h>

#define SOON_NS 20000000 /* the publisher looks by itself every 100 ms only */

/* ---- what is sent ---- */

/* Before libzmq's: the publisher's thread sends no message while `held` is set, and the first
 * letters of the topics that it sends are noted in their order. */
static atomic_bool held;
static atomic_uint n_held;
static char sent[4096];
static atomic_uint n_sent;

int zmq_msg_send(zmq_msg_t *message, void *socket, int flags)
{
    static int (*real)(zmq_msg_t *, void *, int);
    static bool is_behind_the_first; /* one thread */
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "zmq_msg_send");
    if (!is_behind_the_first) {
        unsigned n = atomic_load(&n_sent);
        if (n < sizeof(sent))
            sent[n] = *(char *)zmq_msg_data(message);
        atomic_fetch_add(&n_sent, 1);
        if (atomic_load(&held)) {
            atomic_fetch_add(&n_held, 1);
            while (atomic_load(&held))
                sleep_ms(1);
        }
    }
    is_behind_the_first = flags & ZMQ_SNDMORE;
    return real(message, socket, flags);
}

/* Holds the publisher at its next message, of which it has begun the first part. */
static void hold(void)
{
    atomic_store(&n_held, 0);
    atomic_store(&held, true);
}

static void wait_until_held(void)
{
    for (int ms = 0; atomic_load(&n_held) == 0; ms++) {
        assert_true(ms < TEST_PATIENCE_MS);
        sleep_ms(1);
    }
}

static void let_go(void)
{
    atomic_store(&held, false);
}

/* Bounds stand by descriptor (connections.h, parts.h), and only accept() sets them: a daemon
 * connects nowhere. Our subscribers get numbers that connections to an earlier publisher had.
 * Declared here, because glibc declares it in its own way. */
int connect(int fd, const void *address, unsigned bytes);

int connect(int fd, const void *address, unsigned bytes)
{
    oct_connections_begin(fd, fd);
    return (int)syscall(SYS_connect, fd, address, bytes);
}

/* ---- tests ---- */

static void every_topic_comes_with_a_header_that_says_what_it_is(void **state)
{
    struct rig rig;
    struct message m;
    struct oct_image_header h;
    open_topics(&rig);
    void *rows = subscribe(&rig, "rows"), *all = subscribe(&rig, "");
    wait_until_wanted(&rig, "rows", true);
    wait_until_wanted(&rig, "map", true);
    for (uint32_t n = 0; n <= 4; n++) {
        publish_rows(&rig, n);
        receive_image(rows, &m, &h);
        assert_string_equal(m.topic, "rows");
        assert_string_equal(h.dataset, "analysis/rows");
        assert_string_equal(h.acquisition_id, "test-3");
        assert_int_equal(h.frame_num, n);
        assert_int_equal(h.dims[0], n);
        assert_int_equal(h.dims[1], 3);
        assert_int_equal(m.n_values, n * 12);
        for (uint32_t i = 0; i < 3 * n; i++)
            assert_true(((const float *)(const void *)m.values)[i] == (float)i + 0.5f);
        receive_image(all, &m, &h);
        assert_string_equal(m.topic, "rows");
    }
    publish_map(&rig, false);
    receive_image(all, &m, &h);
    assert_string_equal(m.topic, "map");
    assert_false(h.whole);
    assert_true(h.spacing_um[0] == 12.25 && h.hi == 60);
    assert_int_equal(m.n_values, MAP_BYTES);
    assert_int_equal(m.values[34], 9);
    publish_bscan(&rig);
    receive(all, &m);
    assert_string_equal(m.topic, "bscan");
    assert_null(strstr(m.json, "quantity"));
    receive_nothing(rows);
    zmq_close(rows);
    zmq_close(all);
    close_topics(&rig);
}

static void what_cannot_be_sent_is_skipped_and_the_next_comes(void **state)
{
    struct rig rig;
    struct message m;
    struct oct_image_header h;
    open_topics(&rig);
    void *rows = subscribe(&rig, "rows");
    wait_until_wanted(&rig, "rows", true);
    for (unsigned fault = 0; fault < 4; fault++) {
        struct oct_image_frame *frame = begin_image(&rig, rig.rows, &rows_form);
        if (fault == 0)
            frame->dims[0] = 5;
        else if (fault == 1)
            frame->dims[1] = 1u << 20;
        else if (fault == 2)
            frame->hi = NAN;
        else
            frame->status = OCT_E_BACKEND; /* lost, not impossible */
        oct_ring_publish(rig.rows);
        for (int ms = 0; fault < 3 && oct_publisher_topic(rig.publisher, 1).skipped <= fault;
             ms++) {
            assert_true(ms < TEST_PATIENCE_MS);
            sleep_ms(1);
        }
    }
    publish_rows(&rig, 1);
    receive_image(rows, &m, &h);
    assert_int_equal(h.frame_num, 4);
    wait_until_published(&rig, 1, 1);
    struct oct_publisher_topic topic = oct_publisher_topic(rig.publisher, 1);
    assert_string_equal(topic.name, "rows");
    assert_int_equal(topic.published, 1);
    assert_int_equal(topic.skipped, 3);
    assert_int_equal(topic.unwanted, 0);
    zmq_close(rows);
    close_topics(&rig);
}

static void what_nobody_wants_is_read_and_dropped(void **state)
{
    struct rig rig;
    open_topics(&rig);
    void *map = subscribe(&rig, "map");
    wait_until_wanted(&rig, "map", true);
    assert_false(is_wanted(&rig, "rows"));
    unsigned before = atomic_load(&n_sent);
    for (unsigned n = 1; n <= 100; n++)
        publish_rows(&rig, 4);
    for (int ms = 0;; ms++) {
        struct oct_publisher_topic topic = oct_publisher_topic(rig.publisher, 1);
        assert_int_equal(topic.published, 0);
        assert_true(topic.unwanted + topic.skipped <= 100);
        if (topic.unwanted + topic.skipped == 100)
            break;
        assert_true(ms < TEST_PATIENCE_MS);
        sleep_ms(1);
    }
    assert_int_equal(atomic_load(&n_sent), before);
    assert_null(oct_publisher_topic(rig.publisher, 3).name);
    zmq_close(map);
    close_topics(&rig);
}

static void what_is_wanted_follows_the_subscriptions_that_stand(void **state)
{
    struct rig rig;
    open_topics(&rig);
    assert_false(is_wanted(&rig, "rows"));
    void *longer = subscribe(&rig, "rowsx"), *bscan = subscribe(&rig, "bscan");
    void *prefix = subscribe(&rig, "ro"), *exact = subscribe(&rig, "rows");
    wait_until_wanted(&rig, "rows", true);
    assert_false(is_wanted(&rig, "map"));
    /* Ends of what never began take nothing from others. */
    void *stranger = zmq_socket(rig.context, ZMQ_XSUB);
    assert_int_equal(zmq_connect(stranger, oct_publisher_endpoint(rig.publisher)), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(zmq_send(stranger, "\0rows", 5, 0), 5);
    zmq_setsockopt(exact, ZMQ_UNSUBSCRIBE, "rows", 4);
    sleep_ms(600);
    assert_true(is_wanted(&rig, "rows"));
    zmq_close(prefix); /* goes without a word */
    wait_until_wanted(&rig, "rows", false);
    zmq_setsockopt(exact, ZMQ_SUBSCRIBE, "", 0);
    wait_until_wanted(&rig, "rows", true);
    wait_until_wanted(&rig, "map", true);
    zmq_close(exact);
    wait_until_wanted(&rig, "map", false);
    assert_false(is_wanted(&rig, "rows"));
    zmq_close(longer);
    zmq_close(bscan);
    zmq_close(stranger);
    close_topics(&rig);
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The median: a busy machine is late now and then. */
static void a_result_goes_out_at_once_while_no_picture_comes(void **state)
{
    enum { TRIALS = 15 };
    struct rig rig;
    struct message m;
    uint64_t took_ns[TRIALS];
    open_topics(&rig);
    void *rows = subscribe(&rig, "rows");
    wait_until_wanted(&rig, "rows", true);
    for (unsigned i = 0; i < TRIALS; i++) {
        sleep_ms(7 + 13 * i % 50); /* anywhere in the publisher's own wait */
        const uint64_t begin_ns = oct_clock_ns();
        publish_rows(&rig, 1);
        receive(rows, &m);
        took_ns[i] = oct_clock_ns() - begin_ns;
    }
    qsort(took_ns, TRIALS, sizeof(took_ns[0]), by_size);
    printf("# from result to subscriber: median %.2f ms, longest %.2f ms\n",
           (double)took_ns[TRIALS / 2] / 1e6, (double)took_ns[TRIALS - 1] / 1e6);
    assert_true(took_ns[TRIALS / 2] < SOON_NS);
    zmq_close(rows);
    close_topics(&rig);
}

struct flood {
    struct rig *rig;
    atomic_bool ends;
};

static void *flood(void *argument)
{
    struct flood *f = argument;
    uint64_t slot;
    while (!atomic_load(&f->ends))
        if (oct_ring_acquire(f->rig->rows, 1000, &slot) == OCT_OK) {
            struct oct_image_frame *frame =
                oct_image_slot_begin(f->rig->rows, slot, &rows_form, NULL);
            frame->lo = frame->hi = 0;
            oct_ring_publish(f->rig->rows);
        }
    return NULL;
}

/* While a message of the flood is being sent a picture comes: it is the next. */
static void a_flood_delays_a_picture_by_one_message_at_most(void **state)
{
    struct rig rig;
    struct flood f = {.rig = &rig};
    pthread_t thread;
    open_topics(&rig);
    void *rows = subscribe(&rig, "rows");
    wait_until_wanted(&rig, "rows", true);
    assert_int_equal(pthread_create(&thread, NULL, flood, &f), 0);
    for (unsigned round = 0; round < 20; round++) {
        hold();
        wait_until_held();
        atomic_store(&n_sent, 0);
        publish_bscan(&rig);
        publish_bscan(&rig);
        for (uint64_t n = oct_ring_published(rig.rows); oct_ring_published(rig.rows) < n + 2;)
            sleep_ms(1); /* the flood goes on */
        let_go();
        for (int ms = 0; atomic_load(&n_sent) < 3; ms++) {
            assert_true(ms < TEST_PATIENCE_MS);
            sleep_ms(1);
        }
        /* And the flood is not starved by pictures. */
        assert_memory_equal(sent, "brb", 3);
    }
    atomic_store(&f.ends, true);
    pthread_join(thread, NULL);
    assert_true(oct_publisher_topic(rig.publisher, 1).skipped > 0);
    assert_int_equal(oct_publisher_skipped(rig.publisher), 0);
    zmq_close(rows);
    close_topics(&rig);
}

/* Its connection's queue is full, and stays so: everybody else gets everything. */
static void a_subscriber_that_does_not_read_holds_up_nobody(void **state)
{
    enum { MANY = 150 };
    struct rig rig;
    struct message m;
    int one = 1, wait_ms = 300;
    unsigned n_came = 0;
    open_topics(&rig);
    void *slow = zmq_socket(rig.context, ZMQ_SUB), *rows = subscribe(&rig, "rows");
    zmq_setsockopt(slow, ZMQ_RCVHWM, &one, sizeof(one));
    zmq_setsockopt(slow, ZMQ_RCVBUF, &one, sizeof(one));
    zmq_setsockopt(slow, ZMQ_SUBSCRIBE, "map", 3);
    assert_int_equal(zmq_connect(slow, oct_publisher_endpoint(rig.publisher)), 0);
    wait_until_wanted(&rig, "rows", true);
    wait_until_wanted(&rig, "map", true);
    while (oct_publisher_topic(rig.publisher, 2).published < MANY) {
        publish_map(&rig, true);
        publish_rows(&rig, 1);
        receive(rows, &m);
        assert_string_equal(m.topic, "rows");
    }
    assert_int_equal(oct_publisher_topic(rig.publisher, 1).skipped, 0);
    /* What it finds is what waited for it, no more. */
    zmq_setsockopt(slow, ZMQ_RCVTIMEO, &wait_ms, sizeof(wait_ms));
    while (zmq_recv(slow, m.values, sizeof(m.values), 0) >= 0)
        n_came++;
    assert_true(n_came > 0 && n_came / 3 < MANY / 2);
    zmq_close(slow);
    zmq_close(rows);
    close_topics(&rig);
}

static void a_source_that_ends_early_ends_nobody_else(void **state)
{
    struct rig rig;
    struct message m;
    open_topics(&rig);
    void *all = subscribe(&rig, "");
    wait_until_wanted(&rig, "rows", true);
    publish_rows(&rig, 2);
    oct_ring_close(rig.rows);
    receive(all, &m);
    assert_string_equal(m.topic, "rows"); /* what it had published comes */
    for (int i = 0; i < 20; i++) {
        publish_bscan(&rig);
        receive(all, &m);
        assert_string_equal(m.topic, "bscan");
        publish_map(&rig, true);
        receive(all, &m);
        assert_string_equal(m.topic, "map");
    }
    zmq_close(all);
    close_topics(&rig);
}

/* A stage computes on when the pictures have ended. */
static void results_after_the_last_picture_are_sent(void **state)
{
    struct rig rig;
    struct message m;
    open_topics(&rig);
    void *all = subscribe(&rig, "");
    wait_until_wanted(&rig, "rows", true);
    publish_bscan(&rig);
    oct_ring_close(rig.images);
    receive(all, &m);
    assert_string_equal(m.topic, "bscan");
    sleep_ms(20);
    publish_rows(&rig, 1);
    receive(all, &m);
    assert_string_equal(m.topic, "rows");
    publish_map(&rig, true);
    oct_publisher_destroy(rig.publisher); /* the sources are still open */
    rig.publisher = NULL;
    receive(all, &m);
    assert_string_equal(m.topic, "map");
    for (unsigned i = 0; i < 3 * N_SLOTS; i++)
        publish_rows(&rig, 4); /* nobody reads them, and nobody is woken */
    zmq_close(all);
    close_topics(&rig);
}

static void a_publisher_ends_while_a_source_floods(void **state)
{
    for (int round = 0; round < 10; round++) {
        struct rig rig;
        struct flood f = {.rig = &rig};
        pthread_t thread;
        open_topics(&rig);
        void *rows = subscribe(&rig, round % 2 ? "rows" : "map");
        wait_until_wanted(&rig, round % 2 ? "rows" : "map", true);
        assert_int_equal(pthread_create(&thread, NULL, flood, &f), 0);
        sleep_ms(5);
        oct_ring_close(rig.images);
        oct_publisher_destroy(rig.publisher);
        rig.publisher = NULL;
        atomic_store(&f.ends, true);
        pthread_join(thread, NULL);
        zmq_close(rows);
        close_topics(&rig);
    }
}

static void refuse(struct rig *rig, const struct oct_image_form *form, const char *says)
{
    const struct oct_image_source sources[] = {{.form = &map_form, .ring = rig->map},
                                               {.form = form, .ring = rig->rows}};
    struct oct_publisher_options options = options_of(rig);
    struct oct_publisher *publisher;
    struct oct_error err = {.text = ""};
    options.sources = sources;
    options.n_sources = 2;
    assert_int_equal(oct_publisher_create(&publisher, &options, &err), OCT_E_ARG);
    assert_null(publisher);
    if (!strstr(err.text, says))
        fail_msg("'%s' does not say '%s'", err.text, says);
    assert_int_equal(oct_publisher_create(&publisher, &options, NULL), OCT_E_ARG);
}

static void sources_without_a_name_of_their_own_are_refused(void **state)
{
    static const char *const names[] = {"bscan", "spectrum", "map"};
    static const char *const labels[] = {"a", "a label of more than 31 letters", "c",
                                         "a label of more than 31 letters, really"};
    struct rig rig;
    struct oct_image_form form = rows_form;
    open_topics(&rig);
    for (size_t i = 0; i < 3; i++) {
        snprintf(form.name, sizeof(form.name), "%s", names[i]);
        refuse(&rig, &form, "there is a topic of that name already");
    }
    snprintf(form.name, sizeof(form.name), "Big");
    refuse(&rig, &form, "lower-case");
    form = rows_form;
    form.rank = 4;
    refuse(&rig, &form, "axes");
    form.rank = 2;
    form.labels = labels + 1;
    refuse(&rig, &form, "label");
    close_topics(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_topic_comes_with_a_header_that_says_what_it_is),
        cmocka_unit_test(what_cannot_be_sent_is_skipped_and_the_next_comes),
        cmocka_unit_test(what_nobody_wants_is_read_and_dropped),
        cmocka_unit_test(what_is_wanted_follows_the_subscriptions_that_stand),
        cmocka_unit_test(a_result_goes_out_at_once_while_no_picture_comes),
        cmocka_unit_test(a_flood_delays_a_picture_by_one_message_at_most),
        cmocka_unit_test(a_subscriber_that_does_not_read_holds_up_nobody),
        cmocka_unit_test(a_source_that_ends_early_ends_nobody_else),
        cmocka_unit_test(results_after_the_last_picture_are_sent),
        cmocka_unit_test(a_publisher_ends_while_a_source_floods),
        cmocka_unit_test(sources_without_a_name_of_their_own_are_refused),
    };
    return cmocka_run_group_tests_name("topics", tests, NULL, NULL);
}
