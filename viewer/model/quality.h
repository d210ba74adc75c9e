/* How good the pictures are, at a glance: signal to noise, sharpness, and a timeline of the last
 * seconds with the marks of blinks and motion. Pure; one thread at a time.
 *
 * signal to noise: the 99.5th percentile of the pixels over the 25th, in dB. An 8-bit picture was
 * cut off at its published limits; noise below them counts as the limit.
 * sharpness: <I^2> / <I>^2 over the intensities I (Muller and Buffington 1974, S1); 1 is a uniform
 * grey, more is better. It compares pictures of one eye, not of two.
 * blink: the signal to noise falls to less than half its recent level.
 * motion: the mean depth profile moves by more than a fiftieth of the depth between two B-scans
 * that follow each other in a volume. */
#ifndef OCT_VIEWER_MODEL_QUALITY_H
#define OCT_VIEWER_MODEL_QUALITY_H

#include "viewer/model/picture.h"

#include <stdbool.h>
#include <stdint.h>

#define OCT_VIEW_TIMELINE 500u                      /* bins */
#define OCT_VIEW_TIMELINE_BIN_NS UINT64_C(20000000) /* 20 ms: ten seconds in all */
#define OCT_VIEW_PROFILE 256u

enum oct_view_mark {
    OCT_VIEW_MARK_BLINK = 1,
    OCT_VIEW_MARK_MOTION = 2,
    OCT_VIEW_MARK_MISSING = 4, /* A-lines of it were missing */
};

struct oct_view_moment {
    uint64_t bin; /* arrival / OCT_VIEW_TIMELINE_BIN_NS */
    float snr_db; /* the worst of the bin */
    float sharpness;
    unsigned marks; /* enum oct_view_mark, or'ed */
};

/* Zeroed it knows nothing. */
struct oct_view_quality {
    struct oct_view_moment moment[OCT_VIEW_TIMELINE]; /* a ring by bin % OCT_VIEW_TIMELINE */
    bool known;
    double snr_db, sharpness; /* of the newest B-scan, smoothed a little */
    double level_db;          /* of the signal to noise, recently, blinks left out */
    uint64_t n_blinks, n_motions;
    unsigned marks;                  /* of the newest B-scan */
    float profile[OCT_VIEW_PROFILE]; /* of the newest B-scan, its mean taken away */
    unsigned n_profile;
    uint64_t frame_num, volume;
};

/* Looks at a B-scan (a part of its A-lines is enough). log: values are dB. */
void oct_view_quality_add(struct oct_view_quality *quality, const struct oct_view_picture *picture,
                          bool log);

/* The moment of a bin, or NULL when nothing came then. */
const struct oct_view_moment *oct_view_quality_moment(const struct oct_view_quality *quality,
                                                      uint64_t bin);

#endif
