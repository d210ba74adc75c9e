/* Keys, mouse and buttons become what the model does, and what only the window can do. */
#ifndef OCT_VIEWER_INPUT_H
#define OCT_VIEWER_INPUT_H

#include "viewer/draw/draw.h"
#include "viewer/model/model.h"

#include <SDL.h>

#define OCT_VIEW_MOST_BINDINGS 96

struct oct_view_binding {
    SDL_Keycode key;
    bool ctrl, shift;
    enum oct_view_action action;
};

enum oct_view_grip {
    OCT_GRIP_NONE,
    OCT_GRIP_PICTURE, /* contrast; released where it began: a marked point */
    OCT_GRIP_CALIPER,
    OCT_GRIP_LO, /* a limit, on the colour bar */
    OCT_GRIP_HI,
    OCT_GRIP_PAN,
    OCT_GRIP_ENFACE, /* playback: they pick the B-scan */
    OCT_GRIP_SLICE,
    OCT_GRIP_THICKNESS,
    OCT_GRIP_SLIDER,
    OCT_GRIP_DIVIDER, /* between B-scan and en face */
    OCT_GRIP_LINE,    /* a scan, drawn on the picture from above */
    OCT_GRIP_LIST,    /* of patients: it scrolls; released where it began, a patient is taken */
};

enum oct_view_pointer {
    OCT_POINTER_USUAL,
    OCT_POINTER_ACROSS, /* over a divider that moves left and right, or up and down */
    OCT_POINTER_DOWN,
    OCT_N_POINTERS
};

struct oct_view_input {
    struct oct_view_binding binding[OCT_VIEW_MOST_BINDINGS];
    unsigned n_bindings;
    enum oct_view_grip grip;
    double x0, y0, x, y; /* pixels: where the grip began, and where it is */
    bool moved;
    enum oct_view_pointer pointer; /* how it is to look */
    bool grip_is_new;              /* the calipers were made by this grip */
    bool quit_was_refused;         /* once, for a Stop that octd had not heard yet */
    /* Set for the window, which clears them. */
    bool snapshot, snapshot_plain, full_screen, quit;
};

/* Reads the table of keys. SDL's video must be up: names are those of the keyboard's layout. */
void oct_view_input_init(struct oct_view_input *input);

/* Handles an event. True: it may have changed what is to be drawn. pixel_ratio: pixels per unit of
 * the mouse. */
bool oct_view_input_take(struct oct_view_input *input, const SDL_Event *event,
                         struct oct_view_model *model, const struct oct_draw *draw,
                         double pixel_ratio);

#endif
