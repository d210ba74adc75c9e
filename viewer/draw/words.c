/* Header, banner, buttons, status line, message, help. */
#include "viewer/draw/areas.h"

/* ---- the status line ---- */

struct status_line {
    struct oct_view_phrase phrases[OCT_VIEW_MAX_PHRASES];
    int x[OCT_VIEW_MAX_PHRASES];
    unsigned line[OCT_VIEW_MAX_PHRASES];
    unsigned n, n_lines;
};

static void arrange(struct oct_draw *draw, const struct oct_view_model *model, int width,
                    int text_px, struct status_line *status)
{
    int widths[OCT_VIEW_MAX_PHRASES] = {0};

    status->n = oct_view_status(model, status->phrases);
    for (unsigned i = 0; i < status->n; i++)
        widths[i] = oct_draw_text_width(draw, OCT_TEXT_NORMAL, status->phrases[i].text);
    /* The state's lamp stands before the first phrase. */
    widths[0] += text_px;
    status->n_lines = oct_view_layout_flow(widths, status->n, width - text_px, text_px * 6 / 5,
                                           status->x, status->line);
}

int oct_draw_status_height(struct oct_draw *draw, const struct oct_view_model *model, int width,
                           int text_px)
{
    struct status_line status;

    arrange(draw, model, width, text_px, &status);
    /* The line keeps the height of two lines even when one is enough, so that the panels above do
     * not jump. */
    unsigned n = status.n_lines < 2 ? 2 : status.n_lines;
    return (int)n * oct_draw_line_height(draw, OCT_TEXT_NORMAL) + text_px / 2;
}

void oct_draw_status(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct oct_view_rect bar = draw->layout.status;
    int text_px = draw->layout.text_px, margin = text_px / 2, lamp = text_px * 2 / 3;
    int line = oct_draw_line_height(draw, OCT_TEXT_NORMAL), top = bar.y + margin / 2;
    struct status_line status;

    arrange(draw, model, bar.w, text_px, &status);
    oct_draw_fill(draw, bar, RGB_BAR, 255);
    oct_draw_fill(draw, (struct oct_view_rect){bar.x + margin, top + (line - lamp) / 2, lamp, lamp},
                  oct_draw_tone(status.phrases[0].tone), 255);
    for (unsigned i = 0; i < status.n; i++)
        oct_draw_text(draw, OCT_TEXT_NORMAL, bar.x + margin + status.x[i] + (i == 0 ? text_px : 0),
                      top + (int)status.line[i] * line, status.phrases[i].text,
                      oct_draw_tone(status.phrases[i].tone));
}

/* ---- the header ---- */

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

/* ---- buttons ---- */

static bool is_on(const struct oct_view_model *model, enum oct_view_action action)
{
    switch (action) {
    case OCT_ACTION_RECORD:
        return model->daemon.reachable && model->daemon.record.active;
    case OCT_ACTION_FREEZE:
        return model->frozen;
    case OCT_ACTION_AUTO_CONTRAST:
        return model->contrast.range == OCT_CONTRAST_AUTO;
    case OCT_ACTION_MEASURE:
        return model->measuring;
    case OCT_ACTION_HELP:
        return model->help;
    default:
        return false;
    }
}

void oct_draw_buttons(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_button *buttons;
    size_t n = oct_view_buttons(model->settings.operators, &buttons);

    oct_draw_fill(draw, draw->layout.buttons, RGB_GROUND, 255);
    for (size_t i = 0; i < n && i < OCT_VIEW_MOST_BUTTONS; i++) {
        struct oct_view_rect r = draw->layout.button[i];
        bool on = is_on(model, buttons[i].action), record = buttons[i].action == OCT_ACTION_RECORD;
        const char *label = record && on ? "Stop" : buttons[i].label;
        enum oct_text_size size = oct_draw_text_width(draw, OCT_TEXT_LARGE, label) < r.w - 8
                                      ? OCT_TEXT_LARGE
                                      : OCT_TEXT_NORMAL;
        oct_draw_fill(draw, r, record ? RGB_RECORD : on ? RGB_GOOD : RGB_BUTTON, 255);
        oct_draw_text(draw, size, r.x + (r.w - oct_draw_text_width(draw, size, label)) / 2,
                      r.y + (r.h - oct_draw_line_height(draw, size)) / 2, label,
                      record ? 0xffffffu
                      : on   ? RGB_GROUND
                             : RGB_PLAIN);
    }
}

/* ---- bands over the panels ---- */

struct band {
    struct oct_view_rect r;
    int y; /* of the next line */
};

static struct band open_band(struct oct_draw *draw, struct oct_view_rect r, enum oct_view_tone tone)
{
    oct_draw_fill(draw, r, RGB_BAR, 232);
    oct_draw_fill(draw, (struct oct_view_rect){r.x, r.y, draw->layout.margin, r.h},
                  oct_draw_tone(tone), 255);
    return (struct band){r, r.y + draw->layout.margin / 2};
}

static void add_line(struct oct_draw *draw, struct band *band, enum oct_text_size size,
                     struct oct_view_phrase *phrase)
{
    int margin = draw->layout.margin, room = band->r.w - 3 * margin;

    /* What does not fit in large letters stands in normal ones, and loses its middle if it must: an
     * error begins with a path and ends with the reason. */
    if (oct_draw_text_width(draw, size, phrase->text) > room)
        size = OCT_TEXT_NORMAL;
    int w = oct_draw_text_fit(draw, size, phrase->text, sizeof(phrase->text), room,
                              OCT_DRAW_CUT_MIDDLE);
    int x = band->r.x + (band->r.w - w) / 2;
    x = x < band->r.x + 2 * margin ? band->r.x + 2 * margin : x;
    oct_draw_text(draw, size, x, band->y, phrase->text, oct_draw_tone(phrase->tone));
    band->y += oct_draw_line_height(draw, size);
}

static void draw_notice(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct oct_view_phrase lines[2];
    struct oct_view_rect r = draw->layout.bscan;
    int height = draw->layout.margin + oct_draw_line_height(draw, OCT_TEXT_LARGE) +
                 oct_draw_line_height(draw, OCT_TEXT_NORMAL);

    if (oct_view_notice(model, lines) == 0)
        return;
    struct band band = open_band(
        draw, (struct oct_view_rect){r.x, r.y + (r.h - height) / 2, r.w, height}, lines[0].tone);
    add_line(draw, &band, OCT_TEXT_LARGE, &lines[0]);
    add_line(draw, &band, OCT_TEXT_NORMAL, &lines[1]);
}

/* Draws the two worst alarms; more would hide the picture. */
void oct_draw_banner(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct oct_view_alarm alarms[OCT_VIEW_MAX_ALARMS];
    unsigned n = oct_view_alarms(model, alarms);
    struct oct_view_rect r = draw->layout.area;
    int height = draw->layout.margin + oct_draw_line_height(draw, OCT_TEXT_LARGE) +
                 oct_draw_line_height(draw, OCT_TEXT_NORMAL);

    for (unsigned i = 0; i < n && i < 2; i++) {
        struct band band =
            open_band(draw, (struct oct_view_rect){r.x, r.y + (int)i * (height + 1), r.w, height},
                      alarms[i].what.tone);
        alarms[i].remedy.tone = OCT_TONE_PLAIN;
        add_line(draw, &band, OCT_TEXT_LARGE, &alarms[i].what);
        add_line(draw, &band, OCT_TEXT_NORMAL, &alarms[i].remedy);
    }
    draw_notice(draw, model);
}

/* Draws the message over the lower edge of the panels, so that they stay where they are. */
void oct_draw_message(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct oct_view_phrase line = {.tone = OCT_TONE_PLAIN};
    struct oct_view_rect r = draw->layout.area;
    int height = draw->layout.margin + oct_draw_line_height(draw, OCT_TEXT_NORMAL);

    if (!model->message[0])
        return;
    SDL_strlcpy(line.text, model->message, sizeof(line.text));
    struct band band =
        open_band(draw, (struct oct_view_rect){r.x, r.y + r.h - height, r.w, height}, OCT_TONE_DIM);
    add_line(draw, &band, OCT_TEXT_NORMAL, &line);
}

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
