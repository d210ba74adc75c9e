/* What a user can do, and with which key. The window's bindings, the help overlay and --help are
 * all made from one table. */
#ifndef OCT_VIEWER_MODEL_ACTION_H
#define OCT_VIEWER_MODEL_ACTION_H

#include <stdbool.h>
#include <stddef.h>

enum oct_view_action {
    OCT_ACTION_NOTHING,
    OCT_ACTION_START,       /* octd begins to receive */
    OCT_ACTION_RECORD,      /* or stop recording */
    OCT_ACTION_VOLUMES,     /* how many volumes a recording has */
    OCT_ACTION_SAVE_LAST,   /* what octd kept in memory */
    OCT_ACTION_PLAYBACK,    /* the recording just made, or live again */
    OCT_ACTION_FILE_BEFORE, /* playback: another recording of the folder */
    OCT_ACTION_FILE_AFTER,
    OCT_ACTION_KEEP,        /* playback: the recording is good */
    OCT_ACTION_REPEAT,      /* playback: it is to be made again; nothing is deleted */
    OCT_ACTION_EXPORT,      /* playback: to the archive, or as DICOM beside the recording */
    OCT_ACTION_REPORT,      /* playback: a page of it, beside the recording */
    OCT_ACTION_EXAMS,       /* playback: the folder's recordings by patient */
    OCT_ACTION_FREEZE,      /* in playback: play, pause */
    OCT_ACTION_AVERAGE,     /* or each B-scan */
    OCT_ACTION_AVERAGE_OF,  /* of how many B-scans */
    OCT_ACTION_FLOW,        /* over the B-scan: flow, velocity, or neither */
    OCT_ACTION_SUPERFICIAL, /* slabs of the angiogram; again: the whole depth */
    OCT_ACTION_DEEP,
    OCT_ACTION_AVASCULAR,
    OCT_ACTION_CHORIOCAPILLARIS,
    OCT_ACTION_SCAN,        /* one of the site's list */
    OCT_ACTION_LINE,        /* drawn on the picture from above; or the scan of before */
    OCT_ACTION_ACKNOWLEDGE, /* what was not recorded */
    OCT_ACTION_CELLS,       /* circles and tails, or not */
    OCT_ACTION_LAYERS,      /* ILM and RPE, or not */
    OCT_ACTION_SHARPEN,     /* the dispersion: before and after, or live again */
    OCT_ACTION_ROLLOFF,     /* a mirror's width and roll-off, or not */
    OCT_ACTION_MORE,        /* cells, then a mirror, begun and ended in octd; then neither */
    OCT_ACTION_OLDER,
    OCT_ACTION_NEWER,
    OCT_ACTION_AUTO_CONTRAST,
    OCT_ACTION_PUBLISHED_CONTRAST,
    OCT_ACTION_LEVEL_DOWN,
    OCT_ACTION_LEVEL_UP,
    OCT_ACTION_WINDOW_WIDER,
    OCT_ACTION_WINDOW_CLOSER,
    OCT_ACTION_LOWER_DOWN,
    OCT_ACTION_LOWER_UP,
    OCT_ACTION_UPPER_DOWN,
    OCT_ACTION_UPPER_UP,
    OCT_ACTION_GAMMA_DOWN,
    OCT_ACTION_GAMMA_UP,
    OCT_ACTION_PALETTE,
    OCT_ACTION_LAYOUT,
    OCT_ACTION_PROJECTION,
    OCT_ACTION_SLAB_UP,
    OCT_ACTION_SLAB_DOWN,
    OCT_ACTION_SLAB_THINNER,
    OCT_ACTION_SLAB_THICKER,
    OCT_ACTION_MEASURE,
    OCT_ACTION_CALIPERS, /* another pair */
    OCT_ACTION_HOLD,     /* while measuring: the arrows move the next point */
    OCT_ACTION_MARK,
    OCT_ACTION_REMOVE, /* the held calipers, or the marked point */
    OCT_ACTION_CLEAR,
    OCT_ACTION_ZOOM_IN,
    OCT_ACTION_ZOOM_OUT,
    OCT_ACTION_ZOOM_RESET,
    OCT_ACTION_PAN_LEFT,
    OCT_ACTION_PAN_RIGHT,
    OCT_ACTION_PAN_UP,
    OCT_ACTION_PAN_DOWN,
    OCT_ACTION_CURSOR_LEFT,
    OCT_ACTION_CURSOR_RIGHT,
    OCT_ACTION_FIT, /* fill the panel, 1:1 um, 1:1 pixels */
    OCT_ACTION_GUIDE,
    OCT_ACTION_DETAILS,
    OCT_ACTION_DIM, /* the window's light */
    OCT_ACTION_SOUND,
    OCT_ACTION_EYE,
    OCT_ACTION_RIGHT_EYE,
    OCT_ACTION_LEFT_EYE,
    OCT_ACTION_PSEUDONYM,
    OCT_ACTION_NEXT_PATIENT,
    OCT_ACTION_SNAPSHOT,
    OCT_ACTION_SNAPSHOT_PLAIN,
    OCT_ACTION_FULL_SCREEN,
    OCT_ACTION_LOCK, /* the operator profile */
    OCT_ACTION_HELP,
    OCT_ACTION_QUIT,
    OCT_ACTION_LEAVE, /* closes the help, else the window, unless octd records */
    OCT_N_ACTIONS
};

/* A key is written as "Ctrl+", "Shift+" and SDL's name of the key on the keyboard's layout, as in
 * "Ctrl+Left". Spaces separate several keys. */
struct oct_view_key {
    const char *keys;
    enum oct_view_action action;
    const char *meaning; /* one line; NULL: the row before has it */
};

extern const struct oct_view_key oct_view_keys[];
extern const size_t oct_view_n_keys;

/* Whether a held key repeats the action, and Shift does it five times. */
bool oct_view_action_is_step(enum oct_view_action action);

/* Whether the operator profile allows the action: the label, recording, playback and what is
 * decided about a recording, its export, freezing, the average, blood flow, layers, the guide,
 * contrast, snapshots, light, help, and leaving the profile. */
bool oct_view_action_is_operators(enum oct_view_action action);

/* Writes the keys of the help's line for row i: those of the row and of the rows after it that have
 * no meaning of their own. False: row i is one of those. */
bool oct_view_key_help(size_t i, char *keys, size_t n_bytes);

#endif
