/* The shape of everything: how many samples, A-lines, B-scans, and what follows from them.
 *
 * Spectra are u16 [V][M][N], pictures u8 or f32 [V][M][D], row-major, an A-line contiguous
 * (contract, first page). */
#ifndef OCT_PIPELINE_PLAN_GEOMETRY_H
#define OCT_PIPELINE_PLAN_GEOMETRY_H

#include "pipeline/base/err.h"

#include <stddef.h>
#include <stdint.h>

/* Limits that keep every product below in 64 bits and every index in 31. */
#define OCT_MAX_SAMPLES (1u << 17)
#define OCT_MAX_LINES (1u << 16)
#define OCT_MAX_BSCANS (1u << 20)
#define OCT_MAX_BSCAN_SAMPLES (1u << 28) /* M * max(N, D): 512 MiB of u16 in one ring slot */
#define OCT_MIN_SAMPLES 4u               /* less is no spectrum */

enum oct_sample_type { OCT_SAMPLE_U8 = 1, OCT_SAMPLE_F32 = 2 };

struct oct_geometry {
    uint32_t n_samples;               /* N: samples an A-line */
    uint32_t n_lines;                 /* M: A-lines a B-scan */
    uint32_t n_bscans;                /* V: B-scans a volume */
    uint32_t padded;                  /* P1: smallest power of two >= max(N, 2048) */
    uint32_t upsampled;               /* P2 = 2 * P1 */
    uint32_t left;                    /* (P1 - N) / 2: zeros before the first sample */
    uint32_t crop_first;              /* first depth pixel kept */
    uint32_t crop_last;               /* one past the last depth pixel kept, <= P2 / 2 */
    uint32_t depth;                   /* D = crop_last - crop_first */
    enum oct_sample_type sample_type; /* of the pictures */
};

/* Computes all derived members. crop_last 0 means P2 / 2. OCT_E_CONFIG with the offending key
 * named ("camera.samples", "scan.lines", "pipeline.crop_last", ...) if the geometry is impossible;
 * M must be at least 1 (with dc=bscan one line would subtract itself: that is refused by the
 * plan). */
enum oct_err oct_geometry_init(struct oct_geometry *g, uint32_t n_samples, uint32_t n_lines,
                               uint32_t n_bscans, uint32_t crop_first, uint32_t crop_last,
                               enum oct_sample_type sample_type, struct oct_error *err);

/* Bytes of one B-scan of spectra (M * N * 2) and of one picture (M * D * 1 or 4). */
size_t oct_geometry_spectra_bytes(const struct oct_geometry *g);
size_t oct_geometry_image_bytes(const struct oct_geometry *g);
/* Of complex values, [M][D][2] f32. */
size_t oct_geometry_complex_bytes(const struct oct_geometry *g);

/* P1 for N samples; 0 when N is out of range. */
uint32_t oct_geometry_padded(uint32_t n_samples);

#endif
