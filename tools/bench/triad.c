#include "tools/bench/triad.h"

#include "kernels/device/workers.h"
#include "pipeline/base/clock.h"
#include "tools/bench/part.h"

#include <math.h>
#include <stdlib.h>

enum { N = 1 << 24, PIECE = 1 << 18 };

struct triad {
    float *a, *b, *c;
    float s;
};

static void fill(void *context, unsigned piece, unsigned worker)
{
    const struct triad *t = context;
    const size_t first = (size_t)piece * PIECE;
    (void)worker;
    for (size_t i = first; i < first + PIECE; i++) {
        t->a[i] = 0;
        t->b[i] = 1;
        t->c[i] = 2;
    }
}

static void add(void *context, unsigned piece, unsigned worker)
{
    const struct triad *t = context;
    const size_t first = (size_t)piece * PIECE;
    float *restrict a = t->a + first;
    const float *restrict b = t->b + first, *restrict c = t->c + first;
    (void)worker;
    for (size_t i = 0; i < PIECE; i++)
        a[i] = b[i] + t->s * c[i];
}

enum oct_err oct_bench_triad(struct oct_workers *workers, double seconds, double *bytes_per_s,
                             struct oct_error *err)
{
    struct triad t = {malloc(N * sizeof(float)), malloc(N * sizeof(float)),
                      malloc(N * sizeof(float)), 0.5F};
    enum oct_err e = OCT_OK;
    double best = HUGE_VAL, sum = 0;
    if (!t.a || !t.b || !t.c)
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a triad");
    if (!e)
        oct_workers_run(workers, N / PIECE, fill, &t); /* the pages lie where they are used */
    for (unsigned i = 0; !e && (i < OCT_BENCH_REPEATS || sum < seconds); i++) {
        const uint64_t begin = oct_clock_ns();
        oct_workers_run(workers, N / PIECE, add, &t);
        const double each = (double)(oct_clock_ns() - begin) * 1e-9;
        best = fmin(best, each);
        sum += each;
    }
    if (!e && t.a[N - 1] != 2)
        e = oct_fail(err, OCT_E_STATE, "a triad is wrong");
    *bytes_per_s = 3.0 * sizeof(float) * N / best;
    free(t.a);
    free(t.b);
    free(t.c);
    return e;
}
