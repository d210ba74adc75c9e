/* A surface denoised as a level set, by non-local means: B. Dong, J. Ye, S. Osher, I. Dinov, "Level
 * set based nonlocal surface restoration" (2008), as in Lee et al. 2012, behind one table for the
 * CPU and the CUDA engine.
 *
 *     create -> denoise ... -> destroy
 *
 * phi: f32 [n_b][n_j][n_d] signed distance in voxels, negative in the tissue.
 *     Sigma = { x : |phi(x)| <= delta }                                               (Eq. 13)
 *     D(x, y) = sum over the n^3 patch of (phi[x] - phi[y])^2                         (Eq. 14)
 *     w(x, y) = exp(-|x - y|^2 / c1) exp(-D(x, y) / c2),  y != x, both in Sigma
 *     phi_x <- (phi_x + sum_y w phi_y) / (1 + sum_y w)            or, with common_step,
 *     phi_x += dt sum_y w (phi_y - phi_x),  dt = 1 / max_x sum_y w                    (Eq. 15)
 * Weights are those of the phi given, for all steps; a step takes every phi of the one before it.
 * Beyond the box a patch sees the nearest voxel of the box. Outside Sigma phi stays.
 * y: LOCAL, all within `reach` voxels along each axis; FULL, the `most` with the smallest D in the
 * whole band, the first in raster order of equals.
 * c2 = beta * base, base the median over Sigma of the rank-th smallest D among a voxel's candidates
 * (FULL: the whole band), without voxels that have fewer; the mean of two in the middle. With base
 * 0 there is nothing to denoise, and phi stays.
 *
 * The twins agree to 1e-5 in phi but where FULL's choice among equals differs. Same phi, same
 * bytes, whatever the number of threads. One thread uses an engine at a time. */
#ifndef OCT_ANALYSIS_LAYERS_DENOISE_LEVELSET_H
#define OCT_ANALYSIS_LAYERS_DENOISE_LEVELSET_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct oct_workers;

enum oct_levelset_weights { OCT_LEVELSET_LOCAL, OCT_LEVELSET_FULL };

struct oct_levelset_params {
    enum oct_levelset_weights weights;
    double delta;     /* voxels, 0.5 to 16 */
    unsigned patch;   /* n: 3, 5 or 7 */
    unsigned reach;   /* LOCAL: 1 to 8 */
    unsigned most;    /* FULL: m, 24 to 512 */
    double c1;        /* voxels^2; INFINITY */
    double beta;      /* > 0 */
    double c2;        /* 0: beta * base */
    unsigned rank;    /* 1 to 96 */
    unsigned steps;   /* 1 to 100 */
    bool common_step; /* see above */
};

/* local: reach 4, c1 20; full: c1 infinite, most 96; both delta 2.5, n 5, beta 0.5, rank 24, two
 * steps. paper: full with common_step. */
enum oct_levelset_profile {
    OCT_LEVELSET_PROFILE_LOCAL,
    OCT_LEVELSET_PROFILE_FULL,
    OCT_LEVELSET_PROFILE_PAPER
};
void oct_levelset_params_default(struct oct_levelset_params *params,
                                 enum oct_levelset_profile profile);
/* OCT_E_ARG names what cannot be. */
enum oct_err oct_levelset_params_check(const struct oct_levelset_params *params,
                                       struct oct_error *err);

#define OCT_LEVELSET_MOST_VOXELS (UINT64_C(1) << 31) /* a box has fewer */

struct oct_levelset_report {
    uint64_t n_band;    /* voxels of Sigma */
    uint64_t n_patches; /* D(x, y) computed or ruled out by a bound, over all x */
    double base, c2;    /* 0: nothing to denoise; base: 0 where c2 is given, too */
    double largest_sum; /* max_x sum_y w */
    double seconds;     /* of denoise */
};

struct oct_levelset_engine;

struct oct_levelset_setup {
    uint32_t dims[3]; /* n_b, n_j, n_d: n at least, and below 16384, each */
    struct oct_levelset_params params;
    struct oct_workers *workers; /* of the CPU engine; NULL: the caller alone */
    const char *gpus;            /* as pipeline.gpus */
    unsigned deadline_ms;        /* of a GPU, for a step of its work; 0: 2000 */
};

/* Sizes and params that cannot be: OCT_E_ARG. */
enum oct_err oct_levelset_setup_check(const struct oct_levelset_setup *setup,
                                      struct oct_error *err);

struct oct_levelset_ops {
    const char *name; /* "cpu", "cuda" */

    /* *engine is NULL on error. OCT_E_ARG; OCT_E_BACKEND: no device; OCT_E_NO_MEMORY: says how many
     * bytes it would take. */
    enum oct_err (*create)(struct oct_levelset_engine **engine,
                           const struct oct_levelset_setup *setup, struct oct_error *err);

    /* result may be phi. What is not finite in phi is OCT_E_ARG. OCT_E_NO_MEMORY: a band too large;
     * OCT_E_BACKEND: the device is gone, and only destroy is legal. report may be NULL. */
    enum oct_err (*denoise)(struct oct_levelset_engine *engine, const float *phi, float *result,
                            struct oct_levelset_report *report, struct oct_error *err);

    /* "cpu" or "cuda": what computes at present. NULL: `name`, always. */
    const char *(*running)(const struct oct_levelset_engine *engine);

    void (*destroy)(struct oct_levelset_engine *engine); /* NULL is fine */
};

extern const struct oct_levelset_ops oct_levelset_cpu, oct_levelset_cuda;

/* "auto", "cpu" or "cuda": the table to use and an engine made by it. The table of a GPU fails
 * over: when the CUDA engine says OCT_E_BACKEND, with "auto" also where a band has no room on the
 * GPU, the CPU does the same call again and all to come, and the log says so. OCT_E_BACKEND:
 * "cuda", and there is no GPU. */
enum oct_err oct_levelset_select(const struct oct_levelset_ops **ops,
                                 struct oct_levelset_engine **engine, const char *backend,
                                 const struct oct_levelset_setup *setup, struct oct_error *err);

#endif
