/* The window without a display: receives pictures, draws once, writes a PNG. */
#ifndef OCT_VIEWER_HEADLESS_H
#define OCT_VIEWER_HEADLESS_H

#include "viewer/options.h"

/* OCT_E_AGAIN: the pictures did not come in time, nothing was written. Touches no display. */
enum oct_err oct_view_headless(const struct oct_view_options *options, struct oct_error *err);

#endif
