/* The B-scans of the last ten seconds, or of another span, in a bounded amount of memory. Where all
 * of them would take more, some are left out evenly, so that the span is still covered. Pure; one
 * thread at a time. */
#ifndef OCT_VIEWER_MODEL_HISTORY_H
#define OCT_VIEWER_MODEL_HISTORY_H

#include "viewer/model/clock.h"
#include "viewer/model/picture.h"

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

#endif
