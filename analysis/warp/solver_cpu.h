/* The CPU engine. Its passes over a level are what an iteration does with each voxel. One source,
 * passes_simd.c, for three instruction sets. Their numbers differ by rounding alone.
 *
 *     evaluate: u, T, R -> E and its parts a plane, and v = G along depth and A-lines of the raw
 *               velocity; of a piece of planes, with one more on either side computed anew
 *     step:     v, u -> G along the B-scans, u' = s v + u(x - s v); of n_lines A-lines
 */
#ifndef OCT_ANALYSIS_WARP_SOLVER_CPU_H
#define OCT_ANALYSIS_WARP_SOLVER_CPU_H

#include "analysis/warp/levels.h"
#include "pipeline/base/simd.h"

/* Of one plane. */
struct oct_warp_plane_sums {
    double ssd, change; /* sum (T(h) - R)^2, and of E what is of J */
    float least;        /* min J */
};

/* A level. Fields of three components are [3][V][M][D]. */
struct oct_warp_pass {
    uint32_t dims[3];
    const float *fixed, *moving;
    const uint8_t *mask; /* NULL: all are compared */
    const float *u;
    float *v;           /* evaluate writes it, step reads it */
    float *next;        /* u', T(h) or J */
    const float *total; /* OCT_WARP_PAPER: the displacement of the template */
    float lambda, kappa;
    float per_unit2[3]; /* voxels per unit of each axis, squared */
    struct oct_warp_gauss gauss;
    float scale, most_step;           /* s; |v| in units of the finest spacing */
    struct oct_warp_plane_sums *sums; /* [V] */
    float *scratch;                   /* [workers][n_scratch] */
    size_t n_scratch;
    unsigned n_pieces; /* of evaluate and force */
    uint32_t n_lines;  /* A-lines of a piece of step */
};

/* Pieces for oct_workers_run, whose context is the struct oct_warp_pass. Of warp, T(h), and of
 * jacobian a piece is a plane; force is the Eulerian one as it is, to v. */
struct oct_warp_passes {
    void (*evaluate)(void *pass, unsigned piece, unsigned worker);
    void (*step)(void *pass, unsigned piece, unsigned worker);
    void (*warp)(void *pass, unsigned piece, unsigned worker);
    void (*jacobian)(void *pass, unsigned piece, unsigned worker);
    void (*force)(void *pass, unsigned piece, unsigned worker);
};
OCT_SIMD_TABLES(struct oct_warp_passes, oct_warp_passes);

#define OCT_WARP_TOGETHER 4u /* B-scans of a step that are smoothed at once */
#define OCT_WARP_PAD 16u     /* floats before and behind a row in scratch */

static inline size_t oct_warp_row_of(const struct oct_warp_pass *p, uint32_t b, uint32_t j)
{
    return ((size_t)b * p->dims[1] + j) * p->dims[2];
}

static inline size_t oct_warp_n_of(const struct oct_warp_pass *p)
{
    return (size_t)p->dims[0] * p->dims[1] * p->dims[2];
}

static inline size_t oct_warp_pitch(uint32_t n_d)
{
    return (n_d + 15u) / 16 * 16 + 2 * (size_t)OCT_WARP_PAD;
}

/* "auto", "plain", "avx2" or "avx512"; NULL: this machine has no such thing. */
const struct oct_warp_passes *oct_warp_passes_select(const char *name);

/* Computes with these passes: for the test. */
void oct_warp_cpu_use(struct oct_warp_engine *engine, const struct oct_warp_passes *passes);

#endif
