#include "viewer/play/layers.h"

#include "analysis/layers/layers.h"

#include <math.h>
#include <stdlib.h>

struct oct_play_layers {
    struct oct_play_recorded *recorded;
    struct oct_image_form form;
    struct oct_layer_sequence *sequence;
    struct oct_view_picture picture;
};

enum oct_err oct_play_layers_create(struct oct_play_layers **out,
                                    struct oct_play_recorded *recorded, struct oct_error *err)
{
    const struct oct_view_file *file = oct_play_recorded_file(recorded);
    struct oct_surfaces_settings standard;
    struct oct_play_layers *l = calloc(1, sizeof(*l));
    *out = NULL;
    if (!l)
        return oct_fail(err, OCT_E_NO_MEMORY, "layers: out of memory");
    oct_params_set_defaults(&oct_surfaces_params, &standard);
    standard.enabled = true;
    l->recorded = recorded;
    l->form = (struct oct_image_form){
        .name = "bscan",
        .quantity = file->log ? OCT_QUANTITY_INTENSITY_DB : OCT_QUANTITY_INTENSITY,
        .type = oct_play_recorded_type(recorded),
        .rank = 2,
        .dims = {file->n_lines, file->depth},
    };
    const struct oct_layer_sequence_setup setup = {
        .input = &l->form,
        .spacing = {.depth_um = file->axial_um,
                    .line_um = file->lateral_um,
                    .bscan_um = file->slow_um},
        .least_um = standard.least_um,
        .most_um = standard.most_um,
        .min_quality = standard.min_quality,
    };
    enum oct_err e = oct_surfaces_live_check(&standard, &l->form, err);
    e = e ? e : oct_layer_sequence_create(&l->sequence, &setup, err);
    if (e)
        oct_play_layers_destroy(l);
    else
        *out = l;
    return e;
}

void oct_play_layers_destroy(struct oct_play_layers *l)
{
    if (!l)
        return;
    oct_layer_sequence_destroy(l->sequence);
    oct_view_picture_finish(&l->picture);
    free(l);
}

const struct oct_sequence_layers *oct_play_layers_find(struct oct_play_layers *l, uint32_t v)
{
    const struct oct_picture_header *h = &l->picture.header;
    bool valid = false;
    if (oct_play_recorded_read(l->recorded, v, &l->picture, &valid, NULL) || !valid)
        return NULL;
    const struct oct_image_frame frame = {
        .info = {.number = h->frame_num, .bscan = v, .missing_lines = h->missing_lines},
        .form = &l->form,
        .dims = {h->n_lines, h->depth},
        .lo = h->lo,
        .hi = h->hi,
        .pixels = l->picture.pixels,
    };
    return oct_layer_sequence_run(l->sequence, &frame);
}

void oct_play_thickness(const struct oct_sequence_layers *found, double um,
                        struct oct_view_enface map[OCT_N_MAPS], uint32_t row)
{
    static const enum oct_layer lower[OCT_N_MAPS] = {OCT_LAYER_RPE, OCT_LAYER_RNFL_GCL};
    const float scale = isfinite(um) ? (float)um : 1;
    for (unsigned i = 0; i < OCT_N_MAPS; i++) {
        const struct oct_view_enface *e = &map[i];
        float *to = e->value + (size_t)row * e->n_columns;
        for (uint32_t c = 0; c < e->n_columns; c++) {
            const uint64_t j = (uint64_t)c * e->n_lines / e->n_columns;
            to[c] = found
                        ? (found->position[lower[i]][j] - found->position[OCT_LAYER_ILM][j]) * scale
                        : NAN;
        }
    }
}

const struct oct_picture_header *oct_play_layers_of(const struct oct_play_layers *l)
{
    return &l->picture.header;
}
