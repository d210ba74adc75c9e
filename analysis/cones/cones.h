/* Cones in a picture from above: the spacing of photoreceptors by the ring of a correlation, and
 * with it each of them counted (count.h), which gives spacing and density.
 *
 *     u = log(I + 0.13 mean I)                                  (dB pictures: u = I)
 *     e = -LoG_sigma(u) / sqrt(G_{8 sigma} * e^2)               (whiten.h)
 *     C1D of e, normalised by the overlap (analysis/correlate/profile.h) -> first ring R1, C(R1)
 *
 * A ladder sigma = s_min/9 * 2^(k/2) .. s_max/9 (0.5 px at least) looks for the ring: of those with
 * 6 <= R1/sigma <= 13, s_min <= R1 <= s_max and C(R1) >= 0.06 the one with the largest C(R1).
 * Then sigma follows the ring, up to three times: sigma = R1/12 and s = R1/0.978; where C(R1) is
 * below 0.06 there, R1/8 and 0.987, then R1/6.5 and 0.998. A ring that moves by more than a
 * quarter of what the ladder found, or out of s_min .. s_max, is not the ladder's and does not
 * count. The factors are geometry: the average over circles of blobs pulls a ring inwards.
 * C and R1 are those of the vertex of the parabola through three bins of C1D.
 *
 * With that s cones are counted: sigma = 0.17 s or 0.136 s, as near the limit of resolution tops
 * merge at the former. Where the ring needed R1/8 or R1/6.5, sigma = 0.20, 0.16 or 0.225 s, or
 * 0.22, 0.175 or 0.245 s: it does in noise, which makes tops of its own. The first holds, unless
 * the areas of the whole cells are clearly more alike with another: a cone that is missed doubles a
 * cell, one too many halves it. The spacing and the density are those of the count; the ring's stay
 * beside them, as a second value that knows nothing of single cones.
 *
 *     rows = s sqrt(3)/2,    cells per area = 2/(sqrt(3) s^2)            (hexagonal)
 *
 * C(R1) is the strength: 0.06 at least; noise and speckle stay below 0.05. Where the picture holds
 * fewer than 100 squares of R1, 0.6 / sqrt(valid pixels / R1^2) is the least in place of 0.06, in
 * the ladder too: so few random points make rings of that strength. Large sigmas (R1 above
 * 48 pixels; in the ladder sigma above 2) are looked for in the picture reduced by 2, 4, 8, ...
 * A split detector shows each cone as a bright and a dark half side by side; its rings are no
 * spacings (up to a quarter off). A ring counts as that of such a picture, and is none, where e of
 * sigma = R1/6 is steeper along one direction (anisotropy of the mean structure tensor,
 * (l1 - l2) / (l1 + l2), above 0.12) and its skewness is below 0: bright cones on a darker ground
 * have a skewness above 0, and dark ones no direction.
 *
 * Masked pixels are left out (whiten.h, correlate.h). The picture may have any gain and offset in
 * its light.
 *
 * One thread uses a finder at a time; different ones are independent. */
#ifndef OCT_ANALYSIS_CONES_CONES_H
#define OCT_ANALYSIS_CONES_CONES_H

#include "analysis/cones/count.h"
#include "numeric/picture.h"

#define OCT_CONES_LEAST_SPACING_PX 4.0
#define OCT_CONES_LEAST_STRENGTH 0.06
#define OCT_CONES_USUAL_DIFFERENCE 0.05 /* of both spacings; crops of a living eye: 0.03 at most */
#define OCT_UM2_PER_MM2 1e6
#define OCT_CONES_MOST_LEVELS 12u /* reductions of a picture by 1, 2, 4, ... */

struct oct_cones_setup {
    uint32_t height, width;   /* of all pictures */
    double least_px, most_px; /* of the spacing; 0: 4 and min(height, width) / 6 */
    bool is_db;               /* pixels are logarithmic already */
    bool masked;              /* pictures may have masks */
};

struct oct_cones_result {
    bool found;
    double spacing_px; /* of the cones counted; the ring's where no cell is whole. NaN: no ring */
    double ring_spacing_px; /* s of the ring alone; NaN: no ring */
    double strength;        /* C at the ring; NaN: no ring */
    double ring_px;         /* R1, where C1D has the ring; NaN: no ring */
    struct oct_cone_count count;
    bool is_split; /* not found: the picture looks like one of a split detector */

    /* Without a ring: the strongest that was seen within the limits of the spacing, of whatever
     * strength, NaN: none at all. needed: the strength that counts there; more than the least where
     * few cells fit. */
    double seen_px, seen_strength, needed;
};

extern const struct oct_cones_result oct_cones_none; /* no ring, and none seen */

struct oct_cones;

/* *cones is NULL on error. OCT_E_ARG: a side below 16 pixels, or limits that cannot be (least_px
 * below 2, or not below most_px, or more than a third of the shorter side); OCT_E_NO_MEMORY. */
enum oct_err oct_cones_create(struct oct_cones **cones, const struct oct_cones_setup *setup,
                              struct oct_error *err);
void oct_cones_destroy(struct oct_cones *cones); /* NULL is fine */

/* Finds the spacing. OCT_E_ARG: "no contrast", or fewer than 10 % of the pixels are valid;
 * OCT_E_NO_MEMORY. *result is without a ring then. */
enum oct_err oct_cones_find(struct oct_cones *cones, const struct oct_picture *picture,
                            struct oct_cones_result *result, struct oct_error *err);

/* C1D that the newest result came from: of the ring, else of the strongest that was seen. radius
 * (pixels of the picture) and c1d are lent until the next find or destroy; 0: there is none. */
uint32_t oct_cones_profile(const struct oct_cones *cones, const double **radius,
                           const double **c1d);

/* Gives away the cones of the newest result, [result->count.n]; the caller frees them. NULL: there
 * is no ring, or they are given already. */
struct oct_cone_place *oct_cones_take_places(struct oct_cones *cones);

/* Whether both spacings are further apart than usual. */
bool oct_cones_differ(const struct oct_cones_result *result);

/* Of a hexagonal lattice. NaN where the spacing is. */
double oct_cones_rows(double spacing);
double oct_cones_per_area(double spacing); /* in 1 / unit of spacing^2 */

#endif
