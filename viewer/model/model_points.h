/* The calipers and the marked point, moved by keys; model.h declares what the mouse does to them.
 * The thread of the model calls. Included by viewer/model alone. */
#ifndef OCT_VIEWER_MODEL_MODEL_POINTS_H
#define OCT_VIEWER_MODEL_MODEL_POINTS_H

#include "viewer/model/model.h"

/* Makes the next of the calipers' ends and the marked point the held one. */
void oct_view_model_hold_next(struct oct_view_model *model);

/* Adds calipers in the middle of the view and switches measuring on. */
void oct_view_model_add_by_key(struct oct_view_model *model);

/* Removes the held calipers, or the marked point where it is held. */
void oct_view_model_remove_held(struct oct_view_model *model);

/* Makes the marked point the held one and switches measuring on. Where there is no marked point,
 * puts it on the profile's A-line, in the middle of the view. */
void oct_view_model_mark_by_key(struct oct_view_model *model);

/* Moves the held point by whole pixels. Where there are no calipers, puts them into the middle of
 * the view first. False: the action is none of the arrow keys'. */
bool oct_view_model_move_held(struct oct_view_model *model, enum oct_view_action action,
                              unsigned times);

#endif
