/* Bands of words: alarms, the notice of an empty window, the message. */
#include "viewer/draw/canvas.h"

struct band {
    struct oct_view_rect r;
    int y; /* of the next line */
};

static struct band open_band(struct oct_draw *draw, struct oct_view_rect r, enum oct_view_tone tone)
{
    oct_draw_fill(draw, r, RGB_BAR, 255);
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

#define MOST_ALARMS 2u /* more would take the room of the picture */

static int alarm_height(const struct oct_draw *draw)
{
    return draw->layout.margin + oct_draw_line_height(draw, OCT_TEXT_LARGE) +
           oct_draw_line_height(draw, OCT_TEXT_NORMAL);
}

int oct_draw_banner_height(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct oct_view_alarm alarms[OCT_VIEW_MAX_ALARMS];
    unsigned n = oct_view_alarms(model, alarms);

    return (int)(n < MOST_ALARMS ? n : MOST_ALARMS) * (alarm_height(draw) + 1);
}

/* Draws the worst alarms, and says how many there are beside them. */
void oct_draw_banner(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct oct_view_alarm alarms[OCT_VIEW_MAX_ALARMS];
    unsigned n = oct_view_alarms(model, alarms);
    struct oct_view_rect r = draw->layout.banner;
    int height = alarm_height(draw);

    for (unsigned i = 0; i < n && i < MOST_ALARMS && r.h > 0; i++) {
        struct oct_view_phrase *remedy = &alarms[i].remedy;
        size_t used = SDL_strlen(remedy->text);
        struct band band =
            open_band(draw, (struct oct_view_rect){r.x, r.y + (int)i * (height + 1), r.w, height},
                      alarms[i].what.tone);
        if (i + 1 == MOST_ALARMS && n > MOST_ALARMS)
            SDL_snprintf(remedy->text + used, sizeof(remedy->text) - used,
                         "  (and %u more alarm%s)", n - MOST_ALARMS,
                         n - MOST_ALARMS > 1 ? "s" : "");
        remedy->tone = OCT_TONE_PLAIN;
        add_line(draw, &band, OCT_TEXT_LARGE, &alarms[i].what);
        add_line(draw, &band, OCT_TEXT_NORMAL, remedy);
    }
    draw_notice(draw, model);
}

/* Draws the message over the timeline, which alone can do without its place for a while: no words
 * stand over a picture. */
void oct_draw_message(struct oct_draw *draw, const struct oct_view_model *model)
{
    struct oct_view_phrase line = {.tone = OCT_TONE_PLAIN};
    struct oct_view_rect r = draw->layout.timeline;
    int height = draw->layout.margin + oct_draw_line_height(draw, OCT_TEXT_NORMAL);

    if (!model->message[0])
        return;
    SDL_strlcpy(line.text, model->message, sizeof(line.text));
    struct band band = open_band(
        draw, (struct oct_view_rect){r.x, r.y + (r.h - height) / 2, r.w, height}, OCT_TONE_GOOD);
    add_line(draw, &band, OCT_TEXT_NORMAL, &line);
}
