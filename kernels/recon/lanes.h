/* Our own FFTs for the CPU engine, several lanes of a register at once, in builds for AVX2 and
 * AVX-512: for lines padded to 2048 or 4096 samples, P2 = 2 P1. They know what FFTW cannot: that
 * the upsampling multiplies between two transforms, that the last transform begins with the
 * resampling, and that of its outputs only the first depths are wanted, and only their power.
 * Nothing is measured and nothing chosen, so the same build of the same set gives the same bytes
 * on every machine.
 *
 * A transform of n = 16 * 16 * C points, C = columns, sees sample  16 * (C * n1 + n2) + l  as lane
 * l of vector (n1, n2), and makes bin  k1 + 16 * k2 + 16 C * k3  of it:
 *
 *     rows    for each n2     DFT of 16 over n1 -> k1, times W_n^(k1 (16 n2 + l))
 *     columns for each k1     DFT of C over n2 -> k2
 *     lanes   for each k2     transpose: 16 bins k1 in a register; times W_(n/16)^(l k2);
 *                             DFT of 16 over l -> k3
 *
 * W_n = exp(-2 pi i / n). The inverse is the same backwards on numbers with re and im swapped.
 * In the last transform the outputs k3 that nobody wants are not computed. */
#ifndef OCT_KERNELS_RECON_LANES_H
#define OCT_KERNELS_RECON_LANES_H

#include "kernels/recon/spread_blocks.h"
#include "pipeline/plan/plan.h"

#include <stdbool.h>
#include <stdint.h>

#define OCT_LANES 16u
#define OCT_LANES_MAX_COLUMNS 32u /* n = 8192 */
/* Vectors behind the last row, so that the 16 rows do not meet in the same sets of a cache. */
#define OCT_LANES_ROW_PAD 1u

/* Twiddles of one length. */
struct oct_lane_fft {
    uint32_t n, columns;
    float *outer; /* [C][16][2][16]: n2, k1, re and im, l */
    float *inner; /* [C][16][2]: k2, l, re and im */
};

/* The plan's taps in the order in which the first pass of the last transform takes them: blocks of
 * `width` outputs, block (n2, n1, part) at  ((n2 * 16) + n1) * (16 / width) + part. Even and odd
 * samples of the upsampled line lie in arrays of their own (stages.h has the sum); those of a block
 * are even[even_base + even_offset ...]. direct is 0 where a block reaches further than `width`
 * samples (k changes very fast there) and must gather. */
struct oct_lane_block {
    int32_t even_base, odd_base, direct;
};

struct oct_lane_taps {
    uint32_t n; /* P2 */
    unsigned width, n_half_taps;
    struct oct_lane_block *block; /* [P2/width] */
    int16_t *offset;              /* [P2/width][width][2]: even, odd */
    float *weight;                /* [P2/width][n_half_taps][2][width]: even, odd */
    float *phase;                 /* [P2/width][2][width]: re, im */
};

/* One instruction set. Arrays are aligned to 64 bytes; pairs of pointers are two lines, which up to
 * k space are the real and the imaginary part of one signal. */
struct oct_lanes {
    unsigned width; /* floats a register */

    /* odd[i] = the line half a sample on: inverse of (transform of even * filter), filter [2][P1]
     * (re, then im). odd may not be even. work: oct_lane_work_floats(P1). */
    void (*half_sample)(float *const odd[2], const float *const even[2],
                        const struct oct_lane_fft *fft, const float *filter, float *work);

    /* power[i][d] = |transform of (line i resampled, times the phase)|^2 for d < P2/16 * n_out;
     * n_out 1, 4 or 8. power[1] NULL: only the first line. bins[i], where it is not NULL, is that
     * transform itself, [2][P2/2]: re, then im. even, odd: [P1] and `width` more, which are read
     * but not used. work: two times oct_lane_work_floats(P2). */
    void (*to_depth)(float *const power[2], float *const bins[2], const float *const even[2],
                     const float *const odd[2], const struct oct_lane_taps *taps,
                     const struct oct_lane_fft *fft, unsigned n_out, float *work);

    /* nufft: power[i][d] = gain[d] * |transform of the grid that line i is spread onto|^2 for
     * d < n/16 * n_out; n_out 1, 4 or 8. power[1] NULL: only the first line, but line[1] is read.
     * bins as above, [2][n/2], without the gain. Around the lines lies what spread_blocks.h says.
     * work: two times oct_lane_work_floats(n). */
    void (*spread_to_depth)(float *const power[2], float *const bins[2], const float *const line[2],
                            const struct oct_spread_blocks *blocks, const float *gain,
                            const struct oct_lane_fft *fft, unsigned n_out, float *work);
};

#if defined(__x86_64__)
extern const struct oct_lanes oct_lanes_avx2;
extern const struct oct_lanes oct_lanes_avx512;
#endif

/* Whether lines of P1 padded samples can take this way; with nufft, grids of n points. */
bool oct_lanes_cover(uint32_t padded);
bool oct_lanes_cover_grid(uint32_t n);

/* OCT_E_NO_MEMORY; finish is right after a failure too, and on zeroed memory. */
enum oct_err oct_lane_fft_init(struct oct_lane_fft *fft, uint32_t n);
void oct_lane_fft_finish(struct oct_lane_fft *fft);
enum oct_err oct_lane_taps_init(struct oct_lane_taps *taps, const struct oct_plan *plan,
                                unsigned width);
void oct_lane_taps_finish(struct oct_lane_taps *taps);

static inline size_t oct_lane_work_floats(uint32_t n)
{
    return 2 * ((size_t)n + OCT_LANES * OCT_LANES * OCT_LANES_ROW_PAD);
}

#endif
