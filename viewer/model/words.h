/* All that the window says: phrases with a tone, from a model. No SDL. */
#ifndef OCT_VIEWER_MODEL_WORDS_H
#define OCT_VIEWER_MODEL_WORDS_H

#include "viewer/model/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCT_VIEW_MAX_ALARMS 20

/* Whether a recording has begun of which nothing is in a file yet. */
bool oct_view_waits_to_record(const struct oct_view_model *model);

/* Whether octd records, as it said itself; what was only asked for is shown as asked for. */
void oct_view_recording(const struct oct_view_model *model, struct oct_view_phrase *phrase);

/* What stands in the middle of a window without a picture: two lines; 0 when there is one. */
unsigned oct_view_notice(const struct oct_view_model *model, struct oct_view_phrase lines[2]);

/* A reason why B-scans are not recorded (record_account), in an operator's words; as it is, where
 * it has none. */
const char *oct_view_loss_words(const char *why);

/* What is wrong, and what to do about it; both lines have the alarm's tone. */
struct oct_view_alarm {
    struct oct_view_phrase what, remedy;
};

/* The worst first; returns how many. */
unsigned oct_view_alarms(const struct oct_view_model *model,
                         struct oct_view_alarm alarms[OCT_VIEW_MAX_ALARMS]);

/* The same, and which of them is shown now: several take turns, each OCT_VIEW_ALARM_S. */
#define OCT_VIEW_ALARM_S 3.0
unsigned oct_view_alarms_in_turn(const struct oct_view_model *model,
                                 struct oct_view_alarm alarms[OCT_VIEW_MAX_ALARMS],
                                 unsigned *which);

/* Breaks a text at spaces into lines of n_letters bytes at most; returns how many, most_lines at
 * most. A word that is longer than a line is broken. */
unsigned oct_view_wrap(const char *text, unsigned n_letters, char (*lines)[OCT_VIEW_TEXT_BYTES],
                       unsigned most_lines);

/* The quality in numbers: "SNR 31.2 dB  sharpness 5.1  blinks 1  motions 3". */
void oct_view_quality_text(const struct oct_view_model *model, struct oct_view_phrase *phrase);

/* What stands in the strip of alarms where there is none: that another scan begins, else the
 * quality. */
void oct_view_calm_text(const struct oct_view_model *model, struct oct_view_phrase *phrase);

/* The title of the en face picture ("en face, slab", and since when none came), or the words that
 * stand in its place; and whether none came since then though one should have. */
bool oct_view_enface_is_late(const struct oct_view_model *model, uint64_t since_ns);
void oct_view_enface_text(const struct oct_view_model *model, struct oct_view_phrase *phrase);

/* What the picture is: live, held, or the last of a stream that ended. Whoever draws the picture or
 * speaks of it asks here, so that all parts of the window say the same. Pure. */

enum oct_view_show {
    OCT_SHOW_WAITING,   /* there is no picture yet */
    OCT_SHOW_LIVE,      /* each B-scan, as it comes */
    OCT_SHOW_AVERAGED,  /* octd's average of the last ones, as it comes */
    OCT_SHOW_FROZEN,    /* held by the user, whatever became of the stream meanwhile */
    OCT_SHOW_CHANGING,  /* the last one: octd is about to scan something else */
    OCT_SHOW_NO_SIGNAL, /* the last one: none comes any more */
    OCT_SHOW_GONE,      /* the last one: octd is not there any more */
    OCT_SHOW_PLAYBACK,  /* of a recording, whatever octd does */
    OCT_N_SHOWS
};

/* What the picture is now. */
enum oct_view_show oct_view_show(const struct oct_view_model *model);

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

/* The numbers at the bottom of the window, each in a field of so many letters, so that none moves
 * when another grows. No SDL. */

#define OCT_VIEW_MOST_FIELDS 16

struct oct_view_field {
    struct oct_view_phrase phrase; /* longer than the field: the window cuts it */
    unsigned n_letters;            /* always the same for the field of this number */
};

/* The status line, the most important field first: what the picture is, B-scans a second, volume
 * and B-scan, losses, the disk, what the mouse does, the keys for more. Returns how many; the
 * number does not depend on the model. */
unsigned oct_view_fields(const struct oct_view_model *model,
                         struct oct_view_field fields[OCT_VIEW_MOST_FIELDS]);

/* All other numbers, which a key shows above the status line. */
unsigned oct_view_details(const struct oct_view_model *model,
                          struct oct_view_field fields[OCT_VIEW_MOST_FIELDS]);

/* What a snapshot shows, in words that go into its file: a line for people and a JSON text for
 * programs; and what its file is called after. Pure. */

#define OCT_VIEW_NAME_WORDS_BYTES 160
#define OCT_VIEW_CAPTION_LINE_BYTES 1024
#define OCT_VIEW_CAPTION_JSON_BYTES 8192

struct oct_view_caption {
    char name[OCT_VIEW_NAME_WORDS_BYTES]; /* "", "-OD", "-OD-P7": safe as a part of a file's name */
    char line[OCT_VIEW_CAPTION_LINE_BYTES];
    char json[OCT_VIEW_CAPTION_JSON_BYTES]; /* docs/octview.1 lists its members */
};

/* Of the shown picture. The pseudonym is in the name and in the texts where has_pseudonym, else
 * nowhere. `shows`: "window", or "picture": the picture alone. */
void oct_view_caption_make(struct oct_view_caption *caption, const struct oct_view_model *model,
                           bool has_pseudonym, const char *shows);

/* Appends "-TEXT" to a file's name: ASCII letters, digits, '.', '_' and '-' stay, as do letters
 * outside ASCII that are whole and visible; everything else is a '_'. "" appends nothing. */
void oct_view_caption_name_add(char *name, size_t n_bytes, const char *text);

/* The help: which keys there are and what they do, in columns of letters. No SDL. */

#define OCT_VIEW_MOST_HELP 384
#define OCT_VIEW_HELP_BYTES 96

/* A piece of text that is drawn in one line. */
struct oct_view_help_text {
    char text[OCT_VIEW_HELP_BYTES];
    unsigned column, line; /* of letters, of lines, from the upper left corner of the help */
    bool is_key;           /* else it is what keys do */
};

struct oct_view_help {
    struct oct_view_help_text text[OCT_VIEW_MOST_HELP];
    unsigned n;
    unsigned n_letters, n_lines; /* of all of it */
    bool is_cut;                 /* the window is too small: not all of the words are there */
};

/* Arranges the help for a window of so many letters and lines, of which it takes no more: in the
 * most columns that need not break a line, else in the fewest that fit, else in two of cut lines.
 * The operator profile's is of its keys alone. */
void oct_view_help_arrange(struct oct_view_help *help, const struct oct_view_model *model,
                           unsigned n_letters, unsigned n_lines);

/* Which sounds are due, and what they are: short tones for an alarm that is new, and for the begin
 * and the end of a recording as octd says them. Pure; viewer/sound.h plays them. */

/* Members of a set; played in this order. */
enum oct_view_sound_of {
    OCT_SOUND_RECORD_ENDS = 1,   /* 880 Hz, then a longer 660 Hz */
    OCT_SOUND_RECORD_BEGINS = 2, /* 660 Hz, then 880 Hz */
    OCT_SOUND_ALARM = 4,         /* three times 1320 Hz */
};

/* An alarm that was away for less than this is the same one when it is there again. */
#define OCT_VIEW_SAME_ALARM_S 10.0

#define OCT_VIEW_SOUND_HZ 48000
/* The longest sound. */
#define OCT_VIEW_MOST_SOUND_SAMPLES OCT_VIEW_SOUND_HZ

/* A zeroed struct has heard nothing yet. */
struct oct_view_sounds {
    bool is_told, records; /* octd said whether it records; it does */
    struct {
        uint32_t words; /* of its text, without numbers; 0: no alarm */
        uint64_t seen_ns;
    } alarm[2 * OCT_VIEW_MAX_ALARMS];
};

/* Returns the set of the sounds that are due now; called for each turn, whether they are played or
 * not. Alarms of the tone BAD sound, once each. The first word of octd on its recording makes no
 * sound. */
unsigned oct_view_sounds_due(struct oct_view_sounds *sounds, const struct oct_view_model *model);

/* Writes one sound: OCT_VIEW_SOUND_HZ samples a second, one channel, of at most a third of the full
 * scale, silence at both ends. Returns how many samples (<= OCT_VIEW_MOST_SOUND_SAMPLES). */
size_t oct_view_sound_make(enum oct_view_sound_of sound,
                           int16_t samples[OCT_VIEW_MOST_SOUND_SAMPLES]);

#endif
