/* The layers that octd finds, over the B-scan, and how far they lie apart. */
#include "pipeline/base/clock.h"
#include "viewer/draw/pen.h"
#include "viewer/model/model.h"
#include "viewer/model/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DEPTH 1e6f

void oct_view_layers_finish(struct oct_view_layers *layers)
{
    free(layers->position[0]);
    *layers = (struct oct_view_layers){.n_lines = 0};
}

static enum oct_err check(const struct oct_image_header *header, struct oct_error *err)
{
    if (header->type != OCT_SAMPLE_F32 || header->rank != 2 ||
        header->dims[0] != OCT_SURFACES_N_ROWS || header->dims[1] == 0)
        return oct_fail(err, OCT_E_FORMAT, "%.40s: layers of a B-scan are f32 of %d rows",
                        header->dataset, (int)OCT_SURFACES_N_ROWS);
    return OCT_OK;
}

static bool resize(struct oct_view_layers *layers, uint32_t n_lines)
{
    float *block;

    if (n_lines == layers->n_lines)
        return true;
    block = calloc((size_t)OCT_N_LAYERS * n_lines, sizeof(*block));
    if (!block)
        return false;
    oct_view_layers_finish(layers);
    for (unsigned layer = 0; layer < OCT_N_LAYERS; layer++)
        layers->position[layer] = block + (size_t)layer * n_lines;
    layers->n_lines = n_lines;
    return true;
}

void oct_view_layers_set(struct oct_view_layers *layers, const struct oct_view_image *image)
{
    static const enum oct_surfaces_row rows[OCT_N_LAYERS] = {OCT_SURFACES_ILM, OCT_SURFACES_RPE};
    const struct oct_image_header *h = &image->header;

    if (check(h, NULL) || !resize(layers, h->dims[1]))
        return;
    for (unsigned layer = 0; layer < OCT_N_LAYERS; layer++) {
        const float *from = (const float *)image->values + (size_t)rows[layer] * h->dims[1];
        for (uint32_t j = 0; j < h->dims[1]; j++) /* a NaN compares false */
            layers->position[layer][j] = from[j] >= 0 && from[j] < MOST_DEPTH ? from[j] : NAN;
    }
    layers->frame_num = h->frame_num;
    snprintf(layers->acquisition_id, sizeof(layers->acquisition_id), "%s", h->acquisition_id);
}

static uint32_t line_at(const struct oct_view_layers *layers, double line)
{
    return line > 0 ? (uint32_t)fmin(line, layers->n_lines - 1.0) : 0;
}

double oct_view_layers_thickness(const struct oct_view_layers *layers, double line_a, double line_b,
                                 double *found)
{
    double sum = 0;
    uint32_t n = 0, first, last;

    if (found)
        *found = 0;
    if (layers->n_lines == 0)
        return NAN;
    first = line_at(layers, fmin(line_a, line_b));
    last = line_at(layers, fmax(line_a, line_b));
    for (uint32_t j = first; j <= last; j++) {
        const double d =
            (double)layers->position[OCT_LAYER_RPE][j] - (double)layers->position[OCT_LAYER_ILM][j];
        sum += isnan(d) ? 0 : d;
        n += isnan(d) ? 0 : 1;
    }
    if (found)
        *found = (double)n / (last - first + 1);
    return n ? sum / n : NAN;
}

/* ---- of the shown picture ---- */

void oct_view_model_offer_layers(struct oct_view_model *model, const struct oct_view_image *image)
{
    if (!model->settings.layers || !oct_view_overlay_takes(model, &image->header))
        return;
    oct_view_layers_set(&model->layers, image);
    oct_view_overlay_lead(model, OCT_OVERLAY_LAYERS, &image->header, image->arrival_ns);
}

bool oct_view_model_has_layers(const struct oct_view_model *model)
{
    const struct oct_view_layers *l = &model->layers;
    return model->settings.layers && l->n_lines > 0 &&
           oct_view_overlay_is_drawn(model, l->acquisition_id, l->frame_num);
}

void oct_view_model_thickness_text(const struct oct_view_model *model, double line_a, double line_b,
                                   char *text, size_t n_bytes)
{
    const double um = model->daemon.axial_um;
    const struct oct_view_layers *l = &model->layers;
    double px = NAN, lines, depth;

    if (oct_view_model_has_layers(model) && l->n_lines == model->shown.header.n_lines &&
        oct_view_overlay_belongs(model, l->acquisition_id, l->frame_num, &lines, &depth))
        px = oct_view_layers_thickness(l, line_a - lines, line_b - lines, NULL);
    if (isnan(px))
        snprintf(text, n_bytes, "%s", "");
    else if (isfinite(um))
        snprintf(text, n_bytes, "; ILM to RPE %.1f \u00b5m", px * um);
    else
        snprintf(text, n_bytes, "; ILM to RPE %.1f pixels", px);
}

void oct_view_layers_text(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    const double um = model->daemon.axial_um;
    double found, px;

    oct_view_phrase_set(phrase, OCT_TONE_PLAIN, "%s", "");
    if (!oct_view_model_has_layers(model))
        return;
    px = oct_view_layers_thickness(&model->layers, 0, model->layers.n_lines, &found);
    if (isnan(px))
        oct_view_phrase_set(phrase, OCT_TONE_DIM, "layers: none found");
    else if (found < 0.995)
        oct_view_phrase_set(phrase, OCT_TONE_PLAIN, "ILM to RPE %.0f %s in %.0f %% of the A-lines",
                            isfinite(um) ? px * um : px, isfinite(um) ? "\u00b5m" : "pixels",
                            100 * found);
    else
        oct_view_phrase_set(phrase, OCT_TONE_PLAIN, "ILM to RPE %.0f %s",
                            isfinite(um) ? px * um : px, isfinite(um) ? "\u00b5m" : "pixels");
}

/* ---- drawing ---- */

/* A line from A-line to A-line where both are found, twice as thick as a pixel's; p is the place
 * of their B-scan. */
static void draw_layer(struct oct_draw *draw, struct oct_view_rectf p, const float *position,
                       uint32_t n_lines, uint32_t depth, uint32_t rgb)
{
    const double dx = p.w / n_lines, dy = p.h / depth;

    for (uint32_t j = 0; j < n_lines; j++) {
        const uint32_t next = j + 1 < n_lines ? j + 1 : j;
        const double x = p.x + (j + 0.5) * dx, y = p.y + ((double)position[j] + 0.5) * dy;
        const double to_y = p.y + ((double)position[next] + 0.5) * dy;
        if (!(position[j] < (float)depth)) /* nor is a NaN */
            continue;
        const bool goes_on = next > j && position[next] < (float)depth;
        for (int thick = 0; thick < 2; thick++)
            oct_draw_line(draw, goes_on ? x : x - dx / 2, y + thick, x + (goes_on ? dx : dx / 2),
                          (goes_on ? to_y : y) + thick, rgb, 220);
    }
}

static void draw_layers(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_layers *layers = &model->layers;
    const struct oct_picture_header *h = &model->shown.header;
    const struct oct_view_rect seen = oct_draw_picture_rect(draw);
    struct oct_view_phrase phrase;

    if (!oct_view_model_has_layers(model) || h->n_lines != layers->n_lines)
        return;
    const struct oct_view_rectf place =
        oct_view_overlay_place(draw, model, layers->acquisition_id, layers->frame_num);
    oct_draw_clip(draw, &seen);
    draw_layer(draw, place, layers->position[OCT_LAYER_ILM], h->n_lines, h->depth, RGB_ILM);
    draw_layer(draw, place, layers->position[OCT_LAYER_RPE], h->n_lines, h->depth, RGB_RPE);
    oct_draw_clip(draw, NULL);
    oct_view_layers_text(model, &phrase);
    oct_draw_corner(draw, phrase.text, RGB_ILM);
}

const struct oct_view_overlay oct_view_overlay_layers = {
    .topic = "surfaces",
    .check = check,
    .take = oct_view_model_offer_layers,
    .draw = draw_layers,
    .action = OCT_ACTION_LAYERS,
    .key = 'I',
    .setting = offsetof(struct oct_view_settings, layers),
    .setting_name = "layers",
    .what = "finds no layers",
    .drawn = "ILM and RPE, as octd finds them",
    .not_drawn = "layers are not drawn",
};
