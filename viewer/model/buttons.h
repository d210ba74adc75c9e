/* The buttons of the window: which there are in the model's present state, in order, and how
 * they look. Those below the picture have places that stay: none appears, goes or moves while
 * one looks; one that is of no use now is off. One action stands behind each, the same as behind
 * its key (action.h). No SDL. */
#ifndef OCT_VIEWER_MODEL_BUTTONS_H
#define OCT_VIEWER_MODEL_BUTTONS_H

#include "viewer/model/layout.h"
#include "viewer/model/model.h"

enum oct_view_button_look {
    OCT_BUTTON_PLAIN,
    OCT_BUTTON_ON,     /* what it switches is on */
    OCT_BUTTON_RECORD, /* white on red: Record, Stop */
    OCT_BUTTON_OFF,    /* of no use now: dim, and a press does nothing */
    OCT_BUTTON_FIELD,  /* a field of text, as wide as the row has room; its end is shown */
};

struct oct_view_button {
    enum oct_view_action action;
    enum oct_view_button_row row;
    enum oct_view_button_look look;
    char label[OCT_VIEW_NAME_BYTES + OCT_VIEW_LABEL_BYTES];
    char brief[24]; /* where the label has no room in two lines */
};

/* What the window is about; the buttons below the picture follow from it. */
enum oct_view_situation {
    OCT_SITUATION_WATCHING,  /* octd does not answer, or there is no control endpoint */
    OCT_SITUATION_IDLE,      /* octd receives nothing: it is idle, or an error stopped it */
    OCT_SITUATION_LIVE,      /* it receives, and does not record */
    OCT_SITUATION_RECORDING, /* frozen or not */
    OCT_SITUATION_FROZEN,    /* and it does not record */
    OCT_SITUATION_PLAYBACK,
    OCT_SITUATION_ASKING, /* a recording waits for a word about its label */
};

enum oct_view_situation oct_view_situation(const struct oct_view_model *model);

/* Returns how many there are (<= OCT_VIEW_MOST_BUTTONS), those of a row one after another, those
 * below the picture first: always as many, in a window of 1280 pixels each with room for its
 * brief label in two lines. The row of the patient is OD, OS, the field of the pseudonym, next
 * patient; that of the angiogram its slabs. */
unsigned oct_view_buttons(const struct oct_view_model *model,
                          struct oct_view_button buttons[OCT_VIEW_MOST_BUTTONS]);

#endif
