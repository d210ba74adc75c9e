/* Phases of many from all pairs of them. */
#include "analysis/flow/trace.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>

#define SHARE 0.9       /* of |C| in what is inverted */
#define N_HALVINGS 40u  /* of the interval in which the least eigenvalue lies */
#define N_ITERATIONS 4u /* of the eigenvector's */
#define LEAST_PIVOT 1e-300

typedef double complex number; /* of this file alone */

/* a = L D L^H in place: D in the diagonal, L below it. Returns how many of D are negative, which is
 * how many eigenvalues are. */
static unsigned factor(number *a, unsigned n)
{
    unsigned n_negative = 0;
    for (unsigned k = 0; k < n; k++) {
        double d = creal(a[k * n + k]);
        d = fabs(d) > LEAST_PIVOT ? d : LEAST_PIVOT;
        a[k * n + k] = d;
        n_negative += d < 0;
        for (unsigned i = k + 1; i < n; i++) {
            const number share = a[i * n + k] / d;
            for (unsigned j = k + 1; j <= i; j++)
                a[i * n + j] -= share * conj(a[j * n + k]);
        }
        for (unsigned i = k + 1; i < n; i++)
            a[i * n + k] /= d;
    }
    return n_negative;
}

static void solve(const number *a, unsigned n, number *x)
{
    for (unsigned i = 0; i < n; i++)
        for (unsigned j = 0; j < i; j++)
            x[i] -= a[i * n + j] * x[j];
    for (unsigned i = 0; i < n; i++)
        x[i] /= creal(a[i * n + i]);
    for (unsigned i = n; i-- > 0;)
        for (unsigned j = i + 1; j < n; j++)
            x[i] -= conj(a[j * n + i]) * x[j];
}

/* h = inv(SHARE |C| + (1 - SHARE)) o C, column by column. */
static void weigh(const double *c, unsigned n, number *work, number *x, number *h)
{
    for (unsigned i = 0; i < n * n; i++) {
        const double size = hypot(c[2 * i], c[2 * i + 1]);
        work[i] = SHARE * size + (i / n == i % n ? 1 - SHARE : 0);
    }
    factor(work, n);
    for (unsigned k = 0; k < n; k++) {
        for (unsigned i = 0; i < n; i++)
            x[i] = i == k;
        solve(work, n, x);
        for (unsigned i = 0; i < n; i++)
            h[i * n + k] = creal(x[i]) * (c[2 * (i * n + k)] + I * c[2 * (i * n + k) + 1]);
    }
}

static unsigned count_below(const number *h, unsigned n, double value, number *work)
{
    for (unsigned i = 0; i < n * n; i++)
        work[i] = h[i] - (i / n == i % n ? value : 0);
    return factor(work, n);
}

/* A value just below the least eigenvalue. */
static double find_least(const number *h, unsigned n, number *work)
{
    double most = 0;
    for (unsigned i = 0; i < n; i++) {
        double row = 0;
        for (unsigned j = 0; j < n; j++)
            row += cabs(h[i * n + j]);
        most = fmax(most, row);
    }
    double low = -most * 1.001, high = most * 1.001;
    for (unsigned k = 0; k < N_HALVINGS && high - low > 1e-9 * most; k++) {
        const double middle = 0.5 * (low + high);
        if (count_below(h, n, middle, work))
            high = middle;
        else
            low = middle;
    }
    return low - 1e-9 * most;
}

static void find_vector(const number *h, unsigned n, number *work, number *x)
{
    const double least = find_least(h, n, work);
    count_below(h, n, least, work);
    for (unsigned i = 0; i < n; i++)
        x[i] = h[i * n] + (i == 0); /* the phases against the first */
    for (unsigned k = 0; k < N_ITERATIONS; k++) {
        double size = 0;
        solve(work, n, x);
        for (unsigned i = 0; i < n; i++)
            size = fmax(size, cabs(x[i]));
        for (unsigned i = 0; i < n && size > 0; i++)
            x[i] /= size;
    }
}

enum oct_err oct_flow_link(const double *c, unsigned n, double *phase, struct oct_error *err)
{
    number *memory = malloc((2 * (size_t)n * n + n) * sizeof(*memory));
    if (!memory)
        return oct_fail(err, OCT_E_NO_MEMORY, "trace: out of memory");
    number *work = memory, *h = work + (size_t)n * n, *x = h + (size_t)n * n;
    weigh(c, n, work, x, h);
    find_vector(h, n, work, x);
    for (unsigned i = 0; i < n; i++)
        phase[i] = carg(x[i] * conj(x[0]));
    free(memory);
    return OCT_OK;
}
