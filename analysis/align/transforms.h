/* FFTW plans of this room, made one at a time. Those of rows are estimates; that of pictures is
 * measured, once a process and size, a tenth of a second for 512 x 512, and a third faster, or an
 * estimate. Measured plans differ from process to process, and so do their last digits; estimates
 * are the same wherever no plan of their size was measured before. Any thread. */
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
fftwf_plan oct_transform_forward(uint32_t height, uint32_t width, bool measure, float *in,
                                 fftwf_complex *out);
void oct_transform_destroy(fftwf_plan plan); /* NULL is fine */

#endif
