#include "viewer/model/buttons.h"
#include "viewer/draw/canvas.h"

#include <string.h>

static int edge_of(const struct oct_draw *draw)
{
    return draw->layout.margin / 2 + 1;
}

/* The size of the letters of some buttons: large where all labels fit so. */
static enum oct_text_size size_of(struct oct_draw *draw, const struct oct_view_rect *r,
                                  const struct oct_view_button *b, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (oct_draw_text_width(draw, OCT_TEXT_LARGE, b[i].label) > r[i].w - 2 * edge_of(draw))
            return OCT_TEXT_NORMAL;
    return OCT_TEXT_LARGE;
}

static int middle_of(struct oct_draw *draw, struct oct_view_rect r, enum oct_text_size size)
{
    return r.y + (r.h - oct_draw_line_height(draw, size)) / 2;
}

/* A field shows the end of what is typed; what the first letter will replace is marked. */
static void draw_field(struct oct_draw *draw, struct oct_view_rect r, struct oct_view_button *b,
                       const struct oct_view_model *model)
{
    const int edge = edge_of(draw), room = r.w - 2 * edge;
    const bool typing = model->typing, marked = typing && model->patient.selected;
    const bool is_empty = !typing && !oct_view_patient_pseudonym(model)[0];
    enum oct_text_size size = oct_draw_text_width(draw, OCT_TEXT_LARGE, b->label) <= room
                                  ? OCT_TEXT_LARGE
                                  : OCT_TEXT_NORMAL;
    int w = oct_draw_text_fit(draw, size, b->label, sizeof(b->label), room,
                              typing ? OCT_DRAW_CUT_BEGINNING : OCT_DRAW_CUT_END);
    int x = r.x + edge, y = middle_of(draw, r, size), h = oct_draw_line_height(draw, size);

    oct_draw_fill(draw, r, RGB_AREA, 255);
    oct_draw_frame_of(draw, r, typing ? RGB_GOOD : RGB_DIM);
    if (marked)
        oct_draw_fill(draw, (struct oct_view_rect){x, y, w, h}, RGB_GOOD, 255);
    oct_draw_text(draw, size, x, y, b->label, marked ? RGB_GROUND : is_empty ? RGB_DIM : RGB_PLAIN);
}

static void draw_button(struct oct_draw *draw, struct oct_view_rect r, struct oct_view_button *b,
                        enum oct_text_size size)
{
    static const uint32_t ground[] = {RGB_BUTTON, RGB_GOOD, RGB_RECORD};
    static const uint32_t ink[] = {RGB_PLAIN, RGB_GROUND, 0xffffffu};
    const int room = r.w - 2 * edge_of(draw);

    if (oct_draw_text_width(draw, size, b->label) > room)
        memcpy(b->label, b->brief, sizeof(b->brief));
    int w = oct_draw_text_fit(draw, size, b->label, sizeof(b->label), room, OCT_DRAW_CUT_END);
    oct_draw_fill(draw, r, ground[b->look], 255);
    oct_draw_text(draw, size, r.x + (r.w - w) / 2, middle_of(draw, r, size), b->label,
                  ink[b->look]);
}

void oct_draw_buttons(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct oct_view_button buttons[OCT_VIEW_MOST_BUTTONS];
    unsigned n = oct_view_buttons(model, buttons);
    unsigned n_below = 0;

    while (n_below < n && buttons[n_below].row == OCT_BUTTONS_BELOW)
        n_below++;
    enum oct_text_size size = size_of(draw, draw->layout.button, buttons, n_below);

    oct_draw_fill(draw, draw->layout.buttons, RGB_GROUND, 255);
    for (unsigned i = 0; i < n; i++) {
        const struct oct_view_rect r = draw->layout.button[i];
        if (buttons[i].look == OCT_BUTTON_FIELD)
            draw_field(draw, r, &buttons[i], model);
        else if (i < n_below)
            draw_button(draw, r, &buttons[i], size);
        else /* the eye is large, next patient as it fits */
            draw_button(draw, r, &buttons[i], size_of(draw, &r, &buttons[i], 1));
    }
}
