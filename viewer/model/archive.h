/* What the viewer keeps of every picture, also of those that are never drawn: the last ten seconds,
 * the en face picture, the quality. Filled by the subscriber's thread, read by the window's. */
#ifndef OCT_VIEWER_MODEL_ARCHIVE_H
#define OCT_VIEWER_MODEL_ARCHIVE_H

#include "viewer/model/enface.h"
#include "viewer/model/history.h"
#include "viewer/model/quality.h"

struct oct_view_archive;

/* NULL when out of memory. budget_bytes: of the pictures of the last ten seconds. */
struct oct_view_archive *oct_view_archive_create(size_t budget_bytes, bool log);

/* NULL is fine. Nobody may be inside another function. */
void oct_view_archive_destroy(struct oct_view_archive *archive);

/* Every picture, in order, by one thread. Its arrival_ns is set. */
void oct_view_archive_add(struct oct_view_archive *archive, const struct oct_view_picture *picture);

/* The rest: any thread. n_bscans of a volume, 0: not known; log: values are dB. */
void oct_view_archive_describe(struct oct_view_archive *archive, uint32_t n_bscans, bool log);

/* The slab's rows of the last ten seconds are made anew. */
void oct_view_archive_set_slab(struct oct_view_archive *archive, struct oct_view_slab slab);

/* While frozen the last ten seconds stay as they are. */
void oct_view_archive_freeze(struct oct_view_archive *archive, bool frozen);

/* Copies what changed (see enface.h, quality.h). */
void oct_view_archive_copy(struct oct_view_archive *archive, struct oct_view_enface *enface,
                           struct oct_view_quality *quality);

/* How many pictures back there are, and a copy of the i-th before the newest; false: there is
 * none. */
unsigned oct_view_archive_count(struct oct_view_archive *archive);
bool oct_view_archive_get(struct oct_view_archive *archive, unsigned i,
                          struct oct_view_picture *picture);

#endif
