#include "viewer/model/enface.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Values beyond this have no meaning in counts^2 or dB; it keeps hi - lo finite, also as f32. */
#define LIMIT 1e30

const char *const oct_view_projection_keys[OCT_N_PROJECTIONS] = {"mean", "max", "slab"};

void oct_view_enface_finish(struct oct_view_enface *e)
{
    free(e->value);
    free(e->row_serial);
    memset(e, 0, sizeof(*e));
}

enum oct_err oct_view_enface_check(const struct oct_image_header *header, struct oct_error *err)
{
    if (header->type != OCT_SAMPLE_F32 || header->rank != 2 || header->dims[1] == 0)
        return oct_fail(err, OCT_E_FORMAT, "%.40s: an en face picture is f32 of two axes",
                        header->dataset);
    return OCT_OK;
}

const float *oct_view_enface_row(const struct oct_view_enface *e, uint32_t row)
{
    return e->value + (size_t)row * e->n_columns;
}

bool oct_view_enface_resize(struct oct_view_enface *e, uint32_t n_bscans, uint32_t n_lines)
{
    uint64_t serial = e->serial;
    uint32_t n_rows = n_bscans < OCT_VIEW_ENFACE_MOST ? n_bscans : OCT_VIEW_ENFACE_MOST;
    uint32_t n_columns = n_lines < OCT_VIEW_ENFACE_MOST ? n_lines : OCT_VIEW_ENFACE_MOST;
    size_t n = (size_t)n_rows * n_columns;
    oct_view_enface_finish(e);
    e->serial = serial + 1;
    if (n == 0)
        return true;
    e->value = malloc(n * sizeof(*e->value));
    e->row_serial = malloc(n_rows * sizeof(*e->row_serial));
    if (!e->value || !e->row_serial) {
        oct_view_enface_finish(e);
        e->serial = serial + 1;
        return false;
    }
    for (size_t i = 0; i < n; i++)
        e->value[i] = NAN;
    for (uint32_t row = 0; row < n_rows; row++)
        e->row_serial[row] = e->serial;
    e->n_rows = n_rows;
    e->n_columns = n_columns;
    e->n_bscans = n_bscans;
    e->n_lines = n_lines;
    return true;
}

/* ---- thinning ---- */

/* The first of the `n` that falls on the k-th of `kept`. */
static uint32_t first_of(uint32_t k, uint32_t kept, uint32_t n)
{
    return (uint32_t)(((uint64_t)k * n + kept - 1) / kept);
}

/* A row of the thinned picture. Returns whether anything came of it. */
static bool thin_columns(const struct oct_view_enface *e, const float *bscan, float *row)
{
    bool came = false;
    for (uint32_t c = 0; c < e->n_columns; c++) {
        float value = bscan[(uint64_t)c * e->n_lines / e->n_columns];
        row[c] = isfinite(value) ? value : NAN;
        came |= !isnan(row[c]);
    }
    return came;
}

static bool came(const float *row, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!isnan(row[i]))
            return true;
    return false;
}

/* Of the B-scans that fall on a row: the newest one of the scan, else the last one that came. */
static bool thin_row(const struct oct_view_enface *e, const struct oct_view_image *image,
                     uint32_t row, float *to)
{
    const float *values = image->values;
    uint32_t first = first_of(row, e->n_rows, e->n_bscans);
    uint32_t last = first_of(row + 1, e->n_rows, e->n_bscans) - 1, newest = image->header.bscan;
    bool has_any = newest >= first && newest <= last &&
                   thin_columns(e, values + (size_t)newest * e->n_lines, to);
    for (uint32_t b = last + 1; b-- > first && !has_any;)
        has_any = thin_columns(e, values + (size_t)b * e->n_lines, to);
    return has_any;
}

/* ---- the newest image ---- */

void oct_view_enface_set(struct oct_view_enface *e, const struct oct_view_image *image)
{
    const struct oct_image_header *h = &image->header;
    float row[OCT_VIEW_ENFACE_MOST];
    double lo = h->lo, hi = h->hi;
    bool changed = false, stays = false;
    if (oct_view_enface_check(h, NULL))
        return;
    if ((h->dims[0] != e->n_bscans || h->dims[1] != e->n_lines) &&
        !oct_view_enface_resize(e, h->dims[0], h->dims[1]))
        return;
    e->forget |= strcmp(e->unit, h->unit) != 0;
    memcpy(e->unit, h->unit, sizeof(e->unit));
    for (uint32_t r = 0; r < e->n_rows; r++) {
        float *kept = e->value + (size_t)r * e->n_columns;
        if (!thin_row(e, image, r, row) && !e->forget) {
            stays |= came(kept, e->n_columns);
            continue;
        }
        for (uint32_t c = 0; c < e->n_columns && e->keeps_pixels && !e->forget; c++) {
            stays |= isnan(row[c]) && !isnan(kept[c]);
            row[c] = isnan(row[c]) ? kept[c] : row[c];
        }
        if (memcmp(kept, row, e->n_columns * sizeof(*row)) == 0)
            continue;
        memcpy(kept, row, e->n_columns * sizeof(*row));
        e->row_serial[r] = e->serial + 1;
        changed = true;
    }
    e->serial += changed;
    uint64_t n_bscans = e->n_bscans;
    e->volume = h->volume;
    e->newest_bscan = h->bscan;
    e->spacing_um = h->spacing_um[1];
    if (n_bscans > 0)
        e->newest_row =
            (uint32_t)((h->bscan < n_bscans ? h->bscan : n_bscans - 1) * e->n_rows / n_bscans);
    if (stays) /* octd's are of fewer rows, and would jump with every volume */
        oct_enface_limits(e->value, (size_t)e->n_rows * e->n_columns, &lo, &hi);
    e->lo = isfinite(lo) ? fmin(fmax(lo, -LIMIT), LIMIT) : 0;
    hi = isfinite(hi) ? fmin(fmax(hi, -LIMIT), LIMIT) : e->lo;
    const double least = fmax(1e-9, 1e-6 * fabs(e->lo)); /* drawing subtracts lo in f32 */
    e->hi = hi - e->lo < least ? e->lo + least : hi;
    e->forget = false;
    e->arrival_ns = image->arrival_ns;
}
