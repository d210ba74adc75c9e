/* The words of the window: what the status line, the centre of an empty window and the banner say
 * about a model. No SDL. */
#ifndef OCT_VIEWER_STATUS_H
#define OCT_VIEWER_STATUS_H

#include "viewer/model.h"

enum oct_view_tone {
    OCT_VIEW_PLAIN,
    OCT_VIEW_DIM, /* of little weight */
    OCT_VIEW_GOOD,
    OCT_VIEW_WARN, /* worth a look */
    OCT_VIEW_BAD,
};

#define OCT_VIEW_TEXT_BYTES 256
#define OCT_VIEW_MAX_PHRASES 12

struct oct_view_phrase {
    char text[OCT_VIEW_TEXT_BYTES];
    enum oct_view_tone tone;
};

/* The status line, the most important phrase first; returns how many (<= OCT_VIEW_MAX_PHRASES). A
 * window breaks lines between phrases only. */
unsigned oct_view_status(const struct oct_view_model *model,
                         struct oct_view_phrase phrases[OCT_VIEW_MAX_PHRASES]);

/* What stands over the picture, or in its place: up to two lines. 0 when the stream is live. */
unsigned oct_view_notice(const struct oct_view_model *model, struct oct_view_phrase lines[2]);

#endif
