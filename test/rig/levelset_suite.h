/* What an engine of analysis/layers/denoise/levelset.h must compute: Eq. 13 to 15 as by their
 * definition (levelset_oracle.h), whatever the band's shape, its ties and the box's sides. For the
 * CUDA engine, on its stand-in and on a device. */
#ifndef OCT_TEST_RIG_LEVELSET_SUITE_H
#define OCT_TEST_RIG_LEVELSET_SUITE_H

#include "analysis/layers/denoise/levelset.h"

/* Returns the number of failures. With `large` also bands of some 50,000 voxels, against the CPU's
 * engine. */
int oct_levelset_suite_run(const struct oct_levelset_ops *ops, unsigned deadline_ms, bool large);

/* Fails the test that runs where an engine made by setup is off the definition. */
void oct_levelset_suite_check(const struct oct_levelset_ops *ops,
                              const struct oct_levelset_setup *setup, const float *phi);

/* A noisy sheet that leaves the box at its sides, at its top and at its bottom. phi [dims]. */
void oct_levelset_suite_draw(const uint32_t dims[3], double noise, uint32_t seed, float *phi);

/* Fails the test that runs where phi differ by more than 1e-5; in FULL at up to one of a hundred
 * voxels of the band, whose lists end in near-equals. */
void oct_levelset_suite_compare(const struct oct_levelset_setup *setup, const float *phi,
                                const float *result, const float *wanted);

#endif
