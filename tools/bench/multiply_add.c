#include "tools/bench/multiply_add.h"

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define N_SUMS 12      /* independent: more than a latency of 4 at two a cycle needs */
#define ROUNDS 200000u /* of a run */

static double read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double oct_bench_cpu_s(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

double oct_bench_process_cpu_s(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

/* Each runs ROUNDS x N_SUMS multiply-adds of vectors; returns something that depends on all. The
 * factor is below 1, so that no sum grows. */
#if defined(__x86_64__)
__attribute__((target("avx512f"))) static float run_avx512(float factor)
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

__attribute__((target("avx2,fma"))) static float run_avx2(float factor)
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

static float run_plain(float factor)
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

double oct_bench_multiply_adds(const char *simd, double seconds)
{
    float (*run)(float) = run_plain;
    double lanes = 4, best = HUGE_VAL, sum = 0;
    volatile float sink;
#if defined(__x86_64__)
    if (strcmp(simd, "avx512") == 0) {
        run = run_avx512;
        lanes = 16;
    } else if (strcmp(simd, "avx2") == 0) {
        run = run_avx2;
        lanes = 8;
    }
#endif
    for (unsigned i = 0; i < 5 || sum < seconds; i++) {
        const double begin = oct_bench_cpu_s();
        sink = run(0.5F);
        const double took = oct_bench_cpu_s() - begin;
        best = fmin(best, took);
        sum += took;
    }
    (void)sink;
    return lanes * N_SUMS * ROUNDS / best;
}
