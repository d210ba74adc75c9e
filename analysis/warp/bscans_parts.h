/* The steps of bscans.c, for the files of this room that take them. */
#ifndef OCT_ANALYSIS_WARP_BSCANS_PARTS_H
#define OCT_ANALYSIS_WARP_BSCANS_PARTS_H

#include "analysis/warp/bscans.h"

/* Shifts in voxels of the fixed volume, which lead to the moving one: B-scans, A-lines, depth. */
struct oct_warp_shift {
    int32_t at[3];
};

/* B-scans that overlap by less than this part of their pixels are not compared: chance is as high
 * as any score there. */
#define OCT_WARP_LEAST_SHARED 0.25

/* ---- bscans_place.c ---- */

/* The shift of the whole volume of the largest ZNCC, times the root of the part that overlaps; from
 * volumes binned to at most 64 voxels a side, so that it is off by half a bin. OCT_E_NO_MEMORY. */
#define OCT_WARP_PLACE_BYTES (UINT64_C(26) << 20) /* of 64 bins a side, at most */
enum oct_err oct_warp_bscans_place(const uint32_t dims[3], const float *fixed, const float *moving,
                                   struct oct_workers *workers, struct oct_warp_shift *place,
                                   struct oct_error *err);

/* ---- bscans_score.c ---- */

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

/* ---- bscans_path.c ---- */

/* The path over fixed B-scans of the greatest sum of scores less prices of jumps, into path [V],
 * voxels. The scores are used up. price: of a B-scan of jump; an A-line or a depth pixel costs a
 * quarter of it, and no jump more than OCT_WARP_DEAREST_JUMP of it. OCT_E_NO_MEMORY. */
#define OCT_WARP_DEAREST_JUMP 10.0
enum oct_err oct_warp_bscans_path(struct oct_warp_scores *scores, double price,
                                  struct oct_warp_shift *path, struct oct_error *err);

/* ---- bscans_fit.c ---- */

/* From the path to fractions of voxels: bscans [V], score NaN where path leads out of the volume or
 * the B-scans are blank. OCT_E_NO_MEMORY. */
enum oct_err oct_warp_bscans_fit(const uint32_t dims[3], const float *fixed, const float *moving,
                                 const struct oct_warp_shift *path, struct oct_workers *workers,
                                 struct oct_warp_bscan *bscans, struct oct_error *err);

#endif
