/* Playback by the mouse: en face picture, slice and slider pick the B-scan. */
#ifndef OCT_VIEWER_NAVIGATE_H
#define OCT_VIEWER_NAVIGATE_H

#include "viewer/input.h"

/* What the mouse takes at a place of the window: OCT_GRIP_ENFACE, _SLICE or _SLIDER; NONE: none of
 * them, or nothing is played back. */
enum oct_view_grip oct_view_navigate_grip(const struct oct_view_model *model,
                                          const struct oct_draw *draw, double x, double y);

/* Moves to what such a grip says at this place. */
void oct_view_navigate_to(struct oct_view_model *model, const struct oct_draw *draw,
                          enum oct_view_grip grip, double x, double y);

/* The wheel over the B-scan or one of those scrolls through the B-scans; with Ctrl over the B-scan
 * it zooms, as it does live. False: it is no such turn. */
bool oct_view_navigate_wheel(struct oct_view_model *model, const struct oct_draw *draw, double x,
                             double y, double turns, double each);

#endif
