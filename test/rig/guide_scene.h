/* Pictures of the synthetic retina with one fault or more, of known size: noise, a shift in
 * depth, a camera at its limit, part of it dark. */
#ifndef OCT_TEST_RIG_GUIDE_SCENE_H
#define OCT_TEST_RIG_GUIDE_SCENE_H

#include "viewer/model/picture.h"

#include <stdint.h>

/* A B-scan as intensities, without log. Below what was reconstructed there is noise alone. */
struct guide_scene {
    float *intensity; /* [n_lines][n_filled], counts^2 */
    uint32_t n_lines, depth, n_filled;
    double floor;      /* mean intensity of its noise */
    double ilm, bruch; /* the truth: a fifth of the A-lines has the ILM higher, a fifth Bruch's
                          membrane lower; shares of the depth */
    double saturated;  /* share of the camera's samples that are at its limit */
    double axial_um;   /* of a depth pixel in tissue */
};

/* gain: times which all light comes; 1: nothing is saturated. */
struct guide_scene *guide_scene_open(double gain);
void guide_scene_close(struct guide_scene *scene);

/* Zeroed there is none. */
struct guide_fault {
    double noise;      /* added, in multiples of its own noise */
    double shift;      /* downward, share of the depth; what comes in is noise */
    double dark;       /* share of the A-lines, from the left, that are noise alone */
    unsigned averaged; /* pictures of other noise that are averaged in intensity; 0 and 1: none */
    bool linear;       /* pixels are counts^2 */
    unsigned seed;     /* of the noise */
};

/* f32. The caller finishes it. */
struct oct_view_picture guide_scene_picture(const struct guide_scene *scene,
                                            const struct guide_fault *fault);

/* The same in 8 bits, between two limits in dB. */
struct oct_view_picture guide_scene_in_bytes(const struct oct_view_picture *picture, double lo,
                                             double hi);

#endif
