#include "analysis/surface/patch_search_index.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define K OCT_PATCH_COORDINATES
#define SAMPLE 4096u /* patches of which the covariance is taken */
#define ROUNDS 12u   /* of the iteration: any orthonormal basis is right, a better one is faster */

static void add_mean(struct oct_patch_basis *basis, const float *patches, size_t stride, uint32_t n,
                     uint32_t step)
{
    uint32_t taken = 0;
    for (uint32_t i = 0; i < n; i += step, taken++)
        for (size_t k = 0; k < basis->width; k++)
            basis->mean[k] += (double)patches[i * stride + k];
    for (size_t k = 0; k < basis->width; k++)
        basis->mean[k] /= taken;
}

/* covariance[width][width], not divided by a number; returns its trace. */
static double add_covariance(const struct oct_patch_basis *basis, const float *patches,
                             size_t stride, uint32_t n, uint32_t step, double *covariance)
{
    const size_t width = basis->width;
    double x[OCT_PATCH_MOST_WIDTH], trace = 0;
    for (uint32_t i = 0; i < n; i += step) {
        for (size_t k = 0; k < width; k++)
            x[k] = (double)patches[i * stride + k] - basis->mean[k];
        for (size_t k = 0; k < width; k++)
            for (size_t l = 0; l < width; l++)
                covariance[k * width + l] += x[k] * x[l];
    }
    for (size_t k = 0; k < width; k++)
        trace += covariance[k * width + k];
    return trace;
}

static double dot(const double *direction, size_t width, size_t a, size_t b)
{
    double sum = 0;
    for (size_t i = 0; i < width; i++)
        sum += direction[i * K + a] * direction[i * K + b];
    return sum;
}

/* Gram and Schmidt, each column twice; a column that lies within the others becomes an axis that
 * does not. */
static void orthonormalise(double *direction, size_t width, unsigned n)
{
    for (unsigned c = 0; c < n; c++) {
        double before = sqrt(dot(direction, width, c, c));
        for (size_t axis = 0, round = 0; round < 2; round++) {
            for (unsigned b = 0; b < c; b++) {
                const double share = dot(direction, width, b, c);
                for (size_t i = 0; i < width; i++)
                    direction[i * K + c] -= share * direction[i * K + b];
            }
            const double norm = sqrt(dot(direction, width, c, c));
            const int is_lost = !(norm > 1e-9 * before);
            for (size_t i = 0; i < width; i++)
                direction[i * K + c] = is_lost ? i == axis : direction[i * K + c] / norm;
            before = 1;
            if (is_lost) {
                axis++;
                round = (size_t)-1;
            }
        }
    }
}

/* direction = covariance * direction */
static void multiply(double *direction, const double *covariance, size_t width, double *result)
{
    memset(result, 0, width * K * sizeof(*result));
    for (size_t k = 0; k < width; k++)
        for (size_t l = 0; l < width; l++)
            for (unsigned c = 0; c < K; c++)
                result[k * K + c] += covariance[k * width + l] * direction[l * K + c];
    memcpy(direction, result, width * K * sizeof(*result));
}

enum oct_err oct_patch_basis_init(struct oct_patch_basis *basis, size_t width, const float *patches,
                                  size_t stride, uint32_t n, struct oct_error *err)
{
    const unsigned n_columns = width < K ? (unsigned)width : K;
    const uint32_t step = n / SAMPLE + 1;
    double *covariance = calloc(width, width * sizeof(*covariance));
    double *product = calloc(width, K * sizeof(*product));
    enum oct_err e = OCT_OK;
    *basis = (struct oct_patch_basis){
        .width = width,
        .mean = calloc(width, sizeof(*basis->mean)),
        .direction = calloc(width, K * sizeof(*basis->direction)),
    };
    if (!covariance || !product || !basis->mean || !basis->direction) {
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a basis of patches");
        goto done;
    }
    add_mean(basis, patches, stride, n, step);
    const double trace = add_covariance(basis, patches, stride, n, step, covariance);
    for (size_t i = 0; i < width; i++)
        for (unsigned c = 0; c < n_columns; c++)
            basis->direction[i * K + c] = cos((double)(2 * i + 1) * c); /* no axis, no symmetry */
    orthonormalise(basis->direction, width, n_columns);
    for (unsigned r = 0; r < ROUNDS && trace > 0 && isfinite(trace); r++) {
        multiply(basis->direction, covariance, width, product);
        orthonormalise(basis->direction, width, n_columns);
    }
done:
    free(covariance);
    free(product);
    return e;
}

void oct_patch_basis_finish(struct oct_patch_basis *basis)
{
    free(basis->mean);
    free(basis->direction);
    *basis = (struct oct_patch_basis){0};
}

double oct_patch_basis_project(const struct oct_patch_basis *basis, const float *patch,
                               float coordinates[OCT_PATCH_COORDINATES])
{
    double sums[K] = {0}, norm = 0;
    for (size_t i = 0; i < basis->width; i++) {
        const double x = (double)patch[i] - basis->mean[i];
        norm += x * x;
        for (unsigned c = 0; c < K; c++)
            sums[c] += x * basis->direction[i * K + c];
    }
    for (unsigned c = 0; c < K; c++)
        coordinates[c] = (float)sums[c];
    return norm;
}
