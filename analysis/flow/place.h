/* Motion contrast of one place: R B-scans of it, one after another, become a map of how much each
 * voxel has changed, and of how sure that is.
 *
 *     1  noise n0 (noise.h)
 *     2  B_r is moved onto B_0, by the sum of the shifts between neighbours (bscan.h), in whole
 *        A-lines and pixels
 *     3  and turned A-line by A-line, so that sum over d of B_r conj B_r-1 is real and positive
 *     4  same = sum over r of Re(B_r conj B_r-1), both = sum over r of (|B_r|^2 + |B_r-1|^2) / 2
 *     5  the window G (noise.h)
 *     6  d = 1 - G same / max(G both - n0 G pairs, 0.05 G both)
 *     7  b = the median of d where isnr < 0.1, at least 0; isnr = n0 / max(G I - n0, 0.05 n0),
 *        I the mean of |B_r|^2; 0 where that is in fewer than 100 voxels
 *     8  z = (d - b) / sqrt(f isnr^2 / Q + max(0.02, b)^2),  f = (n + m / 2) / n^2
 *        n pairs, m times two of them that share a repeat
 *
 * d is 0 where all is still and 1 where all is new, and to 2 where the phase turns. Of still
 * tissue z has a standard deviation of 1 whatever the light: the signal cancels in both - same,
 * and what is left is |n1 - n2|^2 / 2 - n0. Sources: Makita 2016, Braaf 2018 (noise taken off),
 * Camino 2017 (bulk motion), Huang 2019 (inverse SNR).
 *
 * Moving cells flicker, and so does their shadow: with a projection z becomes z less its share /
 * sd times the largest d with z > 3 and isnr < 1 that lies more than projection_px above (Zhang
 * 2016); sd is the root of step 8.
 *
 * Methods beside `complex`, each with its d in place of step 6, and b and z as above: cdv (Braaf
 * 2018: the modulus of each pair, smoothed along the depth, in place of the real part; no step
 * 3), ssada (Jia 2012: 1 - A_r A_r-1 / ((A_r^2 + A_r-1^2) / 2) of the amplitudes in four parts of
 * the spectrum, mean of parts and pairs), amplitude (the same of the whole spectrum).
 *
 * An A-line that did not come, and a pair of which one B-scan did not come, are left out of all
 * sums. A voxel that no pair has is NaN. The same bytes for any number of threads. One thread
 * uses a place at a time. */
#ifndef OCT_ANALYSIS_FLOW_PLACE_H
#define OCT_ANALYSIS_FLOW_PLACE_H

#include "analysis/flow/optics.h"

#define OCT_FLOW_MOST_REPEATS 64u
#define OCT_FLOW_LEAST_SIZE 16u /* A-lines and depths */

/* Of steps 7 and 8, and of whether a place has moved. */
#define OCT_FLOW_BRIGHT 0.1f       /* isnr where bulk motion is looked at */
#define OCT_FLOW_TISSUE 1.0f       /* isnr of tissue */
#define OCT_FLOW_LEAST_BRIGHT 100u /* voxels */
#define OCT_FLOW_LEAST_SD 0.02     /* of d in still tissue */
#define OCT_FLOW_LEAST_LIGHT                                                                       \
    0.05 /* a pair that is darker beside its noise says nothing of motion */
#define OCT_FLOW_LOOKED_AT 32768u /* voxels at which b and the SNR are looked at, about */

/* Depths from one of these to the next. */
static inline uint32_t oct_flow_look_step(uint32_t n_lines, uint32_t depth)
{
    return (uint32_t)(((uint64_t)n_lines * depth + OCT_FLOW_LOOKED_AT - 1) / OCT_FLOW_LOOKED_AT);
}

enum oct_flow_method { OCT_FLOW_COMPLEX, OCT_FLOW_CDV, OCT_FLOW_SSADA, OCT_FLOW_AMPLITUDE };

struct oct_flow_place_setup {
    uint32_t n_lines, depth; /* M, D: OCT_FLOW_LEAST_SIZE or more of each */
    unsigned n_repeats;      /* R, 2 .. OCT_FLOW_MOST_REPEATS */
    enum oct_flow_method method;
    double sigma_lines, sigma_depth;      /* of G, px */
    double noise;                         /* n0, counts^2; 0: found */
    double max_bulk;                      /* a place whose b is above has moved */
    double projection;                    /* share of what lies above; 0: none */
    double projection_px;                 /* what lies nearer than this is not above */
    const struct oct_flow_optics *optics; /* copied */
    struct oct_workers *workers;          /* NULL: the caller alone */

    /* Where z, projected and intensity need not be kept: takes line j, [D] each, as soon as it is
     * known. Several threads call it, for lines of their own. NULL: found has them. */
    void (*show)(void *context, uint32_t j, const float *d, const float *projected);
    void *context;
};

/* The place's own, until the next one. */
struct oct_flow_found {
    const float *d, *z;     /* [M][D]; NaN: no pair has it; with `show` z and the next are NULL */
    const float *projected; /* [M][D] z less what lies above; without a projection z itself */
    const float *intensity; /* [M][D] mean |B|^2, counts^2; NaN: no repeat has it */
    double shift[OCT_FLOW_MOST_REPEATS][2]; /* A-lines, depth px, onto the first; NaN: lost */
    double noise, bulk;                     /* n0, b */
    double snr_db; /* the mean of 1 / isnr in tissue, which is where isnr < 1; NaN: none */
    double tissue; /* the share of voxels that is tissue */
    unsigned n_pairs;
    bool moved;     /* b is above max_bulk, or a pair has next to nothing in common */
    bool identical; /* all that came have the same bytes: no pair says anything */
};

struct oct_flow_place;

/* OCT_E_NO_MEMORY; *place is NULL on error. */
enum oct_err oct_flow_place_create(struct oct_flow_place **place,
                                   const struct oct_flow_place_setup *setup, struct oct_error *err);
void oct_flow_place_destroy(struct oct_flow_place *place); /* NULL is fine */

/* repeats: [R], of the sizes of the setup; NULL: lost. Without a pair all is NaN. */
enum oct_err oct_flow_place_find(struct oct_flow_place *place,
                                 const struct oct_flow_bscan *const *repeats,
                                 struct oct_flow_found *found, struct oct_error *err);

#endif
