/* What octctl does for the window (net/errand.h): the day's patients, one of them taken, who is
 * behind a pseudonym, an export, and what waits for the archive. The model says what is due and
 * gets what came of it. One thread. */
#ifndef OCT_VIEWER_ERRANDS_H
#define OCT_VIEWER_ERRANDS_H

#include "viewer/model/model.h"
#include "viewer/net/errand.h"
#include "viewer/options.h"

enum oct_view_errand_of {
    OCT_ERRAND_LIST,
    OCT_ERRAND_TAKE, /* a patient of the list */
    OCT_ERRAND_NAME,
    OCT_ERRAND_EXPORT,
    OCT_ERRAND_STATUS, /* of the queue */
    OCT_ERRAND_REPORT,
    OCT_N_ERRANDS
};

/* Zeroed it does nothing. */
struct oct_view_errands {
    const struct oct_view_options *options; /* borrowed; NULL: no errands */
    struct oct_view_errand errand[OCT_N_ERRANDS];
    char asked_name[128]; /* the pseudonym of NAME */
};

/* Says to the model what the options allow. */
void oct_view_errands_init(struct oct_view_errands *errands, const struct oct_view_options *options,
                           struct oct_view_model *model);

/* Takes what has ended, and begins what is due; true: there is something new to draw. */
bool oct_view_errands_turn(struct oct_view_errands *errands, struct oct_view_model *model);

/* The model's wish OCT_WISH_PATIENT, with its text. */
void oct_view_errands_take_patient(struct oct_view_errands *errands, const char *key);

/* Ends those that run. */
void oct_view_errands_finish(struct oct_view_errands *errands);

#endif
