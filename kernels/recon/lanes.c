#include "kernels/recon/lanes.h"

#include "pipeline/base/aligned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

bool oct_lanes_cover(uint32_t padded)
{
    return padded == 2048 || padded == 4096;
}

bool oct_lanes_cover_grid(uint32_t n)
{
    return n == 2048 || n == 4096 || n == 8192;
}

static void *alloc_aligned(size_t n, size_t size)
{
    return oct_aligned_calloc(64, n, size);
}

/* exp(-2 pi i k / n), in double; k is reduced first, so that large products lose nothing. */
static void twiddle(float *re, float *im, uint64_t k, uint32_t n)
{
    double angle = -2 * pi * (double)(k % n) / n;
    *re = (float)cos(angle);
    *im = (float)sin(angle);
}

enum oct_err oct_lane_fft_init(struct oct_lane_fft *fft, uint32_t n)
{
    uint32_t columns = n / (OCT_LANES * OCT_LANES);
    *fft = (struct oct_lane_fft){
        .n = n,
        .columns = columns,
        .outer = alloc_aligned((size_t)columns * 16 * 2 * OCT_LANES, sizeof(float)),
        .inner = alloc_aligned((size_t)columns * 2 * OCT_LANES, sizeof(float)),
    };
    if (!fft->outer || !fft->inner)
        return OCT_E_NO_MEMORY;
    for (uint32_t c = 0; c < columns; c++)
        for (uint32_t l = 0; l < OCT_LANES; l++) {
            float *inner = fft->inner + 2 * ((size_t)c * OCT_LANES + l);
            twiddle(&inner[0], &inner[1], (uint64_t)l * c, n / 16);
            for (uint32_t k = 0; k < 16; k++) {
                float *outer = fft->outer + ((size_t)c * 16 + k) * 2 * OCT_LANES + l;
                twiddle(&outer[0], &outer[OCT_LANES], (uint64_t)k * (16 * c + l), n);
            }
        }
    return OCT_OK;
}

void oct_lane_fft_finish(struct oct_lane_fft *fft)
{
    free(fft->outer);
    free(fft->inner);
    *fft = (struct oct_lane_fft){0};
}

/* Least of the first samples of a block; *direct is cleared when the block reaches too far. */
static int32_t find_base(const struct oct_plan *plan, uint32_t q0, unsigned width, uint32_t up,
                         int32_t *direct)
{
    uint32_t low = UINT32_MAX, high = 0;
    for (uint32_t q = q0; q < q0 + width; q++) {
        uint32_t first = (plan->tap_first[q] + up) / 2;
        low = first < low ? first : low;
        high = first > high ? first : high;
    }
    if (high - low + plan->n_taps / 2 > width)
        *direct = 0;
    return (int32_t)low;
}

/* Consecutive taps from u[first] on alternate between the arrays: with `first` odd the sequence
 * begins in odd, and the first even one is a step further. */
static void place_block(struct oct_lane_taps *taps, const struct oct_plan *plan, size_t b,
                        uint32_t q0)
{
    unsigned width = taps->width;
    struct oct_lane_block *block = &taps->block[b];
    block->direct = 1;
    block->even_base = find_base(plan, q0, width, 1, &block->direct);
    block->odd_base = find_base(plan, q0, width, 0, &block->direct);
    for (unsigned i = 0; i < width; i++) {
        uint32_t q = q0 + i, first = plan->tap_first[q];
        int16_t *offset = taps->offset + (b * width + i) * 2;
        offset[0] = (int16_t)((int32_t)((first + 1) / 2) - block->even_base);
        offset[1] = (int16_t)((int32_t)(first / 2) - block->odd_base);
        for (unsigned t = 0; t < plan->n_taps; t++) {
            size_t at = (b * taps->n_half_taps + t / 2) * 2 + (first + t) % 2;
            taps->weight[at * width + i] = plan->weight[(size_t)t * taps->n + q];
        }
        taps->phase[b * 2 * width + i] = plan->phase_re[q];
        taps->phase[(b * 2 + 1) * width + i] = plan->phase_im[q];
    }
}

enum oct_err oct_lane_taps_init(struct oct_lane_taps *taps, const struct oct_plan *plan,
                                unsigned width)
{
    uint32_t n = plan->geometry.upsampled, columns = n / (OCT_LANES * OCT_LANES);
    unsigned parts = OCT_LANES / width, n_half_taps = plan->n_taps / 2;
    size_t n_blocks = n / width;
    *taps = (struct oct_lane_taps){
        .n = n,
        .width = width,
        .n_half_taps = n_half_taps,
        .block = alloc_aligned(n_blocks, sizeof(struct oct_lane_block)),
        .offset = alloc_aligned(2 * (size_t)n, sizeof(int16_t)),
        .weight = alloc_aligned(2 * (size_t)n * n_half_taps, sizeof(float)),
        .phase = alloc_aligned(2 * (size_t)n, sizeof(float)),
    };
    if (!taps->block || !taps->offset || !taps->weight || !taps->phase)
        return OCT_E_NO_MEMORY;
    for (uint32_t n2 = 0; n2 < columns; n2++)
        for (uint32_t n1 = 0; n1 < 16; n1++)
            for (uint32_t part = 0; part < parts; part++)
                place_block(taps, plan, ((size_t)n2 * 16 + n1) * parts + part,
                            OCT_LANES * (n1 * columns + n2) + part * width);
    return OCT_OK;
}

void oct_lane_taps_finish(struct oct_lane_taps *taps)
{
    free(taps->block);
    free(taps->offset);
    free(taps->weight);
    free(taps->phase);
    *taps = (struct oct_lane_taps){0};
}
