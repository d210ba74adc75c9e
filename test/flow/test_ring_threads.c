/* The ring between threads: who waits is woken, and slots hold their pattern whoever reads them. */
#include "pipeline/base/clock.h"
#include "pipeline/flow/ring.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/ring_help.h"
#include "test/rig/tap.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_US UINT64_C(20000000)
#define ROUNDS 6000u

struct waiter {
    struct oct_ring *ring;
    struct oct_ring_reader *reader;
    enum oct_err result;
    uint64_t slot;
    bool was_woken; /* before its time was over */
};

static void *wait_to_read(void *argument)
{
    struct waiter *w = argument;
    const uint64_t begin_ns = oct_clock_ns();
    w->result = oct_ring_read(w->reader, WAIT_US, &w->slot);
    w->was_woken = oct_clock_ns() - begin_ns < WAIT_US * 1000;
    return NULL;
}

static void *wait_to_acquire(void *argument)
{
    struct waiter *w = argument;
    w->result = oct_ring_acquire(w->ring, WAIT_US, &w->slot);
    return NULL;
}

static pthread_t go(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, function, argument), 0);
    return thread;
}

static void join(pthread_t thread)
{
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void wake_publish_and_close_end_the_wait_of_a_reader(void **state)
{
    for (int round = 0; round < 60; round++) {
        struct oct_ring *ring = open_ring(3, 8);
        struct waiter w = {.ring = ring, .reader = add_reader(ring, true, 0)};
        pthread_t thread = go(wait_to_read, &w);
        sleep_us((uint64_t)(round % 5) * 300); /* before it waits, and while */
        if (round % 3 == 0)
            oct_ring_wake(w.reader);
        else if (round % 3 == 1)
            ring_write(ring);
        else
            oct_ring_close(ring);
        join(thread);
        static const enum oct_err wanted[] = {OCT_E_AGAIN, OCT_OK, OCT_E_CLOSED};
        assert_int_equal(w.result, wanted[round % 3]);
        assert_true(w.was_woken);
        oct_ring_destroy(ring);
    }
}

/* A thread that waits for one ring hears of another's. */
static void what_another_ring_publishes_and_its_end_wake_a_reader(void **state)
{
    for (int round = 0; round < 60; round++) {
        struct oct_ring *ring = open_ring(3, 8), *results = open_ring(3, 8);
        struct waiter w = {.ring = ring, .reader = add_reader(ring, true, 0)};
        struct oct_ring_reader *lossy = add_reader(results, false, 1);
        assert_true(oct_ring_reader_wakes(lossy, w.reader));
        pthread_t thread = go(wait_to_read, &w);
        sleep_us((uint64_t)(round % 5) * 300); /* before it waits, and while */
        if (round % 2)
            ring_write(results);
        else
            oct_ring_close(results);
        join(thread);
        assert_true(w.was_woken && w.result == OCT_E_AGAIN);
        ring_expect_nothing(w.reader, OCT_E_AGAIN);
        oct_ring_destroy(round % 4 < 2 ? ring : results);
        oct_ring_destroy(round % 4 < 2 ? results : ring);
    }
}

static void a_reader_wakes_the_last_it_was_told_of_as_long_as_both_are_there(void **state)
{
    struct oct_ring *ring = open_ring(4, 8), *results = open_ring(4, 8);
    struct oct_ring_reader *a = add_reader(ring, true, 0), *b = add_reader(ring, true, 0);
    struct oct_ring_reader *lossy = add_reader(results, false, 1);
    struct oct_ring_reader *other = add_reader(results, false, 1);
    struct waiter w = {.ring = ring, .reader = b};
    assert_true(oct_ring_reader_wakes(lossy, a));
    assert_true(oct_ring_reader_wakes(other, a)); /* by several */
    assert_true(oct_ring_reader_wakes(lossy, b)); /* another now */
    ring_write(results);
    wait_to_read(&w); /* at once: it was woken before */
    assert_true(w.was_woken && w.result == OCT_E_AGAIN);
    oct_ring_reader_destroy(a);
    ring_write(results);
    wait_to_read(&w);
    assert_true(w.was_woken && w.result == OCT_E_AGAIN);
    oct_ring_reader_destroy(lossy);
    ring_write(results);
    const uint64_t begin_ns = oct_clock_ns();
    uint64_t slot;
    assert_int_equal(oct_ring_read(b, 20000, &slot), OCT_E_AGAIN);
    assert_true(oct_clock_ns() - begin_ns >= 20000000); /* nobody woke it */
    oct_ring_destroy(results);
    oct_ring_destroy(ring);
}

struct publishing {
    struct oct_ring *ring;
    atomic_bool ends;
};

static void *publish_all_the_while(void *argument)
{
    struct publishing *p = argument;
    uint64_t slot;
    while (!atomic_load(&p->ends))
        if (oct_ring_acquire(p->ring, 1000, &slot) == OCT_OK)
            oct_ring_publish(p->ring);
    return NULL;
}

static void those_that_wake_and_are_woken_go_while_others_publish(void **state)
{
    struct oct_ring *ring = open_ring(4, 8);
    struct publishing p = {.ring = open_ring(4, 8)};
    pthread_t thread = go(publish_all_the_while, &p);
    for (int round = 0; round < 2000; round++) {
        struct oct_ring_reader *sleeper = add_reader(ring, true, 0);
        struct oct_ring_reader *lossy = add_reader(p.ring, false, 1);
        assert_true(oct_ring_reader_wakes(lossy, sleeper));
        assert_true(oct_ring_reader_wakes(lossy, sleeper));
        oct_ring_reader_destroy(round % 2 ? sleeper : lossy);
        oct_ring_reader_destroy(round % 2 ? lossy : sleeper);
    }
    atomic_store(&p.ends, true);
    join(thread);
    oct_ring_destroy(p.ring);
    oct_ring_destroy(ring);
}

static void release_close_and_a_leaving_reader_end_the_wait_of_the_writer(void **state)
{
    for (int round = 0; round < 60; round++) {
        struct oct_ring *ring = open_ring(3, 8);
        struct oct_ring_reader *reader = add_reader(ring, true, 0);
        struct waiter w = {.ring = ring};
        for (int i = 0; i < 3; i++)
            ring_write(ring);
        ring_expect_slot(reader, 0);
        pthread_t thread = go(wait_to_acquire, &w);
        sleep_us((uint64_t)(round % 5) * 300);
        if (round % 3 == 0)
            oct_ring_release(reader);
        else if (round % 3 == 1)
            oct_ring_reader_destroy(reader);
        else
            oct_ring_close(ring);
        join(thread);
        assert_int_equal(w.result, round % 3 == 2 ? OCT_E_CLOSED : OCT_OK);
        oct_ring_destroy(ring);
    }
}

static void who_acquires_hears_of_what_another_publishes(void **state)
{
    for (int round = 0; round < 20; round++) {
        struct oct_ring *ring = open_ring(4, 8);
        struct waiter w = {.ring = ring};
        uint64_t slot, begin_ns = oct_clock_ns();
        for (int i = 0; i < 4; i++)
            assert_int_equal(oct_ring_acquire(ring, 0, &slot), OCT_OK);
        pthread_t thread = go(wait_to_acquire, &w); /* all are being filled */
        sleep_us((uint64_t)(round % 5) * 300);
        oct_ring_publish(ring);
        oct_ring_publish(ring); /* now the first is not the newest any more */
        join(thread);
        assert_int_equal(w.result, OCT_OK);
        assert_int_equal(w.slot, 4);
        /* Told, not found at the end of its patience. */
        assert_true(oct_clock_ns() - begin_ns < UINT64_C(500) * WAIT_US);
        oct_ring_destroy(ring);
    }
}

/* A thread is stopped wherever it is, as one is that yields and gets no processor. */
static struct {
    int let_go[2];
    atomic_uint n_stopped, n_gone_on, n_wrong;
    struct oct_ring *ring; /* the reader's, and the one that it writes to */
    struct oct_ring_reader *reader;
    struct oct_ring *results;
    atomic_bool ends;
} yielding;

static void stop_here(int number)
{
    char byte;
    (void)number;
    atomic_fetch_add(&yielding.n_stopped, 1);
    ssize_t n = read(yielding.let_go[0], &byte, 1);
    atomic_fetch_add(&yielding.n_gone_on, n == 1);
}

/* As a stage: reads one ring, writes to another. Nearly all its time is spent in there. */
static void *read_and_write_all_the_while(void *argument)
{
    uint64_t slot, content;
    (void)argument;
    while (!atomic_load(&yielding.ends)) {
        if (oct_ring_read(yielding.reader, 0, &slot) == OCT_OK) {
            memcpy(&content, oct_ring_held(yielding.reader), sizeof(content));
            atomic_fetch_add(&yielding.n_wrong, content != slot);
            oct_ring_release(yielding.reader);
        }
        if (oct_ring_acquire(yielding.results, 0, &slot) == OCT_OK)
            oct_ring_publish(yielding.results);
    }
    return NULL;
}

static void wait_for_count(atomic_uint *count, unsigned wanted)
{
    while (atomic_load(count) < wanted)
        sleep_us(10);
}

static void *stop_now_and_then(void *thread)
{
    struct dice dice = {41};
    for (unsigned round = 1; round <= ROUNDS; round++) {
        sleep_us(dice_below(&dice, 100));
        pthread_kill(*(pthread_t *)thread, SIGUSR2);
        wait_for_count(&yielding.n_gone_on, round);
    }
    return NULL;
}

static void write_and_read(struct oct_ring_reader *pictures)
{
    uint64_t slot;
    ring_write(yielding.ring);
    assert_int_equal(oct_ring_read(pictures, 0, &slot), OCT_OK);
    oct_ring_release(pictures);
}

/* What publisher, recorder and status do meanwhile. A lock that the stopped thread holds would keep
 * them here for ever. */
static void go_on(struct oct_ring_reader *pictures, struct oct_ring_reader *results)
{
    uint64_t slot;
    for (unsigned i = 0; i < 20; i++) {
        write_and_read(pictures);
        if (oct_ring_read(results, 0, &slot) == OCT_OK)
            oct_ring_release(results);
    }
    assert_true(oct_ring_behind(yielding.reader) + oct_ring_skipped(yielding.reader) <=
                oct_ring_published(yielding.ring));
    assert_true(oct_ring_done_below(yielding.ring) <= oct_ring_published(yielding.ring));
    oct_ring_published(yielding.results);
}

static void a_thread_that_is_stopped_anywhere_holds_up_nobody(void **state)
{
    const struct sigaction action = {.sa_handler = stop_here};
    assert_int_equal(sigaction(SIGUSR2, &action, NULL), 0);
    assert_int_equal(pipe(yielding.let_go), 0);
    yielding.ring = open_ring(5, 8);
    yielding.results = open_ring(5, 8);
    yielding.reader = add_reader(yielding.ring, false, 2);
    struct oct_ring_reader *pictures = add_reader(yielding.ring, true, 0);
    struct oct_ring_reader *results = add_reader(yielding.results, false, 2);
    assert_true(oct_ring_reader_wakes(results, pictures));
    alarm(300); /* ends what waits for ever */
    pthread_t thread = go(read_and_write_all_the_while, NULL);
    pthread_t stopper = go(stop_now_and_then, &thread);
    for (unsigned round = 1; round <= ROUNDS;) {
        write_and_read(pictures);
        if (atomic_load(&yielding.n_stopped) < round)
            continue;
        go_on(pictures, results);
        assert_int_equal(write(yielding.let_go[1], "", 1), 1);
        round++;
    }
    join(stopper);
    alarm(0);
    atomic_store(&yielding.ends, true);
    join(thread);
    assert_int_equal(yielding.n_wrong, 0);
    close(yielding.let_go[0]);
    close(yielding.let_go[1]);
    oct_ring_destroy(yielding.results);
    oct_ring_destroy(yielding.ring);
}

#define WORDS 600 /* of a slot: more than a page, so that a torn one shows */
#define STRESS_SLOTS 5000u

struct stress {
    struct oct_ring *ring;
    atomic_bool ended;
    atomic_uint_fast64_t wrong;
};

static void fill(uint64_t *words, uint64_t slot)
{
    for (uint64_t i = 0; i < WORDS; i++)
        words[i] = slot * 1000003 + i;
}

static uint64_t count_wrong(const uint64_t *words, uint64_t slot)
{
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < WORDS; i++)
        wrong += words[i] != slot * 1000003 + i;
    return wrong;
}

static void *write_all(void *argument)
{
    struct stress *s = argument;
    struct dice dice = {21};
    uint64_t n_acquired = 0, n_published = 0;
    while (n_published < STRESS_SLOTS) {
        uint64_t slot;
        unsigned ahead = 1 + dice_below(&dice, 2);
        while (n_acquired < STRESS_SLOTS && n_acquired - n_published < ahead) {
            enum oct_err e = oct_ring_acquire(s->ring, 100, &slot);
            if (e)
                break;
            s->wrong += slot != n_acquired;
            n_acquired++;
            fill(oct_ring_payload(s->ring, slot), slot);
        }
        for (; n_published < n_acquired; n_published++)
            oct_ring_publish(s->ring);
    }
    oct_ring_close(s->ring);
    return NULL;
}

struct stress_reader {
    struct stress *stress;
    struct oct_ring_reader *reader;
    unsigned most_held;
    uint64_t seed, n_read;
};

/* Holds up to most_held slots, checks each when it comes and again before it goes. */
static void *read_all(void *argument)
{
    struct stress_reader *r = argument;
    struct stress *s = r->stress;
    struct dice dice = {r->seed};
    uint64_t held[4], expected = 0;
    unsigned n_held = 0;
    for (;;) {
        uint64_t slot;
        enum oct_err e = oct_ring_read(r->reader, n_held ? 0 : 10000, &slot);
        if (e == OCT_E_CLOSED && n_held == 0)
            break;
        if (e == OCT_OK) {
            s->wrong += slot < expected;
            expected = slot + 1;
            s->wrong += count_wrong(oct_ring_held(r->reader), slot);
            held[n_held++] = slot;
            r->n_read++;
        }
        if (dice_below(&dice, 64) == 0)
            sleep_us(200); /* falls behind */
        if (n_held && (e || n_held >= r->most_held)) {
            s->wrong += count_wrong(r->most_held > 1 ? oct_ring_payload(s->ring, held[0])
                                                     : oct_ring_held(r->reader),
                                    held[0]);
            memmove(held, held + 1, --n_held * sizeof(held[0]));
            oct_ring_release(r->reader);
        }
    }
    return NULL;
}

/* Readers that come and go. */
static void *visit(void *argument)
{
    struct stress *s = argument;
    struct dice dice = {31};
    while (!s->ended) {
        bool guaranteed = dice_below(&dice, 2);
        struct oct_ring_reader *reader = oct_ring_reader_create(s->ring, guaranteed, 2);
        uint64_t slot;
        for (uint32_t n = dice_below(&dice, 20); reader && n > 0; n--) {
            if (oct_ring_read(reader, 100, &slot))
                continue;
            s->wrong += count_wrong(oct_ring_held(reader), slot);
            if (n > 1)
                oct_ring_release(reader); /* the last stays held when it goes */
        }
        oct_ring_reader_destroy(reader);
    }
    return NULL;
}

static void stress(unsigned n_slots)
{
    struct stress s = {.ring = open_ring(n_slots, WORDS * 8)};
    struct stress_reader readers[4];
    pthread_t threads[4];
    for (unsigned i = 0; i < 4; i++)
        readers[i] = (struct stress_reader){
            .stress = &s,
            .reader = add_reader(s.ring, i < 2, i == 2 ? 1 : n_slots),
            .most_held = i == 1 ? 2 : 1,
            .seed = 100 + i,
        };
    for (unsigned i = 0; i < 4; i++)
        threads[i] = go(read_all, &readers[i]);
    pthread_t visitor = go(visit, &s), writer = go(write_all, &s);
    join(writer);
    for (unsigned i = 0; i < 4; i++)
        join(threads[i]);
    s.ended = true;
    join(visitor);
    assert_int_equal(s.wrong, 0);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(readers[i].n_read + oct_ring_skipped(readers[i].reader), STRESS_SLOTS);
    assert_int_equal(readers[0].n_read, STRESS_SLOTS);
    assert_int_equal(readers[1].n_read, STRESS_SLOTS);
    oct_ring_destroy(s.ring);
}

static void no_slot_changes_under_anyone_in_the_smallest_ring(void **state)
{
    stress(3);
}

static void no_slot_changes_under_anyone_in_a_larger_ring(void **state)
{
    stress(16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_that_is_stopped_anywhere_holds_up_nobody),
        cmocka_unit_test(wake_publish_and_close_end_the_wait_of_a_reader),
        cmocka_unit_test(what_another_ring_publishes_and_its_end_wake_a_reader),
        cmocka_unit_test(a_reader_wakes_the_last_it_was_told_of_as_long_as_both_are_there),
        cmocka_unit_test(those_that_wake_and_are_woken_go_while_others_publish),
        cmocka_unit_test(who_acquires_hears_of_what_another_publishes),
        cmocka_unit_test(release_close_and_a_leaving_reader_end_the_wait_of_the_writer),
        cmocka_unit_test(no_slot_changes_under_anyone_in_the_smallest_ring),
        cmocka_unit_test(no_slot_changes_under_anyone_in_a_larger_ring),
    };
    return cmocka_run_group_tests_name("ring threads", tests, NULL, NULL);
}
