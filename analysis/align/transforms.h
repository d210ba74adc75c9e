/* FFTW plans of this room, made one at a time, all estimates: measured plans differ from process to
 * process, and so do their last digits. Measured ones took 0 to 15 % off a picture of 512 x 512,
 * and half a second to make. Any thread. */
#ifndef OCT_ANALYSIS_ALIGN_TRANSFORMS_H
#define OCT_ANALYSIS_ALIGN_TRANSFORMS_H

#include <fftw3.h>
#include <stdbool.h>
#include <stdint.h>

/* The next 2^a 3^b 5^c 7^d, even. */
uint32_t oct_transform_good_size(uint32_t n);

/* NULL: out of memory. To be executed with arrays aligned to 64 bytes. */
fftwf_plan oct_transform_forward_row(uint32_t n, float *in, fftwf_complex *out);
fftwf_plan oct_transform_inverse_row(uint32_t n, fftwf_complex *in, float *out); /* destroys `in` */
fftwf_plan oct_transform_forward(uint32_t height, uint32_t width, float *in, fftwf_complex *out);
void oct_transform_destroy(fftwf_plan plan); /* NULL is fine */

#endif
