/* A mirror's axial peak and the roll-off over depth; the profile draws them (draw/plots.c). */
#include "viewer/draw/pen.h"

#include <math.h>
#include <stdio.h>

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

void oct_view_rolloff_set(struct oct_view_rolloff *rolloff, const struct oct_view_image *table)
{
    const struct oct_image_header *h = &table->header;
    const double state = number(h, "state");
    const float *row = table->values;
    struct oct_view_rolloff next = {
        .state = state >= 0 && state < OCT_MIRROR_N_STATES ? (enum oct_mirror_state)state
                                                           : OCT_MIRROR_WEAK,
        .depth_px = number(h, "depth_px"),
        .depth_um = number(h, "depth_um"),
        .peak_db = number(h, "peak_db"),
        .fwhm_px = number(h, "fwhm_px"),
        .fwhm_um = number(h, "fwhm_um"),
        .snr_db = number(h, "snr_db"),
        .db_per_mm = number(h, "db_per_mm"),
        .db_per_100px = number(h, "db_per_100px"),
        .minus_6db_px = number(h, "minus_6db_px"),
        .minus_6db_um = number(h, "minus_6db_um"),
        .of = oct_view_of_image(h),
    };
    if (check(h, NULL))
        return;
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

static void take(struct oct_view_model *model, struct oct_view_image *image)
{
    oct_view_rolloff_set(&model->rolloff, image);
}

bool oct_view_model_has_rolloff(const struct oct_view_model *model)
{
    return model->settings.rolloff && oct_view_overlay_is_drawn(model, &model->rolloff.of);
}

/* ---- words ---- */

static const char *const why_no_mirror[OCT_MIRROR_N_STATES] = {
    [OCT_MIRROR_WEAK] = "nothing above the noise",
    [OCT_MIRROR_AT_END] = "its peak is cut off at the end of the depth",
    [OCT_MIRROR_MANY] = "more than one reflector",
    [OCT_MIRROR_HARMONIC] = "a line two or three times as deep: is the camera saturated?",
    [OCT_MIRROR_MISSING] = "A-lines are missing",
};

unsigned oct_view_rolloff_text(const struct oct_view_model *model, struct oct_view_phrase lines[2])
{
    const struct oct_view_rolloff *r = &model->rolloff;
    char um[32] = "", where[64] = "";
    if (!oct_view_model_has_rolloff(model))
        return 0;
    if (isfinite(r->fwhm_um))
        snprintf(um, sizeof(um), " %.2f \u00b5m,", r->fwhm_um);
    if (r->state != OCT_MIRROR_FOUND)
        oct_view_phrase_set(&lines[0], OCT_TONE_DIM, "no mirror: %s", why_no_mirror[r->state]);
    else
        oct_view_phrase_set(&lines[0], OCT_TONE_PLAIN, "%.1f px: FWHM %.2f px,%s SNR %.1f dB",
                            r->depth_px, r->fwhm_px, um, r->snr_db);
    if (!isfinite(r->db_per_100px))
        return 1;
    if (isfinite(r->db_per_mm) && isfinite(r->minus_6db_um))
        snprintf(where, sizeof(where), ", -6 dB at %.2f mm", r->minus_6db_um / 1000);
    else if (isfinite(r->minus_6db_px))
        snprintf(where, sizeof(where), ", -6 dB at %.0f px", r->minus_6db_px);
    oct_view_phrase_set(&lines[1], OCT_TONE_PLAIN, "%.2f dB/%s%s, %u points",
                        isfinite(r->db_per_mm) ? r->db_per_mm : r->db_per_100px,
                        isfinite(r->db_per_mm) ? "mm" : "100 px", where, r->n);
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
    .take = take,
    .leads = 4,
    .action = OCT_ACTION_ROLLOFF,
    .key = 'Z',
    .setting = offsetof(struct oct_view_settings, rolloff),
    .setting_name = "rolloff",
    .what = "measures no mirror",
    .drawn = "the mirror that octd measures, with its roll-off",
    .not_drawn = "no mirror is drawn",
};
