/* The one sum of contract section 6 in double precision:
 *
 *     B[j][d] = sum_i x[j][i] term[i] e^(-2 pi i d place[i] / P2)     first <= d < first + depth
 *
 * by its terms, of which none is left out; the arrays belong to the caller. */
#ifndef OCT_TEST_RIG_ORACLE_EXACT_H
#define OCT_TEST_RIG_ORACLE_EXACT_H

#include <stdbool.h>
#include <stddef.h>

struct oct_oracle_exact {
    size_t n, n_lines, first, depth;
    double p2;
    const double *place; /* [n] */
    const double *term;  /* [n][2] re, im */
    const double *x;     /* [n_lines][n] */
};

/* b: [n_lines][depth][2] re, im. False when out of memory. Starts and joins its own threads. */
bool oct_oracle_sum_exactly(const struct oct_oracle_exact *of, double *b);

#endif
