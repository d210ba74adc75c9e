/* Plays short sounds through SDL's audio. A thread of its own opens the device and waits for it,
 * because a sound server that hangs can take for ever; it is started by the first sound, and the
 * device is open only while something sounds. A machine without audio is no error: the first sound
 * that cannot be played says why. One thread owns the struct and calls the functions below, after
 * SDL's video is up. */
#ifndef OCT_VIEWER_SOUND_H
#define OCT_VIEWER_SOUND_H

#include "pipeline/base/err.h"

#include <stdbool.h>

struct oct_view_sound;

/* `notify` is called by the thread when there is something to take. */
enum oct_err oct_view_sound_create(struct oct_view_sound **sound, void (*notify)(void *context),
                                   void *context, struct oct_error *err);

/* Plays a set of enum oct_view_sound_of, one after the other; returns at once. A sound that waits
 * already is played once. */
void oct_view_sound_play(struct oct_view_sound *sound, unsigned set);

/* Returns why the last sounds were not played, once; false: they were, or no sound was yet. */
bool oct_view_sound_take_fault(struct oct_view_sound *sound, struct oct_error *why);

/* Ends what sounds, and the thread. False: it hangs in the device and was left to itself within
 * wait_ms; SDL must not be ended any more. NULL is fine. */
bool oct_view_sound_destroy(struct oct_view_sound *sound, int wait_ms);

#endif
