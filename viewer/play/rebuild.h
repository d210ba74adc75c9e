/* Pictures of a recording that has spectra alone, one at a time, with the configuration and the
 * calibration that it carries. One thread. */
#ifndef OCT_VIEWER_PLAY_REBUILD_H
#define OCT_VIEWER_PLAY_REBUILD_H

#include "viewer/model/picture.h"
#include "viewer/model/playback.h"

struct oct_play_rebuild;

/* Fills depth, log and axial_um of file. OCT_E_FORMAT: it cannot be reconstructed by itself, and
 * why. */
enum oct_err oct_play_rebuild_open(struct oct_play_rebuild **rebuild, const char *path,
                                   struct oct_view_file *file, struct oct_error *err);
void oct_play_rebuild_close(struct oct_play_rebuild *rebuild); /* NULL is fine */

/* Makes picture v, f32 [n_lines][depth], and sets lo, hi and missing_lines. */
enum oct_err oct_play_rebuild_read(struct oct_play_rebuild *rebuild, uint32_t v, float *pixels,
                                   struct oct_picture_header *header, struct oct_error *err);

#endif
