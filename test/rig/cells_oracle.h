/* Scores of circles, their peaks and their floor by definition: direct sums in double precision.
 * Slow. Definitions as in analysis/cells/engine.h. Pictures without masks. */
#ifndef OCT_TEST_RIG_CELLS_ORACLE_H
#define OCT_TEST_RIG_CELLS_ORACLE_H

#include "analysis/cells/engine.h"
#include "numeric/picture.h"

struct oct_cells_oracle {
    uint32_t height, width, border;
    double *smooth, *gx, *gy; /* [height][width] */
    double *score;            /* [height][width]; 0 where it is not defined */
    double *rival;            /* the second largest |S| of the circles */
    unsigned *best;
    double sigma; /* sigma_g */
};

void oct_cells_oracle_init(struct oct_cells_oracle *oracle, const struct oct_picture *picture,
                           const struct oct_cells_params *params);
void oct_cells_oracle_finish(struct oct_cells_oracle *oracle);

/* The largest |S| of others within round(spacing R) of (x, y). */
double oct_cells_oracle_around(const struct oct_cells_oracle *oracle,
                               const struct oct_cells_params *params, uint32_t x, uint32_t y);

/* ---- films to search ---- */

struct oct_cells_disk {
    double x, y, radius, height; /* px; its value above what is around it */
};

enum oct_cells_scene {
    OCT_CELLS_SCENE_NOISE, /* bright and dark disks at contrast 4 of Gaussian noise */
    OCT_CELLS_SCENE_SLOPE, /* 8-bit, under a gradient of light, at the contrast 8 */
    OCT_CELLS_SCENE_FLAT,  /* between regions of one value, saturated in parts */
    OCT_CELLS_N_SCENES
};

/* Adds a disk, each pixel by 16 x 16 points. */
void oct_cells_scene_disk(struct oct_picture *picture, const struct oct_cells_disk *disk);

/* A picture of disks about the radius R; the same seed gives the same pixels. */
void oct_cells_scene(struct oct_picture *picture, uint32_t height, uint32_t width, double radius,
                     enum oct_cells_scene scene, uint32_t seed);

/* From a normal distribution. */
double oct_cells_scene_normal(uint32_t *state);

#endif
