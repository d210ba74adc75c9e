/* What the operator wants of the daemon, and what it answered. */
#ifndef OCT_VIEWER_MODEL_WISH_H
#define OCT_VIEWER_MODEL_WISH_H

#include <stdbool.h>

enum oct_view_wish {
    OCT_WISH_NONE,
    OCT_WISH_RECORD,
    OCT_WISH_STOP,
    OCT_WISH_START,
    OCT_WISH_SAVE_LAST,
    OCT_WISH_VOLUMES,   /* text: of a recording; 0: until it is stopped */
    OCT_WISH_AVERAGE,   /* text: of how many B-scans; 1: none */
    OCT_WISH_EYE,       /* text: "", OD or OS */
    OCT_WISH_PSEUDONYM, /* text */
    OCT_WISH_PROJECTION,
    OCT_WISH_SLAB_FIRST,
    OCT_WISH_SLAB_LAST,
    OCT_WISH_CALIBRATE, /* the dispersion */
    OCT_WISH_ENABLE,    /* text: the key that shall be yes */
};

/* The daemon's own word on a wish. */
struct oct_view_answer {
    enum oct_view_wish wish; /* NONE: no answer came */
    bool ok;
    bool unanswered; /* octd did not answer in time: whether it was done is not known */
    char text[256];  /* what was set, or why it was refused */
};

#endif
