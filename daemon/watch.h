/* The configuration's files, whether they still say what they said when they were read. A daemon
 * runs with what it read; that the files have moved on must not come as a surprise at the next
 * start. */
#ifndef OCT_DAEMON_WATCH_H
#define OCT_DAEMON_WATCH_H

#include "config/config.h"

#include <sys/stat.h>

struct oct_file_watch {
    struct {
        const char *path; /* of the command line */
        struct stat then;
        bool changed;
    } files[OCT_CONFIG_MAX_SOURCES];
    int n_files;
    uint64_t looked_ns;
};

/* Before the file is read: a change while it is read is seen too. More files than there is room for
 * are not watched. */
void oct_file_watch_add(struct oct_file_watch *watch, const char *path);

/* Looks once a second at most. The path of a file that has changed since the last call, or NULL. A
 * file that is put back as it was still has changed. */
const char *oct_file_watch_look(struct oct_file_watch *watch);

/* Whether any has changed since it was read. */
bool oct_file_watch_changed(const struct oct_file_watch *watch);

#endif
