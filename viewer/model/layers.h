/* The layers that octd finds in B-scans, as it says in the topic `surfaces`: ILM and RPE. Pure; one
 * thread at a time. */
#ifndef OCT_VIEWER_MODEL_LAYERS_H
#define OCT_VIEWER_MODEL_LAYERS_H

#include "analysis/surface/live.h"
#include "viewer/model/image.h"

#include <stdbool.h>
#include <stdint.h>

#define OCT_VIEW_TOPIC_LAYERS "surfaces"

/* Zeroed it knows nothing. */
struct oct_view_layers {
    uint32_t n_lines;              /* of the B-scan that they are of; 0: nothing came */
    float *position[OCT_N_LAYERS]; /* [n_lines] depth pixels, 0 in the middle of the first one;
                                         NaN: not found; one block, owned */
    uint64_t frame_num;            /* of that B-scan */
    char acquisition_id[64];
};
void oct_view_layers_finish(struct oct_view_layers *layers);

/* What an image of the topic must be: f32 [OCT_SURFACES_N_ROWS][M], M > 0. OCT_E_FORMAT. */
enum oct_err oct_view_layers_check(const struct oct_image_header *header, struct oct_error *err);

/* Copies the positions; what is no place in a picture is NaN. An image that the check refuses, or
 * one for which there is no memory, changes nothing. */
void oct_view_layers_set(struct oct_view_layers *layers, const struct oct_view_image *image);

/* The mean distance from the ILM to the RPE, in depth pixels, of the A-lines between two places (of
 * one, where both lie on it) that have both; NaN where none has. *found (may be NULL): the share of
 * A-lines that have both. */
double oct_view_layers_thickness(const struct oct_view_layers *layers, double line_a, double line_b,
                                 double *found);

#endif
