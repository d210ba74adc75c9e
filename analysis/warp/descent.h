/* The loop over the steps of a level, the same for the CPU and the CUDA engine: which steps are
 * taken, halved or refused, and when a level ends.
 *
 * There are two displacements, the current one and a trial. A trial whose E is above the current
 * one's or that takes min J below the least one is made again with half the step; after eight
 * halvings the level ends with the current one. It ends too when E fell by less than 1e-3 of itself
 * over five steps. The CUDA engine queues several steps and decides the same on the device, in
 * cuda_warp_course.cuh: what is changed here is changed there. */
#ifndef OCT_ANALYSIS_WARP_DESCENT_H
#define OCT_ANALYSIS_WARP_DESCENT_H

#include "analysis/warp/solver.h"

#define OCT_WARP_MOST_HALVINGS 8u
#define OCT_WARP_LEAST_JACOBIAN 0.1
#define OCT_WARP_LEAST_FALL 1e-3
#define OCT_WARP_MOST_SOFTENINGS 100u
#define OCT_WARP_FALL_STEPS 5u

struct oct_warp_energy {
    double energy, ssd; /* E; sum (T(h) - R)^2 */
    double least;       /* min J */
};

struct oct_warp_descent_ops {
    /* E of the current displacement or of the trial, with the velocity that a step from it would
     * take, which replaces what another call made. */
    enum oct_err (*evaluate)(void *context, bool trial, struct oct_warp_energy *energy,
                             struct oct_error *err);
    /* The trial: the current displacement moved by `scale` of the newest evaluate's velocity, which
     * is of the current one. */
    enum oct_err (*step)(void *context, double scale, struct oct_error *err);
    void (*accept)(void *context); /* the trial becomes the current one */
    /* After accept. *energy, of the current one, is replaced where it starts anew; NULL: never. */
    enum oct_err (*regrid)(void *context, struct oct_warp_energy *energy, unsigned *n_regrids,
                           struct oct_error *err);
    /* The current displacement becomes a smoother one: (1 2 1) / 4 along each axis, the border's
     * beyond the border. A level begins with it until min J is not below the least one: between
     * the voxels of a coarser level, whose differences span two voxels, J may be less than it was
     * there, even below 0. NULL: never. */
    enum oct_err (*soften)(void *context, struct oct_error *err);
};

/* Takes steps of level number `index` of params and fills level (but bytes and seconds). Errors of
 * the ops; OCT_E_CLOSED: progress said so. */
enum oct_err oct_warp_descend(const struct oct_warp_descent_ops *ops, void *context,
                              const struct oct_warp_params *params, unsigned index,
                              const struct oct_warp_progress *progress,
                              struct oct_warp_level *level, struct oct_error *err);

#endif
