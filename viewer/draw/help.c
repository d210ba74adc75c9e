/* The help, over the middle of the window. */
#include "viewer/draw/areas.h"
#include "viewer/model/words.h"

void oct_draw_help(struct oct_draw *draw, const struct oct_view_model *model)
{
    const int margin = draw->layout.margin, line = oct_draw_line_height(draw, OCT_TEXT_NORMAL);
    const int all_w = draw->layout.status.w, all_h = draw->layout.status.y + draw->layout.status.h;
    const int room_w = all_w > 2 * margin ? all_w - 2 * margin : 1;
    const int room_h = all_h > 2 * margin ? all_h - 2 * margin : 1;
    struct oct_view_help help;

    oct_view_help_arrange(&help, model,
                          (unsigned)(room_w * 100 / oct_draw_letters_width(draw, 100)),
                          (unsigned)(room_h / line));
    const int w = oct_draw_letters_width(draw, help.n_letters), h = (int)help.n_lines * line;
    const int left = (all_w - w) / 2, top = (all_h - h) / 2;
    oct_draw_fill(
        draw, (struct oct_view_rect){left - margin, top - margin, w + 2 * margin, h + 2 * margin},
        RGB_GROUND, 240);
    for (unsigned i = 0; i < help.n; i++) {
        const struct oct_view_help_text *t = &help.text[i];
        oct_draw_text(draw, OCT_TEXT_NORMAL, left + oct_draw_letters_width(draw, t->column),
                      top + (int)t->line * line, t->text, t->is_key ? RGB_GOOD : RGB_PLAIN);
    }
}
