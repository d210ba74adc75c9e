/* The daemon: what it says, what the user wants of it, and what became of that. Pure. */
#ifndef OCT_VIEWER_MODEL_DAEMON_H
#define OCT_VIEWER_MODEL_DAEMON_H

#include "pipeline/base/err.h"
#include "viewer/model/action.h"
#include "viewer/model/enface.h"
#include "viewer/model/phrase.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCT_VIEW_LABEL_BYTES 128

/* ---- what the operator wants of the daemon, and what it answered ---- */

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
    OCT_WISH_PATIENT,   /* text: the key of an entry of the worklist, by octctl */
    OCT_WISH_PROJECTION,
    OCT_WISH_SLAB_FIRST,
    OCT_WISH_SLAB_LAST,
    OCT_WISH_CALIBRATE, /* the dispersion */
    OCT_WISH_ENABLE,    /* text: the key that shall be yes */
    OCT_WISH_DISABLE,   /* that shall be no */
    OCT_WISH_FLOW_SLAB, /* text: of the angiogram; "": the whole depth */
    OCT_WISH_SCAN,      /* text: its name in the site's list; "": as configured */
    OCT_WISH_SCAN_KEYS, /* text: JSON, keys of [scan] over those that run */
    OCT_N_WISHES
};

/* What octd is asked for: a command with its action, or (of a scan) with the wish's text under this
 * name; or (cmd NULL) to set the key to the text; without a key that which the text names to
 * yes. */
struct oct_view_wish_row {
    const char *name; /* "the eye": what a user asked for; "": nothing that has a name */
    const char *cmd, *action, *key, *with;
};
extern const struct oct_view_wish_row oct_view_wish_rows[OCT_N_WISHES];

/* The daemon's own word on a wish. */
struct oct_view_answer {
    enum oct_view_wish wish; /* NONE: no answer came */
    bool ok;
    bool unanswered; /* octd did not answer in time: whether it was done is not known */
    char text[256];  /* what was set, or why it was refused */
};

/* Projection and slab of octd's en face picture: what octd has, what the operator wants, and which
 * setting to send next. octd is asked one setting at a time, and a held key moves the slab faster
 * than octd answers: a setting that changed meanwhile is sent with its newest value. Pure; one
 * thread. */

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

struct oct_view_model;

/* The operator wants the next projection, which must be known; the slab moved and made thicker
 * (shares of the depth), which is wanted as the projection then, or it is said why not. */
void oct_view_enface_wishes_next(struct oct_view_enface_wishes *w);
void oct_view_model_move_slab(struct oct_view_model *model, double shift, double grow);

/* What the daemon last said about itself, from the bytes of a status reply. Everything in there is
 * outside bytes: what is missing, of the wrong kind or out of range is unknown (0, NaN, ""). */

#define OCT_VIEW_MOST_TROUBLES 8u
#define OCT_VIEW_MOST_ANALYSES 16u
#define OCT_VIEW_MOST_SCANS 16u
#define OCT_VIEW_SCAN_NAME_BYTES 64

/* A row of the analyses. */
struct oct_view_analysis {
    char name[24];
    double late_share, bscan_ms; /* lately: of the B-scans skipped, work at each; NaN: not told */
    bool at_rest, failing, late; /* late: it does not follow */
    char error[128];             /* the last; "": none */
};

struct oct_view_daemon {
    bool known;         /* a status came at least once; without it the rest means nothing */
    bool reachable;     /* the newest question was answered in time */
    uint64_t answer_ns; /* when the newest answer came */
    bool pending;       /* octd granted something and has not done it yet */
    bool disk_slow;     /* the disk holds up the recording */
    unsigned n_troubles;
    char trouble[OCT_VIEW_MOST_TROUBLES][32]; /* words of `degraded` that stand nowhere else here */
    bool analyses_told;
    unsigned n_analyses;
    struct oct_view_analysis analysis[OCT_VIEW_MOST_ANALYSES];
    struct { /* what the camera driver does wrong, and the cure; "": nothing */
        char text[256], cure[256];
        char plain[128]; /* what, without names of fields and keys; "": octd has no such words */
    } driver;
    char state[16]; /* idle | running | recording | error */
    char last_error[256];
    double pid; /* of octd: another one, another octd; 0: not known */
    double uptime_s, acquisitions;
    double lines_received, lines_missing; /* since octd's start, as those below; without
                                             those that the operator's stop and start cut off */
    double bscans_dropped, latency_p50_us;
    struct oct_scan scan; /* its way; n_bscans 0: not known */
    struct {
        bool has_number;
        double number;  /* another for each change of the scan */
        bool is_listed; /* what runs is of the list, by its name, or as configured (""): */
        char running[OCT_VIEW_SCAN_NAME_BYTES];
        char refused[256]; /* why the newest that was asked for does not run; "": it does */
        unsigned n;        /* the site's list */
        char name[OCT_VIEW_MOST_SCANS][OCT_VIEW_SCAN_NAME_BYTES];
    } scans;
    double axial_um, lateral_um, slow_um; /* of a pixel, an A-line, a B-scan; NaN: not known */
    double set_line_rate_hz;              /* as configured; 0: nobody did, or not known */
    double lines;                         /* of a B-scan; 0: not known */
    bool pixels_told, log;                /* whether octd said what pixels are; they are dB */
    bool has_enface;                      /* octd computes an en face picture */
    bool enface_told;                     /* and said how: */
    struct oct_view_enface_settings enface;
    double repeats; /* B-scans at one place; 0: not told */
    struct {
        char slab[48];   /* of the angiogram; "": the whole depth */
        double max_bulk; /* above it a place has moved; NaN: not told */
    } flow;
    double average_bscans; /* of octd's live average; 1 or 0: it makes none */
    double saturation;     /* the largest sample; 0: not known */
    struct {               /* what octd computes beside the stream on request */
        double number;     /* since octd's start; 0: none */
        bool pending;
        char why[256]; /* it came to nothing; "": it did not, or is under way */
    } errand;
    double disk_bytes_free; /* NaN: not known */
    struct {
        bool active, stopping, waiting_for_volume;
        bool failed; /* the last recording failed */
        double elapsed_s, bscans_in_file, bscans_waiting, volumes_written, volumes_incomplete;
        double volumes;     /* after which octd ends one; 0: it does not; NaN: not told */
        double disk_left_s; /* how long the disk lasts, as octd says; NaN: not known */
        /* How many B-scans of this recording, or the last one, are not in its files; the reason of
         * most of them as record_account names it (""); all of them, in an operator's words:
         * "7 disk too slow, 2 not sent by the camera" */
        double n_lost;
        char lost_why[24], lost_text[160];
        char path[1024]; /* of the newest file, its final name; "": none */
        char file[256];  /* the last part of it */
        char eye[8], pseudonym[OCT_VIEW_LABEL_BYTES];
    } record;
    struct {                /* the seconds that octd keeps in memory (record last) */
        double bscans_most; /* B-scans, at most; 0: it keeps none */
        double length_s;    /* how long those of now lasted */
        bool saving;
        double n_lost;              /* B-scans missing from the file */
        char path[1024], file[256]; /* its name, and the last part of it; "": none yet */
        char error[256];            /* of the last one; "": none */
    } last;
};

/* The row of that name; NULL: there is none. */
const struct oct_view_analysis *oct_view_daemon_analysis(const struct oct_view_daemon *daemon,
                                                         const char *name);

/* Reads a status reply and sets known; the caller sets reachable and answer_ns. OCT_E_FORMAT: it is
 * no status reply, and *daemon is as it was. */
enum oct_err oct_view_daemon_read(struct oct_view_daemon *daemon, const char *json, size_t n_bytes,
                                  struct oct_error *err);

/* What the user wished of octd and what was not asked for yet, in order. octd is asked for one
 * after another, each after the answer to the one before. */

#define OCT_VIEW_MOST_WISHES 16u

/* Zeroed there is none. */
struct oct_view_wishes {
    unsigned n;
    struct {
        enum oct_view_wish wish;
        char text[OCT_VIEW_LABEL_BYTES];
    } waiting[OCT_VIEW_MOST_WISHES]; /* the oldest first */
};

/* The text of the newest of a kind; NULL: none waits. */
const char *oct_view_wishes_find(const struct oct_view_wishes *wishes, enum oct_view_wish wish);

/* Takes all of a kind away (NONE: of any); returns how many. */
unsigned oct_view_wishes_drop(struct oct_view_wishes *wishes, enum oct_view_wish wish);

/* Whether the disk has room for too few seconds of recording, by octd's word (disk_left_s): for so
 * long and at so many looks that a burst of the camera, which shortens the time for a moment, does
 * not count. Pure. */

/* Fewer seconds of recording than this are too few: for the running one, and for the next one. */
#define OCT_VIEW_DISK_LOW_S 300.0
#define OCT_VIEW_DISK_OUT_S 60.0

/* Zeroed it has enough. */
struct oct_view_disk {
    uint64_t low_ns; /* since when it has too little; 0: it has enough */
    unsigned n_low;  /* statuses since then */
};

/* A status came. */
void oct_view_disk_hear(struct oct_view_disk *disk, const struct oct_view_daemon *daemon,
                        uint64_t now_ns);

bool oct_view_disk_is_low(const struct oct_view_disk *disk, uint64_t now_ns);

/* Compares the camera's line rate with the usual one. Both are the daemon's count of A-lines over
 * the daemon's own clock, so that neither this window's load nor the network changes them. Pure. */

/* Measurements of a second or more. A rate that lasts becomes the usual one. */
#define OCT_VIEW_LINE_RATES 31u

/* A zeroed struct knows nothing. Members are read freely and written by the function. */
struct oct_view_line_rate {
    double rate_hz;                        /* the newest measurement; 0: none yet */
    double usual_hz;                       /* the median of the last ones; 0: too few to say */
    bool fell;                             /* the newest two were less than 0.8 of it */
    double recent_hz[OCT_VIEW_LINE_RATES]; /* a ring */
    unsigned n_recent, n_low;
    double acquisitions, lines, time_s; /* where the running measurement began */
    bool runs;
};

/* Brings the A-lines that the camera made so far (received or missing) at a moment of the daemon's
 * clock, and the number of the acquisition. Another acquisition, or less of anything than before,
 * begins anew. A measurement takes a second and ten B-scans, or five seconds. A standstill
 * is not measured: the alarm of no signal reports it. */
void oct_view_line_rate_add(struct oct_view_line_rate *rate, double acquisitions, double lines,
                            double time_s, double lines_a_bscan);

/* What became of recordings, by octd's own counts: where one began and ended, whoever asked for
 * it, how many volumes and pieces of volumes it left, and what of it is not in its files. Pure. */

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

/* "SAVED 3 volumes and 1 piece, the last NAME" of the last recording, for a while; where something
 * of it is missing, until the user takes note or another one begins. False: nothing is to be
 * said. */
bool oct_view_recorded_text(const struct oct_view_model *model, struct oct_view_phrase *phrase);

/* What of a recording the user has not taken note of yet. */
struct oct_view_news {
    double n_lost;            /* B-scans of the running one that are not recorded; 0: none */
    bool failed, was_cut_off; /* it did, or was */
    bool any;                 /* any of these */
};
struct oct_view_news oct_view_recorded_news(const struct oct_view_model *model);

/* The user takes note of what is not recorded, and says so in the message line. */
void oct_view_recorded_note(struct oct_view_model *model);

/* The last seconds, which octd keeps in memory, into a file: asked for, being saved, saved, or
 * not. */

struct oct_view_save_last {
    double length_s;   /* of what is being saved, or was */
    uint64_t until_ns; /* how long it is told what became of it */
    bool is_newest;    /* the file is newer than octd's last recording */
};

/* "SAVED the last 20 s: FILE", or why not, or that it is under way; false: there is nothing to
 * tell. The tone is GOOD where it is no failure and nothing is missing. */
bool oct_view_save_last_text(const struct oct_view_model *model, struct oct_view_phrase *phrase);

/* How many volumes a recording has before octd ends it (record.volumes). */

/* Of octd's setting, to be put behind other words: " of 4" where a volume's number stands before
 * them, else "  (4 volumes each)"; "" where a recording lasts until it is stopped. */
void oct_view_volumes_add(const struct oct_view_model *model, bool is_numbered, char *text,
                          size_t n_bytes);

/* Who is before the camera: the eye and the pseudonym of the recordings to come, typing, and what
 * is asked before a recording without them. In playback, those of the file that is shown.
 *
 * octd keeps the label; while it records it changes none of it. Nothing counts as said before octd
 * confirms it, but what was asked for counts where the window asks the user for what is missing. */

/* When a recording without a label asks first. */
enum oct_view_ask_label {
    OCT_ASK_LABEL_OPERATOR, /* in the operator profile */
    OCT_ASK_LABEL_ALWAYS,
    OCT_ASK_LABEL_NEVER,
};

/* What a recording waits for the user's word on. */
enum oct_view_question {
    OCT_ASKS_NOTHING,
    OCT_ASKS_LABEL, /* the label lacks the eye, the pseudonym or both */
    OCT_ASKS_SAME,  /* it is whole, but nobody said it lately: the patient before? */
};

/* Zeroed, nothing is asked or known. */
struct oct_view_patient {
    enum oct_view_ask_label ask; /* as configured */
    enum oct_view_question asks;
    bool accepted;    /* this patient is recorded without a whole label */
    bool selected;    /* typing: the first letter replaces what stands there */
    char file[256];   /* typing: of this file; "": of the recordings to come */
    bool known;       /* octd's label was heard; then: */
    uint64_t said_ns; /* when it changed, or the user confirmed it; 0: before this window opened */
};

/* The eye and the pseudonym that the window speaks of, as octd or the file in playback has them. */
const char *oct_view_patient_eye(const struct oct_view_model *model);
const char *oct_view_patient_pseudonym(const struct oct_view_model *model);

/* "an eye", "a pseudonym", "a label": what the label lacks even when octd has done what was asked
 * of it; NULL: nothing. */
const char *oct_view_patient_lacks(const struct oct_view_model *model);

/* Does what the user asks of octd: to start, a recording, its volumes, the last seconds, the label.
 * False: the action is none of these. */
bool oct_view_daemon_apply(struct oct_view_model *model, enum oct_view_action action);

/* Takes the question away, or the typing. False: there was neither. */
bool oct_view_patient_cancel(struct oct_view_model *model);

/* The question in a line; "": none. */
void oct_view_patient_question(const struct oct_view_model *model, char *text, size_t n_bytes);

#endif
