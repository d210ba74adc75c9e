/* The strip at the top: whether octd records, at the left. The patient's buttons at its right are
 * drawn with the others (buttons.c). */
#include "viewer/draw/canvas.h"

/* What a recording waits for stands where the recording will be told, and there is told what became
 * of the last seconds while none is under way. */
static void words_of(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    bool is_good;

    oct_view_patient_question(model, phrase->text, sizeof(phrase->text));
    phrase->tone = OCT_TONE_WARN;
    if (phrase->text[0])
        return;
    if (!model->daemon.record.active &&
        oct_view_save_last_text(model, phrase->text, sizeof(phrase->text), &is_good))
        phrase->tone = is_good                       ? OCT_TONE_GOOD
                       : model->daemon.last.error[0] ? OCT_TONE_BAD
                                                     : OCT_TONE_WARN;
    else
        oct_view_recording(model, phrase);
}

void oct_draw_header(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_rect bar = draw->layout.header, part = draw->layout.recording;
    struct oct_view_phrase recording = {.text = ""};
    int margin = draw->layout.margin, lamp = draw->layout.large_px * 3 / 4;
    bool on = model->daemon.reachable && model->daemon.record.active &&
              !oct_view_waits_to_record(model); /* red is for what is being recorded */

    words_of(model, &recording);
    oct_draw_fill(draw, bar, on ? RGB_RECORD : RGB_BAR, 255);
    uint32_t rgb = on ? 0xffffffu : oct_draw_tone(recording.tone);
    oct_draw_fill(draw,
                  (struct oct_view_rect){part.x + margin, part.y + (part.h - lamp) / 2, lamp, lamp},
                  rgb, 255);
    int left = part.x + 2 * margin + lamp, room = part.x + part.w - left - 2 * margin;
    /* Long words, such as a reason, are smaller before they are cut. */
    enum oct_text_size size = oct_draw_text_width(draw, OCT_TEXT_LARGE, recording.text) <= room
                                  ? OCT_TEXT_LARGE
                                  : OCT_TEXT_NORMAL;
    oct_draw_text_fit(draw, size, recording.text, sizeof(recording.text), room,
                      OCT_DRAW_CUT_MIDDLE);
    oct_draw_text(draw, size, left, part.y + (part.h - oct_draw_line_height(draw, size)) / 2,
                  recording.text, rgb);
}
