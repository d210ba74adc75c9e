/* The recipes that an engine with interpolation = nufft must get right, beside those of
 * engine_suite.c: the oracle's exact sum answers them. */
#ifndef OCT_TEST_RIG_ENGINE_NUFFT_H
#define OCT_TEST_RIG_ENGINE_NUFFT_H

#include "test/rig/engine_scene.h"

extern const size_t oct_n_engine_recipes_nufft;
struct oct_scene_recipe oct_engine_recipe_nufft(size_t i);

#endif
