/* The viewer's state: what is shown, how, and what is known about stream and daemon. It uses
 * neither SDL nor zmq. One thread owns a model. Nothing here reads a clock: oct_view_model_tick
 * sets the time. */
#ifndef OCT_VIEWER_MODEL_MODEL_H
#define OCT_VIEWER_MODEL_MODEL_H

#include "viewer/model/action.h"
#include "viewer/model/archive.h"
#include "viewer/model/daemon.h"
#include "viewer/model/enface.h"
#include "viewer/model/exams.h"
#include "viewer/model/export.h"
#include "viewer/model/guide.h"
#include "viewer/model/layout.h"
#include "viewer/model/measure.h"
#include "viewer/model/overlay.h"
#include "viewer/model/picture.h"
#include "viewer/model/playback.h"
#include "viewer/model/scan.h"
#include "viewer/model/worklist.h"

#include <stdbool.h>
#include <stdint.h>

#define OCT_VIEW_ENDPOINT_BYTES 1024
#define OCT_VIEW_MESSAGE_BYTES 384

enum oct_view_state {
    OCT_SIGNAL_WAITING, /* no picture came yet */
    OCT_SIGNAL_LIVE,
    OCT_SIGNAL_STALLED, /* pictures came, but none for a while */
};

enum oct_view_arrangement {
    OCT_ARRANGEMENT_ALONE,
    OCT_ARRANGEMENT_TWO,
    OCT_ARRANGEMENT_FOUR,
    OCT_N_ARRANGEMENTS
};

/* How the B-scan lies in its panel. */
enum oct_view_fit {
    OCT_FIT_FILL,        /* it fills the panel: the two scales differ */
    OCT_FIT_MICROMETRES, /* the proportions of the tissue; they are not known: square pixels */
    OCT_FIT_PIXELS,      /* a pixel of the B-scan is one of the screen */
    OCT_N_FITS
};

/* What the arrows move while measuring: an end of the held calipers, or the marked point. */
enum oct_view_held { OCT_HELD_TO, OCT_HELD_FROM, OCT_HELD_MARK, OCT_N_HELD };

/* The window's light: all of it, a half, a quarter. */
enum oct_view_light { OCT_LIGHT_FULL, OCT_LIGHT_HALF, OCT_LIGHT_QUARTER, OCT_N_LIGHTS };

/* What is remembered between two runs (settings.h). */
struct oct_view_settings {
    enum oct_view_arrangement arrangement;
    enum oct_view_fit fit;
    struct oct_view_divider divider;
    bool operators;
    bool average;        /* octd's average stands in place of each B-scan, as long as one comes */
    unsigned average_of; /* how many B-scans octd is asked to average; 0: the standard */
    bool cells;          /* those that octd follows are drawn */
    bool layers;         /* the borders that octd finds are drawn: ILM and RPE, or */
    bool all_layers;     /* all seven */
    bool guide;          /* quality, and where the retina should lie */
    bool flow, velocity; /* one of them is drawn over the B-scan, with either the angiogram */
    bool rolloff;        /* a mirror's width and roll-off are drawn into the profile */
    enum oct_view_light light;
    bool sound;   /* for alarms, and for the begin and the end of a recording */
    bool details; /* all numbers of the stream stand above the status line */
};

/* A count of the daemon's that should not rise. */
struct oct_view_watch {
    double count;
    uint64_t rose_ns; /* 0: it never rose since the first status */
};

/* Anyone reads the members; the functions below write them. */
struct oct_view_model {
    char endpoint[OCT_VIEW_ENDPOINT_BYTES];
    struct oct_view_settings settings;

    /* The stream. */
    struct oct_view_archive *archive; /* the owner's, who sets it; NULL: nothing is kept */
    struct oct_view_picture shown;    /* meaningful when has_picture; owned */
    bool has_picture;
    struct oct_view_picture spare;  /* a buffer for the next one; owned */
    uint64_t serial;                /* changes whenever another picture is shown */
    struct oct_view_picture newest; /* came while frozen, when newest_waits; owned */
    bool newest_waits;
    struct oct_view_average average, newest_average; /* of `shown`, of `newest` */
    uint64_t average_came_ns;            /* the newest; 0: none since octview was told to show it */
    struct oct_view_sharpened sharpened; /* of `shown` */
    struct oct_view_sharpening sharpening;
    struct oct_view_enface enface; /* of the newest en face image; owned */
    bool enface_follows_layers;    /* it is of the topic `slab` */
    uint64_t slab_came_ns;         /* the newest of those; 0: none came */
    uint64_t first_picture_ns;     /* when the first picture was shown; 0: none was */
    struct oct_view_quality quality;
    _Alignas(16) unsigned char overlay_states[OCT_VIEW_MOST_OVERLAYS][OCT_VIEW_OVERLAY_BYTES];
    struct oct_view_cells cells;
    struct oct_view_layers layers; /* owned */
    struct oct_view_rolloff rolloff;
    struct oct_view_flow flow;           /* owned */
    struct oct_view_angiogram angiogram; /* owned */
    struct oct_view_trace trace;
    struct oct_view_lead lead; /* of these, what chooses the picture */
    struct oct_view_playback playback;
    struct oct_view_guide guide;
    struct oct_view_tally tally;
    bool connected;                    /* a publisher answers at the endpoint */
    struct oct_view_spectrum spectrum; /* the newest; owned */
    double screen_hz;                  /* frames drawn a second */
    uint64_t screen_since_ns, n_screen;
    double screen_ms; /* from a picture's arrival to the screen, smoothed */

    /* The daemon. */
    bool has_control;   /* there is an endpoint to ask */
    char elsewhere[64]; /* the other machine that octd runs on; "": it is this one */
    struct oct_view_daemon daemon;
    struct oct_view_watch missing, dropped;
    struct oct_view_disk disk;
    struct oct_view_line_rate line_rate;
    struct oct_view_recorded recorded;
    struct oct_view_enface_wishes enface_wishes;
    struct oct_view_scan scan;
    struct oct_view_wishes wishes; /* to be asked for */
    enum oct_view_wish asked;      /* sent, and not answered yet; with what: */
    char asked_text[OCT_VIEW_LABEL_BYTES];
    struct oct_view_answer answer; /* the daemon's last word on a recording, shown for a while */
    uint64_t answer_until_ns;

    /* What the user does. */
    struct oct_view_contrast contrast;
    struct oct_view_lens lens;
    bool frozen, help, measuring;
    bool points_at_banner;             /* the pointer rests on the alarms */
    unsigned back;                     /* frozen: how many kept pictures before the newest */
    uint64_t frozen_ns;                /* arrival of the newest of those that were shown */
    double cursor_line;                /* of the profile */
    struct oct_view_calipers calipers; /* of the shown picture */
    bool has_mark;
    struct oct_view_point mark;
    enum oct_view_held held; /* the point that the arrows move */
    bool typing;             /* the pseudonym */
    char typed[OCT_VIEW_LABEL_BYTES];
    struct oct_view_patient patient;
    struct oct_view_worklist worklist; /* owned */
    bool hides_names; /* a picture of the window is being taken: nobody's name is in it */
    struct oct_view_export exported;
    struct oct_view_report_page report_page;
    struct oct_view_exams exams; /* owned */
    struct oct_view_save_last save_last;
    struct oct_view_offer offer;

    uint64_t now_ns;
    char message[OCT_VIEW_MESSAGE_BYTES]; /* "" when there is none (any more) */
    uint64_t message_until_ns;
};

/* log: until the daemon says what pixels are, they count as dB (pipeline.log), else as counts^2. */
void oct_view_model_init(struct oct_view_model *model, const char *endpoint, bool log);

/* Frees the pictures. */
void oct_view_model_finish(struct oct_view_model *model);

/* Takes a picture newer than all before. The structs are swapped, so that *picture then has a
 * buffer to reuse. While frozen, the picture waits and the shown one stays; while averages or
 * results of other pictures choose what is shown (overlay.h), it is passed over. */
void oct_view_model_offer(struct oct_view_model *model, struct oct_view_picture *picture);

/* Takes a picture all the same; average: what is said of it, zeroed if it is a B-scan. */
void oct_view_model_offer_picture(struct oct_view_model *model, struct oct_view_picture *picture,
                                  const struct oct_view_average *average);

/* Shows this picture and freezes it; the structs are swapped. What had frozen another ends. */
void oct_view_model_hold_up(struct oct_view_model *model, struct oct_view_picture *picture);

/* Takes the subscriber's counts, and copies the quality from the archive. */
void oct_view_model_report(struct oct_view_model *model, const struct oct_view_tally *tally,
                           bool connected);

/* Takes a spectrum newer than the one before; the structs are swapped. */
void oct_view_model_offer_spectrum(struct oct_view_model *model,
                                   struct oct_view_spectrum *spectrum);

/* Takes the daemon's newest status, and its answer to a wish. */
void oct_view_model_hear(struct oct_view_model *model, const struct oct_view_daemon *daemon,
                         const struct oct_view_answer *answer);

/* Returns what to ask the daemon for now, and counts it as asked. NONE: nothing is wished, or an
 * answer is still to come. */
enum oct_view_wish oct_view_model_take_wish(struct oct_view_model *model,
                                            char text[OCT_VIEW_LABEL_BYTES]);

/* Sets the time, and removes a message that was shown long enough. */
void oct_view_model_tick(struct oct_view_model *model, uint64_t now_ns);

/* Notes that the shown picture is on the screen now. */
void oct_view_model_presented(struct oct_view_model *model, uint64_t now_ns);

/* Does an action, `times` over where it is a step. Snapshot, full screen, quit and leave concern
 * the window and do nothing here. With the operator profile on, only its actions do anything. While
 * measuring, the four actions of the arrow keys move the held point instead. */
void oct_view_model_apply(struct oct_view_model *model, enum oct_view_action action,
                          unsigned times);

/* Changes the contrast by a mouse drag across the picture, in parts of its width and height (right
 * and down positive). The whole width moves the level by the published range, the whole height
 * changes the window by it. */
void oct_view_model_drag(struct oct_view_model *model, double across, double down);

/* Marks a point; moves the held calipers (the first ones, where there are none); adds calipers and
 * holds them (false, with a message: all numbers are taken). Places beyond the picture are moved to
 * its edge. */
void oct_view_model_mark(struct oct_view_model *model, struct oct_view_point point);
void oct_view_model_set_caliper(struct oct_view_model *model, struct oct_view_point from,
                                struct oct_view_point to);
bool oct_view_model_add_caliper(struct oct_view_model *model, struct oct_view_point from,
                                struct oct_view_point to);

/* The value at the marked point; a mark at the far edges has that of the last pixel. */
double oct_view_model_mark_value(const struct oct_view_model *model);

/* The point that the arrows move while measuring; NULL: there is none. */
const struct oct_view_point *oct_view_model_held_point(const struct oct_view_model *model);

/* The A-line of the profile. */
void oct_view_model_point_at(struct oct_view_model *model, double line);

/* While typing: adds text, which at first replaces what stands there; removes the last letter, at
 * first all; ends typing, and wishes the text or drops it. */
void oct_view_model_type(struct oct_view_model *model, const char *text);
void oct_view_model_rub_out(struct oct_view_model *model);
void oct_view_model_end_typing(struct oct_view_model *model, bool keep);

/* A short line for the user, shown for a few seconds. */
void oct_view_model_say(struct oct_view_model *model, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Whether octd said that it records, or was asked to. */
bool oct_view_model_is_recording(const struct oct_view_model *model);

enum oct_view_state oct_view_model_state(const struct oct_view_model *model);

/* Seconds since the newest picture came; 0 when none came yet. */
double oct_view_model_silence_s(const struct oct_view_model *model);

/* Return the spacings as the daemon said, or in playback the file (NaN: unknown), and the shown
 * picture's width over height. */
struct oct_view_scale oct_view_model_scale(const struct oct_view_model *model);
double oct_view_model_slow_um(const struct oct_view_model *model); /* from B-scan to B-scan */
double oct_view_model_proportion(const struct oct_view_model *model);

/* The tissue in the en face picture, width over height; NaN: it is not known. */
double oct_view_model_enface_proportion(const struct oct_view_model *model);

/* Whether the picture from above is gridded: rows are no B-scans (analysis/enface/gridded.h). */
bool oct_view_model_enface_is_gridded(const struct oct_view_model *model);

/* Whether the spacings along lines and depth are known. */
bool oct_view_model_knows_proportion(const struct oct_view_model *model);

/* Returns where the shown picture lies in its panel, by fit and zoom. */
struct oct_view_rectf oct_view_model_place(const struct oct_view_model *model,
                                           struct oct_view_rect panel);

/* Of the values that are shown: "dB", "counts\u00b2", or what a file says that is no recording. */
const char *oct_view_model_unit(const struct oct_view_model *model);

/* How far the two scales of a picture differ that lies there: "stretched 2.1x along depth"; "":
 * they do not by a twentieth, or are not known. */
void oct_view_model_stretch_text(const struct oct_view_model *model, struct oct_view_rectf place,
                                 char *text, size_t n_bytes);

/* The en face picture that belongs to the shown one: octd's, or in playback the file's. */
const struct oct_view_enface *oct_view_model_enface(const struct oct_view_model *model);

/* ---- of viewer/model and viewer/overlay alone ---- */

/* Makes a wish, or says why that cannot be. */
void oct_view_model_wish(struct oct_view_model *model, enum oct_view_wish wish, const char *text);

/* Whether octd's en face settings can be changed; if not, says why. */
bool oct_view_model_can_set_enface(struct oct_view_model *model);

/* Freezes, or goes on with the newest picture. */
void oct_view_model_set_frozen(struct oct_view_model *model, bool frozen);

/* Shows the newest picture if one waits. */
void oct_view_model_show_newest(struct oct_view_model *model);

/* Shows a B-scan, which is no average; the structs are swapped. */
void oct_view_model_show_bscan(struct oct_view_model *model, struct oct_view_picture *picture);

#endif
