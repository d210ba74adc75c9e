/* Speckle. Scatterers sit in every cell of a grid that is fixed to the tissue: two volumes, or two
 * B-scans of the same place, see the same ones. Each has a random complex amplitude; the beam adds
 * up those under it with a Gaussian weight (field), and the detection adds up those within the
 * axial resolution. */
#include "synth/model.h"

#include <stdlib.h>

#define N_TAPS 4 /* grid columns and rows under the beam: +-2 grid steps */

enum oct_err oct_scatter_init(struct oct_scatter *scatter, double width_um, double beam_um,
                              struct oct_error *err)
{
    scatter->beam_um = beam_um;
    scatter->grid_um = 0.62 * beam_um;
    scatter->n_columns = (size_t)(width_um / scatter->grid_um) + 2 + N_TAPS;
    scatter->re = calloc(scatter->n_columns * OCT_N_CELLS, sizeof(float));
    scatter->im = calloc(scatter->n_columns * OCT_N_CELLS, sizeof(float));
    if (!scatter->re || !scatter->im)
        return oct_fail(err, OCT_E_NO_MEMORY, "synth: no memory for %zu columns of scatterers",
                        scatter->n_columns);
    return OCT_OK;
}

void oct_scatter_finish(struct oct_scatter *scatter)
{
    free(scatter->re);
    free(scatter->im);
    scatter->re = scatter->im = NULL;
}

/* Field weights of the N_TAPS grid lines around position u (in grid steps), of unit energy. The
 * intensity FWHM of the beam is 1.665 sigma of its field. Returns the first line. */
static int64_t beam_weights(const struct oct_scatter *scatter, double u, float weight[N_TAPS])
{
    double sigma = scatter->beam_um / 1.665 / scatter->grid_um;
    double w[N_TAPS], energy = 0;
    int64_t first = (int64_t)floor(u) - (N_TAPS / 2 - 1);
    for (int t = 0; t < N_TAPS; t++) {
        double d = ((double)(first + t) - u) / sigma;
        w[t] = exp(-0.5 * d * d);
        energy += w[t] * w[t];
    }
    for (int t = 0; t < N_TAPS; t++)
        weight[t] = (float)(w[t] / sqrt(energy));
    return first;
}

/* Adds weight times the amplitudes of one column of scatterers: a 32-bit hash a cell, its halves
 * are real and imaginary part, uniform. (Sums of many of them are what is seen.) */
static void add_column(uint32_t base, float weight, float *restrict re, float *restrict im)
{
    float scale = weight * 1.7320508f / 32768.0f; /* to unit variance */
    for (uint32_t i = 0; i < OCT_N_CELLS; i++) {
        uint32_t x = base + i * 0x9e3779b9u;
        x ^= x >> 16;
        x *= 0x7feb352du;
        x ^= x >> 15;
        x *= 0x846ca68bu;
        x ^= x >> 16;
        re[i] += scale * (float)((int32_t)(x << 16) >> 16);
        im[i] += scale * (float)((int32_t)x >> 16);
    }
}

void oct_scatter_load(struct oct_scatter *scatter, uint64_t seed, double x_um, double y_um)
{
    float weight[N_TAPS];
    int64_t row = beam_weights(scatter, y_um / scatter->grid_um, weight);
    scatter->first_column = (int64_t)floor(x_um / scatter->grid_um) - N_TAPS / 2;
    for (size_t i = 0; i < scatter->n_columns * OCT_N_CELLS; i++)
        scatter->re[i] = scatter->im[i] = 0;
    for (size_t c = 0; c < scatter->n_columns; c++)
        for (int t = 0; t < N_TAPS; t++) {
            uint64_t base =
                oct_hash(seed, OCT_STREAM_SCATTER, scatter->first_column + (int64_t)c, row + t);
            add_column((uint32_t)base, weight[t], scatter->re + c * OCT_N_CELLS,
                       scatter->im + c * OCT_N_CELLS);
        }
}

void oct_scatter_at(const struct oct_scatter *scatter, double x_um, float *restrict re,
                    float *restrict im)
{
    float w[N_TAPS];
    int64_t column = beam_weights(scatter, x_um / scatter->grid_um, w) - scatter->first_column;
    const float *a = scatter->re + (size_t)column * OCT_N_CELLS;
    const float *b = scatter->im + (size_t)column * OCT_N_CELLS;
    for (size_t i = 0; i < OCT_N_CELLS; i++) {
        re[i] = w[0] * a[i] + w[1] * a[i + OCT_N_CELLS] + w[2] * a[i + 2 * OCT_N_CELLS] +
                w[3] * a[i + 3 * OCT_N_CELLS];
        im[i] = w[0] * b[i] + w[1] * b[i + OCT_N_CELLS] + w[2] * b[i + 2 * OCT_N_CELLS] +
                w[3] * b[i + 3 * OCT_N_CELLS];
    }
}
