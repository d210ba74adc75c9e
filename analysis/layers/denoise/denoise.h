/* The heights of a layer, denoised as a level set (levelset.h). */
#ifndef OCT_ANALYSIS_LAYERS_DENOISE_DENOISE_H
#define OCT_ANALYSIS_LAYERS_DENOISE_DENOISE_H

#include "analysis/layers/denoise/levelset.h"

struct oct_denoise_setup {
    uint32_t n_bscans, n_lines; /* V, M */
    struct oct_levelset_params params;
    double alike;    /* sigma, in A-lines, of the Gaussian that makes white noise as alike from line
                                    to line as that of the heights; 0: it is white */
    double strength; /* expected noise in voxels, which scales c2 by its square and is that of
                                    the last smoothing; 0: that of the data */
    const char *backend, *gpus;
    unsigned deadline_ms;
    struct oct_workers *workers;
};

struct oct_denoise_report {
    struct oct_levelset_report levelset;
    double noise_px;     /* of the heights, estimated (heights.h), alike as the setup says */
    double rough_px;     /* the same of white noise: what differs from height to height */
    uint64_t n_lost;     /* A-lines that had a height and have no crossing any more */
    const char *running; /* "cpu" or "cuda" */
};

/* The level set's voxel is a pixel deep, or noise / 0.65 where that is more: larger noise folds the
 * band, and patches of a surface are then no longer alike. Stray heights, beyond 2.5 times the
 * noise and 0.3 px off the lines through their neighbours, first become what those say (heights.h).
 * The crossings are the pilot of a last smoothing of the heights as they came, as wide at each
 * place as the surface there allows (heights.h); not so with common_step, the paper's way.
 *
 * positions: [V][M] px, NaN: not found; in place. shift_px: [V], added before and taken away after,
 * so that neighbours are aligned; NULL: none. NaN stays NaN: gaps are filled for the level set
 * alone. The height is the crossing of phi from + to - along the depth, linear between voxels, of
 * several the one nearest the first height (of a stray one, what it became); without one it becomes
 * NaN. Fewer than n B-scans or A-lines with a height: nothing changes. report may be NULL.
 * OCT_E_ARG, OCT_E_NO_MEMORY, OCT_E_BACKEND as levelset.h. */
enum oct_err oct_denoise_heights(const struct oct_denoise_setup *setup, float *positions,
                                 const double *shift_px, struct oct_denoise_report *report,
                                 struct oct_error *err);

/* The crossings of phi [dims] nearest first[n_b][n_j], NaN where there is none; returns how many
 * there are none of. heights may be first. */
uint64_t oct_denoise_crossings(const float *phi, const uint32_t dims[3], const float *first,
                               float *heights);

#endif
