#include "test/rig/viewer_stage.h"

#include "pipeline/base/clock.h"
#include "test/rig/tap.h"
#include "test/rig/viewer_scene.h"

#include <stdio.h>
#include <stdlib.h>

struct oct_viewer_stage *oct_viewer_stage_open(void)
{
    struct oct_viewer_stage *s = calloc(1, sizeof(*s));
    struct oct_view_picture picture = oct_scene_layered(30, 4);
    assert_non_null(s);
    s->surface = SDL_CreateRGBSurfaceWithFormat(0, 1280, 720, 32, SDL_PIXELFORMAT_ARGB8888);
    s->renderer = SDL_CreateSoftwareRenderer(s->surface);
    assert_true(s->surface && s->renderer);
    assert_int_equal(oct_draw_create(&s->draw, s->renderer, NULL, NULL), OCT_OK);
    oct_view_model_init(&s->model, "x", true);
    oct_view_model_tick(&s->model, 11 * OCT_NS_PER_S);
    oct_view_model_offer(&s->model, &picture);
    snprintf(s->model.shown.header.acquisition_id, sizeof(s->model.shown.header.acquisition_id),
             "a");
    oct_view_picture_finish(&picture);
    return s;
}

void oct_viewer_stage_close(struct oct_viewer_stage *s)
{
    oct_draw_destroy(s->draw);
    SDL_DestroyRenderer(s->renderer);
    SDL_FreeSurface(s->surface);
    oct_view_model_finish(&s->model);
    free(s);
}
