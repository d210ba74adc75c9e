/* A retina of bands with speckle, whose layers lie where they are told to. */
#ifndef OCT_TEST_RIG_LAYERED_EYE_H
#define OCT_TEST_RIG_LAYERED_EYE_H

#include <stdbool.h>
#include <stdint.h>

struct oct_layered_eye {
    uint32_t n_lines, depth;
    double depth_um;
    uint64_t seed; /* of the speckle */
};

/* pixels: [n_lines][depth] dB, noise at 0. ilm, rpe: [n_lines] px, of the reflex' centre and of the
 * band's lower border; NaN: nothing but noise. */
void oct_layered_draw(const struct oct_layered_eye *eye, const double *ilm, const double *rpe,
                      float *pixels);

/* A pit with an RPE that bends, `depth_um` deep pixels, both in px, moved down by shift_px. */
void oct_layered_pit(const struct oct_layered_eye *eye, double shift_px, double *ilm, double *rpe);

/* 1: uniform, 0 < u <= 1, and the next state. */
double oct_layered_uniform(uint64_t *state);

#endif
