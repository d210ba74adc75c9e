/* The viewer's state: what is shown, how, and what is known about the stream. Neither SDL nor zmq;
 * one thread owns a model. Nothing here reads a clock: oct_view_model_tick brings the time. */
#ifndef OCT_VIEWER_MODEL_H
#define OCT_VIEWER_MODEL_H

#include "viewer/action.h"
#include "viewer/contrast.h"
#include "viewer/picture.h"
#include "viewer/tally.h"

#include <stdbool.h>
#include <stdint.h>

#define OCT_VIEW_ENDPOINT_BYTES 1024
#define OCT_VIEW_MESSAGE_BYTES 256

enum oct_view_state {
    OCT_VIEW_WAITING, /* no picture came yet */
    OCT_VIEW_LIVE,
    OCT_VIEW_STALLED, /* pictures came, but none for a while */
};

/* Members are read freely; they are written by the functions below. */
struct oct_view_model {
    char endpoint[OCT_VIEW_ENDPOINT_BYTES];
    struct oct_view_picture shown; /* meaningful when has_picture; owned */
    bool has_picture;
    uint64_t serial;                /* changes whenever another picture is shown */
    struct oct_view_picture newest; /* came while paused, when newest_waits; owned */
    bool newest_waits;
    struct oct_view_contrast contrast;
    struct oct_view_tally tally;
    bool connected; /* a publisher answers at the endpoint */
    bool paused, help, stretch;
    uint64_t now_ns;
    char message[OCT_VIEW_MESSAGE_BYTES]; /* "" when there is none (any more) */
    uint64_t message_until_ns;
};

/* `log`: pixels are dB (pipeline.log), else counts^2; the wire does not say. */
void oct_view_model_init(struct oct_view_model *model, const char *endpoint, bool log);

/* Frees the pictures. */
void oct_view_model_finish(struct oct_view_model *model);

/* Brings a picture newer than all before; the structs are swapped, so that *picture holds a buffer
 * to reuse afterwards. While paused it waits and the shown one stays. */
void oct_view_model_offer(struct oct_view_model *model, struct oct_view_picture *picture);

/* Brings the subscriber's counts. */
void oct_view_model_report(struct oct_view_model *model, const struct oct_view_tally *tally,
                           bool connected);

/* Time goes on: a message that was up long enough goes. */
void oct_view_model_tick(struct oct_view_model *model, uint64_t now_ns);

/* Does what the action means for the model, `times` over where it is a step (contrast). Snapshot,
 * full screen and quit are the window's and do nothing here. */
void oct_view_model_apply(struct oct_view_model *model, enum oct_view_action action,
                          unsigned times);

/* A mouse drag across the picture, in parts of its width and height (down and right positive): the
 * whole width moves the level, the whole height the window by the published range. */
void oct_view_model_drag(struct oct_view_model *model, double across, double down);

/* A short line for the user, shown for a few seconds. */
void oct_view_model_say(struct oct_view_model *model, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

enum oct_view_state oct_view_model_state(const struct oct_view_model *model);

/* Seconds since the newest picture came; 0 when none came yet. */
double oct_view_model_silence_s(const struct oct_view_model *model);

#endif
