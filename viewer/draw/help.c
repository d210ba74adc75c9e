/* The keys and what they do, over the window: in columns. */
#include "viewer/draw/areas.h"

#include <string.h>

#define KEY_LETTERS 15
#define GAP_LETTERS 3   /* two between keys and meaning, one after it */
#define LEAST_COLUMN 48 /* letters of one whose lines are broken */
#define MOST_COLUMNS 3
#define MOST_ROWS 96

struct row {
    char keys[128];
    const char *meaning;
};

struct columns {
    struct row row[MOST_ROWS];
    unsigned n_rows;
    unsigned n_columns, n_lines; /* of a column, at most */
    unsigned letters, longest;   /* of a line of a meaning; of the longest meaning */
    bool wraps;                  /* else a long line is cut */
};

/* Returns how many bytes of the text make its first line: whole words, as far as they fit. */
static size_t line_bytes(const char *text, unsigned letters)
{
    size_t n = strlen(text), end = 0;

    if (n <= letters)
        return n;
    for (size_t i = 1; i <= letters; i++)
        end = text[i] == ' ' ? i : end;
    return end > 0 ? end : letters;
}

static unsigned count_lines(const char *text, unsigned letters)
{
    unsigned n = 0;

    for (size_t used; *text; n++, text += used + (text[used] == ' '))
        used = line_bytes(text, letters);
    return n;
}

static unsigned row_lines(const struct columns *c, unsigned i)
{
    unsigned keys = count_lines(c->row[i].keys, KEY_LETTERS);
    unsigned meaning = count_lines(c->row[i].meaning, c->letters);

    return !c->wraps ? 1 : keys > meaning ? keys : meaning;
}

/* Returns the lines of the longest column, when no column but the last may have more than `most`
 * and all are about as long. */
static unsigned longest_column(const struct columns *c, unsigned most)
{
    unsigned line = 0, column = 1, longest = 0;

    for (unsigned i = 0; i < c->n_rows; i++) {
        unsigned n = row_lines(c, i);
        if (line + n > most && column < c->n_columns) {
            column++;
            line = 0;
        }
        line += n;
        longest = line > longest ? line : longest;
    }
    return longest;
}

/* Tries so many columns. False: they do not fit into the window's lines. */
static bool try_columns(struct columns *c, unsigned n_columns, unsigned window_letters,
                        unsigned window_lines)
{
    unsigned all = 0, width = window_letters / n_columns;

    c->n_columns = n_columns;
    c->letters = width > KEY_LETTERS + GAP_LETTERS + 8 ? width - KEY_LETTERS - GAP_LETTERS : 8;
    c->letters = c->letters < c->longest ? c->letters : c->longest;
    for (unsigned i = 0; i < c->n_rows; i++)
        all += row_lines(c, i);
    for (c->n_lines = (all + n_columns - 1) / n_columns; c->n_lines <= window_lines; c->n_lines++)
        if (longest_column(c, c->n_lines) <= c->n_lines)
            return true;
    return false;
}

static void gather(struct columns *c, const struct oct_view_model *model)
{
    c->n_rows = c->longest = 0;
    for (size_t i = 0; i < oct_view_n_keys && c->n_rows < MOST_ROWS; i++) {
        struct row *row = &c->row[c->n_rows];
        if (model->settings.operators && !oct_view_action_is_operators(oct_view_keys[i].action))
            continue;
        if (!oct_view_key_help(i, row->keys, sizeof(row->keys)))
            continue;
        row->meaning = oct_view_keys[i].meaning;
        const unsigned n = (unsigned)strlen(row->meaning);
        c->longest = n > c->longest ? n : c->longest;
        c->n_rows++;
    }
}

/* The most columns that need not break a meaning; else the fewest that fit. */
static void arrange(struct columns *c, unsigned window_letters, unsigned window_lines)
{
    c->wraps = true;
    for (unsigned n = MOST_COLUMNS; n > 0; n--)
        if (window_letters / n >= KEY_LETTERS + GAP_LETTERS + c->longest &&
            try_columns(c, n, window_letters, window_lines))
            return;
    for (unsigned n = 2; n <= MOST_COLUMNS; n++)
        if (window_letters / n > LEAST_COLUMN && try_columns(c, n, window_letters, window_lines))
            return;
    /* A small window: two columns of lines that are cut. */
    c->wraps = false;
    c->n_lines = try_columns(c, 2, window_letters, window_lines) ? c->n_lines : window_lines;
}

static void draw_lines(struct oct_draw *draw, int x, int y, const char *text, unsigned letters,
                       bool wraps, uint32_t rgb)
{
    char part[160];
    size_t used;

    do {
        used = line_bytes(text, letters);
        SDL_snprintf(part, sizeof(part), "%.*s%s", (int)used, text,
                     !wraps && text[used] ? "\u2026" : "");
        oct_draw_text(draw, OCT_TEXT_NORMAL, x, y, part, rgb);
        y += oct_draw_line_height(draw, OCT_TEXT_NORMAL);
        text += used + (text[used] == ' ');
    } while (wraps && *text);
}

void oct_draw_help(struct oct_draw *draw, const struct oct_view_model *model)
{
    const int margin = draw->layout.margin, line = oct_draw_line_height(draw, OCT_TEXT_NORMAL);
    const int letters_100 = oct_draw_letters_width(draw, 100);
    const int all_w = draw->layout.status.w, all_h = draw->layout.status.y + draw->layout.status.h;
    struct columns c;

    gather(&c, model);
    arrange(&c, (unsigned)((all_w - 2 * margin) * 100 / letters_100),
            (unsigned)((all_h - 2 * margin) / line));
    const int column_w = oct_draw_letters_width(draw, KEY_LETTERS + GAP_LETTERS + c.letters);
    const int w = (int)c.n_columns * column_w, h = (int)c.n_lines * line;
    const int left = (all_w - w) / 2, top = (all_h - h) / 2;
    unsigned at = 0, column = 0;

    oct_draw_fill(
        draw, (struct oct_view_rect){left - margin, top - margin, w + 2 * margin, h + 2 * margin},
        RGB_GROUND, 240);
    for (unsigned i = 0; i < c.n_rows; i++) {
        unsigned n = row_lines(&c, i);
        if (at + n > c.n_lines && column + 1 < c.n_columns) {
            column++;
            at = 0;
        }
        int x = left + (int)column * column_w, y = top + (int)at * line;
        draw_lines(draw, x, y, c.row[i].keys, KEY_LETTERS, c.wraps, RGB_GOOD);
        draw_lines(draw, x + oct_draw_letters_width(draw, KEY_LETTERS + 2), y, c.row[i].meaning,
                   c.letters, c.wraps, RGB_PLAIN);
        at += n;
    }
}
