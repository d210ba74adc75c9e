/* Least-cost pairing of tracks and detected cells. */
#ifndef OCT_ANALYSIS_CELLS_LINK_H
#define OCT_ANALYSIS_CELLS_LINK_H

#include "pipeline/base/err.h"

#include <stdint.h>

#define OCT_CELLS_MOST_PAIRS (1u << 24) /* within gates; of 20 bytes each */

struct oct_link_track {
    double x, y, gate; /* predicted; px */
    double weight;     /* above 0 */
};

struct oct_link_cell {
    double x, y;
};

/* pair[t]: the cell of track t, or -1. Minimises the sum of weight * distance^2 of pairs and of
 * weight * gate^2 of tracks without one; no pair is farther than the track's gate. Among equal
 * costs it is the pairing that comes first when pairings are compared track by track: the lower
 * cell first, no cell last. Exact, by shortest augmenting paths (Kuhn 1955; Jonker and Volgenant
 * 1987) in the graph of possible pairs: a search never leaves its connected part, so that crowds
 * cost their own size only. Coordinates are finite. OCT_E_ARG: more than OCT_CELLS_MOST_PAIRS are
 * possible; OCT_E_NO_MEMORY. */
enum oct_err oct_cells_link(const struct oct_link_track *tracks, unsigned n_tracks,
                            const struct oct_link_cell *cells, unsigned n_cells, int32_t *pair,
                            struct oct_error *err);

#endif
