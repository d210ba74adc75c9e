#include "daemon/disk.h"

#include "pipeline/base/clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#define ASK_EVERY_NS UINT64_C(1000000000)

static void query_space(uv_work_t *work)
{
    struct oct_disk *disk = work->data;
    struct statvfs fs;
    oct_config_string path;

    memcpy(path, disk->directory, sizeof(path));
    int failed = statvfs(path, &fs);
    if (failed) {
        char *slash = strrchr(path, '/');
        snprintf(slash ? slash : path, 2, "%s", slash ? "/" : ".");
        failed = statvfs(path, &fs);
    }
    disk->asked_bytes = failed ? (double)NAN : (double)fs.f_bavail * (double)fs.f_frsize;
}

static void after(uv_work_t *work, int status)
{
    struct oct_disk *disk = work->data;
    (void)status; /* never cancelled */
    disk->is_asking = false;
    disk->known = !isnan(disk->asked_bytes);
    disk->bytes_free = disk->asked_bytes;
}

void oct_disk_look(struct oct_disk *disk, uv_loop_t *loop, const char *directory)
{
    uint64_t now_ns = oct_clock_ns();
    if (disk->is_asking)
        return;
    bool same = strcmp(disk->directory, directory) == 0;
    if (disk->asked_ns && same && now_ns - disk->asked_ns < ASK_EVERY_NS)
        return;
    disk->known = disk->known && same;
    disk->is_asking = true;
    disk->asked_ns = now_ns;
    snprintf(disk->directory, sizeof(disk->directory), "%s", directory);
    disk->work.data = disk;
    uv_queue_work(loop, &disk->work, query_space, after);
}

bool oct_disk_bytes_free(const struct oct_disk *disk, const char *directory, double *bytes)
{
    *bytes = disk->bytes_free;
    return disk->known && strcmp(disk->directory, directory) == 0;
}
