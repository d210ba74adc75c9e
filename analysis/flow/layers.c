/* The layers of a place, by its mean intensity. */
#include "analysis/flow/flow.h"
#include "analysis/layers/find/sequence.h"

#include <math.h>
#include <stdlib.h>

#define LEAST_UM 100.0 /* as surfaces.least_um, most_um and min_quality are shipped */
#define MOST_UM 600.0
#define MIN_QUALITY 8.0

struct oct_flow_layers {
    struct oct_layer_sequence *sequence;
    struct oct_image_form form;
    float *db; /* [M][D] */
};

enum oct_err oct_flow_layers_create(struct oct_flow_layers **layers, uint32_t n_lines,
                                    uint32_t depth, const struct oct_spacing *spacing,
                                    struct oct_error *err)
{
    struct oct_flow_layers *l = calloc(1, sizeof(*l));
    *layers = NULL;
    if (l) {
        l->form = (struct oct_image_form){.name = "bscan",
                                          .quantity = OCT_QUANTITY_INTENSITY_DB,
                                          .type = OCT_SAMPLE_F32,
                                          .rank = 2,
                                          .dims = {n_lines, depth},
                                          .spacing_um = {spacing->line_um, spacing->depth_um},
                                          .axes = {"line", "depth"}};
        l->db = malloc((size_t)n_lines * depth * sizeof(*l->db));
    }
    const struct oct_layer_sequence_setup setup = {.input = l ? &l->form : NULL,
                                                   .spacing = *spacing,
                                                   .least_um = LEAST_UM,
                                                   .most_um = MOST_UM,
                                                   .min_quality = MIN_QUALITY};
    const enum oct_err e = l && l->db ? oct_layer_sequence_create(&l->sequence, &setup, err)
                                      : oct_fail(err, OCT_E_NO_MEMORY, "flow: out of memory");
    if (e)
        oct_flow_layers_destroy(l);
    else
        *layers = l;
    return e;
}

void oct_flow_layers_destroy(struct oct_flow_layers *l)
{
    if (!l)
        return;
    oct_layer_sequence_destroy(l->sequence);
    free(l->db);
    free(l);
}

void oct_flow_layers_find(struct oct_flow_layers *l, const float *intensity,
                          const struct oct_bscan_info *info, const float *position[OCT_N_LAYERS])
{
    const size_t n = (size_t)l->form.dims[0] * l->form.dims[1];
    for (size_t i = 0; i < n; i++)
        l->db[i] = intensity[i] > 0 ? 10 * log10f(intensity[i]) : NAN;
    const struct oct_image_frame bscan = {.info = *info,
                                          .form = &l->form,
                                          .dims = {l->form.dims[0], l->form.dims[1]},
                                          .pixels = l->db,
                                          .lo = 0,
                                          .hi = 1};
    const struct oct_sequence_layers *found = oct_layer_sequence_run(l->sequence, &bscan);
    for (unsigned i = 0; i < OCT_N_LAYERS; i++)
        position[i] = found->position[i];
}
