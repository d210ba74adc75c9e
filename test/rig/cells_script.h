/* An engine of cells that finds what a script says: for tests of what links cells. */
#ifndef OCT_TEST_RIG_CELLS_SCRIPT_H
#define OCT_TEST_RIG_CELLS_SCRIPT_H

#include "analysis/cells/engine.h"

#define CELLS_SCRIPT_MOST 64u

/* What one picture shows. */
struct cells_script_picture {
    struct oct_cell cells[CELLS_SCRIPT_MOST]; /* detected, in this order */
    unsigned n_cells;
    /* Seen by snakes alone: a snake ends at the nearest within its window (4 R x 2 R); where there
     * is none it ends at its start, with score 0. */
    struct oct_cell pale[CELLS_SCRIPT_MOST];
    unsigned n_pale;
    bool snakes_leave, snakes_undefined;
    enum oct_err look_fails, follow_fails;
};

struct oct_cells_engine {
    double radius;                       /* R */
    struct cells_script_picture picture; /* the next one to be looked at */
    unsigned n_looks, n_searches, n_follows;
    struct oct_cell_start starts[CELLS_SCRIPT_MOST]; /* of the last follow */
    unsigned n_starts;
};

extern const struct oct_cells_engine_ops cells_script_ops; /* create, map, field: NULL */

#endif
