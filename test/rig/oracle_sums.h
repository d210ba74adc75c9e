/* Sums over a circle of angles, for several lines side by side, in fewer steps than they are
 * written with:
 *
 *     Y[j] = sum_n Z[n] e^(+- 2 pi i n j / P)        from <= n < to, first <= j < last
 *
 * With n = a + b L, L = P / R, the factor that belongs to b is e^(+- 2 pi i b j / R), the same for
 * all j of one rest of R: these share sum_b Z[a + b L] e^(+- 2 pi i b j / R), a < L, and are sums
 * of L terms over it. Nothing is approximated. */
#ifndef OCT_TEST_RIG_ORACLE_SUMS_H
#define OCT_TEST_RIG_ORACLE_SUMS_H

#include <stddef.h>

/* Lines that go through the sums together: as many as a vector holds of what this is compiled for.
 * More are slower, since gcc takes them through memory. */
#if defined(__AVX512F__)
#define OCT_ORACLE_SIDE 8
#elif defined(__AVX2__)
#define OCT_ORACLE_SIDE 4
#else
#define OCT_ORACLE_SIDE 2
#endif

/* One value of each of the lines side by side. */
typedef double oct_oracle_lines __attribute__((vector_size(OCT_ORACLE_SIDE * sizeof(double))));

/* [n] cosine and sine of 2 pi i / n, n a power of two. */
struct oct_oracle_circle {
    size_t n;
    const double *cosine, *sine;
};

struct oct_oracle_sum {
    size_t p, r;        /* P and R: powers of two, R <= P <= the circle's n */
    size_t from, to;    /* of Z; elsewhere it is 0 */
    size_t first, last; /* of Y */
    int sign;           /* of the exponent, 1 or -1 */
};

/* z [to][2], y [last - first][2], shared [P / R][2] for its own use; re, im. */
void oct_oracle_sum_split(const struct oct_oracle_circle *circle, const struct oct_oracle_sum *sum,
                          const oct_oracle_lines *z, oct_oracle_lines *shared, oct_oracle_lines *y);

/* n of them; NULL when there is no memory. free() gives them back. */
oct_oracle_lines *oct_oracle_lines_alloc(size_t n);

/* work(arg) on every core at once, on this thread too; returns when all have. */
void oct_oracle_on_all_cores(void *(*work)(void *), void *arg);

#endif
