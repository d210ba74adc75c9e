/* What a user can do, and with which key. One table from which the help overlay and --help both
 * follow; window.c binds SDL's key codes to the actions. */
#ifndef OCT_VIEWER_ACTION_H
#define OCT_VIEWER_ACTION_H

#include <stddef.h>

enum oct_view_action {
    OCT_VIEW_NOTHING,
    OCT_VIEW_PAUSE,
    OCT_VIEW_AUTO_CONTRAST,
    OCT_VIEW_LEVEL_DOWN,
    OCT_VIEW_LEVEL_UP,
    OCT_VIEW_WINDOW_WIDER,
    OCT_VIEW_WINDOW_CLOSER,
    OCT_VIEW_RESET_CONTRAST,
    OCT_VIEW_STRETCH,
    OCT_VIEW_SNAPSHOT,
    OCT_VIEW_FULL_SCREEN,
    OCT_VIEW_HELP,
    OCT_VIEW_QUIT,
};

struct oct_view_key {
    const char *key;     /* as people call it */
    const char *meaning; /* one line */
};

extern const struct oct_view_key oct_view_keys[];
extern const size_t oct_view_n_keys;

#endif
