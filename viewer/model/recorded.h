/* What became of recordings, by octd's own counts: where one began and ended, whoever asked for
 * it, how many volumes and pieces of volumes it left, and what of it is not in its files. Pure. */
#ifndef OCT_VIEWER_MODEL_RECORDED_H
#define OCT_VIEWER_MODEL_RECORDED_H

#include "viewer/model/daemon_state.h"

#include <stdbool.h>
#include <stdint.h>

/* Who ended a recording. */
enum oct_view_end {
    OCT_END_HERE,      /* the user of this window */
    OCT_END_ELSEWHERE, /* another client, or octd itself: all volumes were made */
    OCT_END_FAILED,    /* octd says why in last_error */
    OCT_END_CUT_OFF,   /* octd came to an end, and another one answers */
};

/* Zeroed it knows of none. */
struct oct_view_recorded {
    bool is_on;           /* one is under way */
    bool stop_was_asked;  /* here */
    double files, pieces; /* closed when it began; of those, not whole */
    double n_noted;       /* B-scans not recorded that the user took note of */

    /* The last one that ended while octview looked. */
    uint64_t ended_ns; /* 0: none did */
    enum oct_view_end end;
    bool is_counted; /* the counts are known */
    double n_whole, n_pieces, n_lost;
    char file[256]; /* the newest one's name */
    bool end_noted; /* the user took note of how it ended */
};

/* A status came, `before` is the one before it (known false: none). asked_stop: it answers this
 * window's wish to stop. */
void oct_view_recorded_hear(struct oct_view_recorded *recorded,
                            const struct oct_view_daemon *before, const struct oct_view_daemon *now,
                            bool asked_stop, uint64_t now_ns);

struct oct_view_model;
struct oct_view_phrase;

/* "SAVED 3 volumes and 1 piece, the last NAME" of the last recording, for a while; where something
 * of it is missing, until the user takes note or another one begins. False: nothing is to be
 * said. */
bool oct_view_recorded_text(const struct oct_view_model *model, struct oct_view_phrase *phrase);

/* B-scans of the running recording that are not recorded, if the user did not take note of as many
 * yet; 0: none, or none runs. */
double oct_view_recorded_lost(const struct oct_view_model *model);

/* Whether a recording failed or was cut off, and the user has not taken note of that yet. */
bool oct_view_recorded_failed(const struct oct_view_model *model);
bool oct_view_recorded_was_cut_off(const struct oct_view_model *model);

/* Whether there is something of these to take note of. */
bool oct_view_recorded_has_news(const struct oct_view_model *model);

/* The user takes note of what is not recorded, and says so in the message line. */
void oct_view_recorded_note(struct oct_view_model *model);

#endif
