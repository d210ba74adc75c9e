/* What is counted and kept of every message, also of those that are never drawn: the tally, the
 * quality, the pictures of the last seconds. Pure, but for the archive, which has a lock. */
#ifndef OCT_VIEWER_MODEL_ARCHIVE_H
#define OCT_VIEWER_MODEL_ARCHIVE_H

#include "pipeline/base/clock.h"
#include "pipeline/wire/wire.h"
#include "viewer/model/overlay.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- pictures received and skipped, and their rate, from the headers of all ---- */

/* A zeroed struct has counted nothing. Members are read freely and written by the functions. */
struct oct_view_tally {
    uint64_t n_received;      /* good pictures */
    uint64_t n_skipped;       /* gaps of frame_num within an acquisition: B-scans that did not come
                                 here, made by octd or not; sticks at UINT64_MAX */
    uint64_t n_bad;           /* messages that were refused */
    uint64_t last_frame_num;  /* of the newest picture */
    uint64_t last_arrival_ns; /* of the newest picture; 0: none came yet */
    char acquisition_id[sizeof(((struct oct_picture_header *)0)->acquisition_id)];
    uint64_t window_start_ns; /* of the running measurement of the rate */
    uint64_t n_window;        /* arrivals since then, its first not counted */
    double rate_hz;           /* of the last finished measurement; 0: none yet */
};

/* Counts one good picture. A frame_num that stands still or goes back, or another acquisition_id,
 * means that the sender started anew: that is no loss. */
void oct_view_tally_add(struct oct_view_tally *tally, const struct oct_picture_header *header,
                        uint64_t now_ns);

/* Pictures a second; 0 while nothing can be said (fewer than two pictures). */
double oct_view_tally_rate_hz(const struct oct_view_tally *tally);

/* ---- how good the pictures are, as octd says in the topic `quality` ---- */

#define OCT_VIEW_TOPIC_QUALITY "quality"

#define OCT_VIEW_TIMELINE 500u                      /* bins */
#define OCT_VIEW_TIMELINE_BIN_NS UINT64_C(20000000) /* 20 ms: ten seconds in all */

enum oct_view_mark {
    OCT_MARK_BLINK = 1,
    OCT_MARK_MOTION = 2,
    OCT_MARK_MISSING = 4, /* A-lines of it were missing */
};

struct oct_view_moment {
    uint64_t bin;            /* arrival / OCT_VIEW_TIMELINE_BIN_NS */
    float snr_db, sharpness; /* the worst of the bin; NaN: octd found none */
    unsigned marks;          /* enum oct_view_mark, or'ed */
};

/* Zeroed it knows nothing. */
struct oct_view_quality {
    struct oct_view_moment moment[OCT_VIEW_TIMELINE]; /* a ring by bin % OCT_VIEW_TIMELINE */
    bool known;                                       /* a row came */
    double snr_db, sharpness;                         /* smoothed; all are finite */
    double level_db;                                  /* of the signal to noise, recently */
    uint64_t n_blinks, n_motions;                     /* since the acquisition began */
    unsigned marks;                                   /* of the newest B-scan */
};

/* What an image of the topic must be: one row (or none) of labelled f32 numbers. OCT_E_FORMAT. */
enum oct_err oct_view_quality_check(const struct oct_image_header *header, struct oct_error *err);

/* Notes a row: labels snr_db, sharpness, snr_smooth_db, sharpness_smooth, level_db, blink, motion,
 * missing, blinks, motions; unknown ones are ignored, and of absent ones the number before stays.
 * Its arrival_ns says which moment it is of. An image that the check refuses changes nothing. */
void oct_view_quality_add(struct oct_view_quality *quality, const struct oct_view_image *image);

/* The moment of a bin, or NULL when nothing came then. */
const struct oct_view_moment *oct_view_quality_moment(const struct oct_view_quality *quality,
                                                      uint64_t bin);

/* ---- the B-scans of the last seconds, in a bounded amount of memory ----
 *
 * Where all of them would take more, some are left out evenly, so that the span is covered. */

#define OCT_VIEW_HISTORY_NS (10 * OCT_NS_PER_S)
#define OCT_VIEW_HISTORY_MOST 4096u /* pictures */

/* Zeroed but for budget and span it is empty. Slots keep their buffers and are used again. */
struct oct_view_history {
    size_t budget_bytes;              /* of all pixels together */
    uint64_t span_ns;                 /* 0: OCT_VIEW_HISTORY_NS */
    struct oct_view_picture *picture; /* [n_slots], a ring; owned */
    unsigned n_slots;                 /* that fit the budget with pictures of this size */
    unsigned next, n;                 /* slot to fill, slots filled */
    uint32_t n_lines, depth;          /* what the slots hold */
    enum oct_sample_type sample_type;
};

/* Keeps a copy, unless the last kept picture is too near in time. A picture of another size empties
 * the history first. Out of memory, the picture is left out. */
void oct_view_history_add(struct oct_view_history *history, const struct oct_view_picture *picture);

/* Returns how many pictures are at most the span older than the newest, itself included. */
unsigned oct_view_history_count(const struct oct_view_history *history);

/* The i-th before the newest (0: the newest), borrowed; NULL when i >= count. */
const struct oct_view_picture *oct_view_history_at(const struct oct_view_history *history,
                                                   unsigned i);

void oct_view_history_finish(struct oct_view_history *history);

/* ---- the archive ----
 *
 * The pictures of the last ten seconds, those of the last moment that results may still come of,
 * what was said of the last averages, and the quality. The subscriber's thread fills it, the
 * window's reads it. */

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

/* While frozen, the archive keeps pictures and averages as they are. Returns how many of the
 * pictures came after that time. */
unsigned oct_view_archive_freeze(struct oct_view_archive *archive, bool frozen,
                                 uint64_t arrival_ns);

void oct_view_archive_copy_quality(struct oct_view_archive *archive,
                                   struct oct_view_quality *quality);

/* Returns how many pictures are kept. get copies the i-th before the newest; false: there is
 * none. */
unsigned oct_view_archive_count(struct oct_view_archive *archive);
bool oct_view_archive_get(struct oct_view_archive *archive, unsigned i,
                          struct oct_view_picture *picture);

/* Copies that B-scan, of the last OCT_VIEW_MOMENT_NS; what was said of the average whose newest
 * B-scan it is, of the last OCT_VIEW_MOST_AVERAGES. False: it is not kept. */
bool oct_view_archive_find(struct oct_view_archive *archive, const struct oct_view_of *of,
                           struct oct_view_picture *picture);
bool oct_view_archive_average(struct oct_view_archive *archive, const struct oct_view_of *of,
                              struct oct_view_average *average);

#endif
