/* MGVF and snake of one cell by their definition: double precision, the whole arctangent, one pixel
 * at a time. Definitions as in analysis/cells/follow.h. Also pictures with a cell to follow. */
#ifndef OCT_TEST_RIG_CELLS_FOLLOW_ORACLE_H
#define OCT_TEST_RIG_CELLS_FOLLOW_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

#define ORACLE_SNAXELS 20

/* A cell to follow and where it went. */
struct oct_follow_oracle {
    /* Given. */
    const float *pixels; /* [height][width] */
    int height, width;
    double radius, stop;
    double x, y, vx, vy, mean_y;
    double radii[ORACLE_SNAXELS];
    int iterations; /* of the field, that many; 0: until it rests */

    /* Found; x, y and radii are the snake's. */
    bool defined, left;
    int u1, u2, v1, v2;
    int n_field, n_snake;
    double *field; /* [v2 - v1 + 1][u2 - u1 + 1], the caller's to free; NULL: not defined */
};
void oct_follow_oracle_run(struct oct_follow_oracle *o);

/* A picture to free: a disk with a soft edge at (x, y) on noise of deviation 1 that is smooth over
 * about `smooth` px; contrast: of the disk to the noise, negative: dark. */
struct oct_follow_scene {
    int height, width;
    double x, y, radius, contrast, smooth;
    uint32_t seed;
};
float *oct_follow_scene_draw(const struct oct_follow_scene *scene);

#endif
