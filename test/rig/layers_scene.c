#include "test/rig/layers_scene.h"

#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ILM_PX 90.0
#define RPE_BAND_PX 10.0

void layers_scene_open(struct layers_scene *s, enum oct_sample_type type, bool is_db)
{
    *s = (struct layers_scene){
        .form = {.name = "bscan",
                 .quantity = is_db ? OCT_QUANTITY_INTENSITY_DB : OCT_QUANTITY_INTENSITY,
                 .type = type,
                 .rank = 2,
                 .dims = {LAYERS_LINES, LAYERS_DEPTH},
                 .spacing_um = {LAYERS_LINE_UM, LAYERS_DEPTH_UM},
                 .axes = {"line", "depth"}},
        .rpe = 1,
    };
    s->pixels = malloc((size_t)LAYERS_LINES * LAYERS_DEPTH * sizeof(float));
    assert_non_null(s->pixels);
}

void layers_scene_close(struct layers_scene *s)
{
    free(s->pixels);
}

double layers_scene_ilm(const struct layers_scene *s, uint32_t line)
{
    return ILM_PX + s->shift_px + 8 * sin(line / 15.0) + 0.2 * s->bscan.info.bscan;
}

double layers_scene_rpe(const struct layers_scene *s, uint32_t line)
{
    return layers_scene_ilm(s, line) + LAYERS_THICK_PX + 3 * cos(line / 20.0);
}

/* What the outer retina adds, dB, `below` px below the RPE's border: its band, the ellipsoid zone
 * and above it the outer nuclear layer. */
static double bands_db(double below, double rpe_db, double share)
{
    if (below < 0 && below >= -RPE_BAND_PX)
        return rpe_db * share;
    if (below < -16 && below >= -22)
        return 8 * share;
    return below < -22 && below >= -50 ? -8 * share : 0;
}

/* dB above the vitreous, `z` px below the ILM; the RPE's border lies at thick. */
static double retina_db(const struct layers_scene *s, double z, double thick)
{
    const double below = z - thick;
    const double db = z < 0 ? 0 : z < thick ? 16 : 10 * exp(-below / 80);
    return z < 0 ? 0
                 : db + bands_db(below, 14, s->rpe) + bands_db(below - s->deeper_px, 20, s->deeper);
}

static double light_db(const struct layers_scene *s, uint32_t line, uint32_t d, struct dice *dice)
{
    const double ilm = layers_scene_ilm(s, line), thick = layers_scene_rpe(s, line) - ilm;
    const double noise_db = 20 + dice_below(dice, 1000) * 0.012;
    return s->is_blink ? noise_db : noise_db + retina_db(s, d - ilm, thick);
}

static void write_pixel(struct layers_scene *s, size_t at, double db, bool is_missing)
{
    const bool is_db = s->form.quantity == OCT_QUANTITY_INTENSITY_DB;
    const double value = is_db ? db : pow(10, db / 10);
    if (s->form.type == OCT_SAMPLE_F32) {
        ((float *)s->pixels)[at] = is_missing ? (is_db ? -120 : 0) : (float)value;
        return;
    }
    const double share = (value - s->bscan.lo) / (s->bscan.hi - s->bscan.lo);
    ((uint8_t *)s->pixels)[at] = is_missing ? 0 : (uint8_t)fmin(fmax(round(share * 255), 0), 255);
}

void layers_scene_next(struct layers_scene *s)
{
    struct dice dice = {s->n * 7919 + 1};
    const bool is_db = s->form.quantity == OCT_QUANTITY_INTENSITY_DB;
    s->bscan = (struct oct_image_frame){.form = &s->form,
                                        .whole = true,
                                        .lo = is_db ? LAYERS_LO : 0,
                                        .hi = is_db ? LAYERS_HI : pow(10, LAYERS_HI / 10),
                                        .pixels = s->pixels};
    memcpy(s->bscan.dims, s->form.dims, sizeof(s->form.dims));
    s->bscan.info.number = s->bscan.info.id = s->n;
    s->bscan.info.volume = s->n / LAYERS_BSCANS;
    s->bscan.info.bscan = (uint32_t)(s->n % LAYERS_BSCANS);
    s->bscan.info.missing_lines = s->n_missing;
    s->n++;
    for (uint32_t j = 0; j < LAYERS_LINES; j++) {
        const bool is_missing = j - s->missing_first < s->n_missing; /* modulo 2^32 */
        for (uint32_t d = 0; d < LAYERS_DEPTH; d++)
            write_pixel(s, (size_t)j * LAYERS_DEPTH + d, light_db(s, j, d, &dice), is_missing);
    }
}
