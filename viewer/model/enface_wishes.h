/* Projection and slab of octd's en face picture: what octd has, what the operator wants, and which
 * setting to send next. octd is asked one setting at a time, and a held key moves the slab faster
 * than octd answers: a setting that changed meanwhile is sent with its newest value. Pure; one
 * thread. */
#ifndef OCT_VIEWER_MODEL_ENFACE_WISHES_H
#define OCT_VIEWER_MODEL_ENFACE_WISHES_H

#include "viewer/model/enface.h"
#include "viewer/model/wish.h"

#include <stdbool.h>
#include <stddef.h>

/* analysis.enface_projection, analysis.enface_slab_first, analysis.enface_slab_last. */
struct oct_view_enface_settings {
    enum oct_projection projection;
    struct oct_view_slab slab;
};

/* Zeroed it knows nothing of octd's. */
struct oct_view_enface_wishes {
    bool known;                             /* octd said what it has */
    struct oct_view_enface_settings octds;  /* by its last word */
    struct oct_view_enface_settings wanted; /* octd's, where nothing is wanted */
    bool wants_projection, wants_first, wants_last;
    struct oct_view_enface_settings sent; /* wanted, when the last wish was taken */
};

/* octd says what it has; NULL: it says nothing of an en face picture. */
void oct_view_enface_wishes_hear(struct oct_view_enface_wishes *w,
                                 const struct oct_view_enface_settings *octds);

/* The operator wants the next projection; the slab moved and made thicker (shares of the depth),
 * which is wanted as the projection then. octd's settings must be known. */
void oct_view_enface_wishes_next(struct oct_view_enface_wishes *w);
void oct_view_enface_wishes_move(struct oct_view_enface_wishes *w, double shift, double grow);

/* The next setting to send, its value as text; NONE: nothing is wanted. The slab never comes to lie
 * upside down in between. It stays wanted until it is answered. */
enum oct_view_wish oct_view_enface_wishes_take(struct oct_view_enface_wishes *w, char *text,
                                               size_t n_bytes);

/* octd has it now, or refused it: then nothing is wanted any more. */
void oct_view_enface_wishes_answer(struct oct_view_enface_wishes *w, enum oct_view_wish wish,
                                   bool ok);

#endif
