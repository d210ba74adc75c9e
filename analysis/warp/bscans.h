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

/* ---- the steps of oct_warp_bscans, a file each ---- */

/* Shifts in voxels of the fixed volume, which lead to the moving one: B-scans, A-lines, depth. */
struct oct_warp_shift {
    int32_t at[3];
};

/* B-scans that overlap by less than this part of their pixels are not compared: chance is as high
 * as any score there. */
#define OCT_WARP_LEAST_SHARED 0.25

/* The shift of the whole volume of the largest ZNCC, times the root of the part that overlaps; from
 * volumes binned to at most 64 voxels a side, so that it is off by half a bin. OCT_E_NO_MEMORY. */
#define OCT_WARP_PLACE_BYTES (UINT64_C(60) << 20) /* of 64 bins a side, at most */
enum oct_err oct_warp_bscans_place(const uint32_t dims[3], const float *fixed, const float *moving,
                                   struct oct_warp_shift *place, struct oct_error *err);

/* ZNCC of fixed B-scans with moving ones, of B-scans binned by `bin`. */
struct oct_warp_scores {
    uint32_t n_bscans;            /* V */
    uint32_t bin;                 /* in both directions */
    uint32_t reach[3];            /* B-scans; binned A-lines and depth pixels */
    struct oct_warp_shift centre; /* B-scans; binned A-lines and depth pixels */
    size_t n[3];                  /* 2 reach + 1 */
    /* [V][n[0]][n[1]][n[2]]: fixed B-scan b with b + centre + i - reach; NaN: there is none, or
     * one of them is blank. */
    float *score;
    float unlike; /* the median over pairs of their largest score: of pairs that do not belong */
};

/* reach: voxels. free() releases scores->score. OCT_E_NO_MEMORY: that is NULL. */
enum oct_err oct_warp_scores_make(struct oct_warp_scores *scores, const uint32_t dims[3],
                                  const uint32_t reach[3], const struct oct_warp_shift *place,
                                  const float *fixed, const float *moving,
                                  struct oct_workers *workers, struct oct_error *err);
/* Bytes that making them takes at most, wherever the volumes lie. */
uint64_t oct_warp_scores_bytes(const uint32_t dims[3], const uint32_t reach[3], unsigned n_threads);

/* The path over fixed B-scans of the greatest sum of scores less prices of jumps, into path [V],
 * voxels. The scores are used up. price: of a B-scan of jump; an A-line or a depth pixel costs a
 * quarter of it, and no jump more than OCT_WARP_DEAREST_JUMP of it. OCT_E_NO_MEMORY. */
#define OCT_WARP_DEAREST_JUMP 10.0
enum oct_err oct_warp_bscans_path(struct oct_warp_scores *scores, double price,
                                  struct oct_warp_shift *path, struct oct_error *err);

/* From the path to fractions of voxels: bscans [V], score NaN where path leads out of the volume or
 * the B-scans are blank. OCT_E_NO_MEMORY. */
enum oct_err oct_warp_bscans_fit(const uint32_t dims[3], const float *fixed, const float *moving,
                                 const struct oct_warp_shift *path, struct oct_workers *workers,
                                 struct oct_warp_bscan *bscans, struct oct_error *err);

#endif
