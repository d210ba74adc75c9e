/* Eq. 13 to 15 of a level set by their definition: every pair of voxels, double precision. Slow.
 * Definitions as in analysis/layers/denoise/levelset.h. */
#ifndef OCT_TEST_RIG_LEVELSET_ORACLE_H
#define OCT_TEST_RIG_LEVELSET_ORACLE_H

#include "analysis/layers/denoise/levelset.h"

struct oct_levelset_oracle {
    /* Given. */
    const float *phi;
    uint32_t dims[3];
    struct oct_levelset_params params;

    /* Found; finish frees. */
    uint64_t n_band, n_pairs; /* voxels of the band; LOCAL: candidates, over all of them */
    double base, c2, largest_sum;
    double *result;  /* [n_b][n_j][n_d] */
    uint8_t *unsure; /* [n_b][n_j][n_d] FULL: the last kept and the first left out are equal to
                        within 1e-5 of D */
    uint64_t n_unsure;
};

void oct_levelset_oracle_run(struct oct_levelset_oracle *oracle);
void oct_levelset_oracle_finish(struct oct_levelset_oracle *oracle);

#endif
