/* What an engine of analysis/align/matcher.h must stand: whole pictures and windows against scenes
 * whose shifts are known, and every score against direct sums in double precision. For the CPU's,
 * and CUDA's on its stand-in and on a device. */
#ifndef OCT_TEST_RIG_MATCH_SUITE_H
#define OCT_TEST_RIG_MATCH_SUITE_H

#include "analysis/align/matcher.h"

#define OCT_MATCH_SCENE_PICTURES 3u

/* A reference and pictures of it, moved by whole pixels, with noise of their own. */
struct oct_match_scene {
    struct oct_picture g, f[OCT_MATCH_SCENE_PICTURES];
    int32_t dy[OCT_MATCH_SCENE_PICTURES], dx[OCT_MATCH_SCENE_PICTURES];
};

void oct_match_scene_make(struct oct_match_scene *scene, uint32_t height, uint32_t width,
                          bool masked);
void oct_match_scene_finish(struct oct_match_scene *scene);

/* Returns the number of failures. */
int oct_match_suite_run(const struct oct_matcher_ops *ops, unsigned deadline_ms);

#endif
