/* The configuration's files, whether they still say what they said when they were read. A daemon
 * runs with what it read; that the files have moved on must not come as a surprise at the next
 * start. */
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
    bool is_looking; /* a thread of libuv's pool does, at all of the files; `differs` is its own */
    bool differs[OCT_CONFIG_MAX_SOURCES];
};

/* Before the file is read: a change while it is read is seen too. More files than there is room for
 * are not watched. */
void oct_file_watch_add(struct oct_file_watch *watch, const char *path);

/* Looks once a second at most, in a thread: a disk that stands still holds up nobody. The path of
 * a file that was found changed and not told yet, or NULL. A file that is put back as it was still
 * has changed. */
const char *oct_file_watch_look(struct oct_file_watch *watch, uv_loop_t *loop);

/* Whether any has changed since it was read. */
bool oct_file_watch_changed(const struct oct_file_watch *watch);

#endif
