/* One volume onto another, whole: intensities, B-scans, the solver, and what is said of the result.
 *
 *     h = h_bscans o h_nonlinear: fixed voxel x lies at h(x) = x - u(x) of the moving volume
 *
 * Intensities are scaled to 0 to 1 by one robust range for both volumes. With OCT_WARP_BOTH the
 * B-scans of the moving volume are put where those of the fixed one are (bscans.h), and the solver
 * begins with that volume and without a displacement, at factor 2: coarser levels would smooth over
 * the jumps that are left. Where nothing moved between B-scans that is worse than the field alone:
 * the solver is tried without B-scans, and where it leaves less at factor 2 its map is that of
 * OCT_WARP_NONLINEAR. J is that of the whole map: where the eye jumped back between two B-scans
 * the map shows tissue twice and folds (J <= 0), though the field alone does not.
 *
 * One thread; the engine's work is spread over the workers or is on a GPU. */
#ifndef OCT_ANALYSIS_WARP_PAIR_H
#define OCT_ANALYSIS_WARP_PAIR_H

#include "analysis/warp/bscans.h"
#include "analysis/warp/inverse.h"
#include "analysis/warp/solver.h"

enum oct_warp_model { OCT_WARP_BSCANS, OCT_WARP_NONLINEAR, OCT_WARP_BOTH };
#define OCT_WARP_N_MODELS 3u
extern const char
    *const oct_warp_model_names[OCT_WARP_N_MODELS]; /* "bscans", "nonlinear", "both" */

/* What fits the model: as oct_warp_params_default; with OCT_WARP_BOTH from factor 2 on, sigma 4 and
 * lambda 1e-3. */
void oct_warp_pair_params_default(struct oct_warp_params *params, enum oct_warp_profile profile,
                                  enum oct_warp_model model, const uint32_t dims[3]);

struct oct_warp_pair_setup {
    struct oct_warp_setup solver; /* grid, params, workers, gpus, deadline_ms */
    enum oct_warp_model model;
    struct oct_warp_params
        still;           /* OCT_WARP_BOTH: of the field alone, tried too; n_levels 0: not */
    const char *backend; /* "auto", "cpu", "cuda" */
    struct oct_warp_bscans_setup reach; /* reach_* and jump_price; the rest is filled in */
    struct oct_warp_progress progress;
};

/* Owned by the pair; NULL where not computed. */
struct oct_warp_pair {
    float *displacement;           /* [3][V][M][D] of the whole map */
    float *jacobian;               /* [V][M][D] of the whole map */
    float *warped;                 /* [V][M][D] moving(h(x)), in the units of the moving volume */
    struct oct_warp_bscan *bscans; /* [V]; OCT_WARP_NONLINEAR, is_still: NULL */
    double range[2];               /* what became 0 and 1 */
    struct oct_warp_report report; /* of the solver */
    struct oct_warp_likeness before, after; /* of fixed and moving, fixed and warped, scaled; after:
                                               of voxels whose B-scan has a counterpart, and whose
                                               place lies within the moving volume */
    struct oct_warp_volume_change change;   /* of jacobian, within the mask */
    char running[8];                        /* "cpu", "cuda" */
    bool is_rigid; /* OCT_WARP_BOTH: the solver left 98 % or more of the SSD that the B-scans alone
                      leave. What it fitted is noise: the map is that of the B-scans */
    bool is_still; /* OCT_WARP_BOTH: the field alone left less than 0.9 of the SSD that it leaves
                      with the B-scans, at factor 2 or at the end: the map is that of
                      OCT_WARP_NONLINEAR */
    double seconds;
};

/* Bytes of host memory that oct_warp_pair_register takes at most, with the two volumes and the
 * result. */
uint64_t oct_warp_pair_bytes(const struct oct_warp_pair_setup *setup);

/* fixed, moving: [V][M][D]; what is not finite is not compared: what lies beside it in the moving
 * volume is there while the solver looks, and the range's lower end in what is warped.
 * mask: as solve. OCT_E_ARG: a volume that is constant or has nothing finite (says which), less
 * than 10 % of overlap; OCT_E_CLOSED: progress said so; else as the engine. *pair is empty on
 * error. */
enum oct_err oct_warp_pair_register(const struct oct_warp_pair_setup *setup, const float *fixed,
                                    const float *moving, const uint8_t *mask,
                                    struct oct_warp_pair *pair, struct oct_error *err);
void oct_warp_pair_finish(struct oct_warp_pair *pair); /* empty is fine */

/* ---- intensities of two volumes on one scale: pair_range.c ---- */

/* What becomes 0 and 1: the percentiles 0.5 and 99.5 of the finite values of both volumes, or the
 * least and the greatest of them where both percentiles are one value. n: of each. OCT_E_ARG: one
 * of them is constant or has nothing finite; OCT_E_NO_MEMORY. */
enum oct_err oct_warp_range(const float *fixed, const float *moving, size_t n, double range[2],
                            struct oct_error *err);

/* to = from on that scale, within 0 to 1; what is not finite becomes 0. */
void oct_warp_scale(const float *from, size_t n, const double range[2], struct oct_workers *workers,
                    float *to);

/* In place of what is not finite in `from`, [V][M][D], `to` gets what is beside it: of the A-line
 * before it, or behind it; of the B-scan where a depth is nowhere finite in it. Without such a hole
 * an edge appears there, which draws the field. Where nothing is finite at a depth: 0. */
void oct_warp_fill(const float *from, const uint32_t dims[3], float *to);

#endif
