/* Less light: everything but the alarms is darkened, after it was drawn and saved. */
#include "viewer/draw/canvas.h"

/* Light grows with the 2.2nd power of a colour's number: half the light is 0.73 of the number, a
 * quarter 0.53, and the share that is taken away is 1 less that, of 255. Words keep their contrast
 * this way: a colour and its ground are darkened by one factor. */
static unsigned taken_away(enum oct_view_light light)
{
    static const unsigned alpha[OCT_N_LIGHTS] = {
        [OCT_LIGHT_FULL] = 0, [OCT_LIGHT_HALF] = 69, [OCT_LIGHT_QUARTER] = 119};

    return alpha[light];
}

void oct_draw_dim(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_rect b = draw->layout.banner;
    const unsigned alpha = taken_away(model->settings.light);
    int w, h;

    if (alpha == 0 || SDL_GetRendererOutputSize(draw->renderer, &w, &h) < 0)
        return;
    if (b.h <= 0) {
        oct_draw_fill(draw, (struct oct_view_rect){0, 0, w, h}, 0, alpha);
        return;
    }
    oct_draw_fill(draw, (struct oct_view_rect){0, 0, w, b.y}, 0, alpha);
    oct_draw_fill(draw, (struct oct_view_rect){0, b.y, b.x, b.h}, 0, alpha);
    oct_draw_fill(draw, (struct oct_view_rect){b.x + b.w, b.y, w - b.x - b.w, b.h}, 0, alpha);
    oct_draw_fill(draw, (struct oct_view_rect){0, b.y + b.h, w, h - b.y - b.h}, 0, alpha);
}
