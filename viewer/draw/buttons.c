#include "viewer/model/buttons.h"
#include "viewer/draw/areas.h"

static void draw_button(struct oct_draw *draw, struct oct_view_rect r, struct oct_view_button *b)
{
    static const uint32_t ground[] = {RGB_BUTTON, RGB_GOOD, RGB_RECORD, RGB_AREA};
    static const uint32_t ink[] = {RGB_PLAIN, RGB_GROUND, 0xffffffu, RGB_PLAIN};
    enum oct_text_size size = oct_draw_text_width(draw, OCT_TEXT_LARGE, b->label) < r.w - 8
                                  ? OCT_TEXT_LARGE
                                  : OCT_TEXT_NORMAL;
    int w = oct_draw_text_fit(draw, size, b->label, sizeof(b->label), r.w - 4, OCT_DRAW_CUT_END);

    oct_draw_fill(draw, r, ground[b->look], 255);
    oct_draw_text(draw, size, r.x + (r.w - w) / 2,
                  r.y + (r.h - oct_draw_line_height(draw, size)) / 2, b->label, ink[b->look]);
}

void oct_draw_buttons(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct oct_view_button buttons[OCT_VIEW_MOST_BUTTONS];
    unsigned n = oct_view_buttons(model, buttons);

    oct_draw_fill(draw, draw->layout.buttons, RGB_GROUND, 255);
    for (unsigned i = 0; i < n; i++)
        draw_button(draw, draw->layout.button[i], &buttons[i]);
}
