/* The day's patients of the hospital's worklist (octctl worklist), from which the next one is
 * taken, and who is behind the pseudonym that the window speaks of. The window alone shows names:
 * they are in no wish, no message, no setting and no picture of the window. Pure; one thread. */
#ifndef OCT_VIEWER_MODEL_WORKLIST_H
#define OCT_VIEWER_MODEL_WORKLIST_H

#include "viewer/model/list.h"

#include <stdbool.h>
#include <stddef.h>

#define OCT_VIEW_NAME_BYTES 264 /* 64 characters, and ", " */
#define OCT_VIEW_MOST_APPOINTMENTS 1000u

struct oct_view_appointment {
    char key[16], time[8]; /* of octctl worklist --take; "09:15" */
    char name[OCT_VIEW_NAME_BYTES], id[OCT_VIEW_NAME_BYTES], accession[72]; /* to be shown */
    bool is_readable; /* else it cannot be taken */
};

enum oct_view_worklist_state {
    OCT_WORKLIST_ASKING, /* nobody is listed yet */
    OCT_WORKLIST_HERE,
    OCT_WORKLIST_FAILED, /* `why` */
};

/* Zeroed there is none to ask. */
struct oct_view_worklist {
    bool is_set;  /* dicom.worklist is; the owner says so */
    bool is_open; /* it may be shown: oct_view_worklist_is_shown */
    bool is_due;  /* octctl is to be asked for it; whoever asks clears it */
    enum oct_view_worklist_state state;
    char why[256];
    struct oct_view_appointment *all; /* owned */
    struct oct_view_list rows;

    /* The last one who was looked up; name "": nobody is known. */
    char pseudonym[128], name[OCT_VIEW_NAME_BYTES];
};

struct oct_view_model;

void oct_view_worklist_finish(struct oct_view_worklist *worklist);

/* Opens the list and has it asked for anew; closed with what opened it. Without one: nothing. */
void oct_view_worklist_open(struct oct_view_model *model);

/* Whether it stands in the window: it is open, over live pictures, and nothing is recorded. */
bool oct_view_worklist_is_shown(const struct oct_view_model *model);

/* The list that octctl printed, JSON; or NULL, and why there is none. */
void oct_view_worklist_take(struct oct_view_worklist *worklist, const char *json, size_t n_bytes,
                            const char *why);

/* Wishes that octd records this one (from 0) under a new pseudonym, and closes the list. */
void oct_view_worklist_choose(struct oct_view_model *model, unsigned i);

/* ---- who it is ---- */

/* Whether it is to be asked who is behind the pseudonym in the window. */
bool oct_view_worklist_wants_name(const struct oct_view_model *model);

/* Notes who is behind a pseudonym, by JSON of octctl identify or octctl worklist --take; of the
 * latter pseudonym is NULL, and the JSON has it. json NULL: nobody is known by it. Returns the
 * pseudonym; "": there is none. */
const char *oct_view_worklist_take_name(struct oct_view_worklist *worklist, const char *pseudonym,
                                        const char *json, size_t n_bytes);

/* Who is behind the pseudonym in the window, as it is shown: "Doe, Jane"; "": not known. */
const char *oct_view_patient_name(const struct oct_view_model *model);

#endif
