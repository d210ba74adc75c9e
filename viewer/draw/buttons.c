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

static int middle_of(struct oct_draw *draw, struct oct_view_rect r, enum oct_text_size size)
{
    return r.y + (r.h - oct_draw_line_height(draw, size)) / 2;
}

/* A field shows the end of what is typed; what the first letter will replace is marked. */
static void draw_field(struct oct_draw *draw, struct oct_view_rect r, struct oct_view_button *b,
                       const struct oct_view_model *model)
{
    const int edge = draw->layout.margin / 2 + 1;
    const bool typing = model->typing, marked = typing && model->patient.selected;
    const bool is_empty = !typing && !oct_view_patient_pseudonym(model)[0];
    enum oct_text_size size = fit_words(draw, r.w - 2 * edge, b);
    int w = oct_draw_text_fit(draw, size, b->label, sizeof(b->label), r.w - 2 * edge,
                              typing ? OCT_DRAW_CUT_BEGINNING : OCT_DRAW_CUT_END);
    int x = r.x + edge, y = middle_of(draw, r, size), h = oct_draw_line_height(draw, size);

    oct_draw_fill(draw, r, RGB_AREA, 255);
    oct_draw_frame_of(draw, r, typing ? RGB_GOOD : RGB_DIM);
    if (marked)
        oct_draw_fill(draw, (struct oct_view_rect){x, y, w, h}, RGB_GOOD, 255);
    oct_draw_text(draw, size, x, y, b->label, marked ? RGB_GROUND : is_empty ? RGB_DIM : RGB_PLAIN);
}

static void draw_button(struct oct_draw *draw, struct oct_view_rect r, struct oct_view_button *b)
{
    static const uint32_t ground[] = {RGB_BUTTON, RGB_GOOD, RGB_RECORD};
    static const uint32_t ink[] = {RGB_PLAIN, RGB_GROUND, 0xffffffu};
    const int edge = draw->layout.margin / 2 + 1;
    enum oct_text_size size = fit_words(draw, r.w - 2 * edge, b);
    int w =
        oct_draw_text_fit(draw, size, b->label, sizeof(b->label), r.w - 2 * edge, OCT_DRAW_CUT_END);

    oct_draw_fill(draw, r, ground[b->look], 255);
    oct_draw_text(draw, size, r.x + (r.w - w) / 2, middle_of(draw, r, size), b->label,
                  ink[b->look]);
}

void oct_draw_buttons(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct oct_view_button buttons[OCT_VIEW_MOST_BUTTONS];
    unsigned n = oct_view_buttons(model, buttons);

    oct_draw_fill(draw, draw->layout.buttons, RGB_GROUND, 255);
    for (unsigned i = 0; i < n; i++)
        if (buttons[i].look == OCT_BUTTON_FIELD)
            draw_field(draw, draw->layout.button[i], &buttons[i], model);
        else
            draw_button(draw, draw->layout.button[i], &buttons[i]);
}
