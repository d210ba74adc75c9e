/* The lines of a recording, ready in memory when they are due. A modest recording is read whole
 * before the first line is wanted; of a larger one a second thread keeps a stretch ahead, so that
 * the disk does not disturb the pace.
 *
 * Lines count from 0 and go on counting when the recording starts again (loop). */
#ifndef OCT_TOOLS_LINE_STORE_H
#define OCT_TOOLS_LINE_STORE_H

#include "formats/recording.h"

struct oct_line_store;

/* scan: of the camera that is played: the lines of a B-scan come in the order in which it sends
 * them, with those of the flyback, which a recording does not have (they show the sweep backwards);
 * NULL: as they are recorded. The recording stays the caller's but must not be touched before
 * destroy. window_lines: the most lines asked for at once. whole_bytes: up to this size the
 * recording is held whole; of a larger one up to ahead_bytes (at least two B-scans and a window).
 * Returns when the first stretch is in memory. *store is NULL on error. */
enum oct_err oct_line_store_create(struct oct_line_store **store, struct oct_recording *recording,
                                   const struct oct_scan *scan, uint32_t window_lines, bool loop,
                                   uint64_t whole_bytes, uint64_t ahead_bytes,
                                   struct oct_error *err);

/* Lends lines line .. line + n_lines - 1: *samples is [n_lines][N], *valid is [n_lines]. A window
 * must not cross the recording's end and windows must be asked for in rising order. Lent until the
 * next call, or until destroy when the recording is held whole. Waits for the reader. */
enum oct_err oct_line_store_window(struct oct_line_store *store, uint64_t line, uint32_t n_lines,
                                   uint16_t **samples, const uint8_t **valid,
                                   struct oct_error *err);

bool oct_line_store_is_whole(const struct oct_line_store *store);

/* NULL is fine. */
void oct_line_store_destroy(struct oct_line_store *store);

#endif
