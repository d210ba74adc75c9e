/* What a client must know to show and judge pictures: spacings, kind of pixels, label, disk. */
#ifndef OCT_DAEMON_DESCRIBE_H
#define OCT_DAEMON_DESCRIBE_H

#include "daemon/daemon.h"

struct cJSON;

/* The text of a reply, malloc'd by cJSON, and deletes the tree; NULL when out of memory. Names of
 * files and folders may hold any bytes: those that are no UTF-8 become '?', as no client could read
 * the reply otherwise. */
char *oct_reply_print(struct cJSON *reply);

/* Adds "scan", "pixels" and "disk_bytes_free" to a status reply, and to its "record", if it has
 * one, the label, the time since the recording began and what a B-scan takes on the disk. Lengths
 * that are not known are null. */
void oct_daemon_describe(struct cJSON *reply, const struct oct_daemon *daemon);

#endif
