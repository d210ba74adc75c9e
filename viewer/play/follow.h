/* Follow-up: another exam of the same eye, put onto the open one by what both show from above, and
 * how much thicker the retina is than it was then.
 *
 *     open -> { read ... -> register } -> bscan ... -> close
 *
 * Both en face pictures lie on one grid of micrometres, that of the open exam; the shift of the
 * other is that of analysis/align/rigid.h. The eye's turn about its own axis is not undone: at 3 mm
 * from the middle a turn of one degree is 50 um. One thread, that of the recordings. */
#ifndef OCT_VIEWER_PLAY_FOLLOW_H
#define OCT_VIEWER_PLAY_FOLLOW_H

#include "viewer/play/layers.h"
#include "viewer/play/recorded.h"

struct oct_play_follow;

/* now: the file of the open exam, which outlives this. OCT_E_CONFIG: sizes that are not known, or
 * pictures without layers; others as oct_play_recorded_open. *follow is NULL on error. */
enum oct_err oct_play_follow_open(struct oct_play_follow **follow, const char *path,
                                  const struct oct_config *config, const struct oct_view_file *now,
                                  struct oct_error *err);
void oct_play_follow_close(struct oct_play_follow *follow); /* NULL is fine */

/* Reads another of its B-scans; false: all were read. *share: how much. */
bool oct_play_follow_read(struct oct_play_follow *follow, double *share);

/* enface, map: of the open exam, whole. Fills score, shift_um and the maps of *result, which the
 * caller finishes. OCT_E_STATE: they show no common place. */
enum oct_err oct_play_follow_register(struct oct_play_follow *follow,
                                      const struct oct_view_enface *enface,
                                      const struct oct_view_enface map[OCT_N_MAPS],
                                      struct oct_view_follow *result, struct oct_error *err);

/* Its B-scan where B-scan v of the open exam is, once registered; false: it lies beyond. */
bool oct_play_follow_bscan(struct oct_play_follow *follow, uint32_t v, uint32_t *bscan,
                           struct oct_view_picture *picture);

#endif
