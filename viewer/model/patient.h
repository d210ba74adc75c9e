/* Who is before the camera: the eye and the pseudonym of the recordings to come, and what is asked
 * before one without them. No SDL. */
#ifndef OCT_VIEWER_MODEL_PATIENT_H
#define OCT_VIEWER_MODEL_PATIENT_H

#include "viewer/model/daemon_state.h"

#include <stdbool.h>

/* What a recording waits for the user's word on. */
enum oct_view_question {
    OCT_ASKS_NOTHING,
    OCT_ASKS_LABEL, /* the label lacks the eye, the pseudonym or both */
};

struct oct_view_patient {
    enum oct_view_question asks;
};

struct oct_view_model;

/* The eye and the pseudonym that the window speaks of: octd's, of the recordings to come. */
const char *oct_view_patient_eye(const struct oct_view_model *model);
const char *oct_view_patient_pseudonym(const struct oct_view_model *model);

/* "an eye", "a pseudonym", "a label": what the label lacks; NULL: nothing. */
const char *oct_view_patient_lacks(const struct oct_view_model *model);

#endif
