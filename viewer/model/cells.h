/* The cells that octd follows, as it says in the topic `cells`: where they are and have been. octd
 * finds them. Pure; one thread at a time. */
#ifndef OCT_VIEWER_MODEL_CELLS_H
#define OCT_VIEWER_MODEL_CELLS_H

#include "viewer/model/image.h"

#include <stdbool.h>
#include <stdint.h>

#define OCT_VIEW_TOPIC_CELLS "cells"
#define OCT_VIEW_CELLS_MOST 256u
#define OCT_VIEW_CELLS_TAIL 20u /* positions of a track that are kept, the newest among them */

struct oct_view_track {
    uint32_t track;
    unsigned n;                                           /* positions: 1 or more */
    float x[OCT_VIEW_CELLS_TAIL], y[OCT_VIEW_CELLS_TAIL]; /* px of the picture, the newest last */
    float radius;                                         /* px of its finer axis */
    bool is_coasting; /* it was not seen in the newest picture: that is where it is thought */
};

/* Zeroed it knows nothing. */
struct oct_view_cells {
    unsigned n; /* of tracks */
    struct oct_view_track tracks[OCT_VIEW_CELLS_MOST];
    double count;            /* as octd says: those beyond the table too */
    double median_um_s;      /* NaN: not known */
    uint32_t width, height;  /* of the picture that positions are of; 0: nothing came */
    bool is_bscan;           /* it is a B-scan, else the volume from above */
    uint64_t frame_num;      /* of the newest B-scan in it */
    uint64_t volume;         /* of that B-scan */
    uint64_t arrival_ns;     /* of the newest table; 0: none came */
    uint64_t interval_ns;    /* between that and the one before; 0: there was none */
    char acquisition_id[64]; /* as in the header */
};

/* What an image of the topic must be: a table of labelled f32 numbers, of OCT_VIEW_CELLS_MOST rows
 * at most. OCT_E_FORMAT. */
enum oct_err oct_view_cells_check(const struct oct_image_header *header, struct oct_error *err);

/* Takes a table: labels track, x_px, y_px, radius_px, how; numbers width, height, is_bscan, count,
 * median_speed_um_s. Rows with a place outside the picture, or a radius that cannot be, are left
 * out. A track goes on that had a row in the table before. A table that the check refuses changes
 * nothing; one of another acquisition, another picture, or from before the newest begins anew. */
void oct_view_cells_set(struct oct_view_cells *cells, const struct oct_view_image *table);

/* Whether what is known is of now: no table for two of the times between them, and two seconds
 * more, is too old. */
bool oct_view_cells_are_new(const struct oct_view_cells *cells, uint64_t now_ns);

#endif
