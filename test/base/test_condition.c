/* Timed waits on CLOCK_MONOTONIC. */
#include "test/rig/tap.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/condition.h"

struct room {
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool is_there;
};

static int set_up(void **state)
{
    static struct room room;
    room.is_there = false;
    pthread_mutex_init(&room.lock, NULL);
    oct_condition_init(&room.news);
    *state = &room;
    return 0;
}

static int tear_down(void **state)
{
    struct room *room = *state;
    pthread_cond_destroy(&room->news);
    pthread_mutex_destroy(&room->lock);
    return 0;
}

/* On CLOCK_REALTIME a deadline of CLOCK_MONOTONIC lies decades back: the wait would end at once. */
TEST_WITH(a_wait_lasts_its_time_and_says_that_it_ran_out, set_up, tear_down)
{
    struct room *room = *state;
    uint64_t begin_ns = oct_clock_ns();
    pthread_mutex_lock(&room->lock);
    while (oct_condition_wait_us(&room->news, &room->lock, 30000))
        ; /* spurious */
    assert_true(oct_clock_ns() - begin_ns >= UINT64_C(30000000));
    pthread_mutex_unlock(&room->lock);
}

TEST_WITH(a_deadline_that_has_passed_ends_the_wait_at_once, set_up, tear_down)
{
    struct room *room = *state;
    struct timespec deadline = oct_clock_deadline(0);
    pthread_mutex_lock(&room->lock);
    assert_false(oct_condition_wait_until(&room->news, &room->lock, &deadline));
    pthread_mutex_unlock(&room->lock);
}

static void *bring(void *argument)
{
    struct room *room = argument;
    pthread_mutex_lock(&room->lock);
    room->is_there = true;
    pthread_cond_signal(&room->news);
    pthread_mutex_unlock(&room->lock);
    return NULL;
}

TEST_WITH(news_end_the_wait_before_its_time, set_up, tear_down)
{
    struct room *room = *state;
    struct timespec deadline = oct_clock_deadline(TEST_PATIENCE_US);
    pthread_t thread;
    bool in_time = true;
    pthread_mutex_lock(&room->lock);
    assert_int_equal(pthread_create(&thread, NULL, bring, room), 0);
    while (!room->is_there && in_time)
        in_time = oct_condition_wait_until(&room->news, &room->lock, &deadline);
    pthread_mutex_unlock(&room->lock);
    pthread_join(thread, NULL);
    assert_true(in_time);
}
