/* Pictures made for the viewer's tests. */
#ifndef OCT_TEST_RIG_VIEWER_SCENE_H
#define OCT_TEST_RIG_VIEWER_SCENE_H

#include "viewer/model/picture.h"

/* u8, 120 A-lines of 100 pixels, 10 .. 70 dB, B-scan 7. */
struct oct_picture_header oct_scene_header(uint64_t frame_num, const char *acquisition);

/* Dark, with one bright layer `thick` pixels thick from depth `layer` on, and a bright first
 * A-line. The caller finishes it. */
struct oct_view_picture oct_scene_layered(unsigned layer, unsigned thick);

/* octd's en face picture, [n_bscans][n_lines] of 10 .. 70 dB, in which nothing came yet (NaN). The
 * caller finishes it. */
struct oct_view_image oct_scene_enface(uint32_t n_bscans, uint32_t n_lines);

/* Every A-line of a B-scan has this value; it is the newest. */
void oct_scene_enface_fill(struct oct_view_image *image, uint32_t bscan, float value);

/* octd's row of the quality, all labels of it 0. The caller finishes it. */
struct oct_view_image oct_scene_quality(void);
void oct_scene_quality_put(struct oct_view_image *row, const char *label, double value);

#endif
