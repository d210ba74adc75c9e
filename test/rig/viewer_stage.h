/* A window of 1280 x 720 drawn in software, with a model that shows a B-scan of oct_scene_layered,
 * of the acquisition "a", 11 s after the clock began. A failure ends the test. */
#ifndef OCT_TEST_RIG_VIEWER_STAGE_H
#define OCT_TEST_RIG_VIEWER_STAGE_H

#include "viewer/draw/draw.h"
#include "viewer/model/model.h"

#include <SDL.h>

struct oct_viewer_stage {
    SDL_Surface *surface;
    SDL_Renderer *renderer;
    struct oct_draw *draw;
    struct oct_view_model model;
};

struct oct_viewer_stage *oct_viewer_stage_open(void);
void oct_viewer_stage_close(struct oct_viewer_stage *s);

#endif
