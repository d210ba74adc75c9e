/* Surfaces whose heights are known, with noise: for the tests of level sets. */
#ifndef OCT_TEST_RIG_SURFACE_SCENE_H
#define OCT_TEST_RIG_SURFACE_SCENE_H

#include <stdint.h>

enum oct_surface_kind { OCT_SURFACE_SHEET, OCT_SURFACE_PIT, OCT_SURFACE_DRUSEN };

struct oct_surface_scene {
    enum oct_surface_kind kind;
    uint32_t n_b, n_j;
    double height;   /* sheet: of the wave; pit: its depth; drusen: of the highest; voxels */
    double width;    /* sheet: the wave's length; pit, drusen: sigma; A-lines */
    double noise;    /* sigma, voxels */
    double outliers; /* the share of A-lines that are moved by 6 to 20 voxels up or down */
    uint32_t seed;
};

/* Either may be NULL; [n_b][n_j]. Heights are about 60 voxels. */
void oct_surface_scene_draw(const struct oct_surface_scene *scene, float *truth, float *noisy);

double oct_surface_rms(const float *a, const float *b, uint64_t n); /* NaN left out */

#endif
