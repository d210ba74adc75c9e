/* Pictures of a recording that has spectra alone, one at a time, with the configuration and the
 * calibration that it carries, by the CPU engine. With pipeline.dc = running each is made with the
 * mean of its own A-lines. One thread. */
#ifndef OCT_VIEWER_PLAY_REBUILD_H
#define OCT_VIEWER_PLAY_REBUILD_H

#include "config/config.h"
#include "viewer/model/picture.h"
#include "viewer/model/playback.h"

struct oct_play_rebuild;

/* config: what is used where the recording carries no configuration, copied; NULL: the defaults.
 * Fills depth, log and the spacings of file; of a file of another program all else that it says.
 * OCT_E_FORMAT: it cannot be reconstructed, and why. */
enum oct_err oct_play_rebuild_open(struct oct_play_rebuild **rebuild, const char *path,
                                   const struct oct_config *config, struct oct_view_file *file,
                                   struct oct_error *err);
void oct_play_rebuild_close(struct oct_play_rebuild *rebuild); /* NULL is fine */

/* Makes picture v, f32 [n_lines][depth], and sets lo, hi and missing_lines. */
enum oct_err oct_play_rebuild_read(struct oct_play_rebuild *rebuild, uint32_t v, float *pixels,
                                   struct oct_picture_header *header, struct oct_error *err);

#endif
