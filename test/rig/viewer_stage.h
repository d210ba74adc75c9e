/* A window drawn in software, its model and its input. A failure ends the test. */
#ifndef OCT_TEST_RIG_VIEWER_STAGE_H
#define OCT_TEST_RIG_VIEWER_STAGE_H

#include "viewer/draw/draw.h"
#include "viewer/input.h"
#include "viewer/model/model.h"

#include <SDL.h>

struct oct_viewer_stage {
    SDL_Surface *surface;
    SDL_Renderer *renderer;
    struct oct_draw *draw;
    struct oct_view_model model;
    struct oct_view_input input;
};

/* Without a picture, 5 s after the clock began. font: NULL, or as of oct_draw_create. */
struct oct_viewer_stage *oct_viewer_stage_open_at(const int size[2], const char *font);

/* Of 1280 x 720, with a B-scan of oct_scene_layered, of the acquisition "a", 11 s after it. */
struct oct_viewer_stage *oct_viewer_stage_open(void);
void oct_viewer_stage_close(struct oct_viewer_stage *s);

/* The picture came, the only one, from a publisher that answers; it is finished. */
void oct_viewer_stage_show(struct oct_viewer_stage *s, struct oct_view_picture picture);

const struct oct_view_layout *oct_viewer_stage_draw(struct oct_viewer_stage *s);

/* 0xrrggbb; and how many pixels of a rectangle have that colour. */
uint32_t oct_viewer_stage_pixel(const struct oct_viewer_stage *s, int x, int y);
unsigned oct_viewer_stage_count(const struct oct_viewer_stage *s, struct oct_view_rect r,
                                uint32_t rgb);

#endif
