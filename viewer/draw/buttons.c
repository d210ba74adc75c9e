#include "viewer/model/buttons.h"
#include "viewer/draw/areas.h"

#include <string.h>

/* Picks the words and their size: the whole label in large letters, in normal ones, else the brief
 * label. */
static enum oct_text_size fit_words(struct oct_draw *draw, int w, struct oct_view_button *b)
{
    if (oct_draw_text_width(draw, OCT_TEXT_LARGE, b->label) <= w)
        return OCT_TEXT_LARGE;
    if (b->look != OCT_BUTTON_FIELD && oct_draw_text_width(draw, OCT_TEXT_NORMAL, b->label) > w)
        memcpy(b->label, b->brief, sizeof(b->brief));
    return OCT_TEXT_NORMAL;
}

static void draw_button(struct oct_draw *draw, struct oct_view_rect r, struct oct_view_button *b,
                        bool typing, bool selected)
{
    static const uint32_t ground[] = {RGB_BUTTON, RGB_GOOD, RGB_RECORD, RGB_AREA};
    static const uint32_t ink[] = {RGB_PLAIN, RGB_GROUND, 0xffffffu, RGB_PLAIN};
    const bool is_field = b->look == OCT_BUTTON_FIELD;
    const int edge = draw->layout.margin / 2 + 1;
    enum oct_text_size size = fit_words(draw, r.w - 2 * edge, b);
    int w = oct_draw_text_fit(draw, size, b->label, sizeof(b->label), r.w - 2 * edge,
                              is_field && typing ? OCT_DRAW_CUT_BEGINNING : OCT_DRAW_CUT_END);

    oct_draw_fill(draw, r, ground[b->look], 255);
    if (is_field)
        oct_draw_frame_of(draw, r, typing ? RGB_GOOD : RGB_DIM);
    int x = is_field ? r.x + edge : r.x + (r.w - w) / 2, h = oct_draw_line_height(draw, size);
    int y = r.y + (r.h - h) / 2;
    const bool marked = is_field && selected;
    if (marked)
        oct_draw_fill(draw, (struct oct_view_rect){x, y, w, h}, RGB_GOOD, 255);
    oct_draw_text(draw, size, x, y, b->label, marked ? RGB_GROUND : ink[b->look]);
}

void oct_draw_buttons(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct oct_view_button buttons[OCT_VIEW_MOST_BUTTONS];
    unsigned n = oct_view_buttons(model, buttons);

    oct_draw_fill(draw, draw->layout.buttons, RGB_GROUND, 255);
    for (unsigned i = 0; i < n; i++)
        draw_button(draw, draw->layout.button[i], &buttons[i], model->typing,
                    model->patient.selected);
}
