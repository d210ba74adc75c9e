/* The window: SDL's events in, frames out, at most 60 a second and none when nothing changes. */
#ifndef OCT_VIEWER_WINDOW_H
#define OCT_VIEWER_WINDOW_H

#include "viewer/options.h"

/* Runs until the user quits, the window is closed, or SIGINT or SIGTERM came: OCT_OK. OCT_E_IO:
 * no display, with the way out (--headless). Called by the main thread. */
enum oct_err oct_view_window(const struct oct_view_options *options, struct oct_error *err);

#endif
