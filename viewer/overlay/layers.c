/* The layers that octd finds, over the B-scan, and how far they lie apart. */
#include "viewer/draw/pen.h"
#include "viewer/model/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

void oct_view_layers_set(struct oct_view_layers *layers, const struct oct_view_image *image)
{
    const struct oct_image_header *h = &image->header;
    const uint32_t n = h->dims[1];
    if (check(h, NULL))
        return;
    if (n != layers->n_lines) {
        float *block = calloc((size_t)OCT_N_LAYERS * n, sizeof(*block));
        if (!block)
            return;
        oct_view_layers_finish(layers);
        for (unsigned layer = 0; layer < OCT_N_LAYERS; layer++)
            layers->position[layer] = block + (size_t)layer * n;
        layers->n_lines = n;
    }
    for (unsigned layer = 0; layer < OCT_N_LAYERS; layer++) {
        const float *from = (const float *)image->values + (size_t)layer * n;
        for (uint32_t j = 0; j < n; j++) /* a NaN compares false */
            layers->position[layer][j] = from[j] >= 0 && from[j] < MOST_DEPTH ? from[j] : NAN;
    }
    layers->of = oct_view_of_image(h);
}

double oct_view_layers_thickness(const struct oct_view_layers *layers, double line_a, double line_b,
                                 double *found)
{
    const double end = layers->n_lines > 0 ? layers->n_lines - 1.0 : 0;
    const uint32_t first = (uint32_t)fmax(0, fmin(fmin(line_a, line_b), end));
    const uint32_t last = (uint32_t)fmax(0, fmin(fmax(line_a, line_b), end));
    double sum = 0;
    uint32_t n = 0;
    if (found)
        *found = 0;
    if (layers->n_lines == 0)
        return NAN;
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

bool oct_view_layers_are_on(const struct oct_view_model *model)
{
    const struct oct_view_analysis *row = oct_view_daemon_analysis(&model->daemon, "surfaces");
    return row && !row->at_rest;
}

bool oct_view_model_has_layers(const struct oct_view_model *model)
{
    return model->settings.layers && model->layers.n_lines > 0 &&
           oct_view_overlay_is_drawn(model, &model->layers.of);
}

double oct_view_model_fibres(const struct oct_view_model *model, uint32_t line)
{
    const double um = oct_view_model_scale(model).axial_um;
    const struct oct_view_layers *l = &model->layers;
    float thick = NAN;
    if (oct_view_model_has_layers(model) && line < l->n_lines)
        oct_thickness_map(&l->position[OCT_LAYER_ILM][line], &l->position[OCT_LAYER_RNFL_GCL][line],
                          1, isfinite(um) ? um : 1, &thick);
    return (double)thick;
}

void oct_view_model_thickness_text(const struct oct_view_model *model, double line_a, double line_b,
                                   char *text, size_t n_bytes)
{
    const double um = oct_view_model_scale(model).axial_um;
    const struct oct_view_layers *l = &model->layers;
    double px = NAN, lines, depth;
    if (oct_view_model_has_layers(model) && l->n_lines == model->shown.header.n_lines &&
        oct_view_overlay_belongs(model, &l->of, &lines, &depth))
        px = oct_view_layers_thickness(l, line_a - lines, line_b - lines, NULL);
    if (isnan(px))
        snprintf(text, n_bytes, "%s", "");
    else if (isfinite(um))
        snprintf(text, n_bytes, "; ILM to RPE %.1f \u00b5m", px * um);
    else
        snprintf(text, n_bytes, "; ILM to RPE %.1f pixels", px);
}

/* What the search does, where there is nothing of it to show. */
static void say_search(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    const struct oct_view_daemon *d = &model->daemon;
    const struct oct_view_analysis *row = oct_view_daemon_analysis(d, "surfaces");
    const bool searches = model->settings.layers && d->reachable && row && !row->at_rest &&
                          oct_view_show(model) == OCT_SHOW_LIVE;
    const struct oct_view_thickness *t = &model->playback.thickness;
    if (oct_view_playback_has_layers(model)) {
        oct_view_phrase_set(phrase, OCT_TONE_DIM, "layers: %s",
                            t->why[0]      ? t->why
                            : t->share < 1 ? "searching"
                                           : "no retina seen");
        return;
    }
    oct_view_phrase_set(phrase, OCT_TONE_DIM, "%s", searches ? "layers: searching" : "");
    if (searches && row->late && row->late_share < 1)
        oct_view_phrase_set(phrase, OCT_TONE_DIM, "layers: late, one of %.0f B-scans",
                            ceil(1 / (1 - row->late_share)));
}

void oct_view_layers_text(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    const double um = oct_view_model_scale(model).axial_um;
    double found, px;
    char share[40] = "";
    say_search(model, phrase);
    if (!oct_view_model_has_layers(model))
        return;
    px = oct_view_layers_thickness(&model->layers, 0, model->layers.n_lines, &found);
    if (found < 0.995)
        snprintf(share, sizeof(share), " in %.0f %% of the A-lines", 100 * found);
    if (isnan(px))
        oct_view_phrase_set(phrase, OCT_TONE_DIM, "layers: no retina seen");
    else
        oct_view_phrase_set(phrase, OCT_TONE_PLAIN, "ILM to RPE %.0f %s%s",
                            isfinite(um) ? px * um : px, isfinite(um) ? "\u00b5m" : "pixels",
                            share);
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
    static const uint32_t rgb[OCT_N_LAYERS] = {RGB_ILM,  0xf5e663, 0x8fe36a, 0x3fc79f,
                                               0xb79bff, 0xff8f6b, RGB_RPE};
    const struct oct_view_layers *layers = &model->layers;
    const struct oct_picture_header *h = &model->shown.header;
    const struct oct_view_rect seen = oct_draw_layout(draw)->picture;
    struct oct_view_phrase phrase;
    oct_view_layers_text(model, &phrase);
    if (phrase.text[0])
        oct_draw_corner(draw, phrase.text, RGB_ILM);
    if (!oct_view_model_has_layers(model) || h->n_lines != layers->n_lines)
        return;
    const struct oct_view_rectf place = oct_view_overlay_place(draw, model, &layers->of);
    oct_draw_clip(draw, &seen);
    for (unsigned layer = 0; layer < OCT_N_LAYERS; layer++)
        if (model->settings.all_layers || layer == OCT_LAYER_ILM || layer == OCT_LAYER_RPE)
            draw_layer(draw, place, layers->position[layer], h->n_lines, h->depth, rgb[layer]);
    oct_draw_clip(draw, NULL);
}

static void take(struct oct_view_model *model, struct oct_view_image *image)
{
    if (!model->playback.active) /* there they are of the file */
        oct_view_layers_set(&model->layers, image);
}

const struct oct_view_overlay oct_view_overlay_layers = {
    .topic = "surfaces",
    .check = check,
    .take = take,
    .leads = 2,
    .draw = draw_layers,
    .action = OCT_ACTION_LAYERS,
    .key = 'I',
    .setting = offsetof(struct oct_view_settings, layers),
    .setting_name = "layers",
    .what = "finds no layers",
    .drawn = "the retina's layers, as octd finds them",
    .not_drawn = "layers are not drawn",
};
