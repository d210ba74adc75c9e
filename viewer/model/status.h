/* The words of the window: what the header, the centre of an empty window and the
 * banner say about a model. No SDL. */
#ifndef OCT_VIEWER_MODEL_STATUS_H
#define OCT_VIEWER_MODEL_STATUS_H

#include "viewer/model/model.h"

enum oct_view_tone {
    OCT_TONE_PLAIN,
    OCT_TONE_DIM, /* unimportant */
    OCT_TONE_GOOD,
    OCT_TONE_WARN, /* worth a look */
    OCT_TONE_BAD,
};

#define OCT_VIEW_TEXT_BYTES 384
#define OCT_VIEW_MAX_ALARMS 20

struct oct_view_phrase {
    char text[OCT_VIEW_TEXT_BYTES];
    enum oct_view_tone tone;
};

/* Whether a recording has begun of which nothing is in a file yet. */
bool oct_view_waits_to_record(const struct oct_view_model *model);

/* Whether octd records, as it said itself; what was only asked for is shown as asked for. */
void oct_view_recording(const struct oct_view_model *model, struct oct_view_phrase *phrase);

/* What stands in the middle of a window without a picture: two lines; 0 when there is one. */
unsigned oct_view_notice(const struct oct_view_model *model, struct oct_view_phrase lines[2]);

/* What is wrong, and what to do about it; both lines have the alarm's tone. */
struct oct_view_alarm {
    struct oct_view_phrase what, remedy;
};

/* The worst first; returns how many. */
unsigned oct_view_alarms(const struct oct_view_model *model,
                         struct oct_view_alarm alarms[OCT_VIEW_MAX_ALARMS]);

/* The quality in numbers: "SNR 31.2 dB  sharpness 5.1  blinks 1  motions 3". */
void oct_view_quality_text(const struct oct_view_model *model, struct oct_view_phrase *phrase);

/* The title of the en face picture ("en face, slab", and since when none came), or the words that
 * stand in its place. */
void oct_view_enface_text(const struct oct_view_model *model, struct oct_view_phrase *phrase);

/* "cones 4.2 um 65,000/mm2 (0.14)", and how many volumes ago where others were scanned since; "no
 * ring" where octd found none; empty where octd says nothing of cones, its row is of another
 * acquisition than the picture, or the scale is not known. */
void oct_view_cones_text(const struct oct_view_model *model, struct oct_view_phrase *phrase);

/* "cells 12, median 340 um/s" of the cells that are drawn; empty: there are none of now, they are
 * not drawn, or they are of another acquisition than the picture. */
void oct_view_cells_text(const struct oct_view_model *model, struct oct_view_phrase *phrase);

/* "ILM to RPE 285 um" of the layers that are drawn, and their share of the A-lines where some lack
 * them. */
void oct_view_layers_text(const struct oct_view_model *model, struct oct_view_phrase *phrase);

/* "1:02:03" or "02:03". */
void oct_view_duration_text(double seconds, char *text, size_t n_bytes);

/* What octd measures of a mirror: "412.3 px: FWHM 6.12 px, 15.31 um, SNR 52.1 dB" (um in air), or
 * why there is none; and, from three points on, "-5.10 dB/mm, -6 dB at 1.18 mm, 12 points".
 * Returns how many lines; 0: nothing is measured now. */
unsigned oct_view_rolloff_text(const struct oct_view_model *model, struct oct_view_phrase lines[2]);

#endif
