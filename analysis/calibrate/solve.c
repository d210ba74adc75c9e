#include "analysis/calibrate/solve.h"

#include <math.h>

#define MOST 64u
#define LEAST_PIVOT 1e-14

/* matrix = L L^T, L in its lower half. */
static bool decompose(double *matrix, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        for (unsigned j = 0; j <= i; j++) {
            double sum = matrix[i * n + j];
            for (unsigned k = 0; k < j; k++)
                sum -= matrix[i * n + k] * matrix[j * n + k];
            if (i == j && !(sum > LEAST_PIVOT))
                return false;
            matrix[i * n + j] = i == j ? sqrt(sum) : sum / matrix[j * n + j];
        }
    return true;
}

bool oct_solve(double *matrix, double *right, unsigned n)
{
    double scale[MOST];
    if (n > MOST)
        return false;
    for (unsigned i = 0; i < n; i++) {
        if (!(matrix[i * n + i] > 0))
            return false;
        scale[i] = 1 / sqrt(matrix[i * n + i]);
    }
    for (unsigned i = 0; i < n; i++) {
        right[i] *= scale[i];
        for (unsigned j = 0; j < n; j++)
            matrix[i * n + j] *= scale[i] * scale[j];
    }
    if (!decompose(matrix, n))
        return false;
    for (unsigned i = 0; i < n; i++) {
        for (unsigned k = 0; k < i; k++)
            right[i] -= matrix[i * n + k] * right[k];
        right[i] /= matrix[i * n + i];
    }
    for (unsigned i = n; i-- > 0;) {
        for (unsigned k = i + 1; k < n; k++)
            right[i] -= matrix[k * n + i] * right[k];
        right[i] /= matrix[i * n + i];
    }
    for (unsigned i = 0; i < n; i++)
        right[i] *= scale[i];
    return true;
}
