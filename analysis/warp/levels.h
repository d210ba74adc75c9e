/* Levels of a registration, the same for the CPU and the CUDA engine.
 *
 * A level of factor k has floor(side / k) voxels along each side; the centre of voxel i lies at
 * c(i) = k i + (k - 1) / 2 of the volume. Factor 1 is the volume itself; else its values are those
 * of a Gaussian of 0.5 k voxels at c(i), cut at 1.5 k + 0.5 voxels and divided by the sum of its
 * weights, along each axis in turn; the volume is constant beyond its border. With a mask the
 * weights of masked voxels are 0; a voxel of the level is compared where at least half of the
 * weight is left: a little less, so that rounding decides nothing where the mask's edge cuts a
 * voxel in half.
 *
 * A displacement goes from a level to a finer one by trilinear interpolation, constant beyond the
 * outermost centres, times the ratio of the factors. */
#ifndef OCT_ANALYSIS_WARP_LEVELS_H
#define OCT_ANALYSIS_WARP_LEVELS_H

#include "analysis/warp/solver.h"

/* f is taken so many times in a velocity: G takes from it what is short, and longer steps make up
 * for that. */
#define OCT_WARP_GAIN 12.0F
/* Beside |grad T(h)|^2 in what f is divided by: an edge of less contrast than 0.1 counts for less
 * in what G averages. With 1e-4 dark voxels outvoted edges: errors of known fields were 1.3 to 1.8
 * times as large. */
#define OCT_WARP_CONTRAST2 1e-2F

/* Of the barrier: where J is below J1, its energy is B (J / J1 - 1 - log(J / J1)). */
#define OCT_WARP_BARRIER 0.1F
#define OCT_WARP_BARRIER_J 0.3F
#define OCT_WARP_BARRIER_LOG_J (-1.20397280F)

#define OCT_WARP_LEAST_WEIGHT 0.4999F

static inline void oct_warp_level_dims(const uint32_t dims[3], unsigned factor, uint32_t level[3])
{
    for (unsigned i = 0; i < 3; i++)
        level[i] = dims[i] / factor;
}

/* For the centre of voxel i of a level of a factor of 2 or more, the weights of the voxels factor i
 * + first and those behind it; returns how many, at most OCT_WARP_LEVEL_TAPS(factor). first is
 * negative, and the last may lie beyond the side. */
#define OCT_WARP_MOST_FACTOR 64u
#define OCT_WARP_LEVEL_TAPS(factor) (3u * (factor) + 2u)
unsigned oct_warp_level_taps(unsigned factor, float *taps, int64_t *first);

/* A Gaussian of sigma voxels along each axis, cut at radius = ceil(3 sigma): taps[k] of the voxels
 * at distance k, 0 .. radius, taps[0] + 2 sum taps[k] = 1. Fields are constant beyond the
 * border. */
#define OCT_WARP_MOST_RADIUS 96u
struct oct_warp_gauss {
    unsigned radius[3];
    float taps[3][OCT_WARP_MOST_RADIUS + 1];
};
struct oct_warp_gauss oct_warp_gauss_make(const double sigma[3]);
/* G of the steps: sigma in units of the finest spacing. */
struct oct_warp_gauss oct_warp_gauss_of(const struct oct_warp_grid *grid, double sigma);

/* A B-scan along A-lines and depth, in place; scratch: [M * D + 2 OCT_WARP_MOST_RADIUS]. */
void oct_warp_smooth_plane(const struct oct_warp_gauss *g, const uint32_t dims[3], float *plane,
                           float *scratch);
/* A field [3][V][M][D] along all axes, in place; scratch: [workers][n_scratch], each
 * OCT_WARP_SMOOTH_SCRATCH or more. */
#define OCT_WARP_SMOOTH_SCRATCH(dims)                                                              \
    ((size_t)((dims)[0] > (dims)[1] ? (dims)[0] : (dims)[1]) * (dims)[2] +                         \
     2 * (size_t)OCT_WARP_MOST_RADIUS)
void oct_warp_smooth(const struct oct_warp_gauss *g, const uint32_t dims[3],
                     struct oct_workers *workers, float *field, float *scratch, size_t n_scratch);

/* volume [V][M][D], mask the same or NULL -> level [V/k][M/k][D/k], level_mask the same, needed
 * with a mask alone; factor 2 or more. scratch: [workers][n_scratch], each 2 M D or more. */
void oct_warp_level_volume(const uint32_t dims[3], unsigned factor, const float *volume,
                           const uint8_t *mask, struct oct_workers *workers, float *scratch,
                           size_t n_scratch, float *level, uint8_t *level_mask);

/* coarse [3][of level `from`] -> fine [3][of level `to`], to < from; dims of the volume. */
void oct_warp_level_displacement(const uint32_t dims[3], unsigned from, unsigned to,
                                 const float *coarse, struct oct_workers *workers, float *fine);

/* ---- the steps of a level ----
 *
 * The loop over them, the same for the CPU and the CUDA engine: which steps are
 * taken, halved or refused, and when a level ends.
 *
 * There are two displacements, the current one and a trial. A trial whose E is above the current
 * one's or that takes min J below the least one is made again with half the step, and so are those
 * that follow it, until five in a row were taken; after eight halvings of one the level ends with
 * the current displacement. It ends too when E fell by less than 1e-3 of itself over five steps.
 * The CUDA engine queues several steps and decides the same on the device, in cuda_warp_energy.cuh:
 * what is changed here is changed there. */
#define OCT_WARP_MOST_HALVINGS 8u
#define OCT_WARP_LEAST_JACOBIAN 0.1
#define OCT_WARP_LEAST_FALL 1e-3
#define OCT_WARP_MOST_SOFTENINGS 100u
#define OCT_WARP_FALL_STEPS 5u
#define OCT_WARP_LONGER_STEPS 5u /* that are taken before they are twice as long again */

struct oct_warp_energy {
    double energy, ssd; /* E; sum (T(h) - R)^2 */
    double least;       /* min J */
    double change;      /* of E, what is of J */
};

struct oct_warp_descent_ops {
    /* E of the current displacement or of the trial, with the velocity that a step from it would
     * take, which replaces what another call made. */
    enum oct_err (*evaluate)(void *context, bool trial, struct oct_warp_energy *energy,
                             struct oct_error *err);
    /* The trial: the current displacement moved by `scale` of the newest evaluate's velocity, which
     * is of the current one. As long as trials are taken, `n_alike` steps are of that scale. */
    enum oct_err (*step)(void *context, double scale, unsigned n_alike, struct oct_error *err);
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
