/* The day's patients, a row each as high as a button: time, name, ID, accession number. */
#include "viewer/draw/canvas.h"

#include <stdio.h>
#include <string.h>

#define MOST_LINES 6
/* Letters of the time and of the other columns, and of a gap; the name has what is left. */
enum { TIME = 5, ID = 12, ACCESSION = 16, GAP = 2, ALL = 72 };

int oct_draw_worklist_width(struct oct_draw *draw, const struct oct_view_model *model)
{
    return oct_view_worklist_is_shown(model)
               ? oct_draw_letters_width(draw, ALL) + 2 * draw->layout.margin
               : 0;
}

static void draw_title(struct oct_draw *draw, const struct oct_view_worklist *w,
                       struct oct_view_rect r)
{
    static const char again[] = "ask again";
    const int margin = draw->layout.margin,
              right = oct_draw_text_width(draw, OCT_TEXT_NORMAL, again);
    const unsigned n_rows = draw->layout.n_rows;
    const unsigned last = w->rows.first + n_rows < w->rows.n ? w->rows.first + n_rows : w->rows.n;
    char words[96] = "asking the worklist ...";
    if (w->state == OCT_WORKLIST_FAILED)
        snprintf(words, sizeof(words), "the worklist cannot be read");
    else if (w->state == OCT_WORKLIST_HERE && w->rows.n > n_rows)
        snprintf(words, sizeof(words), "who is next? %u to %u of %u, by wheel or Page keys",
                 w->rows.first + 1, last, w->rows.n);
    else if (w->state == OCT_WORKLIST_HERE)
        snprintf(words, sizeof(words),
                 w->rows.n ? "who is next?" : "nobody is on the list of today");
    oct_draw_fill(draw, r, RGB_BAR, 255);
    oct_draw_words_in(draw,
                      (struct oct_view_rect){r.x + margin, r.y, r.w - right - 4 * margin, r.h},
                      words, w->state == OCT_WORKLIST_FAILED ? RGB_BAD : RGB_PLAIN);
    if (w->state != OCT_WORKLIST_ASKING)
        oct_draw_words_in(
            draw, (struct oct_view_rect){r.x + r.w - right - 2 * margin, r.y, right + 1, r.h},
            again, RGB_GOOD);
}

static void draw_row(struct oct_draw *draw, const struct oct_view_appointment *a,
                     struct oct_view_rect r, bool is_chosen)
{
    const int letter = oct_draw_letters_width(draw, 1), margin = draw->layout.margin;
    const uint32_t rgb = is_chosen ? RGB_GROUND : a->is_readable ? RGB_PLAIN : RGB_DIM;
    const int fixed = (TIME + ID + ACCESSION + 3 * GAP) * letter;
    const int widths[4] = {TIME * letter, r.w - 2 * margin - fixed, ID * letter,
                           ACCESSION * letter};
    char name[OCT_VIEW_NAME_BYTES];
    snprintf(name, sizeof(name), "%s", a->name);
    oct_draw_leave_out_clauses(draw, OCT_TEXT_NORMAL, name, widths[1]);
    const char *const words[4] = {a->time, name, a->id, a->accession};
    struct oct_view_rect at = {r.x + margin, r.y, 0, r.h};
    oct_draw_fill(draw, (struct oct_view_rect){r.x, r.y, r.w, r.h - 1},
                  is_chosen ? RGB_GOOD : RGB_BUTTON, 255);
    for (unsigned i = 0; i < 4; i++) {
        at.w = widths[i];
        oct_draw_words_in(draw, at, words[i], rgb);
        at.x += at.w + GAP * letter;
    }
}

/* Why there is no list, all of it, and what to do. */
static void draw_failure(struct oct_draw *draw, const struct oct_view_worklist *w,
                         struct oct_view_rect r)
{
    const int line = oct_draw_line_height(draw, OCT_TEXT_NORMAL), margin = draw->layout.margin;
    char lines[MOST_LINES][OCT_VIEW_TEXT_BYTES];
    const unsigned n_letters =
        (unsigned)((r.w - 2 * margin) * 100 / oct_draw_letters_width(draw, 100));
    unsigned n = oct_view_wrap(w->why, n_letters, lines, MOST_LINES - 1);
    n += oct_view_wrap("is its computer on, is the cable in? meanwhile type a pseudonym", n_letters,
                       lines + n, 1);
    for (unsigned i = 0; i < n; i++)
        oct_draw_text(draw, OCT_TEXT_NORMAL, r.x + margin, r.y + margin + (int)i * line, lines[i],
                      i + 1 < n ? RGB_PLAIN : RGB_DIM);
}

void oct_draw_worklist(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_worklist *w = &model->worklist;
    struct oct_view_rect r = draw->layout.list;
    if (r.w == 0 || !oct_view_worklist_is_shown(model))
        return;
    oct_draw_fill(draw, r, RGB_GROUND, 240);
    oct_draw_frame_of(draw, r, RGB_DIM);
    r.h = draw->layout.row_height;
    draw_title(draw, w, r);
    r.y += r.h;
    if (w->state == OCT_WORKLIST_FAILED)
        draw_failure(draw, w, r);
    for (unsigned i = w->rows.first; i < w->rows.n && i < w->rows.first + draw->layout.n_rows;
         i++, r.y += r.h)
        draw_row(draw, &w->all[i], r, w->rows.chosen == i + 1);
}
