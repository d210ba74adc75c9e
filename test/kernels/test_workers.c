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
    (void)state;
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
    (void)state;
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
    (void)state;
    for (unsigned n = 1; n <= MOST_TEST_THREADS; n += 4) {
        struct oct_workers *pool = open_pool(n);
        for (unsigned wanted = 2; wanted <= (n > 1 ? n : 2); wanted++) {
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
    (void)state;
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
    (void)state;
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

/* An analysis of two pieces: its first holds whoever does it until the test lets go. */
struct analysis {
    struct oct_workers *pool;
    pthread_t thread;
    unsigned n_pieces;
    bool in_turn;
    atomic_uint n_begun;
    atomic_bool let_go;
    char *log;
    atomic_uint *n_log;
};

static void do_analysis(void *context, unsigned piece, unsigned worker)
{
    struct analysis *a = context;
    (void)piece;
    if (worker == oct_workers_n_threads(a->pool)) { /* the caller: not what is looked at */
        while (!a->let_go)
            sleep_us(100);
        return;
    }
    if (atomic_fetch_add(&a->n_begun, 1) == 0)
        while (!a->let_go)
            sleep_us(100);
    a->log[atomic_fetch_add(a->n_log, 1)] = 'a';
}

static void *run_analysis(void *argument)
{
    struct analysis *a = argument;
    (a->in_turn ? oct_workers_run_in_turn : oct_workers_run)(a->pool, a->n_pieces, do_analysis, a);
    return NULL;
}

/* Until a worker is at its first piece. */
static void begin_analysis(struct analysis *a)
{
    assert_int_equal(pthread_create(&a->thread, NULL, run_analysis, a), 0);
    wait_for(&a->n_begun, 1);
}

static void end_analysis(struct analysis *a)
{
    a->let_go = true;
    assert_int_equal(pthread_join(a->thread, NULL), 0);
}

static struct pictures make_pictures(char name, char *log, atomic_uint *n_log)
{
    return (struct pictures){.source = {.ops = &picture_ops, .rank = OCT_WORK_PICTURES},
                             .log = log,
                             .n_log = n_log,
                             .name = name};
}

/* The only worker is at a piece of an analysis, of which more wait, when B-scans come. */
static void pieces_of_pictures_go_before_those_of_analyses(void **state)
{
    char log[64] = "";
    atomic_uint n_log = 0;
    (void)state;
    struct oct_workers *pool = open_pool(1);
    struct pictures a = make_pictures('A', log, &n_log), b = make_pictures('B', log, &n_log);
    struct analysis analysis = {.pool = pool, .n_pieces = 6, .log = log, .n_log = &n_log};
    oct_workers_add(pool, &a.source);
    oct_workers_add(pool, &b.source);
    begin_analysis(&analysis);
    open_pictures(&a, pool, 3);
    open_pictures(&b, pool, 3);
    end_analysis(&analysis);
    wait_for(&b.n_done, 3);
    oct_workers_remove(pool, &a.source);
    oct_workers_remove(pool, &b.source);
    oct_workers_destroy(pool);
    /* The piece that was begun is finished; then pictures, in turn. The caller took one, and maybe
     * more of what is left then. */
    log[7] = '\0';
    assert_string_equal(log, "aABABAB");
}

/* ---- pieces in turn ---- */

struct turns {
    struct oct_workers *pool;
    unsigned n_pieces, n_threads;
    unsigned done[MOST_PIECES]; /* by place, the piece + 1 */
    unsigned n_done;            /* without atomics: no two pieces at once, and read after the run */
    atomic_uint n_inside, n_wrong;
    bool by_caller; /* allowed, as worker 0 */
    pthread_t caller;
};

static void take_turn(void *context, unsigned piece, unsigned worker)
{
    struct turns *t = context;
    bool is_caller = pthread_equal(pthread_self(), t->caller);
    bool is_wrong = atomic_fetch_add(&t->n_inside, 1) != 0 || is_caller != t->by_caller ||
                    worker >= t->n_threads || piece >= t->n_pieces;
    atomic_fetch_add(&t->n_wrong, is_wrong);
    if (!is_wrong)
        t->done[t->n_done++] = piece + 1;
    atomic_fetch_sub(&t->n_inside, 1);
}

static void *take_turns(void *argument)
{
    struct turns *t = argument;
    t->caller = pthread_self();
    for (int round = 0; round < ROUNDS / 10; round++) {
        t->n_done = 0;
        oct_workers_run_in_turn(t->pool, t->n_pieces, take_turn, t);
        bool is_wrong = t->n_done != t->n_pieces;
        for (unsigned k = 0; k < t->n_done; k++)
            is_wrong = is_wrong || t->done[k] != k + 1;
        atomic_fetch_add(&t->n_wrong, is_wrong);
    }
    return NULL;
}

/* Several callers at once: workers that have finished a piece of one look at those of others. */
static void pieces_in_turn_are_done_by_workers_in_their_order(void **state)
{
    static const unsigned threads[] = {0, 1, 2, MOST_TEST_THREADS}, pieces[] = {0, 1, 2, 100};
    static struct turns turns[N_CALLERS];
    pthread_t callers[N_CALLERS];
    (void)state;
    for (size_t i = 0; i < 16; i++) {
        const unsigned n_threads = threads[i / 4];
        struct oct_workers *pool = n_threads ? open_pool(n_threads) : NULL;
        for (size_t c = 0; c < N_CALLERS; c++) {
            turns[c] = (struct turns){.pool = pool,
                                      .n_pieces = pieces[i % 4],
                                      .n_threads = n_threads ? n_threads : 1,
                                      .by_caller = !pool};
            assert_int_equal(pthread_create(&callers[c], NULL, take_turns, &turns[c]), 0);
        }
        for (size_t c = 0; c < N_CALLERS; c++) {
            assert_int_equal(pthread_join(callers[c], NULL), 0);
            assert_int_equal(turns[c].n_wrong, 0);
        }
        oct_workers_destroy(pool);
    }
}

/* Pictures come while the only worker is at the first of several pieces in turn. */
static void pictures_go_between_pieces_in_turn(void **state)
{
    char log[64] = "";
    atomic_uint n_log = 0;
    (void)state;
    struct oct_workers *pool = open_pool(1);
    struct pictures a = make_pictures('A', log, &n_log);
    struct analysis analysis = {
        .pool = pool, .n_pieces = 3, .in_turn = true, .log = log, .n_log = &n_log};
    oct_workers_add(pool, &a.source);
    begin_analysis(&analysis);
    open_pictures(&a, pool, 2);
    end_analysis(&analysis);
    oct_workers_remove(pool, &a.source);
    oct_workers_destroy(pool);
    assert_string_equal(log, "aAAaa");
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

/* Of two analyses with long pieces. */
static void long_pieces_of_analyses_leave_a_worker_to_pictures(void **state)
{
    char log[64] = "";
    atomic_uint n_log = 0;
    (void)state;
    for (unsigned n = 2; n <= 4; n++) {
        struct oct_workers *pool = open_pool(n);
        struct holding holdings[2] = {{.pool = pool}, {.pool = pool}};
        struct pictures pictures = make_pictures('A', log, &n_log);
        oct_workers_add(pool, &pictures.source);
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&holdings[i].thread, NULL, run_holding, &holdings[i]),
                             0);
        for (uint64_t until_ns = oct_clock_ns() + TEST_PATIENCE_NS;
             holdings[0].n_here + holdings[1].n_here < n - 1;) {
            assert_true(oct_clock_ns() < until_ns);
            sleep_us(100);
        }
        n_log = 0;
        open_pictures(&pictures, pool, 10);
        wait_for(&pictures.n_done, 10); /* while all the others are held */
        assert_int_equal(holdings[0].n_here + holdings[1].n_here, n - 1);
        holdings[0].let_go = holdings[1].let_go = true; /* either may hold all there are */
        for (int i = 0; i < 2; i++) {
            assert_int_equal(pthread_join(holdings[i].thread, NULL), 0);
            assert_int_equal(holdings[i].n_done, 40);
        }
        oct_workers_remove(pool, &pictures.source);
        oct_workers_destroy(pool);
    }
}

/* Pictures that hold whoever does them. */
static void do_held_picture(struct oct_work_source *source, unsigned worker)
{
    struct pictures *p = (struct pictures *)source;
    (void)worker;
    atomic_fetch_add(&p->n_done, 1);
    while (!atomic_load(p->n_log))
        sleep_us(100);
}

/* An analysis of which a worker's first piece and the caller's are held, each until it may go. */
struct held {
    struct oct_workers *pool;
    pthread_t thread;
    atomic_uint n_begun; /* by workers */
    atomic_bool first_goes, caller_goes;
};

static void hold_first(void *context, unsigned piece, unsigned worker)
{
    struct held *h = context;
    (void)piece;
    const bool is_caller = worker == oct_workers_n_threads(h->pool);
    if (!is_caller && atomic_fetch_add(&h->n_begun, 1) > 0)
        return;
    while (!(is_caller ? h->caller_goes : h->first_goes))
        sleep_us(100);
}

static void *run_held(void *argument)
{
    struct held *h = argument;
    oct_workers_run(h->pool, 10, hold_first, h);
    return NULL;
}

/* Of two workers one is at an analysis and the other was turned away; the first goes over to
 * pictures. */
static void one_that_was_turned_away_comes_back(void **state)
{
    static const struct oct_work_ops held_ops = {.take = take_picture, .run = do_held_picture};
    (void)state;
    for (int round = 0; round < 10; round++) {
        atomic_uint picture_goes = 0;
        struct oct_workers *pool = open_pool(2);
        struct held held = {.pool = pool};
        struct pictures pictures = {.source = {.ops = &held_ops, .rank = OCT_WORK_PICTURES},
                                    .n_log = &picture_goes};
        oct_workers_add(pool, &pictures.source);
        assert_int_equal(pthread_create(&held.thread, NULL, run_held, &held), 0);
        wait_for(&held.n_begun, 1);
        sleep_us(3000); /* the other asks, and sleeps */
        pthread_mutex_lock(oct_workers_lock(pool));
        pictures.n_open = 1; /* and nobody is called */
        pthread_mutex_unlock(oct_workers_lock(pool));
        held.first_goes = true;
        wait_for(&pictures.n_done, 1);
        wait_for(&held.n_begun, 2);
        picture_goes = 1;
        held.caller_goes = true;
        assert_int_equal(pthread_join(held.thread, NULL), 0);
        oct_workers_remove(pool, &pictures.source);
        oct_workers_destroy(pool);
    }
}

static void a_source_is_not_asked_after_it_was_removed(void **state)
{
    (void)state;
    struct oct_workers *pool = open_pool(3);
    for (int round = 0; round < ROUNDS; round++) {
        char log[64];
        atomic_uint n_log = 0;
        struct pictures p = {
            .source = {.ops = &picture_ops, .rank = OCT_WORK_PICTURES, .calls_all = round % 2},
            .log = log,
            .n_log = &n_log};
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
        cmocka_unit_test(pieces_of_pictures_go_before_those_of_analyses),
        cmocka_unit_test(pieces_in_turn_are_done_by_workers_in_their_order),
        cmocka_unit_test(pictures_go_between_pieces_in_turn),
        cmocka_unit_test(long_pieces_of_analyses_leave_a_worker_to_pictures),
        cmocka_unit_test(one_that_was_turned_away_comes_back),
        cmocka_unit_test(a_source_is_not_asked_after_it_was_removed),
    };
    return cmocka_run_group_tests_name("workers", tests, NULL, NULL);
}
