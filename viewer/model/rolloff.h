/* A mirror's axial peak and the roll-off over depth, as octd says in the topic `rolloff`. octd
 * measures both. Pure; one thread at a time. */
#ifndef OCT_VIEWER_MODEL_ROLLOFF_H
#define OCT_VIEWER_MODEL_ROLLOFF_H

#include "analysis/rolloff/mirror.h"
#include "analysis/rolloff/rolloff.h"
#include "viewer/model/image.h"

#include <stdbool.h>
#include <stdint.h>

#define OCT_VIEW_TOPIC_ROLLOFF "rolloff"

/* Zeroed it knows nothing. Numbers are finite or NaN: not known. */
struct oct_view_rolloff {
    enum oct_mirror_state state; /* FOUND: the newest B-scan has a mirror */
    double depth_px, depth_um, peak_db, fwhm_px, fwhm_um, snr_db;
    double db_per_mm, db_per_100px, minus_6db_px, minus_6db_um;
    unsigned n; /* points */
    struct {
        float depth_px, peak_db;
    } points[OCT_ROLLOFF_MOST_POINTS];
    uint64_t frame_num; /* the newest B-scan */
    char acquisition_id[64];
};

/* What an image of the topic must be: a table of labelled f32 numbers, of OCT_ROLLOFF_MOST_POINTS
 * rows at most. OCT_E_FORMAT. */
enum oct_err oct_view_rolloff_check(const struct oct_image_header *header, struct oct_error *err);

/* Takes a table and its numbers; rows without a depth and a peak are left out. A table that the
 * check refuses changes nothing. */
void oct_view_rolloff_set(struct oct_view_rolloff *rolloff, const struct oct_view_image *table);

/* dB of the line through the points, at a depth pixel; NaN: there is none. */
double oct_view_rolloff_line(const struct oct_view_rolloff *rolloff, double depth_px);

#endif
