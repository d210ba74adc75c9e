/* Notices changes of the configuration's files. A daemon runs with the configuration that it read;
 * a changed file must not be a surprise at the next start. */
#ifndef OCT_DAEMON_WATCH_H
#define OCT_DAEMON_WATCH_H

#include "config/config.h"

#include <sys/stat.h>

#include <uv.h>

struct oct_file_watch {
    struct {
        const char *path; /* of the command line */
        struct stat then;
        bool changed;
    } files[OCT_CONFIG_MAX_SOURCES];
    int n_files;
    uint64_t looked_ns;
    uv_work_t work;
    bool is_looking; /* a thread of libuv's pool is looking at the files; it owns `differs` */
    bool differs[OCT_CONFIG_MAX_SOURCES];
};

/* Before the file is read: a change while it is read is seen too. More files than there is room for
 * are not watched. */
void oct_file_watch_add(struct oct_file_watch *watch, const char *path);

/* Looks once a second at most, in a thread, so that a disk that hangs blocks nothing. Returns the
 * path of a changed file that was not returned before, or NULL. A file that was restored to its old
 * content counts as changed. */
const char *oct_file_watch_look(struct oct_file_watch *watch, uv_loop_t *loop);

/* Whether any file has changed since it was read. */
bool oct_file_watch_changed(const struct oct_file_watch *watch);

#endif
