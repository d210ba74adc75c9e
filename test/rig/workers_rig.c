#include "test/rig/workers_rig.h"

#include "pipeline/base/clock.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <string.h>

struct oct_workers *open_pool(unsigned n_threads)
{
    struct oct_workers *pool;
    must(oct_workers_create(&pool, n_threads, &failure));
    return pool;
}

void wait_for(const atomic_uint *count, unsigned least)
{
    uint64_t until_ns = oct_clock_ns() + TEST_PATIENCE_NS;
    while (atomic_load(count) < least) {
        assert_true(oct_clock_ns() < until_ns);
        sleep_us(100);
    }
}

static void count_piece(void *context, unsigned piece, unsigned worker)
{
    struct tally *t = context;
    if (piece >= t->n_pieces || worker > t->n_threads) {
        atomic_fetch_add(&t->n_wrong, 1);
        return;
    }
    atomic_fetch_add(&t->n_wrong, atomic_fetch_add(&t->inside[worker], 1) != 0);
    atomic_fetch_add(&t->times[piece], 1);
    for (volatile uint64_t i = 0; i < t->work; i++)
        ;
    t->plain[piece] = piece + 1;
    atomic_fetch_add(&t->by[worker], 1);
    atomic_fetch_sub(&t->inside[worker], 1);
}

/* One run; returns how many pieces were done wrong, twice or not at all. */
unsigned run_tally(struct oct_workers *pool, struct tally *t, unsigned n_pieces, unsigned n_threads,
                   uint64_t work)
{
    memset(t, 0, sizeof(*t));
    t->n_pieces = n_pieces;
    t->n_threads = n_threads;
    t->work = work;
    oct_workers_run(pool, n_pieces, count_piece, t);
    unsigned n_wrong = t->n_wrong;
    for (unsigned i = 0; i < MOST_PIECES; i++)
        n_wrong += t->times[i] != (i < n_pieces) || t->plain[i] != (i < n_pieces ? i + 1 : 0);
    return n_wrong;
}

static void *call_again_and_again(void *argument)
{
    struct caller *c = argument;
    for (unsigned round = 0; c->stop ? !*c->stop : round < ROUNDS; round++)
        c->n_wrong += run_tally(c->pool, &c->tally, round % 40, c->n_threads, 200);
    return NULL;
}

void start_callers(struct caller *callers, struct oct_workers *pool, const atomic_bool *stop)
{
    for (unsigned i = 0; i < N_CALLERS; i++) {
        callers[i].pool = pool;
        callers[i].n_threads = oct_workers_n_threads(pool);
        callers[i].n_wrong = 0;
        callers[i].stop = stop;
        assert_int_equal(
            pthread_create(&callers[i].thread, NULL, call_again_and_again, &callers[i]), 0);
    }
}

void join_callers(struct caller *callers)
{
    for (unsigned i = 0; i < N_CALLERS; i++) {
        assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
        assert_int_equal(callers[i].n_wrong, 0);
    }
}
