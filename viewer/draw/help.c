#include "viewer/draw/areas.h"

void oct_draw_help(struct oct_draw *draw)
{
    int margin = draw->layout.margin, line = oct_draw_line_height(draw, OCT_TEXT_NORMAL);
    int key_width = 0, width = 0, n = 0;
    int all_w = draw->layout.status.w, all_h = draw->layout.status.y + draw->layout.status.h;
    char keys[128];

    for (size_t i = 0; i < oct_view_n_keys; i++) {
        if (!oct_view_key_help(i, keys, sizeof(keys)))
            continue;
        int key = oct_draw_text_width(draw, OCT_TEXT_NORMAL, keys);
        int meaning = oct_draw_text_width(draw, OCT_TEXT_NORMAL, oct_view_keys[i].meaning);
        key_width = key > key_width ? key : key_width;
        width = meaning > width ? meaning : width;
        n++;
    }
    width += key_width + 4 * margin;
    if (n > 0 && n * line + 2 * margin > all_h)
        line = (all_h - 2 * margin) / n;
    int height = n * line + 2 * margin;
    struct oct_view_rect box = {(all_w - width) / 2, (all_h - height) / 2, width, height};
    box.x = box.x < 0 ? 0 : box.x;
    box.y = box.y < 0 ? 0 : box.y;
    oct_draw_fill(draw, box, RGB_GROUND, 240);
    int y = box.y + margin;
    for (size_t i = 0; i < oct_view_n_keys; i++) {
        if (!oct_view_key_help(i, keys, sizeof(keys)))
            continue;
        oct_draw_text(draw, OCT_TEXT_NORMAL, box.x + margin, y, keys, RGB_GOOD);
        oct_draw_text(draw, OCT_TEXT_NORMAL, box.x + 3 * margin + key_width, y,
                      oct_view_keys[i].meaning, RGB_PLAIN);
        y += line;
    }
}
