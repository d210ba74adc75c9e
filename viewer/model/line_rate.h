/* Compares the camera's line rate with the usual one. Both are the daemon's count of A-lines over
 * the daemon's own clock, so that neither this window's load nor the network changes them. Pure. */
#ifndef OCT_VIEWER_MODEL_LINE_RATE_H
#define OCT_VIEWER_MODEL_LINE_RATE_H

#include <stdbool.h>

/* Measurements of a second or more. A rate that lasts becomes the usual one. */
#define OCT_VIEW_LINE_RATES 31u

/* A zeroed struct knows nothing. Members are read freely and written by the function. */
struct oct_view_line_rate {
    double rate_hz;                        /* the newest measurement; 0: none yet */
    double usual_hz;                       /* the median of the last ones; 0: too few to say */
    bool fell;                             /* the newest two were less than 0.8 of it */
    double recent_hz[OCT_VIEW_LINE_RATES]; /* a ring */
    unsigned n_recent, n_low;
    double acquisitions, lines, time_s; /* where the running measurement began */
    bool runs;
};

/* Brings the A-lines that the camera made so far (received or missing) at a moment of the daemon's
 * clock, and the number of the acquisition. Another acquisition, or less of anything than before,
 * begins anew. A measurement takes a second and ten B-scans, or five seconds. A standstill
 * is not measured: the alarm of no signal reports it. */
void oct_view_line_rate_add(struct oct_view_line_rate *rate, double acquisitions, double lines,
                            double time_s, double lines_a_bscan);

#endif
