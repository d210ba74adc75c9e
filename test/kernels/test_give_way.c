/* Pieces of analyses that give way to pictures in their middle, and callers that leave the cores to
 * them. */
#include "kernels/device/workers.h"
#include "pipeline/base/clock.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <stdatomic.h>
#include <string.h>

#if defined(__SANITIZE_THREAD__)
enum { N_PICTURES = 300 };
#else
enum { N_PICTURES = 3000 };
#endif
enum { MOST_TEST_THREADS = 4, N_ANALYSES = 2, N_PIECES = 4, N_STRETCHES = 8 };

static struct oct_workers *open_pool(unsigned n_threads)
{
    struct oct_workers *pool;
    struct oct_error err = {.text = ""};
    if (oct_workers_create(&pool, n_threads, &err))
        fail_msg("%s", err.text);
    return pool;
}

static void wait_for(const atomic_uint *count, unsigned least)
{
    uint64_t until_ns = oct_clock_ns() + TEST_PATIENCE_NS;
    while (atomic_load(count) < least) {
        assert_true(oct_clock_ns() < until_ns);
        sleep_us(100);
    }
}

/* Pictures that a worker takes one by one. */
struct pictures {
    struct oct_work_source source;            /* first */
    unsigned n_open;                          /* by the pool's lock */
    unsigned n_finished;                      /* by the pool's lock */
    atomic_uint n_done, n_wrong;              /* wrong: a worker at two at once */
    atomic_bool is_inside[MOST_TEST_THREADS]; /* a worker */
    atomic_uint n_within;                     /* done by workers that were at an analysis */
    atomic_bool is_at_analysis[MOST_TEST_THREADS];
    pthread_t stranger; /* does none */
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
    if (worker >= MOST_TEST_THREADS || pthread_equal(pthread_self(), p->stranger)) {
        atomic_fetch_add(&p->n_wrong, 1);
        return;
    }
    bool is_wrong = atomic_exchange(&p->is_inside[worker], true);
    atomic_fetch_add(&p->n_within, p->is_at_analysis[worker]);
    atomic_store(&p->is_inside[worker], false);
    atomic_fetch_add(&p->n_wrong, is_wrong);
    atomic_fetch_add(&p->n_done, 1);
}

static unsigned finish_picture(struct oct_work_source *source, unsigned worker, bool *wakes)
{
    (void)worker;
    (void)wakes;
    ((struct pictures *)source)->n_finished++;
    return 0;
}

static const struct oct_work_ops picture_ops = {
    .take = take_picture, .run = do_picture, .finish = finish_picture};

static void open_pictures(struct pictures *p, struct oct_workers *pool, unsigned n)
{
    pthread_mutex_lock(oct_workers_lock(pool));
    p->n_open += n;
    unsigned n_calls = oct_workers_to_call(pool, &p->source, n, 0);
    pthread_mutex_unlock(oct_workers_lock(pool));
    oct_workers_call(pool, n_calls);
}

struct analysis {
    struct oct_workers *pool;
    struct pictures *pictures;
    pthread_t thread;
    bool in_turn;
    atomic_uint n_begun, n_done;
    atomic_bool let_go;
    unsigned n_before, n_after; /* pictures done when it gives way, and then */
};

/* ---- one piece ---- */

static void give_way_once(void *context, unsigned piece, unsigned worker)
{
    struct analysis *a = context;
    (void)piece;
    atomic_fetch_add(&a->n_begun, 1);
    while (!a->let_go)
        sleep_us(100);
    a->n_before = a->pictures->n_done;
    oct_workers_give_way(a->pool, worker);
    a->n_after = a->pictures->n_done;
}

static void *run_once(void *argument)
{
    struct analysis *a = argument;
    oct_workers_run_in_turn(a->pool, 1, give_way_once, a);
    return NULL;
}

/* The only worker is at a piece when pictures come. */
static void a_piece_that_gives_way_does_the_pictures_that_came(void **state)
{
    (void)state;
    struct oct_workers *pool = open_pool(1);
    struct pictures pictures = {.source = {.ops = &picture_ops, .rank = OCT_WORK_PICTURES},
                                .stranger = pthread_self()};
    struct analysis a = {.pool = pool, .pictures = &pictures};
    oct_workers_add(pool, &pictures.source);
    assert_int_equal(pthread_create(&a.thread, NULL, run_once, &a), 0);
    wait_for(&a.n_begun, 1);
    open_pictures(&pictures, pool, 5);
    a.let_go = true;
    assert_int_equal(pthread_join(a.thread, NULL), 0);
    assert_int_equal(a.n_before, 0);
    assert_int_equal(a.n_after, 5);
    oct_workers_remove(pool, &pictures.source);
    assert_int_equal(pictures.n_finished, 5);
    oct_workers_destroy(pool);
}

/* ---- who does not ---- */

static void whoever_is_no_worker_does_no_pictures(void **state)
{
    (void)state;
    struct oct_workers *pool = open_pool(2);
    struct pictures pictures = {.source = {.ops = &picture_ops, .rank = OCT_WORK_PICTURES},
                                .stranger = pthread_self()};
    oct_workers_add(pool, &pictures.source);
    pthread_mutex_lock(oct_workers_lock(pool));
    pictures.n_open = 1; /* and nobody is called: only workers that have just begun look */
    pthread_mutex_unlock(oct_workers_lock(pool));
    oct_workers_give_way(pool, oct_workers_n_threads(pool));
    oct_workers_give_way(NULL, 0);
    assert_int_equal(pictures.n_wrong, 0);
    oct_workers_remove(pool, &pictures.source);
    oct_workers_destroy(pool);
}

/* ---- beside pictures the caller waits ---- */

struct callers_own {
    pthread_t caller;
    unsigned n_threads;
    atomic_uint n_done, n_by_caller;
};

static void note_thread(void *context, unsigned piece, unsigned worker)
{
    struct callers_own *own = context;
    (void)piece;
    const bool is_caller = pthread_equal(pthread_self(), own->caller);
    assert_int_equal(is_caller, worker == own->n_threads);
    atomic_fetch_add(&own->n_by_caller, is_caller);
    atomic_fetch_add(&own->n_done, 1);
}

static void the_caller_does_no_piece_while_there_are_pictures(void **state)
{
    static const unsigned pieces[] = {0, 1, 2, 3, 40};
    (void)state;
    for (unsigned n = 1; n <= MOST_TEST_THREADS; n++) {
        struct oct_workers *pool = open_pool(n);
        struct pictures pictures = {.source = {.ops = &picture_ops, .rank = OCT_WORK_PICTURES},
                                    .stranger = pthread_self()};
        oct_workers_add(pool, &pictures.source);
        for (unsigned k = 0; k < 5 * 20; k++) {
            struct callers_own own = {.caller = pthread_self(), .n_threads = n};
            oct_workers_run(pool, pieces[k % 5], note_thread, &own);
            assert_int_equal(own.n_done, pieces[k % 5]);
            assert_int_equal(own.n_by_caller, 0);
        }
        oct_workers_remove(pool, &pictures.source);
        struct callers_own own = {.caller = pthread_self(), .n_threads = n};
        oct_workers_run(pool, 1, note_thread, &own);
        assert_int_equal(own.n_by_caller, 1); /* without them it needs no worker */
        oct_workers_destroy(pool);
    }
}

/* ---- many ---- */

static void give_way_often(void *context, unsigned piece, unsigned worker)
{
    struct analysis *a = context;
    (void)piece;
    const bool is_worker = worker < oct_workers_n_threads(a->pool);
    for (unsigned k = 0; k < N_STRETCHES; k++) {
        if (is_worker)
            a->pictures->is_at_analysis[worker] = true;
        oct_workers_give_way(a->pool, worker);
        if (is_worker)
            a->pictures->is_at_analysis[worker] = false;
    }
    atomic_fetch_add(&a->n_done, 1);
}

static void *run_often(void *argument)
{
    struct analysis *a = argument;
    for (a->n_begun = 0; !a->let_go; a->n_begun++) {
        if (a->in_turn)
            oct_workers_run_in_turn(a->pool, N_PIECES, give_way_often, a);
        else
            oct_workers_run(a->pool, N_PIECES, give_way_often, a);
    }
    return NULL;
}

/* Pieces in turn and others, whose workers give way all the time while pictures come. */
static void every_picture_is_done_once_and_every_piece(void **state)
{
    unsigned n_within = 0;
    (void)state;
    for (unsigned n = 1; n <= MOST_TEST_THREADS; n++) {
        struct oct_workers *pool = open_pool(n);
        struct pictures pictures = {.source = {.ops = &picture_ops, .rank = OCT_WORK_PICTURES},
                                    .stranger = pthread_self()};
        struct analysis analyses[N_ANALYSES];
        oct_workers_add(pool, &pictures.source);
        for (unsigned i = 0; i < N_ANALYSES; i++) {
            analyses[i] =
                (struct analysis){.pool = pool, .pictures = &pictures, .in_turn = i % 2 == 0};
            assert_int_equal(pthread_create(&analyses[i].thread, NULL, run_often, &analyses[i]), 0);
        }
        for (unsigned k = 0; k < N_PICTURES; k += 3) {
            open_pictures(&pictures, pool, 3);
            wait_for(&pictures.n_done, k);
        }
        wait_for(&pictures.n_done, N_PICTURES);
        for (unsigned i = 0; i < N_ANALYSES; i++) {
            wait_for(&analyses[i].n_begun, 1);
            analyses[i].let_go = true;
            assert_int_equal(pthread_join(analyses[i].thread, NULL), 0);
            assert_int_equal(analyses[i].n_done, analyses[i].n_begun * N_PIECES);
        }
        oct_workers_remove(pool, &pictures.source);
        assert_int_equal(pictures.n_finished, N_PICTURES);
        assert_int_equal(pictures.n_done, N_PICTURES);
        assert_int_equal(pictures.n_wrong, 0);
        n_within += pictures.n_within;
        oct_workers_destroy(pool);
    }
    assert_true(n_within > 0); /* some of them within a piece */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_piece_that_gives_way_does_the_pictures_that_came),
        cmocka_unit_test(whoever_is_no_worker_does_no_pictures),
        cmocka_unit_test(the_caller_does_no_piece_while_there_are_pictures),
        cmocka_unit_test(every_picture_is_done_once_and_every_piece),
    };
    return cmocka_run_group_tests_name("give way", tests, NULL, NULL) > 0;
}
