/* Layered tissue with speckle as a scanner sees it while the eye moves between B-scans. The tissue
 * is one continuous picture, so that what belongs together is exact. All lengths are voxels. */
#ifndef OCT_TEST_RIG_TORN_TISSUE_H
#define OCT_TEST_RIG_TORN_TISSUE_H

#include <stdbool.h>
#include <stdint.h>

struct oct_torn_tissue {
    uint32_t dims[3]; /* V, M, D */
    uint64_t seed, noise_seed;
    double noise; /* sd; the tissue is within 0 to 1 or so */
    double bend;  /* how far it is bent up and down, smoothly: oct_torn_tissue_bend */
};

/* How much deeper tissue at (y, x) is shown than without `bend`. */
double oct_torn_tissue_bend(const struct oct_torn_tissue *tissue, double y, double x);

/* motion: [V][3]: B-scan b, A-line j, pixel d shows tissue (b + motion[b][0], j + motion[b][1],
 * d - motion[b][2]). volume: [V][M][D]. */
void oct_torn_tissue_draw(const struct oct_torn_tissue *tissue, double (*motion)[3], float *volume);

/* Where fixed B-scan b is in the moving volume, between two of its B-scans, as a shift; of several
 * places that whose first part is nearest to `guess`. false: it was not seen. */
bool oct_torn_tissue_shift(uint32_t n_bscans, double (*fixed)[3], double (*moving)[3], uint32_t b,
                           double guess, double shift[3]);

#endif
