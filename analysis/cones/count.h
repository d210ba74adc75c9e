/* Cones counted: where each one is, and what follows from that.
 *
 *     tops     pixels of the whitened picture e (whiten.h), sigma = 0.14 to 0.25 s, that
 *              are above 0.3 and not below one of their eight neighbours; none within 0.5 s of a
 *              higher one. Places are those of the vertices of the parabolas along y and x.
 *     cells    of each cone, what is nearer to it than to any other (Voronoi). A cell is whole
 *              where its corners are within 1.5 s, and a cone would be seen at each of them and
 *              twice as far from this cone: none beyond the border or under a mask could cut the
 *              cell, and no gap without cones enlarges it.
 *     density  = whole cells / the sum of their areas
 *     spacing  = sqrt(2 / (sqrt(3) density)), of a hexagonal lattice of that density
 *
 * s is a spacing that is known beforehand, to a quarter. A top on the border is no cone: the mirror
 * image of the picture makes tops of cones that lie outside, too. Nor is one beside a mask, where
 * more than two of the nine pixels around it are masked. The density of whole cells has no bias by
 * what is cut. */
#ifndef OCT_ANALYSIS_CONES_COUNT_H
#define OCT_ANALYSIS_CONES_COUNT_H

#include "pipeline/base/err.h"

#include <math.h>
#include <stdint.h>

struct oct_cone_place {
    double y, x;      /* px; (0, 0) is the middle of the first pixel */
    double nearest;   /* px to the nearest other cone; NaN: none within 3 s */
    double area;      /* px^2 of its cell; NaN: that is not whole */
    uint32_t n_sides; /* of its cell; 0: that is not whole */
};

/* Of whole cells, except n. NaN where there are none, standard errors and regularity where there
 * is one. */
struct oct_cone_count {
    uint32_t n, n_whole;
    double per_px2, spacing; /* density; px */
    /* Standard errors, as if cells were independent of one another: sd(area) / (mean sqrt(n)) of
     * the density. They are not: large ones have small neighbours, and the error is smaller. */
    double per_px2_se, spacing_se;
    double nearest;    /* px: mean distance of the nearest other cone */
    double regularity; /* that / its standard deviation */
    double six_sided;  /* share of cells with six sides */
};

#define OCT_CONE_COUNT_NONE                                                                        \
    {                                                                                              \
        .per_px2 = NAN, .spacing = NAN, .per_px2_se = NAN, .spacing_se = NAN, .nearest = NAN,      \
        .regularity = NAN, .six_sided = NAN                                                        \
    }

struct oct_cone_picture {
    const float *e;       /* [height][width] */
    const uint8_t *valid; /* the same shape; NULL: all are */
    uint32_t height, width;
    uint32_t side; /* a pixel of e is side x side of those in which places and lengths are */
};

/* Counts. spacing: s, 2 px of e at least. *places: [count->n], from above, then from the left; the
 * caller frees them. OCT_E_NO_MEMORY: *places is NULL. */
enum oct_err oct_cone_count_run(const struct oct_cone_picture *picture, double spacing,
                                struct oct_cone_place **places, struct oct_cone_count *count,
                                struct oct_error *err);

#endif
