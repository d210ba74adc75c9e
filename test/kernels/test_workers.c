/* The worker pool: pieces of analyses, sources that take turns, reconstruction before analysis. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "pipeline/base/clock.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"
#include "test/rig/workers_rig.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

/* ---- pieces of analyses ---- */

static void every_piece_is_done_once_and_before_run_returns(void **state)
{
    static const unsigned threads[] = {1, 2, 3, MOST_TEST_THREADS};
    static const unsigned pieces[] = {0, 1, 2, 3, 8, 100, MOST_PIECES};
    static struct tally tally;
    for (size_t t = 0; t < 4; t++) {
        struct oct_workers *pool = open_pool(threads[t]);
        assert_int_equal(oct_workers_n_threads(pool), threads[t]);
        for (int round = 0; round < ROUNDS / 10; round++)
            for (size_t p = 0; p < 7; p++)
                assert_int_equal(run_tally(pool, &tally, pieces[p], threads[t], 50), 0);
        oct_workers_destroy(pool);
    }
}

static void without_a_pool_the_caller_does_all_as_worker_0(void **state)
{
    static struct tally tally;
    assert_int_equal(run_tally(NULL, &tally, 50, 0, 0), 0);
    assert_int_equal(tally.by[0], 50);
    oct_workers_destroy(NULL);
}

/* Pieces that wait for one another: only so many together end them. */
struct meeting {
    unsigned n_wanted;
    atomic_uint n_here, worker_seen[MOST_TEST_THREADS + 1];
};

static void meet(void *context, unsigned piece, unsigned worker)
{
    struct meeting *m = context;
    (void)piece;
    atomic_fetch_add(&m->worker_seen[worker], 1);
    atomic_fetch_add(&m->n_here, 1);
    wait_for(&m->n_here, m->n_wanted);
}

static void all_workers_but_one_and_the_caller_work_at_once(void **state)
{
    for (unsigned n = 2; n <= MOST_TEST_THREADS; n += 3) {
        struct oct_workers *pool = open_pool(n);
        for (unsigned wanted = 2; wanted <= n; wanted++) {
            struct meeting m = {.n_wanted = wanted};
            oct_workers_run(pool, wanted, meet, &m);
            assert_int_equal(m.worker_seen[n], 1); /* the caller's number */
            for (unsigned w = 0; w < n; w++)
                assert_true(m.worker_seen[w] <= 1);
        }
        oct_workers_destroy(pool);
    }
}

static void several_may_call_at_once(void **state)
{
    static struct caller callers[N_CALLERS];
    for (unsigned n = 1; n <= 5; n += 2) {
        struct oct_workers *pool = open_pool(n);
        start_callers(callers, pool, NULL);
        join_callers(callers);
        oct_workers_destroy(pool);
    }
}

static void a_pool_has_a_worker_for_each_core_unless_told_otherwise(void **state)
{
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
    struct oct_workers *pool = open_pool(0);
    assert_int_equal(oct_workers_n_threads(pool), CPU_COUNT(&set));
    oct_workers_destroy(pool);
    for (int round = 0; round < ROUNDS; round++) /* whatever its threads have come to */
        oct_workers_destroy(open_pool(1 + (unsigned)round % 4));
}

/* ---- reconstruction before analysis ---- */

/* A source whose pieces are handed out one by one by the test, under the pool's lock. */
struct pictures {
    struct oct_work_source source; /* first */
    unsigned n_open;               /* pieces that may be taken */
    atomic_uint n_done;
    char *log; /* what was done, in order: 'A', 'B' */
    atomic_uint *n_log;
    char name;
};

static bool take_picture(struct oct_work_source *source, unsigned worker)
{
    struct pictures *p = (struct pictures *)source;
    (void)worker;
    if (p->n_open == 0)
        return false;
    p->n_open--;
    return true;
}

static void do_picture(struct oct_work_source *source, unsigned worker)
{
    struct pictures *p = (struct pictures *)source;
    (void)worker;
    p->log[atomic_fetch_add(p->n_log, 1)] = p->name;
    atomic_fetch_add(&p->n_done, 1);
}

static const struct oct_work_ops picture_ops = {.take = take_picture, .run = do_picture};

static void open_pictures(struct pictures *p, struct oct_workers *pool, unsigned n)
{
    pthread_mutex_lock(oct_workers_lock(pool));
    p->n_open += n;
    unsigned n_calls = oct_workers_to_call(pool, &p->source, n, 0);
    pthread_mutex_unlock(oct_workers_lock(pool));
    oct_workers_call(pool, n_calls);
}

static struct pictures make_pictures(char name, char *log, atomic_uint *n_log)
{
    return (struct pictures){
        .source = {.ops = &picture_ops}, .log = log, .n_log = n_log, .name = name};
}

/* Pieces of both are there before the only worker looks. */
static void sources_take_turns(void **state)
{
    char log[64] = "";
    atomic_uint n_log = 0;
    struct oct_workers *pool = open_pool(1);
    struct pictures a = make_pictures('A', log, &n_log), b = make_pictures('B', log, &n_log);
    oct_workers_add(pool, &a.source);
    oct_workers_add(pool, &b.source);
    pthread_mutex_lock(oct_workers_lock(pool));
    a.n_open = b.n_open = 3;
    const unsigned n_calls = oct_workers_to_call(pool, &a.source, 6, 0);
    pthread_mutex_unlock(oct_workers_lock(pool));
    oct_workers_call(pool, n_calls);
    wait_for(&a.n_done, 3);
    wait_for(&b.n_done, 3);
    oct_workers_remove(pool, &a.source);
    oct_workers_remove(pool, &b.source);
    oct_workers_destroy(pool);
    log[6] = '\0';
    assert_true(strcmp(log, "ABABAB") == 0 || strcmp(log, "BABABA") == 0);
}

struct holding {
    struct oct_workers *pool;
    atomic_uint n_here, n_most, n_done; /* workers, the caller not among them */
    atomic_bool let_go;
    pthread_t thread;
};

static void hold(void *context, unsigned piece, unsigned worker)
{
    struct holding *h = context;
    (void)piece;
    if (worker < oct_workers_n_threads(h->pool)) {
        unsigned n = atomic_fetch_add(&h->n_here, 1) + 1;
        if (n > h->n_most)
            h->n_most = n;
    }
    while (!h->let_go)
        sleep_us(100);
    if (worker < oct_workers_n_threads(h->pool))
        atomic_fetch_sub(&h->n_here, 1);
    atomic_fetch_add(&h->n_done, 1);
}

static void *run_holding(void *argument)
{
    struct holding *h = argument;
    oct_workers_run(h->pool, 40, hold, h);
    return NULL;
}

/* Whatever others have to do, and however long a piece takes. */
static void a_run_leaves_a_worker_to_others(void **state)
{
    char log[64] = "";
    atomic_uint n_log = 0;
    for (unsigned n = 2; n <= 4; n++) {
        struct oct_workers *pool = open_pool(n);
        struct holding holding = {.pool = pool};
        struct pictures pictures = make_pictures('A', log, &n_log);
        oct_workers_add(pool, &pictures.source);
        assert_int_equal(pthread_create(&holding.thread, NULL, run_holding, &holding), 0);
        wait_for(&holding.n_here, n - 1);
        n_log = 0;
        open_pictures(&pictures, pool, 10);
        wait_for(&pictures.n_done, 10); /* while all the others are held */
        holding.let_go = true;
        assert_int_equal(pthread_join(holding.thread, NULL), 0);
        assert_int_equal(holding.n_done, 40);
        assert_int_equal(holding.n_most, n - 1);
        oct_workers_remove(pool, &pictures.source);
        oct_workers_destroy(pool);
    }
}

static void a_source_is_not_asked_after_it_was_removed(void **state)
{
    struct oct_workers *pool = open_pool(3);
    for (int round = 0; round < ROUNDS; round++) {
        char log[64];
        atomic_uint n_log = 0;
        struct pictures p = {
            .source = {.ops = &picture_ops, .calls_all = round % 2}, .log = log, .n_log = &n_log};
        oct_workers_add(pool, &p.source);
        open_pictures(&p, pool, 30);
        if (round % 4 < 2)
            wait_for(&p.n_done, 1);
        oct_workers_remove(pool, &p.source);
        assert_int_equal(p.n_open + p.n_done, 30); /* none is half done */
        assert_int_equal(p.source.n_at_work, 0);
    }
    oct_workers_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_piece_is_done_once_and_before_run_returns),
        cmocka_unit_test(without_a_pool_the_caller_does_all_as_worker_0),
        cmocka_unit_test(all_workers_but_one_and_the_caller_work_at_once),
        cmocka_unit_test(several_may_call_at_once),
        cmocka_unit_test(a_pool_has_a_worker_for_each_core_unless_told_otherwise),
        cmocka_unit_test(sources_take_turns),
        cmocka_unit_test(a_run_leaves_a_worker_to_others),
        cmocka_unit_test(a_source_is_not_asked_after_it_was_removed),
    };
    return cmocka_run_group_tests_name("workers", tests, NULL, NULL);
}
