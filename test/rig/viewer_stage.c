#include "test/rig/viewer_stage.h"

#include "pipeline/base/clock.h"
#include "test/rig/tap.h"
#include "test/rig/viewer_scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct oct_viewer_stage *oct_viewer_stage_open_at(const int size[2], const char *font)
{
    struct oct_viewer_stage *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    s->surface = SDL_CreateRGBSurfaceWithFormat(0, size[0], size[1], 32, SDL_PIXELFORMAT_ARGB8888);
    s->renderer = SDL_CreateSoftwareRenderer(s->surface);
    assert_true(s->surface && s->renderer);
    assert_int_equal(oct_draw_create(&s->draw, s->renderer, font, NULL), OCT_OK);
    oct_view_model_init(&s->model, "tcp://127.0.0.1:5702", true);
    oct_view_model_tick(&s->model, 5 * OCT_NS_PER_S);
    oct_view_input_init(&s->input);
    return s;
}

struct oct_viewer_stage *oct_viewer_stage_open(void)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open_at((const int[]){1280, 720}, NULL);
    struct oct_view_picture picture = oct_scene_layered(30, 4);
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

void oct_viewer_stage_show(struct oct_viewer_stage *s, struct oct_view_picture picture)
{
    struct oct_view_tally tally = {0};
    oct_view_tally_add(&tally, &picture.header, 5 * OCT_NS_PER_S);
    oct_view_model_offer(&s->model, &picture);
    oct_view_model_report(&s->model, &tally, true);
    oct_view_picture_finish(&picture);
}

const struct oct_view_layout *oct_viewer_stage_draw(struct oct_viewer_stage *s)
{
    assert_int_equal(oct_draw_frame(s->draw, &s->model, NULL), OCT_OK);
    SDL_RenderFlush(s->renderer);
    return oct_draw_layout(s->draw);
}

uint32_t oct_viewer_stage_pixel(const struct oct_viewer_stage *s, int x, int y)
{
    uint32_t pixel;
    assert_true(x >= 0 && x < s->surface->w && y >= 0 && y < s->surface->h);
    memcpy(&pixel, (const uint8_t *)s->surface->pixels + y * s->surface->pitch + 4 * x, 4);
    return pixel & 0xffffffu;
}

unsigned oct_viewer_stage_count(const struct oct_viewer_stage *s, struct oct_view_rect r,
                                uint32_t rgb)
{
    unsigned n = 0;
    for (int y = r.y; y < r.y + r.h; y++)
        for (int x = r.x; x < r.x + r.w; x++)
            n += oct_viewer_stage_pixel(s, x, y) == rgb;
    return n;
}
