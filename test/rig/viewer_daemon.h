/* What octd says, made for the viewer's tests. */
#ifndef OCT_TEST_RIG_VIEWER_DAEMON_H
#define OCT_TEST_RIG_VIEWER_DAEMON_H

#include "viewer/model/model.h"

#include <stdbool.h>

/* A reply to `status` with all that the viewer reads of it: a recording under way that has lost
 * B-scans, a slow disk, en face. */
extern const char oct_scene_status[];

/* The model hears that octd is like this now, and how it answers a wish (OCT_WISH_NONE: none). */
void oct_scene_hear(struct oct_view_model *model, const struct oct_view_daemon *daemon,
                    enum oct_view_wish wish, bool ok, const char *text);

#endif
