#include "viewer/draw/areas.h"

void oct_draw_header(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct oct_view_rect bar = draw->layout.header;
    struct oct_view_phrase recording = {.text = ""}, label = {.text = ""};
    int margin = draw->layout.margin, lamp = draw->layout.large_px * 3 / 4;
    int y = bar.y + (bar.h - oct_draw_line_height(draw, OCT_TEXT_LARGE)) / 2;
    bool on = model->daemon.reachable && model->daemon.record.active;

    oct_view_recording(model, &recording);
    oct_view_label(model, &label);
    oct_draw_fill(draw, bar, on ? RGB_RECORD : RGB_BAR, 255);
    uint32_t rgb = on ? 0xffffffu : oct_draw_tone(recording.tone);
    oct_draw_fill(draw,
                  (struct oct_view_rect){bar.x + margin, bar.y + (bar.h - lamp) / 2, lamp, lamp},
                  rgb, 255);
    int left = bar.x + 2 * margin + lamp, room = bar.x + bar.w - left - 2 * margin;
    int w_label = oct_draw_text_width(draw, OCT_TEXT_LARGE, label.text), gap = 2 * margin;
    /* Whether it records is told first: the label has what is left of the line. Only words that
     * would leave it nothing, such as a long reason, leave it a sixth. What is typed shows its end.
     */
    int least = w_label < room / 6 ? w_label : room / 6;
    int w = oct_draw_text_fit(draw, OCT_TEXT_LARGE, recording.text, sizeof(recording.text),
                              room - least - gap, OCT_DRAW_CUT_END);
    oct_draw_text(draw, OCT_TEXT_LARGE, left, y, recording.text, rgb);
    w = oct_draw_text_fit(draw, OCT_TEXT_LARGE, label.text, sizeof(label.text), room - w - gap,
                          model->typing ? OCT_DRAW_CUT_BEGINNING : OCT_DRAW_CUT_END);
    oct_draw_text(draw, OCT_TEXT_LARGE, left + room - w, y, label.text,
                  on ? 0xffffffu : oct_draw_tone(label.tone));
}
