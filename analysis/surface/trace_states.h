/* The loops over the states of a column of the coarse grid, for the processor's widest vectors:
 * whole numbers, the same whatever computes them. A row is a place of the ILM, of n distances. */
#ifndef OCT_ANALYSIS_SURFACE_TRACE_STATES_H
#define OCT_ANALYSIS_SURFACE_TRACE_STATES_H

#include "pipeline/base/simd.h"

#include <stddef.h>
#include <stdint.h>

#define OCT_TRACE_BIG 28000       /* a state that cannot be */
#define OCT_TRACE_MOST_LEAD 15000 /* of what leads to a state */

/* Rows of `stride` states each, the first of n that are looked at. */
struct oct_trace_rows {
    const int16_t *from;
    int16_t *to;
    size_t stride;
    int n_rows, n;
};

struct oct_trace_states {
    /* to = min(from, min(from - away, from + away) + price) */
    void (*move)(const struct oct_trace_rows *rows, size_t away, int16_t price);
    int16_t (*least)(const struct oct_trace_rows *rows);
    /* to = min(min(from, OCT_TRACE_MOST_LEAD) + ilm[row] - least + rpe[row + t], OCT_TRACE_BIG) */
    void (*add)(const struct oct_trace_rows *rows, const int16_t *ilm, const int16_t *rpe,
                int16_t least);
};

OCT_SIMD_TABLES(struct oct_trace_states, oct_trace_states);

#endif
