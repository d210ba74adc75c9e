#include "viewer/model/daemon.h"

#include "viewer/model/clock.h"

#include <limits.h>

/* Longer than a camera's burst lasts; a daemon that answers late, as in a burst, is asked this
 * often at least. */
#define LOW_NS (5 * OCT_NS_PER_S)
#define LOW_LOOKS 5

void oct_view_disk_hear(struct oct_view_disk *disk, const struct oct_view_daemon *daemon,
                        uint64_t now_ns)
{
    const double least_s = daemon->record.active ? OCT_VIEW_DISK_LOW_S : OCT_VIEW_DISK_OUT_S;

    if (!(daemon->record.disk_left_s < least_s)) {
        *disk = (struct oct_view_disk){0, 0};
        return;
    }
    disk->low_ns = disk->low_ns ? disk->low_ns : now_ns;
    disk->n_low += disk->n_low < UINT_MAX;
}

bool oct_view_disk_is_low(const struct oct_view_disk *disk, uint64_t now_ns)
{
    return disk->low_ns != 0 && disk->n_low >= LOW_LOOKS && now_ns >= disk->low_ns + LOW_NS;
}
