/* What the files model*.c owe each other; nobody else includes it. */
#ifndef OCT_VIEWER_MODEL_MODEL_PARTS_H
#define OCT_VIEWER_MODEL_MODEL_PARTS_H

#include "viewer/model/model.h"

/* Wishes something of the daemon, or says why that cannot be. */
void oct_view_model_wish(struct oct_view_model *model, enum oct_view_wish wish, const char *text);

/* Whether octd's en face settings can be changed; if not, says why. */
bool oct_view_model_can_set_enface(struct oct_view_model *model);

/* Wishes the next of: eye not said, OD, OS. */
void oct_view_model_next_eye(struct oct_view_model *model);

/* Takes the next of the calipers' ends and the marked point in hand. */
void oct_view_model_hold_next(struct oct_view_model *model);

/* Takes the marked point in hand; without one it is put on the profile's A-line, in the middle of
 * what is seen. Measuring is on from then on. */
void oct_view_model_mark_by_key(struct oct_view_model *model);

/* Moves the held point by whole pixels. Without calipers they are put into the middle of what is
 * seen first. False: the action is none of the arrows'. */
bool oct_view_model_move_held(struct oct_view_model *model, enum oct_view_action action,
                              unsigned times);

#endif
