#include "viewer/model/archive.h"

#include <math.h>

/* A hostile number may be anything; what is kept is finite, and so are differences of it. */
#define MOST 1e9

static double clamp(double value)
{
    return value < -MOST ? -MOST : value > MOST ? MOST : value;
}

static double number(const struct oct_view_image *row, const char *label, double otherwise)
{
    double value = oct_image_header_value(&row->header, row->values, label);
    return isfinite(value) ? clamp(value) : otherwise;
}

static uint64_t count(const struct oct_view_image *row, const char *label, uint64_t otherwise)
{
    double value = number(row, label, -1);
    return value >= 0 ? (uint64_t)value : otherwise;
}

static unsigned marks_of(const struct oct_view_image *row)
{
    return (number(row, "blink", 0) > 0.5 ? OCT_MARK_BLINK : 0u) |
           (number(row, "motion", 0) > 0.5 ? OCT_MARK_MOTION : 0u) |
           (number(row, "missing", 0) > 0.5 ? OCT_MARK_MISSING : 0u);
}

enum oct_err oct_view_quality_check(const struct oct_image_header *header, struct oct_error *err)
{
    uint32_t n_columns =
        header->rank >= 1 && header->rank <= 2 ? header->dims[header->rank - 1] : 0;

    if (header->type != OCT_SAMPLE_F32 || n_columns == 0 || header->n_labels != n_columns ||
        (header->rank == 2 && header->dims[0] > 1))
        return oct_fail(err, OCT_E_FORMAT, "%.40s: a quality is one row of labelled f32 numbers",
                        header->dataset);
    return OCT_OK;
}

static void note(struct oct_view_quality *q, uint64_t bin, const struct oct_view_image *row)
{
    struct oct_view_moment *m = &q->moment[bin % OCT_VIEW_TIMELINE];

    if (!q->known || m->bin != bin)
        *m = (struct oct_view_moment){bin, NAN, NAN, 0};
    /* fminf ignores a NaN beside a number. */
    m->snr_db = fminf(m->snr_db, (float)number(row, "snr_db", NAN));
    m->sharpness = fminf(m->sharpness, (float)number(row, "sharpness", NAN));
    m->marks |= q->marks;
}

void oct_view_quality_add(struct oct_view_quality *q, const struct oct_view_image *row)
{
    if (oct_view_quality_check(&row->header, NULL) || oct_view_image_bytes(&row->header) == 0)
        return;
    q->marks = marks_of(row);
    q->snr_db = number(row, "snr_smooth_db", q->snr_db);
    q->sharpness = number(row, "sharpness_smooth", q->sharpness);
    q->level_db = number(row, "level_db", q->level_db);
    q->n_blinks = count(row, "blinks", q->n_blinks);
    q->n_motions = count(row, "motions", q->n_motions);
    note(q, row->arrival_ns / OCT_VIEW_TIMELINE_BIN_NS, row);
    q->known = true;
}

const struct oct_view_moment *oct_view_quality_moment(const struct oct_view_quality *q,
                                                      uint64_t bin)
{
    const struct oct_view_moment *m = &q->moment[bin % OCT_VIEW_TIMELINE];
    return q->known && m->bin == bin ? m : NULL;
}
