/* The B-scans of one volume onto those of another, before anything nonlinear: an eye that jumps
 * between B-scans tears both volumes in other places, which no smooth field undoes.
 *
 * First a translation of the whole volumes, in whole voxels; then each fixed B-scan against the
 * moving ones within reach_bscans of its expected place, by normalised cross-correlation over
 * A-lines and depth; then the path over fixed B-scans of the greatest sum of scores, less a price
 * for jumps, at most ten of them for one jump; then fractions: along A-lines and depth by
 * parabolas, across B-scans by a Gaussian, which is what the beam makes of ZNCC. Pixels are dB, not
 * linear intensity.
 *
 * Same volumes, same numbers, whatever the number of threads. */
#ifndef OCT_ANALYSIS_WARP_BSCANS_H
#define OCT_ANALYSIS_WARP_BSCANS_H

#include "analysis/warp/solver.h"

struct oct_workers;

struct oct_warp_bscans_setup {
    uint32_t dims[3];                                /* V, M, D of both */
    uint32_t reach_bscans, reach_lines, reach_depth; /* 0: 24, 32, 16 */
    double jump_price;                               /* a B-scan of jump, in score; 0: 0.01 */
    struct oct_workers *workers;
};

struct oct_warp_bscan {
    double shift[3]; /* voxel (b, j, d) of fixed B-scan b lies at (b + shift[0], j + shift[1],
                        d + shift[2]) of the moving volume */
    double score;    /* NCC; NaN: it has no counterpart, and shift is between its neighbours' */
};

/* Bytes that oct_warp_bscans takes at most, beside the volumes. */
uint64_t oct_warp_bscans_bytes(const struct oct_warp_bscans_setup *setup);

/* OCT_E_ARG: `part` (of 1) of the fixed volume lies in the moving one after alignment, which is
 * less than 10 %. */
enum oct_err oct_warp_overlap_check(double part, struct oct_error *err);

/* fixed, moving: [V][M][D], finite. bscans: [V]. OCT_E_ARG: a constant volume, or less than 10 % of
 * the fixed volume lies in the moving one after alignment; OCT_E_NO_MEMORY. */
enum oct_err oct_warp_bscans(const struct oct_warp_bscans_setup *setup, const float *fixed,
                             const float *moving, struct oct_warp_bscan *bscans,
                             struct oct_error *err);

/* displacement: [3][V][M][D] of that alignment, u = -shift. */
void oct_warp_bscans_displacement(const struct oct_warp_bscan *bscans, const uint32_t dims[3],
                                  float *displacement);

/* jacobian: [V][M][D], J of that displacement by central differences, one-sided at the ends. */
void oct_warp_bscans_jacobian(const struct oct_warp_bscan *bscans, const uint32_t dims[3],
                              float *jacobian);

/* aligned(x) = moving(x + shift), trilinear, constant beyond the border; [V][M][D]. */
void oct_warp_bscans_align(const struct oct_warp_bscan *bscans, const uint32_t dims[3],
                           const float *moving, struct oct_workers *workers, float *aligned);

/* The total displacement of B-scans and of a field u over the aligned volume, in place: fixed voxel
 * x lies at y = x - u(x) of the aligned volume and at y + shift[b] of the moving one, b the B-scan
 * nearest to y: between two B-scans of a jump there is no place that belongs to both. */
void oct_warp_bscans_compose(const struct oct_warp_bscan *bscans, const uint32_t dims[3],
                             struct oct_workers *workers, float *displacement);

#endif
