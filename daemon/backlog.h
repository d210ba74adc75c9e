/* Judges whether a recording waits for its disk, by the B-scans in the recorder's memory and by the
 * recorder's progress, both looked at many times a second. Main thread only. */
#ifndef OCT_DAEMON_BACKLOG_H
#define OCT_DAEMON_BACKLOG_H

#include "pipeline/record/recorder.h"

#include <stdbool.h>
#include <stdint.h>

struct oct_backlog {
    bool disk_slow;                          /* the disk holds up the recording */
    uint64_t looked_ns, n_passed, n_dropped; /* when last looked, and what was seen */
    bool is_over;                            /* the memory was full, and is not half empty yet */
    uint64_t still_ns, over_ns, calm_ns;     /* how long the recorder has not moved, ... */
    uint64_t begun_ns, n_lost; /* of the slowness under way: when, B-scans dropped in it */
    uint64_t told_ns;          /* when a beginning was last logged; 0: never */
    bool told;                 /* the one under way was logged */
    uint64_t n_pauses;         /* pauses of the program that were looked at */
    uint64_t pause_told_ns;    /* when a pause was last logged; 0: never */
};

/* Several times a second. disk_slow is true within a second of the memory of a recording being full
 * or of the recorder not moving while B-scans wait, at once when one is dropped, and until none of
 * these has held for a second. Begin and end are logged, once a minute at most. The lines that
 * arrive at once after a pause of the program (pipeline/base/pause.h) fill the memory although the
 * disk is not slow; pauses are logged, once a minute at most. */
void oct_backlog_look(struct oct_backlog *backlog, const struct oct_recorder_status *recorder,
                      uint64_t now_ns);

#endif
