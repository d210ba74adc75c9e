/* The free space in the folder of recordings, queried once a second outside the loop: a disk that
 * hangs (a network's, say) must not delay control. Main thread only. */
#ifndef OCT_DAEMON_DISK_H
#define OCT_DAEMON_DISK_H

#include "config/config.h"

#include <stdbool.h>
#include <uv.h>

struct oct_disk {
    uv_work_t work;
    bool is_asking;    /* the worker owns the fields below */
    bool known;        /* bytes_free is that of `directory` */
    uint64_t asked_ns; /* 0: never */
    oct_config_string directory;
    double asked_bytes, bytes_free;
};

/* Queries again when a second has passed or the folder has changed. */
void oct_disk_look(struct oct_disk *disk, uv_loop_t *loop, const char *directory);

/* False: not known (yet). A folder that is only made when recording starts has the space of the one
 * it will be in. */
bool oct_disk_bytes_free(const struct oct_disk *disk, const char *directory, double *bytes);

#endif
