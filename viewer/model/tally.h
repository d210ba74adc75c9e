/* Counts pictures received and skipped, and their rate, from the headers of all pictures, also of
 * those that were never drawn. Pure: the caller passes the time. */
#ifndef OCT_VIEWER_MODEL_TALLY_H
#define OCT_VIEWER_MODEL_TALLY_H

#include "pipeline/wire/wire.h"

#include <stdbool.h>
#include <stdint.h>

/* A zeroed struct has counted nothing. Members are read freely and written by the functions. */
struct oct_view_tally {
    uint64_t n_received;      /* good pictures */
    uint64_t n_skipped;       /* gaps of frame_num within an acquisition: B-scans that did not come
                                 here, made by octd or not; sticks at UINT64_MAX */
    uint64_t n_bad;           /* messages that were refused */
    uint64_t last_frame_num;  /* of the newest picture */
    uint64_t last_arrival_ns; /* of the newest picture; 0: none came yet */
    char acquisition_id[sizeof(((struct oct_picture_header *)0)->acquisition_id)];
    uint64_t window_start_ns; /* of the running measurement of the rate */
    uint64_t n_window;        /* arrivals since then, its first not counted */
    double rate_hz;           /* of the last finished measurement; 0: none yet */
};

/* Counts one good picture. A frame_num that stands still or goes back, or another acquisition_id,
 * means that the sender started anew: that is no loss. */
void oct_view_tally_add(struct oct_view_tally *tally, const struct oct_picture_header *header,
                        uint64_t now_ns);

/* Counts one message that was refused. */
void oct_view_tally_add_bad(struct oct_view_tally *tally);

/* Pictures a second; 0 while nothing can be said (fewer than two pictures). */
double oct_view_tally_rate_hz(const struct oct_view_tally *tally);

#endif
