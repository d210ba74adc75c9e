/* The FFTs of the chain where lanes.h has none (long lines, no AVX2): FFTW plans, shared by all
 * workers, remembered between runs. The benchmark measures against them everywhere.
 *
 * Which algorithm FFTW picks decides the last bit of a result. Plans are therefore measured once
 * and kept as wisdom in a folder of the user's; every later process takes the same plans, so that
 * a recording reconstructs to the same bytes. Without such a folder FFTW's estimate is taken,
 * which is also the same each time, only slower. */
#ifndef OCT_KERNELS_RECON_FFT_H
#define OCT_KERNELS_RECON_FFT_H

#include "pipeline/base/err.h"

#include <fftw3.h>
#include <stdbool.h>
#include <stdint.h>

/* Execute with fftwf_execute_dft() on arrays aligned to 64 bytes; thread-safe. All are complex and
 * out of place: two real lines go through the short ones together, as re and im, which is quicker
 * than real transforms of each. */
struct oct_fft {
    fftwf_plan forward_pair; /* P1, keeps its input */
    fftwf_plan inverse_pair; /* P1, destroys its input, unscaled */
    fftwf_plan forward;      /* P2, destroys its input */
};

/* What the chain transforms: linear and cubic take all three; nufft takes forward_pair alone, for
 * one line at a time, and the others are NULL. */
enum oct_fft_kind { OCT_FFT_ALL, OCT_FFT_ONE };

/* wisdom_dir may be NULL; it is created if absent. */
enum oct_err oct_fft_init(struct oct_fft *fft, enum oct_fft_kind kind, uint32_t padded,
                          const char *wisdom_dir, struct oct_error *err);
void oct_fft_finish(struct oct_fft *fft);

#endif
