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

/* NULL is fine. No other function may be running. */
void oct_view_archive_destroy(struct oct_view_archive *archive);

/* Takes a copy of a picture. One thread calls it with every picture, in order, arrival_ns set. */
void oct_view_archive_add(struct oct_view_archive *archive, const struct oct_view_picture *picture);

/* Notes a row of the topic `quality`. The same thread calls it with every row, in order, arrival_ns
 * set. */
void oct_view_archive_add_quality(struct oct_view_archive *archive,
                                  const struct oct_view_image *row);

/* Any thread calls the functions below. */

/* While frozen, the archive keeps the last ten seconds as they are. */
void oct_view_archive_freeze(struct oct_view_archive *archive, bool frozen);

void oct_view_archive_copy_quality(struct oct_view_archive *archive,
                                   struct oct_view_quality *quality);

/* Returns how many pictures are kept. get copies the i-th before the newest; false: there is
 * none. */
unsigned oct_view_archive_count(struct oct_view_archive *archive);
bool oct_view_archive_get(struct oct_view_archive *archive, unsigned i,
                          struct oct_view_picture *picture);

#endif
