/* A band-limited scene that is known between the pixels: a sum of cosines, evaluated in double at
 * any place. The oracle of registration. */
#ifndef OCT_TEST_RIG_WAVES_H
#define OCT_TEST_RIG_WAVES_H

#include "numeric/picture.h"

#define OCT_WAVES 96

struct oct_waves {
    double k_y[OCT_WAVES], k_x[OCT_WAVES], phase[OCT_WAVES];
};

/* Wavelengths from `shortest` to `longest` px in all directions; variance 1. */
void oct_waves_init(struct oct_waves *waves, uint64_t seed, double shortest, double longest);

/* picture(y, x) = scene(y + dy[y], x + dx[y]): registered onto the unmoved one, each line has the
 * shift (dy[y], dx[y]). NULL: not moved. */
void oct_waves_draw(const struct oct_waves *waves, const double *dy, const double *dx,
                    struct oct_picture *picture);

/* The same with one shift for all lines, and normal noise. The caller finishes the picture. */
struct oct_picture oct_waves_picture(const struct oct_waves *waves, uint32_t height, uint32_t width,
                                     double dy, double dx, double noise, uint64_t *random);

void oct_waves_add_noise(struct oct_picture *picture, double sd, uint64_t *random);

#endif
