#include "formats/csv_read.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct oct_csv_reader {
    char *path;
    FILE *stream;
    unsigned char start[3]; /* [n_start] the first bytes, where they are no byte order mark */
    unsigned n_start, n_taken;
    bool is_behind_return;     /* the character before was '\r' */
    uint64_t line, first_line; /* where it reads; where the row began */
    char *text;                /* [OCT_CSV_MOST_BYTES + 1] cells, each with '\0' behind it */
    size_t n_bytes;
    const char **cells; /* [OCT_CSV_MOST_CELLS] */
    unsigned n_cells;
};

/* The file may be a pipe, in which nothing can be read again. */
static void skip_mark(struct oct_csv_reader *r)
{
    r->n_start = (unsigned)fread(r->start, 1, sizeof(r->start), r->stream);
    if (r->n_start == 3 && memcmp(r->start, "\xef\xbb\xbf", 3) == 0)
        r->n_start = 0;
}

enum oct_err oct_csv_open(struct oct_csv_reader **reader, const char *path, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    *reader = NULL;
    struct oct_csv_reader *r = calloc(1, sizeof(*r));
    if (!r)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    r->line = r->first_line = 1;
    r->path = strdup(path);
    r->text = malloc(OCT_CSV_MOST_BYTES + 1);
    r->cells = calloc(OCT_CSV_MOST_CELLS, sizeof(*r->cells));
    r->stream = fopen(path, "re");
    if (!r->stream)
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be opened", path);
    else if (!r->path || !r->text || !r->cells)
        e = oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    if (e) {
        oct_csv_close(r);
        return e;
    }
    skip_mark(r);
    *reader = r;
    return OCT_OK;
}

void oct_csv_close(struct oct_csv_reader *r)
{
    if (!r)
        return;
    if (r->stream)
        fclose(r->stream);
    free(r->path);
    free(r->text);
    free(r->cells);
    free(r);
}

enum oct_err oct_csv_refuse(const struct oct_csv_reader *r, struct oct_error *err,
                            const char *format, ...)
{
    char text[OCT_ERROR_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return oct_fail(err, OCT_E_FORMAT, "%s, line %" PRIu64 ": %s", r->path, r->first_line, text);
}

uint64_t oct_csv_line(const struct oct_csv_reader *r)
{
    return r->first_line;
}

/* ---- one row ---- */

static enum oct_err append_character(struct oct_csv_reader *r, int character, struct oct_error *err)
{
    if (r->n_bytes == OCT_CSV_MOST_BYTES)
        return oct_csv_refuse(r, err, "a row of more than %u bytes: no table of cells",
                              OCT_CSV_MOST_BYTES);
    r->text[r->n_bytes++] = (char)character;
    return OCT_OK;
}

static int next_byte(struct oct_csv_reader *r)
{
    return r->n_taken < r->n_start ? r->start[r->n_taken++] : getc(r->stream);
}

/* Reads a character; line ends of all kinds are '\n'. */
static int take_character(struct oct_csv_reader *r)
{
    int character = next_byte(r);
    if (character == '\n' && r->is_behind_return)
        character = next_byte(r);
    r->is_behind_return = character == '\r';
    if (r->is_behind_return)
        character = '\n';
    r->line += character == '\n';
    return character;
}

/* Behind the first quote, up to the last one and what follows it. */
static enum oct_err take_quoted(struct oct_csv_reader *r, int *end, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    while (!e) {
        int character = take_character(r);
        if (character == EOF)
            return oct_csv_refuse(r, err, "a quoted cell does not end");
        if (character == '\0')
            return oct_csv_refuse(r, err, "a zero byte: no text");
        if (character == '"' && (character = take_character(r)) != '"') {
            *end = character;
            if (character != ',' && character != '\n' && character != EOF)
                return oct_csv_refuse(r, err, "text behind the quotes of a cell");
            return OCT_OK;
        }
        e = append_character(r, character, err);
    }
    return e;
}

/* One cell; *end: ',', '\n' or EOF. */
static enum oct_err take_cell(struct oct_csv_reader *r, int *end, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    const size_t first = r->n_bytes;
    int character = take_character(r);
    if (r->n_cells == OCT_CSV_MOST_CELLS)
        return oct_csv_refuse(r, err, "more than %u cells", OCT_CSV_MOST_CELLS);
    r->cells[r->n_cells++] = r->text + first;
    if (character == '"') {
        e = take_quoted(r, end, err);
        return e ? e : append_character(r, '\0', err);
    }
    while (!e && character != ',' && character != '\n' && character != EOF) {
        if (character == '\0')
            return oct_csv_refuse(r, err, "a zero byte: no text");
        if (character == '"')
            return oct_csv_refuse(r, err, "a quote within a cell that does not begin with one");
        e = append_character(r, character, err);
        character = take_character(r);
    }
    *end = character;
    return e ? e : append_character(r, '\0', err);
}

enum oct_err oct_csv_next(struct oct_csv_reader *r, const char *const **cells, unsigned *n,
                          struct oct_error *err)
{
    int end = '\n';
    *cells = r->cells;
    *n = 0;
    do {
        r->first_line = r->line;
        r->n_bytes = r->n_cells = 0;
        do {
            const enum oct_err e = take_cell(r, &end, err);
            if (e)
                return e;
        } while (end == ',');
    } while (end != EOF && r->n_cells == 1 && r->n_bytes == 1);
    if (ferror(r->stream))
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be read", r->path);
    if (end != EOF || r->n_cells > 1 || r->n_bytes > 1)
        *n = r->n_cells;
    return OCT_OK;
}

/* ---- numbers ---- */

bool oct_csv_to_number(const char *text, double *value)
{
    char copy[64], *end;
    text += strspn(text, " \t");
    const size_t n = strspn(text, "0123456789+-.eE");
    if (n == 0 || n >= sizeof(copy) || text[n + strspn(text + n, " \t")] != '\0')
        return false;
    memcpy(copy, text, n);
    copy[n] = '\0';
    *value = strtod(copy, &end);
    return *end == '\0' && isfinite(*value);
}
