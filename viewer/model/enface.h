/* The en face picture as it is drawn: the rows of octd's newest image of the topic `enface`,
 * thinned out where it has more rows or columns than a screen shows. The image of a growing volume
 * lacks the rows that are still to be scanned: the rows of the volume before stay until they are
 * replaced, so that the picture does not begin empty with every volume. octd computes the values.
 * Pure; one thread at a time. */
#ifndef OCT_VIEWER_MODEL_ENFACE_H
#define OCT_VIEWER_MODEL_ENFACE_H

#include "analysis/enface/enface.h"
#include "viewer/model/picture.h"

#include <stdbool.h>
#include <stdint.h>

#define OCT_VIEW_TOPIC_ENFACE "enface"
#define OCT_VIEW_TOPIC_SLAB "slab" /* the same, of depths that follow layers */

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
    uint32_t newest_row;        /* where the scan is, in that volume: */
    uint32_t newest_bscan;
    double spacing_um; /* of a column, as octd says; NaN: unknown */
    uint64_t volume;   /* rows behind newest_row may be of the one before */
    double lo, hi;     /* black and white; finite, lo < hi. octd's, and while rows of the
                                   volume before stay, the same percentiles of what is kept */
    char unit[OCT_IMAGE_UNIT_BYTES]; /* of the values */
    bool
        keeps_pixels; /* of a gridded image, of which rows grow in pieces: pixels stay as rows do */
    bool forget; /* rows that the next image lacks do not stay: they are of another projection */
    uint64_t arrival_ns; /* of the newest image; 0: none came */
};

/* What an image of the topic must be: [V][M] f32, M > 0. OCT_E_FORMAT. */
enum oct_err oct_view_enface_check(const struct oct_image_header *header, struct oct_error *err);

/* Takes the image's rows; only rows whose values differ count as changed. Rows of which nothing
 * came stay as they are. An image that the check refuses, or one for which there is no memory,
 * changes nothing; one without rows empties it. */
void oct_view_enface_set(struct oct_view_enface *enface, const struct oct_view_image *image);

/* Makes room for an image of so many B-scans and A-lines, in which nothing came (0: none). What was
 * there is lost; the serial rises. False: there is no memory for it, and it is empty. */
bool oct_view_enface_resize(struct oct_view_enface *enface, uint32_t n_bscans, uint32_t n_lines);

const float *oct_view_enface_row(const struct oct_view_enface *enface, uint32_t row);

void oct_view_enface_finish(struct oct_view_enface *enface);

#endif
