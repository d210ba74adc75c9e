/* Which sounds are due, and what they are: short tones for an alarm that is new, and for the begin
 * and the end of a recording as octd says them. Pure; viewer/sound.h plays them. */
#ifndef OCT_VIEWER_MODEL_SOUNDS_H
#define OCT_VIEWER_MODEL_SOUNDS_H

#include "viewer/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
