#include "tools/analyse/cells_table.h"

#include "formats/csv_read.h"
#include "tools/alloc.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MOST_NUMBER 9007199254740992.0 /* 2^53: whole numbers below it are exact */

enum { TRACK, FRAME, X, Y, N_COLUMNS };

static const struct {
    const char *names[4]; /* of the first that there is */
} columns[N_COLUMNS] = {[TRACK] = {{"track", "track_id", "id"}},
                        [FRAME] = {{"frame", "t"}},
                        [X] = {{"x_px", "x"}},
                        [Y] = {{"y_px", "y"}}};

/* Where a cell of a track stands. */
struct place {
    uint64_t frame, track, line;
};

struct source {
    const char *path;
    struct oct_csv_reader *reader;
    struct place *places; /* [n] of the rows with a track */
    size_t n_places;
    unsigned column[N_COLUMNS];
    unsigned n_columns; /* of the header */
};

/* Compares without blanks about the cell and without case. */
static bool is_name(const char *cell, const char *name)
{
    const size_t n = strlen(name);
    cell += strspn(cell, " \t");
    return strncasecmp(cell, name, n) == 0 && cell[n + strspn(cell + n, " \t")] == '\0';
}

static enum oct_err find_column(struct source *s, unsigned c, const char *const *cells, unsigned n,
                                struct oct_error *err)
{
    for (unsigned k = 0; k < 4 && columns[c].names[k]; k++) {
        const char *name = columns[c].names[k];
        unsigned n_found = 0;
        for (unsigned i = 0; i < n; i++)
            if (is_name(cells[i], name)) {
                s->column[c] = i;
                n_found++;
            }
        if (n_found > 1)
            return oct_csv_refuse(s->reader, err, "%u columns are called %s", n_found, name);
        if (n_found == 1)
            return OCT_OK;
    }
    return oct_csv_refuse(s->reader, err, "no column is called %s or %s: a header must name them",
                          columns[c].names[0], columns[c].names[1]);
}

static enum oct_err read_header(struct source *s, struct oct_error *err)
{
    const char *const *cells;
    unsigned n;
    enum oct_err e = oct_csv_next(s->reader, &cells, &n, err);
    if (!e && n == 0)
        return oct_csv_refuse(s->reader, err, "an empty file: no header");
    s->n_columns = n;
    for (unsigned c = 0; c < N_COLUMNS && !e; c++)
        e = find_column(s, c, cells, n, err);
    return e;
}

static enum oct_err read_whole(const struct source *s, unsigned c, const char *text,
                               uint64_t *number, struct oct_error *err)
{
    double value;
    if (!oct_csv_to_number(text, &value) || !(value >= 0 && value < MOST_NUMBER) ||
        floor(value) != value)
        return oct_csv_refuse(s->reader, err, "%s '%.40s': needs a whole number from 0",
                              columns[c].names[0], text);
    *number = (uint64_t)value;
    return OCT_OK;
}

static enum oct_err read_row(const struct source *s, const char *const *cells, unsigned n,
                             struct oct_score_cell *cell, struct oct_error *err)
{
    if (n != s->n_columns)
        return oct_csv_refuse(s->reader, err, "%u cells; the header has %u", n, s->n_columns);
    const char *track = cells[s->column[TRACK]];
    enum oct_err e = read_whole(s, FRAME, cells[s->column[FRAME]], &cell->frame, err);
    cell->track = 0;
    if (!e && track[strspn(track, " \t")] != '\0') {
        e = read_whole(s, TRACK, track, &cell->track, err);
        cell->track++;
    }
    for (unsigned c = X; c <= Y && !e; c++) {
        const char *text = cells[s->column[c]];
        double *value = c == X ? &cell->x : &cell->y;
        if (!oct_csv_to_number(text, value) || fabs(*value) > MOST_NUMBER)
            e = oct_csv_refuse(s->reader, err, "%s '%.40s': needs a number", columns[c].names[0],
                               text);
    }
    return e;
}

static enum oct_err read_rows(struct oct_cells_table *table, struct source *s,
                              struct oct_error *err)
{
    const char *const *cells;
    unsigned n;
    size_t room = 0, places_room = 0;
    enum oct_err e;
    table->cells = oct_alloc_room(NULL, &room, 0, sizeof(*table->cells));
    s->places = oct_alloc_room(NULL, &places_room, 0, sizeof(*s->places));
    while (!(e = oct_csv_next(s->reader, &cells, &n, err)) && n > 0) {
        if (table->n == OCT_CELLS_TABLE_MOST)
            return oct_csv_refuse(s->reader, err, "more than %u rows", OCT_CELLS_TABLE_MOST);
        table->cells = oct_alloc_room(table->cells, &room, table->n + 1, sizeof(*table->cells));
        struct oct_score_cell *cell = &table->cells[table->n];
        if ((e = read_row(s, cells, n, cell, err)))
            return e;
        table->n++;
        if (cell->track == 0)
            continue;
        s->places = oct_alloc_room(s->places, &places_room, s->n_places + 1, sizeof(*s->places));
        s->places[s->n_places++] =
            (struct place){cell->frame, cell->track, oct_csv_line(s->reader)};
    }
    return e;
}

static int compare_places(const void *a, const void *b)
{
    const struct place *p = a, *q = b;
    if (p->frame != q->frame)
        return p->frame < q->frame ? -1 : 1;
    if (p->track != q->track)
        return p->track < q->track ? -1 : 1;
    return (p->line > q->line) - (p->line < q->line);
}

/* A track is in one place of a frame. */
static enum oct_err check_tracks(const struct source *s, struct oct_error *err)
{
    qsort(s->places, s->n_places, sizeof(*s->places), compare_places);
    for (size_t i = 1; i < s->n_places; i++) {
        const struct place *p = &s->places[i];
        if (p->frame == p[-1].frame && p->track == p[-1].track)
            return oct_fail(err, OCT_E_FORMAT,
                            "%s, line %" PRIu64 ": track %" PRIu64 " is in frame %" PRIu64
                            " already, in line %" PRIu64,
                            s->path, p->line, p->track - 1, p->frame, p[-1].line);
    }
    return OCT_OK;
}

enum oct_err oct_cells_table_read(struct oct_cells_table *table, const char *path,
                                  struct oct_error *err)
{
    struct source s = {.path = path};
    *table = (struct oct_cells_table){0};
    enum oct_err e = oct_csv_open(&s.reader, path, err);
    if (!e)
        e = read_header(&s, err);
    if (!e)
        e = read_rows(table, &s, err);
    if (!e)
        e = check_tracks(&s, err);
    oct_csv_close(s.reader);
    free(s.places);
    if (e)
        oct_cells_table_finish(table);
    return e;
}

void oct_cells_table_finish(struct oct_cells_table *table)
{
    free(table->cells);
    *table = (struct oct_cells_table){0};
}
