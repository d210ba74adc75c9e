/* The en face picture: one value an A-line, one row a B-scan, built row by row as B-scans come.
 * Values are those of the pictures (dB or counts^2). Pure; one thread at a time. */
#ifndef OCT_VIEWER_MODEL_ENFACE_H
#define OCT_VIEWER_MODEL_ENFACE_H

#include "viewer/model/picture.h"

#include <stdbool.h>
#include <stdint.h>

/* More rows or columns than this are thinned out. */
#define OCT_VIEW_ENFACE_MOST 2048u

enum oct_view_projection { OCT_VIEW_MEAN, OCT_VIEW_MAX, OCT_VIEW_SLAB, OCT_VIEW_N_PROJECTIONS };

/* A part of the depth, as shares of it; 0 <= first < last <= 1. */
struct oct_view_slab {
    double first, last;
};

/* Zeroed it is empty. A row that never came is NaN. */
struct oct_view_enface {
    uint32_t n_rows, n_columns; /* as kept, after thinning */
    uint32_t n_bscans, n_lines; /* as scanned */
    float *value;               /* [OCT_VIEW_N_PROJECTIONS][n_rows][n_columns]; owned */
    uint64_t *row_serial;       /* [n_rows] serial when the row last changed, 0: never; owned */
    uint64_t serial;            /* of the newest change */
    uint32_t newest_row;        /* where the scan is */
    uint64_t volume;            /* that it scans */
};

/* Adds a B-scan. n_bscans: of a volume, 0 when not known: then it grows with the rows that come.
 * Without memory nothing happens. */
void oct_view_enface_add(struct oct_view_enface *enface, const struct oct_view_picture *picture,
                         uint32_t n_bscans, struct oct_view_slab slab);

/* The slab's row anew, of a picture added before. */
void oct_view_enface_add_slab(struct oct_view_enface *enface,
                              const struct oct_view_picture *picture, struct oct_view_slab slab);

/* Makes *copy what *enface is, copying only what changed since the last time. */
void oct_view_enface_copy(struct oct_view_enface *copy, const struct oct_view_enface *enface);

const float *oct_view_enface_row(const struct oct_view_enface *enface,
                                 enum oct_view_projection projection, uint32_t row);

/* Black and white for a projection: the 1st and the 99.5th percentile of what is there. False:
 * nothing is there. */
bool oct_view_enface_limits(const struct oct_view_enface *enface,
                            enum oct_view_projection projection, double *lo, double *hi);

void oct_view_enface_finish(struct oct_view_enface *enface);

#endif
