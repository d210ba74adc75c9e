/* The last ten seconds of B-scans, in a bounded amount of memory: where they would take more, some
 * are left out, evenly, so that ten seconds are covered. Pure; one thread at a time. */
#ifndef OCT_VIEWER_MODEL_HISTORY_H
#define OCT_VIEWER_MODEL_HISTORY_H

#include "viewer/model/clock.h"
#include "viewer/model/picture.h"

#define OCT_VIEW_HISTORY_NS (10 * OCT_NS_PER_S)
#define OCT_VIEW_HISTORY_MOST 4096u /* pictures */

/* Zeroed but for the budget it is empty. Slots keep their buffers and are used again. */
struct oct_view_history {
    size_t budget_bytes;              /* of all pixels together */
    struct oct_view_picture *picture; /* [n_slots], a ring; owned */
    unsigned n_slots;                 /* that pictures of this size may have */
    unsigned next, n;                 /* slot to fill, slots filled */
    uint32_t n_lines, depth;          /* what the slots hold */
    enum oct_sample_type sample_type;
};

/* Keeps a copy, or leaves it out when the one before is too near in time. Pictures of another size
 * empty the history first. Without memory it stays shorter. */
void oct_view_history_add(struct oct_view_history *history, const struct oct_view_picture *picture);

/* How many may be gone back: pictures not older than ten seconds before the newest. */
unsigned oct_view_history_count(const struct oct_view_history *history);

/* The i-th before the newest (0: the newest), borrowed; NULL when i >= count. */
const struct oct_view_picture *oct_view_history_at(const struct oct_view_history *history,
                                                   unsigned i);

void oct_view_history_finish(struct oct_view_history *history);

#endif
