/* Unbiased nonlinear registration of two volumes, behind one table for the CPU and the CUDA engine.
 *
 *     create -> { solve | warp | jacobian | force } -> destroy
 *
 * D. Lee et al., Comput. Methods Programs Biomed. 106 (2012) 175, section 2.2; the energy is that
 * of Yanovsky, Leow et al. T moving, R fixed, h(x) = x - u(x), J = det(I - Du) by central
 * differences, one-sided in the border layer, T trilinear and constant beyond its border:
 *     E(u) = 1/2 sum (T(h) - R)^2 + lambda sum (J - 1) log J                    (Eq. 7 to 9)
 * The second term is the symmetric Kullback-Leibler distance of h from the identity: where volumes
 * differ by noise alone, log J is centred at 0.
 *
 * OCT_WARP_OCTD adds a barrier, so that the map resists where it is about to fold and moves on
 * elsewhere: B sum (J / J1 - 1 - log(J / J1)) over J < J1, with B = 0.1 and J1 = 0.3 (levels.h).
 *
 * The solver (OCT_WARP_OCTD) goes coarse to fine; a level of factor k above 1 is a Gaussian of
 * 0.5 k voxels and every k-th voxel, centres at k i + (k - 1) / 2 (levels.h says how). Steps
 * h <- h o (id - v), u' = v + u(x - v):
 *     f = (T(h) - R) grad(T(h)) - grad P,  P = lambda (J + log J) + B log(J / J1) [J < J1]
 *                                                                               (Eulerian gradient)
 *     v = G_sigma * (12 f / (|grad T(h)|^2 + kappa (T(h) - R)^2 + 8 lambda + 4 B [J < J1] + 0.01))
 * of which a voxel takes most_step at most.
 * A step that raises E or takes min J below 0.1 is halved, and with it those that follow, until
 * five in a row were taken; eight halvings of one end the level;
 * a level ends too when E fell by less than 1e-3 of itself over five steps. A level whose first
 * displacement, from the level before, has min J below 0.1 begins with a smoother one (levels.h).
 * Where the spacing s differs between axes, gradients, sigma and |v| are in units of the finest
 * spacing: grad_i is per s_i / min s, and v_i voxels are v_i s_i / min s of those units; J is the
 * same in any.
 *
 * OCT_WARP_PAPER: the Lagrangian force of Eq. 10 with nine cofactors,
 *     f_i = (T(h) - R) (d_i T)(h) - lambda sum_k d_k (cof_ik L'), L' = 1 + log J - 1 / J,
 * v = G_sigma * f (Eq. 11), u += dt (v - v . grad u) (Eq. 12), dt so that |u' - u| <= most_step;
 * when min J falls below 0.5 the warped template becomes the template and u starts again, and what
 * is returned is the composition of all of them. For comparison: the CPU engine alone has it.
 *
 * Intensities are the caller's, scaled to 0 to 1. Masked voxels of the fixed volume have no part in
 * the first term. The twins agree to 0.01 voxel; same volumes, same bytes, whatever the number of
 * threads. One thread uses an engine at a time. */
#ifndef OCT_ANALYSIS_WARP_SOLVER_H
#define OCT_ANALYSIS_WARP_SOLVER_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oct_workers;

/* Volumes as the registration of two of them takes them, and fields over them: f32, [V][M][D],
 * depth fastest. A displacement is three such fields, [3][V][M][D]: along the B-scans, the A-lines
 * and the depth, in voxels. Fixed voxel x lies at h(x) = x - u(x) of the moving volume. */
struct oct_warp_grid {
    uint32_t dims[3];  /* V, M, D */
    double spacing[3]; /* of a voxel along each: um, or 1 where the file does not know them */
    bool in_um;        /* which of the two */
};

static inline size_t oct_warp_n_voxels(const struct oct_warp_grid *grid)
{
    return (size_t)grid->dims[0] * grid->dims[1] * grid->dims[2];
}

#define OCT_WARP_LEAST_SIDE 4u
#define OCT_WARP_MOST_VOXELS (UINT64_C(1) << 31)

#define OCT_WARP_MOST_LEVELS 4u

enum oct_warp_profile { OCT_WARP_OCTD, OCT_WARP_PAPER };

struct oct_warp_params {
    enum oct_warp_profile profile;
    double lambda;    /* 1e-3; OCT_WARP_PAPER: 5e-4 */
    double sigma;     /* of G, in units of the finest spacing of each level; 0.5 to 32; 4 */
    double kappa;     /* 1 */
    double most_step; /* 0.5 */
    unsigned n_levels;
    unsigned factor[OCT_WARP_MOST_LEVELS];     /* falling: 4, 2, 1; 8 before them where a side is
                                                  above 256; none that leaves a side below
                                                  OCT_WARP_LEAST_SIDE */
    unsigned iterations[OCT_WARP_MOST_LEVELS]; /* at most, of each: oct_warp_iterations */
};

/* The default for a level of that factor: more than volumes of two subjects take, of which all
 * levels but the finest end as their energy no longer falls; of the paper's profile fewer. */
unsigned oct_warp_iterations(enum oct_warp_profile profile, unsigned factor);

/* The defaults for volumes of these sides (V, M, D). */
void oct_warp_params_default(struct oct_warp_params *params, enum oct_warp_profile profile,
                             const uint32_t dims[3]);
/* OCT_E_ARG names what cannot be. */
enum oct_err oct_warp_params_check(const struct oct_warp_params *params,
                                   const struct oct_warp_grid *grid, struct oct_error *err);

struct oct_warp_level {
    unsigned factor;
    unsigned iterations, halvings, regrids;
    double energy_first, energy; /* of that level */
    double ssd_first, ssd;       /* sum (T(h) - R)^2 */
    double least_jacobian;       /* at its end */
    double seconds;
    double bytes; /* moved to and from memory, as counted from the passes */
};

struct oct_warp_report {
    unsigned n_levels;
    struct oct_warp_level level[OCT_WARP_MOST_LEVELS];
    double seconds; /* of solve, with copies */
};

/* Called after each iteration, on the thread of solve; true: stop, solve returns OCT_E_CLOSED. */
struct oct_warp_progress {
    bool (*call)(void *context, unsigned level, unsigned factor, unsigned iteration,
                 unsigned iterations, double energy);
    void *context; /* call NULL: none */
};

struct oct_warp_setup {
    struct oct_warp_grid grid;
    struct oct_warp_params params;
    struct oct_workers *workers; /* of the CPU engine; NULL: the caller alone */
    const char *gpus;            /* as pipeline.gpus; the first of them computes */
    unsigned deadline_ms;        /* of a GPU, for a step of its work; 0: 10000 */
};

struct oct_warp_engine;

struct oct_warp_ops {
    const char *name; /* "cpu", "cuda" */

    /* Bytes that an engine takes of its memory, at most 14 floats a voxel with what solve is lent
     * (OCT_WARP_PAPER: 16), and the rows that each worker has at hand; before it is made. */
    uint64_t (*bytes)(const struct oct_warp_setup *setup);

    /* *engine is NULL on error. OCT_E_ARG; OCT_E_BACKEND: no device; OCT_E_NO_MEMORY: says how much
     * it would take, and what there is. */
    enum oct_err (*create)(struct oct_warp_engine **engine, const struct oct_warp_setup *setup,
                           struct oct_error *err);

    /* fixed, moving: [V][M][D], finite. mask: [V][M][D] of the fixed volume, 1: compared, 0: not;
     * NULL: all. displacement: [3][V][M][D], overlaps none of them. report, progress may be NULL.
     * OCT_E_ARG: what is not finite; OCT_E_CLOSED: progress said so; OCT_E_NO_MEMORY;
     * OCT_E_BACKEND: the device is gone, and only destroy is legal. */
    enum oct_err (*solve)(struct oct_warp_engine *engine, const float *fixed, const float *moving,
                          const uint8_t *mask, float *displacement, struct oct_warp_report *report,
                          const struct oct_warp_progress *progress, struct oct_error *err);

    /* warped(x) = moving(h(x)). displacement: finite, here and below. */
    enum oct_err (*warp)(struct oct_warp_engine *engine, const float *moving,
                         const float *displacement, float *warped, struct oct_error *err);

    /* J(x). */
    enum oct_err (*jacobian)(struct oct_warp_engine *engine, const float *displacement,
                             float *jacobian, struct oct_error *err);

    /* E and its parts at the finest level, the second with the barrier, and the profile's force
     * before it is smoothed or divided: for tests. [3][V][M][D], per voxel whatever the spacing;
     * fixed and moving as they are, without a level's Gaussian. energy: [3], E, its first and its
     * second term. */
    enum oct_err (*force)(struct oct_warp_engine *engine, const float *fixed, const float *moving,
                          const float *displacement, double *energy, float *force,
                          struct oct_error *err);

    /* "cpu" or "cuda": what computes at present. NULL: `name`, always. */
    const char *(*running)(const struct oct_warp_engine *engine);

    void (*destroy)(struct oct_warp_engine *engine); /* NULL is fine */
};

extern const struct oct_warp_ops oct_warp_cpu, oct_warp_cuda;

/* "auto", "cpu" or "cuda": the table to use and an engine made by it. The table of a GPU fails
 * over: when the CUDA engine says OCT_E_BACKEND, the CPU does the same call from its beginning and
 * all to come, and the log says so; with "auto" the CPU is taken at once, with a line, where the
 * GPU's memory is too small, and OCT_WARP_PAPER is always the CPU's. OCT_E_BACKEND: "cuda", and
 * there is no GPU. */
enum oct_err oct_warp_select(const struct oct_warp_ops **ops, struct oct_warp_engine **engine,
                             const char *backend, const struct oct_warp_setup *setup,
                             struct oct_error *err);

#endif
