/* What a user can do, and with which key. The window's bindings, the help overlay and --help are
 * all made from one table. */
#ifndef OCT_VIEWER_MODEL_ACTION_H
#define OCT_VIEWER_MODEL_ACTION_H

#include <stdbool.h>
#include <stddef.h>

enum oct_view_action {
    OCT_VIEW_NOTHING,
    OCT_VIEW_RECORD, /* or stop recording */
    OCT_VIEW_FREEZE,
    OCT_VIEW_OLDER,
    OCT_VIEW_NEWER,
    OCT_VIEW_AUTO_CONTRAST,
    OCT_VIEW_PUBLISHED_CONTRAST,
    OCT_VIEW_LEVEL_DOWN,
    OCT_VIEW_LEVEL_UP,
    OCT_VIEW_WINDOW_WIDER,
    OCT_VIEW_WINDOW_CLOSER,
    OCT_VIEW_LOWER_DOWN,
    OCT_VIEW_LOWER_UP,
    OCT_VIEW_UPPER_DOWN,
    OCT_VIEW_UPPER_UP,
    OCT_VIEW_GAMMA_DOWN,
    OCT_VIEW_GAMMA_UP,
    OCT_VIEW_PALETTE,
    OCT_VIEW_LAYOUT,
    OCT_VIEW_PROJECTION,
    OCT_VIEW_SLAB_UP,
    OCT_VIEW_SLAB_DOWN,
    OCT_VIEW_SLAB_THINNER,
    OCT_VIEW_SLAB_THICKER,
    OCT_VIEW_MEASURE,
    OCT_VIEW_HOLD, /* while measuring: the arrows move the next point */
    OCT_VIEW_MARK,
    OCT_VIEW_CLEAR,
    OCT_VIEW_ZOOM_IN,
    OCT_VIEW_ZOOM_OUT,
    OCT_VIEW_ZOOM_RESET,
    OCT_VIEW_PAN_LEFT,
    OCT_VIEW_PAN_RIGHT,
    OCT_VIEW_PAN_UP,
    OCT_VIEW_PAN_DOWN,
    OCT_VIEW_CURSOR_LEFT,
    OCT_VIEW_CURSOR_RIGHT,
    OCT_VIEW_STRETCH,
    OCT_VIEW_EYE,
    OCT_VIEW_PSEUDONYM,
    OCT_VIEW_SNAPSHOT,
    OCT_VIEW_SNAPSHOT_PLAIN,
    OCT_VIEW_FULL_SCREEN,
    OCT_VIEW_LOCK, /* the operator profile */
    OCT_VIEW_HELP,
    OCT_VIEW_QUIT,
    OCT_VIEW_LEAVE, /* closes the help, else the window, unless octd records */
    OCT_VIEW_N_ACTIONS
};

/* A key is written as "Ctrl+", "Shift+" and SDL's name of the key on the keyboard's layout, as in
 * "Ctrl+Left". Spaces separate several keys. */
struct oct_view_key {
    const char *keys;
    enum oct_view_action action;
    const char *meaning; /* one line; NULL: the row before has it */
};

extern const struct oct_view_key oct_view_keys[];
extern const size_t oct_view_n_keys;

/* Whether a held key repeats the action, and Shift does it five times. */
bool oct_view_action_is_step(enum oct_view_action action);

/* Whether the operator profile allows the action: recording, contrast, the label, help, and leaving
 * the profile. */
bool oct_view_action_is_operators(enum oct_view_action action);

/* Writes the keys of the help's line for row i: those of the row and of the rows after it that have
 * no meaning of their own. False: row i is one of those. */
bool oct_view_key_help(size_t i, char *keys, size_t n_bytes);

/* The buttons of the window, in order. */
struct oct_view_button {
    enum oct_view_action action;
    const char *label;
};

/* Returns how many there are; `operators`: those of the operator profile. */
size_t oct_view_buttons(bool operators, const struct oct_view_button **buttons);

#endif
