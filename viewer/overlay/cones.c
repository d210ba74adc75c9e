/* The cone spacing, in words on the en face picture. */
#include "viewer/draw/pen.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LEAST_UM 1.0
#define MOST_UM 1000.0
#define MOST_PER_MM2 2e6 /* of LEAST_UM it is 1.15e6 */

static enum oct_err check(const struct oct_image_header *header, struct oct_error *err)
{
    if (!oct_view_image_is_row(header))
        return oct_fail(err, OCT_E_FORMAT,
                        "%.40s: a cone spacing is one row of labelled f32 numbers",
                        header->dataset);
    return OCT_OK;
}

void oct_view_cones_set(struct oct_view_cones *cones, const struct oct_view_image *row)
{
    const struct oct_image_header *h = &row->header;
    if (check(h, NULL) || oct_view_image_bytes(h) == 0)
        return;
    double um = oct_image_header_value(h, row->values, "spacing_um");
    double per_mm2 = oct_image_header_value(h, row->values, "cells_per_mm2");
    double strength = oct_image_header_value(h, row->values, "strength");
    *cones = (struct oct_view_cones){.known = true, .volume = h->volume};
    /* A number that is none compares false. */
    cones->has_ring = um >= LEAST_UM && um <= MOST_UM && per_mm2 > 0 && per_mm2 < MOST_PER_MM2 &&
                      strength > 0 && strength <= 1;
    if (cones->has_ring) {
        cones->spacing_um = um;
        cones->per_mm2 = per_mm2;
        cones->strength = strength;
    }
    snprintf(cones->acquisition_id, sizeof(cones->acquisition_id), "%s", h->acquisition_id);
}

/* ---- words ---- */

/* Three digits of it, the others 0, with commas between thousands: "65,500". */
static void density_text(double per_mm2, char *text, size_t n_bytes)
{
    double step = per_mm2 >= 1 ? pow(10, floor(log10(per_mm2)) - 2) : 1;
    uint64_t n = (uint64_t)(round(per_mm2 / fmax(step, 1)) * fmax(step, 1));
    if (n >= 1000000)
        snprintf(text, n_bytes, "%" PRIu64 ",%03" PRIu64 ",%03" PRIu64, n / 1000000,
                 n / 1000 % 1000, n % 1000);
    else if (n >= 1000)
        snprintf(text, n_bytes, "%" PRIu64 ",%03" PRIu64, n / 1000, n % 1000);
    else
        snprintf(text, n_bytes, "%" PRIu64, n);
}

void oct_view_cones_text(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    const struct oct_view_cones *c = oct_view_overlay_state(model, &oct_view_overlay_cones);
    const uint64_t volume = model->enface.volume; /* while it is scanned, the one before is meant */
    bool has_scale = model->daemon.lateral_um > 0 && model->daemon.slow_um > 0;
    char density[32], ago[40] = "";
    oct_view_phrase_set(phrase, OCT_TONE_PLAIN, "%s", "");
    if (!c->known || !has_scale || !model->has_picture ||
        strcmp(c->acquisition_id, model->shown.header.acquisition_id) != 0)
        return;
    if (!c->has_ring) {
        oct_view_phrase_set(phrase, OCT_TONE_DIM, "cones: no ring");
        return;
    }
    density_text(c->per_mm2, density, sizeof(density));
    if (volume > c->volume + 1)
        snprintf(ago, sizeof(ago), ", %" PRIu64 " volumes ago", volume - c->volume);
    oct_view_phrase_set(phrase, ago[0] ? OCT_TONE_DIM : OCT_TONE_PLAIN,
                        "cones %.1f um %s/mm2 (%.2f)%s", c->spacing_um, density, c->strength, ago);
}

/* Where the picture has room for it. */
static bool draw_enface(struct oct_draw *draw, const struct oct_view_model *model,
                        struct oct_view_rect r, int line)
{
    struct oct_view_phrase phrase;
    oct_view_cones_text(model, &phrase);
    if (!phrase.text[0] || r.h <= 6 * oct_draw_line_height(draw, OCT_TEXT_NORMAL))
        return false;
    oct_draw_words_below(draw, r, line, phrase.text, oct_draw_tone(phrase.tone));
    return true;
}

static void take(struct oct_view_model *model, struct oct_view_image *image)
{
    oct_view_cones_set(oct_view_overlay_state(model, &oct_view_overlay_cones), image);
}

const struct oct_view_overlay oct_view_overlay_cones = {
    .topic = "cones",
    .check = check,
    .take = take,
    .draw_enface = draw_enface,
    .state_bytes = sizeof(struct oct_view_cones),
};
