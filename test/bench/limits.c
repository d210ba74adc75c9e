/* What a core and the memory do at most. */
#include "kernels/device/workers.h"
#include "test/bench/bench.h"

#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ---- arithmetic ---- */

#define N_SUMS 12      /* independent: more than a latency of 4 at two a cycle needs */
#define ROUNDS 200000u /* of a run */

/* Each runs ROUNDS x N_SUMS multiply-adds of vectors; returns something that depends on all. The
 * factor is below 1, so that no sum grows. */
#if defined(__x86_64__)
__attribute__((target("avx512f"))) static float add_avx512(float factor)
{
    __m512 sums[N_SUMS], f = _mm512_set1_ps(factor), total = _mm512_setzero_ps();
    for (unsigned i = 0; i < N_SUMS; i++)
        sums[i] = _mm512_set1_ps((float)i);
    for (unsigned n = 0; n < ROUNDS; n++) {
#pragma GCC unroll 12
        for (unsigned i = 0; i < N_SUMS; i++)
            sums[i] = _mm512_fmadd_ps(sums[i], f, f);
    }
    for (unsigned i = 0; i < N_SUMS; i++)
        total = _mm512_add_ps(total, sums[i]);
    return _mm512_cvtss_f32(total);
}

__attribute__((target("avx2,fma"))) static float add_avx2(float factor)
{
    __m256 sums[N_SUMS], f = _mm256_set1_ps(factor), total = _mm256_setzero_ps();
    for (unsigned i = 0; i < N_SUMS; i++)
        sums[i] = _mm256_set1_ps((float)i);
    for (unsigned n = 0; n < ROUNDS; n++) {
#pragma GCC unroll 12
        for (unsigned i = 0; i < N_SUMS; i++)
            sums[i] = _mm256_fmadd_ps(sums[i], f, f);
    }
    for (unsigned i = 0; i < N_SUMS; i++)
        total = _mm256_add_ps(total, sums[i]);
    return _mm256_cvtss_f32(total);
}
#endif

typedef float four __attribute__((vector_size(16)));

static float add_plain(float factor)
{
    const four f = {factor, factor, factor, factor};
    four sums[N_SUMS], total = {0};
    for (unsigned i = 0; i < N_SUMS; i++)
        sums[i] = f * (float)i;
    for (unsigned n = 0; n < ROUNDS; n++) {
#pragma GCC unroll 12
        for (unsigned i = 0; i < N_SUMS; i++)
            sums[i] = sums[i] * f + f;
    }
    for (unsigned i = 0; i < N_SUMS; i++)
        total += sums[i];
    return total[0];
}

struct adding {
    float (*run)(float factor);
    volatile float sink;
};

static enum oct_err run_adding(void *context, struct oct_error *err)
{
    struct adding *adding = context;
    (void)err;
    adding->sink = adding->run(0.5F);
    return OCT_OK;
}

double bench_multiply_adds(const char *simd, double seconds)
{
    struct adding adding = {.run = add_plain};
    struct bench_turn turn = {.run = run_adding, .context = &adding};
    double lanes = 4;
#if defined(__x86_64__)
    if (strcmp(simd, "avx512") == 0) {
        adding.run = add_avx512;
        lanes = 16;
    } else if (strcmp(simd, "avx2") == 0) {
        adding.run = add_avx2;
        lanes = 8;
    }
#endif
    bench_turns(&turn, 1, OCT_BENCH_REPEATS, seconds, NULL);
    return lanes * N_SUMS * ROUNDS / turn.thread_s;
}

/* ---- memory ---- */

enum { N = 1 << 24, PIECE = 1 << 18 };

struct triad {
    struct oct_workers *workers;
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

static void add_piece(void *context, unsigned piece, unsigned worker)
{
    const struct triad *t = context;
    const size_t first = (size_t)piece * PIECE;
    float *restrict a = t->a + first;
    const float *restrict b = t->b + first, *restrict c = t->c + first;
    (void)worker;
    for (size_t i = 0; i < PIECE; i++)
        a[i] = b[i] + t->s * c[i];
}

static enum oct_err run_triad(void *context, struct oct_error *err)
{
    struct triad *t = context;
    (void)err;
    oct_workers_run(t->workers, N / PIECE, add_piece, t);
    return OCT_OK;
}

enum oct_err bench_triad(struct oct_workers *workers, double seconds, double *bytes_per_s,
                         struct oct_error *err)
{
    struct triad t = {workers, malloc(N * sizeof(float)), malloc(N * sizeof(float)),
                      malloc(N * sizeof(float)), 0.5F};
    struct bench_turn turn = {.run = run_triad, .context = &t};
    enum oct_err e = OCT_OK;
    if (!t.a || !t.b || !t.c)
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a triad");
    if (!e) {
        oct_workers_run(workers, N / PIECE, fill, &t); /* the pages lie where they are used */
        e = bench_turns(&turn, 1, OCT_BENCH_REPEATS, seconds, err);
        *bytes_per_s = 3.0 * sizeof(float) * N / turn.wall_s;
    }
    free(t.a);
    free(t.b);
    free(t.c);
    return e;
}
