/* Playback's reader: a thread that opens recordings and reads what the model wants to see, so that
 * the window never waits for a disk.
 *
 *     create -> { turn ... } -> destroy
 *
 * In this order it does what is wanted: correct the label of a file that was open when that was
 * asked for, open or close a file, read the B-scan that is to be shown, find its layers where they
 * are drawn, read the slice, the en face picture, find the layers of all B-scans. The last three
 * are done from coarse to fine, a few milliseconds at a time between B-scans: while they are
 * incomplete, what was read stands for its neighbours too. It keeps two B-scans, one slice of
 * OCT_VIEW_SLICE_MOST_VALUES, one en face picture (viewer/model/enface.h) and two maps alike,
 * whatever the size of the file. What it is at when the
 * owner destroys it is finished, one B-scan at most, and so is a label that is still to be
 * corrected. Where the owner must not wait for that, it leaves the play to its thread.
 *
 * One thread, the model's, calls all functions. */
#ifndef OCT_VIEWER_PLAY_PLAY_H
#define OCT_VIEWER_PLAY_PLAY_H

#include "config/config.h"
#include "pipeline/base/err.h"
#include "viewer/model/model.h"

#include <stdbool.h>
#include <stdint.h>

#define OCT_VIEW_SLICE_MOST_COLUMNS 2048u
#define OCT_VIEW_SLICE_MOST_VALUES (1u << 22)

struct oct_play;

/* config: as of oct_play_recorded_open; it outlives the play. `notify` (NULL: none) is called in
 * the thread when there is something new to take; it must not block. */
enum oct_err oct_play_create(struct oct_play **play, const struct oct_config *config,
                             void (*notify)(void *context), void *context, struct oct_error *err);

/* Takes from the model what it wants, and gives it what was read. Never waits for a disk. True: the
 * model has something new. */
bool oct_play_turn(struct oct_play *play, struct oct_view_model *model);

/* Waits until the file that the last turn asked for is open or refused; and until all that it
 * wanted is read too. False: the time ran out. The next turn gives the model what came. */
bool oct_play_wait_open(struct oct_play *play, uint64_t timeout_ns);
bool oct_play_wait_idle(struct oct_play *play, uint64_t timeout_ns);

/* Why the file was refused that a turn gave the model last; "": it was not. */
const char *oct_play_refusal(const struct oct_play *play);

/* NULL is fine. */
void oct_play_destroy(struct oct_play *play);

/* The same without waiting: the thread frees the play when it has finished what it is at, and calls
 * `left` last of all, which must not block. Until then it notifies and reads the configuration. */
void oct_play_leave(struct oct_play *play, void (*left)(void *context), void *context);

/* Reading n items from coarse to fine: every 64th, then those between, and so on. Each stands for
 * those after it until they are read themselves. Pure. */

struct oct_play_fill {
    uint32_t n, next, step, n_done;
};

void oct_play_fill_begin(struct oct_play_fill *fill, uint32_t n);

/* The item that comes next, which stands for *n_for items from it on. False: all were given. */
bool oct_play_fill_next(struct oct_play_fill *fill, uint32_t *item, uint32_t *n_for);

double oct_play_fill_share(const struct oct_play_fill *fill);

#endif
