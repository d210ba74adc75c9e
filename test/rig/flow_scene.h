/* Complex B-scans with known motion: speckle and noise of a few lines of code, and the phantoms of
 * the independent reference (../shared/data/flow). */
#ifndef OCT_TEST_RIG_FLOW_SCENE_H
#define OCT_TEST_RIG_FLOW_SCENE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A place of speckle: from depth `top` on tissue of mean power `snr` times that of the noise, which
 * is 1; neighbouring depths share both. Repeat r is moved by r times `lines`, `depth` whole pixels
 * and turned by a phase of its own in each A-line. In the box all is new in each repeat, and below
 * it the phase has `tail` rad of jitter. */
struct oct_flow_scene {
    uint32_t n_lines, depth;
    unsigned n_repeats;
    uint32_t top;
    double snr, noise; /* noise 0: there is none */
    int lines_shift, depth_shift;
    bool turns;
    uint32_t box[4]; /* first line, lines, first depth, depths */
    double tail;
    uint64_t seed;
};

/* [R][M][D][2], to be freed. */
float *oct_flow_scene_make(const struct oct_flow_scene *scene);

/* An array of truth.npz of a phantom; NULL: the folder is not there. item: bytes of an element,
 * which is checked. To be freed; *n: elements. */
void *oct_flow_truth(const char *phantom, const char *array, size_t item, size_t *n);

#endif
