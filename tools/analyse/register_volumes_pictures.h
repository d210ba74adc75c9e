/* Pictures of the pair in hand, for outputs.h; their context is a struct oct_volumes_report. One
 * thread at a time. */
#ifndef OCT_TOOLS_REGISTER_VOLUMES_PICTURES_H
#define OCT_TOOLS_REGISTER_VOLUMES_PICTURES_H

#include "tools/analyse/register_volumes_files.h"

/* Fields of FIXED and MOVING in turn, as they came and as registered. */
enum oct_err oct_volumes_draw_checkerboard(void *report, const char *path, bool force,
                                           struct oct_error *err);

/* log J from above, in a B-scan, and its histogram. */
enum oct_err oct_volumes_draw_jacobian(void *report, const char *path, bool force,
                                       struct oct_error *err);

/* Arrows from FIXED to MOVING on an en face, over the displacement along the depth. */
enum oct_err oct_volumes_draw_displacement(void *report, const char *path, bool force,
                                           struct oct_error *err);

#endif
