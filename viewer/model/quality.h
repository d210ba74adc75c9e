/* How good the pictures are, as octd says in the topic `quality`: the smoothed numbers of the
 * newest B-scan, and a timeline of the last seconds with the marks of blinks, motion and missing
 * A-lines. octd computes all of it. Pure; one thread at a time. */
#ifndef OCT_VIEWER_MODEL_QUALITY_H
#define OCT_VIEWER_MODEL_QUALITY_H

#include "viewer/model/image.h"

#include <stdbool.h>
#include <stdint.h>

#define OCT_VIEW_TOPIC_QUALITY "quality"

#define OCT_VIEW_TIMELINE 500u                      /* bins */
#define OCT_VIEW_TIMELINE_BIN_NS UINT64_C(20000000) /* 20 ms: ten seconds in all */

enum oct_view_mark {
    OCT_MARK_BLINK = 1,
    OCT_MARK_MOTION = 2,
    OCT_MARK_MISSING = 4, /* A-lines of it were missing */
};

struct oct_view_moment {
    uint64_t bin;            /* arrival / OCT_VIEW_TIMELINE_BIN_NS */
    float snr_db, sharpness; /* the worst of the bin; NaN: octd found none */
    unsigned marks;          /* enum oct_view_mark, or'ed */
};

/* Zeroed it knows nothing. */
struct oct_view_quality {
    struct oct_view_moment moment[OCT_VIEW_TIMELINE]; /* a ring by bin % OCT_VIEW_TIMELINE */
    bool known;                                       /* a row came */
    double snr_db, sharpness;                         /* smoothed; all are finite */
    double level_db;                                  /* of the signal to noise, recently */
    uint64_t n_blinks, n_motions;                     /* since the acquisition began */
    unsigned marks;                                   /* of the newest B-scan */
};

/* What an image of the topic must be: one row (or none) of labelled f32 numbers. OCT_E_FORMAT. */
enum oct_err oct_view_quality_check(const struct oct_image_header *header, struct oct_error *err);

/* Notes a row: labels snr_db, sharpness, snr_smooth_db, sharpness_smooth, level_db, blink, motion,
 * missing, blinks, motions; unknown ones are ignored, and of absent ones the number before stays.
 * Its arrival_ns says which moment it is of. An image that the check refuses changes nothing. */
void oct_view_quality_add(struct oct_view_quality *quality, const struct oct_view_image *image);

/* The moment of a bin, or NULL when nothing came then. */
const struct oct_view_moment *oct_view_quality_moment(const struct oct_view_quality *quality,
                                                      uint64_t bin);

#endif
