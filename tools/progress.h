/* How far a command is: a line on the terminal, if stderr is one. One thread. */
#ifndef OCT_TOOLS_PROGRESS_H
#define OCT_TOOLS_PROGRESS_H

#include <stdint.h>

struct oct_progress {
    const char *what;    /* "B-scans" */
    uint64_t started_ns; /* CLOCK_MONOTONIC */
};

/* Draws the line anew. `progress` is a struct oct_progress *: the form that runners call. */
void oct_progress_show(void *progress, uint64_t done, uint64_t all);

/* For the last time, and ends the line. */
void oct_progress_end(const struct oct_progress *progress, uint64_t done, uint64_t all);

/* A line of the caller's own words, for work whose steps are not alike: `share` of it is done. */
void oct_progress_say(double share, const char *text);

/* Removes such a line. */
void oct_progress_clear(void);

double oct_progress_seconds(const struct oct_progress *progress);

#endif
