#include "viewer/model/overlay.h"

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

enum oct_err oct_view_layers_check(const struct oct_image_header *header, struct oct_error *err)
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

    if (oct_view_layers_check(h, NULL) || !resize(layers, h->dims[1]))
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
