/* --shifts of octctl register: shifts that were found on another channel. */
#include "formats/csv_read.h"
#include "tools/alloc.h"
#include "tools/analyse/register.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SHIFT_PX 1e5

enum { FRAME, LINE, DY, DX, N_COLUMNS };

struct table {
    const struct oct_register *r;
    struct oct_csv_reader *csv;
    int columns[N_COLUMNS]; /* -1: it has none */
    struct oct_strip *shifts;
};

static enum oct_err read_header(struct table *t, const char *const *cells, unsigned n,
                                struct oct_error *err)
{
    static const char *const names[N_COLUMNS] = {"frame", "line", "dy_px", "dx_px"};
    for (unsigned i = 0; i < N_COLUMNS; i++) {
        t->columns[i] = -1;
        for (unsigned k = 0; k < n; k++)
            if (strcmp(cells[k], names[i]) == 0)
                t->columns[i] = (int)k;
        if (t->columns[i] < 0 && i != LINE)
            return oct_fail(err, OCT_E_FORMAT,
                            "%s: no column %s: a table as --csv writes it is needed",
                            t->r->given.shifts, names[i]);
    }
    return OCT_OK;
}

/* A line that is empty or has no column is 0; a row without a shift says nothing. */
static enum oct_err read_row(struct table *t, const char *const *cells, unsigned n,
                             struct oct_error *err)
{
    const char *path = t->r->given.shifts;
    const uint64_t row = oct_csv_line(t->csv);
    double v[N_COLUMNS] = {0};
    bool has_shift = true;
    for (unsigned i = 0; i < N_COLUMNS; i++) {
        const int k = t->columns[i];
        if (k < 0)
            continue;
        if (k >= (int)n)
            return oct_fail(err, OCT_E_FORMAT, "%s:%" PRIu64 ": too few cells", path, row);
        if (!*cells[k])
            has_shift = has_shift && i < DY;
        else if (!oct_option_double(cells[k], &v[i]))
            return oct_fail(err, OCT_E_FORMAT, "%s:%" PRIu64 ": '%s' is no number", path, row,
                            cells[k]);
    }
    if (!has_shift)
        return OCT_OK;
    if (v[FRAME] < 0 || v[FRAME] >= (double)t->r->n || v[LINE] < 0 || v[LINE] >= t->r->height ||
        v[FRAME] != floor(v[FRAME]) || v[LINE] != floor(v[LINE]) ||
        !(fabs(v[DY]) < MOST_SHIFT_PX) || !(fabs(v[DX]) < MOST_SHIFT_PX))
        return oct_fail(err, OCT_E_FORMAT,
                        "%s:%" PRIu64 ": frame %.10g, line %.10g: there are %" PRIu64
                        " frames of %u lines",
                        path, row, v[FRAME], v[LINE], t->r->n, t->r->height);
    t->shifts[(uint64_t)v[FRAME] * t->r->height + (uint32_t)v[LINE]] =
        (struct oct_strip){(float)v[DY], (float)v[DX], 1, true};
    return OCT_OK;
}

/* Lines between those that are given. */
static void fill_frame(struct oct_strip *shifts, uint32_t height)
{
    int64_t before = -1;
    for (uint32_t y = 0; y <= height; y++) {
        if (y < height && !shifts[y].ok)
            continue;
        if (before < 0 && y == height)
            return; /* none is given */
        for (int64_t k = before + 1; k < y; k++) {
            const struct oct_strip *a = &shifts[before < 0 ? y : before];
            const struct oct_strip *b = &shifts[y == height ? before : y];
            float part = a == b ? 0 : (float)(k - before) / (float)(y - before);
            shifts[k] = (struct oct_strip){a->dy + part * (b->dy - a->dy),
                                           a->dx + part * (b->dx - a->dx), 1, true};
        }
        before = y;
    }
}

enum oct_err oct_register_read_shifts(const struct oct_register *r, struct oct_strip **shifts,
                                      struct oct_error *err)
{
    const char *const *cells;
    unsigned n;
    uint64_t n_rows = 0;
    struct table t = {.r = r};
    *shifts = t.shifts = oct_alloc(r->n * r->height, sizeof(*t.shifts));
    enum oct_err e = oct_csv_open(&t.csv, r->given.shifts, err);
    while (!e && !(e = oct_csv_next(t.csv, &cells, &n, err)) && n > 0)
        e = n_rows++ == 0 ? read_header(&t, cells, n, err) : read_row(&t, cells, n, err);
    oct_csv_close(t.csv);
    if (!e && n_rows < 2)
        e = oct_fail(err, OCT_E_FORMAT, "%s: no shifts in it", r->given.shifts);
    for (uint64_t i = 0; i < r->n && !e; i++)
        fill_frame(t.shifts + i * r->height, r->height);
    return e;
}
