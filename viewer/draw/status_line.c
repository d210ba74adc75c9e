#include "viewer/draw/areas.h"

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
