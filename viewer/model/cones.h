/* The cone spacing of the newest volume, as octd says in the topic `cones`. octd computes it. Pure;
 * one thread at a time. */
#ifndef OCT_VIEWER_MODEL_CONES_H
#define OCT_VIEWER_MODEL_CONES_H

#include "viewer/model/image.h"

#include <stdbool.h>

#define OCT_VIEW_TOPIC_CONES "cones"

/* Zeroed it knows nothing. */
struct oct_view_cones {
    bool known;    /* a row came */
    bool has_ring; /* the numbers below are there; else they are 0 */
    double spacing_um, per_mm2, strength;
    uint64_t volume;
    char acquisition_id[64]; /* of the row, as in the header */
};

/* What an image of the topic must be: one row (or none) of labelled f32 numbers. OCT_E_FORMAT. */
enum oct_err oct_view_cones_check(const struct oct_image_header *header, struct oct_error *err);

/* Takes a row: labels spacing_um, cells_per_mm2, strength; unknown ones are ignored. There is a
 * ring where all three are above 0 and can be (a micrometre to a millimetre). An image that the
 * check refuses, or one without rows, changes nothing. */
void oct_view_cones_set(struct oct_view_cones *cones, const struct oct_view_image *row);

#endif
