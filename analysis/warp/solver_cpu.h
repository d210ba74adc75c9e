/* The CPU engine. Its passes over a level are what an iteration does with each voxel. One source,
 * passes_body.h, for three instruction sets. Their numbers differ by rounding alone.
 *
 *     evaluate: u, T, R -> E and its parts a plane, and v = G along depth and A-lines of the raw
 *               velocity; planes b_first .. b_end - 1, with one more on either side computed anew
 *     step:     v, u -> G along the B-scans, u' = s v + u(x - s v); A-lines j_first .. j_end - 1
 *
 * Both are called for disjoint parts of a level by several threads. */
#ifndef OCT_ANALYSIS_WARP_SOLVER_CPU_H
#define OCT_ANALYSIS_WARP_SOLVER_CPU_H

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

extern const struct oct_warp_passes oct_warp_passes_plain, oct_warp_passes_avx2,
    oct_warp_passes_avx512;

/* "auto", "plain", "avx2" or "avx512"; NULL: this machine has no such thing. */
const struct oct_warp_passes *oct_warp_passes_select(const char *name);

/* ---- the engine, for its parts and its test ---- */

struct oct_warp_engine {
    struct oct_warp_setup setup;
    const struct oct_warp_passes *passes;
    size_t n_workers;
    float *scratch; /* [n_workers][n_scratch] */
    size_t n_scratch;
    float *fixed, *moving; /* of a level of factor 2 or more */
    uint8_t *mask;
    float *u, *v; /* [3]: the other displacement beside the caller's, and velocities */
    struct oct_warp_plane_sums *sums; /* [V] */
    float *largest;                   /* [pieces of a step] */
    float *warped, *total; /* OCT_WARP_PAPER: the template, and [3] its displacement of the level's
                              moving volume */

    /* Of a run. */
    struct oct_warp_pass pass;
    float *current, *trial;
    double bytes;
};

/* Computes with these passes. */
void oct_warp_cpu_use(struct oct_warp_engine *engine, const struct oct_warp_passes *passes);

/* T(h) of pass->u into pass->next. */
void oct_warp_cpu_warp(struct oct_warp_engine *engine);

/* Adds the planes' sums in their order. */
struct oct_warp_energy oct_warp_cpu_energy(const struct oct_warp_engine *engine);

void oct_warp_cpu_accept(void *engine);

/* OCT_WARP_PAPER: the Lagrangian force of pass->u, as it is, to pass->v, and sums. */
void oct_warp_cpu_lagrangian(struct oct_warp_engine *engine);
/* Before and after the steps of a level: engine->current becomes total and starts anew at 0; and is
 * the composition of both. */
void oct_warp_cpu_begin_regridding(struct oct_warp_engine *engine);
void oct_warp_cpu_gather(struct oct_warp_engine *engine);
extern const struct oct_warp_descent_ops oct_warp_cpu_paper;

#endif
