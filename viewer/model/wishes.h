/* What the user wished of octd and what was not asked for yet, in order. octd is asked for one
 * after another, each after the answer to the one before. */
#ifndef OCT_VIEWER_MODEL_WISHES_H
#define OCT_VIEWER_MODEL_WISHES_H

#include "viewer/model/daemon_state.h"
#include "viewer/model/wish.h"

#include <stdbool.h>
#include <stddef.h>

#define OCT_VIEW_MOST_WISHES 16u

/* Zeroed there is none. */
struct oct_view_wishes {
    unsigned n;
    struct {
        enum oct_view_wish wish;
        char text[OCT_VIEW_LABEL_BYTES];
    } waiting[OCT_VIEW_MOST_WISHES]; /* the oldest first */
};

/* Adds a wish. Of two of a kind, one after the other, the later one counts, so that an impatient
 * user fills no queue. False: too many wait; nothing is added. */
bool oct_view_wishes_add(struct oct_view_wishes *wishes, enum oct_view_wish wish, const char *text);

/* Removes the oldest and returns it; NONE: there is none. */
enum oct_view_wish oct_view_wishes_take(struct oct_view_wishes *wishes,
                                        char text[OCT_VIEW_LABEL_BYTES]);

/* The text of the newest of a kind; NULL: none waits. */
const char *oct_view_wishes_find(const struct oct_view_wishes *wishes, enum oct_view_wish wish);

/* Takes all of a kind away (NONE: of any); returns how many. */
unsigned oct_view_wishes_drop(struct oct_view_wishes *wishes, enum oct_view_wish wish);

/* "the eye", "the recording": what a wish is about; "": nothing that a user asked for by name. */
const char *oct_view_wish_name(enum oct_view_wish wish);

#endif
