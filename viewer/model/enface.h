/* The en face picture as it is drawn: a copy of octd's newest image of the topic `enface`, thinned
 * out where it has more rows or columns than a screen shows. octd computes the picture and says
 * which values are black and white. Pure; one thread at a time. */
#ifndef OCT_VIEWER_MODEL_ENFACE_H
#define OCT_VIEWER_MODEL_ENFACE_H

#include "analysis/enface/enface.h"
#include "viewer/model/image.h"

#include <stdbool.h>
#include <stdint.h>

#define OCT_VIEW_TOPIC_ENFACE "enface"

/* More rows or columns than this are thinned out. */
#define OCT_VIEW_ENFACE_MOST 2048u

/* The values of analysis.enface_projection: "mean", "max", "slab". */
extern const char *const oct_view_projection_keys[OCT_N_PROJECTIONS];

/* A part of the depth, as shares of it; 0 <= first < last <= 1. */
struct oct_view_slab {
    double first, last;
};

/* Zeroed it is none. */
struct oct_view_enface {
    uint32_t n_rows, n_columns; /* as kept, after thinning */
    uint32_t n_bscans, n_lines; /* as scanned */
    float *value;               /* [n_rows][n_columns] dB or counts^2; NaN: nothing came; owned */
    uint64_t *row_serial;       /* [n_rows] serial when the row last changed; owned */
    uint64_t serial;            /* of the newest change */
    uint32_t newest_row;        /* where the scan is */
    double lo, hi;              /* black and white; finite, lo < hi */
    uint64_t arrival_ns;        /* of the newest image; 0: none came */
};

/* What an image of the topic must be: [V][M] f32, M > 0. OCT_E_FORMAT. */
enum oct_err oct_view_enface_check(const struct oct_image_header *header, struct oct_error *err);

/* Makes it the image's; only rows whose values differ count as changed. An image that the check
 * refuses, or one for which there is no memory, changes nothing; one without rows empties it. */
void oct_view_enface_set(struct oct_view_enface *enface, const struct oct_view_image *image);

const float *oct_view_enface_row(const struct oct_view_enface *enface, uint32_t row);

void oct_view_enface_finish(struct oct_view_enface *enface);

#endif
