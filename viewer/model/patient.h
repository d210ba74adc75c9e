/* Who is before the camera: the eye and the pseudonym of the recordings to come, typing, and what
 * is asked before a recording without them. In playback, those of the file that is shown.
 *
 * octd keeps the label; while it records it changes none of it. Nothing counts as said before octd
 * confirms it, but what was asked for counts where the window asks the user for what is missing. */
#ifndef OCT_VIEWER_MODEL_PATIENT_H
#define OCT_VIEWER_MODEL_PATIENT_H

#include "viewer/model/daemon_state.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* When a recording without a label asks first. */
enum oct_view_ask_label {
    OCT_ASK_LABEL_OPERATOR, /* in the operator profile */
    OCT_ASK_LABEL_ALWAYS,
    OCT_ASK_LABEL_NEVER,
};

/* What a recording waits for the user's word on. */
enum oct_view_question {
    OCT_ASKS_NOTHING,
    OCT_ASKS_LABEL, /* the label lacks the eye, the pseudonym or both */
    OCT_ASKS_SAME,  /* it is whole, but nobody said it lately: the patient before? */
};

/* Zeroed, nothing is asked or known. */
struct oct_view_patient {
    enum oct_view_ask_label ask; /* as configured */
    enum oct_view_question asks;
    bool accepted;    /* this patient is recorded without a whole label */
    bool selected;    /* typing: the first letter replaces what stands there */
    char file[256];   /* typing: of this file; "": of the recordings to come */
    bool known;       /* octd's label was heard; then: */
    uint64_t said_ns; /* when it changed, or the user confirmed it; 0: before this window opened */
};

struct oct_view_model;

/* The eye and the pseudonym that the window speaks of, as octd or the file in playback has them. */
const char *oct_view_patient_eye(const struct oct_view_model *model);
const char *oct_view_patient_pseudonym(const struct oct_view_model *model);

/* "an eye", "a pseudonym", "a label": what the label lacks even when octd has done what was asked
 * of it; NULL: nothing. */
const char *oct_view_patient_lacks(const struct oct_view_model *model);

/* ---- what the user does ---- */

/* Starts a recording, or asks first; ends it. */
void oct_view_patient_record(struct oct_view_model *model);

/* Sets the eye: "", "OD", "OS"; or the next of them. */
void oct_view_patient_set_eye(struct oct_view_model *model, const char *eye);
void oct_view_patient_next_eye(struct oct_view_model *model);

/* Begins to type the pseudonym. */
void oct_view_patient_type(struct oct_view_model *model);

/* Live pictures without eye and pseudonym. */
void oct_view_patient_next(struct oct_view_model *model);

/* Takes the question away, or the typing. False: there was neither. */
bool oct_view_patient_cancel(struct oct_view_model *model);

/* ---- what octd says ---- */

/* octd's newest status, before it replaces model->daemon. */
void oct_view_patient_hear(struct oct_view_model *model, const struct oct_view_daemon *daemon);

/* The question in a line; "": none. */
void oct_view_patient_question(const struct oct_view_model *model, char *text, size_t n_bytes);

#endif
