/* Everything a drawing of the window needs, with or without a display: model, archive,
 * subscription, control. */
#ifndef OCT_VIEWER_APP_H
#define OCT_VIEWER_APP_H

#include "viewer/errands.h"
#include "viewer/model/model.h"
#include "viewer/net/control.h"
#include "viewer/net/subscriber.h"
#include "viewer/options.h"
#include "viewer/play/play.h"

struct oct_view_app {
    struct oct_view_model model;
    struct oct_view_archive *archive;
    struct oct_subscriber *subscriber;
    struct oct_view_control *control;        /* NULL: no endpoint for it */
    struct oct_play *play;                   /* of recordings */
    struct oct_view_errands errands;         /* none where `notify` is NULL: nobody is there */
    struct oct_view_spectrum spare_spectrum; /* swapped with the subscriber and the model */
    struct oct_view_image spare_image[OCT_VIEW_MOST_OVERLAYS]; /* of each overlay */
    char settings_path[4096];                                  /* "": nothing is remembered */
    bool bad_told;
};

/* Reads the settings, connects, and opens the recording that the options name. The threads call
 * `notify` when something came. */
enum oct_err oct_view_app_open(struct oct_view_app *app, const struct oct_view_options *options,
                               void (*notify)(void *context), void *context, struct oct_error *err);

/* Takes what came from the subscription, the control socket and a recording, and sends wishes.
 * True: there is something new to draw. */
bool oct_view_app_turn(struct oct_view_app *app);

/* Saves the settings; a failure is logged. */
void oct_view_app_remember(struct oct_view_app *app);

/* Ends the threads and frees everything. A zeroed app is fine. */
void oct_view_app_close(struct oct_view_app *app);

/* The window: SDL's events in, frames out, at most 60 a second and none when nothing changes. Runs
 * until the user quits, the window is closed, or SIGINT or SIGTERM came: OCT_OK. OCT_E_IO: no
 * display, with the way out (--headless). Called by the main thread. */
enum oct_err oct_view_window(const struct oct_view_options *options, struct oct_error *err);

/* The window without a display: receives pictures, draws once, writes a PNG. OCT_E_AGAIN: the
 * pictures did not come in time, nothing was written. Touches no display. */
enum oct_err oct_view_headless(const struct oct_view_options *options, struct oct_error *err);

#endif
