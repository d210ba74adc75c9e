/* The site's scans, a row each as high as a button; the one that runs is lit. */
#include "viewer/draw/canvas.h"

enum { LETTERS = 24 };

int oct_draw_scans_width(struct oct_draw *draw, const struct oct_view_model *model)
{
    int widest = oct_draw_letters_width(draw, LETTERS);
    for (unsigned i = 0; i < model->scan.rows.n; i++) {
        const int w = oct_draw_text_width(draw, OCT_TEXT_NORMAL, oct_view_scans_row(model, i));
        widest = w > widest ? w : widest;
    }
    return widest + 2 * draw->layout.margin;
}

void oct_draw_scans(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_list *rows = &model->scan.rows;
    const int margin = draw->layout.margin;
    struct oct_view_rect r = draw->layout.list;
    if (r.w == 0 || !oct_view_scans_are_shown(model))
        return;
    oct_draw_fill(draw, r, RGB_GROUND, 240);
    oct_draw_frame_of(draw, r, RGB_DIM);
    r.h = draw->layout.row_height;
    for (unsigned k = 0; k <= draw->layout.n_rows; k++, r.y += r.h) {
        const unsigned i = rows->first + k - 1; /* row 0 is the title */
        const bool runs = k > 0 && oct_view_scans_row_runs(model, i);
        const bool is_chosen = k > 0 && rows->chosen == i + 1;
        if (k > 0 && i >= rows->n)
            return;
        oct_draw_fill(draw, (struct oct_view_rect){r.x, r.y, r.w, r.h - 1},
                      k == 0 ? RGB_BAR
                      : runs ? RGB_GOOD
                             : RGB_BUTTON,
                      255);
        if (is_chosen)
            oct_draw_frame_of(draw, (struct oct_view_rect){r.x, r.y, r.w, r.h - 1}, RGB_PLAIN);
        oct_draw_words_in(draw, (struct oct_view_rect){r.x + margin, r.y, r.w - 2 * margin, r.h},
                          k == 0 ? "which scan?" : oct_view_scans_row(model, i),
                          runs ? RGB_GROUND : RGB_PLAIN);
    }
}
