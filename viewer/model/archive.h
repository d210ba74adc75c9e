/* What the viewer keeps of every message, also of those that are never drawn: the pictures of the
 * last ten seconds, those of the last moment that results may still come of, what was said of the
 * last averages, and the timeline of the quality. The subscriber's thread fills it, the window's
 * reads it. */
#ifndef OCT_VIEWER_MODEL_ARCHIVE_H
#define OCT_VIEWER_MODEL_ARCHIVE_H

#include "viewer/model/average.h"
#include "viewer/model/history.h"
#include "viewer/model/quality.h"

#define OCT_VIEW_MOMENT_NS (OCT_NS_PER_S / 2)
#define OCT_VIEW_MOST_AVERAGES 256u

struct oct_view_archive;

/* NULL when out of memory. budget_bytes: of the pictures of the last ten seconds; those of the last
 * moment take a quarter of it more. */
struct oct_view_archive *oct_view_archive_create(size_t budget_bytes);

/* NULL is fine. No other function may be running. */
void oct_view_archive_destroy(struct oct_view_archive *archive);

/* Takes a copy of a picture. One thread calls it with every picture, in order, arrival_ns set. */
void oct_view_archive_add(struct oct_view_archive *archive, const struct oct_view_picture *picture);

/* Notes a row of the topic `quality`. The same thread calls it with every row, in order, arrival_ns
 * set. */
void oct_view_archive_add_quality(struct oct_view_archive *archive,
                                  const struct oct_view_image *row);

/* Notes what an image of the topic `average` says. The same thread calls it with every one. */
void oct_view_archive_add_average(struct oct_view_archive *archive,
                                  const struct oct_view_image *image);

/* Any thread calls the functions below. */

/* While frozen, the archive keeps pictures and averages as they are. */
void oct_view_archive_freeze(struct oct_view_archive *archive, bool frozen);

void oct_view_archive_copy_quality(struct oct_view_archive *archive,
                                   struct oct_view_quality *quality);

/* Returns how many pictures are kept. get copies the i-th before the newest; false: there is
 * none. */
unsigned oct_view_archive_count(struct oct_view_archive *archive);
bool oct_view_archive_get(struct oct_view_archive *archive, unsigned i,
                          struct oct_view_picture *picture);

/* How many of them came after that time. */
unsigned oct_view_archive_since(struct oct_view_archive *archive, uint64_t arrival_ns);

/* Copies that B-scan, of the last OCT_VIEW_MOMENT_NS; what was said of the average whose newest
 * B-scan it is, of the last OCT_VIEW_MOST_AVERAGES. False: it is not kept. */
bool oct_view_archive_find(struct oct_view_archive *archive, const char *acquisition_id,
                           uint64_t frame_num, struct oct_view_picture *picture);
bool oct_view_archive_average(struct oct_view_archive *archive, const char *acquisition_id,
                              uint64_t frame_num, struct oct_view_average *average);

#endif
