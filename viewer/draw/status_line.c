/* The status line and, above it, the details. Fields have fixed places: only what does not fit into
 * its field is cut. */
#include "viewer/draw/areas.h"
#include "viewer/model/words.h"

struct placed {
    struct oct_view_field field[OCT_VIEW_MOST_FIELDS];
    int x[OCT_VIEW_MOST_FIELDS], width[OCT_VIEW_MOST_FIELDS];
    unsigned line[OCT_VIEW_MOST_FIELDS];
    unsigned n, n_lines;
};

static void place_details(struct oct_draw *draw, const struct oct_view_model *model, int width,
                          int text_px, struct placed *details)
{
    const int letter = oct_draw_letters_width(draw, 1);

    details->n = oct_view_details(model, details->field);
    for (unsigned i = 0; i < details->n; i++)
        details->width[i] = oct_draw_letters_width(draw, details->field[i].n_letters);
    details->n_lines = oct_view_layout_flow(details->width, details->n, width - text_px, letter,
                                            details->x, details->line);
}

int oct_draw_status_height(struct oct_draw *draw, const struct oct_view_model *model, int width,
                           int text_px)
{
    struct placed details = {.n_lines = 0};

    if (model->settings.details)
        place_details(draw, model, width, text_px, &details);
    return (int)(details.n_lines + 1) * oct_draw_line_height(draw, OCT_TEXT_NORMAL) + text_px / 3;
}

static void draw_field(struct oct_draw *draw, int x, int y, int width, struct oct_view_phrase *p)
{
    oct_draw_text_fit(draw, OCT_TEXT_NORMAL, p->text, sizeof(p->text), width, OCT_DRAW_CUT_END);
    oct_draw_text(draw, OCT_TEXT_NORMAL, x, y, p->text, oct_draw_tone(p->tone));
}

/* The lamp of the state, and the fields after it. One for which there is no room is left out. */
static void draw_line(struct oct_draw *draw, const struct oct_view_model *model,
                      struct oct_view_rect r)
{
    struct oct_view_field field[OCT_VIEW_MOST_FIELDS];
    const int text_px = draw->layout.text_px, lamp = text_px * 2 / 3;
    const unsigned n = oct_view_fields(model, field);
    int x = r.x + lamp + text_px / 3;

    oct_draw_fill(draw, (struct oct_view_rect){r.x, r.y + (r.h - lamp) / 2, lamp, lamp},
                  oct_draw_tone(field[0].phrase.tone), 255);
    for (unsigned i = 0; i < n; i++) {
        const int width = oct_draw_letters_width(draw, field[i].n_letters);
        if (x + width > r.x + r.w)
            continue;
        draw_field(draw, x, r.y, width, &field[i].phrase);
        x += oct_draw_letters_width(draw, field[i].n_letters + 1);
    }
}

void oct_draw_status(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_rect bar = draw->layout.status;
    const int text_px = draw->layout.text_px, margin = draw->layout.margin;
    const int line = oct_draw_line_height(draw, OCT_TEXT_NORMAL), top = bar.y + text_px / 6;
    struct placed details = {.n_lines = 0};

    oct_draw_fill(draw, bar, RGB_BAR, 255);
    if (model->settings.details)
        place_details(draw, model, bar.w, text_px, &details);
    for (unsigned i = 0; i < details.n; i++)
        draw_field(draw, bar.x + margin + details.x[i], top + (int)details.line[i] * line,
                   details.width[i], &details.field[i].phrase);
    draw_line(draw, model,
              (struct oct_view_rect){bar.x + margin, top + (int)details.n_lines * line,
                                     bar.w - 2 * margin, line});
}
