/* Places in a picture, asked whether one is near: a table of squares of the distance asked for, by
 * a hash of their numbers. Private to the tracker. */
#ifndef OCT_ANALYSIS_CELLS_CROWD_H
#define OCT_ANALYSIS_CELLS_CROWD_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oct_crowd_place {
    double x, y;
    int32_t next; /* of the same entry of the table, or -1 */
};

struct oct_crowd {
    double distance;
    struct oct_crowd_place *places; /* [n_most] */
    int32_t *table;                 /* [n_table], a power of two; -1: empty */
    size_t n, n_most, n_table;
};

/* Empties it, with room for n_most places. The first call needs *crowd of zeros.
 * OCT_E_NO_MEMORY. */
enum oct_err oct_crowd_reset(struct oct_crowd *crowd, double distance, size_t n_most,
                             struct oct_error *err);
void oct_crowd_finish(struct oct_crowd *crowd);

void oct_crowd_add(struct oct_crowd *crowd, double x, double y);

/* Whether a place lies within the distance of (x, y), at most. */
bool oct_crowd_is_near(const struct oct_crowd *crowd, double x, double y);

#endif
