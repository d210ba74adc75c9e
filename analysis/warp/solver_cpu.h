/* The CPU engine, for its parts and its test. */
#ifndef OCT_ANALYSIS_WARP_SOLVER_CPU_H
#define OCT_ANALYSIS_WARP_SOLVER_CPU_H

#include "analysis/warp/descent.h"
#include "analysis/warp/passes.h"

/* Of OCT_WARP_PAPER alone. */
struct oct_warp_regridding {
    float *warped; /* the template */
    float *total;  /* [3]: its displacement of the level's moving volume */
};

struct oct_warp_engine {
    struct oct_warp_setup setup;
    const struct oct_warp_passes *passes;
    size_t n_workers;
    float *scratch; /* [n_workers][n_scratch] */
    size_t n_scratch;
    float *fixed, *moving; /* of a level of factor 2 or more */
    uint8_t *mask;
    uint8_t *finite; /* [V] */
    float *u, *v;    /* [3]: the other displacement beside the caller's, and velocities */
    struct oct_warp_plane_sums *sums; /* [V] */
    float *largest;                   /* [pieces of a step] */
    struct oct_warp_regridding regridding;

    /* Of a run. */
    struct oct_warp_pass pass;
    float *current, *trial;
    double bytes;
};

/* Computes with these passes. */
void oct_warp_cpu_use(struct oct_warp_engine *engine, const struct oct_warp_passes *passes);

/* Pieces of the planes of a level: of piece i the planes [i n / pieces, (i + 1) n / pieces). */
unsigned oct_warp_cpu_n_pieces(const struct oct_warp_engine *engine, uint32_t n, uint32_t least);

/* Adds the planes' sums in their order. */
struct oct_warp_energy oct_warp_cpu_energy(const struct oct_warp_engine *engine, double *change);

void oct_warp_cpu_accept(void *engine);

/* OCT_WARP_PAPER: the Lagrangian force of pass->u, as it is, to pass->v, and sums. */
void oct_warp_cpu_lagrangian(struct oct_warp_engine *engine);
/* Before and after the steps of a level: engine->current becomes total and starts anew at 0; and is
 * the composition of both. */
void oct_warp_cpu_begin_regridding(struct oct_warp_engine *engine);
void oct_warp_cpu_gather(struct oct_warp_engine *engine);
extern const struct oct_warp_descent_ops oct_warp_cpu_paper;

#endif
