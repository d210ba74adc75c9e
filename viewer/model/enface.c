#include "viewer/model/enface.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N_BINS 1024u

void oct_view_enface_finish(struct oct_view_enface *e)
{
    free(e->value);
    free(e->row_serial);
    memset(e, 0, sizeof(*e));
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static float *row_of(struct oct_view_enface *e, enum oct_view_projection p, uint32_t row)
{
    return e->value + ((size_t)p * e->n_rows + row) * e->n_columns;
}

const float *oct_view_enface_row(const struct oct_view_enface *e, enum oct_view_projection p,
                                 uint32_t row)
{
    return e->value + ((size_t)p * e->n_rows + row) * e->n_columns;
}

static bool resize(struct oct_view_enface *e, uint32_t n_bscans, uint32_t n_lines)
{
    uint64_t serial = e->serial;
    uint32_t n_rows = smaller(n_bscans, OCT_VIEW_ENFACE_MOST);
    uint32_t n_columns = smaller(n_lines, OCT_VIEW_ENFACE_MOST);
    size_t n = (size_t)OCT_VIEW_N_PROJECTIONS * n_rows * n_columns;

    oct_view_enface_finish(e);
    e->value = malloc(n * sizeof(*e->value));
    e->row_serial = calloc(n_rows, sizeof(*e->row_serial));
    e->serial = serial + 1;
    if (!e->value || !e->row_serial) {
        oct_view_enface_finish(e);
        return false;
    }
    for (size_t i = 0; i < n; i++)
        e->value[i] = NAN;
    e->n_rows = n_rows;
    e->n_columns = n_columns;
    e->n_bscans = n_bscans;
    e->n_lines = n_lines;
    return true;
}

/* How many B-scans to make room for: what is told, or, untold, powers of two that hold them. */
static uint32_t room_for(const struct oct_view_enface *e, uint32_t bscan, uint32_t n_bscans)
{
    uint32_t room = e->n_bscans < 64 ? 64 : e->n_bscans;

    if (n_bscans > bscan)
        return n_bscans;
    while (room <= bscan && room < UINT32_MAX / 2)
        room *= 2;
    return room;
}

/* ---- an A-line becomes a value ---- */

struct sums {
    double mean, most;
};

static struct sums sum_u8(const uint8_t *pixel, uint32_t n)
{
    uint32_t sum = 0; /* n < 2^24 pixels of 255 */
    uint8_t most = 0;

    for (uint32_t i = 0; i < n; i++) {
        sum += pixel[i];
        most = pixel[i] > most ? pixel[i] : most;
    }
    return (struct sums){sum / (double)n, most};
}

static struct sums sum_f32(const float *pixel, uint32_t n)
{
    double sum = 0, most = -INFINITY;
    uint32_t n_finite = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (!isfinite(pixel[i]))
            continue;
        sum += (double)pixel[i];
        most = (double)pixel[i] > most ? (double)pixel[i] : most;
        n_finite++;
    }
    return n_finite ? (struct sums){sum / n_finite, most} : (struct sums){NAN, NAN};
}

static struct sums sum_line(const struct oct_view_picture *picture, uint32_t line, uint32_t first,
                            uint32_t n)
{
    const struct oct_picture_header *h = &picture->header;
    size_t at = (size_t)line * h->depth + first;

    if (h->sample_type == OCT_SAMPLE_F32)
        return sum_f32((const float *)picture->pixels + at, n);
    struct sums s = sum_u8((const uint8_t *)picture->pixels + at, n);
    double step = (h->hi - h->lo) / 255.0;
    return (struct sums){h->lo + s.mean * step, h->lo + s.most * step};
}

static void cut(struct oct_view_slab slab, uint32_t depth, uint32_t *first, uint32_t *n)
{
    double a = slab.first * depth, b = slab.last * depth;

    *first = a > 0 ? smaller((uint32_t)a, depth - 1) : 0;
    uint32_t last = b > *first ? smaller((uint32_t)ceil(b), depth) : *first + 1;
    *n = last > *first ? last - *first : 1;
}

static uint32_t line_of(const struct oct_view_enface *e, uint32_t column)
{
    return (uint32_t)((uint64_t)column * e->n_lines / e->n_columns);
}

static bool find_row(const struct oct_view_enface *e, uint32_t bscan, uint32_t *row)
{
    if (bscan >= e->n_bscans || e->n_rows == 0)
        return false;
    *row = (uint32_t)((uint64_t)bscan * e->n_rows / e->n_bscans);
    return true;
}

void oct_view_enface_add(struct oct_view_enface *e, const struct oct_view_picture *picture,
                         uint32_t n_bscans, struct oct_view_slab slab)
{
    const struct oct_picture_header *h = &picture->header;
    uint32_t wanted = room_for(e, h->bscan, n_bscans), row, first, n;

    if ((wanted != e->n_bscans || h->n_lines != e->n_lines) && !resize(e, wanted, h->n_lines))
        return;
    if (!find_row(e, h->bscan, &row))
        return;
    cut(slab, h->depth, &first, &n);
    for (uint32_t c = 0; c < e->n_columns; c++) {
        struct sums all = sum_line(picture, line_of(e, c), 0, h->depth);
        row_of(e, OCT_VIEW_MEAN, row)[c] = (float)all.mean;
        row_of(e, OCT_VIEW_MAX, row)[c] = (float)all.most;
        row_of(e, OCT_VIEW_SLAB, row)[c] = (float)sum_line(picture, line_of(e, c), first, n).mean;
    }
    e->row_serial[row] = ++e->serial;
    e->newest_row = row;
    e->volume = h->volume;
}

void oct_view_enface_add_slab(struct oct_view_enface *e, const struct oct_view_picture *picture,
                              struct oct_view_slab slab)
{
    const struct oct_picture_header *h = &picture->header;
    uint32_t row, first, n;

    if (h->n_lines != e->n_lines || !find_row(e, h->bscan, &row))
        return;
    cut(slab, h->depth, &first, &n);
    for (uint32_t c = 0; c < e->n_columns; c++)
        row_of(e, OCT_VIEW_SLAB, row)[c] = (float)sum_line(picture, line_of(e, c), first, n).mean;
    e->row_serial[row] = ++e->serial;
}

void oct_view_enface_copy(struct oct_view_enface *copy, const struct oct_view_enface *e)
{
    if (copy->n_bscans != e->n_bscans || copy->n_lines != e->n_lines || !copy->value) {
        if (e->n_rows == 0 || !resize(copy, e->n_bscans, e->n_lines))
            return;
        copy->serial = 0;
    }
    for (uint32_t row = 0; row < e->n_rows; row++) {
        if (e->row_serial[row] <= copy->serial)
            continue;
        for (int p = 0; p < OCT_VIEW_N_PROJECTIONS; p++)
            memcpy(row_of(copy, (enum oct_view_projection)p, row),
                   oct_view_enface_row(e, (enum oct_view_projection)p, row),
                   e->n_columns * sizeof(*e->value));
        copy->row_serial[row] = e->row_serial[row];
    }
    copy->serial = e->serial;
    copy->newest_row = e->newest_row;
    copy->volume = e->volume;
}

/* ---- its contrast ---- */

static double percentile(const uint32_t bins[N_BINS], uint32_t total, double share)
{
    double wanted = share * total, seen = 0;

    for (unsigned i = 0; i < N_BINS; i++) {
        seen += bins[i];
        if (seen >= wanted)
            return i / (N_BINS - 1.0);
    }
    return 1;
}

bool oct_view_enface_limits(const struct oct_view_enface *e, enum oct_view_projection p, double *lo,
                            double *hi)
{
    uint32_t bins[N_BINS] = {0}, total = 0;
    size_t n = (size_t)e->n_rows * e->n_columns;
    const float *value = n ? oct_view_enface_row(e, p, 0) : NULL;
    double least = INFINITY, most = -INFINITY;

    for (size_t i = 0; i < n; i++) {
        if (!isfinite(value[i]))
            continue;
        least = fmin(least, (double)value[i]);
        most = fmax(most, (double)value[i]);
    }
    if (!(most >= least))
        return false;
    double range = fmax(most - least, 1e-9 + 1e-9 * fabs(most));
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(value[i]))
            continue;
        unsigned bin = (unsigned)(((double)value[i] - least) / range * (N_BINS - 1));
        bins[bin < N_BINS ? bin : N_BINS - 1]++;
        total++;
    }
    *lo = least + percentile(bins, total, 0.01) * range;
    *hi = least + percentile(bins, total, 0.995) * range;
    if (!(*hi > *lo))
        *hi = *lo + range;
    return true;
}
