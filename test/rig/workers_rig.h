/* A worker pool and threads that call it: for the tests of the pool. All of it fails the cmocka
 * test unless it works. */
#ifndef OCT_TEST_RIG_WORKERS_RIG_H
#define OCT_TEST_RIG_WORKERS_RIG_H

#include "kernels/device/workers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#if defined(__SANITIZE_THREAD__)
enum { ROUNDS = 20 };
#else
enum { ROUNDS = 200 };
#endif
enum { MOST_PIECES = 1000, N_CALLERS = 4, MOST_TEST_THREADS = 9 };

struct oct_workers *open_pool(unsigned n_threads);
void wait_for(const atomic_uint *count, unsigned least);

/* What becomes of the pieces of one run. */
struct tally {
    unsigned n_pieces, n_threads;
    uint64_t work;                             /* rounds of arithmetic a piece */
    atomic_uint times[MOST_PIECES], n_wrong;   /* how often each piece was done */
    atomic_uint inside[MOST_TEST_THREADS + 1]; /* pieces that a worker is at; 1 at most */
    atomic_uint by[MOST_TEST_THREADS + 1];     /* pieces that it did */
    unsigned plain[MOST_PIECES];               /* written without atomics: read after the run */
};

/* One run; returns how many pieces were done wrong, twice or not at all. */
unsigned run_tally(struct oct_workers *pool, struct tally *t, unsigned n_pieces, unsigned n_threads,
                   uint64_t work);

/* A thread that calls the pool again and again. */
struct caller {
    struct oct_workers *pool;
    unsigned n_threads, n_wrong;
    const atomic_bool *stop; /* NULL: ROUNDS times */
    pthread_t thread;
    struct tally tally;
};

/* N_CALLERS of them. join_callers fails the test where a piece was done wrong. */
void start_callers(struct caller *callers, struct oct_workers *pool, const atomic_bool *stop);
void join_callers(struct caller *callers);

#endif
