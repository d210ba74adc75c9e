#include "viewer/model/words.h"

#include <stdio.h>
#include <string.h>

#define KEY_LETTERS 15
#define GAP_LETTERS 3   /* two between keys and meaning, one after it */
#define LEAST_COLUMN 48 /* letters of one whose lines are broken */
#define MOST_COLUMNS 3u
#define MOST_ROWS 96

struct row {
    char keys[64];
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

/* Returns the lines of the longest column, where none but the last may have more than `most`. */
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

/* Tries so many columns, all about as long. False: they do not fit into the window's lines. */
static bool try_columns(struct columns *c, unsigned n_columns, unsigned n_letters, unsigned n_lines)
{
    unsigned all = 0, width = n_letters / n_columns;

    c->n_columns = n_columns;
    c->letters = width > KEY_LETTERS + GAP_LETTERS + 8 ? width - KEY_LETTERS - GAP_LETTERS : 8;
    c->letters = c->letters < c->longest ? c->letters : c->longest;
    for (unsigned i = 0; i < c->n_rows; i++)
        all += row_lines(c, i);
    for (c->n_lines = (all + n_columns - 1) / n_columns; c->n_lines <= n_lines; c->n_lines++)
        if (longest_column(c, c->n_lines) <= c->n_lines)
            return true;
    c->n_lines = n_lines;
    return false;
}

static void gather(struct columns *c, const struct oct_view_model *model)
{
    for (size_t i = 0; i < oct_view_n_keys && c->n_rows < MOST_ROWS; i++) {
        struct row *row = &c->row[c->n_rows];
        if (model->settings.operators && !oct_view_action_is_operators(oct_view_keys[i].action))
            continue;
        if (!oct_view_key_help(i, row->keys, sizeof(row->keys)))
            continue;
        row->meaning = oct_view_keys[i].meaning;
        unsigned n = (unsigned)strlen(row->meaning);
        c->longest = n > c->longest ? n : c->longest;
        c->n_rows++;
    }
}

static void choose_columns(struct columns *c, unsigned n_letters, unsigned n_lines)
{
    c->wraps = true;
    for (unsigned n = MOST_COLUMNS; n > 0; n--)
        if (n_letters / n >= KEY_LETTERS + GAP_LETTERS + c->longest &&
            try_columns(c, n, n_letters, n_lines))
            return;
    for (unsigned n = 2; n <= MOST_COLUMNS; n++)
        if (n_letters / n > LEAST_COLUMN && try_columns(c, n, n_letters, n_lines))
            return;
    c->wraps = false;
    try_columns(c, n_letters > LEAST_COLUMN ? 2 : 1, n_letters, n_lines);
}

/* Adds a text from a place on, in as many lines as it has. */
static void add(struct oct_view_help *help, const struct columns *c, const char *text,
                unsigned letters, bool is_key, unsigned column, unsigned line)
{
    size_t used;

    do {
        if (help->n == OCT_VIEW_MOST_HELP)
            return;
        struct oct_view_help_text *t = &help->text[help->n++];
        used = line_bytes(text, c->wraps || strlen(text) <= letters ? letters : letters - 1);
        bool cut = !c->wraps && text[used];
        snprintf(t->text, sizeof(t->text), "%.*s%s", (int)used, text, cut ? "\u2026" : "");
        t->column = column;
        t->line = line++;
        t->is_key = is_key;
        help->is_cut |= cut;
        text += used + (text[used] == ' ');
    } while (c->wraps && *text);
}

void oct_view_help_arrange(struct oct_view_help *help, const struct oct_view_model *model,
                           unsigned n_letters, unsigned n_lines)
{
    struct columns c = {.n_rows = 0};
    unsigned line = 0, column = 0;

    help->n = 0;
    help->is_cut = false;
    gather(&c, model);
    choose_columns(&c, n_letters, n_lines);
    const unsigned width = KEY_LETTERS + GAP_LETTERS + c.letters;
    for (unsigned i = 0; i < c.n_rows; i++) {
        unsigned n = row_lines(&c, i);
        if (line + n > c.n_lines && column + 1 < c.n_columns) {
            column++;
            line = 0;
        }
        if (line + n > n_lines) { /* not even so */
            help->is_cut = true;
            break;
        }
        add(help, &c, c.row[i].keys, KEY_LETTERS, true, column * width, line);
        add(help, &c, c.row[i].meaning, c.letters, false, column * width + KEY_LETTERS + 2, line);
        line += n;
    }
    help->n_letters = c.n_columns * width;
    help->n_lines = c.n_lines;
}
