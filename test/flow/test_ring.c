/* The ring: order, owners, loss, closing; then the same with threads that write and check
 * patterns. */
#include "pipeline/base/clock.h"
#include "pipeline/flow/ring.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static void write_slot(struct oct_ring *ring)
{
    uint64_t slot;
    assert_int_equal(oct_ring_acquire(ring, 0, &slot), OCT_OK);
    memcpy(oct_ring_payload(ring, slot), &slot, sizeof(slot));
    oct_ring_publish(ring);
}

static void expect_full(struct oct_ring *ring)
{
    uint64_t slot = 77;
    assert_int_equal(oct_ring_acquire(ring, 1000, &slot), OCT_E_AGAIN);
    assert_int_equal(slot, 77);
}

static void expect_slot(struct oct_ring *ring, struct oct_ring_reader *reader, uint64_t wanted)
{
    uint64_t slot, content;
    assert_int_equal(oct_ring_read(reader, 0, &slot), OCT_OK);
    assert_int_equal(slot, wanted);
    memcpy(&content, oct_ring_payload(ring, slot), sizeof(content));
    assert_int_equal(content, wanted);
}

static void expect_nothing(struct oct_ring_reader *reader, enum oct_err why)
{
    uint64_t slot;
    assert_int_equal(oct_ring_read(reader, 0, &slot), why);
}

static void slots_come_in_order_and_a_guaranteed_reader_is_never_overtaken(void **state)
{
    struct oct_ring *ring = open_ring(4, 8);
    struct oct_ring_reader *reader = add_reader(ring, true, 0);
    (void)state;
    expect_nothing(reader, OCT_E_AGAIN);
    for (uint64_t lap = 0; lap < 5; lap++) {
        for (int i = 0; i < 4; i++)
            write_slot(ring);
        expect_full(ring);
        assert_int_equal(oct_ring_behind(reader), 4);
        for (uint64_t i = 0; i < 4; i++) {
            assert_int_equal(oct_ring_next(reader), lap * 4 + i);
            expect_slot(ring, reader, lap * 4 + i);
            if (i == 0)
                expect_full(ring); /* read is not yet released */
            oct_ring_release(reader);
        }
        expect_nothing(reader, OCT_E_AGAIN);
    }
    assert_int_equal(oct_ring_published(ring), 20);
    assert_int_equal(oct_ring_skipped(reader), 0);
    assert_int_equal(oct_ring_n_slots(ring), 4);
    oct_ring_reader_destroy(reader);
    oct_ring_destroy(ring);
}

static void a_full_ring_lets_the_writer_wait_its_time(void **state)
{
    struct oct_ring *ring = open_ring(3, 8);
    uint64_t slot;
    (void)state;
    add_reader(ring, true, 0);
    for (int i = 0; i < 3; i++)
        write_slot(ring);
    uint64_t begin_ns = oct_clock_ns();
    assert_int_equal(oct_ring_acquire(ring, 20000, &slot), OCT_E_AGAIN);
    assert_true(oct_clock_ns() - begin_ns >= 20000000);
    oct_ring_destroy(ring); /* the reader goes with it */
}

static void a_lossy_reader_skips_to_the_newest_and_is_charged(void **state)
{
    struct oct_ring *ring = open_ring(8, 8);
    struct oct_ring_reader *near = add_reader(ring, false, 3), *far = add_reader(ring, false, 100);
    (void)state;
    for (int i = 0; i < 3; i++)
        write_slot(ring);
    expect_slot(ring, near, 0); /* three behind is not more than three */
    oct_ring_release(near);
    for (int i = 0; i < 2; i++)
        write_slot(ring);
    expect_slot(ring, near, 4); /* four behind is */
    oct_ring_release(near);
    assert_int_equal(oct_ring_skipped(near), 3);
    expect_slot(ring, far, 0); /* may be far behind, as long as the slot is there */
    oct_ring_release(far);
    for (int i = 0; i < 4; i++)
        write_slot(ring); /* the ninth takes the place of slot 0 */
    expect_slot(ring, far, 1);
    oct_ring_release(far);
    for (int i = 0; i < 2; i++)
        write_slot(ring); /* the eleventh that of slot 2: gone */
    assert_int_equal(oct_ring_published(ring), 11);
    expect_slot(ring, far, 10);
    oct_ring_release(far);
    assert_int_equal(oct_ring_skipped(far), 8);
    assert_int_equal(oct_ring_behind(far), 0);
    oct_ring_destroy(ring);
}

static void what_a_lossy_reader_holds_is_never_overwritten(void **state)
{
    struct oct_ring *ring = open_ring(5, 8);
    struct oct_ring_reader *reader = add_reader(ring, false, 1);
    (void)state;
    write_slot(ring);
    expect_slot(ring, reader, 0);
    for (int i = 1; i < 5; i++)
        write_slot(ring);
    expect_full(ring);
    /* Several at once: it does not skip then, and each stays its own until it is released. */
    expect_slot(ring, reader, 1);
    expect_slot(ring, reader, 2);
    expect_full(ring);
    oct_ring_release(reader);
    write_slot(ring);
    expect_full(ring);
    oct_ring_release(reader);
    write_slot(ring);
    expect_full(ring);
    oct_ring_release(reader);
    write_slot(ring);
    expect_slot(ring, reader, 7); /* nothing held: it skips again, 3 .. 6 */
    assert_int_equal(oct_ring_skipped(reader), 4);
    oct_ring_release(reader);
    for (int i = 0; i < 3; i++)
        write_slot(ring);
    expect_slot(ring, reader, 10);
    for (int i = 0; i < 4; i++)
        write_slot(ring);
    expect_full(ring); /* its books are right after all that */
    oct_ring_release(reader);
    write_slot(ring);
    oct_ring_destroy(ring);
}

static void without_readers_the_writer_goes_on_and_the_newest_stays(void **state)
{
    struct oct_ring *ring = open_ring(3, 8);
    (void)state;
    for (int i = 0; i < 10; i++)
        write_slot(ring);
    uint64_t slot, newest;
    /* Acquired slots never reach the newest published one: someone may just be taking it. */
    assert_int_equal(oct_ring_acquire(ring, 0, &slot), OCT_OK);
    assert_int_equal(oct_ring_acquire(ring, 0, &slot), OCT_OK);
    expect_full(ring);
    memcpy(&newest, oct_ring_payload(ring, 9), sizeof(newest));
    assert_int_equal(newest, 9);
    oct_ring_destroy(ring);
}

static void several_acquired_slots_are_published_in_their_order(void **state)
{
    struct oct_ring *ring = open_ring(3, 8);
    struct oct_ring_reader *reader = add_reader(ring, true, 0);
    (void)state;
    for (uint64_t lap = 0; lap < 20; lap++) {
        uint64_t slots[3];
        /* The first lap may take all; later the newest slot stays readable. */
        unsigned n = lap ? 2 : 3;
        for (unsigned i = 0; i < n; i++)
            assert_int_equal(oct_ring_acquire(ring, 0, &slots[i]), OCT_OK);
        expect_full(ring);
        for (unsigned i = n; i-- > 0;) /* filled in any order */
            memcpy(oct_ring_payload(ring, slots[i]), &slots[i], sizeof(slots[i]));
        for (unsigned i = 0; i < n; i++) {
            expect_nothing(reader, OCT_E_AGAIN);
            oct_ring_publish(ring);
            expect_slot(ring, reader, slots[i]);
            oct_ring_release(reader);
        }
    }
    oct_ring_destroy(ring);
}

/* Whatever readers do: slots below are held by none, and none gets one later. */
static void what_no_reader_can_get_any_more_is_done(void **state)
{
    struct oct_ring *ring = open_ring(8, 8);
    struct oct_ring_reader *readers[3] = {add_reader(ring, true, 0), add_reader(ring, false, 1),
                                          add_reader(ring, false, 5)};
    uint64_t held[3][64] = {{0}}, below = 0, slot;
    unsigned n_held[3] = {0}, n_done = 0;
    struct dice dice = {11};
    (void)state;
    assert_int_equal(oct_ring_done_below(ring), 0);
    for (int step = 0; step < 20000; step++) {
        unsigned who = dice_below(&dice, 3), what = dice_below(&dice, 4);
        if (what < 2) {
            if (oct_ring_acquire(ring, 0, &slot) == OCT_OK)
                oct_ring_publish(ring);
        } else if (what == 2 && oct_ring_read(readers[who], 0, &slot) == OCT_OK) {
            assert_true(slot >= below);
            held[who][n_held[who]++] = slot;
        } else if (what == 3 && n_held[who]) {
            oct_ring_release(readers[who]);
            memmove(held[who], held[who] + 1, --n_held[who] * sizeof(slot));
        }
        uint64_t now = oct_ring_done_below(ring);
        assert_true(now >= below && now <= oct_ring_published(ring));
        for (unsigned k = 0; k < 3; k++)
            assert_true(n_held[k] == 0 || now <= held[k][0]);
        n_done += now > below;
        below = now;
    }
    assert_true(n_done > 100);
    for (unsigned k = 0; k < 3; k++)
        oct_ring_reader_destroy(readers[k]);
    assert_int_equal(oct_ring_done_below(ring), oct_ring_published(ring));
    oct_ring_destroy(ring);
}

static void a_closed_ring_is_read_to_the_end(void **state)
{
    struct oct_ring *ring = open_ring(4, 8);
    struct oct_ring_reader *sure = add_reader(ring, true, 0), *lossy = add_reader(ring, false, 9);
    uint64_t slot;
    (void)state;
    write_slot(ring);
    write_slot(ring);
    oct_ring_close(ring);
    assert_int_equal(oct_ring_acquire(ring, 1000000, &slot), OCT_E_CLOSED);
    for (uint64_t i = 0; i < 2; i++) {
        expect_slot(ring, sure, i);
        oct_ring_release(sure);
        expect_slot(ring, lossy, i);
        oct_ring_release(lossy);
    }
    expect_nothing(sure, OCT_E_CLOSED);
    expect_nothing(lossy, OCT_E_CLOSED);
    oct_ring_wake(sure);
    expect_nothing(sure, OCT_E_CLOSED);
    oct_ring_close(ring); /* again: fine */
    struct oct_ring_reader *late = add_reader(ring, true, 0);
    expect_nothing(late, OCT_E_CLOSED);
    oct_ring_destroy(ring);
}

static void a_reader_begins_with_what_is_published_next(void **state)
{
    struct oct_ring *ring = open_ring(4, 8);
    uint64_t slot;
    (void)state;
    write_slot(ring);
    assert_int_equal(oct_ring_acquire(ring, 0, &slot), OCT_OK); /* being filled: it will see it */
    struct oct_ring_reader *reader = add_reader(ring, true, 0);
    assert_int_equal(oct_ring_next(reader), 1);
    memcpy(oct_ring_payload(ring, slot), &slot, sizeof(slot));
    oct_ring_publish(ring);
    expect_slot(ring, reader, 1);
    write_slot(ring);
    write_slot(ring);
    write_slot(ring);
    expect_full(ring); /* it still holds slot 1 */
    oct_ring_reader_destroy(reader);
    write_slot(ring); /* what it held is free when it goes */
    oct_ring_reader_destroy(NULL);
    oct_ring_destroy(ring);
    oct_ring_destroy(NULL);
}

static void numbers_beyond_32_bits_find_their_slot(void **state)
{
    struct oct_ring *ring = open_ring(7, 5000);
    (void)state;
    for (uint64_t base = UINT32_MAX - 8ull; base < UINT32_MAX + 8ull; base++)
        assert_ptr_equal(oct_ring_payload(ring, base), oct_ring_payload(ring, base % 7));
    for (uint64_t i = 0; i < 7; i++) {
        uintptr_t at = (uintptr_t)oct_ring_payload(ring, i);
        assert_int_equal(at % 4096, 0);
        memset(oct_ring_payload(ring, i), 1, 5000);
    }
    oct_ring_destroy(ring);
}

/* ---- threads ---- */

#define WAIT_US UINT64_C(20000000)

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
    (void)state;
    for (int round = 0; round < 60; round++) {
        struct oct_ring *ring = open_ring(3, 8);
        struct waiter w = {.ring = ring, .reader = add_reader(ring, true, 0)};
        pthread_t thread = go(wait_to_read, &w);
        sleep_us((uint64_t)(round % 5) * 300); /* before it waits, and while */
        if (round % 3 == 0)
            oct_ring_wake(w.reader);
        else if (round % 3 == 1)
            write_slot(ring);
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
    (void)state;
    for (int round = 0; round < 60; round++) {
        struct oct_ring *ring = open_ring(3, 8), *results = open_ring(3, 8);
        struct waiter w = {.ring = ring, .reader = add_reader(ring, true, 0)};
        struct oct_ring_reader *lossy = add_reader(results, false, 1);
        assert_true(oct_ring_reader_wakes(lossy, w.reader));
        pthread_t thread = go(wait_to_read, &w);
        sleep_us((uint64_t)(round % 5) * 300); /* before it waits, and while */
        if (round % 2)
            write_slot(results);
        else
            oct_ring_close(results);
        join(thread);
        assert_true(w.was_woken && w.result == OCT_E_AGAIN);
        expect_nothing(w.reader, OCT_E_AGAIN);
        oct_ring_destroy(round % 4 < 2 ? ring : results);
        oct_ring_destroy(round % 4 < 2 ? results : ring);
    }
}

static void a_reader_wakes_the_last_it_was_told_of_as_long_as_both_are_there(void **state)
{
    (void)state;
    struct oct_ring *ring = open_ring(4, 8), *results = open_ring(4, 8);
    struct oct_ring_reader *a = add_reader(ring, true, 0), *b = add_reader(ring, true, 0);
    struct oct_ring_reader *lossy = add_reader(results, false, 1);
    struct oct_ring_reader *other = add_reader(results, false, 1);
    struct waiter w = {.ring = ring, .reader = b};
    assert_true(oct_ring_reader_wakes(lossy, a));
    assert_true(oct_ring_reader_wakes(other, a)); /* by several */
    assert_true(oct_ring_reader_wakes(lossy, b)); /* another now */
    write_slot(results);
    wait_to_read(&w); /* at once: it was woken before */
    assert_true(w.was_woken && w.result == OCT_E_AGAIN);
    oct_ring_reader_destroy(a);
    write_slot(results);
    wait_to_read(&w);
    assert_true(w.was_woken && w.result == OCT_E_AGAIN);
    oct_ring_reader_destroy(lossy);
    write_slot(results);
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
    (void)state;
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
    (void)state;
    for (int round = 0; round < 60; round++) {
        struct oct_ring *ring = open_ring(3, 8);
        struct oct_ring_reader *reader = add_reader(ring, true, 0);
        struct waiter w = {.ring = ring};
        for (int i = 0; i < 3; i++)
            write_slot(ring);
        expect_slot(ring, reader, 0);
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
    (void)state;
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
            s->wrong += count_wrong(oct_ring_payload(s->ring, slot), slot);
            held[n_held++] = slot;
            r->n_read++;
        }
        if (dice_below(&dice, 64) == 0)
            sleep_us(200); /* falls behind */
        if (n_held && (e || n_held >= r->most_held)) {
            s->wrong += count_wrong(oct_ring_payload(s->ring, held[0]), held[0]);
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
            s->wrong += count_wrong(oct_ring_payload(s->ring, slot), slot);
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
            .most_held = 1 + i % 2,
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
    (void)state;
    stress(3);
}

static void no_slot_changes_under_anyone_in_a_larger_ring(void **state)
{
    (void)state;
    stress(16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_come_in_order_and_a_guaranteed_reader_is_never_overtaken),
        cmocka_unit_test(a_full_ring_lets_the_writer_wait_its_time),
        cmocka_unit_test(a_lossy_reader_skips_to_the_newest_and_is_charged),
        cmocka_unit_test(what_a_lossy_reader_holds_is_never_overwritten),
        cmocka_unit_test(without_readers_the_writer_goes_on_and_the_newest_stays),
        cmocka_unit_test(several_acquired_slots_are_published_in_their_order),
        cmocka_unit_test(a_closed_ring_is_read_to_the_end),
        cmocka_unit_test(what_no_reader_can_get_any_more_is_done),
        cmocka_unit_test(a_reader_begins_with_what_is_published_next),
        cmocka_unit_test(numbers_beyond_32_bits_find_their_slot),
        cmocka_unit_test(wake_publish_and_close_end_the_wait_of_a_reader),
        cmocka_unit_test(what_another_ring_publishes_and_its_end_wake_a_reader),
        cmocka_unit_test(a_reader_wakes_the_last_it_was_told_of_as_long_as_both_are_there),
        cmocka_unit_test(those_that_wake_and_are_woken_go_while_others_publish),
        cmocka_unit_test(who_acquires_hears_of_what_another_publishes),
        cmocka_unit_test(release_close_and_a_leaving_reader_end_the_wait_of_the_writer),
        cmocka_unit_test(no_slot_changes_under_anyone_in_the_smallest_ring),
        cmocka_unit_test(no_slot_changes_under_anyone_in_a_larger_ring),
    };
    return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
