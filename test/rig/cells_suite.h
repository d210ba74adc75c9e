/* What an engine of analysis/cells/engine.h must find: what the CPU's finds, in scenes of cells and
 * in pictures with masks, ties and edges. For the CUDA engine, on its stand-in and on a device. */
#ifndef OCT_TEST_RIG_CELLS_SUITE_H
#define OCT_TEST_RIG_CELLS_SUITE_H

#include "analysis/cells/engine.h"

/* Returns the number of failures. */
int oct_cells_suite_run(const struct oct_cells_engine_ops *ops, unsigned deadline_ms);

/* Fails the test that runs where the two differ: the same peaks, centres within 0.01 px. */
void oct_cells_suite_compare_cells(const struct oct_cell *cells, unsigned n,
                                   const struct oct_cell *wanted, unsigned n_wanted);
void oct_cells_suite_compare_ends(const struct oct_cell_end *ends,
                                  const struct oct_cell_end *wanted, unsigned n);

/* n starts about the cells, some beside them, some at the border and one outside, each along
 * another flow. */
void oct_cells_suite_starts(const struct oct_cells_engine_setup *setup,
                            const struct oct_cell *cells, unsigned n_cells,
                            struct oct_cell_start *starts, unsigned n);

#endif
