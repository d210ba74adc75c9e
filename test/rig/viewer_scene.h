/* Pictures made for the viewer's tests. */
#ifndef OCT_TEST_RIG_VIEWER_SCENE_H
#define OCT_TEST_RIG_VIEWER_SCENE_H

#include "viewer/model/picture.h"

/* u8, 120 A-lines of 100 pixels, 10 .. 70 dB, B-scan 7. */
struct oct_picture_header oct_scene_header(uint64_t frame_num, const char *acquisition);

/* Dark, with one bright layer `thick` pixels thick from depth `layer` on, and a bright first
 * A-line. The caller finishes it. */
struct oct_view_picture oct_scene_layered(unsigned layer, unsigned thick);

#endif
