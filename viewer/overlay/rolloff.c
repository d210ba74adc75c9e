/* A mirror's axial peak and the roll-off over depth; the profile draws them (draw/plots.c). */
#include "pipeline/base/clock.h"
#include "viewer/draw/pen.h"
#include "viewer/model/model.h"
#include "viewer/model/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 1e9 /* hostile numbers: differences of what is kept are finite */

static enum oct_err check(const struct oct_image_header *header, struct oct_error *err)
{
    if (!oct_view_image_is_table(header, OCT_ROLLOFF_MOST_POINTS))
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

    if (check(h, NULL))
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

/* ---- of the shown picture ---- */

void oct_view_model_offer_rolloff(struct oct_view_model *model, const struct oct_view_image *table)
{
    if (!model->settings.rolloff || !oct_view_overlay_takes(model, &table->header))
        return;
    oct_view_rolloff_set(&model->rolloff, table);
    oct_view_overlay_lead(model, OCT_OVERLAY_ROLLOFF, &table->header, table->arrival_ns);
}

bool oct_view_model_has_rolloff(const struct oct_view_model *model)
{
    const struct oct_view_rolloff *r = &model->rolloff;
    return model->settings.rolloff &&
           oct_view_overlay_is_drawn(model, r->acquisition_id, r->frame_num);
}

/* ---- words ---- */

static const char *const why_no_mirror[OCT_MIRROR_N_STATES] = {
    [OCT_MIRROR_WEAK] = "nothing above the noise",
    [OCT_MIRROR_AT_END] = "its peak is cut off at the end of the depth",
    [OCT_MIRROR_MANY] = "more than one reflector",
    [OCT_MIRROR_HARMONIC] = "a line two or three times as deep: is the camera saturated?",
    [OCT_MIRROR_MISSING] = "A-lines are missing",
};

static void tell_peak(const struct oct_view_rolloff *r, struct oct_view_phrase *line)
{
    if (r->state != OCT_MIRROR_FOUND)
        oct_view_phrase_set(line, OCT_TONE_DIM, "no mirror: %s", why_no_mirror[r->state]);
    else if (isfinite(r->fwhm_um))
        oct_view_phrase_set(line, OCT_TONE_PLAIN,
                            "%.1f px: FWHM %.2f px, %.2f \u00b5m, SNR %.1f dB", r->depth_px,
                            r->fwhm_px, r->fwhm_um, r->snr_db);
    else
        oct_view_phrase_set(line, OCT_TONE_PLAIN, "%.1f px: FWHM %.2f px, SNR %.1f dB", r->depth_px,
                            r->fwhm_px, r->snr_db);
}

static void tell_rolloff(const struct oct_view_rolloff *r, struct oct_view_phrase *line)
{
    char where[64] = "";
    if (isfinite(r->db_per_mm) && isfinite(r->minus_6db_um))
        snprintf(where, sizeof(where), ", -6 dB at %.2f mm", r->minus_6db_um / 1000);
    else if (isfinite(r->minus_6db_px))
        snprintf(where, sizeof(where), ", -6 dB at %.0f px", r->minus_6db_px);
    oct_view_phrase_set(line, OCT_TONE_PLAIN, "%.2f dB/%s%s, %u points",
                        isfinite(r->db_per_mm) ? r->db_per_mm : r->db_per_100px,
                        isfinite(r->db_per_mm) ? "mm" : "100 px", where, r->n);
}

unsigned oct_view_rolloff_text(const struct oct_view_model *model, struct oct_view_phrase lines[2])
{
    const struct oct_view_rolloff *r = &model->rolloff;
    if (!oct_view_model_has_rolloff(model))
        return 0;
    tell_peak(r, &lines[0]);
    if (!isfinite(r->db_per_100px))
        return 1;
    tell_rolloff(r, &lines[1]);
    return 2;
}

static bool wanted(const struct oct_view_model *model)
{
    return model->settings.arrangement == OCT_ARRANGEMENT_FOUR;
}

const struct oct_view_overlay oct_view_overlay_rolloff = {
    .topic = "rolloff",
    .check = check,
    .wanted = wanted,
    .take = oct_view_model_offer_rolloff,
    .action = OCT_ACTION_ROLLOFF,
    .key = 'Z',
    .setting = offsetof(struct oct_view_settings, rolloff),
    .setting_name = "rolloff",
    .what = "measures no mirror",
    .drawn = "the mirror that octd measures, with its roll-off",
    .not_drawn = "no mirror is drawn",
};
