/* The dimmer: how much of the light is left, and that alarms keep theirs. */
#include "test/rig/tap.h"
#include "test/rig/viewer_stage.h"
#include "viewer/model/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Light of a pixel of sRGB, 0..1 (IEC 61966-2-1). */
static double light_of(uint32_t argb)
{
    static const double weight[] = {0.0722, 0.7152, 0.2126};
    double light = 0;

    for (int i = 0; i < 3; i++) {
        double c = (argb >> 8 * i & 255) / 255.0;
        light += weight[i] * (c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4));
    }
    return light;
}

static double mean_light(const struct oct_viewer_stage *s, struct oct_view_rect r)
{
    double light = 0;

    for (int y = r.y; y < r.y + r.h; y++)
        for (int x = r.x; x < r.x + r.w; x++)
            light +=
                light_of(((uint32_t *)((uint8_t *)s->surface->pixels + y * s->surface->pitch))[x]);
    return light / ((double)r.w * r.h);
}

static void draw(struct oct_viewer_stage *s)
{
    assert_int_equal(oct_draw_frame(s->draw, &s->model, NULL), OCT_OK);
    oct_draw_dim(s->draw, &s->model);
    SDL_RenderFlush(s->renderer);
}

static void a_half_and_a_quarter_of_the_light_are_left(void **state)
{
    static const double left[] = {0.5, 0.25, 1};
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    const struct oct_view_rect layer = {400, 300, 100, 40}, window = {0, 0, 1280, 720};

    draw(s);
    struct oct_view_rect r = oct_draw_layout(s->draw)->bscan;
    struct oct_view_rect bright = {r.x + r.w / 2, r.y + r.h * 31 / 100, 20, r.h / 50};
    double full = mean_light(s, bright), all = mean_light(s, window);
    assert_true(full > 0.9);
    assert_true(mean_light(s, layer) < full);
    for (int i = 0; i < 3; i++) {
        oct_view_model_apply(&s->model, OCT_ACTION_DIM, 1);
        s->model.message[0] = '\0';
        draw(s);
        assert_true(fabs(mean_light(s, bright) / full - left[i]) < 0.02);
        assert_true(fabs(mean_light(s, window) / all - left[i]) < 0.03);
    }
    oct_viewer_stage_close(s);
}

static void alarms_keep_their_light(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();

    oct_view_model_tick(&s->model, 60 * OCT_NS_PER_S);
    s->model.connected = s->model.daemon.known = s->model.daemon.reachable = true;
    s->model.has_control = true;
    snprintf(s->model.daemon.state, sizeof(s->model.daemon.state), "error");
    draw(s);
    struct oct_view_rect banner = oct_draw_layout(s->draw)->banner;
    struct oct_view_rect bscan = oct_draw_layout(s->draw)->bscan;
    assert_true(banner.w > 1000 && banner.h > 20);
    double alarm = mean_light(s, banner), picture = mean_light(s, bscan);
    oct_view_model_apply(&s->model, OCT_ACTION_DIM, 2);
    oct_view_model_apply(&s->model, OCT_ACTION_DIM, 1);
    s->model.message[0] = '\0';
    assert_int_equal(s->model.settings.light, OCT_LIGHT_QUARTER);
    draw(s);
    assert_true(mean_light(s, banner) == alarm);
    assert_true(mean_light(s, bscan) < 0.27 * picture);
    /* Around it all is dark: the rows above and below, and its ends. */
    assert_true(mean_light(s, (struct oct_view_rect){0, banner.y, banner.x, banner.h}) < 0.01);
    oct_viewer_stage_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_half_and_a_quarter_of_the_light_are_left),
        cmocka_unit_test(alarms_keep_their_light),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
