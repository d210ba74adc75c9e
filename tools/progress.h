/* How far a command is: a line on the terminal, if stderr is one. One thread. */
#ifndef OCT_TOOLS_PROGRESS_H
#define OCT_TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct oct_progress {
    const char *what;    /* "B-scans" */
    uint64_t started_ns; /* CLOCK_MONOTONIC */
    bool quiet;          /* config->quiet: shows nothing */
};

/* Draws the line anew: a bar, how many of how many, how many a second, and the time that is left at
 * that rate. `progress` is a struct oct_progress *: the form that runners call. */
void oct_progress_show(void *progress, uint64_t done, uint64_t all);

/* For the last time, and ends the line. */
void oct_progress_end(const struct oct_progress *progress, uint64_t done, uint64_t all);

/* A line of the caller's own words, for work whose steps are not alike: `share` of it is done. */
void oct_progress_say(const struct oct_progress *progress, double share, const char *text);

/* Removes such a line. */
void oct_progress_clear(const struct oct_progress *progress);

double oct_progress_seconds(const struct oct_progress *progress);

#endif
