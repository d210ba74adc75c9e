/* The FFTs of the chain: FFTW plans, shared by all workers, remembered between runs.
 *
 * Which algorithm FFTW picks decides the last bit of a result. Plans are therefore measured once
 * and kept as wisdom in a folder of the user's; every later process takes the same plans, so that
 * a recording reconstructs to the same bytes. Without such a folder FFTW's estimate is taken,
 * which is also the same each time, only slower. */
#ifndef OCT_KERNELS_FFT_H
#define OCT_KERNELS_FFT_H

#include "pipeline/err.h"

#include <fftw3.h>
#include <stdbool.h>
#include <stdint.h>

/* Execute with fftwf_execute_dft_*() on arrays from fftwf_malloc; thread-safe. */
struct oct_fft {
    fftwf_plan forward_real; /* r2c, P1: out of place, keeps its input */
    fftwf_plan inverse_real; /* c2r, P1: out of place, destroys its input */
    fftwf_plan forward;      /* c2c, P2: out of place, destroys its input; NULL if real_final */
    fftwf_plan
        forward_of_real; /* r2c, P2: out of place, destroys its input; NULL unless real_final */
};

/* real_final: the last transform has real input (no dispersion phase). wisdom_dir may be NULL; it
 * is created if absent. */
enum oct_err oct_fft_init(struct oct_fft *fft, uint32_t padded, bool real_final,
                          const char *wisdom_dir, struct oct_error *err);
void oct_fft_finish(struct oct_fft *fft);

#endif
