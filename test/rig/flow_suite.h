/* What the CUDA engine of flow (analysis/flow/engine.h) must stand: of scenes of speckle that moves
 * it finds what the CPU's engine finds, d to 1e-4. On the stand-in for CUDA and on a device. */
#ifndef OCT_TEST_RIG_FLOW_SUITE_H
#define OCT_TEST_RIG_FLOW_SUITE_H

#include <stdbool.h>
#include <stddef.h>

/* gpu: a number other than the engine's own, if there are two. large: all sizes and numbers of
 * repeats. Returns the number of failures. */
int oct_flow_suite_run(unsigned deadline_ms, unsigned gpu, bool large);

/* Of the phantoms of the reference, which oct_flow_truth has; a test, which fails or is skipped. */
void oct_flow_suite_run_truth(unsigned deadline_ms,
                              void *(*truth)(const char *phantom, const char *array, size_t item,
                                             size_t *n));

#endif
