/* What the picture is: live, held, or the last of a stream that ended. Whoever draws the picture or
 * speaks of it asks here, so that all parts of the window say the same. Pure. */
#ifndef OCT_VIEWER_MODEL_SHOW_H
#define OCT_VIEWER_MODEL_SHOW_H

#include "viewer/model/status.h"

#include <stdbool.h>

enum oct_view_show {
    OCT_SHOW_WAITING,   /* there is no picture yet */
    OCT_SHOW_LIVE,      /* each B-scan, as it comes */
    OCT_SHOW_AVERAGED,  /* octd's average of the last ones, as it comes */
    OCT_SHOW_FROZEN,    /* held by the user, whatever became of the stream meanwhile */
    OCT_SHOW_NO_SIGNAL, /* the last one: none comes any more */
    OCT_SHOW_GONE,      /* the last one: octd is not there any more */
    OCT_SHOW_PLAYBACK,  /* of a recording, whatever octd does */
    OCT_N_SHOWS
};

/* What the picture is now. */
enum oct_view_show oct_view_show(const struct oct_view_model *model);

/* What became of the stream, whatever the picture is: WAITING, LIVE, NO_SIGNAL or GONE. GONE: its
 * publisher does not answer, nor does its control endpoint, or there is none and pictures
 * stopped. */
enum oct_view_show oct_view_show_of_stream(const struct oct_view_model *model);

/* What lies over a picture that is not live, so that nobody takes it for one from two metres. */
struct oct_view_veil {
    bool covers; /* the picture is old by no wish of the user's: it is dimmed and hatched all over;
                    else a hatched frame leaves its values as they are */
    bool plays;  /* playback: the frame has that colour; else the tone's */
    enum oct_view_tone tone;
    char words[32]; /* as large as the picture has room for */
    char more[64];  /* below them; "": nothing */
};

/* False: the picture is live, or there is none. */
bool oct_view_show_veil(const struct oct_view_model *model, struct oct_view_veil *veil);

/* "live", "no signal": what snapshots and logs say of the picture. */
const char *oct_view_show_name(enum oct_view_show show);

#endif
