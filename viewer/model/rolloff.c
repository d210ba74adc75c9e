#include "viewer/model/overlay.h"

#include <math.h>
#include <stdio.h>

#define MOST 1e9 /* hostile numbers: differences of what is kept are finite */

enum oct_err oct_view_rolloff_check(const struct oct_image_header *header, struct oct_error *err)
{
    if (header->type != OCT_SAMPLE_F32 || header->rank != 2 || header->dims[1] == 0 ||
        header->n_labels != header->dims[1] || header->dims[0] > OCT_ROLLOFF_MOST_POINTS)
        return oct_fail(err, OCT_E_FORMAT,
                        "%.40s: a roll-off is a table of labelled f32 numbers, of %u rows at most",
                        header->dataset, OCT_ROLLOFF_MOST_POINTS);
    return OCT_OK;
}

static double number(const struct oct_image_header *h, const char *name)
{
    const double value = oct_image_header_number(h, name, 0);
    return fabs(value) <= MOST ? value : NAN;
}

static void read_numbers(struct oct_view_rolloff *r, const struct oct_image_header *h)
{
    const double state = number(h, "state");
    r->state =
        state >= 0 && state < OCT_MIRROR_N_STATES ? (enum oct_mirror_state)state : OCT_MIRROR_WEAK;
    r->depth_px = number(h, "depth_px");
    r->depth_um = number(h, "depth_um");
    r->peak_db = number(h, "peak_db");
    r->fwhm_px = number(h, "fwhm_px");
    r->fwhm_um = number(h, "fwhm_um");
    r->snr_db = number(h, "snr_db");
    r->db_per_mm = number(h, "db_per_mm");
    r->db_per_100px = number(h, "db_per_100px");
    r->minus_6db_px = number(h, "minus_6db_px");
    r->minus_6db_um = number(h, "minus_6db_um");
}

void oct_view_rolloff_set(struct oct_view_rolloff *rolloff, const struct oct_view_image *table)
{
    const struct oct_image_header *h = &table->header;
    const float *row = table->values;
    struct oct_view_rolloff next = {.frame_num = h->frame_num};

    if (oct_view_rolloff_check(h, NULL))
        return;
    read_numbers(&next, h);
    snprintf(next.acquisition_id, sizeof(next.acquisition_id), "%s", h->acquisition_id);
    for (uint32_t i = 0; i < h->dims[0]; i++, row += h->dims[1]) {
        const double depth_px = oct_image_header_value(h, row, "depth_px");
        const double peak_db = oct_image_header_value(h, row, "peak_db");
        if (!(depth_px >= 0 && depth_px < MOST) || !(fabs(peak_db) < MOST))
            continue;
        next.points[next.n].depth_px = (float)depth_px;
        next.points[next.n].peak_db = (float)peak_db;
        next.n++;
    }
    *rolloff = next;
}

/* The line goes through the middle of the points. */
double oct_view_rolloff_line(const struct oct_view_rolloff *rolloff, double depth_px)
{
    double x = 0, y = 0;
    for (unsigned i = 0; i < rolloff->n; i++) {
        x += (double)rolloff->points[i].depth_px / rolloff->n;
        y += (double)rolloff->points[i].peak_db / rolloff->n;
    }
    return rolloff->n ? y + rolloff->db_per_100px / 100 * (depth_px - x) : NAN;
}
