/* The passes of the CPU engine over a level: what an iteration does with each voxel. One source,
 * passes_body.h, for three instruction sets. Their numbers differ by rounding alone.
 *
 *     evaluate: u, T, R -> E and its parts a plane, and v = G along depth and A-lines of the raw
 *               velocity; planes b_first .. b_end - 1, with one more on either side computed anew
 *     step:     v, u -> G along the B-scans, u' = s v + u(x - s v); A-lines j_first .. j_end - 1
 *
 * Both are called for disjoint parts of a level by several threads. */
#ifndef OCT_ANALYSIS_WARP_PASSES_H
#define OCT_ANALYSIS_WARP_PASSES_H

#include "analysis/warp/levels.h"

#define OCT_WARP_ALIGNMENT 64

/* Of one plane. */
struct oct_warp_plane_sums {
    double ssd, change; /* sum (T(h) - R)^2, sum (J - 1) log J */
    float least;        /* min J */
};

/* A level. Fields of three components are [3][V][M][D]. */
struct oct_warp_pass {
    uint32_t dims[3];
    const float *fixed, *moving;
    const uint8_t *mask; /* NULL: all are compared */
    const float *u;
    float *v;    /* evaluate writes it, step reads it */
    float *next; /* u' */
    float lambda, kappa;
    float per_unit2[3]; /* voxels per unit of each axis, squared */
    unsigned radius[3];
    float taps[3][OCT_WARP_MOST_RADIUS + 1];
    float scale;                      /* s */
    struct oct_warp_plane_sums *sums; /* [V] */
};

struct oct_warp_passes {
    const char *name;
    void (*evaluate)(const struct oct_warp_pass *pass, uint32_t b_first, uint32_t b_end,
                     float *scratch);
    /* Returns the largest |v| before it is scaled, in units of the finest spacing. */
    float (*step)(const struct oct_warp_pass *pass, uint32_t j_first, uint32_t j_end,
                  float *scratch);
    /* Rows of a plane: T(h), J, and the Eulerian force, which needs planes on either side. */
    void (*warp)(const struct oct_warp_pass *pass, uint32_t b, float *scratch, float *warped);
    void (*jacobian)(const struct oct_warp_pass *pass, uint32_t b, float *scratch, float *jacobian);
    void (*force)(const struct oct_warp_pass *pass, uint32_t b_first, uint32_t b_end,
                  float *scratch);
};

#define OCT_WARP_TOGETHER 4u /* B-scans of a step that are smoothed at once */
#define OCT_WARP_PAD 16u     /* floats before and behind a row in scratch */

static inline size_t oct_warp_pitch(uint32_t n_d)
{
    return (n_d + 15u) / 16 * 16 + 2 * (size_t)OCT_WARP_PAD;
}

/* A-lines of a piece of a step: their rows lie in a second cache. */
uint32_t oct_warp_strip(uint32_t n_d, unsigned radius);

/* Floats of scratch that a pass over a level of these sides takes; radius: of G along the
 * B-scans. */
size_t oct_warp_scratch_floats(const uint32_t dims[3], unsigned radius);

extern const struct oct_warp_passes oct_warp_passes_plain, oct_warp_passes_avx2,
    oct_warp_passes_avx512;

/* "auto", "plain", "avx2" or "avx512"; NULL: this machine has no such thing. */
const struct oct_warp_passes *oct_warp_passes_select(const char *name);

#endif
