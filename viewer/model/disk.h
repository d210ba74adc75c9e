/* Whether the disk has room for too few seconds of recording, by octd's word (disk_left_s): for so
 * long and at so many looks that a burst of the camera, which shortens the time for a moment, does
 * not count. Pure. */
#ifndef OCT_VIEWER_MODEL_DISK_H
#define OCT_VIEWER_MODEL_DISK_H

#include "viewer/model/daemon_state.h"

/* Fewer seconds of recording than this are too few: for the running one, and for the next one. */
#define OCT_VIEW_DISK_LOW_S 300.0
#define OCT_VIEW_DISK_OUT_S 60.0

/* Zeroed it has enough. */
struct oct_view_disk {
    uint64_t low_ns; /* since when it has too little; 0: it has enough */
    unsigned n_low;  /* statuses since then */
};

/* A status came. */
void oct_view_disk_hear(struct oct_view_disk *disk, const struct oct_view_daemon *daemon,
                        uint64_t now_ns);

bool oct_view_disk_is_low(const struct oct_view_disk *disk, uint64_t now_ns);

#endif
