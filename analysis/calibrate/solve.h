/* Small systems of normal equations. */
#ifndef OCT_ANALYSIS_CALIBRATE_SOLVE_H
#define OCT_ANALYSIS_CALIBRATE_SOLVE_H

#include <stdbool.h>

/* Solves matrix x = right, symmetric and positive definite, [n][n], by Cholesky's decomposition
 * after scaling its diagonal to 1. x takes the place of right, matrix is overwritten. False: it is
 * singular, as far as doubles tell. */
bool oct_solve(double *matrix, double *right, unsigned n);

#endif
