/* Pictures of cones whose places are known: Gaussian blobs about those of a hexagonal lattice. */
#ifndef OCT_TEST_RIG_MOSAIC_H
#define OCT_TEST_RIG_MOSAIC_H

#include "numeric/picture.h"

struct oct_cone_mosaic {
    uint32_t height, width;
    double spacing_y,
        spacing_x; /* of neighbours, pixels: they differ where pixels are not square */
    double angle;
    double jitter;     /* standard deviation of a cone's place, of the spacing */
    double brightness; /* the same of the logarithm of its brightness */
    double shade;      /* the light changes by exp(shade) from side to side */
    double blob;       /* standard deviation of a blob, of the spacing; 0: 0.22 */
    double noise;      /* white, of the picture's mean */
    double missing;    /* share of cones that are not there */
    double bend;       /* the spacing changes by so much from the middle to a side, of itself */
    uint64_t seed;
};

/* Where the cones are: y, x; [n], those within the picture. */
struct oct_mosaic_truth {
    double (*at)[2];
    size_t n;
};

/* 0.2 in the dark, 1.2 in the middle of a cone; the caller finishes the picture. */
struct oct_picture oct_mosaic_make(const struct oct_cone_mosaic *mosaic, bool masked);

/* The same; the caller frees truth->at. */
struct oct_picture oct_mosaic_make_known(const struct oct_cone_mosaic *mosaic, bool masked,
                                         struct oct_mosaic_truth *truth);

/* White noise around 10. */
struct oct_picture oct_mosaic_noise(uint32_t height, uint32_t width, uint64_t seed);

/* Random points instead of a lattice, as many as cones of that spacing. */
struct oct_picture oct_mosaic_points(uint32_t height, uint32_t width, double spacing,
                                     uint64_t seed);

#endif
