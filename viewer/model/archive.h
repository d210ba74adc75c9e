/* What the viewer keeps of every message, also of those that are never drawn: the pictures of the
 * last ten seconds and the timeline of the quality. The subscriber's thread fills it, the window's
 * reads it. */
#ifndef OCT_VIEWER_MODEL_ARCHIVE_H
#define OCT_VIEWER_MODEL_ARCHIVE_H

#include "viewer/model/history.h"
#include "viewer/model/quality.h"

struct oct_view_archive;

/* NULL when out of memory. budget_bytes: of the pictures of the last ten seconds. */
struct oct_view_archive *oct_view_archive_create(size_t budget_bytes);

/* NULL is fine. Nobody may be inside another function. */
void oct_view_archive_destroy(struct oct_view_archive *archive);

/* Every picture, in order, by one thread. Its arrival_ns is set. */
void oct_view_archive_add(struct oct_view_archive *archive, const struct oct_view_picture *picture);

/* Every row of the topic `quality`, in order, by the same thread. Its arrival_ns is set. */
void oct_view_archive_add_quality(struct oct_view_archive *archive,
                                  const struct oct_view_image *row);

/* The rest: any thread. */

/* While frozen the last ten seconds stay as they are. */
void oct_view_archive_freeze(struct oct_view_archive *archive, bool frozen);

void oct_view_archive_copy_quality(struct oct_view_archive *archive,
                                   struct oct_view_quality *quality);

/* How many pictures back there are, and a copy of the i-th before the newest; false: there is
 * none. */
unsigned oct_view_archive_count(struct oct_view_archive *archive);
bool oct_view_archive_get(struct oct_view_archive *archive, unsigned i,
                          struct oct_view_picture *picture);

#endif
