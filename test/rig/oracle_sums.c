#include "test/rig/oracle_sums.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_THREADS 16

/* Checking each access would take minutes. */
#define UNCHECKED __attribute__((no_sanitize("address", "thread", "undefined")))

/* What all j with this rest of R share. */
UNCHECKED static void share(const struct oct_oracle_circle *circle, const struct oct_oracle_sum *s,
                            const oct_oracle_lines *z, size_t rest, oct_oracle_lines *shared)
{
    const size_t mask = circle->n - 1, l = s->p / s->r, scale = circle->n / s->r;
    for (size_t a = 0; a < l; a++) {
        oct_oracle_lines re = {0}, im = {0};
        size_t b = a < s->from ? (s->from - a + l - 1) / l : 0;
        for (size_t n = a + b * l; n < s->to; n += l, b++) {
            const size_t angle = (b * rest * scale) & mask;
            const double cosine = circle->cosine[angle], sine = s->sign * circle->sine[angle];
            re += z[2 * n] * cosine - z[2 * n + 1] * sine;
            im += z[2 * n] * sine + z[2 * n + 1] * cosine;
        }
        shared[2 * a] = re;
        shared[2 * a + 1] = im;
    }
}

UNCHECKED static void sum_shared(const struct oct_oracle_circle *circle,
                                 const struct oct_oracle_sum *s, const oct_oracle_lines *shared,
                                 size_t j, oct_oracle_lines *y)
{
    const size_t mask = circle->n - 1, l = s->p / s->r, scale = circle->n / s->p;
    oct_oracle_lines re = {0}, im = {0};
    for (size_t a = 0; a < l; a++) {
        const size_t angle = (a * j * scale) & mask;
        const double cosine = circle->cosine[angle], sine = s->sign * circle->sine[angle];
        re += shared[2 * a] * cosine - shared[2 * a + 1] * sine;
        im += shared[2 * a] * sine + shared[2 * a + 1] * cosine;
    }
    y[0] = re;
    y[1] = im;
}

void oct_oracle_sum_split(const struct oct_oracle_circle *circle, const struct oct_oracle_sum *sum,
                          const oct_oracle_lines *z, oct_oracle_lines *shared, oct_oracle_lines *y)
{
    for (size_t begin = sum->first; begin < sum->first + sum->r && begin < sum->last; begin++) {
        share(circle, sum, z, begin % sum->r, shared);
        for (size_t j = begin; j < sum->last; j += sum->r)
            sum_shared(circle, sum, shared, j, y + 2 * (j - sum->first));
    }
}

oct_oracle_lines *oct_oracle_lines_alloc(size_t n)
{
    return aligned_alloc(sizeof(oct_oracle_lines), n * sizeof(oct_oracle_lines));
}

void oct_oracle_on_all_cores(void *(*work)(void *), void *arg)
{
    long n_cores = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t threads[MAX_THREADS];
    long n_threads = 0;
    while (n_threads < n_cores - 1 && n_threads < MAX_THREADS &&
           pthread_create(&threads[n_threads], NULL, work, arg) == 0)
        n_threads++;
    work(arg);
    while (n_threads > 0)
        pthread_join(threads[--n_threads], NULL);
}
