/* Padded transforms of real pictures, for correlations P(d) = sum over p of f(p) g(p + d) within a
 * window of shifts |dy| <= max_dy, |dx| <= max_dx: less work than whole transforms.
 *
 *  - Padding is to at least the picture and the window, not to the sum of both pictures: only
 *    shifts of the window must not wrap round. Sizes are 2^a 3^b 5^c 7^d.
 *  - Rows of the forward transform are computed where there is input, those of the inverse where
 *    the window reads; two real rows go through one complex transform.
 *  - A spectrum is kept in blocks of OCT_FFT2_BLOCK columns, a cache line wide, and each block
 *    stays in the cache for its forward transform, the product and its inverse transform.
 *  - The power spectrum of an autocorrelation is real: two columns go through one complex
 *    transform, and only dy >= 0 is computed.
 *
 * f32 throughout, by FFTW. What is transformed should have mean 0 and values about 1: then errors
 * are about 1e-7 of the norms' product. One thread uses a struct oct_fft2 at a time; spectra may be
 * read by several, and belong to all with the same setup. */
#ifndef OCT_ANALYSIS_CORRELATE_FFT2_H
#define OCT_ANALYSIS_CORRELATE_FFT2_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCT_FFT2_BLOCK 8u

struct oct_fft2;

struct oct_fft2_setup {
    uint32_t height, width;  /* of the largest picture */
    uint32_t max_dy, max_dx; /* of the window; less than height and width */
};

/* A picture, a row at a time. fill writes row y, [width]; it is called for each row once, in order,
 * by the thread that called. */
struct oct_fft2_rows {
    uint32_t height, width; /* at most those of the setup; beyond there are zeros */
    void (*fill)(void *context, uint32_t y, float *row);
    void *context;
};

/* The next 2^a 3^b 5^c 7^d; and that one up to an eighth longer whose transforms are quickest: 1024
 * for 1000, in half the time. */
uint32_t oct_fft2_next_size(uint32_t least);
uint32_t oct_fft2_size(uint32_t least);

/* *fft is NULL on error. OCT_E_NO_MEMORY. */
enum oct_err oct_fft2_create(struct oct_fft2 **fft, const struct oct_fft2_setup *setup,
                             struct oct_error *err);
void oct_fft2_destroy(struct oct_fft2 *fft); /* NULL is fine */

/* Room for a spectrum, its layout is private; free() releases it. NULL: out of memory. */
float *oct_fft2_spectrum(const struct oct_fft2 *fft);

/* The spectrum of a picture. */
void oct_fft2_forward(struct oct_fft2 *fft, const struct oct_fft2_rows *picture, float *spectrum);

/* Windows are [2 max_dy + 1][2 max_dx + 1]; the first row is dy = -max_dy, the first column
 * dx = -max_dx. All are scaled: P(d) itself.
 *
 * Of a picture with itself; with a picture whose spectrum is there; of two spectra; of a spectrum
 * with itself. The first two are quicker than a forward transform and one of the last two. */
void oct_fft2_auto(struct oct_fft2 *fft, const struct oct_fft2_rows *f, float *window);
void oct_fft2_cross(struct oct_fft2 *fft, const struct oct_fft2_rows *f, const float *g_spectrum,
                    float *window);
void oct_fft2_product(struct oct_fft2 *fft, const float *f_spectrum, const float *g_spectrum,
                      float *window);
void oct_fft2_power(struct oct_fft2 *fft, const float *spectrum, float *window);

#endif
